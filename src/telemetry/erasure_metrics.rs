//! The metrics of erasures.

use prometheus::{Gauge, IntCounter};

use super::shelf::Shelf;

/// Erasures, and the topic that asks for them.
pub(super) struct Erasures {
    pub done: IntCounter,
    pub failed: IntCounter,
    pub dropped: IntCounter,
    pub requests: IntCounter,
    pub refused: IntCounter,
    pub missed: IntCounter,
    pub lag: Gauge,
}

impl Erasures {
    pub fn new(shelf: &Shelf) -> Self {
        Self {
            done: shelf.counter(
                "throng_erasures_total",
                "Times that people were erased from the state, since the start of the process.",
            ),
            failed: shelf.counter(
                "throng_erasure_failures_total",
                "Times that people whom the erasure topic names could not be erased; it is tried again.",
            ),
            dropped: shelf.counter(
                "throng_erased_held_records_total",
                "Held records that were dropped since their person was erased; they are among the dropped ones.",
            ),
            requests: shelf.counter(
                "throng_erasure_requests_total",
                "Messages read of the erasure topic that name somebody, since the start of the process.",
            ),
            refused: shelf.counter(
                "throng_erasure_requests_refused_total",
                "Messages read of the erasure topic that name nobody: their key is missing, or no value of the subject.",
            ),
            missed: shelf.counter(
                "throng_erasure_partitions_missed_total",
                "Partitions of the erasure topic of which messages were gone before they had been read.",
            ),
            lag: shelf.gauge(
                "throng_erasure_lag_records",
                "Messages of the erasure topic that have not been acted on, read or not; NaN if unknown.",
            ),
        }
    }
}
