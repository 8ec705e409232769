//! `[plan]`, `[[group]]` and `[[keep]]`: generalizations, and attributes released together.

use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choices;
use super::quantity;

choices! {
    /// Selects the source of the attribute groups.
    #[derive(Default)]
    enum GroupSelection {
        /// The configuration, by `[[group]]`; without any, all attributes are one group.
        #[default]
        Given = "given",
        /// The planner, at the start, from `plan.prime` or from the first records of the source file. It merges groups
        /// while a merge costs less than `plan.price`.
        Price = "price",
        /// The planner, as for `price`, from the quasi-identifiers of these records: no two attributes of a group occur
        /// in one.
        Cliques = "cliques",
        /// The planner, as for `price`, from the largest sets of attributes that are no quasi-identifiers.
        Border = "border",
    }
}

choices! {
    /// Form of the values in a group's fragments, if too few subjects share the exact tuple.
    #[derive(Default)]
    enum RecodingMode {
        /// Shows the labels of one level of each hierarchy: the finest combination of levels at which enough subjects
        /// share the tuple.
        #[default]
        Levels = "levels",
        /// Shows the extent of a class of enough subjects: the range of its numbers, with bounds at the finest
        /// intervals of the hierarchy ("30-44"), and the finest common label of other values. Keeps more detail, but
        /// the bounds of a range reveal that two records reach them. Only for a single group, without `plan.shared`,
        /// `privacy.max_hold_batches` and treatments by rules. Either all or none of its attributes change within a
        /// subject.
        Ranges = "ranges",
    }
}

/// Controls the planner's search for generalizations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PlanConfig {
    /// Selects the source of the attribute groups. Except for `given`, the planner chooses them at the start, from
    /// `plan.prime` or the source file; the same records give the same groups. A state can be continued only with its
    /// groups; a start with others prints the existing ones.
    #[schemars(example = &"price")]
    pub groups: GroupSelection,
    /// Limits the loss per bit of mutual information between attributes when the planner chooses the groups. Unit: lost
    /// cells of a record per bit, above 0. A higher price gives wider groups: more relations, and more loss per cell.
    /// With `cliques` and `border` it limits only the cost of a `[[keep]]`.
    #[schemars(example = 0.1, extend("exclusiveMinimum" = 0))]
    pub price: f64,
    /// Adds these attributes to every group of changing attributes, each at one hierarchy level that the planner
    /// chooses; for example a generalized hour. At most 2, of the role `time` or `quasi` with `changes = "always"`.
    /// Requires `plan.groups` of `given` (name them in each `[[group]]`) or `price`. Within each shown value a batch
    /// has k distinct subjects and no fragments that can be joined by counting. Not with treatments that alter numbers
    /// or make compartments.
    #[schemars(example = ["timestamp"])]
    pub shared: Vec<String>,
    /// Sets the number of recent records that the planner learns from. It measures candidates on 20,000 of them.
    #[schemars(example = 200_000, extend("minimum" = 1, "maximum" = 67_108_864))]
    pub window_records: usize,
    /// Sets the interval between searches for a new plan. A search also starts when values of an attribute drift from
    /// those of the active plan.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"5m")]
    pub interval: Duration,
    /// Makes the first plan from this file of records, in the source's format, before the stream begins. Its records
    /// are never released and count for no class. The plan stays until the stream has delivered as many records as were
    /// sampled, or drifts from it. With a plan in the state the file is read only if the planner chooses the groups.
    #[schemars(example = &"data/prime.ndjson")]
    pub prime: Option<PathBuf>,
}

impl Default for PlanConfig {
    fn default() -> Self {
        Self {
            groups: GroupSelection::Given,
            price: 0.1,
            shared: Vec::new(),
            window_records: 200_000,
            interval: Duration::from_mins(5),
            prime: None,
        }
    }
}

const SAMPLE_RECORDS: usize = 20_000;

impl PlanConfig {
    /// Returns the number of window records on which candidates are measured.
    pub fn sample_records(&self) -> usize {
        SAMPLE_RECORDS.min(self.window_records)
    }
}

/// Defines a group of attributes that are released as one fragment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["name", "attributes"]))]
pub struct GroupConfig {
    /// Names the group in metrics and file names: lower-case letters, digits, `_` and `-`. Required.
    #[schemars(example = &"person", extend("pattern" = "^[a-z0-9_-]{1,64}$"))]
    pub name: String,
    /// Lists attributes of the record schema, disjoint between groups except those of `plan.shared`. Required.
    #[schemars(example = ["age", "zip"], extend("minItems" = 1))]
    pub attributes: Vec<String>,
    /// Selects the form of values in the fragments of the group.
    #[schemars(example = RecodingMode::Ranges)]
    pub treatment: RecodingMode,
}

/// Asks the planner to keep attributes together for the consumers of the release. Applies if the planner chooses the
/// groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["attributes"]))]
pub struct KeepConfig {
    /// Lists attributes of the record schema, two or more. Required.
    #[schemars(example = ["timestamp", "heart_rate", "activity"], extend("minItems" = 2, "uniqueItems" = true))]
    pub attributes: Vec<String>,
    /// Adds this many bits to the value of each pair of these attributes, above 0. With `plan.price = 0.1`, 3 bits may
    /// cost 0.3 cells of a record per pair.
    #[schemars(example = 3.0, extend("exclusiveMinimum" = 0))]
    pub weight: f64,
}

impl Default for KeepConfig {
    fn default() -> Self {
        Self { attributes: Vec::new(), weight: 1.0 }
    }
}
