//! `[[privacy.model]]`: what classes must satisfy beside k.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

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
    #[must_use]
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
