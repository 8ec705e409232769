//! The erasure topic: every message names a person by its key.
//!
//! Every instance reads the whole topic on a thread of its own. The thread digests the keys, collects people for an interval and requests
//! one erasure of all of them. The position in the topic becomes durable with that erasure, so that no name is passed over.

use super::{Answer, ErasureRequest, ErasureRequests, Order, RequestErasure};
use crate::daemon::requests::{Request, Requests};
use crate::daemon::state::store::binding::TopicPosition;
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::whole::{Reading, WholeTopic};
use crate::telemetry::{ErasureFailed, ErasureLag, ErasureMessage, ErasuresMissed, RejectionReason, Telemetry};
use crossbeam_channel::TryRecvError;
use rdkafka::Message;
use rdkafka::message::BorrowedMessage;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use throng_core::values::raw::Token;
use throng_core::values::subject::{NO_SUBJECT, Subjects};
use tokio::sync::oneshot;

/// Maximum number of people that wait for an erasure. At the limit the topic is not read on.
const MAX_WAITING: usize = 100_000;
/// Maximum length of a key: four times that of the longest text of a record.
const MAX_KEY_BYTES: usize = 4096;
/// Interval between two measurements of the lag.
const LAG_INTERVAL: Duration = Duration::from_secs(1);
/// Pause of a reader that has reached [`MAX_WAITING`].
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// Cause of the end of the reader.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum ErasureTopicError {
    #[error("erasure.topic: {0}")]
    Kafka(#[from] Box<KafkaFailure>),
    #[error("erasure.topic: its reader cannot be started: {0}")]
    Thread(std::io::Error),
    #[error("erasure.topic: its reader has ended without an error (this is a bug)")]
    Ended,
}

impl ErasureTopicError {
    /// Whether the operator must change something before another start makes sense.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Kafka(failure) if failure.is_usage())
    }
}

/// The topic and what its reader needs.
pub struct ErasureTopic {
    /// The brokers of the source.
    pub cluster: Cluster,
    /// Position up to which messages have been acted on.
    pub position: TopicPosition,
    /// Time from the first name to the erasure.
    pub interval: Duration,
    /// Digests people as those of the records are.
    pub subjects: Subjects,
    /// Receives events and the lag.
    pub telemetry: Telemetry,
}

/// Reader of the topic. The thread ends when this is dropped.
pub struct TopicReader {
    requests: ErasureRequests,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ErasureTopicError>>>,
}

impl Drop for TopicReader {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

impl TopicReader {
    /// Starts the thread.
    pub fn start(topic: ErasureTopic) -> Result<Self, ErasureTopicError> {
        let (sender, requests) = Requests::channel(1);
        // Unknown until the topic has been looked at.
        ErasureLag(None).emit(&topic.telemetry);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let body = move || topic.read(&sender, &|| over.load(Ordering::Acquire));
        let thread = std::thread::Builder::new().name("erasures".to_owned()).spawn(body);
        Ok(Self { requests, is_over, thread: Some(thread.map_err(ErasureTopicError::Thread)?) })
    }

    /// Returns the request that waits, if one does.
    pub fn next_request(&mut self) -> Result<Option<Request<ErasureRequest, Answer>>, ErasureTopicError> {
        match self.requests.try_recv() {
            Ok(request) => Ok(Some(request)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(match self.thread.take().map(JoinHandle::join) {
                Some(Ok(Err(error))) => error,
                _ => ErasureTopicError::Ended,
            }),
        }
    }
}

/// People and messages that wait for one erasure.
#[derive(Default)]
struct Collected {
    people: BTreeSet<u64>,
    messages: u64,
    /// Arrival of the first message.
    since: Option<Instant>,
    /// A partition has got its first position, which must be durable: messages that are deleted before they are read are missed only then.
    has_new_partition: bool,
    /// All messages of the start are among them: nobody who was named while the daemon was down waits longer.
    is_backlog: bool,
}

impl Collected {
    fn add(&mut self, person: Option<u64>) {
        self.people.extend(person);
        self.messages += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    fn is_full(&self) -> bool {
        self.people.len() >= MAX_WAITING
    }

    /// Takes everything once it is due.
    fn take_due(&mut self, interval: Duration) -> Option<Self> {
        let is_due = self.is_backlog || self.since.is_some_and(|since| since.elapsed() >= interval);
        let is_due = if self.messages > 0 { is_due } else { self.has_new_partition };
        is_due.then(|| std::mem::take(self))
    }

    /// Takes back what could not be erased; it waits for another interval.
    fn put_back(&mut self, failed: Self) {
        self.people.extend(failed.people);
        self.messages += failed.messages;
        self.since = Some(Instant::now());
        self.has_new_partition = true;
    }
}

impl ErasureTopic {
    fn read(mut self, requests: &RequestErasure, is_over: &dyn Fn() -> bool) -> Result<(), ErasureTopicError> {
        let (group, what) = ("throng.erasures.reader", "cannot read who is to be erased");
        let TopicPosition { topic, next } = self.position.clone();
        let Some(mut topic) =
            WholeTopic::open(&self.cluster, Reading { topic, group, what, from: next }, is_over).map_err(Box::new)?
        else {
            return Ok(());
        };
        let (mut waiting, mut is_whole) = (Collected::default(), false);
        let mut requested: Option<(Collected, oneshot::Receiver<Answer>)> = None;
        let (mut unread, mut measured_at) = (None, None::<Instant>);
        while !is_over() {
            let missed = topic.take_missed();
            if !missed.is_empty() {
                ErasuresMissed(&missed).emit(&self.telemetry);
            }
            for (partition, next) in topic.take_begun() {
                waiting.has_new_partition |= *self.position.next.entry(partition).or_insert(next) == next;
            }
            if waiting.is_full() {
                std::thread::sleep(FULL_PAUSE);
            } else {
                topic.poll(|message| waiting.add(self.take(message))).map_err(Box::new)?;
            }
            if !is_whole && topic.is_whole() {
                (is_whole, waiting.is_backlog) = (true, waiting.messages > 0);
            }
            if let Some((collected, answered)) = &mut requested {
                match answered.try_recv() {
                    Err(oneshot::error::TryRecvError::Empty) => {}
                    Err(oneshot::error::TryRecvError::Closed) => return Ok(()),
                    Ok(answer) => {
                        if let Err(error) = answer {
                            ErasureFailed(&error).emit(&self.telemetry);
                            waiting.put_back(std::mem::take(collected));
                        }
                        requested = None;
                    }
                }
            } else if let Some(collected) = waiting.take_due(self.interval) {
                let (people, position) = (collected.people.clone(), Some(self.position.clone()));
                let order = Order { people, dry_run: false, by: "topic", position };
                let Ok(answered) = requests.send(ErasureRequest::Digests(order)) else { return Ok(()) };
                requested = Some((collected, answered));
            }
            if measured_at.is_none_or(|at| at.elapsed() >= LAG_INTERVAL) {
                (measured_at, unread) = (Some(Instant::now()), topic.look().map_err(Box::new)?);
            }
            // Between two measurements the lag is too high rather than too low.
            let undone = waiting.messages + requested.as_ref().map_or(0, |(collected, _)| collected.messages);
            ErasureLag(unread.map(|unread| unread + undone)).emit(&self.telemetry);
        }
        Ok(())
    }

    /// Returns the person that a message names, if it names one, and moves the position behind it.
    fn take(&mut self, message: &BorrowedMessage<'_>) -> Option<u64> {
        let (partition, offset) = (message.partition(), message.offset());
        self.position.next.insert(partition, offset + 1);
        let person = self.person(message.key());
        ErasureMessage { partition, offset, refused: person.err() }.emit(&self.telemetry);
        person.ok()
    }

    /// Keyed digest of the person that a key names.
    fn person(&self, key: Option<&[u8]>) -> Result<u64, RejectionReason> {
        let key = key.ok_or(RejectionReason::MissingField)?;
        if key.len() > MAX_KEY_BYTES {
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
    use std::collections::BTreeMap;
    use std::path::Path;
    use throng_core::values::digest::DigestKey;
    use throng_core::values::schema::Schema;

    const HOUR: Duration = Duration::from_hours(1);

    fn taken(waiting: &mut Collected, interval: Duration) -> Option<(Vec<u64>, u64)> {
        waiting.take_due(interval).map(|due| (due.people.into_iter().collect(), due.messages))
    }

    #[test]
    fn names_wait_for_the_interval_and_those_of_the_start_do_not() {
        let mut waiting = Collected::default();
        assert_eq!(taken(&mut waiting, Duration::ZERO), None, "nothing has been read");
        [Some(7), None, Some(7)].into_iter().for_each(|person| waiting.add(person));
        assert_eq!(taken(&mut waiting, HOUR), None);
        waiting.is_backlog = true;
        assert_eq!(taken(&mut waiting, HOUR), Some((vec![7], 3)));
        waiting.add(Some(8));
        assert_eq!(taken(&mut waiting, HOUR), None);
        assert_eq!(taken(&mut waiting, Duration::ZERO), Some((vec![8], 1)));
        waiting.add(None);
        assert_eq!(taken(&mut waiting, Duration::ZERO), Some((Vec::new(), 1)), "a message that names nobody is passed");
        // The first position of a partition is durable before anybody is named, or together with those who wait.
        waiting.has_new_partition = true;
        assert_eq!(taken(&mut waiting, HOUR), Some((Vec::new(), 0)));
        waiting.add(Some(9));
        waiting.has_new_partition = true;
        assert_eq!(taken(&mut waiting, HOUR), None);
        assert_eq!(taken(&mut waiting, Duration::ZERO), Some((vec![9], 1)));
        assert_eq!(taken(&mut waiting, Duration::ZERO), None);
    }

    #[test]
    fn failed_erasure_waits_for_another_interval_with_later_names() {
        let mut waiting = Collected::default();
        waiting.add(Some(7));
        let failed = waiting.take_due(Duration::ZERO).expect("it is due");
        waiting.add(Some(8));
        waiting.put_back(failed);
        assert_eq!(taken(&mut waiting, HOUR), None);
        assert_eq!(taken(&mut waiting, Duration::ZERO), Some((vec![7, 8], 2)));
        (1..MAX_WAITING as u64).for_each(|person| waiting.add(Some(person)));
        assert!(!waiting.is_full());
        waiting.add(Some(u64::MAX));
        assert!(waiting.is_full(), "the others wait in the topic");
    }

    #[test]
    fn reader_that_has_ended_is_an_error() {
        let (_, requests) = Requests::channel(1);
        let mut reader = TopicReader { requests, is_over: Arc::default(), thread: None };
        assert!(matches!(reader.next_request(), Err(ErasureTopicError::Ended)));
    }

    fn topic(kind: &str) -> ErasureTopic {
        let text = format!("name = \"t\"\n[[attribute]]\nname = \"id\"\ntype = \"{kind}\"\nrole = \"subject\"\n");
        let schema = Schema::parse(&text, "t.toml", Path::new("")).expect("a schema");
        ErasureTopic {
            cluster: Cluster::new("localhost:9", BTreeMap::new()),
            position: TopicPosition { topic: "erasures".to_owned(), next: BTreeMap::new() },
            interval: HOUR,
            subjects: Subjects::new(Arc::clone(&schema.attributes[0]), &DigestKey([7; 32])),
            telemetry: Telemetry::new(3, &[]),
        }
    }

    #[test]
    fn keys_name_a_person_in_any_spelling_or_are_refused_with_a_reason() {
        let (texts, numbers) = (topic("string"), topic("integer"));
        let anna = texts.person(Some(b"anna")).expect("a person");
        assert_eq!(texts.person(Some(b"  anna ")).expect("a person"), anna);
        assert_ne!(texts.person(Some(b"ANNA")).expect("a person"), anna);
        assert_eq!(numbers.person(Some(b"7.0")), numbers.person(Some(b"+7")));
        for (topic, key, reason) in [
            (&texts, None, RejectionReason::MissingField),
            (&texts, Some(&b""[..]), RejectionReason::Empty),
            (&texts, Some(&[0xff, 0xfe][..]), RejectionReason::NotUtf8),
            (&texts, Some(&[b'x'; MAX_KEY_BYTES + 1][..]), RejectionReason::Oversized),
            (&texts, Some(&[b'x'; 2000][..]), RejectionReason::WrongType),
            (&numbers, Some(&b"anna"[..]), RejectionReason::WrongType),
        ] {
            assert_eq!(topic.person(key), Err(reason));
        }
    }
}
