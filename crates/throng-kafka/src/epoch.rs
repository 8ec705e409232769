//! New producer for every transaction (decision 0017), created while the next batch is treated. A late commit request
//! would otherwise commit records of the next transaction.

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

/// The client continues the operation between calls.
const INIT_STEP_TIMEOUT: Duration = Duration::from_millis(25);

/// Below the client's retry delay of 500 ms: its retry would take the epoch from its replacement.
const QUIET_PERIOD: Duration = Duration::from_millis(400);

/// Maximum number of replacements.
const MAX_REPLACEMENTS: u32 = 8;

const METADATA_TIMEOUT: Duration = Duration::from_millis(500);

const READ_TIMEOUT: Duration = Duration::from_secs(1);

const RECOMMIT_PERIOD: Duration = Duration::from_secs(60);

const CREDENTIAL_RETRY_DELAY: Duration = Duration::from_millis(500);

const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

struct DecidedProducer {
    writer: TransactionProducer,
    marker: BatchMarker,
    sent: Vec<SentOffset>,
}

enum NextProducer {
    Ready(TransactionProducer),
    InCreation,
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
    /// `None` without a consumer group.
    committed_check: Option<OffsetCheck>,
    over: Arc<AtomicBool>,
}

impl ProducerSequence {
    /// Takes over the transactional id; the markers are then final.
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

    /// Returns a producer for one transaction; waits unless `stop` is set.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] if another instance has the id, or the client has failed.
    pub fn take_producer(&mut self, stop: &AtomicBool) -> Result<TransactionProducer, DeliveryError> {
        match std::mem::replace(&mut self.next, NextProducer::NoProducer) {
            NextProducer::Ready(writer) => Ok(writer),
            NextProducer::InCreation => self.await_next_producer(stop, Duration::MAX),
            NextProducer::NoProducer => Err(no_producer_error()),
        }
    }

    /// Waits until the last offsets are committed.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] after `patience`.
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
        // The consumer may end next; its group must not be queried then.
        self.over.store(true, Ordering::Release);
        Err(DeliveryError::Fatal(why.to_owned()))
    }

    /// Takes back the producer of a decided transaction, and requests the next one.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] if none can be created.
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
                // Continues with a new epoch: no epoch has two transactions.
                Ok(()) => {}
                Err(DeliveryError::Aborted(why)) => tracing::debug!(%why, "offsets not committed yet"),
                Err(fatal) => return Err(fatal),
            }
        }
    }

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

    fn create_producer(&self, enough: impl Fn() -> bool) -> Result<TransactionProducer, KafkaFailure> {
        let (mut writer, mut since, mut others) = (self.new_client()?, Instant::now(), 0);
        loop {
            match writer.init_transactions(INIT_STEP_TIMEOUT) {
                Ok(()) => return Ok(writer),
                // The last transaction is still being written. A new client asks immediately; this one would wait 500
                // ms.
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
            // Serves the callbacks of refusals.
            writer.poll(Duration::ZERO);
        }
    }

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

    fn new_client(&self) -> Result<TransactionProducer, KafkaFailure> {
        let settings = self.cluster.producer(&self.transactional_id);
        let writer: TransactionProducer = settings
            .create("cannot create the producer", ProducerReports::new(settings.shared_refusals(), &self.topics))?;
        // Otherwise the first record requests the metadata, during the transaction.
        for topic in &self.topics {
            if let Err(error) = writer.client().fetch_metadata(Some(topic), METADATA_TIMEOUT) {
                tracing::debug!(%error, "metadata of the output topics not available yet");
                break;
            }
        }
        Ok(writer)
    }

    /// Another writer of markers under this id has continued with a copy of this state.
    fn check_ownership(&self, watch: &mut MarkerWatch, last: BatchMarker) -> Result<(), DeliveryError> {
        let markers = self.read_until_answered("the markers", || watch.read_new_markers(READ_TIMEOUT))?;
        if markers.iter().all(|marker| *marker == last) {
            return Ok(());
        }
        let why = "another instance has continued with a copy of this state under our transactional id (stop one of the two: each instance needs its own state.path)";
        Err(DeliveryError::Fatal(why.to_owned()))
    }
}
