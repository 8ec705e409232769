//! What comes into a batch, and what the state will say of it once it has left.

use super::ahead::Encoded;
use super::batch_error::BatchError;
use super::fields::Engine;
use super::gathered::{Gathered, Planned};
use super::turnout::Turnout;
use crate::daemon::engine::clock::Moment;
use crate::daemon::engine::held::{Remaining, kept};
use crate::daemon::state::records::{KeptRow, OffsetRange, Progress};
use crate::io::input::InputBatch;
use crate::records::raw::Coordinate;
use crate::records::table::Batch;
use crate::telemetry::{BatchReport, Limit, LimitReached, StageSeconds};
use std::sync::Arc;

pub(super) fn ranges_of(input: &InputBatch) -> Vec<OffsetRange> {
    let range = |(&(topic, partition), &(from, to))| OffsetRange { topic, partition, from, to };
    input.ranges.iter().map(range).collect()
}

impl Engine {
    /// Refuses records that this state has already settled.
    pub(super) fn check_positions(&self, input: &InputBatch) -> Result<(), BatchError> {
        if self.settings.accept_rewind {
            return Ok(());
        }
        for (&(topic, partition), &(offset, _)) in &input.ranges {
            if let Some(&position) = self.durable.progress.positions.get(&(topic, partition))
                && offset < position
            {
                return Err(BatchError::Rewound { topic, partition, offset, position });
            }
        }
        Ok(())
    }

    /// Puts the held records of the places that `of` names before the encoded input.
    pub(super) fn put_together<'a>(
        &mut self,
        input: &'a InputBatch,
        encoded: Encoded,
        of: &impl Fn(Coordinate) -> bool,
        (clock_ms, age_ms): (i64, i64),
        all: bool,
    ) -> Gathered<'a> {
        let Encoded { rows: mut fresh, mut rejected, mut uncovered_cells, seconds: encode, .. } = encoded;
        let joined = self.joins.join(&mut fresh, &mut self.coding.books, false);
        uncovered_cells += joined.uncovered;
        if self.coding.books.iter().any(|b| b.values() >= self.settings.max_dictionary_values) {
            LimitReached { limit: Limit::DictionaryValues }.emit(&self.telemetry);
        }
        rejected.splice(0..0, input.rejected.iter().cloned());
        let taken = self.held.joining(of, age_ms, all);
        let waits: Vec<Remaining> = taken.iter().map(|&at| self.held.waits[at].clone()).collect();
        let mut waited: Vec<u8> = waits.iter().map(|wait| wait.waited).collect();
        let mut batch = self.held.copy(&taken);
        self.joins.join(&mut batch, &mut self.coding.books, true);
        batch.append(&fresh);
        waited.resize(batch.rows(), 0);
        let first = self.durable.progress.rows;
        let held = taken.iter().map(|&at| self.held.ordinals[at]);
        let ordinals = held.chain(first..first + fresh.rows() as u64).collect();
        let (read, decode) = (input.read_seconds, input.decode_seconds);
        Gathered {
            input,
            fresh: Arc::new(fresh),
            batch,
            waited,
            ordinals,
            taken,
            waits,
            rejected,
            uncovered_cells,
            turnout: Turnout::default(),
            altered_cells: 0,
            unjoined: joined.unjoined,
            planned: Planned::default(),
            is_learned: false,
            last: false,
            clock_ms,
            age_ms,
            seconds: StageSeconds { read, decode, encode, ..StageSeconds::default() },
        }
    }

    /// The rows of `fresh` that the planner's sample takes, as the state keeps them.
    pub(super) fn sampled(&self, fresh: &Batch) -> Vec<KeptRow> {
        let first = self.durable.progress.rows;
        (0..fresh.rows())
            .filter(|row| (first + *row as u64).is_multiple_of(self.learning.sample.stride()))
            .map(|row| kept(fresh, row, first + row as u64, &self.coding.books))
            .collect()
    }

    /// How far the stream has come when this batch has left.
    pub(super) fn progress_after(
        &self,
        input: &InputBatch,
        moment: Moment,
        fresh: usize,
        report: &BatchReport,
        planned: &Planned,
    ) -> Progress {
        let mut after = self.durable.progress.clone();
        after.sequence += 1;
        (after.clock_ms, after.age_ms, after.anchor) = (moment.clock_ms, moment.age_ms, moment.anchor);
        after.totals.add(report);
        after.rows += fresh as u64;
        after.last_rows = fresh as u64;
        after.stride = self.learning.sample.stride();
        after.positions.extend(input.ranges.iter().map(|(place, range)| (*place, range.1)));
        after.left_out = self.learning.model.counted().left_out_pairs();
        after.derived = self.learning.model.derived();
        after.asked = self.planning.search.as_ref().map(|search| search.asked);
        if planned.ended {
            after.planned_ms = moment.age_ms;
            after.planned_rows = self.durable.progress.rows;
        }
        if let Some(plan) = &planned.plan {
            after.plan_version = plan.version;
        }
        after
    }
}
