//! New producer epoch for every transaction.
//!
//! The client repeats requests on new connections without reporting it. The first request of a commit may arrive
//! after the second one is answered. Under the same epoch it would commit records of the next transaction.
//!
//! Each transaction therefore has a new producer. Its `init_transactions` makes the broker refuse late requests of
//! earlier producers (decision 0017). A separate thread creates it while the next batch is treated, and provides it
//! when the offsets of the last transaction are known to be committed.

use super::connection::{KafkaCluster, KafkaFailure};
use super::marker::{BatchMarker, MarkerWatch};
use super::offset_check::{OffsetCheck, SentOffset, lost_offsets_error};
use super::producer::{SHUTDOWN_TIMEOUT, TransactionProducer};
use super::reports::ProducerReports;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::Producer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use throng_core::faults::crash_point;
use throng_core::stream::release_sink::DeliveryError;

/// Timeout of one call of `init_transactions`. The client continues the operation between calls.
const INIT_STEP_TIMEOUT: Duration = Duration::from_millis(25);

/// Time in which a client that must retry later sends no request; it retries after 500 ms. Its replacement must be
/// created earlier, or the retry would take the epoch from the replacement.
const QUIET_PERIOD: Duration = Duration::from_millis(400);

/// Largest number of clients that replace one that must retry later.
const MAX_REPLACEMENTS: u32 = 8;

/// Timeout for the metadata of a topic. The client requests missing metadata again.
const METADATA_TIMEOUT: Duration = Duration::from_millis(500);

/// Timeout of one read of the markers or the offsets before it is repeated.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// Time in which lost offsets are committed again before this counts as a failure.
const RECOMMIT_PERIOD: Duration = Duration::from_secs(60);

/// Retry delay while the credential files do not match, because they are being replaced.
const CREDENTIAL_RETRY_DELAY: Duration = Duration::from_millis(500);

/// Interval at which the wait for a producer checks for the end of the daemon.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Producer of a decided transaction.
struct DecidedProducer {
    /// Dropped when the next producer exists.
    writer: TransactionProducer,
    /// Marker that its transaction wrote, committed or not.
    marker: BatchMarker,
    sent: Vec<SentOffset>,
}

enum NextProducer {
    Ready(TransactionProducer),
    InCreation,
    /// In use, or no longer available.
    NoProducer,
}

/// Sequence of producers with the same transactional id.
pub struct ProducerSequence {
    used: Option<Sender<DecidedProducer>>,
    made: Receiver<Result<TransactionProducer, DeliveryError>>,
    next: NextProducer,
    maker: Option<JoinHandle<()>>,
    over: Arc<AtomicBool>,
}

struct ProducerFactory {
    cluster: KafkaCluster,
    transactional_id: String,
    topics: Vec<String>,
    /// Check of the committed offsets; `NoProducer` without a consumer group.
    committed_check: Option<OffsetCheck>,
    over: Arc<AtomicBool>,
}

impl ProducerSequence {
    /// Takes over the transactional id from any other producer. The markers are final afterwards, and show the caller
    /// another instance with a copy of this state.
    pub fn open(
        cluster: &KafkaCluster,
        transactional_id: &str,
        changelog: &str,
        written: Vec<String>,
        standing: Option<OffsetCheck>,
        patience: Duration,
    ) -> Result<Self, KafkaFailure> {
        let over = Arc::new(AtomicBool::new(false));
        let mut topics = written;
        topics.push(changelog.to_owned());
        let maker = ProducerFactory {
            cluster: cluster.clone(),
            transactional_id: transactional_id.to_owned(),
            topics,
            committed_check: standing,
            over: Arc::clone(&over),
        };
        let deadline = Instant::now() + patience;
        let first = maker.create_producer(|| Instant::now() >= deadline)?;
        let watch = MarkerWatch::start_at_end(cluster, changelog, transactional_id)?;
        let (used, used_out) = crossbeam_channel::unbounded();
        let (made_in, made) = crossbeam_channel::unbounded();
        let maker = std::thread::spawn(move || maker.serve(watch, &used_out, &made_in));
        Ok(Self { used: Some(used), made, next: NextProducer::Ready(first), maker: Some(maker), over })
    }

    /// Returns a producer for one transaction. Waits without a limit, unless `stop` is set.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] when no producer will be available: another instance has taken over the id, or the
    /// client has failed.
    pub fn take_producer(&mut self, stop: &AtomicBool) -> Result<TransactionProducer, DeliveryError> {
        match std::mem::replace(&mut self.next, NextProducer::NoProducer) {
            NextProducer::Ready(writer) => Ok(writer),
            NextProducer::InCreation => self.await_next_producer(stop, Duration::MAX),
            NextProducer::NoProducer => Err(no_producer_error()),
        }
    }

    /// Waits until the offsets of the last transaction are committed, that is, until the next producer is available.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] when this takes longer than `patience`, or is not possible.
    pub fn await_committed_offsets(&mut self, stop: &AtomicBool, patience: Duration) -> Result<(), DeliveryError> {
        if !matches!(self.next, NextProducer::InCreation) {
            return Ok(());
        }
        self.next = NextProducer::NoProducer;
        self.next = NextProducer::Ready(self.await_next_producer(stop, patience)?);
        Ok(())
    }

    fn await_next_producer(&self, stop: &AtomicBool, patience: Duration) -> Result<TransactionProducer, DeliveryError> {
        let since = Instant::now();
        let why = loop {
            match self.made.recv_timeout(STOP_CHECK_INTERVAL) {
                Ok(made) => return made,
                Err(RecvTimeoutError::Timeout)
                    if stop.load(Ordering::Acquire) && since.elapsed() >= SHUTDOWN_TIMEOUT =>
                {
                    break "stopped while waiting for an answer of the broker";
                }
                Err(RecvTimeoutError::Timeout) if since.elapsed() >= patience => {
                    break "timeout while reading the committed offsets";
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(no_producer_error()),
            }
        };
        // The consumer may end next, and its group must not be queried after that.
        self.over.store(true, Ordering::Release);
        Err(DeliveryError::Fatal(why.to_owned()))
    }

    /// Takes back the producer of a decided transaction, which committed the offsets `sent`, and requests the next
    /// producer.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] when no producer can be created any more.
    pub fn request_next(
        &mut self,
        writer: TransactionProducer,
        marker: BatchMarker,
        sent: Vec<SentOffset>,
    ) -> Result<(), DeliveryError> {
        let sender = self.used.as_ref().ok_or_else(no_producer_error)?;
        sender.send(DecidedProducer { writer, marker, sent }).map_err(|_| no_producer_error())?;
        self.next = NextProducer::InCreation;
        Ok(())
    }
}

fn no_producer_error() -> DeliveryError {
    DeliveryError::Fatal("cannot create a new producer".to_owned())
}

impl Drop for ProducerSequence {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.used = None;
        if self.maker.take().is_some_and(|maker| maker.join().is_err()) {
            tracing::error!("the thread that creates producers has panicked");
        }
    }
}

impl ProducerFactory {
    fn serve(
        &self,
        mut watch: MarkerWatch,
        used: &Receiver<DecidedProducer>,
        made: &Sender<Result<TransactionProducer, DeliveryError>>,
    ) {
        for DecidedProducer { writer, marker, sent } in used {
            let since = Instant::now();
            let next = self.create_next(&mut watch, marker, &sent);
            tracing::debug!(ms = since.elapsed().as_secs_f64() * 1000.0, "new producer epoch");
            if self.is_over() || made.send(next).is_err() {
                return;
            }
            drop(writer);
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Creates the producer of the next transaction, and waits until the offsets of the last one are committed.
    fn create_next(
        &self,
        watch: &mut MarkerWatch,
        last: BatchMarker,
        sent: &[SentOffset],
    ) -> Result<TransactionProducer, DeliveryError> {
        let since = Instant::now();
        loop {
            let next = self.create_with_retry()?;
            crash_point("epoch-taken");
            self.check_ownership(watch, last)?;
            let Some(standing) = &self.committed_check else { return Ok(next) };
            let behind =
                self.read_until_answered("the committed offsets", || standing.uncommitted_offsets(sent, READ_TIMEOUT))?;
            if behind.is_empty() {
                return Ok(next);
            }
            if self.is_over() {
                return Err(no_producer_error());
            }
            if since.elapsed() >= RECOMMIT_PERIOD {
                return Err(lost_offsets_error(&behind, "committing them again failed"));
            }
            tracing::warn!(
                partitions = behind.len(),
                "the broker lost offsets of a committed batch: committing them again"
            );
            match standing.commit_again(&next, &behind, &self.over) {
                // Continues with a new epoch, because no epoch has two transactions. A late request may also arrive
                // twice.
                Ok(()) => {}
                Err(DeliveryError::Aborted(why)) => tracing::debug!(%why, "offsets not committed yet"),
                Err(fatal) => return Err(fatal),
            }
        }
    }

    /// Repeats a read until the cluster answers, or until no producer is needed any more.
    fn read_until_answered<T>(
        &self,
        what: &'static str,
        mut read: impl FnMut() -> Result<T, KafkaFailure>,
    ) -> Result<T, DeliveryError> {
        loop {
            match read() {
                Ok(found) => return Ok(found),
                Err(error) => tracing::debug!(%error, "cannot read {what} yet"),
            }
            if self.is_over() {
                return Err(no_producer_error());
            }
        }
    }

    /// Creates a producer with a new epoch, until `enough` is true.
    fn create_producer(&self, enough: impl Fn() -> bool) -> Result<TransactionProducer, KafkaFailure> {
        let (mut writer, mut since, mut others) = (self.new_client()?, Instant::now(), 0);
        loop {
            match writer.init_transactions(INIT_STEP_TIMEOUT) {
                Ok(()) => return Ok(writer),
                // The end of the last transaction is still being written to its partitions. This client would retry
                // after 500 ms; a new client asks immediately.
                Err(KafkaError::Transaction(e))
                    if e.code() == RDKafkaErrorCode::ConcurrentTransactions
                        && since.elapsed() < QUIET_PERIOD
                        && others < MAX_REPLACEMENTS
                        && !enough() =>
                {
                    (writer, since, others) = (self.new_client()?, Instant::now(), others + 1);
                }
                Err(KafkaError::Transaction(e)) if e.is_retriable() && !enough() => {}
                Err(e) => {
                    let right = format!("use the transactional id {:?} (Write and Describe)", self.transactional_id);
                    let failure = self.cluster.failure_of("cannot begin transactions", right, e);
                    return Err(self.cluster.current_refusal().unwrap_or(failure));
                }
            }
            // The callbacks that record refusals run in a poll.
            writer.poll(Duration::ZERO);
        }
    }

    /// Creates a producer while the daemon runs. Retries while the credential files are being replaced.
    fn create_with_retry(&self) -> Result<TransactionProducer, DeliveryError> {
        loop {
            match self.create_producer(|| self.is_over()) {
                Err(error @ (KafkaFailure::Files { .. } | KafkaFailure::Secret { .. })) if !self.is_over() => {
                    tracing::warn!(%error, "cannot create a producer: retrying");
                    std::thread::sleep(CREDENTIAL_RETRY_DELAY);
                }
                made => return made.map_err(|error| DeliveryError::Fatal(error.to_string())),
            }
        }
    }

    /// Creates a producer that has the metadata of its topics and no epoch yet.
    fn new_client(&self) -> Result<TransactionProducer, KafkaFailure> {
        let settings = self.cluster.producer(&self.transactional_id);
        let writer: TransactionProducer = settings
            .create("cannot create the producer", ProducerReports::new(settings.shared_refusals(), &self.topics))?;
        // Otherwise the client requests the metadata with the first record, during the transaction.
        for topic in &self.topics {
            if let Err(error) = writer.client().fetch_metadata(Some(topic), METADATA_TIMEOUT) {
                tracing::debug!(%error, "metadata of the output topics not available yet");
                break;
            }
        }
        Ok(writer)
    }

    /// Checks that no other instance has written markers under the same id since the last transaction. Such an
    /// instance has continued with a copy of this state.
    fn check_ownership(&self, watch: &mut MarkerWatch, last: BatchMarker) -> Result<(), DeliveryError> {
        let markers = self.read_until_answered("the markers", || watch.read_new_markers(READ_TIMEOUT))?;
        if markers.iter().all(|marker| *marker == last) {
            return Ok(());
        }
        let why = "another instance has continued with a copy of this state under our transactional id (stop one of the two: each instance needs its own state.path)";
        Err(DeliveryError::Fatal(why.to_owned()))
    }
}
