//! How far the end of a stream has come, for the callbacks of its consumer.

use std::sync::atomic::{AtomicBool, Ordering};

/// First nobody listens any more, then nobody reads: what is polled from there on, the client polls itself while it closes.
#[derive(Debug, Default)]
pub struct Ending {
    deaf: AtomicBool,
    closing: AtomicBool,
    answered: AtomicBool,
}

impl Ending {
    /// The daemon has ended: callbacks must not wait for it.
    pub fn stop_listening(&self) {
        self.deaf.store(true, Ordering::Release);
    }

    /// Whether nobody listens any more.
    #[must_use]
    pub fn is_unheard(&self) -> bool {
        self.deaf.load(Ordering::Acquire)
    }

    /// The reader has ended as well.
    pub fn stop_reading(&self) {
        self.stop_listening();
        self.closing.store(true, Ordering::Release);
    }

    /// Whether the client is polled by its own end alone.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Whether a client that closes is to be answered now: once.
    pub(super) fn takes_answer(&self) -> bool {
        !self.answered.swap(true, Ordering::AcqRel)
    }
}
