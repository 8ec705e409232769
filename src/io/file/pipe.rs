//! Inputs that may have to be waited for, and the flag that ends the wait.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

/// How long a silent pipe is waited for before the reader looks up: for a timer, for a signal.
pub(super) const MOMENT: Duration = Duration::from_millis(50);

/// Set from outside when the reader is to end. Slow operations give up then: waiting for the rest of a record, passing over a long
/// record. Without a setter nothing is given up.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

/// Why reading was given up.
#[derive(Debug, thiserror::Error)]
#[error("the process was told to end while it waited")]
struct Stopped;

impl StopFlag {
    /// The flag of a process.
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// An error that [`is_stop`] recognizes, once the flag is set.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::Acquire) { Err(io::Error::other(Stopped)) } else { Ok(()) }
    }
}

/// Whether an error says that reading was given up because of a [`StopFlag`].
pub(super) fn is_stop(error: &io::Error) -> bool {
    matches!(error.get_ref(), Some(inner) if inner.is::<Stopped>())
}

/// How long a read of a [`Pipe`] waits before it fails with [`io::ErrorKind::WouldBlock`], in milliseconds; [`u64::MAX`]: until something
/// comes.
pub(super) type Patience = Arc<AtomicU64>;

/// A pipe. Its end counts as something to read.
pub(super) struct Pipe {
    pub input: File,
    pub patience: Patience,
    pub stop: StopFlag,
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let patience = self.patience.load(Ordering::Relaxed);
        let turn = MOMENT.min(Duration::from_millis(patience));
        while !self.is_ready(turn)? {
            if patience < u64::MAX {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.stop.check()?;
        }
        self.input.read(into)
    }
}

impl Pipe {
    fn is_ready(&self, timeout: Duration) -> io::Result<bool> {
        let timeout: Timespec = timeout.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::new(&self.input, PollFlags::IN)], Some(&timeout)) {
            Ok(answers) => Ok(answers > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
#[path = "pipe_tests.rs"]
mod tests;
