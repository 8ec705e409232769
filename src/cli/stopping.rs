//! How commands over files end on a signal: at once where they poll the flag, and within a second where they do not.

use super::outcome::Failure;
use super::run::stop_on_signals;
use crate::dataset::{AnonymizeError, Step};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// Time for an end in order.
const GRACE: Duration = Duration::from_millis(500);

/// Between two looks at the flag.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Temporary directories of this process, which go with it however it ends.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A flag that SIGTERM and SIGINT set. Where a step does not poll it (groups are chosen, a plan is searched), the process ends after half a
/// second, without its temporary directories.
///
/// # Errors
/// Where signals cannot be caught, or no thread can be started.
pub fn end_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = stop_on_signals()?;
    let watched = Arc::clone(&stop);
    let watch = move || {
        end_once_stopped(&watched, [POLL_INTERVAL, GRACE], || {
            eprintln!("error: stopped by a signal; nothing is kept");
            signal_hook::low_level::exit(1);
        });
    };
    let thread = std::thread::Builder::new().name("shutdown".to_owned()).spawn(watch);
    thread.map_err(|error| Failure::Running(error.into()))?;
    Ok(stop)
}

/// Waits for the flag, then for the grace, removes the temporary directories and calls `end`.
fn end_once_stopped(stop: &AtomicBool, [interval, grace]: [Duration; 2], end: impl FnOnce()) {
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(interval);
    }
    std::thread::sleep(grace);
    // A panic with the lock leaves a list that holds all the same.
    let directories = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
    for directory in directories.iter() {
        // What is gone already, or cannot be removed, is no reason to stay.
        let (Ok(()) | Err(_)) = std::fs::remove_dir_all(directory);
    }
    end();
}

/// Phases of `throng anonymize`, by their answer to a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Records are read and counted: a signal ends the process.
    Preparing,
    /// A signal ends the search, with the best policy so far.
    Searching,
    /// The release is divided and verified: a signal ends the process.
    Verifying,
    /// Lines are written beside the output: a signal ends the process in order, which removes them.
    Writing,
    /// A signal has ended the search, and its result is released.
    Finishing,
}

impl Phase {
    fn after(self, step: Step, stopped: bool) -> Self {
        match (self, step) {
            (Self::Finishing, _) => Self::Finishing,
            (phase, Step::Reading { .. } | Step::Counting { .. }) => phase,
            (_, Step::Searching) => Self::Searching,
            (Self::Searching, _) if stopped => Self::Finishing,
            (_, Step::Dividing { .. } | Step::Verifying { .. }) => Self::Verifying,
            (_, Step::Writing { .. }) => Self::Writing,
        }
    }

    /// The error of a process that a signal ends in this phase.
    fn error(self) -> Option<AnonymizeError> {
        match self {
            Self::Preparing => Some(AnonymizeError::StoppedBefore),
            Self::Verifying | Self::Writing => Some(AnonymizeError::StoppedAfter),
            Self::Searching | Self::Finishing => None,
        }
    }
}

/// Answers SIGTERM and SIGINT in `throng anonymize`: within a second, whatever it does.
pub struct JobSignals {
    stop: Arc<AtomicBool>,
    phase: Arc<Mutex<Phase>>,
}

impl JobSignals {
    /// Catches the signals. Where a step takes longer than the grace, the process ends in it; `bar` is cleared then.
    ///
    /// # Errors
    /// Where signals cannot be caught, or no thread can be started.
    pub fn catch(bar: &ProgressBar) -> Result<Self, Failure> {
        let signals = Self { stop: stop_on_signals()?, phase: Arc::new(Mutex::new(Phase::Preparing)) };
        let (stop, phase, bar) = (Arc::clone(&signals.stop), Arc::clone(&signals.phase), bar.clone());
        let watch = move || {
            end_between_steps(&stop, &phase, [POLL_INTERVAL, GRACE], |error| {
                bar.finish_and_clear();
                eprintln!("error: {error}");
                signal_hook::low_level::exit(1);
            });
        };
        let thread = std::thread::Builder::new().name("shutdown".to_owned()).spawn(watch);
        thread.map_err(|error| Failure::Running(error.into()))?;
        Ok(signals)
    }

    /// The flag that ends a search.
    pub fn flag(&self) -> &AtomicBool {
        &self.stop
    }

    /// Follows the work.
    ///
    /// # Errors
    /// Where a signal ends it.
    pub fn hear(&self, step: Step) -> Result<(), AnonymizeError> {
        let stopped = self.stop.load(Ordering::Acquire);
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        *phase = phase.after(step, stopped);
        phase.error().filter(|_| stopped).map_or(Ok(()), Err)
    }
}

/// Waits for the flag, then for the grace, then for a phase that may end in the middle of a step, and calls `end` with the error of it.
/// The phase cannot change meanwhile: no output is begun.
fn end_between_steps(
    stop: &AtomicBool,
    phase: &Mutex<Phase>,
    [interval, grace]: [Duration; 2],
    end: impl FnOnce(AnonymizeError),
) {
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(interval);
    }
    std::thread::sleep(grace);
    loop {
        let phase = phase.lock().unwrap_or_else(PoisonError::into_inner);
        match (*phase, phase.error()) {
            (Phase::Finishing, _) => return,
            (Phase::Preparing | Phase::Verifying, Some(error)) => return end(error),
            _ => {}
        }
        drop(phase);
        std::thread::sleep(interval);
    }
}

/// A temporary directory that is removed when it goes out of use, and when a signal ends the process.
#[derive(Debug)]
pub struct Temporary(TempDir);

impl Temporary {
    /// Takes care of a directory.
    pub fn of(directory: TempDir) -> Self {
        if let Ok(mut known) = TEMPORARY.lock() {
            known.push(directory.path().to_owned());
        }
        Self(directory)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Ok(mut known) = TEMPORARY.lock() {
            known.retain(|path| path != self.0.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: Step = Step::Reading { records: 1 };
    const COUNTING: Step = Step::Counting { records: 1, of: 2 };
    const DIVIDING: Step = Step::Dividing { records: 0, of: 2 };
    const VERIFYING: Step = Step::Verifying { part: 0, of: 1 };
    const WRITING: Step = Step::Writing { lines: 0, of: 2 };

    /// The answers to steps of a job that is stopped before the step of this number.
    fn answers(steps: &[Step], stopped_before: usize) -> Vec<Option<AnonymizeError>> {
        let signals = JobSignals { stop: Arc::default(), phase: Arc::new(Mutex::new(Phase::Preparing)) };
        let hear = |(at, step): (usize, &Step)| {
            signals.stop.store(at >= stopped_before, Ordering::Release);
            signals.hear(*step).err()
        };
        steps.iter().enumerate().map(hear).collect()
    }

    #[test]
    fn signal_ends_the_search_with_its_result_and_everything_else_without() {
        // Between two searches cells that hide are counted.
        let steps =
            [READING, COUNTING, Step::Searching, COUNTING, Step::Searching, DIVIDING, VERIFYING, WRITING, WRITING];
        for stopped_before in 0..steps.len() {
            let answers = answers(&steps, stopped_before);
            let error = answers.iter().flatten().next();
            match stopped_before {
                0 | 1 => assert!(matches!(error, Some(AnonymizeError::StoppedBefore)), "{stopped_before}: {error:?}"),
                2..6 => assert!(error.is_none(), "{stopped_before}: {error:?}"),
                _ => assert!(matches!(error, Some(AnonymizeError::StoppedAfter)), "{stopped_before}: {error:?}"),
            }
            assert!(answers[..stopped_before].iter().all(Option::is_none), "{stopped_before}: {answers:?}");
        }
    }

    #[test]
    fn signal_in_a_long_verification_ends_it() {
        for (phase, ends) in [(Phase::Preparing, true), (Phase::Verifying, true), (Phase::Finishing, false)] {
            let mut ended = false;
            end_between_steps(&AtomicBool::new(true), &Mutex::new(phase), [Duration::ZERO; 2], |_| ended = true);
            assert_eq!(ended, ends, "{phase:?}");
        }
    }

    #[test]
    fn the_flag_is_polled_and_temporary_directories_go() {
        let directory = Temporary::of(tempfile::tempdir().expect("a directory"));
        std::fs::write(directory.path().join("raw.ndjson"), "{}").expect("a file");
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, ended) = std::sync::mpsc::channel();
        let watched = Arc::clone(&stop);
        let watch = move || {
            end_once_stopped(&watched, [Duration::ZERO; 2], || sender.send(()).expect("a receiver"));
        };
        let thread = std::thread::spawn(watch);
        assert!(directory.path().exists(), "nobody has stopped it");
        stop.store(true, Ordering::Release);
        ended.recv().expect("it ends");
        thread.join().expect("no panic");
        assert!(!directory.path().exists());
    }
}
