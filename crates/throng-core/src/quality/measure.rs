//! Quality measures by name (docs/internals/methods.md §9; \[IYE], \[SWE], \[BAY], \[FL2] Fig. 5).

use serde::{Deserialize, Serialize};

/// Quality measure of a policy.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum QualityMeasure {
    /// Iyengar's Loss, arithmetic mean over the attributes; suppressed cells count 1.
    #[default]
    Loss,
    /// Loss, geometric mean over the attributes.
    LossGeometric,
    /// Sweeney's precision: 1 − mean level / height.
    Precision,
    /// Sum of squared class sizes, plus the number of all records per suppressed record.
    Discernibility,
    /// Average class size; the suppressed records count as one class.
    Aecs,
    /// Non-uniform entropy in bits.
    Nue,
    /// Non-uniform entropy without the cost of suppression.
    NueMonotonic,
    /// Non-uniform entropy of each attribute, relative to its loss under complete suppression.
    NueNormalized,
    /// Kullback–Leibler divergence from the original in bits.
    KlDivergence,
}

impl QualityMeasure {
    /// Returns the configured name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl QualityMeasure {
    /// Returns true if higher is better.
    pub fn is_better_higher(self) -> bool {
        self == Self::Precision
    }

    /// Returns true if levels alone give the bound.
    pub fn is_of_cells(self) -> bool {
        !matches!(self, Self::Discernibility | Self::Aecs | Self::KlDivergence)
    }

    /// Displayed value of a cost.
    pub fn shown(self, cost: f64, attributes: usize) -> f64 {
        match self {
            Self::Precision => 1.0 - cost,
            // The search compares the product.
            Self::LossGeometric => cost.powf(1.0 / attributes.max(1) as f64) - 1.0,
            _ => cost,
        }
    }
}
