//! Database thread, which alone may block: on a full disk sled may wait forever. Callers get an error after a timeout.

use super::directory::StateError;
use super::disk;
use crate::telemetry::{StateResponding, StateStalled, Telemetry};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use throng_core::faults;

const DATABASE_WRITE_TIMEOUT: Duration = Duration::from_secs(60);
const DATABASE_READ_TIMEOUT: Duration = Duration::from_secs(1800);
const STALL_THRESHOLD: Duration = Duration::from_secs(5);
const STALL_STOP_TIMEOUT: Duration = Duration::from_secs(10);
const DISK_POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct OpenDatabase {
    pub db: sled::Db,
    pub tree: sled::Tree,
    /// Rows of the window by batch, apart from values that every batch rewrites.
    pub window: sled::Tree,
}

const THREAD_ENDED: &str = "the database thread has ended";

type DatabaseJob = Box<dyn FnOnce(&OpenDatabase) + Send>;

pub(super) struct DatabaseThread {
    path: PathBuf,
    jobs: Option<Sender<DatabaseJob>>,
    /// Closed with the database.
    ended: Receiver<()>,
    failed: OnceLock<String>,
    pending_try_read: Mutex<Option<Receiver<()>>>,
    watch: OnceLock<(Telemetry, Arc<AtomicBool>)>,
}

fn write_timeout() -> Duration {
    faults::number("state-patience")
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(DATABASE_WRITE_TIMEOUT, Duration::from_secs)
}

/// sled panics on a damaged file.
fn open(path: &Path, name: &str) -> Result<OpenDatabase, StateError> {
    let config = sled::Config::new()
        .path(path.join(name))
        .mode(sled::Mode::HighThroughput)
        .cache_capacity(64 << 20)
        .flush_every_ms(None);
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let db = config.open()?;
        let (tree, window) = (db.open_tree("throng")?, db.open_tree("window")?);
        Ok(OpenDatabase { db, tree, window })
    }));
    match opened {
        Ok(Ok(database)) => Ok(database),
        Ok(Err(sled::Error::Io(e))) if e.to_string().contains("lock") => Err(StateError::Locked(path.to_owned())),
        Ok(Err(sled::Error::Io(source))) => Err(StateError::Io { path: path.to_owned(), source }),
        Ok(Err(e)) => Err(StateError::Damaged { path: path.to_owned(), what: e.to_string() }),
        Err(_) => Err(StateError::Damaged { path: path.to_owned(), what: "the database cannot be read".to_owned() }),
    }
}

fn require_free_space(path: &Path, bytes: usize) -> Result<(), StateError> {
    let needed = disk::required_bytes(bytes);
    match disk::free_bytes(path) {
        Some(free) if free < needed && !faults::is_set("state-without-reserve") => {
            Err(StateError::DiskFull { path: path.to_owned(), free, needed })
        }
        _ => Ok(()),
    }
}

impl DatabaseThread {
    pub(super) fn open(path: &Path, name: &str) -> Result<Self, StateError> {
        require_free_space(path, 0)?;
        // At most one job is queued; an abandoned read may still be running.
        let (jobs, todo) = bounded::<DatabaseJob>(1);
        let (opened, answer) = bounded(1);
        let (ending, ended) = bounded::<()>(0);
        let (place, name) = (path.to_owned(), name.to_owned());
        std::thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || {
                // Dropped last, which reports that the database is closed.
                let _ending = ending;
                match open(&place, &name) {
                    Ok(database) => {
                        if opened.send(Ok(())).is_ok() {
                            todo.into_iter().for_each(|job: DatabaseJob| job(&database));
                        }
                    }
                    Err(error) => drop(opened.send(Err(error))),
                }
            })
            .map_err(|source| StateError::Io { path: path.to_owned(), source })?;
        let keeper = Self {
            path: path.to_owned(),
            jobs: Some(jobs),
            ended,
            failed: OnceLock::new(),
            pending_try_read: Mutex::default(),
            watch: OnceLock::new(),
        };
        keeper.await_answer(&answer, DATABASE_READ_TIMEOUT)??;
        Ok(keeper)
    }

    /// Reports an unresponsive disk; waits less once `stop` is set.
    pub(super) fn watch(&self, telemetry: &Telemetry, stop: &Arc<AtomicBool>) {
        // A process has only one stop flag.
        self.watch.get_or_init(|| (telemetry.clone(), Arc::clone(stop)));
    }

    pub(super) fn inherit_watch(&mut self, before: &Self) {
        self.watch.clone_from(&before.watch);
    }

    pub(super) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OpenDatabase) -> sled::Result<T> + Send + 'static,
    ) -> Result<T, StateError> {
        self.run_job(DATABASE_READ_TIMEOUT, work)
    }

    /// Fails with [`StateError::DiskFull`] before any data reaches the database.
    pub(super) fn write<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&OpenDatabase) -> sled::Result<T> + Send + 'static,
    ) -> Result<T, StateError> {
        require_free_space(&self.path, bytes).map_err(|error| self.mark_failed(error))?;
        self.run_job(write_timeout(), work)
    }

    /// Returns `None` without an answer within [`DISK_POLL_INTERVAL`].
    pub(super) fn try_read_database<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OpenDatabase) -> T + Send + 'static,
    ) -> Option<T> {
        let (ending, ended) = bounded(0);
        {
            let mut glancing = self.pending_try_read.lock().unwrap_or_else(PoisonError::into_inner);
            if glancing.as_ref().is_some_and(|pending| pending.try_recv() == Err(TryRecvError::Empty)) {
                return None;
            }
            *glancing = Some(ended);
        }
        let answered = self.submit_job(move |database| {
            let _ending: Sender<()> = ending;
            Ok(work(database))
        });
        answered.ok()?.recv_timeout(DISK_POLL_INTERVAL).ok()?.ok()?.ok()
    }

    fn run_job<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(&OpenDatabase) -> sled::Result<T> + Send + 'static,
    ) -> Result<T, StateError> {
        let answered = self.submit_job(work)?;
        match self.await_answer(&answered, limit)? {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(self.mark_failed(StateError::Database { path: self.path.clone(), source })),
            Err(_) => Err(self.mark_failed(self.stopped_error("the database thread panicked"))),
        }
    }

    fn submit_job<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OpenDatabase) -> sled::Result<T> + Send + 'static,
    ) -> Result<Receiver<std::thread::Result<sled::Result<T>>>, StateError> {
        let (answer, answered) = bounded(1);
        let job: DatabaseJob = Box::new(move |database| {
            while faults::is_set("state-hangs") {
                std::thread::park();
            }
            let done = catch_unwind(AssertUnwindSafe(|| work(database)));
            drop(answer.send(done));
        });
        if let Some(why) = self.failed.get() {
            return Err(self.stopped_error(why));
        }
        if self.jobs.as_ref().is_none_or(|jobs| jobs.send(job).is_err()) {
            return Err(self.mark_failed(self.stopped_error(THREAD_ENDED)));
        }
        Ok(answered)
    }

    fn await_answer<T>(&self, answer: &Receiver<T>, limit: Duration) -> Result<T, StateError> {
        let since = Instant::now();
        let mut stalled = false;
        loop {
            match answer.recv_timeout(DISK_POLL_INTERVAL) {
                Ok(answer) => {
                    if stalled && let Some((telemetry, _)) = self.watch.get() {
                        StateResponding.emit(telemetry);
                    }
                    return Ok(answer);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.stopped_error(THREAD_ENDED)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let waited = since.elapsed();
            if waited < STALL_THRESHOLD {
                continue;
            }
            if !stalled && let Some((telemetry, _)) = self.watch.get() {
                StateStalled { seconds: waited.as_secs_f64() }.emit(telemetry);
            }
            stalled = true;
            let stopping = self.watch.get().is_some_and(|(_, stop)| stop.load(Ordering::Acquire));
            let complaint = disk::write_failure_cause(&self.path);
            if complaint.is_some() || stopping && waited >= STALL_STOP_TIMEOUT || waited >= limit {
                let cause = complaint.unwrap_or_else(|| "cause unknown".to_owned());
                let silent = StateError::DiskUnresponsive { path: self.path.clone(), seconds: waited.as_secs(), cause };
                return Err(self.mark_failed(silent));
            }
        }
    }

    fn mark_failed(&self, error: StateError) -> StateError {
        self.failed.get_or_init(|| error.to_string());
        if let Some((telemetry, _)) = self.watch.get() {
            telemetry.set_readiness(|readiness| readiness.state_failed = true);
        }
        error
    }

    fn stopped_error(&self, why: &str) -> StateError {
        StateError::DatabaseStopped { path: self.path.clone(), why: why.to_owned() }
    }
}

impl Drop for DatabaseThread {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if self.failed.get().is_some() {
            return;
        }
        let ended = self.ended.clone();
        // The channel is closed, never written to.
        if let Err(StateError::DiskUnresponsive { path, cause, .. }) = self.await_answer(&ended, write_timeout()) {
            tracing::error!(path = %path.display(), cause, "the state could not be closed: the next start recovers it as after a crash");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unanswered_gauge_read_does_not_fail_writes() {
        let dir = tempfile::tempdir().expect("a directory");
        let keeper = DatabaseThread::open(dir.path(), "db").expect("a database");
        assert_eq!(keeper.try_read_database(|_| 7), Some(7));
        let (release, released) = bounded::<()>(0);
        let begun = Instant::now();
        assert_eq!(keeper.try_read_database(move |_| released.recv().is_err()), None);
        assert_eq!(keeper.try_read_database(|_| 7), None, "nothing more is asked meanwhile");
        assert!(begun.elapsed() < STALL_THRESHOLD, "nobody waits for a gauge: {:?}", begun.elapsed());
        drop(release);
        keeper.write(1, |d| d.tree.insert("key", "value").and_then(|_| d.tree.flush())).expect("a write");
        assert_eq!(keeper.try_read_database(|_| 7), Some(7));
        drop(keeper);
        let again = DatabaseThread::open(dir.path(), "db").expect("the database once more");
        assert!(again.read(|d| d.tree.get("key")).expect("a look").is_some());
    }
}
