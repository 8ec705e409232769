//! Standalone identifiers (docs/internals/methods.md §2; \[POD] Def. 2, 7, 8, §4.1.1): columns that alone identify a
//! subject.

mod identifier_rule;
mod profile;
mod safe_harbor;

pub use identifier_rule::{IdentifierJudgement, IdentifierReason, IdentifierRule};
pub use profile::{ColumnProfile, SubjectRelation};
pub use safe_harbor::{SafeHarborCategory, header_words};
