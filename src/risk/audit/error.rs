//! Why an audit cannot be made.

use crate::counting::codes::TableError;
use crate::counting::{ColumnsError, ComputeError, DeviceError};

/// An audit that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum AuditError {
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// A device was asked for by name.
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("column \"{column}\" is to count people, but no record has a value there: name another one (--subject)")]
    Nobody { column: String },
    #[error("the table cannot be sorted in its temporary files ({reason}): name a directory with more room (--temp)")]
    Temporary { reason: String },
}

impl From<TableError> for AuditError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Columns(error) => Self::Columns(error),
            TableError::File(error) => Self::Temporary { reason: error.to_string() },
        }
    }
}
