//! Who asks for a reload, and what is answered.

use crate::telemetry::ReloadOutcome;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// Requests that wait at most; all that wait are answered by one attempt.
const WAITING: usize = 64;

/// What became of a reload. Names of keys, places, reasons and remedies; never a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What became of it.
    pub outcome: ReloadOutcome,
    /// The first digits of the digest of the policy that is in force now.
    pub policy: String,
    /// Names of the keys that have changed.
    pub changed: Vec<String>,
    /// Why it was refused.
    pub reasons: Vec<String>,
}

/// Somebody who waits for an answer.
pub(super) type Asking = oneshot::Sender<Answer>;

/// Where a reload is asked for. Clones lead to one desk.
#[derive(Clone, Debug)]
pub struct Door(Sender<Asking>);

/// Why nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Too many wait already.
    Busy,
    /// The daemon ends.
    Ending,
}

impl Door {
    /// A door, and what is behind it.
    pub(super) fn open() -> (Self, Receiver<Asking>) {
        let (sender, receiver) = bounded(WAITING);
        (Self(sender), receiver)
    }

    /// Asks; the answer comes when the stream has swapped, or the reload is refused. It never comes where the daemon ends first.
    ///
    /// # Errors
    /// [`Closed`]: nobody will answer.
    pub fn ask(&self) -> Result<oneshot::Receiver<Answer>, Closed> {
        let (answer, answered) = oneshot::channel();
        match self.0.try_send(answer) {
            Ok(()) => Ok(answered),
            Err(TrySendError::Full(_)) => Err(Closed::Busy),
            Err(TrySendError::Disconnected(_)) => Err(Closed::Ending),
        }
    }
}
