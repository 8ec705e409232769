//! Columns of codes, in memory or in a file without a name: the same bytes, read some rows at a time, wherever they lie.
//!
//! | file | what it holds |
//! |---|---|
//! | [`writer`] | codes as they come, column by column |
//! | [`column`] | one column that has been written, and its bytes |
//! | [`table`] | columns of dense codes, in the order of people where there are some |
//! | `by_people` | sorts the rows by the people behind them |
//!
//! Codes take one, two or four bytes. A file is not memory-mapped: a disk that fails is then an error and not a signal, and no code is
//! `unsafe`. It has no name from the moment it is made: whatever ends the process, a signal too, it is gone with it.

mod by_people;
pub mod column;
pub mod table;
pub mod writer;

pub use column::CodeColumn;
pub(in crate::counting) use table::Block;
pub use table::{CodeTable, PreparedTable, TableError, WrittenColumns};
pub use writer::CodeWriter;
