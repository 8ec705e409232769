//! Proposal of one batch.

use super::batch_step::{KeyedDraw, SeriesBatchStep, SeriesProposal};
use super::record_intake::SeriesReadings;
use super::state::SeriesState;
use super::terms::AllSeriesTerms;

/// Adds records and closes completed buckets (all with `is_end`), without changing the state.
#[must_use]
pub fn propose_series(
    terms: &AllSeriesTerms,
    state: &SeriesState,
    readings: &SeriesReadings,
    clock_ms: Option<i64>,
    is_end: bool,
    draw: KeyedDraw<'_>,
) -> SeriesProposal {
    let mut step = SeriesBatchStep::new(terms, state, draw);
    step.add_records(readings, clock_ms);
    if let Some(received) = &readings.received {
        step.add_received(received);
    }
    step.close_due_buckets(is_end);
    step.into_proposal()
}
