//! `[treatment]`: what is done to values that stand out.

use super::choice::choices;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

choices! {
    /// What is done to an attribute where its value has no crowd.
    #[derive(Default)]
    enum Treat {
        /// It becomes coarser along its hierarchy, at last `*`.
        #[default]
        Generalize = "generalize",
        /// The cell leaves as it is, or as `*`.
        SuppressCell = "suppress_cell",
        /// The cell leaves as it is, or the line of its group does not leave. What identifies by itself, and what the hierarchy does not cover, is
        /// `*` whatever the treatment.
        SuppressRecord = "suppress_record",
        /// A number gives way to the closest one that has a crowd in the batch, in records that are alike in the rest of the group; where there
        /// is none it is generalized. For integers, and floats with a rounding step. **Untruthful.**
        Perturb = "perturb",
        /// Micro-aggregation: the numbers of a batch, in records that are alike in the rest of the group, are divided by size into crowds,
        /// and each gives way to the mean of its crowd, rounded as the attribute is; where there are too few people they are generalized. Who knows all
        /// but one of a crowd's numbers learns the last. For integers, and floats with a rounding step. **Untruthful.**
        Aggregate = "aggregate",
        /// It leaves apart from all attributes so treated with which it tells people apart, and from all others. Not with `[[group]]`s, nor with
        /// `plan.groups` of `cliques` or `border`, which divide every attribute already.
        Compartment = "compartment",
    }
}

impl Treat {
    /// Whether what leaves may be another value than the record's.
    pub fn is_untruthful(self) -> bool {
        matches!(self, Self::Perturb | Self::Aggregate)
    }

    /// Whether it is for numbers only.
    pub fn is_of_numbers(self) -> bool {
        self.is_untruthful()
    }
}

/// Which kind of values an attribute has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// The types integer and float.
    Numeric,
    /// All other types.
    Categorical,
}

choices! {
    /// A ready composition of treatments ([POD] §6.3).
    #[derive(Default)]
    enum Preset {
        /// Every attribute is generalized: what leaves is true.
        #[default]
        KAnonymous = "k-anonymous",
        /// By coverage ([POD] Table 6.3): compartments from 50 %; below, texts are suppressed, and numbers generalized above 15 % and
        /// perturbed up to there. Coverage of an attribute is the share of the records whose value of it, or of it and one other attribute that are
        /// common each by themselves, fewer than `privacy.k` people and the colluders share; the largest over all others. **Untruthful.**
        Coverage = "coverage",
        /// By cardinality ([POD] Table 6.2, composition A): numbers are perturbed below 50 % and generalized from there; texts leave in
        /// compartments below 90 % and are suppressed from there. **Untruthful.**
        A = "a",
        /// The same with 75 % and 80 % (composition B).
        B = "b",
        /// The same with 90 % and 95 % (composition C).
        C = "c",
    }
}

impl Preset {
    /// The rules that it stands for, in their order.
    pub fn rules(self) -> Vec<TreatmentRule> {
        let rule = |kind, treat| TreatmentRule { kind, treat, ..TreatmentRule::default() };
        let (numeric, categorical) = (Some(ValueKind::Numeric), Some(ValueKind::Categorical));
        let by_cardinality = |numbers: f64, texts: f64| {
            vec![
                TreatmentRule { cardinality_below: Some(numbers), ..rule(numeric, Treat::Perturb) },
                rule(numeric, Treat::Generalize),
                TreatmentRule { cardinality_below: Some(texts), ..rule(categorical, Treat::Compartment) },
                rule(categorical, Treat::SuppressCell),
            ]
        };
        match self {
            Self::KAnonymous => Vec::new(),
            Self::Coverage => vec![
                TreatmentRule { coverage_from: Some(0.5), ..rule(None, Treat::Compartment) },
                rule(categorical, Treat::SuppressCell),
                TreatmentRule { coverage_from: Some(0.15), ..rule(numeric, Treat::Generalize) },
                rule(numeric, Treat::Perturb),
            ],
            Self::A => by_cardinality(0.5, 0.9),
            Self::B => by_cardinality(0.75, 0.8),
            Self::C => by_cardinality(0.9, 0.95),
        }
    }
}

/// A rule: attributes that fit everything it names are treated as it says. Shares are those of presets alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TreatmentRule {
    /// Quasi attributes of the record schema; without it all of them.
    #[schemars(example = ["steps", "heart_rate"])]
    pub attributes: Vec<String>,
    /// Kind of values that an attribute must have.
    #[serde(skip)]
    pub kind: Option<ValueKind>,
    /// Least coverage ([`Preset`]), 0 to 1.
    #[serde(skip)]
    pub coverage_from: Option<f64>,
    /// Least cardinality that is too much, 0 to 1: distinct values over records.
    #[serde(skip)]
    pub cardinality_below: Option<f64>,
    /// What is done.
    #[schemars(example = Treat::Perturb)]
    pub treat: Treat,
}

impl TreatmentRule {
    /// Whether it asks for what must be measured.
    pub fn is_measured(&self) -> bool {
        self.coverage_from.is_some() || self.cardinality_below.is_some()
    }
}

/// How records are treated that stand out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Treatment {
    /// A ready composition: which treatment an attribute gets that no `[[treatment.rule]]` fits. All but `k-anonymous` measure the
    /// attributes on records of `plan.prime` or of the source file; `throng check --explain` says what each has come to and why.
    #[schemars(example = Preset::Coverage)]
    pub preset: Preset,
    /// Own rules, before those of the preset; of several that fit an attribute the first counts. Attributes that fit none are
    /// generalized. What is sensitive or insensitive is not treated by rules.
    #[schemars(example = [TreatmentRule { attributes: vec!["steps".into()], treat: Treat::Perturb, ..TreatmentRule::default() }])]
    pub rule: Vec<TreatmentRule>,
}

impl Treatment {
    /// All rules in the order in which they are tried: own ones, then the preset's.
    pub fn rules(&self) -> Vec<TreatmentRule> {
        self.rule.iter().cloned().chain(self.preset.rules()).collect()
    }

    /// Whether what leaves may have values that no record has: means.
    pub fn makes_values(&self) -> bool {
        self.rules().iter().any(|rule| rule.treat == Treat::Aggregate)
    }

    /// The first key by which what leaves may be untrue.
    pub fn untruthful_key(&self) -> &'static str {
        if self.rule.iter().any(|rule| rule.treat.is_untruthful()) { "treatment.rule" } else { "treatment.preset" }
    }

    /// Whether what leaves may be untrue of those it is said of; of a preset whose rules are still to be measured, whether it can come
    /// to that.
    pub fn may_be_untruthful(&self) -> bool {
        self.rules().iter().any(|rule| rule.treat.is_untruthful())
    }
}
