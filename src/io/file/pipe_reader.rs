//! Reader of pipes with timeouts, and its stop flag.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

pub(super) const PIPE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Flag that interrupts slow reads.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

#[derive(Debug, thiserror::Error)]
#[error("interrupted by a stop request")]
struct ReadInterrupted;

impl StopFlag {
    /// Wraps the stop flag of a process.
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    pub(super) fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::Acquire) { Err(io::Error::other(ReadInterrupted)) } else { Ok(()) }
    }
}

pub(super) fn is_stop(error: &io::Error) -> bool {
    matches!(error.get_ref(), Some(inner) if inner.is::<ReadInterrupted>())
}

/// Milliseconds until [`io::ErrorKind::WouldBlock`]; [`u64::MAX`] for no limit.
pub(super) type PipeTimeout = Arc<AtomicU64>;

/// Pipe whose end counts as readable.
pub(super) struct PipeReader {
    pub input: File,
    pub read_timeout: PipeTimeout,
    pub stop: StopFlag,
}

impl Read for PipeReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let patience = self.read_timeout.load(Ordering::Relaxed);
        let turn = PIPE_POLL_INTERVAL.min(Duration::from_millis(patience));
        while !self.is_ready(turn)? {
            if patience < u64::MAX {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.stop.check()?;
        }
        self.input.read(into)
    }
}

impl PipeReader {
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
