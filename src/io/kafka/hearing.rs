//! What clients hear of brokers that refuse them. Their words are weighed here, and kept nowhere.

use super::refusal::Refusal;
use crate::config::Security;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a refusal stands that is not heard again. A client repeats itself after half a minute.
const STANDS: Duration = Duration::from_secs(60);

/// A broker that hangs up more often than this before it has ever answered speaks another protocol; one that just stops does not.
const HUNG_UP: u32 = 2;

/// The last refusal, of all clients of one cluster.
#[derive(Debug, Default)]
pub struct Hearing {
    security: Security,
    last: Mutex<Option<(Refusal, Instant)>>,
    /// Times that brokers hung up on the first question: until one has answered, or one could not be reached.
    hung_up: AtomicU32,
    answered: AtomicBool,
    unreached: AtomicBool,
}

impl Hearing {
    /// Weighs words by what was tried.
    pub fn new(security: Security) -> Self {
        Self { security, ..Self::default() }
    }

    /// Weighs what a client says.
    pub fn hear(&self, error: &KafkaError, words: &str) {
        if let Some(refusal) = Refusal::of(error, words, &self.security) {
            // From now on it is known why there is no broker.
            self.unreached.store(true, Ordering::Release);
            self.note(refusal);
            return;
        }
        match error.rdkafka_error_code() {
            // The client does not say that a broker has hung up, only that there is none any more.
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                let silent = !self.answered.load(Ordering::Acquire) && !self.unreached.load(Ordering::Acquire);
                if silent && self.hung_up.fetch_add(1, Ordering::AcqRel) >= HUNG_UP {
                    self.note(Refusal::Protocol);
                }
            }
            Some(
                RDKafkaErrorCode::BrokerTransportFailure
                | RDKafkaErrorCode::Resolve
                | RDKafkaErrorCode::OperationTimedOut,
            ) => self.unreached.store(true, Ordering::Release),
            _ => {}
        }
    }

    /// Notes a refusal.
    pub fn note(&self, refusal: Refusal) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((refusal, Instant::now()));
    }

    /// Forgets that there was no token.
    pub fn token_came(&self) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.take_if(|(refusal, _)| matches!(refusal, Refusal::NoToken | Refusal::Provider));
    }

    /// Forgets what was refused: we have been let in.
    pub fn clear(&self) {
        self.answered.store(true, Ordering::Release);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The refusal that stands.
    pub fn refusal(&self) -> Option<Refusal> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.filter(|(_, since)| since.elapsed() < STANDS).map(|(refusal, _)| refusal)
    }
}

/// The context of a client that has nothing else to say.
#[derive(Clone, Debug)]
pub struct Quiet(pub Arc<Hearing>);

impl ClientContext for Quiet {
    /// The lines themselves may quote keys, hosts and settings: none is passed on.
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.0.hear(&error, reason);
    }
}

impl ConsumerContext for Quiet {}
