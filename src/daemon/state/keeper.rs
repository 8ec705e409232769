//! The database on a thread of its own, so that whoever waits for it gives up in the end.
//!
//! A database whose disk is full may never answer again: its writers wait for space in a log that nobody writes any more, and
//! so do its destructors. Only this thread may be caught in that. Who asked it gets an error with the cause, and the process
//! ends without it.

use super::directory::StateError;
use super::disk;
use crate::faults;
use crate::telemetry::{StateAnswers, StateStalled, Telemetry};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a write may take.
const WRITING: Duration = Duration::from_secs(60);
/// How long opening and reading may take: a large state is read for minutes.
const READING: Duration = Duration::from_secs(1800);
/// How long either may still take when the disk complains, and when the process is asked to end.
const COMPLAINING: Duration = Duration::from_secs(5);
const STOPPING: Duration = Duration::from_secs(10);
/// Between two looks at a disk that does not answer.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The open database. Only its thread has it.
pub(super) struct Database {
    pub db: sled::Db,
    pub tree: sled::Tree,
    /// The rows of the window, by batch: large values, kept away from the small ones that every batch rewrites.
    pub window: sled::Tree,
}

/// Said of a thread that ended by itself.
const GONE: &str = "its thread has ended";

type Job = Box<dyn FnOnce(&Database) + Send>;

/// Asks the thread that has the database.
pub(super) struct Keeper {
    path: PathBuf,
    jobs: Option<Sender<Job>>,
    /// Says nothing, and is closed when the thread has let go of the database.
    ended: Receiver<()>,
    /// Why nothing more is asked of it.
    failed: OnceLock<String>,
    /// Closed when the last glance has been answered.
    glancing: Mutex<Option<Receiver<()>>>,
    watch: OnceLock<(Telemetry, Arc<AtomicBool>)>,
}

/// How long a write may take; a test may have less patience, in seconds.
fn writing() -> Duration {
    faults::number("state-patience")
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(WRITING, Duration::from_secs)
}

/// Opens sled without letting a panic on a damaged file out.
fn open(path: &Path, name: &str) -> Result<Database, StateError> {
    let config = sled::Config::new()
        .path(path.join(name))
        .mode(sled::Mode::HighThroughput)
        .cache_capacity(64 << 20)
        .flush_every_ms(None);
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let db = config.open()?;
        let (tree, window) = (db.open_tree("throng")?, db.open_tree("window")?);
        Ok(Database { db, tree, window })
    }));
    match opened {
        Ok(Ok(database)) => Ok(database),
        Ok(Err(sled::Error::Io(e))) if e.to_string().contains("lock") => Err(StateError::Locked(path.to_owned())),
        Ok(Err(sled::Error::Io(source))) => Err(StateError::Io { path: path.to_owned(), source }),
        Ok(Err(e)) => Err(StateError::Damaged { path: path.to_owned(), what: e.to_string() }),
        Err(_) => Err(StateError::Damaged { path: path.to_owned(), what: "the database cannot be read".to_owned() }),
    }
}

/// Refuses a write for which there may be no room.
fn need(path: &Path, bytes: usize) -> Result<(), StateError> {
    let needed = disk::needed(bytes);
    match disk::free_bytes(path) {
        Some(free) if free < needed && !faults::is_set("state-without-reserve") => {
            Err(StateError::NoRoom { path: path.to_owned(), free, needed })
        }
        _ => Ok(()),
    }
}

impl Keeper {
    /// Opens the database `name` in `path` on a thread of its own.
    pub(super) fn open(path: &Path, name: &str) -> Result<Self, StateError> {
        need(path, 0)?;
        // One waits at most: a glance that nobody waits for any more may still be at work.
        let (jobs, todo) = bounded::<Job>(1);
        let (opened, answer) = bounded(1);
        let (ending, ended) = bounded::<()>(0);
        let (place, name) = (path.to_owned(), name.to_owned());
        std::thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || {
                // Closed when everything above it is gone.
                let _ending = ending;
                match open(&place, &name) {
                    Ok(database) => {
                        if opened.send(Ok(())).is_ok() {
                            todo.into_iter().for_each(|job: Job| job(&database));
                        }
                    }
                    // Whoever opened may have gone.
                    Err(error) => drop(opened.send(Err(error))),
                }
            })
            .map_err(|source| StateError::Io { path: path.to_owned(), source })?;
        let keeper = Self {
            path: path.to_owned(),
            jobs: Some(jobs),
            ended,
            failed: OnceLock::new(),
            glancing: Mutex::default(),
            watch: OnceLock::new(),
        };
        keeper.wait(&answer, READING)??;
        Ok(keeper)
    }

    /// From here on a disk that does not answer makes the daemon not ready, and `stop` shortens the wait for it.
    pub(super) fn watch(&self, telemetry: &Telemetry, stop: &Arc<AtomicBool>) {
        // Of a process there is one stop: who asks once more asks for the same.
        self.watch.get_or_init(|| (telemetry.clone(), Arc::clone(stop)));
    }

    /// Whoever watches `before` watches this one.
    pub(super) fn succeed(&mut self, before: &Self) {
        self.watch.clone_from(&before.watch);
    }

    /// Looks something up.
    pub(super) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Database) -> sled::Result<T> + Send + 'static,
    ) -> Result<T, StateError> {
        self.ask(READING, work)
    }

    /// Writes about `bytes` bytes, if there is room for them.
    ///
    /// # Errors
    /// [`StateError::NoRoom`], before anything is handed to the database; or when it fails or does not answer.
    pub(super) fn write<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&Database) -> sled::Result<T> + Send + 'static,
    ) -> Result<T, StateError> {
        need(&self.path, bytes).map_err(|error| self.fail(error))?;
        self.ask(writing(), work)
    }

    /// Looks something up that nothing hangs on: `None` where the answer does not come at once. A disk that hangs is the next
    /// write's to complain of.
    pub(super) fn glance<T: Send + 'static>(&self, work: impl FnOnce(&Database) -> T + Send + 'static) -> Option<T> {
        let (ending, ended) = bounded(0);
        {
            let mut glancing = self.glancing.lock().unwrap_or_else(PoisonError::into_inner);
            if glancing.as_ref().is_some_and(|pending| pending.try_recv() == Err(TryRecvError::Empty)) {
                return None;
            }
            *glancing = Some(ended);
        }
        let answered = self.hand_over(move |database| {
            let _ending: Sender<()> = ending;
            Ok(work(database))
        });
        answered.ok()?.recv_timeout(POLL_INTERVAL).ok()?.ok()?.ok()
    }

    fn ask<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(&Database) -> sled::Result<T> + Send + 'static,
    ) -> Result<T, StateError> {
        let answered = self.hand_over(work)?;
        match self.wait(&answered, limit)? {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(self.fail(StateError::Database { path: self.path.clone(), source })),
            Err(_) => Err(self.fail(self.broken("it panicked"))),
        }
    }

    /// Hands the database something to do; its answer comes by the channel.
    fn hand_over<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Database) -> sled::Result<T> + Send + 'static,
    ) -> Result<Receiver<std::thread::Result<sled::Result<T>>>, StateError> {
        let (answer, answered) = bounded(1);
        let job: Job = Box::new(move |database| {
            while faults::is_set("state-hangs") {
                std::thread::park();
            }
            let done = catch_unwind(AssertUnwindSafe(|| work(database)));
            // Whoever asked may have given up.
            drop(answer.send(done));
        });
        if let Some(why) = self.failed.get() {
            return Err(self.broken(why));
        }
        if self.jobs.as_ref().is_none_or(|jobs| jobs.send(job).is_err()) {
            return Err(self.fail(self.broken(GONE)));
        }
        Ok(answered)
    }

    /// Waits for an answer, and for no longer than `limit`; less where the disk says what is wrong with it.
    fn wait<T>(&self, answer: &Receiver<T>, limit: Duration) -> Result<T, StateError> {
        let since = Instant::now();
        let mut stalled = false;
        loop {
            match answer.recv_timeout(POLL_INTERVAL) {
                Ok(answer) => {
                    if stalled && let Some((telemetry, _)) = self.watch.get() {
                        StateAnswers.emit(telemetry);
                    }
                    return Ok(answer);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.broken(GONE)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let waited = since.elapsed();
            if waited < COMPLAINING {
                continue;
            }
            if !stalled && let Some((telemetry, _)) = self.watch.get() {
                StateStalled { seconds: waited.as_secs_f64() }.emit(telemetry);
            }
            stalled = true;
            let stopping = self.watch.get().is_some_and(|(_, stop)| stop.load(Ordering::Acquire));
            let complaint = disk::complaint(&self.path);
            if complaint.is_some() || stopping && waited >= STOPPING || waited >= limit {
                let cause = complaint.unwrap_or_else(|| "it does not say why".to_owned());
                let silent = StateError::Silent { path: self.path.clone(), seconds: waited.as_secs(), cause };
                return Err(self.fail(silent));
            }
        }
    }

    /// Nothing more is asked of the database, and nobody waits for its end.
    fn fail(&self, error: StateError) -> StateError {
        self.failed.get_or_init(|| error.to_string());
        if let Some((telemetry, _)) = self.watch.get() {
            telemetry.set_readiness(|readiness| readiness.state_failed = true);
        }
        error
    }

    fn broken(&self, why: &str) -> StateError {
        StateError::Broken { path: self.path.clone(), why: why.to_owned() }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if self.failed.get().is_some() {
            return;
        }
        let ended = self.ended.clone();
        // The channel is closed, never written to.
        if let Err(StateError::Silent { path, cause, .. }) = self.wait(&ended, writing()) {
            tracing::error!(path = %path.display(), cause, "the state could not be closed; the next start reads it as after a crash");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gauge that finds the database busy says nothing, and ends nothing.
    #[test]
    fn a_glance_that_is_not_answered_ends_no_write() {
        let dir = tempfile::tempdir().expect("a directory");
        let keeper = Keeper::open(dir.path(), "db").expect("a database");
        assert_eq!(keeper.glance(|_| 7), Some(7));
        let (release, released) = bounded::<()>(0);
        let begun = Instant::now();
        // Whatever it is asked then is asked once: the channel ends when it is let go.
        assert_eq!(keeper.glance(move |_| released.recv().is_err()), None);
        assert_eq!(keeper.glance(|_| 7), None, "nothing more is asked meanwhile");
        assert!(begun.elapsed() < COMPLAINING, "nobody waits for a gauge: {:?}", begun.elapsed());
        drop(release);
        keeper.write(1, |d| d.tree.insert("key", "value").and_then(|_| d.tree.flush())).expect("a write");
        assert_eq!(keeper.glance(|_| 7), Some(7));
        drop(keeper);
        let again = Keeper::open(dir.path(), "db").expect("the database once more");
        assert!(again.read(|d| d.tree.get("key")).expect("a look").is_some());
    }
}
