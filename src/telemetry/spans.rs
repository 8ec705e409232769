//! Batches on their way to a collector of spans: what each took, stage by stage, with the figures of its line in the log.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Sender, TrySendError};

use super::labels::SpanOutcome;
use super::report::{BatchReport, StageSeconds};
use super::status::Telemetry;

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

/// Where batches go to; nowhere until a collector is named.
#[derive(Default)]
pub(super) struct SpanQueue(OnceLock<Sender<BatchSpan>>);

impl Telemetry {
    /// From here on every committed batch is put into `queue`, where there is room: nothing waits for it.
    pub fn trace_to(&self, queue: Sender<BatchSpan>) {
        if self.spans().0.set(queue).is_err() {
            tracing::debug!("batches are traced already");
        }
    }

    /// Counts batches of which a collector was told, or was not.
    pub fn count_spans(&self, outcome: SpanOutcome, batches: u64) {
        self.metrics().flow.spans.of(outcome).inc_by(batches);
    }

    /// Notes a committed batch, as `shown` by the pages.
    pub(super) fn trace(&self, shown: &BatchReport) {
        let Some(queue) = self.spans().0.get() else { return };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let span = BatchSpan {
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
        };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = queue.try_send(span) {
            self.count_spans(SpanOutcome::Dropped, 1);
        }
    }
}
