//! What is told to a collector of spans, and how much of it was taken.

use crossbeam_channel::Sender;

use super::labels::SpanOutcome;
use super::report::BatchReport;
use super::spans::BatchSpan;
use super::status::Telemetry;

impl Telemetry {
    /// From here on every committed batch is put into `queue`, where there is room: nothing waits for it.
    pub fn trace_to(&self, queue: Sender<BatchSpan>) {
        if !self.spans().lead_to(queue) {
            tracing::debug!("batches are traced already");
        }
    }

    /// Counts batches of which a collector was told, or was not.
    pub fn count_spans(&self, outcome: SpanOutcome, batches: u64) {
        self.metrics().flow.spans.of(outcome).inc_by(batches);
    }

    /// Notes a committed batch, as `shown` by the pages.
    pub(super) fn trace(&self, shown: &BatchReport) {
        if !self.spans().note(shown) {
            self.count_spans(SpanOutcome::Dropped, 1);
        }
    }
}
