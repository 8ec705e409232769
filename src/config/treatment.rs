//! `[treatment]`: treatment of values that too few subjects share.

use super::choice::choices;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

choices! {
    /// Treatment of a value that too few subjects share.
    #[derive(Default)]
    enum TreatmentMethod {
        /// Generalizes the value along its hierarchy, at last to `*`.
        #[default]
        Generalize = "generalize",
        /// Releases the cell unchanged, or as `*`.
        SuppressCell = "suppress_cell",
        /// Releases the cell unchanged, or suppresses the line of its group. Under every treatment, standalone
        /// identifiers and values outside the hierarchy become `*`.
        SuppressRecord = "suppress_record",
        /// Replaces a number by the closest one that enough subjects of the batch share, among records equal in the
        /// rest of the group; else it is generalized. For integers, and floats with a rounding step. **Untruthful.**
        Perturb = "perturb",
        /// Micro-aggregation: sorts the numbers of a batch, in records equal in the rest of the group, and divides them
        /// into sets of enough subjects. Each number becomes the mean of its set, with the attribute's rounding. With
        /// too few subjects they are generalized. An attacker that knows all but one number of a set learns the last.
        /// For integers, and floats with a rounding step. **Untruthful.**
        Aggregate = "aggregate",
        /// Releases the attribute separately from those without this treatment, and from those with it that together
        /// distinguish subjects. Not with `[[group]]`s, nor with `plan.groups` of `cliques` or `border`.
        Compartment = "compartment",
    }
}

impl TreatmentMethod {
    /// Returns true if a released value may differ from that of the record.
    pub fn is_untruthful(self) -> bool {
        matches!(self, Self::Perturb | Self::Aggregate)
    }

    /// Returns true if the treatment applies to numbers only.
    pub fn is_numeric_only(self) -> bool {
        self.is_untruthful()
    }
}

/// Kind of an attribute's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Types integer and float.
    Numeric,
    /// All other types.
    Categorical,
}

choices! {
    /// Predefined set of treatment rules ([POD] §6.3).
    #[derive(Default)]
    enum TreatmentPreset {
        /// Generalizes every attribute: released values are true.
        #[default]
        KAnonymous = "k-anonymous",
        /// Chooses by coverage ([POD] Table 6.3): compartments from 50 %. Below, texts are suppressed; numbers are
        /// generalized from 15 % and perturbed below. Coverage of an attribute is the share of records with a rare
        /// value, or, if larger, a rare pair of common values with one other attribute. Rare: shared by fewer than
        /// `privacy.k` plus `privacy.colluders` subjects. **Untruthful.**
        Coverage = "coverage",
        /// Chooses by cardinality ([POD] Table 6.2, composition A): numbers are perturbed below 50 %, else generalized.
        /// Texts are compartments below 90 %, else suppressed. **Untruthful.**
        A = "a",
        /// Like `a` with 75 % and 80 % (composition B).
        B = "b",
        /// Like `a` with 90 % and 95 % (composition C).
        C = "c",
    }
}

impl TreatmentPreset {
    /// Returns the rules in order.
    pub fn rules(self) -> Vec<TreatmentRule> {
        let rule = |kind, treat| TreatmentRule { kind, treat, ..TreatmentRule::default() };
        let (numeric, categorical) = (Some(ValueKind::Numeric), Some(ValueKind::Categorical));
        let by_cardinality = |numbers: f64, texts: f64| {
            vec![
                TreatmentRule { cardinality_below: Some(numbers), ..rule(numeric, TreatmentMethod::Perturb) },
                rule(numeric, TreatmentMethod::Generalize),
                TreatmentRule { cardinality_below: Some(texts), ..rule(categorical, TreatmentMethod::Compartment) },
                rule(categorical, TreatmentMethod::SuppressCell),
            ]
        };
        match self {
            Self::KAnonymous => Vec::new(),
            Self::Coverage => vec![
                TreatmentRule { coverage_from: Some(0.5), ..rule(None, TreatmentMethod::Compartment) },
                rule(categorical, TreatmentMethod::SuppressCell),
                TreatmentRule { coverage_from: Some(0.15), ..rule(numeric, TreatmentMethod::Generalize) },
                rule(numeric, TreatmentMethod::Perturb),
            ],
            Self::A => by_cardinality(0.5, 0.9),
            Self::B => by_cardinality(0.75, 0.8),
            Self::C => by_cardinality(0.9, 0.95),
        }
    }
}

/// Assigns a treatment to attributes that fit all conditions of the rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TreatmentRule {
    /// Lists quasi attributes of the record schema; without any, all of them.
    #[schemars(example = ["steps", "heart_rate"])]
    pub attributes: Vec<String>,
    /// Required kind of the attribute's values.
    #[serde(skip)]
    pub kind: Option<ValueKind>,
    /// Minimum coverage ([`TreatmentPreset`]), 0 to 1.
    #[serde(skip)]
    pub coverage_from: Option<f64>,
    /// Exclusive upper bound of the cardinality (distinct values divided by records), 0 to 1.
    #[serde(skip)]
    pub cardinality_below: Option<f64>,
    /// Selects the treatment.
    #[schemars(example = TreatmentMethod::Perturb)]
    pub treat: TreatmentMethod,
}

impl TreatmentRule {
    /// Returns true if the rule needs measured shares.
    pub fn needs_measurement(&self) -> bool {
        self.coverage_from.is_some() || self.cardinality_below.is_some()
    }
}

/// Sets the treatment of values that too few subjects share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TreatmentConfig {
    /// Selects a predefined set of rules for attributes that no `[[treatment.rule]]` fits. All except `k-anonymous`
    /// measure the attributes on `plan.prime` or the source file. `throng check --explain` reports each treatment and
    /// its reason.
    #[schemars(example = TreatmentPreset::Coverage)]
    pub preset: TreatmentPreset,
    /// Adds rules before those of the preset; the first one that fits an attribute applies. Without one, it is
    /// generalized. Rules do not apply to sensitive or insensitive attributes.
    #[schemars(example = [TreatmentRule { attributes: vec!["steps".into()], treat: TreatmentMethod::Perturb, ..TreatmentRule::default() }])]
    pub rule: Vec<TreatmentRule>,
}

impl TreatmentConfig {
    /// Returns all rules in order: configured ones, then those of the preset.
    pub fn rules(&self) -> Vec<TreatmentRule> {
        self.rule.iter().cloned().chain(self.preset.rules()).collect()
    }

    /// Returns true if released values may be means.
    pub fn creates_values(&self) -> bool {
        self.rules().iter().any(|rule| rule.treat == TreatmentMethod::Aggregate)
    }

    /// Returns the key of the first rule or preset that may be untruthful.
    pub fn untruthful_key(&self) -> &'static str {
        if self.rule.iter().any(|rule| rule.treat.is_untruthful()) { "treatment.rule" } else { "treatment.preset" }
    }

    /// Returns true if any rule may release untruthful values, before its shares are measured.
    pub fn may_be_untruthful(&self) -> bool {
        self.rules().iter().any(|rule| rule.treat.is_untruthful())
    }
}
