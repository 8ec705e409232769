//! The series of a state that is kept in a topic.

use super::labels::Direction;
use super::shelf::{PerLabel, Shelf};
use prometheus::{Gauge, IntCounter};

/// A state that is kept in a topic.
pub(super) struct Following {
    pub bytes: PerLabel<Direction, IntCounter>,
    pub restore: Gauge,
}

impl Following {
    pub fn new(shelf: &Shelf) -> Self {
        Self {
            bytes: shelf.counters(
                "throng_state_topic_bytes_total",
                "Bytes of the state topic: read to make the state directory (in), and committed (out).",
                "direction",
            ),
            restore: shelf.gauge(
                "throng_state_restore_seconds",
                "How long making the state directory from its topic took at the start; 0 if it was there.",
            ),
        }
    }
}
