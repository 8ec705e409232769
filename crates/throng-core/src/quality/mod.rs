//! Quality measures of a release (docs/internals/methods.md §9).
//!
//! In the search, every measure is a *cost*: lower is better. The cost of generalization alone is a lower bound. It
//! never falls from a policy to its generalizations (\[PRU] "Insufficient data quality", after \[BAY]), so pruning by
//! it is sound. This holds exactly, because the cost adds only non-negative terms to the bound.

mod cell_densities;
mod measure;
mod meter;

pub use cell_densities::{CellDensities, ReconstructionError};
pub use measure::QualityMeasure;
pub use meter::{ClassSums, LevelPart, QualityMeter, QualityValues, SuppressedCounts};
