//! `[anonymize]`: one data set at once (`throng anonymize`).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ceiling, quantity};

/// What the best policy has the best of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Iyengar's Loss, arithmetic mean over the attributes; suppressed cells count 1.
    #[default]
    Loss,
    /// Loss, geometric mean over the attributes.
    LossGeometric,
    /// Sweeney's precision: 1 − mean level / height.
    Precision,
    /// Squared class sizes, and the size of the data for each suppressed record.
    Discernibility,
    /// Average size of the classes; the suppressed records are one.
    Aecs,
    /// Non-uniform entropy in bits.
    Nue,
    /// Non-uniform entropy without what suppression costs.
    NueMonotonic,
    /// Non-uniform entropy of each attribute as a share of losing it.
    NueNormalized,
    /// Kullback–Leibler divergence from the original in bits.
    KlDivergence,
}

impl Measure {
    /// The name in configurations and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::LossGeometric => "loss_geometric",
            Self::Precision => "precision",
            Self::Discernibility => "discernibility",
            Self::Aecs => "aecs",
            Self::Nue => "nue",
            Self::NueMonotonic => "nue_monotonic",
            Self::NueNormalized => "nue_normalized",
            Self::KlDivergence => "kl_divergence",
        }
    }
}

/// The way through the lattice. All find the same optimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Best first, then branch and bound: for lattices of any size, and under a time limit.
    #[default]
    Bfs,
    /// Greedy chains with binary search; lattices up to 4 million policies, like all below.
    Flash,
    /// Flash in two phases.
    Flash2p,
    /// Every policy, nothing left out.
    Dfs,
    /// Divide and conquer.
    Ola,
    /// Subsets of the attributes, small ones first.
    Incognito,
}

impl Strategy {
    /// The name in configurations and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bfs => "bfs",
            Self::Flash => "flash",
            Self::Flash2p => "flash2p",
            Self::Dfs => "dfs",
            Self::Ola => "ola",
            Self::Incognito => "incognito",
        }
    }
}

/// How records may be recoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transformation {
    /// One policy for all records.
    #[default]
    FullDomain,
    /// A policy for the records that leave by it, another for those that it left, and so on. Better quality, and readers
    /// see levels mixed. Refused together with `delta_presence`.
    Local,
}

impl Transformation {
    /// The name in configurations and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FullDomain => "full_domain",
            Self::Local => "local",
        }
    }
}

/// How `throng anonymize` looks for the policy of a data set; the daemon does not read this section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Anonymize {
    /// Share of the records that may be suppressed, 0 to 1.
    #[schemars(example = 0.05, extend("minimum" = 0, "maximum" = 1))]
    pub suppression_limit: f64,
    /// What the best policy has the best of.
    #[schemars(example = Measure::Loss)]
    pub measure: Measure,
    /// The way through the lattice.
    #[schemars(example = Strategy::Bfs)]
    pub strategy: Strategy,
    /// How long the search may take, all passes of `local` and all repetitions together; what leaves then is the best that
    /// was found. None: until it is proved.
    #[serde(with = "optional_duration")]
    #[schemars(with = "Option<quantity::DurationText>", example = &"60s")]
    pub time_limit: Option<Duration>,
    /// An attribute of the schema whose value `true`, `1` or `yes` marks the records to be released; the others are
    /// the population that k-map and δ-presence count. It has the role insensitive, and does not leave. None: all are
    /// released.
    #[schemars(example = &"in_study")]
    pub released: Option<String>,
    /// How records may be recoded.
    #[schemars(example = Transformation::Local)]
    pub transformation: Transformation,
    /// Share of the records that the first pass of local recoding may leave, 0 to 1. Later passes take what they can, and
    /// what the last one leaves is suppressed: `suppression_limit` is the limit of that.
    #[schemars(example = 1.0, extend("minimum" = 0, "maximum" = 1))]
    pub pass_limit: f64,
    /// Micro-aggregation: quasi attributes of the type integer, or float with a rounding step. Classes are formed as always, then their
    /// members show the mean of their numbers instead of the interval. **Untruthful**: nobody need have the number that is shown, and a mean
    /// of k numbers tells the last to whoever knows the others. Means of fewer than k people are `*`. Refused together with
    /// `delta_presence`.
    #[schemars(example = ["age"])]
    pub microaggregation: Vec<String>,
    /// h-ceiling with counterfeits.
    pub ceiling: Ceiling,
}

impl Default for Anonymize {
    fn default() -> Self {
        Self {
            suppression_limit: 0.05,
            measure: Measure::Loss,
            strategy: Strategy::Bfs,
            time_limit: None,
            released: None,
            transformation: Transformation::FullDomain,
            pass_limit: 1.0,
            microaggregation: Vec::new(),
            ceiling: Ceiling::default(),
        }
    }
}

mod optional_duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::ref_option, reason = "the signature that serde asks for")]
    pub fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => serializer.collect_str(&humantime::format_duration(*duration)),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        let text: Option<String> = Option::deserialize(deserializer)?;
        text.map(|text| humantime::parse_duration(&text).map_err(serde::de::Error::custom)).transpose()
    }
}
