//! Why an audit cannot be made.

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
}
