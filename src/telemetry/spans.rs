//! Batches on their way to a collector of spans: what each took, stage by stage, with the figures of its line in the log.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use crossbeam_channel::Sender;

use super::report::{BatchReport, StageSeconds};

/// A committed batch as a collector is told of it. No field could hold a value of a record, and no figure is one that the pages round.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchSpan {
    /// The batch's number, from the durable state.
    pub sequence: u64,
    /// When it was committed, in tenths of a millisecond since 1970.
    pub ended: u64,
    /// Seconds by stage, as the pages show them.
    pub seconds: StageSeconds,
    /// Counts of the batch by name: those of its line in the log.
    pub counts: [(&'static str, u64); 7],
}

impl BatchSpan {
    /// Of a batch that was committed just now, as the pages show it.
    pub(super) fn of(shown: &BatchReport) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            sequence: shown.sequence,
            ended: u64::try_from(since.as_micros() / 100).unwrap_or(u64::MAX),
            seconds: shown.seconds,
            counts: [
                ("records", shown.records),
                ("released", shown.released),
                ("suppressed", shown.suppressed.total()),
                ("held", shown.held),
                ("dead_lettered", shown.dead_lettered.total()),
                ("dropped", shown.dropped),
                ("fragments", shown.fragments),
            ],
        }
    }
}

/// Where batches go to; nowhere until a collector is named.
#[derive(Default)]
pub(super) struct SpanQueue(OnceLock<Sender<BatchSpan>>);

impl SpanQueue {
    /// From here on batches are put into `queue`; false where there is one already.
    pub fn lead_to(&self, queue: Sender<BatchSpan>) -> bool {
        self.0.set(queue).is_ok()
    }

    /// Notes a batch; false where there is no room for it.
    pub fn note(&self, shown: &BatchReport) -> bool {
        self.0.get().is_none_or(|queue| queue.try_send(BatchSpan::of(shown)).is_ok())
    }
}
