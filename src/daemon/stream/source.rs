//! Interface of the sources of a stream.

use crate::daemon::engine::{Flush, NextBatchSource, QueuedBatch};
use crate::io::file::SourceError;
use std::collections::BTreeSet;
use std::time::Duration;
use throng_core::stream::input_batch::{InputPartition, OffsetRanges};
use throng_kafka::connection::KafkaFailure;

pub use throng_kafka::subscription::AssignmentNotice;

/// A source of batches. While one batch is released, the next one is available for preparation ([`NextBatchSource`]).
pub trait BatchSource: NextBatchSource {
    /// Returns the next event; waits at most `wait` for it.
    fn next_event(&mut self, wait: Duration) -> Result<SourceEvent, SourceFailure>;

    /// Rewinds the source: the next batch consists of exactly `ranges`. If `ranges` is empty, it begins at the
    /// committed positions. `aborted` is the batch that was not released, if it is still in memory.
    fn rewind(
        &mut self,
        aborted: Option<(QueuedBatch, Option<Flush>)>,
        ranges: OffsetRanges,
    ) -> Result<(), SourceFailure>;

    /// Starts reading restored partitions.
    fn start_partitions(&mut self, _places: &BTreeSet<InputPartition>) {}

    /// Returns true if records arrive continuously, so that a pause means that there are none.
    fn is_live(&self) -> bool;

    /// Returns true if this instance has partitions to read; false if all are assigned to other instances.
    fn has_partitions(&self) -> bool {
        true
    }

    /// Returns true if another consumer has committed offsets beyond the start of `ranges`; false also if that is
    /// unknown.
    fn is_passed_by_others(&self, _ranges: &OffsetRanges) -> bool {
        false
    }
}

/// Event of a source.
pub enum SourceEvent {
    /// A batch. If the source ends with it, also the reason for which the held records are settled with it.
    Batch(QueuedBatch, Option<Flush>),
    /// A change of the assignment, or ranges that cannot be replayed.
    Notice(AssignmentNotice),
    /// No event within the time limit.
    TimedOut,
    /// The end of the source; held records are settled.
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
    /// A job was asked to end; its records are not released.
    #[error("the job was interrupted")]
    Stopped,
    /// The reader thread has ended without an error: its channel is closed.
    #[error("the reader of the source ended without an error (this is a bug: please report it)")]
    ReaderThreadEnded,
}
