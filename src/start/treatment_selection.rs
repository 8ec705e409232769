//! Selects the treatment of each attribute by the first matching rule of configuration, then preset (\[POD] §6.3,
//! docs/internals/methods.md §10.5).

use super::sampling::{SampledRecords, read_typical};
use crate::config::{Config, ConfigProblem, TreatmentMethod, TreatmentPreset, TreatmentRule, ValueKind};
use crate::planner::attribute_rarity::{AttributeRarity, measure_rarity};
use throng_core::microaggregation::NumericResolution;
use throng_core::values::canonical::AttributeType;
use throng_core::values::schema::{Attribute, AttributeTreatment, Schema};

/// Decreases with the number of attribute pairs.
const MEASURED_RECORDS: std::ops::RangeInclusive<usize> = 1_000..=10_000;
/// Takes some seconds.
const MAX_PAIR_COMPARISONS: usize = 100_000_000;

/// Attribute with its treatment and the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectedTreatment {
    /// Position in the schema.
    pub attribute: usize,
    /// Treatment of a value without a large enough class.
    pub treat: TreatmentMethod,
    /// Origin of the treatment.
    pub by: TreatmentOrigin,
    /// Measurements used by the rules.
    pub standing: Option<AttributeRarity>,
}

/// Origin of a treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreatmentOrigin {
    /// A `[[treatment.rule]]`, from 0.
    Rule(usize),
    /// `treatment.preset`.
    Preset(TreatmentPreset),
    /// No rule matches.
    NoRule,
}

impl TreatmentOrigin {
    /// Returns the configuration key of the rule.
    pub fn key(self) -> Option<String> {
        match self {
            Self::Rule(index) => Some(format!("treatment.rule[{index}]")),
            Self::Preset(_) => Some("treatment.preset".to_owned()),
            Self::NoRule => None,
        }
    }
}

/// Selects the treatments of the quasi attributes; empty without rules.
///
/// # Errors
/// Fails for attributes that do not support the treatment, and for measured rules without usable records.
pub fn select_treatments(
    config: &Config,
    schema: &Schema,
    file: &str,
) -> Result<Vec<SelectedTreatment>, Vec<ConfigProblem>> {
    let rules = config.treatment.rules();
    if rules.is_empty() {
        return Ok(Vec::new());
    }
    let problems = rule_problems(config, schema, file);
    if !problems.is_empty() {
        return Err(problems);
    }
    let quasi: Vec<usize> = schema.releasable().filter(|&a| schema.attributes[a].role.is_quasi()).collect();
    let measured = if rules.iter().any(TreatmentRule::needs_measurement) {
        let read = read_measured(config, schema, file, records_to_measure(quasi.len()))?;
        measure_rarity(&read.batch.columns, &read.batch.subjects, &quasi, config.privacy.required_subjects())
            .into_iter()
            .map(Some)
            .collect()
    } else {
        vec![None; quasi.len()]
    };
    let of = |(attribute, standing): (usize, Option<AttributeRarity>)| {
        let fitting = rules.iter().position(|rule| rule_matches(rule, &schema.attributes[attribute], standing));
        let by = match fitting {
            Some(own) if own < config.treatment.rule.len() => TreatmentOrigin::Rule(own),
            Some(_) => TreatmentOrigin::Preset(config.treatment.preset),
            None => TreatmentOrigin::NoRule,
        };
        SelectedTreatment {
            attribute,
            treat: fitting.map_or(TreatmentMethod::Generalize, |at| rules[at].treat),
            by,
            standing,
        }
    };
    Ok(quasi.into_iter().zip(measured).map(of).collect())
}

/// Returns the attributes in compartments.
pub fn compartmented(treated: &[SelectedTreatment]) -> Vec<usize> {
    treated.iter().filter(|one| one.treat == TreatmentMethod::Compartment).map(|one| one.attribute).collect()
}

/// Returns the configuration with one explicit rule per attribute, without measurements.
pub fn with_explicit_rules(config: Config, schema: &Schema, treated: &[SelectedTreatment]) -> Config {
    let rule = |one: &SelectedTreatment| TreatmentRule {
        attributes: vec![schema.attributes[one.attribute].name.clone()],
        treat: one.treat,
        ..TreatmentRule::default()
    };
    let is_left =
        |one: &&SelectedTreatment| !matches!(one.treat, TreatmentMethod::Generalize | TreatmentMethod::Compartment);
    let mut config = config;
    config.treatment.preset = TreatmentPreset::KAnonymous;
    config.treatment.rule = treated.iter().filter(is_left).map(rule).collect();
    config
}

/// Converts the treatments for the schema.
pub fn treatments(treated: &[SelectedTreatment]) -> Vec<(usize, AttributeTreatment)> {
    let of = |one: &SelectedTreatment| {
        let treatment = match one.treat {
            TreatmentMethod::Generalize | TreatmentMethod::Compartment => AttributeTreatment::Generalize,
            TreatmentMethod::SuppressCell => AttributeTreatment::SuppressCell,
            TreatmentMethod::SuppressRecord => AttributeTreatment::SuppressRecord,
            TreatmentMethod::Perturb => AttributeTreatment::Perturb,
            TreatmentMethod::Aggregate => AttributeTreatment::Aggregate,
        };
        (one.attribute, treatment)
    };
    treated.iter().map(of).collect()
}

fn is_numeric(attribute: &Attribute) -> bool {
    matches!(attribute.kind(), AttributeType::Integer | AttributeType::Float)
}

/// True for numbers with a known resolution.
fn is_alterable(attribute: &Attribute) -> bool {
    NumericResolution::of(&attribute.typing).is_some()
}

fn rule_matches(rule: &TreatmentRule, attribute: &Attribute, standing: Option<AttributeRarity>) -> bool {
    let is_named = rule.attributes.is_empty() || rule.attributes.contains(&attribute.name);
    let numeric = is_numeric(attribute);
    let is_kind = rule.kind.is_none_or(|kind| (kind == ValueKind::Numeric) == numeric);
    let standing = standing.unwrap_or_default();
    is_named
        && is_kind
        && (is_alterable(attribute) || !rule.treat.is_numeric_only())
        && rule.coverage_from.is_none_or(|from| standing.coverage >= from)
        && rule.cardinality_below.is_none_or(|below| standing.cardinality < below)
}

/// Reports rule attributes that are unknown or not treatable.
fn rule_problems(config: &Config, schema: &Schema, file: &str) -> Vec<ConfigProblem> {
    let mut problems = Vec::new();
    for (index, rule) in config.treatment.rule.iter().enumerate() {
        for name in &rule.attributes {
            let (message, remedy) = match schema.position(name).map(|a| &schema.attributes[a]) {
                None => (format!("the schema has no attribute {name:?}"), "correct the name, or add it to the schema"),
                Some(attribute) if !attribute.role.is_quasi() => (
                    format!(
                        "{name:?} has the role {}: only quasi attributes can be treated by rules",
                        attribute.role.name()
                    ),
                    "remove it from the rule",
                ),
                Some(attribute) if rule.treat.is_numeric_only() && !is_alterable(attribute) => (
                    format!(
                        "{name:?} has the type {} and no rounding step: only numbers of a known resolution can be treated like this",
                        attribute.kind().name()
                    ),
                    "remove it from the rule, name another treatment, or round it in the schema",
                ),
                Some(_) => continue,
            };
            problems.push(ConfigProblem::new(file, format!("treatment.rule[{index}].attributes"), message, remedy));
        }
    }
    problems
}

fn records_to_measure(attributes: usize) -> usize {
    let pairs = (attributes * attributes.saturating_sub(1) / 2).max(1);
    (MAX_PAIR_COMPARISONS / pairs).clamp(*MEASURED_RECORDS.start(), *MEASURED_RECORDS.end())
}

fn read_measured(
    config: &Config,
    schema: &Schema,
    file: &str,
    most: usize,
) -> Result<SampledRecords, Vec<ConfigProblem>> {
    let remedy = "set treatment.preset = \"k-anonymous\"";
    read_typical(
        config,
        schema,
        most,
        (file, "treatment.preset"),
        ("treatments are selected by shares that are measured", remedy),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::values::schema::Role;

    fn schema() -> Schema {
        let text = "name = \"t\"\n[[attribute]]\nname = \"age\"\ntype = \"integer\"\n[[attribute]]\nname = \"town\"\ntype = \"string\"\n\
            [[attribute]]\nname = \"illness\"\ntype = \"string\"\nrole = \"sensitive\"\n";
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s.toml");
        std::fs::write(&path, text).expect("a file");
        Schema::load(&path).expect("a schema")
    }

    fn config(treatment: &str) -> Config {
        let least =
            "[source]\nkind = \"file\"\npath = \"in.ndjson\"\n[sink]\nkind = \"none\"\n[schema]\nfile = \"s.toml\"\n";
        crate::config::parse(&format!("{least}{treatment}"), "c.toml", std::iter::empty::<(String, String)>())
            .expect("sound")
    }

    #[test]
    fn first_matching_rule_selects_treatment() {
        let rules = "[[treatment.rule]]\nattributes = [\"age\"]\ntreat = \"aggregate\"\n[[treatment.rule]]\ntreat = \"suppress_cell\"\n";
        let treated = select_treatments(&config(rules), &schema(), "c.toml").expect("treatments");
        let told: Vec<_> = treated.iter().map(|one| (one.attribute, one.treat, one.by)).collect();
        assert_eq!(
            told,
            [
                (0, TreatmentMethod::Aggregate, TreatmentOrigin::Rule(0)),
                (1, TreatmentMethod::SuppressCell, TreatmentOrigin::Rule(1))
            ]
        );
        assert_eq!(select_treatments(&config(""), &schema(), "c.toml"), Ok(Vec::new()));
        let settled = with_explicit_rules(config(rules), &schema(), &treated);
        assert_eq!(select_treatments(&settled, &schema(), "c.toml").expect("the same").len(), 2);
        assert!(settled.treatment.may_be_untruthful());
    }

    #[test]
    fn unsupported_treatment_names_the_attribute() {
        for (attribute, word) in [("town", "only numbers of"), ("illness", "sensitive"), ("nothing", "no attribute")] {
            let rules = format!("[[treatment.rule]]\nattributes = [\"{attribute}\"]\ntreat = \"perturb\"\n");
            let problems = select_treatments(&config(&rules), &schema(), "c.toml").expect_err("a problem");
            assert_eq!(problems[0].key, "treatment.rule[0].attributes");
            assert!(problems[0].message.contains(word), "{}", problems[0].message);
        }
        assert!(schema().attributes.iter().any(|a| a.role == Role::Sensitive));
    }

    #[test]
    fn measured_records_decrease_with_attribute_count() {
        assert_eq!([0, 1, 25, 107, 142, 1_024].map(records_to_measure), [10_000, 10_000, 10_000, 10_000, 9_989, 1_000]);
    }

    /// \[POD] Tables 6.2 and 6.3.
    #[test]
    fn presets_match_dissertation_tables() {
        let schema = schema();
        let treat = |preset: TreatmentPreset, attribute: usize, coverage: f64, cardinality: f64| {
            let standing = Some(AttributeRarity { coverage, cardinality });
            let rules = preset.rules();
            rules.iter().find(|rule| rule_matches(rule, &schema.attributes[attribute], standing)).map(|rule| rule.treat)
        };
        let (age, town) = (0, 1);
        for (coverage, number, text) in [
            (0.05, TreatmentMethod::Perturb, TreatmentMethod::SuppressCell),
            (0.3, TreatmentMethod::Generalize, TreatmentMethod::SuppressCell),
            (0.5, TreatmentMethod::Compartment, TreatmentMethod::Compartment),
        ] {
            assert_eq!(treat(TreatmentPreset::Coverage, age, coverage, 0.0), Some(number));
            assert_eq!(treat(TreatmentPreset::Coverage, town, coverage, 0.0), Some(text));
        }
        for (preset, numbers, texts) in
            [(TreatmentPreset::A, 0.5, 0.9), (TreatmentPreset::B, 0.75, 0.8), (TreatmentPreset::C, 0.9, 0.95)]
        {
            assert_eq!(treat(preset, age, 0.0, numbers - 0.01), Some(TreatmentMethod::Perturb));
            assert_eq!(treat(preset, age, 0.0, numbers), Some(TreatmentMethod::Generalize));
            assert_eq!(treat(preset, town, 0.0, texts - 0.01), Some(TreatmentMethod::Compartment));
            assert_eq!(treat(preset, town, 0.0, texts), Some(TreatmentMethod::SuppressCell));
        }
        assert_eq!(treat(TreatmentPreset::KAnonymous, age, 0.9, 0.9), None);
    }
}
