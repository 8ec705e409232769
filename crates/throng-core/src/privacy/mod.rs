//! Privacy models as predicates on equivalence classes (docs/internals/methods.md §8), in any combination.
//!
//! For a class that violates a model, [`ModelJudge::lost_records`] gives the records lost **however the class is split**.
//! Specialization only splits classes, so the sum over a policy bounds the suppression of every specialization from
//! below. The bound never falls under specialization. Pruning by it is therefore sound for non-monotone models. It
//! generalizes \[FL2] §2.7, which uses only the implied minimal class size. Each model contains its proof.
//!
//! Counts are compared as integers; only entropy needs logarithms.

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
