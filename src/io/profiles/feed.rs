//! What a reader of profiles has read, on a thread of its own.

use super::people::Update;
use super::table::Table;
use crate::io::file::SourceError;
use crate::io::kafka::connection::KafkaFailure;
use crate::telemetry::RejectionReason;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Updates that wait for the end of a batch, at most. Who has read more waits.
const WAITING: usize = 10_000;

/// Why profiles cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum ProfilesError {
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
        "join {join:?}: {rows} row(s) of {} cannot be read, the first is number {first} ({why}); correct them, or take them out",
        .path.display()
    )]
    Rows { join: String, path: PathBuf, rows: u64, first: i64, why: RejectionReason },
    #[error("join {join:?}: its reader cannot be started: {source}")]
    Thread { join: String, source: std::io::Error },
    #[error("join {join:?}: its reader has ended without a word (this is a bug)")]
    Gone { join: String },
}

impl ProfilesError {
    /// Whether the operator must change something before another start makes sense.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NoColumn { .. } | Self::Rows { .. } => true,
            Self::Kafka { source, .. } => source.is_usage(),
            Self::File { .. } | Self::Thread { .. } | Self::Gone { .. } => false,
        }
    }
}

/// What a reader of profiles has to say.
pub enum News {
    /// All profiles that there were when it began.
    Whole(Table),
    /// One that has changed since.
    Changed(Update),
    /// Nothing more can be read.
    Failed(ProfilesError),
}

/// What has been read: first the whole, then what has changed since. Its end is the end of the reader.
pub struct Feed {
    /// In the order in which it was read.
    pub news: Receiver<News>,
    over: Arc<AtomicBool>,
}

impl Feed {
    /// What a reader says by `news`.
    pub fn new(news: Receiver<News>) -> Self {
        Self { news, over: Arc::default() }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
    }
}

/// Where a reader says what it has read.
pub(super) struct Told {
    news: Sender<News>,
    over: Arc<AtomicBool>,
}

/// Nobody listens any more.
pub(super) struct Over;

impl Told {
    /// Says something; waits while too much has been said that nobody has heard.
    pub fn say(&self, news: News) -> Result<(), Over> {
        self.news.send(news).map_err(|_| Over)
    }

    /// Whether nobody listens any more.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

/// Lets `read` read the profiles of `join` on a thread of its own.
pub(super) fn reading(
    join: &str,
    read: impl FnOnce(&Told) -> Result<(), ProfilesError> + Send + 'static,
) -> Result<Feed, ProfilesError> {
    let (sender, news) = bounded(WAITING);
    let feed = Feed::new(news);
    let told = Told { news: sender, over: Arc::clone(&feed.over) };
    let name = join.to_owned();
    // A panic closes the channel, and that is heard.
    let started = std::thread::Builder::new().name("profiles".to_owned()).spawn(move || {
        if let Err(error) = read(&told)
            && told.say(News::Failed(error)).is_err()
        {
            tracing::debug!(join = name, "a reader of profiles has failed after its end");
        }
    });
    started.map_err(|source| ProfilesError::Thread { join: join.to_owned(), source })?;
    Ok(feed)
}
