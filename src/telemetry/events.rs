//! What can happen, one struct each: `emit` writes the log line and moves the metrics together.
//!
//! Counts of records move only with their batch's commit, so that they obey conservation and a retried batch is
//! counted once. Lines of one kind are limited; metrics are not.

mod batches;
mod erasures;
mod plans;
mod profiles;
mod promises;
mod records;
mod reloads;

pub use batches::{BatchAborted, BatchCommitted};
pub use erasures::{ErasureFailed, ErasureLag, ErasureMessage, ErasuresMissed, SubjectsErased};
pub use plans::{DeviceUsed, EvidenceGathered, PlanAdopted, PlannerFailed};
pub use profiles::{ProfileRefused, ProfileUpdate, ProfilesLag, ProfilesRead};
pub use promises::{LimitReached, StateRecovered, VerificationRefused};
pub use records::{AttributesNeverMet, ColumnsDropped, Doubt, FileDivided, FileOpened, WrongType};
pub use reloads::{PolicyInForce, Reloaded};
