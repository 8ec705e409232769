//! Group counting: how many records or subjects share each value tuple of an attribute set (docs/methods.md §6).
//!
//! Everything above this room asks through [`GroupCounter`], in batches, and never sees where the table lies: a backend
//! keeps it in its own layout and memory. [`Wanted`] says which backend, [`Chosen`] is the one that counts.
//!
//! | room | what it holds |
//! |---|---|
//! | [`attribute_set`] | a set of columns |
//! | [`columns`] | the table that is counted |
//! | [`counter`] | what is asked of a backend, and its answers |
//! | [`backend`] | which backend counts a table |
//! | [`codes`] | columns of codes, in memory or in a file without a name |
//! | [`cpu`] | the processor's cores |
//! | [`cuda`] | a GPU; nobody above this wing names it but `throng selftest gpu` and `throng bench gpu` |
//! | [`pairs`] | joint counts of two columns, and what follows from them |
//! | [`row_set`] | some rows of a table |

pub mod attribute_set;
pub mod backend;
pub mod codes;
pub mod columns;
pub mod counter;
pub mod cpu;
pub mod cuda;
pub mod pairs;
pub mod row_set;

pub use attribute_set::AttributeSet;
pub use backend::{Chosen, Trial, Wanted, shared_device};
pub use codes::{CodeTable, CodeWriter};
pub use columns::{ColumnsError, CountedTable};
pub use counter::{ComputeError, GroupCount, GroupCounter};
pub use cpu::CpuCounter;
pub use cuda::{Arrival, CudaCounter, Device, DeviceError, KeptWindow, Snapshot, Used};
pub use pairs::{
    CycleInference, PairCounts, PairInference, PairNodes, ValueCount, all_pairs, count_pairs, cycle_inference,
};
pub use row_set::RowSet;
