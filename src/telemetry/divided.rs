//! Metrics of the memory that the process may take, part by part.

use prometheus::Gauge;

use super::labels::MemoryPart;
use super::report::BatchReport;
use super::shelf::{PerLabel, Shelf, untold};

/// What each part may take, and what those that are measured take.
pub(super) struct Parts {
    pub limit: PerLabel<MemoryPart, Gauge>,
    pub used: PerLabel<MemoryPart, Gauge>,
}

impl Parts {
    pub fn new(shelf: &Shelf) -> Self {
        Self {
            limit: shelf.gauges(
                "throng_memory_limit_bytes",
                "What process.memory_limit gives to each part of the memory; 0 without a limit.",
                "part",
            ),
            used: untold(shelf.gauges(
                "throng_memory_used_bytes",
                "What a part of the memory takes, copies for searches included, rounded and held; NaN for parts that nobody measures.",
                "part",
            )),
        }
    }

    /// Shows what a report says, as it may be shown.
    pub fn measure(&self, report: &BatchReport) {
        self.used.of(MemoryPart::Ledger).set(report.ledger_bytes as f64);
        self.used.of(MemoryPart::Window).set((report.window_bytes + report.model_bytes) as f64);
        self.used.of(MemoryPart::Dictionaries).set(report.dictionary_bytes as f64);
    }
}
