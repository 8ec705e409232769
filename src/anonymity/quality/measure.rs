//! The measures by name. Ranges are of the shown value; n records, m attributes, s of the records suppressed.
//!
//! - `loss`: Iyengar's Loss [IYE]: the share of its domain that a cell covers beyond one value, mean over all cells; a
//!   suppressed cell counts 1. [0, 1].
//! - `loss_geometric`: The same by attribute, then the geometric mean of 1 + loss, less 1. [0, 1].
//! - `precision`: Sweeney's precision [SWE]: 1 − mean level / (levels − 1); a suppressed cell is at the top. [0, 1],
//!   higher is better.
//! - `discernibility`: Bayardo's discernibility [BAY]: Σ|E|² over the kept classes + s·n. [n, n²].
//! - `aecs`: Average class size: n / classes, all suppressed records together one class ([FL2] Fig. 5). [1, n].
//! - `nue`: Non-uniform entropy in bits: −Σ log₂(n(value) / n(cell)) over all cells, and −Σ log₂(s(cell) / s) over the
//!   suppressed ones. [0, ∞).
//! - `nue_monotonic`: The same without the second sum: what suppression costs does not count. [0, ∞).
//! - `nue_normalized`: Non-uniform entropy of each attribute over that of losing it altogether, summed. [0, 2m].
//! - `kl_divergence`: Kullback–Leibler divergence in bits of the table's tuples from the release, whose classes (the suppressed
//!   records are one) spread evenly over the tuples of occurring values that they cover. [0, ∞).

pub use crate::config::Measure;

impl Measure {
    /// Whether a higher value is a better one.
    pub fn is_better_higher(self) -> bool {
        self == Self::Precision
    }

    /// Whether the bound from generalization alone is known from the levels of a policy, without grouping: measures of
    /// cells. Those of classes must count them first.
    pub fn is_of_cells(self) -> bool {
        !matches!(self, Self::Discernibility | Self::Aecs | Self::KlDivergence)
    }

    /// The value that is shown for a cost.
    pub fn shown(self, cost: f64, attributes: usize) -> f64 {
        match self {
            Self::Precision => 1.0 - cost,
            // The search compares the product; the root is taken once.
            Self::LossGeometric => cost.powf(1.0 / attributes.max(1) as f64) - 1.0,
            _ => cost,
        }
    }
}
