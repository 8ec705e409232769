//! `[privacy]`: what a release promises.

use super::quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// What a release promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Privacy {
    /// The smallest crowd: every released fragment shares its quasi values with at least k distinct subjects. At
    /// least 2.
    #[schemars(example = 5, extend("minimum" = 1))]
    pub k: usize,
    /// How long tenure and budgets of a subject are remembered. Above 0.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"24h")]
    pub release_window: Duration,
    /// People whom one adversary can invent or join hands with. Every count of subjects asks for as many more: the crowds of
    /// classes and of sensitive values, the smallest batch, the counting guard between groups, and the subjects that the
    /// values of a diverse class belong to. What the adversary adds then completes no crowd of `k`.
    #[schemars(example = 4)]
    pub colluders: usize,
    /// Classes of a group that a subject supports inside `release_window` at most; 0: any number. A subject beyond it still
    /// leaves, where others give it a crowd, and supports nobody: so invented people complete few crowds. What is
    /// remembered counts toward `state.max_budget_entries`; where it is full, nobody supports anything new.
    #[schemars(example = 0)]
    pub max_classes_per_subject: usize,
    /// Batches that a subject must have been in before one in which it supports others; 0: none. A subject that is not seen for
    /// `release_window` begins anew. Nothing leaves of a stream's first batches then.
    #[schemars(example = 0)]
    pub min_tenure: u32,
    /// How many batches a record may wait for a better crowd, where releasing it now would cost more than a twentieth of its cells; 0 holds none.
    #[schemars(example = 5)]
    pub max_hold_batches: u32,
    /// Lines of one subject that a batch releases at most, in each group of attributes that change from record to record;
    /// which of a subject's records that are does not depend on their order or values. The others are thinned: they do
    /// not leave in that group. 0: no limit. Needs a subject in the record schema, else every record is its own subject.
    #[schemars(example = 1)]
    pub max_lines_per_subject: usize,
    /// Window of a static group, a group of attributes that do not change within a person (see `changes` in the record
    /// schema): at most one line of a subject leaves per group and window. Each window adds one observation for an attacker
    /// who knows the senders, and the observations add up: the longer the window, the slower. Above 0. Needs a subject in
    /// the record schema.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"90days")]
    pub static_window: Duration,
    /// Longest delay of a line of a static group; the delay is drawn at random between nothing and this. By default
    /// `static_window`, so that the time of a line tells nothing but the presence of its subject in the window. A shorter
    /// delay releases static lines earlier and tells more about the sender. `0s`: static groups leave with
    /// every record, as all others do. Needs a subject in the record schema.
    #[serde(with = "quantity::optional_duration")]
    #[schemars(with = "Option<quantity::DurationText>", example = Some("24h"))]
    pub max_delay: Option<Duration>,
    /// Models that every class must satisfy beside k. In a stream they hold for the sensitive values that a class shows
    /// in its batch, a subject counting once for each value; where they would not, the values are suppressed. A stream refuses
    /// δ-presence and k-map, and a k-anonymity that asks for more than `k`, which it implies up to there.
    #[schemars(example = Vec::<PrivacyModel>::new())]
    pub model: Vec<PrivacyModel>,
}

impl Privacy {
    /// Distinct subjects that everything counts to: `k`, and the `colluders` beside them.
    pub fn crowd(&self) -> usize {
        self.k + self.colluders
    }
}

impl Default for Privacy {
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

impl Privacy {
    /// The longest delay of a line of a static group: `max_delay`, by default the whole `static_window`.
    pub fn longest_delay(&self) -> Duration {
        self.max_delay.unwrap_or(self.static_window)
    }
}

/// A privacy model.
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

/// What counts as diverse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Diversity {
    /// ℓ values.
    #[default]
    Distinct,
    /// Entropy ln ℓ.
    Entropy,
    /// Recursive (c, ℓ).
    Recursive,
}

/// Which values are near each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GroundDistance {
    /// All equally far.
    #[default]
    Equal,
    /// In a row: numbers by size, texts by their spelling.
    Ordered,
    /// Along the attribute's hierarchy.
    Hierarchical,
}

/// The keys that each kind of model needs, as a JSON Schema says it; as [`PrivacyModel::missing_keys`] does.
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
        // The first kind is that of a model that says none.
        let told = if kind == ModelKind::default() { json!([]) } else { json!(["kind"]) };
        json!({"if": {"required": told, "properties": {"kind": {"const": kind}}}, "then": {"required": needed}})
    };
    let recursive = json!({
        "if": {
            "required": ["kind", "diversity"],
            "properties": {"kind": {"const": ModelKind::LDiversity}, "diversity": {"const": Diversity::Recursive}},
        },
        "then": {"required": ["c"]},
    });
    kinds.into_iter().map(rule).chain([recursive]).collect()
}

/// A model that every class of a release must satisfy beside k.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("allOf" = needed_keys()))]
pub struct PrivacyModel {
    /// `k_anonymity`, `k_map`, `l_diversity`, `t_closeness` or `delta_presence`.
    #[schemars(example = ModelKind::LDiversity)]
    pub kind: ModelKind,
    /// The sensitive attribute of ℓ-diversity and t-closeness.
    #[schemars(example = &"occupation")]
    pub attribute: Option<String>,
    /// Of `k_anonymity` and `k_map`; at least 1.
    #[schemars(example = 5, extend("minimum" = 1))]
    pub k: Option<u64>,
    /// Of `l_diversity`; at least 1, whole but for entropy.
    #[schemars(example = 3.0, extend("minimum" = 1))]
    pub l: Option<f64>,
    /// What ℓ counts.
    #[schemars(example = Diversity::Recursive)]
    pub diversity: Diversity,
    /// Of recursive diversity; above 0, below 1000.
    #[schemars(example = 4.0, extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1000))]
    pub c: Option<f64>,
    /// Of `t_closeness`; 0 to 1.
    #[schemars(example = 0.2, extend("minimum" = 0, "maximum" = 1))]
    pub t: Option<f64>,
    /// The ground distance of `t_closeness`.
    #[schemars(example = GroundDistance::Hierarchical)]
    pub ground: GroundDistance,
    /// Of `delta_presence`; 0 to 1.
    #[schemars(example = 0.05, extend("minimum" = 0, "maximum" = 1))]
    pub min: Option<f64>,
    /// Of `delta_presence`; `min` to 1.
    #[schemars(example = 0.15, extend("minimum" = 0, "maximum" = 1))]
    pub max: Option<f64>,
}

impl PrivacyModel {
    /// Keys that a model of this kind needs and that are not set.
    pub fn missing_keys(&self) -> Vec<&'static str> {
        let attribute = ("attribute", self.attribute.is_some());
        let needed: &[(&'static str, bool)] = match (self.kind, self.diversity) {
            (ModelKind::KAnonymity | ModelKind::KMap, _) => &[("k", self.k.is_some())],
            (ModelKind::LDiversity, Diversity::Recursive) => {
                &[attribute, ("l", self.l.is_some()), ("c", self.c.is_some())]
            }
            (ModelKind::LDiversity, _) => &[attribute, ("l", self.l.is_some())],
            (ModelKind::TCloseness, _) => &[attribute, ("t", self.t.is_some())],
            (ModelKind::DeltaPresence, _) => &[("min", self.min.is_some()), ("max", self.max.is_some())],
        };
        needed.iter().filter(|(_, given)| !given).map(|(key, _)| *key).collect()
    }
}
