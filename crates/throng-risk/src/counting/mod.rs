//! Group counting: records or subjects per value tuple of an attribute set (docs/internals/methods.md §6).

pub mod attribute_set;
pub mod backend;
pub mod codes;
pub mod counted_table;
pub mod cpu;
pub mod cuda;
pub mod group_counter;
pub mod pair_counts;
pub mod row_set;

pub use attribute_set::AttributeSet;
pub use backend::{BackendChoice, BackendTrial, SelectedBackend, shared_device};
pub use codes::{CodeTable, CodeWriter};
pub use counted_table::{ColumnsError, CountedTable};
pub use cpu::CpuCounter;
pub use cuda::{CudaCounter, Device, DeviceError, DeviceUsage, StreamWindow, WindowArrival, WindowSnapshot};
pub use group_counter::{ClassSummary, ComputeError, GroupCounter};
pub use pair_counts::{
    CycleInference, PairCounts, PairInference, PairNodes, ValueCount, all_pairs, count_pairs, cycle_inference,
};
pub use row_set::RowSet;
