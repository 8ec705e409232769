//! What an audit refuses to read, and how that ends.

use crate::cli::outcome::Failure;
use crate::io::file::SourceError;
use crate::io::table::TableError;

/// Columns of one audit.
pub(super) const MAX_COLUMNS: usize = 1024;

/// What was asked of the file in vain is bad usage, what the file is failed while running.
pub(super) fn of_table(error: TableError) -> Failure {
    match error {
        TableError::NotInSchema { .. }
        | TableError::Source(
            SourceError::NoSuchColumn { .. }
            | SourceError::TooManyColumns { .. }
            | SourceError::ParquetOnStandardInput
            | SourceError::Separator,
        ) => Failure::Usage(error.into()),
        error => Failure::Running(error.into()),
    }
}
