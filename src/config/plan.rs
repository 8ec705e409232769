//! `[plan]`, `[[group]]` and `[[keep]]`: how generalizations are looked for, and what leaves together.

use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choices;
use super::quantity;

choices! {
    /// Who says which attributes leave together.
    #[derive(Default)]
    enum Grouping {
        /// The configuration, by `[[group]]`; without any, all attributes leave together.
        #[default]
        Given = "given",
        /// The planner, at the start of a run, from `plan.prime` or from the first records of the source file: groups grow while
        /// a merger costs less than `plan.price`.
        Price = "price",
        /// The same, from the quasi-identifiers of these records: attributes that meet in none of them, pair by pair.
        Cliques = "cliques",
        /// The same, from the largest sets of attributes that are no quasi-identifiers.
        Border = "border",
    }
}

choices! {
    /// What the fragments of a group show where an exact tuple has no crowd.
    #[derive(Default)]
    enum Recoding {
        /// The labels of one level of each hierarchy: a record takes the finest combination of levels at which enough people share its
        /// tuple.
        #[default]
        Levels = "levels",
        /// The extent of a class: the batch is divided into classes of enough people, and each shows the range of its own numbers, in
        /// bounds of the finest intervals of the hierarchy ("30-44"), and the finest common label of its other values. A tuple of
        /// several numbers keeps more; the bounds of a range tell that two records reach them. For one group alone, without `plan.shared`,
        /// `privacy.max_hold_batches` and treatments by rules, of attributes that all change within a person or none of which does.
        Ranges = "ranges",
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
    /// each value that is shown the guarantees of a batch hold: k people, and no fragments that counting joins. Not
    /// with treatments that alter numbers or make compartments.
    #[schemars(example = ["timestamp"])]
    pub shared: Vec<String>,
    /// Recent records that the planner learns from. Candidates are measured on 20,000 of them.
    #[schemars(example = 200_000, extend("minimum" = 1, "maximum" = 67_108_864))]
    pub window_records: usize,
    /// How often a new plan is sought. One is sought as well once the values of some attribute are distributed differently from those
    /// that the plan in force was made for.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"5m")]
    pub interval: Duration,
    /// A file of records, in the source's format, from which the first plan is made before the stream begins. Its records
    /// are never released and support nobody; the plan is in force until the stream has shown as many records as were
    /// sampled of the file, or drifts from it. A state that has a plan already does not read it, but where the planner chooses
    /// the groups it is read at every start.
    #[schemars(example = &"data/prime.ndjson")]
    pub prime: Option<PathBuf>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            groups: Grouping::Given,
            price: 0.1,
            shared: Vec::new(),
            window_records: 200_000,
            interval: Duration::from_mins(5),
            prime: None,
        }
    }
}

/// Records of the window on which candidates are measured, at most.
const SAMPLE_RECORDS: usize = 20_000;

impl Plan {
    /// Records of the window on which candidates are measured.
    pub fn sample_records(&self) -> usize {
        SAMPLE_RECORDS.min(self.window_records)
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
    /// What the fragments of the group show of numbers.
    #[schemars(example = Recoding::Ranges)]
    pub treatment: Recoding,
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
