//! What a stream reads from.

use crate::daemon::engine::{Settling, Turn, Upcoming};
use crate::io::file::SourceError;
use crate::io::input::{Place, Ranges};
use crate::io::kafka::connection::KafkaFailure;
use std::collections::BTreeSet;
use std::time::Duration;

pub use crate::io::kafka::feed::Notice;

/// A source of batches. While a batch leaves, the next one can be looked at ([`Upcoming`]).
pub trait Source: Upcoming {
    /// What comes next; waits for it for at most `wait`.
    fn next(&mut self, wait: Duration) -> Result<Next, SourceFailure>;

    /// Goes back, so that the next batch consists of exactly `ranges`; where there are none, so that it begins at the
    /// committed positions. `aborted` is the batch that has not left, where it is still in hand.
    fn rewind(&mut self, aborted: Option<(Turn, Option<Settling>)>, ranges: Ranges) -> Result<(), SourceFailure>;

    /// Starts assigned partitions whose state is restored.
    fn start(&mut self, _places: &BTreeSet<Place>) {}

    /// Whether records come by themselves, so that a pause means that there are none.
    fn is_live(&self) -> bool;

    /// Whether there is something that this instance may read: not where all partitions are with others.
    fn has_partitions(&self) -> bool {
        true
    }

    /// Whether somebody else has read on where `ranges` begin. False where that is not known.
    fn has_passed(&self, _ranges: &Ranges) -> bool {
        false
    }
}

/// What a source has to say.
pub enum Next {
    /// A batch; where the source ends with it, how the records that are held settle with it.
    Batch(Turn, Option<Settling>),
    /// A change of the partitions, or the end of their reader.
    Notice(Notice),
    /// Nothing within the time.
    Nothing,
    /// Nothing more will come; what is held settles.
    End(Settling),
}

/// Why a source cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum SourceFailure {
    /// The broker, or its consumer, has failed.
    #[error(transparent)]
    Kafka(#[from] KafkaFailure),
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] SourceError),
    /// A job was told to end: what it has read is not released.
    #[error("the job was told to end")]
    Stopped,
    /// The thread that reads has ended without an error: its channel is closed.
    #[error("the reader ended without a word (this is a bug)")]
    ReaderGone,
}
