//! The thread between those who ask for a reload and the stream that swaps.

use super::candidate::{Candidate, Swapped};
use super::door::{Answer, Asking, Door};
use crate::start::checked::Checked;
use crate::start::replaceable::{changed, refusals};
use crate::telemetry::{ReloadOutcome, Reloaded, Telemetry};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the desk looks whether the daemon ends, or a signal has come.
const LOOK: Duration = Duration::from_millis(100);

/// Reads the configuration anew and tries it: every problem, or a configuration whose tests have passed. Gives up when the flag is set.
pub type Read = dyn Fn(&AtomicBool) -> Result<Checked, Vec<String>> + Send + Sync;

/// How a daemon reads its configuration anew.
#[derive(Clone)]
pub struct Reloading {
    /// Reads and tries it.
    pub read: Arc<Read>,
    /// Set by SIGHUP.
    pub hangup: Arc<AtomicBool>,
}

/// The desk of a running daemon.
pub struct Desk {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What the desk's thread works with.
struct Work {
    reloading: Reloading,
    asking: Receiver<Asking>,
    /// Keeps the channel open where nobody may ask: one that is closed is not waited for.
    _open: Door,
    candidates: Sender<Candidate>,
    telemetry: Telemetry,
    over: Arc<AtomicBool>,
    /// What is in force.
    current: Checked,
}

impl Desk {
    /// Opens a desk in front of a stream that begins with `current`: where to ask, and where the stream finds candidates.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn open(
        reloading: Reloading,
        current: Checked,
        telemetry: &Telemetry,
    ) -> std::io::Result<(Self, Door, Receiver<Candidate>)> {
        let (door, asking) = Door::open();
        let (candidates, stream) = bounded(1);
        let over = Arc::new(AtomicBool::new(false));
        let telemetry = telemetry.clone();
        let (over_too, open) = (Arc::clone(&over), door.clone());
        let mut work = Work { reloading, asking, _open: open, candidates, telemetry, over: over_too, current };
        let thread = std::thread::Builder::new().name("reloads".to_owned()).spawn(move || work.run())?;
        Ok((Self { over, thread: Some(thread) }, door, stream))
    }
}

impl Drop for Desk {
    /// Whoever still waits is told by the end of their channel.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of reloads panicked");
        }
    }
}

impl Work {
    fn run(&mut self) {
        while !self.over.load(Ordering::Acquire) {
            let first = self.asking.recv_timeout(LOOK).ok();
            let hung_up = self.reloading.hangup.swap(false, Ordering::AcqRel);
            if first.is_none() && !hung_up {
                continue;
            }
            // Whoever has asked by now is answered by what is read from here on.
            let waiting: Vec<Asking> = first.into_iter().chain(self.asking.try_iter()).collect();
            let Some(answer) = self.reload() else { return };
            for asking in waiting {
                // Who has asked may have gone.
                drop(asking.send(answer.clone()));
            }
        }
    }

    /// One attempt; none where the daemon ended meanwhile.
    fn reload(&mut self) -> Option<Answer> {
        let start = Instant::now();
        let read = (self.reloading.read)(&self.over);
        if self.over.load(Ordering::Acquire) {
            return None;
        }
        let validating = start.elapsed().as_secs_f64();
        let new = match read {
            Ok(new) => new,
            Err(reasons) => return Some(self.refuse(Vec::new(), reasons, validating)),
        };
        let keys = changed(&self.current.config, &new.config);
        let reasons: Vec<String> = refusals(&self.current, &new).iter().map(ToString::to_string).collect();
        if !reasons.is_empty() {
            return Some(self.refuse(keys, reasons, validating));
        }
        if keys.is_empty() && new.policy == self.current.policy {
            return Some(self.tell(ReloadOutcome::Unchanged, keys, Vec::new(), (validating, 0.0)));
        }
        match self.hand_over(new.clone())? {
            Ok(swapping) => {
                self.current = new;
                Some(self.tell(ReloadOutcome::Replaced, keys, Vec::new(), (validating, swapping.as_secs_f64())))
            }
            Err(reasons) => Some(self.refuse(keys, reasons, validating)),
        }
    }

    /// Gives a configuration to the stream and waits for the end of the batch at work; none where the stream ends first.
    fn hand_over(&self, checked: Checked) -> Option<Swapped> {
        let (answer, answered) = bounded(1);
        self.candidates.send(Candidate { checked, answer }).ok()?;
        answered.recv().ok()
    }

    fn refuse(&self, changed: Vec<String>, reasons: Vec<String>, validating: f64) -> Answer {
        self.tell(ReloadOutcome::Refused, changed, reasons, (validating, 0.0))
    }

    fn tell(&self, outcome: ReloadOutcome, changed: Vec<String>, reasons: Vec<String>, seconds: (f64, f64)) -> Answer {
        Reloaded { outcome, changed: &changed, reasons: &reasons, seconds }.emit(&self.telemetry);
        Answer { outcome, policy: self.current.policy.short(), changed, reasons }
    }
}
