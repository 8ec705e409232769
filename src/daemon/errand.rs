//! Erasures on their way from whoever asks a running daemon to the loop that does them.

use super::erasure::{Asked, ErasureError, Receipt};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use tokio::sync::oneshot;

/// An erasure that is asked for, and where its answer goes.
pub struct Errand {
    /// Who is to be erased.
    pub asked: Asked,
    /// Closed without an answer where the daemon ends first.
    pub answer: oneshot::Sender<Result<Receipt, ErasureError>>,
}

/// Erasures that are asked for.
pub type Errands = Receiver<Errand>;

/// Asks for erasures.
#[derive(Clone)]
pub struct Ask(Sender<Errand>);

/// Both ends. One erasure waits at most.
#[must_use]
pub fn errands() -> (Ask, Errands) {
    let (ask, errands) = bounded(1);
    (Ask(ask), errands)
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAsked {
    /// Another request waits already, or too many do.
    Busy,
    /// The daemon is ending.
    Ending,
}

impl Ask {
    /// Asks; the answer comes by the channel.
    ///
    /// # Errors
    /// See [`NotAsked`].
    pub fn ask(&self, asked: Asked) -> Result<oneshot::Receiver<Result<Receipt, ErasureError>>, NotAsked> {
        let (answer, answered) = oneshot::channel();
        self.0.try_send(Errand { asked, answer }).map_err(|error| match error {
            TrySendError::Full(_) => NotAsked::Busy,
            TrySendError::Disconnected(_) => NotAsked::Ending,
        })?;
        Ok(answered)
    }
}
