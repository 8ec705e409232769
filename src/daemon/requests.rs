//! Requests of HTTP pages and other threads to the one that answers them.

use crate::telemetry::ReloadOutcome;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// A request, and the sender of its answer. It is dropped where the daemon ends first.
pub type Request<Q, A> = (Q, oneshot::Sender<A>);

/// Sends requests. Clones lead to the same thread.
pub struct Requests<Q, A>(Sender<Request<Q, A>>);

/// Requests for a reload.
pub type ReloadRequests = Requests<(), ReloadAnswer>;

/// Answer to a reload request. Names of keys, places, reasons and remedies; never a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadAnswer {
    /// Outcome of the attempt.
    pub outcome: ReloadOutcome,
    /// First digits of the digest of the policy that is in force now.
    pub policy: String,
    /// Keys that have changed.
    pub changed: Vec<String>,
    /// Reasons of a refusal.
    pub reasons: Vec<String>,
}

/// Cause of a request that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// Too many wait already.
    Busy,
    /// The daemon is ending.
    Ending,
}

impl<Q, A> Clone for Requests<Q, A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<Q, A> Requests<Q, A> {
    /// Returns a sender, and the requests that it and its clones send, of which `max_waiting` may wait.
    #[must_use]
    pub fn channel(max_waiting: usize) -> (Self, Receiver<Request<Q, A>>) {
        let (sender, requests) = bounded(max_waiting);
        (Self(sender), requests)
    }

    /// Sends a request; the answer comes by the channel.
    pub fn send(&self, request: Q) -> Result<oneshot::Receiver<A>, NotTaken> {
        let (answer, answered) = oneshot::channel();
        match self.0.try_send((request, answer)) {
            Ok(()) => Ok(answered),
            Err(TrySendError::Full(_)) => Err(NotTaken::Busy),
            Err(TrySendError::Disconnected(_)) => Err(NotTaken::Ending),
        }
    }
}
