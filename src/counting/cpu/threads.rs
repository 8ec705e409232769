//! One piece of work on some threads.

/// Runs the work in this thread and `threads − 1` others, until all are done.
pub(crate) fn in_threads(threads: usize, work: &(impl Fn() + Sync)) {
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
}
