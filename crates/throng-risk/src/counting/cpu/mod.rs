//! Group counting on the processor's cores, over codes in memory or in a file.
//!
//! | file | what it holds |
//! |---|---|
//! | [`counter`] | the answers of the backend |
//! | `keys` | tuples of codes as numbers, exact however many columns there are |
//! | `cells` | what is counted of a class |
//! | `classes` | the classes of one set, by as many partitions of the rows as memory asks for |
//! | `slices` | verdicts on many sets, value by value of one column |
//! | `together` | many sets of few combinations each, in one pass over the rows |
//! | `matrix` | some rows, the cells of each beside each other |
//! | `threads` | one piece of work on some threads |

mod cells;
mod classes;
pub mod counter;
mod keys;
mod matrix;
mod slices;
#[cfg(test)]
mod tests;
mod threads;
mod together;
#[cfg(test)]
mod twin_tests;

pub use cells::{ClassSize, ClassSizes};
pub use classes::Smallest;
pub use counter::{ClassRows, CpuCounter, Look};
pub(crate) use keys::Mixed;
pub(crate) use matrix::{Field, Matrix};
pub(crate) use threads::{in_threads, map_in_threads};
