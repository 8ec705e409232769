//! The schema: which attributes a record has, where they are, what they mean and how they generalize.
//!
//! | file | what it holds |
//! |---|---|
//! | `attribute` | one attribute: its place, role and pace of change |
//! | `checked` | a schema that has been checked |
//! | `described` | the JSON Schema and the reference of what a schema may hold |
//! | `measured` | in what an attribute is measured |
//! | `place` | where an attribute is found |
//! | `problems` | everything that is wrong with one |
//! | `read`, `spelled` | from TOML to a checked schema |

mod attribute;
mod checked;
mod described;
mod generalized;
mod measured;
mod place;
mod problems;
mod read;
mod spelled;
#[cfg(test)]
mod tests;

pub use crate::records::canonical::{CellError, Missing, Rounding, Type, Typing};
pub use crate::records::keys::Problem;
pub use attribute::{Attribute, Changes, Origin, Place, Role, Treatment, segments};
pub use checked::Schema;
pub use described::{json_schema, reference_markdown};
pub use problems::SchemaError;
