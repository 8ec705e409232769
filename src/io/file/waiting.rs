//! Waiting for an input, and giving that up where the process is to end.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

/// How long a silent pipe is waited for before the reader looks up: for a timer, for a signal.
pub(super) const MOMENT: Duration = Duration::from_millis(50);

/// Set from outside when whoever reads is to end. What may take long gives up then: a pipe in the middle of a record, a record that is
/// passed over.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Option<Arc<AtomicBool>>);

/// Why reading was given up.
#[derive(Debug, thiserror::Error)]
#[error("the process was told to end while it waited")]
struct Stopped;

impl StopFlag {
    /// A flag that somebody sets; without one ([`StopFlag::default`]) nothing is given up.
    #[must_use]
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        Self(Some(flag))
    }

    /// An error that [`is_stop`] knows, once the flag is set.
    pub(super) fn check(&self) -> io::Result<()> {
        let is_set = self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Acquire));
        if is_set { Err(stopped()) } else { Ok(()) }
    }
}

/// The error of reading that was given up.
pub(super) fn stopped() -> io::Error {
    io::Error::other(Stopped)
}

/// Whether an error says that reading was given up because of a [`StopFlag`].
pub(super) fn is_stop(error: &io::Error) -> bool {
    matches!(error.get_ref(), Some(inner) if inner.is::<Stopped>())
}

/// Whether a pipe has something to read, or its end: asked for at most `patience`.
pub(super) fn comes(pipe: &impl AsFd, patience: Duration) -> io::Result<bool> {
    let patience: Timespec = patience.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&patience)) {
        Ok(answers) => Ok(answers > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a pipe has something to read, or its end.
///
/// # Errors
/// When it cannot be asked, and when `stop` is set before.
pub(super) fn wait(pipe: &impl AsFd, stop: &StopFlag) -> io::Result<()> {
    while !comes(pipe, MOMENT)? {
        stop.check()?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;
