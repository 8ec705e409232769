//! Privacy models as predicates on equivalence classes (docs/methods.md §8), in any combination.
//!
//! A model says two things of a class: whether it *holds*, and if it does not, how many of the class's records are
//! lost **however the class is split** ([`Judge::failing`]). Specialisation only splits classes, so the sum of the
//! second over the classes of a policy bounds the suppression of every specialisation from below. That bound never
//! falls under specialisation, which makes it a pruning that is sound for models that are not monotone themselves:
//! [FL2] §2.7 uses the implied minimal class size alone, of which this is the generalisation (proofs with each model).
//!
//! Counts are compared as integers; entropy alone needs logarithms.

mod closeness;
mod diversity;
mod judge;
pub mod protection;
mod ratio;
pub mod representatives;

pub use closeness::Ground;
pub use judge::{Class, Judge, Model, ModelError, Requirement, Room, SensitiveDomain};
pub use ratio::Ratio;
