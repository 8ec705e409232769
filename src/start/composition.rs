//! Which treatment each attribute gets: the first rule that fits it, of the configuration's own and then of its preset's ([POD] §6.3,
//! docs/methods.md §10.5).

use super::sampling::{Read, typical};
use crate::anonymity::microaggregation::Resolution;
use crate::anonymity::planner::coverage::{Standing, standings};
use crate::config::{Config, Preset, Problem, Treat, TreatmentRule, ValueKind};
use throng_core::values::canonical::Type;
use throng_core::values::schema::{Attribute, Schema, Treatment};

/// Records that attributes are measured on: the first of the file, fewer the more pairs of attributes there are.
const MEASURED: std::ops::RangeInclusive<usize> = 1_000..=10_000;
/// Records times pairs of attributes: some seconds.
const LOOKED_AT: usize = 100_000_000;

/// An attribute with its treatment, and why it gets that.
#[derive(Clone, Debug, PartialEq)]
pub struct Treated {
    /// Position in the schema.
    pub attribute: usize,
    /// What is done to it where its value has no crowd.
    pub treat: Treat,
    /// Which rule says so.
    pub by: By,
    /// What the rules have gone by; none where none of them measures anything.
    pub standing: Option<Standing>,
}

/// Who says how an attribute is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A `[[treatment.rule]]`, counted from 0.
    Rule(usize),
    /// `treatment.preset`.
    Preset(Preset),
    /// No rule fits.
    Nobody,
}

impl By {
    /// The key of the configuration that says so; none where no rule does.
    pub fn key(self) -> Option<String> {
        match self {
            Self::Rule(index) => Some(format!("treatment.rule[{index}]")),
            Self::Preset(_) => Some("treatment.preset".to_owned()),
            Self::Nobody => None,
        }
    }
}

/// What the quasi attributes of a schema come to; nothing where the configuration has no rules.
///
/// # Errors
/// Rules that name what cannot be treated so, and shares that nothing can be measured on.
pub fn compose(config: &Config, schema: &Schema, file: &str) -> Result<Vec<Treated>, Vec<Problem>> {
    let rules = config.treatment.rules();
    if rules.is_empty() {
        return Ok(Vec::new());
    }
    let problems = misnamed(config, schema, file);
    if !problems.is_empty() {
        return Err(problems);
    }
    let quasi: Vec<usize> = schema.releasable().filter(|&a| schema.attributes[a].role.is_quasi()).collect();
    let measured = if rules.iter().any(TreatmentRule::is_measured) {
        let read = records(config, schema, file, most_records(quasi.len()))?;
        standings(&read.batch.columns, &read.batch.subjects, &quasi, config.privacy.crowd())
            .into_iter()
            .map(Some)
            .collect()
    } else {
        vec![None; quasi.len()]
    };
    let of = |(attribute, standing): (usize, Option<Standing>)| {
        let fitting = rules.iter().position(|rule| fits(rule, &schema.attributes[attribute], standing));
        let by = match fitting {
            Some(own) if own < config.treatment.rule.len() => By::Rule(own),
            Some(_) => By::Preset(config.treatment.preset),
            None => By::Nobody,
        };
        Treated { attribute, treat: fitting.map_or(Treat::Generalize, |at| rules[at].treat), by, standing }
    };
    Ok(quasi.into_iter().zip(measured).map(of).collect())
}

/// The attributes that are to leave in compartments.
pub fn compartmented(treated: &[Treated]) -> Vec<usize> {
    treated.iter().filter(|one| one.treat == Treat::Compartment).map(|one| one.attribute).collect()
}

/// A configuration that says of every attribute by its name what is done to it: nothing is left to be measured.
pub fn composed(config: Config, schema: &Schema, treated: &[Treated]) -> Config {
    let rule = |one: &Treated| TreatmentRule {
        attributes: vec![schema.attributes[one.attribute].name.clone()],
        treat: one.treat,
        ..TreatmentRule::default()
    };
    let is_left = |one: &&Treated| !matches!(one.treat, Treat::Generalize | Treat::Compartment);
    let mut config = config;
    config.treatment.preset = Preset::KAnonymous;
    config.treatment.rule = treated.iter().filter(is_left).map(rule).collect();
    config
}

/// What a schema must know of the treatments.
pub fn treatments(treated: &[Treated]) -> Vec<(usize, Treatment)> {
    let of = |one: &Treated| {
        let treatment = match one.treat {
            Treat::Generalize | Treat::Compartment => Treatment::Generalize,
            Treat::SuppressCell => Treatment::SuppressCell,
            Treat::SuppressRecord => Treatment::SuppressRecord,
            Treat::Perturb => Treatment::Perturb,
            Treat::Aggregate => Treatment::Aggregate,
        };
        (one.attribute, treatment)
    };
    treated.iter().map(of).collect()
}

fn is_numeric(attribute: &Attribute) -> bool {
    matches!(attribute.kind(), Type::Integer | Type::Float)
}

/// Whether its numbers can give way to others: they lie on a grid.
fn is_alterable(attribute: &Attribute) -> bool {
    Resolution::of(&attribute.typing).is_some()
}

fn fits(rule: &TreatmentRule, attribute: &Attribute, standing: Option<Standing>) -> bool {
    let is_named = rule.attributes.is_empty() || rule.attributes.contains(&attribute.name);
    let numeric = is_numeric(attribute);
    let is_kind = rule.kind.is_none_or(|kind| (kind == ValueKind::Numeric) == numeric);
    let standing = standing.unwrap_or_default();
    is_named
        && is_kind
        && (is_alterable(attribute) || !rule.treat.is_of_numbers())
        && rule.coverage_from.is_none_or(|from| standing.coverage >= from)
        && rule.cardinality_below.is_none_or(|below| standing.cardinality < below)
}

/// Names of rules that the schema does not have, or not as what can be treated.
fn misnamed(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, rule) in config.treatment.rule.iter().enumerate() {
        for name in &rule.attributes {
            let (message, remedy) = match schema.position(name).map(|a| &schema.attributes[a]) {
                None => (format!("the schema has no attribute {name:?}"), "correct the name, or add it to the schema"),
                Some(attribute) if !attribute.role.is_quasi() => (
                    format!(
                        "{name:?} has the role {}: only quasi attributes are treated by rules",
                        attribute.role.name()
                    ),
                    "take it out of the rule",
                ),
                Some(attribute) if rule.treat.is_of_numbers() && !is_alterable(attribute) => (
                    format!(
                        "{name:?} has the type {} and no rounding step: only numbers of a known resolution are treated so",
                        attribute.kind().name()
                    ),
                    "take it out of the rule, name another treatment, or round it in the schema",
                ),
                Some(_) => continue,
            };
            problems.push(Problem::new(file, format!("treatment.rule[{index}].attributes"), message, remedy));
        }
    }
    problems
}

/// Records that so many attributes are measured on.
fn most_records(attributes: usize) -> usize {
    let pairs = (attributes * attributes.saturating_sub(1) / 2).max(1);
    (LOOKED_AT / pairs).clamp(*MEASURED.start(), *MEASURED.end())
}

/// The first `most` records, that attributes are measured on.
fn records(config: &Config, schema: &Schema, file: &str, most: usize) -> Result<Read, Vec<Problem>> {
    let remedy = "set treatment.preset = \"k-anonymous\"";
    typical(config, schema, most, (file, "treatment.preset"), ("treatments go by shares that are measured", remedy))
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
    fn the_first_rule_that_fits_counts() {
        let rules = "[[treatment.rule]]\nattributes = [\"age\"]\ntreat = \"aggregate\"\n[[treatment.rule]]\ntreat = \"suppress_cell\"\n";
        let treated = compose(&config(rules), &schema(), "c.toml").expect("treatments");
        let told: Vec<_> = treated.iter().map(|one| (one.attribute, one.treat, one.by)).collect();
        assert_eq!(told, [(0, Treat::Aggregate, By::Rule(0)), (1, Treat::SuppressCell, By::Rule(1))]);
        assert_eq!(compose(&config(""), &schema(), "c.toml"), Ok(Vec::new()));
        let settled = composed(config(rules), &schema(), &treated);
        assert_eq!(compose(&settled, &schema(), "c.toml").expect("the same").len(), 2);
        assert!(settled.treatment.may_be_untruthful());
    }

    #[test]
    fn what_cannot_be_treated_so_is_named() {
        for (attribute, word) in [("town", "only numbers of"), ("illness", "sensitive"), ("nothing", "no attribute")] {
            let rules = format!("[[treatment.rule]]\nattributes = [\"{attribute}\"]\ntreat = \"perturb\"\n");
            let problems = compose(&config(&rules), &schema(), "c.toml").expect_err("a problem");
            assert_eq!(problems[0].key, "treatment.rule[0].attributes");
            assert!(problems[0].message.contains(word), "{}", problems[0].message);
        }
        assert!(schema().attributes.iter().any(|a| a.role == Role::Sensitive));
    }

    #[test]
    fn many_attributes_are_measured_on_fewer_records() {
        assert_eq!([0, 1, 25, 107, 142, 1_024].map(most_records), [10_000, 10_000, 10_000, 10_000, 9_989, 1_000]);
    }

    /// The tables of the dissertation, as it prints them ([POD] Tables 6.2 and 6.3).
    #[test]
    fn presets_are_the_tables() {
        let schema = schema();
        let treat = |preset: Preset, attribute: usize, coverage: f64, cardinality: f64| {
            let standing = Some(Standing { coverage, cardinality });
            let rules = preset.rules();
            rules.iter().find(|rule| fits(rule, &schema.attributes[attribute], standing)).map(|rule| rule.treat)
        };
        let (age, town) = (0, 1);
        for (coverage, number, text) in [
            (0.05, Treat::Perturb, Treat::SuppressCell),
            (0.3, Treat::Generalize, Treat::SuppressCell),
            (0.5, Treat::Compartment, Treat::Compartment),
        ] {
            assert_eq!(treat(Preset::Coverage, age, coverage, 0.0), Some(number));
            assert_eq!(treat(Preset::Coverage, town, coverage, 0.0), Some(text));
        }
        for (preset, numbers, texts) in [(Preset::A, 0.5, 0.9), (Preset::B, 0.75, 0.8), (Preset::C, 0.9, 0.95)] {
            assert_eq!(treat(preset, age, 0.0, numbers - 0.01), Some(Treat::Perturb));
            assert_eq!(treat(preset, age, 0.0, numbers), Some(Treat::Generalize));
            assert_eq!(treat(preset, town, 0.0, texts - 0.01), Some(Treat::Compartment));
            assert_eq!(treat(preset, town, 0.0, texts), Some(Treat::SuppressCell));
        }
        assert_eq!(treat(Preset::KAnonymous, age, 0.9, 0.9), None);
    }
}
