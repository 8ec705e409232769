//! Group counting on the CPU.

mod class_cells;
mod class_query;
pub mod cpu_counter;
mod dense_sets;
#[cfg(test)]
mod file_table_tests;
mod row_matrix;
mod slices;
#[cfg(test)]
mod tests;
mod threads;
mod tuple_keys;

pub use class_cells::{ClassSize, ClassSizes};
pub use class_query::SmallestClass;
pub use cpu_counter::{ClassRows, CpuCounter, SetVerdict};
pub(crate) use row_matrix::{RowField, RowMatrix};
pub(crate) use threads::{in_threads, map_in_threads};
pub(crate) use tuple_keys::FoldBuildHasher;
