//! What the Kafka client tells about itself: reachability, assignment, lag.

use crate::io::input::Origin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use throng_core::values::raw::Coordinate;

/// Shared between the client's callbacks and the daemon.
#[derive(Debug, Default)]
pub struct Health {
    /// The cluster answered when it was last asked.
    pub reachable: AtomicBool,
    /// Partitions are ours.
    pub assigned: AtomicBool,
    /// Records behind the end of the assigned partitions; below 0 while unknown.
    pub lag: AtomicI64,
    /// A partition was let go before the daemon had acknowledged it.
    pub abandoned: AtomicBool,
}

impl Health {
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
