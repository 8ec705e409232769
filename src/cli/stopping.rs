//! How commands that keep nothing end on a signal: at once where they look, and soon where they do not.

use super::outcome::Failure;
use super::run::stop_on_signals;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
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
    let directories = TEMPORARY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for directory in directories.iter() {
        // What is gone already, or cannot be removed, is no reason to stay.
        let (Ok(()) | Err(_)) = std::fs::remove_dir_all(directory);
    }
    end();
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
