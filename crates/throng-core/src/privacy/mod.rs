//! Privacy models as predicates on classes (docs/internals/methods.md §8).
//!
//! [`ModelJudge::lost_records`] is the least loss **however a violating class is split**: a lower bound for every
//! specialization. Pruning by it is sound also for non-monotone models. Generalizes \[FL2] §2.7.

mod closeness;
mod decimal_ratio;
mod diversity;
mod model_judge;
pub mod protection;
pub mod representatives;

pub use closeness::{GroundDistance, GroundMetric};
pub use decimal_ratio::DecimalRatio;
pub use model_judge::{
    ClassModelError, ClassPrivacyModel, JudgeScratch, JudgedClass, ModelJudge, SensitiveDomain, ValueRequirement,
};
