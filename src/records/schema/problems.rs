//! Everything that is wrong with a schema.

use crate::records::keys::Problem;

/// Everything that is wrong with a schema, at once.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SchemaError {
    /// In the order of the file; at least one.
    pub problems: Vec<Problem>,
}
