//! What other instances have said: read as committed records, by no group, on a thread of its own.

use super::feed::{Feed, Heard, News, Places, SharedLedgerError, Told, listening};
use super::record::{Body, Header};
use super::terms::SharedTerms;
use crate::faults;
use crate::io::feed::Over;
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::whole::{Reading, WholeTopic};
use crate::records::sealer::Sealer;
use crate::telemetry::{ForeignIgnored, ForeignReason, SharedLedgerLag, SharedLedgerRead, Telemetry};
use rdkafka::Message;
use rdkafka::message::BorrowedMessage;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the log says how far the reading has come, and how often the lag is measured.
const TELLING: Duration = Duration::from_secs(5);
/// How long a listener that a test has paused waits before it looks again.
const PAUSED: Duration = Duration::from_millis(20);

/// Listens to the other instances.
pub struct Listener {
    /// Where the topic is.
    pub cluster: Cluster,
    /// Its name.
    pub topic: String,
    /// Where to begin: where the state has heard up to.
    pub from: Places,
    /// Opens what those have sealed who have the group's secret.
    pub sealer: Sealer,
    /// Name of the group.
    pub group: String,
    /// Identity of this state, whose own records are passed over.
    pub instance: String,
    /// What the releases must mean to count.
    pub terms: SharedTerms,
    /// A foreign record older than this is of no concern at a start, milliseconds.
    pub window_ms: i64,
    /// The wall clock, milliseconds since 1970.
    pub wall: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Is told of what is ignored, and how far the reading has come.
    pub telemetry: Telemetry,
}

/// Why the listener ends.
enum End {
    Over,
    Error(SharedLedgerError),
}

impl From<Over> for End {
    fn from(_: Over) -> Self {
        Self::Over
    }
}

impl Listener {
    /// Listens until nobody asks any more.
    ///
    /// # Errors
    /// When there is no thread to listen on.
    pub fn listen(self) -> Result<Feed, SharedLedgerError> {
        listening(move |told| match self.on(told) {
            Ok(()) | Err(End::Over) => Ok(()),
            Err(End::Error(error)) => Err(error),
        })
    }

    fn on(self, told: &Told) -> Result<(), End> {
        const WHAT: &str = "cannot read the ledger topic";
        let failed = |failure: KafkaFailure| End::Error(Box::new(failure).into());
        let reading =
            Reading { topic: self.topic.clone(), group: "throng.ledger.reader", what: WHAT, from: self.from.clone() };
        let opened = WholeTopic::open(&self.cluster, reading, &|| told.is_over());
        let Some(mut topic) = opened.map_err(failed)? else { return Ok(()) };
        let (mut places, mut whole, mut records) = (self.from.clone(), false, 0_u64);
        let mut told_at = Instant::now();
        while !told.is_over() {
            while whole && faults::is_set("ledger-paused") && !told.is_over() {
                std::thread::sleep(PAUSED);
            }
            let mut taken = Ok(());
            let polled = topic.poll(|message| {
                records += 1;
                taken = self.take(message, &mut places, whole, told);
            });
            polled.map_err(failed)?;
            taken?;
            if topic.is_whole() && !whole {
                whole = true;
                SharedLedgerRead { records, done: true }.emit();
                told.say(News::Whole(places.clone()))?;
            }
            if told_at.elapsed() >= TELLING {
                told_at = Instant::now();
                if !whole {
                    SharedLedgerRead { records, done: false }.emit();
                }
                let records = topic.look().map_err(failed)?;
                SharedLedgerLag { records }.emit(&self.telemetry);
            }
        }
        Ok(())
    }

    /// Takes what a record says. At the start a record of the window that is not of our group ends it; later it is passed over.
    fn take(&self, message: &BorrowedMessage<'_>, places: &mut Places, whole: bool, told: &Told) -> Result<(), End> {
        let next = message.offset() + 1;
        let read = message.payload().and_then(Header::read);
        let instance = read.as_ref().map_or_else(|| "without a name".to_owned(), |(header, _)| header.instance.clone());
        let said = match &read {
            Some((header, _)) if header.instance == self.instance => {
                places.insert(message.partition(), next);
                return Ok(());
            }
            Some((header, sealed)) => match Body::open(header, sealed, &self.group, &self.sealer) {
                Some(body) => self.terms.now().differs(&body.terms).map_or(Ok(body.delta), Err),
                None => Err(ForeignReason::Secret),
            },
            None => Err(ForeignReason::Unreadable),
        };
        match said {
            Ok(delta) => {
                places.insert(message.partition(), next);
                if !delta.classes.is_empty() {
                    let bytes = message.payload_len() as u64;
                    told.say(News::Heard(Heard { delta, instance, bytes, places: places.clone() }))?;
                }
            }
            Err(reason) => {
                ForeignIgnored { instance: &instance, reason }.emit(&self.telemetry);
                // A policy is exchanged instance after instance: while that goes on they do not count for each other, and run.
                let recent =
                    message.timestamp().to_millis().is_none_or(|at| (self.wall)().saturating_sub(at) <= self.window_ms);
                if !whole && recent && reason != ForeignReason::Policy {
                    let (topic, partition, offset) = (self.topic.clone(), message.partition(), message.offset());
                    return Err(End::Error(SharedLedgerError::Foreign { topic, instance, partition, offset, reason }));
                }
                places.insert(message.partition(), next);
            }
        }
        Ok(())
    }
}
