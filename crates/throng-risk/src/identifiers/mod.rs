//! Standalone identifiers (docs/methods.md §2; [POD] Def. 2, 7, 8, §4.1.1): columns that single people out by
//! themselves.
//!
//! A [`Profile`] is what was counted in a column, a [`Rule`] is what is asked of it, and a [`Judgement`] says why.
//! The planner of a stream and the audit of a file judge by the same rule with different settings.

mod judge;
mod profile;
mod safe_harbor;

pub use judge::{Judgement, Reason, Rule};
pub use profile::{People, Profile};
pub use safe_harbor::{Category, words};
