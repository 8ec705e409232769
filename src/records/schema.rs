//! The schema: which attributes a record has, where they are, what they mean and how they generalize.
//!
//! | file | what it holds |
//! |---|---|
//! | `attribute` | one attribute: its place, role and pace of change |
//! | `checked` | a schema that has been checked |
//! | `described` | the JSON Schema and the reference of what a schema may hold |
//! | `problems` | everything that is wrong with one |
//! | `read`, `spelled` | from TOML to a checked schema |

mod attribute;
mod checked;
mod described;
mod problems;
mod read;
mod spelled;
#[cfg(test)]
mod tests;

pub use crate::records::canonical::{CellError, Missing, Rounding, Type, Typing};
pub use crate::records::keys::Problem;
pub use attribute::{Attribute, Changes, Place, Role, Treatment};
pub use checked::Schema;
pub use described::{json_schema, reference_markdown};
pub use problems::SchemaError;
