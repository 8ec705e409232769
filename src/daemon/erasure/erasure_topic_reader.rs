//! Reader of the erasure topic: message keys name subjects, which are erased at intervals. The position becomes durable
//! with the erasure.

use super::{ErasureAnswer, ErasureOrder, ErasureReceiver, ErasureRequest, ErasureSender};
use crate::daemon::requests::{PendingRequest, RequestSender};
use crate::daemon::state::store::state_binding::TopicPosition;
use crate::telemetry::{ErasureFailed, ErasureLag, ErasureMessage, ErasuresMissed, RejectionReason, Telemetry};
use crossbeam_channel::TryRecvError;
use rdkafka::Message;
use rdkafka::message::BorrowedMessage;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use throng_core::values::raw_batch::RawToken;
use throng_core::values::subject_digest::{NO_SUBJECT, SubjectDigester};
use throng_kafka::connection::{KafkaCluster, KafkaFailure};
use throng_kafka::whole_topic::{TopicReadRequest, WholeTopic};
use tokio::sync::oneshot;

/// At this limit, reading pauses.
const MAX_PENDING_SUBJECTS: usize = 100_000;
const MAX_KEY_BYTES: usize = 4096;
const LAG_INTERVAL: Duration = Duration::from_secs(1);
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// Error that ended the reader.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum ErasureTopicError {
    #[error("erasure.topic: {0}")]
    Kafka(#[from] Box<KafkaFailure>),
    #[error("erasure.topic: cannot start the reader of the topic: {0}")]
    Thread(std::io::Error),
    #[error("erasure.topic: the reader of the topic ended without an error (this is a bug: please report it)")]
    Ended,
}

impl ErasureTopicError {
    /// Returns true if a restart needs a change by the operator.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Kafka(failure) if failure.is_usage())
    }
}

/// Topic and inputs of its reader.
pub struct ErasureTopic {
    /// Brokers of the source.
    pub cluster: KafkaCluster,
    /// Position of the next messages.
    pub position: TopicPosition,
    /// Time from the first message to the erasure.
    pub interval: Duration,
    /// Digests subjects as the records' subjects are digested.
    pub subjects: SubjectDigester,
    /// Receiver of events and the lag.
    pub telemetry: Telemetry,
}

/// Reader of the topic; its thread ends on drop.
pub struct TopicReader {
    requests: ErasureReceiver,
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
        let (sender, requests) = RequestSender::channel(1);
        ErasureLag(None).emit(&topic.telemetry);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let body = move || topic.read(&sender, &|| over.load(Ordering::Acquire));
        let thread = std::thread::Builder::new().name("erasures".to_owned()).spawn(body);
        Ok(Self { requests, is_over, thread: Some(thread.map_err(ErasureTopicError::Thread)?) })
    }

    /// Returns the pending request, if any.
    pub fn next_request(&mut self) -> Result<Option<PendingRequest<ErasureRequest, ErasureAnswer>>, ErasureTopicError> {
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

#[derive(Default)]
struct PendingErasures {
    pending_subjects: BTreeSet<u64>,
    messages: u64,
    since: Option<Instant>,
    /// The first position must become durable, to detect messages deleted before they are read.
    has_new_partition: bool,
    /// Messages of the initial read wait no longer.
    is_backlog: bool,
}

impl PendingErasures {
    fn add(&mut self, person: Option<u64>) {
        self.pending_subjects.extend(person);
        self.messages += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    fn is_full(&self) -> bool {
        self.pending_subjects.len() >= MAX_PENDING_SUBJECTS
    }

    fn take_due(&mut self, interval: Duration) -> Option<Self> {
        let is_due = self.is_backlog || self.since.is_some_and(|since| since.elapsed() >= interval);
        let is_due = if self.messages > 0 { is_due } else { self.has_new_partition };
        is_due.then(|| std::mem::take(self))
    }

    fn put_back(&mut self, failed: Self) {
        self.pending_subjects.extend(failed.pending_subjects);
        self.messages += failed.messages;
        self.since = Some(Instant::now());
        self.has_new_partition = true;
    }
}

impl ErasureTopic {
    fn read(mut self, requests: &ErasureSender, is_over: &dyn Fn() -> bool) -> Result<(), ErasureTopicError> {
        let (group, what) = ("throng.erasures.reader", "cannot read the erasure requests");
        let TopicPosition { topic, next } = self.position.clone();
        let Some(mut topic) =
            WholeTopic::open(&self.cluster, TopicReadRequest { topic, group, what, from: next }, is_over)
                .map_err(Box::new)?
        else {
            return Ok(());
        };
        let (mut waiting, mut is_whole) = (PendingErasures::default(), false);
        let mut requested: Option<(PendingErasures, oneshot::Receiver<ErasureAnswer>)> = None;
        let (mut unread, mut measured_at) = (None, None::<Instant>);
        while !is_over() {
            let missed = topic.take_lossy_partitions();
            if !missed.is_empty() {
                ErasuresMissed(&missed).emit(&self.telemetry);
            }
            for (partition, next) in topic.take_new_partitions() {
                waiting.has_new_partition |= *self.position.next.entry(partition).or_insert(next) == next;
            }
            if waiting.is_full() {
                std::thread::sleep(FULL_PAUSE);
            } else {
                topic.poll(|message| waiting.add(self.read_message(message))).map_err(Box::new)?;
            }
            if !is_whole && topic.has_reached_initial_end() {
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
                let (people, position) = (collected.pending_subjects.clone(), Some(self.position.clone()));
                let order = ErasureOrder { subject_digests: people, dry_run: false, by: "topic", position };
                let Ok(answered) = requests.send(ErasureRequest::Digests(order)) else { return Ok(()) };
                requested = Some((collected, answered));
            }
            if measured_at.is_none_or(|at| at.elapsed() >= LAG_INTERVAL) {
                (measured_at, unread) = (Some(Instant::now()), topic.measure_lag().map_err(Box::new)?);
            }
            // Between two measurements the lag is an upper bound.
            let undone = waiting.messages + requested.as_ref().map_or(0, |(collected, _)| collected.messages);
            ErasureLag(unread.map(|unread| unread + undone)).emit(&self.telemetry);
        }
        Ok(())
    }

    fn read_message(&mut self, message: &BorrowedMessage<'_>) -> Option<u64> {
        let (partition, offset) = (message.partition(), message.offset());
        self.position.next.insert(partition, offset + 1);
        let person = self.subject_of_key(message.key());
        ErasureMessage { partition, offset, refused: person.err() }.emit(&self.telemetry);
        person.ok()
    }

    fn subject_of_key(&self, key: Option<&[u8]>) -> Result<u64, RejectionReason> {
        let key = key.ok_or(RejectionReason::MissingField)?;
        if key.len() > MAX_KEY_BYTES {
            return Err(RejectionReason::Oversized);
        }
        let text = std::str::from_utf8(key).map_err(|_| RejectionReason::NotUtf8)?;
        match self.subjects.digest_uncached(RawToken::Untyped(text)) {
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

    fn take_due_contents(waiting: &mut PendingErasures, interval: Duration) -> Option<(Vec<u64>, u64)> {
        waiting.take_due(interval).map(|due| (due.pending_subjects.into_iter().collect(), due.messages))
    }

    #[test]
    fn pending_erasures_wait_for_interval_except_initial_backlog() {
        let mut waiting = PendingErasures::default();
        assert_eq!(take_due_contents(&mut waiting, Duration::ZERO), None, "nothing has been read");
        [Some(7), None, Some(7)].into_iter().for_each(|person| waiting.add(person));
        assert_eq!(take_due_contents(&mut waiting, HOUR), None);
        waiting.is_backlog = true;
        assert_eq!(take_due_contents(&mut waiting, HOUR), Some((vec![7], 3)));
        waiting.add(Some(8));
        assert_eq!(take_due_contents(&mut waiting, HOUR), None);
        assert_eq!(take_due_contents(&mut waiting, Duration::ZERO), Some((vec![8], 1)));
        waiting.add(None);
        assert_eq!(
            take_due_contents(&mut waiting, Duration::ZERO),
            Some((Vec::new(), 1)),
            "a message that names nobody is passed"
        );
        waiting.has_new_partition = true;
        assert_eq!(take_due_contents(&mut waiting, HOUR), Some((Vec::new(), 0)));
        waiting.add(Some(9));
        waiting.has_new_partition = true;
        assert_eq!(take_due_contents(&mut waiting, HOUR), None);
        assert_eq!(take_due_contents(&mut waiting, Duration::ZERO), Some((vec![9], 1)));
        assert_eq!(take_due_contents(&mut waiting, Duration::ZERO), None);
    }

    #[test]
    fn failed_erasure_is_retried_after_another_interval() {
        let mut waiting = PendingErasures::default();
        waiting.add(Some(7));
        let failed = waiting.take_due(Duration::ZERO).expect("it is due");
        waiting.add(Some(8));
        waiting.put_back(failed);
        assert_eq!(take_due_contents(&mut waiting, HOUR), None);
        assert_eq!(take_due_contents(&mut waiting, Duration::ZERO), Some((vec![7, 8], 2)));
        (1..MAX_PENDING_SUBJECTS as u64).for_each(|person| waiting.add(Some(person)));
        assert!(!waiting.is_full());
        waiting.add(Some(u64::MAX));
        assert!(waiting.is_full(), "the others wait in the topic");
    }

    #[test]
    fn erasure_topic_reader_end_is_an_error() {
        let (_, requests) = RequestSender::channel(1);
        let mut reader = TopicReader { requests, is_over: Arc::default(), thread: None };
        assert!(matches!(reader.next_request(), Err(ErasureTopicError::Ended)));
    }

    fn erasure_topic_of(kind: &str) -> ErasureTopic {
        let text = format!("name = \"t\"\n[[attribute]]\nname = \"id\"\ntype = \"{kind}\"\nrole = \"subject\"\n");
        let schema = Schema::parse(&text, "t.toml", Path::new("")).expect("a schema");
        ErasureTopic {
            cluster: KafkaCluster::new("localhost:9", BTreeMap::new()),
            position: TopicPosition { topic: "erasures".to_owned(), next: BTreeMap::new() },
            interval: HOUR,
            subjects: SubjectDigester::new(Arc::clone(&schema.attributes[0]), &DigestKey([7; 32])),
            telemetry: Telemetry::new(3, &[]),
        }
    }

    #[test]
    fn erasure_key_gives_subject_or_rejection_reason() {
        let (texts, numbers) = (erasure_topic_of("string"), erasure_topic_of("integer"));
        let anna = texts.subject_of_key(Some(b"anna")).expect("a person");
        assert_eq!(texts.subject_of_key(Some(b"  anna ")).expect("a person"), anna);
        assert_ne!(texts.subject_of_key(Some(b"ANNA")).expect("a person"), anna);
        assert_eq!(numbers.subject_of_key(Some(b"7.0")), numbers.subject_of_key(Some(b"+7")));
        for (topic, key, reason) in [
            (&texts, None, RejectionReason::MissingField),
            (&texts, Some(&b""[..]), RejectionReason::Empty),
            (&texts, Some(&[0xff, 0xfe][..]), RejectionReason::NotUtf8),
            (&texts, Some(&[b'x'; MAX_KEY_BYTES + 1][..]), RejectionReason::Oversized),
            (&texts, Some(&[b'x'; 2000][..]), RejectionReason::WrongType),
            (&numbers, Some(&b"anna"[..]), RejectionReason::WrongType),
        ] {
            assert_eq!(topic.subject_of_key(key), Err(reason));
        }
    }
}
