//! The series of the ledger that the instances of a group share.
//!
//! Records and bytes, not entries: one entry more or less is one person more or less in a class.

use super::labels::{Direction, ForeignReason};
use super::shelf::{PerLabel, Shelf};
use prometheus::{Gauge, IntCounter};

/// The ledger that the instances of a group share.
pub(super) struct Sharing {
    pub records: PerLabel<Direction, IntCounter>,
    pub bytes: PerLabel<Direction, IntCounter>,
    pub ignored: PerLabel<ForeignReason, IntCounter>,
    pub lag: Gauge,
}

impl Sharing {
    pub fn new(shelf: &Shelf) -> Self {
        Self {
            records: shelf.counters(
                "throng_shared_ledger_records_total",
                "Records of the ledger topic: of other instances that count here (in), and ours that were committed (out).",
                "direction",
            ),
            bytes: shelf.counters(
                "throng_shared_ledger_bytes_total",
                "Bytes of these records; each is as long as a multiple of 4 KiB and its header.",
                "direction",
            ),
            ignored: shelf.counters(
                "throng_ledger_foreign_total",
                "Records of the ledger topic that do not count here, by reason.",
                "reason",
            ),
            lag: shelf.gauge(
                "throng_shared_ledger_lag_records",
                "Records behind the end of the ledger topic; NaN if unknown.",
            ),
        }
    }
}
