//! Quality measures by name. Ranges are of the displayed value for n records, m attributes and s suppressed records.
//!
//! - `loss`: Iyengar's Loss \[IYE]: share of its domain that a cell covers beyond one value, mean over all cells; a
//!   suppressed cell counts 1. [0, 1].
//! - `loss_geometric`: loss per attribute, then the geometric mean of 1 + loss, minus 1. [0, 1].
//! - `precision`: Sweeney's precision \[SWE]: 1 − mean level / (levels − 1); a suppressed cell is at the top. [0, 1],
//!   higher is better.
//! - `discernibility`: Bayardo's discernibility \[BAY]: Σ|E|² over the kept classes + s·n. [n, n²].
//! - `aecs`: average class size: n / classes; all suppressed records form one class (\[FL2] Fig. 5). [1, n].
//! - `nue`: non-uniform entropy in bits: −Σ log₂(n(value) / n(cell)) over all cells, and −Σ log₂(s(cell) / s) over
//!   the suppressed ones. [0, ∞).
//! - `nue_monotonic`: `nue` without the second sum, so that suppression costs nothing. [0, ∞).
//! - `nue_normalized`: non-uniform entropy of each attribute divided by that of its full loss, summed. [0, 2m].
//! - `kl_divergence`: Kullback–Leibler divergence in bits of the table's tuples from the release. Each class
//!   (suppressed records form one) is uniform over the occurring values that it covers. [0, ∞).

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
    /// Returns the spelling in configurations and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl QualityMeasure {
    /// Returns true if a higher value is better.
    pub fn is_better_higher(self) -> bool {
        self == Self::Precision
    }

    /// Returns true if levels alone give the bound; other measures must count classes.
    pub fn is_of_cells(self) -> bool {
        !matches!(self, Self::Discernibility | Self::Aecs | Self::KlDivergence)
    }

    /// Displayed value of a cost.
    pub fn shown(self, cost: f64, attributes: usize) -> f64 {
        match self {
            Self::Precision => 1.0 - cost,
            // The search compares the product; the root is taken only here.
            Self::LossGeometric => cost.powf(1.0 / attributes.max(1) as f64) - 1.0,
            _ => cost,
        }
    }
}
