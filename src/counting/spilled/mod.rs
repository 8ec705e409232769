//! A table that is larger than memory: its codes lie in files, and are read some rows at a time.
//!
//! | room | what it holds |
//! |---|---|
//! | [`writer`] | codes as they come, column by column, in a file without a name |
//! | [`column`] | one column of such a file |
//! | [`table`] | columns of dense codes, by people where there are some: what `CountedTable` is in memory |
//! | `by_people` | the rows in the order of the people behind them |
//! | `keys` | tuples of codes as numbers, exact however many columns there are |
//! | `cells` | what is counted of a class |
//! | `classes` | the classes of one set, by as many partitions of the rows as memory asks for |
//! | `together` | many sets of few combinations each, in one pass over the rows |
//! | [`counter`] | the answers of a backend from all that |
//!
//! Nothing here is memory-mapped: a disk that fails is then an error that can be told, and not a signal; what is held is what was
//! asked for; and no code is `unsafe`. The page cache does for plain reads what it does for maps. The files have no name from the
//! moment they are made: whatever ends the process, a signal too, they are gone with it.

mod by_people;
mod cells;
mod classes;
pub mod column;
pub mod counter;
mod keys;
pub mod table;
#[cfg(test)]
mod tests;
mod together;
pub mod writer;

pub use cells::{ClassSize, ClassSizes};
pub use classes::Smallest;
pub use counter::{Look, SpilledCounter};
pub use table::{Marked, SpillError, SpilledTable, Written};
pub use writer::SpillWriter;
