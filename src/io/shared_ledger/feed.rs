//! What the listener has heard, on its way to the engine.

use crate::io::feed;
use crate::io::kafka::connection::KafkaFailure;
use crate::ledger::shared::SharedDelta;
use crate::telemetry::ForeignReason;
use std::collections::BTreeMap;

/// Records that wait for the end of a batch, at most, each of about half a mebibyte at most. Who has read more waits.
const WAITING: usize = 64;

/// How far the topic has been read: the next offset by partition.
pub type Places = BTreeMap<i32, i64>;

/// Why the shared ledger cannot be read, or must not be gone on with.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum SharedLedgerError {
    #[error(transparent)]
    Kafka(#[from] Box<KafkaFailure>),
    #[error(
        "ledger topic {topic:?}: instance {instance} (partition {partition}, offset {offset}) {}: what it has released is no support here ({})",
        words(*reason), remedy(*reason)
    )]
    Foreign { topic: String, instance: String, partition: i32, offset: i64, reason: ForeignReason },
    #[error("the reader of the ledger topic cannot be started: {0}")]
    Thread(std::io::Error),
    #[error("the reader of the ledger topic has ended without a word (this is a bug)")]
    Gone,
}

impl SharedLedgerError {
    /// Whether the operator must change something before another start makes sense.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Foreign { .. } => true,
            Self::Kafka(failure) => failure.is_usage(),
            Self::Thread(_) | Self::Gone => false,
        }
    }
}

/// What is foreign about an instance.
fn words(reason: ForeignReason) -> &'static str {
    match reason {
        ForeignReason::Unreadable => "writes in a form that this throng does not know",
        ForeignReason::Secret => "has another secret, or belongs to another group",
        ForeignReason::Digests => "knows people under other digests, for its state was made with another secret",
        ForeignReason::Schema => "goes by another record schema, or reads records in another way",
        ForeignReason::Outputs => "releases to other topics, or in other groups of attributes",
        ForeignReason::Policy => "goes by another policy",
        ForeignReason::Clock => "has a clock that is ahead",
        ForeignReason::Erased => "has told this before somebody was erased here",
    }
}

fn remedy(reason: ForeignReason) -> &'static str {
    match reason {
        ForeignReason::Unreadable => "let nobody else write to the topic, and give all instances the same version",
        ForeignReason::Secret => {
            "give all instances the same secret; after it has been exchanged for all, name another sink.ledger_topic"
        }
        ForeignReason::Digests => {
            "make the states of all instances with one secret, and name another sink.ledger_topic for them"
        }
        ForeignReason::Schema | ForeignReason::Outputs | ForeignReason::Policy => {
            "give all instances the same configuration; after a change for all, name another sink.ledger_topic"
        }
        ForeignReason::Clock => "set the clocks of all machines by the same time",
        ForeignReason::Erased => "nothing is to be done",
    }
}

/// What another instance has released.
pub struct Heard {
    /// Its classes and subjects, and when.
    pub delta: SharedDelta,
    /// Who has told it.
    pub instance: String,
    /// Bytes of the record.
    pub bytes: u64,
    /// How far the topic has been read with it.
    pub places: Places,
}

/// What a listener has to say.
pub enum News {
    /// Another instance has released something.
    Heard(Heard),
    /// All has been read that there was when it began.
    Whole(Places),
    /// Nothing more can be read, or must be.
    Failed(SharedLedgerError),
}

/// What has been heard, in the order of each partition.
pub type Feed = feed::Feed<News>;
/// Where a listener says what it has heard.
pub(super) type Told = feed::Told<News>;

/// Lets `listen` listen on a thread of its own.
///
/// # Errors
/// When there is no thread to be had.
pub(super) fn listening(
    listen: impl FnOnce(&Told) -> Result<(), SharedLedgerError> + Send + 'static,
) -> Result<Feed, SharedLedgerError> {
    let feed = Feed::of("ledger", WAITING, move |told| {
        if let Err(error) = listen(told)
            && told.say(News::Failed(error)).is_err()
        {
            tracing::debug!("the reader of the ledger topic has failed after its end");
        }
    });
    feed.map_err(SharedLedgerError::Thread)
}
