//! A producer epoch of its own for every transaction.
//!
//! The client repeats requests by itself, on new connections, and says nothing of it. A commit whose first request is still
//! on its way when the second one is answered would, under the same epoch, commit whatever the next transaction has written
//! by then. So no epoch has two transactions: each has a new producer, whose `init_transactions` makes the broker refuse
//! everything that is still to come of the ones before (decision 0017). It is made as soon as the last transaction is
//! decided, on a thread of its own, while the next batch is being treated. There is none before the offsets of the last
//! transaction are known to stand.

use super::connection::{Cluster, KafkaFailure};
use super::marker::{Marker, Watch};
use super::producer::{PARTING, Writer};
use super::reports::Reports;
use super::standing::{Sent, Standing, forgotten};
use crate::faults::crash_point;
use crate::release::sink::DeliveryError;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::Producer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long one turn of `init_transactions` may take; it goes on by itself between two turns.
const TURN: Duration = Duration::from_millis(25);

/// How long a client that was told to ask later keeps quiet: it asks again after half a second. Only then may another one
/// take its place, or its next request would take the epoch from the other.
const PAUSE: Duration = Duration::from_millis(400);

/// How often another client is tried in place of one that was told to ask later.
const OTHERS: u32 = 8;

/// How long the description of a topic may take. Whatever is not known then, the client asks for again.
const METADATA: Duration = Duration::from_millis(500);

/// How long one read of the markers, or of the offsets, may take before it is tried again.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// How long forgotten offsets are committed again before that is given up.
const AGAIN: Duration = Duration::from_secs(60);

/// How long files are waited for that do not belong together yet.
const CHANGING: Duration = Duration::from_millis(500);

/// How long the next producer is waited for between two looks at the daemon's end.
const LOOK: Duration = Duration::from_millis(20);

/// What has come of an epoch.
struct Used {
    /// Goes when the next one is there.
    writer: Writer,
    /// What its transaction has said in the topic of the markers, committed or not.
    marker: Marker,
    /// The offsets that it has committed.
    sent: Vec<Sent>,
}

/// Where the next producer is.
enum Next {
    Ready(Writer),
    Making,
    /// In use, or none will come.
    None,
}

/// Producers, one after another, under the same transactional id.
pub struct Epochs {
    used: Option<Sender<Used>>,
    made: Receiver<Result<Writer, DeliveryError>>,
    next: Next,
    maker: Option<JoinHandle<()>>,
    over: Arc<AtomicBool>,
}

/// Makes them.
struct Maker {
    cluster: Cluster,
    transactional_id: String,
    /// Topics that a transaction writes to.
    topics: Vec<String>,
    /// Without a group there are no offsets.
    standing: Option<Standing>,
    over: Arc<AtomicBool>,
}

impl Epochs {
    /// Takes the transactional id from whoever has it. Whether that was a copy of this state the caller finds out: the
    /// markers are final now.
    pub fn open(
        cluster: &Cluster,
        transactional_id: &str,
        changelog: &str,
        written: Vec<String>,
        standing: Option<Standing>,
        patience: Duration,
    ) -> Result<Self, KafkaFailure> {
        let over = Arc::new(AtomicBool::new(false));
        let mut topics = written;
        topics.push(changelog.to_owned());
        let maker = Maker {
            cluster: cluster.clone(),
            transactional_id: transactional_id.to_owned(),
            topics,
            standing,
            over: Arc::clone(&over),
        };
        let deadline = Instant::now() + patience;
        let first = maker.make(|| Instant::now() >= deadline)?;
        let watch = Watch::begin(cluster, changelog, transactional_id)?;
        let (used, used_out) = crossbeam_channel::unbounded();
        let (made_in, made) = crossbeam_channel::unbounded();
        let maker = std::thread::spawn(move || maker.serve(watch, &used_out, &made_in));
        Ok(Self { used: Some(used), made, next: Next::Ready(first), maker: Some(maker), over })
    }

    /// A producer for one transaction. Waits for as long as the broker lets us wait, unless we are told to stop.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] when there will be none: the id belongs to another instance now, or the client has failed.
    pub fn take(&mut self, stop: &AtomicBool) -> Result<Writer, DeliveryError> {
        match std::mem::replace(&mut self.next, Next::None) {
            Next::Ready(writer) => Ok(writer),
            Next::Making => self.wait(stop, Duration::MAX),
            Next::None => Err(gone()),
        }
    }

    /// Waits until the offsets of the last transaction stand: until the next producer is there, if one is being made.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] when they do not within `patience`, or never will.
    pub fn stand(&mut self, stop: &AtomicBool, patience: Duration) -> Result<(), DeliveryError> {
        if !matches!(self.next, Next::Making) {
            return Ok(());
        }
        self.next = Next::None;
        self.next = Next::Ready(self.wait(stop, patience)?);
        Ok(())
    }

    fn wait(&self, stop: &AtomicBool, patience: Duration) -> Result<Writer, DeliveryError> {
        let since = Instant::now();
        let why = loop {
            match self.made.recv_timeout(LOOK) {
                Ok(made) => return made,
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Acquire) && since.elapsed() >= PARTING => {
                    break "told to stop while the broker does not answer";
                }
                Err(RecvTimeoutError::Timeout) if since.elapsed() >= patience => {
                    break "the committed offsets could not be read in time";
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            }
        };
        // The consumer may end next, and must not be asked for its group after that.
        self.over.store(true, Ordering::Release);
        Err(DeliveryError::Fatal(why.to_owned()))
    }

    /// Gives back the producer of a decided transaction, which has committed the offsets `sent`, and has the next one made.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] when nobody makes it any more.
    pub fn renew(&mut self, writer: Writer, marker: Marker, sent: Vec<Sent>) -> Result<(), DeliveryError> {
        let sender = self.used.as_ref().ok_or_else(gone)?;
        sender.send(Used { writer, marker, sent }).map_err(|_| gone())?;
        self.next = Next::Making;
        Ok(())
    }
}

fn gone() -> DeliveryError {
    DeliveryError::Fatal("no new producer can be made".to_owned())
}

impl Drop for Epochs {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.used = None;
        if self.maker.take().is_some_and(|maker| maker.join().is_err()) {
            tracing::error!("the thread that makes producers has panicked");
        }
    }
}

impl Maker {
    fn serve(&self, mut watch: Watch, used: &Receiver<Used>, made: &Sender<Result<Writer, DeliveryError>>) {
        for Used { writer, marker, sent } in used {
            let since = Instant::now();
            let next = self.next(&mut watch, marker, &sent);
            tracing::debug!(ms = since.elapsed().as_secs_f64() * 1000.0, "a new epoch");
            if self.is_over() || made.send(next).is_err() {
                return;
            }
            drop(writer);
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// A producer for the next transaction, when everything of the last one stands.
    fn next(&self, watch: &mut Watch, last: Marker, sent: &[Sent]) -> Result<Writer, DeliveryError> {
        let since = Instant::now();
        loop {
            let next = self.make_again()?;
            crash_point("epoch-taken");
            self.is_still_ours(watch, last)?;
            let Some(standing) = &self.standing else { return Ok(next) };
            let behind = self.read_patiently("the committed offsets", || standing.behind(sent, READ_TIMEOUT))?;
            if behind.is_empty() {
                return Ok(next);
            }
            if self.is_over() {
                return Err(gone());
            }
            if since.elapsed() >= AGAIN {
                return Err(forgotten(&behind, "does not take them again"));
            }
            tracing::warn!(
                partitions = behind.len(),
                "the broker has forgotten offsets of a committed batch: they are committed again"
            );
            match standing.commit_again(&next, &behind, &self.over) {
                // No epoch has two transactions, and what came late may come twice.
                Ok(()) => {}
                Err(DeliveryError::Aborted(why)) => tracing::debug!(%why, "the offsets are not committed yet"),
                Err(fatal) => return Err(fatal),
            }
        }
    }

    /// Repeats a read of `what` until the cluster answers, or until no producer is needed any more.
    fn read_patiently<T>(
        &self,
        what: &'static str,
        mut read: impl FnMut() -> Result<T, KafkaFailure>,
    ) -> Result<T, DeliveryError> {
        loop {
            match read() {
                Ok(found) => return Ok(found),
                Err(error) => tracing::debug!(%error, "{what} are not readable yet"),
            }
            if self.is_over() {
                return Err(gone());
            }
        }
    }

    /// A new producer under a new epoch; `enough` ends the attempts.
    fn make(&self, enough: impl Fn() -> bool) -> Result<Writer, KafkaFailure> {
        let (mut writer, mut since, mut others) = (self.client()?, Instant::now(), 0);
        loop {
            match writer.init_transactions(TURN) {
                Ok(()) => return Ok(writer),
                // The end of the last transaction is still being written to its partitions. This client would ask again
                // after half a second; another one asks at once.
                Err(KafkaError::Transaction(e))
                    if e.code() == RDKafkaErrorCode::ConcurrentTransactions
                        && since.elapsed() < PAUSE
                        && others < OTHERS
                        && !enough() =>
                {
                    (writer, since, others) = (self.client()?, Instant::now(), others + 1);
                }
                Err(KafkaError::Transaction(e)) if e.is_retriable() && !enough() => {}
                Err(e) => {
                    let right = format!("use the transactional id {:?} (Write and Describe)", self.transactional_id);
                    let failure = self.cluster.failure_of("cannot begin transactions", right, e);
                    return Err(self.cluster.refused().unwrap_or(failure));
                }
            }
            // What is refused is said to whoever takes it away.
            writer.poll(Duration::ZERO);
        }
    }

    /// The same while we run, when files that say who we are may be changing under us.
    fn make_again(&self) -> Result<Writer, DeliveryError> {
        loop {
            match self.make(|| self.is_over()) {
                Err(error @ (KafkaFailure::Files { .. } | KafkaFailure::Secret { .. })) if !self.is_over() => {
                    tracing::warn!(%error, "no producer can be made now; trying again");
                    std::thread::sleep(CHANGING);
                }
                made => return made.map_err(|error| DeliveryError::Fatal(error.to_string())),
            }
        }
    }

    /// A producer that knows its topics and has no epoch yet.
    fn client(&self) -> Result<Writer, KafkaFailure> {
        let settings = self.cluster.producer(&self.transactional_id);
        let writer: Writer =
            settings.create("cannot create the producer", Reports::new(settings.hearing(), &self.topics))?;
        // What the client would ask for with the first record, in the middle of the transaction.
        for topic in &self.topics {
            if let Err(error) = writer.client().fetch_metadata(Some(topic), METADATA) {
                tracing::debug!(%error, "the topics of the next transaction are not known yet");
                break;
            }
        }
        Ok(writer)
    }

    /// Whoever has committed under our id since the last transaction has a copy of our state, and has gone on with it.
    fn is_still_ours(&self, watch: &mut Watch, last: Marker) -> Result<(), DeliveryError> {
        let markers = self.read_patiently("the markers", || watch.look(READ_TIMEOUT))?;
        if markers.iter().all(|marker| *marker == last) {
            return Ok(());
        }
        let why = "another instance has gone on with a copy of this state under our transactional id";
        Err(DeliveryError::Fatal(why.to_owned()))
    }
}
