//! Quality measures of a release (docs/methods.md §9).
//!
//! Inside the search every measure is a *cost*: lower is better. A cost is bounded from below by what generalization
//! alone costs, and that bound never falls from a policy to its generalizations ([PRU] "Insufficient data quality",
//! after [BAY]): the property that pruning by quality rests on. It holds here to the last bit, since the cost adds
//! to the bound only terms that are not negative.

mod measure;
mod meter;
mod rce;

pub use measure::Measure;
pub use meter::{ClassSums, Meter, Part, Suppressed, Worth};
pub use rce::{Densities, Rce};
