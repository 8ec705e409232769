//! Signals of commands over files, which end within a second.

use super::outcome::Failure;
use super::run::stop_on_signals;
use crate::dataset::{AnonymizationStep, AnonymizeError};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// Time for an orderly end.
const STOP_GRACE: Duration = Duration::from_millis(500);

const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Removed when the process ends.
static TEMPORARY_DIRECTORIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Returns a flag that SIGTERM and SIGINT set. Half a second later the process ends and removes its temporary
/// directories, because some steps do not poll the flag.
///
/// # Errors
/// Fails if signals cannot be caught, or no thread can start.
pub fn exit_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = stop_on_signals()?;
    let watched = Arc::clone(&stop);
    let watch = move || {
        exit_after_stop(&watched, [STOP_POLL_INTERVAL, STOP_GRACE], || {
            eprintln!("error: stopped by a signal; no output was kept");
            signal_hook::low_level::exit(1);
        });
    };
    let thread = std::thread::Builder::new().name("shutdown".to_owned()).spawn(watch);
    thread.map_err(|error| Failure::Running(error.into()))?;
    Ok(stop)
}

/// Waits for flag and grace period, removes temporary directories and calls `end`.
fn exit_after_stop(stop: &AtomicBool, [interval, grace]: [Duration; 2], end: impl FnOnce()) {
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(interval);
    }
    std::thread::sleep(grace);
    // Valid also after a panic under the lock.
    let directories = TEMPORARY_DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner);
    for directory in directories.iter() {
        // A failed removal does not delay the end.
        let (Ok(()) | Err(_)) = std::fs::remove_dir_all(directory);
    }
    end();
}

/// Phases by their reaction to a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnonymizePhase {
    /// Ends the process.
    Preparing,
    /// Ends the search with the best policy so far.
    Searching,
    /// Ends the process.
    Verifying,
    /// Ends the process in order and removes the temporary file.
    Writing,
    /// Releases the result of an ended search.
    Finishing,
}

impl AnonymizePhase {
    fn phase_after_step(self, step: AnonymizationStep, stopped: bool) -> Self {
        match (self, step) {
            (Self::Finishing, _) => Self::Finishing,
            (phase, AnonymizationStep::Reading { .. } | AnonymizationStep::Counting { .. }) => phase,
            (_, AnonymizationStep::Searching) => Self::Searching,
            (Self::Searching, _) if stopped => Self::Finishing,
            (_, AnonymizationStep::Dividing { .. } | AnonymizationStep::Verifying { .. }) => Self::Verifying,
            (_, AnonymizationStep::Writing { .. }) => Self::Writing,
        }
    }

    /// Error of a process ended in this phase.
    fn stop_error(self) -> Option<AnonymizeError> {
        match self {
            Self::Preparing => Some(AnonymizeError::StoppedBefore),
            Self::Verifying | Self::Writing => Some(AnonymizeError::StoppedAfter),
            Self::Searching | Self::Finishing => None,
        }
    }
}

/// Signal handler of `throng anonymize`.
pub struct JobSignals {
    stop: Arc<AtomicBool>,
    phase: Arc<Mutex<AnonymizePhase>>,
}

impl JobSignals {
    /// Catches the signals. A step longer than the grace period is interrupted, after `bar` is cleared.
    ///
    /// # Errors
    /// Fails if signals cannot be caught, or no thread can start.
    pub fn catch(bar: &ProgressBar) -> Result<Self, Failure> {
        let signals = Self { stop: stop_on_signals()?, phase: Arc::new(Mutex::new(AnonymizePhase::Preparing)) };
        let (stop, phase, bar) = (Arc::clone(&signals.stop), Arc::clone(&signals.phase), bar.clone());
        let watch = move || {
            interrupt_phase(&stop, &phase, [STOP_POLL_INTERVAL, STOP_GRACE], |error| {
                bar.finish_and_clear();
                eprintln!("error: {error}");
                signal_hook::low_level::exit(1);
            });
        };
        let thread = std::thread::Builder::new().name("shutdown".to_owned()).spawn(watch);
        thread.map_err(|error| Failure::Running(error.into()))?;
        Ok(signals)
    }

    /// Returns the flag that ends a search.
    pub fn flag(&self) -> &AtomicBool {
        &self.stop
    }

    /// Records the current step.
    ///
    /// # Errors
    /// Fails if a signal ends this phase.
    pub fn record_step(&self, step: AnonymizationStep) -> Result<(), AnonymizeError> {
        let stopped = self.stop.load(Ordering::Acquire);
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        *phase = phase.phase_after_step(step, stopped);
        phase.stop_error().filter(|_| stopped).map_or(Ok(()), Err)
    }
}

/// Calls `end` after flag, grace period and an interruptible phase, under the phase lock, so that no output is started.
fn interrupt_phase(
    stop: &AtomicBool,
    phase: &Mutex<AnonymizePhase>,
    [interval, grace]: [Duration; 2],
    end: impl FnOnce(AnonymizeError),
) {
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(interval);
    }
    std::thread::sleep(grace);
    loop {
        let phase = phase.lock().unwrap_or_else(PoisonError::into_inner);
        match (*phase, phase.stop_error()) {
            (AnonymizePhase::Finishing, _) => return,
            (AnonymizePhase::Preparing | AnonymizePhase::Verifying, Some(error)) => return end(error),
            _ => {}
        }
        drop(phase);
        std::thread::sleep(interval);
    }
}

/// Temporary directory, removed on drop and by signals.
#[derive(Debug)]
pub struct TemporaryDirectory(TempDir);

impl TemporaryDirectory {
    /// Registers a directory for removal.
    pub fn register_directory(directory: TempDir) -> Self {
        if let Ok(mut known) = TEMPORARY_DIRECTORIES.lock() {
            known.push(directory.path().to_owned());
        }
        Self(directory)
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Ok(mut known) = TEMPORARY_DIRECTORIES.lock() {
            known.retain(|path| path != self.0.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: AnonymizationStep = AnonymizationStep::Reading { records: 1 };
    const COUNTING: AnonymizationStep = AnonymizationStep::Counting { records: 1, of: 2 };
    const DIVIDING: AnonymizationStep = AnonymizationStep::Dividing { records: 0, of: 2 };
    const VERIFYING: AnonymizationStep = AnonymizationStep::Verifying { part: 0, of: 1 };
    const WRITING: AnonymizationStep = AnonymizationStep::Writing { lines: 0, of: 2 };

    /// Sets the flag before step `stopped_before`.
    fn results_of_steps(steps: &[AnonymizationStep], stopped_before: usize) -> Vec<Option<AnonymizeError>> {
        let signals = JobSignals { stop: Arc::default(), phase: Arc::new(Mutex::new(AnonymizePhase::Preparing)) };
        let hear = |(at, step): (usize, &AnonymizationStep)| {
            signals.stop.store(at >= stopped_before, Ordering::Release);
            signals.record_step(*step).err()
        };
        steps.iter().enumerate().map(hear).collect()
    }

    #[test]
    fn signal_during_search_keeps_result_and_otherwise_fails() {
        // Cells to hide are counted between two searches.
        let steps = [
            READING,
            COUNTING,
            AnonymizationStep::Searching,
            COUNTING,
            AnonymizationStep::Searching,
            DIVIDING,
            VERIFYING,
            WRITING,
            WRITING,
        ];
        for stopped_before in 0..steps.len() {
            let answers = results_of_steps(&steps, stopped_before);
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
    fn signal_during_long_step_ends_process_except_when_finishing() {
        for (phase, ends) in
            [(AnonymizePhase::Preparing, true), (AnonymizePhase::Verifying, true), (AnonymizePhase::Finishing, false)]
        {
            let mut ended = false;
            interrupt_phase(&AtomicBool::new(true), &Mutex::new(phase), [Duration::ZERO; 2], |_| ended = true);
            assert_eq!(ended, ends, "{phase:?}");
        }
    }

    #[test]
    fn stop_flag_removes_temporary_directories() {
        let directory = TemporaryDirectory::register_directory(tempfile::tempdir().expect("a directory"));
        std::fs::write(directory.path().join("raw.ndjson"), "{}").expect("a file");
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, ended) = std::sync::mpsc::channel();
        let watched = Arc::clone(&stop);
        let watch = move || {
            exit_after_stop(&watched, [Duration::ZERO; 2], || sender.send(()).expect("a receiver"));
        };
        let thread = std::thread::spawn(watch);
        assert!(directory.path().exists(), "nobody has stopped it");
        stop.store(true, Ordering::Release);
        ended.recv().expect("it ends");
        thread.join().expect("no panic");
        assert!(!directory.path().exists());
    }
}
