//! Events that update log and metrics together, and the data of the status page.
//!
//! Each event has an [`emit`](BatchCommitted::emit). Records are counted with the commit of their batch, so retries
//! count once. Log lines are limited, metrics are not. No event has a raw value, label sets are closed, and every
//! series exists from the start.

mod batch_events;
mod changelog_events;
pub mod conservation;
mod figure_rounding;
mod health_events;
mod history;
mod labels;
mod logging;
mod metrics;
mod plan_events;
mod process_figures;
mod reason;
mod report;
mod series_events;
mod source_events;
mod status;
mod subject_events;

pub use batch_events::{
    AttributesNeverMet, BatchAborted, BatchCommitted, CellTypeMismatch, ColumnsDropped, FileDivided, FileOpened,
    SchemaWarning,
};
pub use changelog_events::{StateMoved, StateRestored};
pub use figure_rounding::{RoundingDraws, round_count, round_to_step};
pub use health_events::{
    ConfigReloaded, LimitReached, LimitsConfigured, PolicyActivated, StateRecovered, StateResponding, StateStalled,
    VerificationRefused,
};
pub use history::HistoryPoint;
pub use labels::{
    AbortReason, CountsByLabel, Label, Limit, MemoryPart, ReloadOutcome, SchemaOutcome, Stage, SuppressionReason,
    WrittenAs,
};
pub use logging::{LoggingError, init_logging, is_broken_pipe_panic, silence_panic_payloads};
pub use plan_events::{DeviceUsed, EvidenceGathered, PlanAdopted, PlannerFailed, StaticGroupLost};
pub use reason::{RejectionReason, stage_of};
pub use report::{
    BatchReport, ClassSizeFigures, RecordShare, RecordTotals, RepresentedShare, RiskFigures, SeriesPublished,
    SeriesRecords, StageSeconds, TooFewBuckets,
};
pub use series_events::CohortsElsewhere;
pub use source_events::{
    InputLost, PartitionsChanged, RegistryAnswered, RegistryLost, SchemaLookupsExhausted, SchemaUnknown,
    SourceConnected, SourceLag, SourceLost, SourceRefused, TopicUnavailable, WriterSchemaMet,
};
pub use status::{LastReload, Readiness, ShareScope, Status, Telemetry};
pub use subject_events::{
    ErasureFailed, ErasureLag, ErasureMessage, ErasuresMissed, ProfileRefused, ProfileUpdate, ProfilesLag,
    ProfilesRead, SubjectsErased,
};
pub use throng_core::printable::printable;
pub use throng_kafka::refusal::SecurityRefusal;

#[cfg(test)]
mod tests;
