//! Parallel execution.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Uses this thread and `threads − 1` others.
pub(crate) fn in_threads(threads: usize, work: &(impl Fn() + Sync)) {
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
}

/// Returns the results in task order.
pub(crate) fn map_in_threads<T: Send>(threads: usize, tasks: usize, task: &(impl Fn(usize) -> T + Sync)) -> Vec<T> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(tasks)));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= tasks {
                break;
            }
            let result = task(number);
            found.lock().expect("no task panics with the lock").push((number, result));
        }
    };
    in_threads(threads.clamp(1, tasks.max(1)), &work);
    let mut found = found.into_inner().expect("no task panicked");
    found.sort_unstable_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, result)| result).collect()
}
