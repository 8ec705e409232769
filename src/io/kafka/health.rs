//! What the Kafka client tells about itself: reachability, assignment, lag.

use crate::io::input::Origin;
use crate::records::raw::Coordinate;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// Shared between the client's callbacks and the daemon.
#[derive(Debug, Default)]
pub struct Health {
    reachable: AtomicBool,
    assigned: AtomicU64,
    /// Records behind the end of the assigned partitions; -1 while unknown.
    lag: AtomicI64,
    /// Errors of the client since the start (their texts go nowhere: they may quote a configuration).
    errors: AtomicU64,
    /// Partitions were let go before the daemon said so.
    abandoned: AtomicBool,
}

impl Health {
    /// Did the cluster answer when it was last asked?
    #[must_use]
    pub fn reachable(&self) -> bool {
        self.reachable.load(Ordering::Relaxed)
    }
    /// Notes whether the cluster answers.
    pub fn set_reachable(&self, up: bool) {
        self.reachable.store(up, Ordering::Relaxed);
    }
    /// Partitions that are ours.
    #[must_use]
    pub fn assigned(&self) -> u64 {
        self.assigned.load(Ordering::Relaxed)
    }
    /// Notes how many partitions are ours.
    pub fn set_assigned(&self, partitions: u64) {
        self.assigned.store(partitions, Ordering::Relaxed);
    }
    /// Records behind the end of the partitions; none while it is not known.
    #[must_use]
    pub fn lag(&self) -> Option<u64> {
        u64::try_from(self.lag.load(Ordering::Relaxed)).ok()
    }
    /// Notes the lag; below 0 while it is not known.
    pub fn set_lag(&self, lag: i64) {
        self.lag.store(lag, Ordering::Relaxed);
    }
    /// Was a partition let go before the daemon had acknowledged it?
    #[must_use]
    pub fn abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }
    /// Notes that a partition was let go before the daemon had acknowledged it.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }
    /// Errors that the client retries by itself, since the start.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }
    /// Notes one of them.
    pub fn note_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }
}

impl Origin for Health {
    fn lag(&self) -> Option<u64> {
        Self::lag(self)
    }

    fn describe(&self, Coordinate { topic, partition, offset }: Coordinate) -> String {
        match topic {
            0 => format!("partition {partition}, offset {offset}"),
            _ => format!("topic {} of the source, partition {partition}, offset {offset}", topic + 1),
        }
    }
}
