//! Standalone identifiers (docs/internals/methods.md §2; \[POD] Def. 2, 7, 8, §4.1.1): columns that identify a single subject
//! alone.
//!
//! A [`ColumnProfile`] holds the counts of a column, a [`IdentifierRule`] the criteria, and a [`IdentifierJudgement`] the result with its
//! reasons. The planner of a stream and the audit of a file use the same rule with different settings.

mod identifier_rule;
mod profile;
mod safe_harbor;

pub use identifier_rule::{IdentifierJudgement, IdentifierReason, IdentifierRule};
pub use profile::{ColumnProfile, SubjectRelation};
pub use safe_harbor::{SafeHarborCategory, header_words};
