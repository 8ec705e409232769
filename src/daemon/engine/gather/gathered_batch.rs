//! First step of a batch: encodes the input, prepends held records and bounds contributions.

use super::contribution_limit::{ContributionLimiter, GroupParticipation};
use super::encode_ahead::{BatchEncoder, EncodedBatch, QueuedBatch};
use super::held_records::PendingRow;
use crate::daemon::engine::core::{BatchError, Engine};
use crate::daemon::state::clock::BatchTime;
use crate::daemon::state::entries::ErasedEntry;
use crate::daemon::state::records::{BatchIntent, Flush, StreamProgress};
use crate::telemetry::{Limit, LimitReached, StageSeconds};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use throng_core::microaggregation::NumericResolution;
use throng_core::plan::Plan;
use throng_core::stream::input_batch::{InputBatch, InputPartition};
use throng_core::stream::release_sink::RejectedRecord;
use throng_core::treatment::number_alteration::{Alteration, RecordNumber, altered_numbers};
use throng_core::values::canonical::CanonicalKind;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{Code, FIRST_VALUE};
use throng_core::values::raw_batch::{RawToken, RecordPosition};
use throng_core::values::schema::AttributeTreatment;

#[derive(Debug, Default)]
pub(crate) struct PlanningOutcome {
    /// In force from this batch on.
    pub plan: Option<Plan>,
    /// A search has ended, with or without a plan.
    pub ended: bool,
}

impl PlanningOutcome {
    pub fn with(plan: Plan) -> Self {
        Self { plan: Some(plan), ended: true }
    }
}

pub(crate) struct GatheredBatch<'a> {
    pub input: &'a InputBatch,
    /// Records of this batch.
    pub fresh: Arc<CodeBatch>,
    /// Held records, then fresh ones.
    pub batch: CodeBatch,
    pub waited: Vec<u8>,
    pub ordinals: Vec<u64>,
    /// Positions of the held records.
    pub taken: Vec<usize>,
    pub waits: Vec<PendingRow>,
    /// Unreadable records, in source order.
    pub rejected: Vec<RejectedRecord>,
    /// Cells outside their hierarchies.
    pub uncovered_cells: u64,
    pub turnout: GroupParticipation,
    pub altered_cells: u64,
    /// Records without a profile.
    pub unjoined: u64,
    pub planned: PlanningOutcome,
    /// The model and the sample contain the fresh records.
    pub is_learned: bool,
    pub flush: Flush,
    pub clock_ms: i64,
    pub age_ms: i64,
    pub seconds: StageSeconds,
}

pub(crate) struct BatchInstruction<'a> {
    pub flush: Flush,
    /// Previous attempt.
    pub retry: Option<&'a BatchIntent>,
    pub now: BatchTime,
    /// Changelog changes for erased subjects.
    pub erased: Vec<(InputPartition, ErasedEntry)>,
}

impl<'a> BatchInstruction<'a> {
    /// Creates an instruction without erasures.
    pub fn new(flush: Flush, retry: Option<&'a BatchIntent>, now: BatchTime) -> Self {
        Self { flush: retry.map_or(flush, |intent| intent.flush), retry, now, erased: Vec::new() }
    }

    /// Returns whether delayed rows are settled; a retry repeats its first attempt.
    pub fn flushes_delayed(&self) -> bool {
        self.flush.includes_delayed()
    }

    /// Returns the clock and the state age of the batch.
    pub fn clock_and_age(&self, progress: &StreamProgress) -> (i64, i64) {
        let (clock_ms, age_ms) =
            self.retry.map_or((self.now.clock_ms, self.now.age_ms), |r| (r.after.clock_ms, r.after.age_ms));
        (clock_ms.max(progress.clock_ms), age_ms.max(progress.age_ms))
    }
}

impl Engine {
    /// Prepends due held records at places that match `of`.
    pub(crate) fn gather<'a>(
        &mut self,
        turn: &'a mut QueuedBatch,
        of: &impl Fn(RecordPosition) -> bool,
        order: &BatchInstruction<'_>,
    ) -> Result<GatheredBatch<'a>, BatchError> {
        let encoded = turn.take_encoded(self.coding.numbering);
        let input = &*turn.input;
        self.check_positions(input)?;
        self.check_profiles(order.retry)?;
        let (clock_ms, age_ms) = order.clock_and_age(&self.durable.progress);
        let taken = self.held.due_rows(of, age_ms, order.flushes_delayed());
        let coming = if encoded.is_some() { 0 } else { self.settings.max_new_values(input.rows()) };
        let joining = if self.joins.is_empty() { 0 } else { input.raw.rows() + taken.len() };
        self.compaction().make_room(coming, joining);
        let learns_first = self.plans_from_first(order.retry);
        let planned = if learns_first { PlanningOutcome::default() } else { self.plan_if_due(age_ms) };
        let encoded = match encoded {
            Some(encoded) => encoded,
            None => BatchEncoder::new(&self.schema, &self.settings, &mut self.coding).encode(input),
        };
        let mut gathered = self.prepend_held(input, encoded, taken);
        (gathered.planned, gathered.clock_ms, gathered.age_ms) = (planned, clock_ms, age_ms);
        self.learning.model.observe_first_batch(&gathered.fresh);
        if learns_first {
            gathered.planned = self.plan_from(&gathered.fresh);
        }
        gathered.is_learned = learns_first;
        gathered.flush = order.flush;

        let start = Instant::now();
        let waiting = gathered.waits.len();
        gathered.altered_cells = self.alter_numbers(&mut gathered.batch, waiting);
        gathered.turnout = self.limiter(&gathered).select_rows(order.flushes_delayed());
        gathered.seconds.treat = start.elapsed().as_secs_f64();
        Ok(gathered)
    }

    pub(crate) fn limiter<'a>(&'a self, gathered: &'a GatheredBatch<'_>) -> ContributionLimiter<'a> {
        ContributionLimiter {
            settings: self.settings.repetition,
            plan: &self.in_force.plan,
            names: &self.in_force.group_keys,
            draws: &self.draws,
            known_releases: self.ledger.release_log.as_ref(),
            held: &self.held,
            batch: &gathered.batch,
            waits: &gathered.waits,
            waited: &gathered.waited,
            age_ms: gathered.age_ms,
        }
    }

    fn check_positions(&self, input: &InputBatch) -> Result<(), BatchError> {
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

    fn prepend_held<'a>(
        &mut self,
        input: &'a InputBatch,
        encoded: EncodedBatch,
        taken: Vec<usize>,
    ) -> GatheredBatch<'a> {
        let EncodedBatch { rows: mut fresh, mut rejected, mut uncovered_cells, seconds: encode, .. } = encoded;
        let joined = self.joins.join(&mut fresh, &mut self.coding.books, false);
        uncovered_cells += joined.uncovered;
        if self.coding.books.iter().any(|b| b.values() >= self.settings.max_dictionary_values) {
            LimitReached { limit: Limit::DictionaryValues }.emit(&self.telemetry);
        }
        rejected.splice(0..0, input.rejected.iter().cloned());
        let waits: Vec<PendingRow> = taken.iter().map(|&at| self.held.waits[at].clone()).collect();
        let mut waited: Vec<u8> = waits.iter().map(|wait| wait.waited).collect();
        let mut batch = self.held.copy_rows(&taken);
        self.joins.join(&mut batch, &mut self.coding.books, true);
        batch.append(&fresh);
        waited.resize(batch.rows(), 0);
        let first = self.durable.progress.rows;
        let held = taken.iter().map(|&at| self.held.ordinals[at]);
        let ordinals = held.chain(first..first + fresh.rows() as u64).collect();
        let (read, decode) = (input.read_seconds, input.decode_seconds);
        GatheredBatch {
            input,
            fresh: Arc::new(fresh),
            batch,
            waited,
            ordinals,
            taken,
            waits,
            rejected,
            uncovered_cells,
            turnout: GroupParticipation::default(),
            altered_cells: 0,
            unjoined: joined.unjoined,
            planned: PlanningOutcome::default(),
            is_learned: false,
            flush: Flush::No,
            clock_ms: 0,
            age_ms: 0,
            seconds: StageSeconds { read, decode, encode, ..StageSeconds::default() },
        }
    }

    /// Returns the number of changed cells. The first `waiting` rows were altered earlier; a repeated batch is altered
    /// identically.
    fn alter_numbers(&mut self, batch: &mut CodeBatch, waiting: usize) -> u64 {
        let mut changed = 0;
        for number in 0..self.in_force.plan.groups.len() {
            let quasi = self.in_force.plan.groups[number].quasi.clone();
            for &attribute in &quasi {
                if self.in_force.plan.identifiers.contains(&attribute) {
                    continue;
                }
                let alteration = match self.schema.attributes[attribute].treatment {
                    AttributeTreatment::Perturb => Alteration::Closest,
                    AttributeTreatment::Aggregate => Alteration::Mean,
                    AttributeTreatment::Generalize
                    | AttributeTreatment::SuppressCell
                    | AttributeTreatment::SuppressRecord => continue,
                };
                let Some(resolution) = NumericResolution::of(&self.schema.attributes[attribute].typing) else {
                    continue;
                };
                let others: Vec<usize> = quasi.iter().copied().filter(|other| *other != attribute).collect();
                let mut codes: HashMap<i64, Option<Code>> = HashMap::new();
                for alike in self.group_numbers(batch, waiting, attribute, &others, resolution) {
                    for (row, steps) in altered_numbers(alike, alteration, self.settings.policy.k) {
                        let code =
                            *codes.entry(steps).or_insert_with(|| self.code_of_number(attribute, resolution, steps));
                        if let Some(code) = code {
                            batch.columns[attribute][row as usize] = code;
                            changed += 1;
                        }
                    }
                }
            }
        }
        changed
    }

    fn group_numbers(
        &self,
        batch: &CodeBatch,
        waiting: usize,
        attribute: usize,
        others: &[usize],
        resolution: NumericResolution,
    ) -> Vec<Vec<RecordNumber>> {
        let (book, column) = (&self.coding.books[attribute], &batch.columns[attribute]);
        let mut alike: HashMap<Vec<Code>, Vec<RecordNumber>> = HashMap::new();
        for row in (waiting..batch.rows()).filter(|&row| column[row] >= FIRST_VALUE) {
            let Some(steps) = resolution.steps(book.canonical(column[row])) else { continue };
            let key = others.iter().map(|&other| batch.columns[other][row]).collect();
            let number = RecordNumber {
                row: u32::try_from(row).expect("a batch is bounded"),
                subject: batch.subjects[row],
                steps,
            };
            alike.entry(key).or_default().push(number);
        }
        alike.into_values().collect()
    }

    /// Returns `None` if the text of the number has another meaning, such as missing.
    fn code_of_number(&mut self, attribute: usize, resolution: NumericResolution, steps: i64) -> Option<Code> {
        let text = resolution.number(steps);
        let mut canonical = String::new();
        let typing = self.schema.attributes[attribute].typing.without_conversion();
        let read = typing.canonical(RawToken::Number(&text), &mut canonical);
        let is_itself = read == Ok(CanonicalKind::Value) && canonical == text;
        is_itself.then(|| self.coding.books[attribute].encode_canonical(&text))
    }
}
