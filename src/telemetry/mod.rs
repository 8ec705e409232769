//! Events that are log line and metric at once, and what the status page shows of them.
//!
//! One struct an event, with [`emit`](BatchCommitted::emit); no struct has a field that could hold a raw value, label
//! sets are closed, and every series exists from the start, so that nothing in the data can change their number.

mod coarse;
mod disk;
mod divided;
mod erasure_metrics;
mod events;
mod foreign;
mod history;
mod labels;
mod limiter;
mod logging;
mod memory;
mod metrics;
mod planned;
mod reason;
mod registry;
mod report;
mod shelf;
mod source;
mod status;

pub use coarse::{Draws, about, in_steps};
pub use disk::{StateAnswers, StateStalled};
pub use events::{
    AttributesNeverMet, BatchAborted, BatchCommitted, ColumnsDropped, DeviceUsed, Doubt, ErasureFailed, ErasureLag,
    ErasureMessage, ErasuresMissed, EvidenceGathered, FileDivided, FileOpened, LimitReached, PlanAdopted,
    PlannerFailed, PolicyInForce, ProfileRefused, ProfileUpdate, ProfilesLag, ProfilesRead, Reloaded, StateRecovered,
    SubjectsErased, VerificationRefused, WrongType,
};
pub use foreign::foreign;
pub use history::Point;
pub use labels::{
    AbortReason, Counts, Label, Limit, MemoryPart, ReloadOutcome, SchemaOutcome, SecurityRefusal, Stage,
    SuppressionReason, WrittenAs,
};
pub use logging::{LoggingError, init_logging, says_nobody_reads, silence_panic_payloads};
pub use reason::RejectionReason;
pub use registry::{RegistryAnswered, RegistryLost, WriterSchemaMet};
pub use report::{BatchReport, CrowdPicture, RiskPicture, StageSeconds, Totals};
pub use source::{InputLost, Rebalanced, SourceConnected, SourceLost, SourceRefused};
pub use status::{LastReload, Readiness, Settled, Status, Telemetry};

#[cfg(test)]
mod tests;
