//! A producer epoch of its own for every transaction.
//!
//! The client repeats requests by itself, on new connections, and says nothing of it. A commit whose first request is still
//! on its way when the second one is answered would, under the same epoch, commit whatever the next transaction has written
//! by then. So no epoch has two transactions: each has a new producer, whose `init_transactions` makes the broker refuse
//! everything that is still to come of the ones before (decision 0017). It is made as soon as the last transaction is
//! decided, on a thread of its own, while the next batch is being treated.

use super::connection::{Cluster, KafkaFailure};
use super::marker::{Marker, Watch};
use super::reports::Reports;
use super::transaction::PARTING;
use crate::faults::crash_point;
use crate::release::sink::DeliveryError;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, Producer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A producer that may begin one transaction.
pub type Writer = BaseProducer<Reports>;

/// How long one turn of `init_transactions` may take; it goes on by itself between two turns.
const TURN: Duration = Duration::from_millis(25);

/// How long a client that was told to ask later keeps quiet: it asks again after half a second. Only then may another one
/// take its place, or its next request would take the epoch from the other.
const PAUSE: Duration = Duration::from_millis(400);

/// How often another client is tried in place of one that was told to ask later.
const OTHERS: u32 = 8;

/// How long the description of a topic may take. Whatever is not known then, the client asks for again.
const METADATA: Duration = Duration::from_millis(500);

/// How long the markers are looked for before it is tried again.
const GLANCE: Duration = Duration::from_secs(1);

/// How long the next producer is waited for between two looks at the daemon's end.
const LOOK: Duration = Duration::from_millis(20);

/// What has come of an epoch.
struct Used {
    /// Goes when the next one is there.
    writer: Writer,
    /// What its transaction has said in the topic of the markers, committed or not.
    marker: Marker,
}

/// Producers, one after another, under the same transactional id.
pub struct Epochs {
    used: Option<Sender<Used>>,
    made: Receiver<Result<Writer, DeliveryError>>,
    maker: Option<JoinHandle<()>>,
    over: Arc<AtomicBool>,
}

/// Makes them.
struct Maker {
    cluster: Cluster,
    transactional_id: String,
    /// Topics that a transaction writes to.
    topics: Vec<String>,
    over: Arc<AtomicBool>,
}

impl Epochs {
    /// Takes the transactional id from whoever has it. Whether that was a copy of this state the caller finds out: the
    /// markers are final now.
    ///
    /// # Errors
    /// When the cluster does not let us within `patience`.
    pub fn open(
        cluster: &Cluster,
        transactional_id: &str,
        commits: &str,
        written: Vec<String>,
        patience: Duration,
    ) -> Result<Self, KafkaFailure> {
        let over = Arc::new(AtomicBool::new(false));
        let mut topics = written;
        topics.push(commits.to_owned());
        let maker = Maker {
            cluster: cluster.clone(),
            transactional_id: transactional_id.to_owned(),
            topics,
            over: Arc::clone(&over),
        };
        let deadline = Instant::now() + patience;
        let first = maker.make(|| Instant::now() >= deadline)?;
        let watch = Watch::begin(cluster, commits, transactional_id, patience)?;
        let (used, used_out) = crossbeam_channel::unbounded();
        let (made_in, made) = crossbeam_channel::unbounded();
        // The other end is in our hands.
        if made_in.send(Ok(first)).is_err() {
            tracing::debug!("nobody waits for the first producer");
        }
        let maker = std::thread::spawn(move || maker.serve(watch, &used_out, &made_in));
        Ok(Self { used: Some(used), made, maker: Some(maker), over })
    }

    /// A producer for one transaction. Waits for as long as the broker lets us wait, unless we are told to stop.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] when there will be none: the id belongs to another instance now, or the client has failed.
    pub fn take(&self, stop: &AtomicBool) -> Result<Writer, DeliveryError> {
        let since = Instant::now();
        loop {
            match self.made.recv_timeout(LOOK) {
                Ok(made) => return made,
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Acquire) && since.elapsed() >= PARTING => {
                    return Err(DeliveryError::Fatal("told to stop while the broker does not answer".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            }
        }
    }

    /// Gives back the producer of a decided transaction, and has the next one made.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] when nobody makes it any more.
    pub fn renew(&self, writer: Writer, marker: Marker) -> Result<(), DeliveryError> {
        let sender = self.used.as_ref().ok_or_else(gone)?;
        sender.send(Used { writer, marker }).map_err(|_| gone())
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
        let over = || self.over.load(Ordering::Acquire);
        for Used { writer, marker } in used {
            let since = Instant::now();
            let next = match self.make(over) {
                Ok(next) => {
                    crash_point("epoch-taken");
                    self.is_still_ours(&mut watch, marker).map(|()| next)
                }
                Err(_) if over() => return,
                Err(failure) => Err(DeliveryError::Fatal(failure.to_string())),
            };
            tracing::debug!(ms = since.elapsed().as_secs_f64() * 1000.0, "a new epoch");
            if over() || made.send(next).is_err() {
                return;
            }
            drop(writer);
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
                Err(e) => return Err(self.cluster.failure("cannot begin transactions", e)),
            }
        }
    }

    /// A producer that knows its topics and has no epoch yet.
    fn client(&self) -> Result<Writer, KafkaFailure> {
        let writer: Writer = self
            .cluster
            .producer(&self.transactional_id)
            .create_with_context(Reports::default())
            .map_err(|e| self.cluster.failure("cannot create the producer", e))?;
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
        loop {
            match watch.look(GLANCE) {
                Ok(markers) if markers.iter().all(|marker| *marker == last) => return Ok(()),
                Ok(_) => {
                    let why = "another instance has gone on with a copy of this state under our transactional id";
                    return Err(DeliveryError::Fatal(why.to_owned()));
                }
                Err(error) => {
                    tracing::debug!(%error, "the markers are not readable yet");
                    if self.over.load(Ordering::Acquire) {
                        return Err(gone());
                    }
                }
            }
        }
    }
}
