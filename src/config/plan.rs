//! `[plan]`, `[[group]]` and `[[keep]]`: how generalizations are looked for, and what leaves together.

use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity;

/// Who says which attributes leave together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grouping {
    /// The configuration, by `[[group]]`; without any, all attributes leave together.
    #[default]
    Given,
    /// The planner, at the start of a run, from `plan.prime` or from the first records of the source file: groups grow while
    /// a merger costs less than `plan.price`.
    Price,
    /// The same, from the quasi-identifiers of these records: attributes that meet in none of them, pair by pair.
    Cliques,
    /// The same, from the largest sets of attributes that are no quasi-identifiers.
    Border,
}

impl Grouping {
    /// As the configuration spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Price => "price",
            Self::Cliques => "cliques",
            Self::Border => "border",
        }
    }
}

/// How the planner looks for generalizations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// Who says which attributes leave together: `given` by `[[group]]`, or the planner at the start, from the records of
    /// `plan.prime` or of the source file: `price` grows groups while a merger is worth its loss, `cliques` never joins two
    /// attributes that meet in a quasi-identifier, `border` joins what is no quasi-identifier together. The same records give the
    /// same groups; a state goes on only with the groups it has, and a start with others prints them.
    #[schemars(example = &"price")]
    pub groups: Grouping,
    /// The most loss that a bit of what attributes say of each other may cost where the planner chooses the groups: lost cells of a
    /// record a bit, above 0. A higher price makes wider groups, which keep more relations and lose more of each cell. Of
    /// `cliques` and `border` it says only what a `[[keep]]` may cost.
    #[schemars(example = 0.1, extend("exclusiveMinimum" = 0))]
    pub price: f64,
    /// Attributes that stand in every group of changing attributes, each at one level of its hierarchy that the planner chooses: a
    /// generalized hour beside each signal. At most 2, each of the role `time` or `quasi` with `changes = "always"` in the record schema;
    /// with `plan.groups` of `given` or `price`. Where groups are given, name them in each `[[group]]` in which they shall stand. Within
    /// each value that is shown the guarantees of a batch hold: k people, and no fragments that counting joins. Needs
    /// `privacy.batch_crowd` of k; not with treatments that alter numbers or make compartments.
    #[schemars(example = ["timestamp"])]
    pub shared: Vec<String>,
    /// Recent records that the planner learns from.
    #[schemars(example = 200_000, extend("minimum" = 1, "maximum" = 2_147_483_648_u32))]
    pub window_records: usize,
    /// Pairs of values seen together that the model of the window counts, at most: 4 to 32 bytes each. At the limit the pairs
    /// of attributes with the most of them are no longer counted, and `throng_model_left_out_pairs` says how many.
    #[schemars(example = 2_000_000)]
    pub max_edges: u64,
    /// Records after which a record weighs half as much in the model as a new one, at least an eighth of `window_records`
    /// and `batch.max_records` together. Without it all records of the window weigh the same.
    #[schemars(example = 100_000, extend("minimum" = 1))]
    pub half_life_records: Option<u64>,
    /// Records of the window on which candidates are measured. At most `window_records`.
    #[schemars(example = 20_000, extend("minimum" = 1))]
    pub sample_records: usize,
    /// How often a new plan is sought.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"5m")]
    pub interval: Duration,
    /// A new plan is sought as well once the values of some attribute are distributed so differently from those that the
    /// plan in force was made for: Jensen–Shannon divergence in bits, above 0; 1 turns the test off.
    #[schemars(example = 0.1, extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub drift: f64,
    /// Once the window is full, a plan is sought beside the release and comes into force this many batches after the one
    /// that it was asked for; the release waits for a late one no longer than `search_budget`. 0: between two batches.
    #[schemars(example = 4, extend("maximum" = 10_000))]
    pub handover_batches: u64,
    /// Generalization nodes of a group's ladder where its lattice is larger than `complete_lattice`.
    #[schemars(example = 400, extend("minimum" = 2))]
    pub ladder_nodes: usize,
    /// A lattice of at most this many nodes becomes the ladder as it is.
    #[schemars(example = 5_000, extend("minimum" = 1))]
    pub complete_lattice: usize,
    /// How long a search beside the release may take. A plan that is not there by then is given up, and the one before stays
    /// in force; what is proved of quasi-identifiers by then is reported, and the rest counts as unsafe.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"10s")]
    pub search_budget: Duration,
    /// A file of records, in the source's format, from which the first plan is made before the stream begins. Its records
    /// are never released and support nobody; the plan is in force until the stream has shown as many records as were
    /// sampled of the file, or drifts from it. A state that has a plan already does not read it, but where the planner chooses
    /// the groups it is read at every start.
    #[schemars(example = &"data/prime.ndjson")]
    pub prime: Option<PathBuf>,
    /// An attribute whose distinct values are at least this share of the window's records is a standalone identifier
    /// and is removed; above 0, at most 1.
    #[schemars(example = 0.8, extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub identifier_cardinality: f64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            groups: Grouping::Given,
            price: 0.1,
            shared: Vec::new(),
            window_records: 200_000,
            max_edges: 2_000_000,
            half_life_records: None,
            sample_records: 20_000,
            interval: Duration::from_mins(5),
            drift: 0.1,
            handover_batches: 4,
            ladder_nodes: 400,
            complete_lattice: 5_000,
            search_budget: Duration::from_secs(10),
            prime: None,
            identifier_cardinality: 0.8,
        }
    }
}

/// A group of attributes that leave together, as one fragment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["name", "attributes"]))]
pub struct Group {
    /// Its name, in metrics and file names: lower-case letters, digits, `_` and `-`. Required.
    #[schemars(example = &"person", extend("pattern" = "^[a-z0-9_-]{1,64}$"))]
    pub name: String,
    /// Attributes of the record schema; no attribute is in two groups, but for those of `plan.shared`. Required.
    #[schemars(example = ["age", "zip"], extend("minItems" = 1))]
    pub attributes: Vec<String>,
}

/// Attributes that a consumer of the release needs together, where the planner chooses the groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["attributes"]))]
pub struct Keep {
    /// Attributes of the record schema, two or more. Required.
    #[schemars(example = ["timestamp", "heart_rate", "activity"], extend("minItems" = 2, "uniqueItems" = true))]
    pub attributes: Vec<String>,
    /// Bits that each pair of them is worth more, above 0: with `plan.price = 0.1` a wish of weight 3 may cost 0.3 cells of a record
    /// for each pair.
    #[schemars(example = 3.0, extend("exclusiveMinimum" = 0))]
    pub weight: f64,
}

impl Default for Keep {
    fn default() -> Self {
        Self { attributes: Vec::new(), weight: 1.0 }
    }
}
