//! Columns of codes of one, two or four bytes, in memory or in an unnamed file, read in blocks of rows.
//!
//! The file is not memory-mapped, so a disk failure is an error and not a signal. The file is removed when the
//! process ends, even by a signal.

pub mod column;
mod subject_sort;
pub mod table;
pub mod writer;

pub use column::CodeColumn;
pub(in crate::counting) use table::CodeBlock;
pub use table::{CodeTable, CodeTableError, PreparedTable, WrittenColumns};
pub use writer::CodeWriter;
