//! Packed columns in memory or in an unnamed file, not memory-mapped: a disk failure is an error, not a signal.

pub mod column;
mod subject_sort;
pub mod table;
pub mod writer;

pub use column::CodeColumn;
pub(in crate::counting) use table::CodeBlock;
pub use table::{CodeTable, CodeTableError, PreparedTable, WrittenColumns};
pub use writer::CodeWriter;
