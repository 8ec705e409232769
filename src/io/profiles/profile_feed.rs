//! Channel from a reader of profiles.

use super::profile_decoder::ProfileRevision;
use super::profile_table::ProfileTable;
use crate::io::file::SourceError;
use crate::telemetry::RejectionReason;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use throng_kafka::connection::KafkaFailure;

/// The reader blocks beyond it.
const MAX_PENDING_UPDATES: usize = 10_000;

/// Failure to read profiles.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum ProfileReadError {
    #[error("join {join:?}: {source}")]
    Kafka { join: String, source: Box<KafkaFailure> },
    #[error("join {join:?}: {source}")]
    File { join: String, source: Box<SourceError> },
    #[error(
        "join {join:?}: {} has no column for {} (correct `key` of the join, or `column` or `pointer` of the attribute in the schema)",
        .path.display(), .columns.join(", ")
    )]
    NoColumn { join: String, path: PathBuf, columns: Vec<String> },
    #[error(
        "join {join:?}: {rows} row(s) of {} cannot be read, the first is number {first} ({why}); correct or remove them",
        .path.display()
    )]
    Rows { join: String, path: PathBuf, rows: u64, first: i64, why: RejectionReason },
    #[error("join {join:?}: cannot start the reader of its profiles: {source}")]
    Thread { join: String, source: std::io::Error },
    #[error("join {join:?}: the reader of its profiles ended without an error (this is a bug: please report it)")]
    ReaderEnded { join: String },
}

impl ProfileReadError {
    /// Returns true if a restart needs a change by the operator.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NoColumn { .. } | Self::Rows { .. } => true,
            Self::Kafka { source, .. } => source.is_usage(),
            Self::File { .. } | Self::Thread { .. } | Self::ReaderEnded { .. } => false,
        }
    }
}

/// Message from a reader of profiles.
pub enum ProfileMessage {
    /// All profiles at the start.
    InitialTable(ProfileTable),
    /// Later change of a profile.
    Changed(ProfileRevision),
    /// Failure that ended the reader.
    Failed(ProfileReadError),
}

/// Receiver of the table, then of changes; ends the reader on drop.
pub struct ProfileFeed {
    /// Messages in read order.
    pub profile_messages: Receiver<ProfileMessage>,
    feed_closed: Arc<AtomicBool>,
}

impl ProfileFeed {
    /// Wraps the messages of a reader.
    pub fn new(news: Receiver<ProfileMessage>) -> Self {
        Self { profile_messages: news, feed_closed: Arc::default() }
    }
}

impl Drop for ProfileFeed {
    fn drop(&mut self) {
        self.feed_closed.store(true, Ordering::Release);
    }
}

pub(super) struct ProfileSender {
    profile_messages: Sender<ProfileMessage>,
    feed_closed: Arc<AtomicBool>,
}

pub(super) struct FeedClosed;

impl ProfileSender {
    pub fn send_message(&self, news: ProfileMessage) -> Result<(), FeedClosed> {
        self.profile_messages.send(news).map_err(|_| FeedClosed)
    }

    pub fn is_feed_closed(&self) -> bool {
        self.feed_closed.load(Ordering::Acquire)
    }
}

pub(super) fn spawn_profile_reader(
    join: &str,
    read: impl FnOnce(&ProfileSender) -> Result<(), ProfileReadError> + Send + 'static,
) -> Result<ProfileFeed, ProfileReadError> {
    let (sender, news) = bounded(MAX_PENDING_UPDATES);
    let feed = ProfileFeed::new(news);
    let told = ProfileSender { profile_messages: sender, feed_closed: Arc::clone(&feed.feed_closed) };
    let name = join.to_owned();
    // A panic closes the channel.
    let started = std::thread::Builder::new().name("profiles".to_owned()).spawn(move || {
        if let Err(error) = read(&told)
            && told.send_message(ProfileMessage::Failed(error)).is_err()
        {
            tracing::debug!(join = name, "a profile reader failed after its feed was closed");
        }
    });
    started.map_err(|source| ProfileReadError::Thread { join: join.to_owned(), source })?;
    Ok(feed)
}
