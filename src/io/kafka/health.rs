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
    /// Partitions were let go before the daemon said so.
    abandoned: AtomicBool,
}

impl Health {
    /// Did the cluster answer when it was last asked?
    pub fn reachable(&self) -> bool {
        self.reachable.load(Ordering::Relaxed)
    }
    /// Notes whether the cluster answers.
    pub fn set_reachable(&self, up: bool) {
        self.reachable.store(up, Ordering::Relaxed);
    }
    /// Partitions that are ours.
    pub fn assigned(&self) -> u64 {
        self.assigned.load(Ordering::Relaxed)
    }
    /// Notes how many partitions are ours.
    pub fn set_assigned(&self, partitions: u64) {
        self.assigned.store(partitions, Ordering::Relaxed);
    }
    /// Notes the lag; below 0 while it is not known.
    pub fn set_lag(&self, lag: i64) {
        self.lag.store(lag, Ordering::Relaxed);
    }
    /// Was a partition let go before the daemon had acknowledged it?
    pub fn abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }
    /// Notes that a partition was let go before the daemon had acknowledged it.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }
    /// Notes an error that the client recovers from by itself. Its text goes nowhere: it may quote a configuration.
    pub fn note_error(&self) {
        tracing::debug!("the Kafka client has met an error and tries again");
    }
}

impl Origin for Health {
    fn lag(&self) -> Option<u64> {
        u64::try_from(self.lag.load(Ordering::Relaxed)).ok()
    }

    fn describe(&self, at: Coordinate) -> String {
        let Coordinate { topic, partition, offset, .. } = at;
        let element = at.index().map_or(String::new(), |index| format!(", element {index}"));
        match topic {
            0 => format!("partition {partition}, offset {offset}{element}"),
            _ => format!("topic {} of the source, partition {partition}, offset {offset}{element}", topic + 1),
        }
    }
}
