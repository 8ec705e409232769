//! `[privacy]`: the guarantees of a release.

use super::quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
pub use throng_core::privacy::GroundDistance;

/// Sets the privacy guarantees of a release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PrivacyConfig {
    /// Sets the minimum class size: every released fragment shares its quasi-identifier values with at least k distinct
    /// subjects. At least 2.
    #[schemars(example = 5, extend("minimum" = 1))]
    pub k: usize,
    /// Sets the time for which tenure and budgets of a subject are remembered. Above 0.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"24h")]
    pub release_window: Duration,
    /// Sets the number of subjects that one attacker may control, invented or colluding. It is added to every required
    /// count of subjects: of classes, sensitive values, the smallest batch, the counting guard between groups, and the
    /// values of a diverse class.
    #[schemars(example = 4)]
    pub colluders: usize,
    /// Limits the classes of a group that a subject may support inside `release_window`; 0: no limit. Beyond it a
    /// subject is released only in classes that others form. Invented subjects can thus complete only few classes. The
    /// entries count toward `state.max_budget_entries`; when that is full, no subject supports a new class.
    #[schemars(example = 0)]
    pub max_classes_per_subject: usize,
    /// Requires this many earlier batches with a subject before it counts for others; 0: none. A subject not seen for
    /// `release_window` starts again from 0. The first batches of a stream are then suppressed completely.
    #[schemars(example = 0)]
    pub min_tenure: u32,
    /// Limits the batches that a record is withheld to reach a better class. A record is withheld if its release now
    /// would cost more than a twentieth of its cells. 0: none.
    #[schemars(example = 5)]
    pub max_hold_batches: u32,
    /// Limits the lines of one subject per batch, in each group of attributes that change from record to record. The
    /// choice depends neither on order nor on values; the other records are thinned in that group. 0: no limit. Needs a
    /// subject in the record schema; otherwise every record is a separate subject.
    #[schemars(example = 1)]
    pub max_lines_per_subject: usize,
    /// Sets the window of static groups: groups of attributes that do not change within a subject (`changes` in the
    /// record schema). At most one line per subject, group and window is released. A longer window gives fewer
    /// observations to an attacker that knows the senders. Above 0. Needs a subject in the record schema.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"90days")]
    pub static_window: Duration,
    /// Limits the random delay of a line of a static group. Default: `static_window`, so that the time of a line
    /// reveals only the presence of its subject in the window. A shorter delay reveals more about the sender. `0s`:
    /// static groups are released with every record. Needs a subject in the record schema.
    #[serde(with = "quantity::optional_duration")]
    #[schemars(with = "Option<quantity::DurationText>", example = Some("24h"))]
    pub max_delay: Option<Duration>,
    /// Adds privacy models that every class must satisfy in addition to k. In a stream they apply to the sensitive
    /// values of a class in its batch, one per subject and value. Values that would violate a model are suppressed. A
    /// stream refuses δ-presence and k-map, and k-anonymity with a higher k than `k`.
    #[schemars(example = Vec::<PrivacyModel>::new())]
    pub model: Vec<PrivacyModel>,
}

impl PrivacyConfig {
    /// Returns the required number of distinct subjects: `k` plus `colluders`.
    pub fn required_subjects(&self) -> usize {
        self.k + self.colluders
    }
}

impl Default for PrivacyConfig {
    fn default() -> Self {
        Self {
            k: 5,
            release_window: Duration::from_hours(24),
            colluders: 0,
            max_classes_per_subject: 0,
            min_tenure: 0,
            max_hold_batches: 0,
            max_lines_per_subject: 1,
            static_window: Duration::from_hours(30 * 24),
            max_delay: None,
            model: Vec::new(),
        }
    }
}

impl PrivacyConfig {
    /// Returns the longest delay of a line of a static group.
    pub fn longest_delay(&self) -> Duration {
        self.max_delay.unwrap_or(self.static_window)
    }
}

/// Privacy model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// k-anonymity.
    #[default]
    KAnonymity,
    /// k members of the population.
    KMap,
    /// ℓ-diversity.
    LDiversity,
    /// t-closeness.
    TCloseness,
    /// δ-presence.
    DeltaPresence,
}

/// Definition of diversity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiversityKind {
    /// ℓ values.
    #[default]
    Distinct,
    /// Entropy ln ℓ.
    Entropy,
    /// Recursive (c, ℓ).
    Recursive,
}

/// Returns JSON Schema rules from [`PrivacyModel::missing_keys`].
fn needed_keys() -> serde_json::Value {
    let kinds = [
        ModelKind::KAnonymity,
        ModelKind::KMap,
        ModelKind::LDiversity,
        ModelKind::TCloseness,
        ModelKind::DeltaPresence,
    ];
    let rule = |kind: ModelKind| {
        let needed = PrivacyModel { kind, ..PrivacyModel::default() }.missing_keys();
        // The first kind is the default.
        let told = if kind == ModelKind::default() { json!([]) } else { json!(["kind"]) };
        json!({"if": {"required": told, "properties": {"kind": {"const": kind}}}, "then": {"required": needed}})
    };
    let recursive = json!({
        "if": {
            "required": ["kind", "diversity"],
            "properties": {"kind": {"const": ModelKind::LDiversity}, "diversity": {"const": DiversityKind::Recursive}},
        },
        "then": {"required": ["c"]},
    });
    kinds.into_iter().map(rule).chain([recursive]).collect()
}

/// Adds a model that every class must satisfy in addition to k.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("allOf" = needed_keys()))]
pub struct PrivacyModel {
    /// Selects `k_anonymity`, `k_map`, `l_diversity`, `t_closeness` or `delta_presence`.
    #[schemars(example = ModelKind::LDiversity)]
    pub kind: ModelKind,
    /// Selects the sensitive attribute of ℓ-diversity and t-closeness.
    #[schemars(example = &"occupation")]
    pub attribute: Option<String>,
    /// Sets k of `k_anonymity` and `k_map`; at least 1.
    #[schemars(example = 5, extend("minimum" = 1))]
    pub k: Option<u64>,
    /// Sets ℓ of `l_diversity`; at least 1, a whole number except for entropy.
    #[schemars(example = 3.0, extend("minimum" = 1))]
    pub l: Option<f64>,
    /// Selects the definition of diversity that ℓ measures.
    #[schemars(example = DiversityKind::Recursive)]
    pub diversity: DiversityKind,
    /// Sets c of recursive diversity; above 0, below 1000.
    #[schemars(example = 4.0, extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1000))]
    pub c: Option<f64>,
    /// Sets t of `t_closeness`; 0 to 1.
    #[schemars(example = 0.2, extend("minimum" = 0, "maximum" = 1))]
    pub t: Option<f64>,
    /// Selects the ground distance of `t_closeness`.
    #[schemars(example = GroundDistance::Hierarchical)]
    pub ground: GroundDistance,
    /// Sets the lower bound of `delta_presence`; 0 to 1.
    #[schemars(example = 0.05, extend("minimum" = 0, "maximum" = 1))]
    pub min: Option<f64>,
    /// Sets the upper bound of `delta_presence`; `min` to 1.
    #[schemars(example = 0.15, extend("minimum" = 0, "maximum" = 1))]
    pub max: Option<f64>,
}

impl PrivacyModel {
    /// Returns the unset keys that this kind of model needs.
    pub fn missing_keys(&self) -> Vec<&'static str> {
        let attribute = ("attribute", self.attribute.is_some());
        let needed: &[(&'static str, bool)] = match (self.kind, self.diversity) {
            (ModelKind::KAnonymity | ModelKind::KMap, _) => &[("k", self.k.is_some())],
            (ModelKind::LDiversity, DiversityKind::Recursive) => {
                &[attribute, ("l", self.l.is_some()), ("c", self.c.is_some())]
            }
            (ModelKind::LDiversity, _) => &[attribute, ("l", self.l.is_some())],
            (ModelKind::TCloseness, _) => &[attribute, ("t", self.t.is_some())],
            (ModelKind::DeltaPresence, _) => &[("min", self.min.is_some()), ("max", self.max.is_some())],
        };
        needed.iter().filter(|(_, given)| !given).map(|(key, _)| *key).collect()
    }
}
