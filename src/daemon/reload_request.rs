//! Requests for a reload, and their answers.

use super::errand::NotAsked;
use crate::telemetry::ReloadOutcome;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// Requests that wait at most; all that wait are answered by one attempt.
const MAX_WAITING: usize = 64;

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

/// Sends reload requests. Clones lead to the same thread.
#[derive(Clone, Debug)]
pub struct ReloadRequests(Sender<oneshot::Sender<ReloadAnswer>>);

impl ReloadRequests {
    /// Returns a sender, and the requests that it and its clones send.
    #[must_use]
    pub fn channel() -> (Self, Receiver<oneshot::Sender<ReloadAnswer>>) {
        let (sender, requests) = bounded(MAX_WAITING);
        (Self(sender), requests)
    }

    /// Requests a reload. The answer comes when the new pipeline has begun or the reload is refused; never where the daemon ends first.
    ///
    /// # Errors
    /// See [`NotAsked`].
    pub fn ask(&self) -> Result<oneshot::Receiver<ReloadAnswer>, NotAsked> {
        let (answer, answered) = oneshot::channel();
        match self.0.try_send(answer) {
            Ok(()) => Ok(answered),
            Err(TrySendError::Full(_)) => Err(NotAsked::Busy),
            Err(TrySendError::Disconnected(_)) => Err(NotAsked::Ending),
        }
    }
}
