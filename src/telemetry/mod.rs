//! Events that are log line and metric at once, and what the status page shows of them.
//!
//! One struct an event, with [`emit`](BatchCommitted::emit), which writes the log line and moves the metrics together. Counts of records move
//! only with their batch's commit, so that they obey conservation and a retried batch is counted once. Lines of one kind are limited; metrics
//! are not. No struct has a field that could hold a raw value, label
//! sets are closed, and every series exists from the start, so that nothing in the data can change their number.

mod batches;
mod changelog;
mod coarse;
mod health;
mod history;
mod labels;
mod logging;
mod metrics;
mod people;
mod plans;
mod reason;
mod report;
mod series;
mod source;
mod status;

pub use batches::{
    AttributesNeverMet, BatchAborted, BatchCommitted, ColumnsDropped, Doubt, FileDivided, FileOpened, WrongType,
};
pub use changelog::{StateMoved, StateRestored};
pub use coarse::{Draws, about, in_steps};
pub use health::{
    LimitReached, PolicyInForce, Reloaded, StateAnswers, StateRecovered, StateStalled, VerificationRefused,
};
pub use history::Point;
pub use labels::{
    AbortReason, Counts, Label, Limit, MemoryPart, ReloadOutcome, SchemaOutcome, SecurityRefusal, Stage,
    SuppressionReason, WrittenAs,
};
pub use logging::{LoggingError, init_logging, says_nobody_reads, silence_panic_payloads};
pub use people::{
    ErasureFailed, ErasureLag, ErasureMessage, ErasuresMissed, ProfileRefused, ProfileUpdate, ProfilesLag,
    ProfilesRead, SubjectsErased,
};
pub use plans::{DeviceUsed, EvidenceGathered, PlanAdopted, PlannerFailed, StaticGroupLost};
pub use reason::{RejectionReason, stage_of};
pub use report::{
    BatchReport, CrowdPicture, RecordShare, Represented, RiskPicture, SeriesPublished, SeriesRecords, StageSeconds,
    TooFewBuckets, Totals,
};
pub use series::CohortsElsewhere;
pub use source::{
    InputLost, Rebalanced, RegistryAnswered, RegistryLost, SchemaLookupsExhausted, SchemaUnknown, SourceConnected,
    SourceLost, SourceRefused, WriterSchemaMet,
};
pub use status::{LastReload, Readiness, Settled, Status, Telemetry};
pub use throng_core::printable::printable;

#[cfg(test)]
mod tests;
