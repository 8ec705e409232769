//! Interface of the sources of a stream.

use crate::daemon::engine::{NextBatchSource, QueuedBatch};
use crate::daemon::state::records::Flush;
use crate::io::file::SourceError;
use std::collections::BTreeSet;
use std::time::Duration;
use throng_core::stream::input_batch::{InputPartition, OffsetRanges};
use throng_kafka::connection::KafkaFailure;

pub use throng_kafka::subscription::AssignmentNotice;

/// Source of batches.
pub trait BatchSource: NextBatchSource {
    /// Returns the next event within `wait`.
    fn next_event(&mut self, wait: Duration) -> Result<SourceEvent, SourceFailure>;

    /// Rewinds to exactly `ranges`, or to the committed positions if empty. `aborted` is the unreleased batch, if in
    /// memory.
    fn rewind(
        &mut self,
        aborted: Option<(QueuedBatch, Option<Flush>)>,
        ranges: OffsetRanges,
    ) -> Result<(), SourceFailure>;

    /// Starts reading restored partitions.
    fn start_partitions(&mut self, _places: &BTreeSet<InputPartition>) {}

    /// Returns true if a pause means no records.
    fn is_live(&self) -> bool;

    /// Returns true if partitions are assigned here.
    fn has_partitions(&self) -> bool {
        true
    }

    /// Returns true if another consumer has committed offsets beyond the start of `ranges`.
    fn is_passed_by_others(&self, _ranges: &OffsetRanges) -> bool {
        false
    }
}

/// Event of a source.
pub enum SourceEvent {
    /// Batch; at the end, also the reason to settle.
    Batch(QueuedBatch, Option<Flush>),
    /// Changed assignment, or an impossible replay.
    Notice(AssignmentNotice),
    /// No event before the timeout.
    TimedOut,
    /// End of the source; held records are settled.
    End(Flush),
}

/// Error that ends the reading of a source.
#[derive(Debug, thiserror::Error)]
pub enum SourceFailure {
    /// The broker or the consumer has failed.
    #[error(transparent)]
    Kafka(#[from] KafkaFailure),
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] SourceError),
    /// The job was stopped.
    #[error("the job was interrupted")]
    Stopped,
    /// The reader thread has ended without an error.
    #[error("the reader of the source ended without an error (this is a bug: please report it)")]
    ReaderThreadEnded,
}
