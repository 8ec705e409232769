//! A topic that names people who are to be erased, read by every instance for itself on a thread of its own (docs/erasure.md).
//!
//! A name goes no further than this thread: what it says is a keyed digest. Nothing of a value is read.

use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::whole::{Reading, WholeTopic};
use crate::records::raw::Token;
use crate::records::subject::{NO_SUBJECT, Subjects};
use crate::telemetry::{ErasureLag, ErasureRefused, ErasureRequested, ErasuresMissed, RejectionReason, Telemetry};
use crossbeam_channel::{Receiver, Sender, bounded};
use rdkafka::Message;
use rdkafka::message::BorrowedMessage;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Messages that wait to be heard, at most. Whoever has read more waits.
const WAITING: usize = 10_000;
/// The longest key that is looked at. The longest text of a record is a quarter of it.
const MOST_KEY_BYTES: usize = 4096;
/// How often the lag is measured.
const TELLING: Duration = Duration::from_secs(1);

/// Why the topic cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum ErasuresError {
    #[error("erasure.topic: {0}")]
    Kafka(Box<KafkaFailure>),
    #[error("erasure.topic: its reader cannot be started: {0}")]
    Thread(std::io::Error),
    #[error("erasure.topic: its reader has ended without a word (this is a bug)")]
    Gone,
}

impl ErasuresError {
    /// Whether the operator must change something before another start makes sense.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Kafka(failure) if failure.is_usage())
    }
}

/// What the reader has to say.
pub enum Heard {
    /// A message.
    Message {
        /// Whom it names, as a keyed digest; none where it names nobody.
        person: Option<u64>,
        /// Where it was.
        partition: i32,
        /// The offset behind it.
        next: i64,
    },
    /// A partition that has no place yet is read from here on.
    Begins {
        /// Which.
        partition: i32,
        /// Its first offset.
        next: i64,
    },
    /// Everything has been said that was there at the start.
    Whole,
    /// Nothing more can be read.
    Failed(ErasuresError),
}

/// A topic that names people.
pub struct TopicOfErasures {
    /// Where it is.
    pub cluster: Cluster,
    /// Its name.
    pub topic: String,
    /// The next offset of each partition, as far as it has been acted on.
    pub from: BTreeMap<i32, i64>,
    /// Digests people as those of the records are.
    pub subjects: Subjects,
    /// Is told what is refused, and how far the reading has come.
    pub telemetry: Telemetry,
}

/// The people whom the topic names. Its end is the end of the reader.
pub struct Names {
    /// What has been read.
    pub heard: Receiver<Heard>,
    shared: Arc<Shared>,
}

/// What the reader and its listener share.
#[derive(Default, Debug)]
struct Shared {
    over: AtomicBool,
    /// Messages that were said and are not settled.
    unsettled: AtomicU64,
}

impl Drop for Names {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
    }
}

impl Names {
    /// What a reader says by `heard`.
    #[must_use]
    pub fn new(heard: Receiver<Heard>) -> Self {
        Self { heard, shared: Arc::default() }
    }

    /// Notes that so many messages have been acted on.
    pub fn settle(&self, messages: u64) {
        self.shared.unsettled.fetch_sub(messages, Ordering::AcqRel);
    }
}

/// Nobody listens any more.
struct Over;

impl TopicOfErasures {
    /// Reads it until nobody listens.
    ///
    /// # Errors
    /// When there is no thread to read it on.
    pub fn read(self) -> Result<Names, ErasuresError> {
        let (sender, heard) = bounded(WAITING);
        let names = Names::new(heard);
        let shared = Arc::clone(&names.shared);
        let body = move || {
            // A panic closes the channel, and that is heard.
            if let Ok(Err(error)) = catch_unwind(AssertUnwindSafe(|| self.on(&sender, &shared)))
                && sender.send(Heard::Failed(error)).is_err()
            {
                tracing::debug!("the reader of erasures has failed after its end");
            }
        };
        let started = std::thread::Builder::new().name("erasures".to_owned()).spawn(body);
        started.map_err(ErasuresError::Thread)?;
        Ok(names)
    }

    fn on(&self, sender: &Sender<Heard>, shared: &Shared) -> Result<(), ErasuresError> {
        let is_over = || shared.over.load(Ordering::Acquire);
        let failed = |failure| ErasuresError::Kafka(Box::new(failure));
        let (group, what) = ("throng.erasures.reader", "cannot read who is to be erased");
        let reading = Reading { topic: self.topic.clone(), group, what, from: self.from.clone() };
        let Some(mut topic) = WholeTopic::open(&self.cluster, reading, &is_over).map_err(failed)? else {
            return Ok(());
        };
        let (mut whole, mut told_at, mut unread) = (false, None::<Instant>, None);
        while !is_over() {
            let missed = topic.take_missed();
            if !missed.is_empty() {
                ErasuresMissed { partitions: &missed }.emit(&self.telemetry);
            }
            for (partition, next) in topic.take_begun() {
                if sender.send(Heard::Begins { partition, next }).is_err() {
                    return Ok(());
                }
            }
            let mut said = Ok(());
            topic
                .poll(|message| {
                    // Too many until it is measured again, and never too few.
                    self.tell_lag(unread, shared.unsettled.fetch_add(1, Ordering::AcqRel) + 1);
                    said = self.say(message, sender);
                })
                .map_err(failed)?;
            if said.is_err() {
                return Ok(());
            }
            if !whole && topic.is_whole() {
                whole = true;
                if sender.send(Heard::Whole).is_err() {
                    return Ok(());
                }
            }
            if told_at.is_none_or(|told| told.elapsed() >= TELLING) {
                told_at = Some(Instant::now());
                unread = topic.look().map_err(failed)?;
                self.tell_lag(unread, shared.unsettled.load(Ordering::Acquire));
            }
        }
        Ok(())
    }

    fn tell_lag(&self, unread: Option<u64>, unsettled: u64) {
        ErasureLag { records: unread.map(|unread| unread + unsettled) }.emit(&self.telemetry);
    }

    /// Says whom a message names; waits while too much has been said that nobody has heard.
    fn say(&self, message: &BorrowedMessage<'_>, sender: &Sender<Heard>) -> Result<(), Over> {
        let (partition, next) = (message.partition(), message.offset() + 1);
        let person = match self.person(message.key()) {
            Ok(person) => {
                ErasureRequested.emit(&self.telemetry);
                Some(person)
            }
            Err(reason) => {
                ErasureRefused { partition, offset: message.offset(), reason }.emit(&self.telemetry);
                None
            }
        };
        sender.send(Heard::Message { person, partition, next }).map_err(|_| Over)
    }

    /// The keyed digest of the person that a key names.
    fn person(&self, key: Option<&[u8]>) -> Result<u64, RejectionReason> {
        let key = key.ok_or(RejectionReason::MissingField)?;
        if key.len() > MOST_KEY_BYTES {
            return Err(RejectionReason::Oversized);
        }
        let text = std::str::from_utf8(key).map_err(|_| RejectionReason::NotUtf8)?;
        match self.subjects.digest_once(Token::Untyped(text)) {
            Ok(NO_SUBJECT) => Err(RejectionReason::Empty),
            Ok(person) => Ok(person),
            Err(_) => Err(RejectionReason::WrongType),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::digest::DigestKey;
    use crate::records::schema::Schema;
    use std::path::Path;

    fn topic(kind: &str) -> TopicOfErasures {
        let text = format!("name = \"t\"\n[[attribute]]\nname = \"id\"\ntype = \"{kind}\"\nrole = \"subject\"\n");
        let schema = Schema::parse(&text, "t.toml", Path::new("")).expect("a schema");
        TopicOfErasures {
            cluster: Cluster::new("localhost:9", BTreeMap::new()),
            topic: "erasures".to_owned(),
            from: BTreeMap::new(),
            subjects: Subjects::new(Arc::clone(&schema.attributes[0]), &DigestKey([7; 32])),
            telemetry: Telemetry::new(3, &[]),
        }
    }

    #[test]
    fn spellings_name_one_person_and_what_names_nobody_says_why() {
        let (texts, numbers) = (topic("string"), topic("integer"));
        let anna = texts.person(Some(b"anna")).expect("a person");
        assert_eq!(texts.person(Some(b"  anna ")).expect("a person"), anna);
        assert_ne!(texts.person(Some(b"ANNA")).expect("a person"), anna);
        assert_eq!(numbers.person(Some(b"7.0")), numbers.person(Some(b"+7")));
        for (topic, key, reason) in [
            (&texts, None, RejectionReason::MissingField),
            (&texts, Some(&b""[..]), RejectionReason::Empty),
            (&texts, Some(&[0xff, 0xfe][..]), RejectionReason::NotUtf8),
            (&texts, Some(&[b'x'; MOST_KEY_BYTES + 1][..]), RejectionReason::Oversized),
            (&texts, Some(&[b'x'; 2000][..]), RejectionReason::WrongType),
            (&numbers, Some(&b"anna"[..]), RejectionReason::WrongType),
        ] {
            assert_eq!(topic.person(key), Err(reason));
        }
    }
}
