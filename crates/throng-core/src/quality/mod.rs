//! Quality measures of a release (docs/internals/methods.md §9).
//!
//! Every measure is minimized as a *cost*. The cost of generalization alone is a monotone lower bound, so pruning is
//! sound (\[PRU] "Insufficient data quality", after \[BAY]).

mod cell_densities;
mod measure;
mod meter;

pub use cell_densities::{CellDensities, ReconstructionError};
pub use measure::QualityMeasure;
pub use meter::{ClassSums, LevelPart, QualityMeter, QualityValues, SuppressedCounts};
