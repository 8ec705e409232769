//! One batch of the series: records in, rows and changed entries out. The state itself does not change.

use super::intake::Readings;
use super::state::SeriesState;
use super::step::{Draw, SeriesProposal, Step};
use super::terms::Terms;

/// Adds the records of a batch and closes the buckets that it completes. With `is_end` nothing comes after the batch, and all buckets
/// close.
#[must_use]
pub fn propose(
    terms: &Terms,
    state: &SeriesState,
    readings: &Readings,
    clock_ms: Option<i64>,
    is_end: bool,
    draw: Draw<'_>,
) -> SeriesProposal {
    let mut step = Step::new(terms, state, draw);
    step.take_in(readings, clock_ms);
    if let Some(received) = &readings.received {
        step.take_received(received);
    }
    step.close_due(is_end);
    step.finish()
}
