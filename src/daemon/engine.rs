//! The engine: one batch from raw tokens to a committed release, and everything that it remembers.
//!
//! Nothing that is remembered changes before the batch has left: an aborted batch leaves the engine as it was (but for
//! dictionary entries, on which no output depends).

use super::clock::Moment;
use super::findings::{Finding, Met};
use super::held::{Held, Remaining, kept_waiting};
use super::model::{Model, ModelSettings, ModelSize};
use super::population::Populations;
use super::prime::Primed;
use super::state::directory::StateError;
use super::state::records::{Intent, KeptRow, Progress};
use super::state::rows::RowPacker;
use super::state::store::Store;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::plan::{Pace, Plan};
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::anonymity::planner::sample::Sample;
use crate::anonymity::planner::{GroupShape, PlannerSettings};
use crate::anonymity::privacy::protection::Protection;
use crate::anonymity::treatment::mask::Mask;
use crate::anonymity::treatment::proposal::Proposal;
use crate::anonymity::treatment::treat::{GroupNames, Policy, Protected, treat};
use crate::faults::crash_point;
use crate::io::input::{Closed, InputBatch};
use crate::io::kafka::health::Health;
use crate::records::codebook::Codebook;
use crate::records::line::LineFormat;
use crate::records::raw::Coordinate;
use crate::records::schema::Schema;
use crate::records::subject::Subjects;
use crate::release::ledger::{Ledger, SHARDS};
use crate::release::sink::{DeliveryError, Envelope, Mark, Positions, Sink};
use crate::release::verified::Verified;
use crate::release::verify::{Given, GroupTerms, Needs, Refusal, verify};
use crate::release::witnesses::WitnessDelta;
use crate::telemetry::{Limit, LimitReached, StageSeconds, Telemetry};
use account::Before;
use ahead::{Encoder, Finally};
pub use ahead::{GLANCE, Turn, Unseen, Upcoming};
pub use dampening::DampeningSettings;
use holding::is_all;
use input::{Gathered, ranges_of};
use parts::new_model;
pub use parts::{Parts, Past};
use recheck::Recheck;
use search::Search;
pub use search::SearchSettings;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
pub use turnout::{Draws, RepetitionSettings};
use unjudged::judged;

mod account;
mod ahead;
mod dampening;
mod holding;
mod input;
mod memory;
mod misfits;
mod parts;
mod planning;
mod protection;
mod recheck;
mod search;
mod turnout;
mod unjudged;

/// Settings of the engine.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    pub policy: Policy,
    /// What verification asks of a batch.
    pub needs: Needs,
    pub planner: PlannerSettings,
    pub plan_interval_ms: i64,
    pub search: SearchSettings,
    pub model: ModelSettings,
    /// Values are exchanged between records: what leaves is not true of everybody it is said of.
    pub dampening: Option<DampeningSettings>,
    pub format: LineFormat,
    /// Absent and missing cells are one: the output cannot tell them apart.
    pub absent_as_null: bool,
    /// Nothing is released: the risk is measured.
    pub monitor: bool,
    pub accept_rewind: bool,
    pub max_dictionary_values: usize,
    /// Witnesses that strict recoding keeps at most; none where recoding is not strict.
    pub max_witnesses: Option<usize>,
    pub repetition: RepetitionSettings,
}

/// Why a batch did not leave.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// Undone; it may be tried again with the same ranges and clock.
    #[error("{why}")]
    Aborted { why: String, intent: Box<Intent> },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Fatal(String),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(
        "partition {partition} of topic number {topic} starts at offset {offset}, but this state has released up to offset {position}: releasing records a second time could undo their generalization (restore the offsets, or accept it with --accept-rewind)"
    )]
    Rewound { topic: u16, partition: i32, offset: i64, position: i64 },
}

/// Why held records are settled without new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// The batch is an ordinary one.
    No,
    EndOfStream,
    Shutdown,
    Revoked,
    Quiet,
}

/// The engine.
pub struct Engine {
    schema: Arc<Schema>,
    settings: EngineSettings,
    shapes: Vec<GroupShape>,
    books: Vec<Codebook>,
    subjects: Option<Subjects>,
    /// Rises when dictionaries number their values anew.
    numbering: u64,
    quasi: Vec<usize>,
    plan: Plan,
    /// The first plan, where one was made before the stream.
    primed: Option<Primed>,
    names: GroupNames,
    terms: Vec<GroupTerms>,
    protections: Vec<Protection>,
    /// People of whom every class needs enough.
    populations: Populations,
    /// What the plan compares classes with.
    references: Vec<ReferenceCounts>,
    protected: Vec<Protected>,
    ledger: Ledger,
    model: Model,
    /// As it was when its pairs were last settled: behind the stream by a batch at most.
    model_size: ModelSize,
    sample: Sample,
    held: Held,
    met: Met,
    progress: Progress,
    search: Option<Search>,
    recheck: Option<Recheck>,
    /// What was found out last.
    evidence: Option<Evidence>,
    packer: RowPacker,
    baseline: Baseline,
    /// Records from which the values are asked again what the schema leaves unprotected.
    doubt_at: u64,
    store: Store,
    /// What the marker beside the output files says.
    marked: Option<Mark>,
    telemetry: Telemetry,
    digest: Box<dyn Fn(&str) -> u128 + Send + Sync>,
    draws: Draws,
    /// Names of the plan's groups among what waits and what has been said.
    turn_names: Vec<u128>,
    health: Option<Arc<Health>>,
}

impl Engine {
    /// An engine that goes on where `past` ended.
    ///
    /// # Errors
    /// [`StateError::Damaged`] when the rows of the window are not those of these attributes.
    pub fn new(parts: Parts, past: Past) -> Result<Self, StateError> {
        let Parts {
            schema,
            settings,
            shapes,
            protections,
            populations,
            mut books,
            subjects,
            ledger,
            mut sample,
            store,
            telemetry,
            digest,
            draws,
        } = parts;
        let mut quasi: Vec<usize> = shapes.iter().flat_map(|s| s.quasi.clone()).collect();
        quasi.sort_unstable();
        let mut held = Held::new(schema.attributes.len());
        let mut waiting: Vec<&KeptRow> = past.held.iter().collect();
        waiting.sort_by_key(|row| row.ordinal);
        waiting.into_iter().for_each(|row| held.push(row, &mut books));
        sample.set_stride(past.progress.stride);
        let mut asked_of = None;
        for row in &past.sample {
            if past.progress.asked.is_some_and(|asked| row.ordinal >= asked.rows) {
                // The sample as it was when the plan that is still missing was asked for.
                asked_of.get_or_insert_with(|| sample.clone());
            }
            let codes: Vec<u32> = row.cells.iter().zip(&mut books).map(|(c, book)| book.encode_canonical(c)).collect();
            sample.restore_row(row.ordinal, row.subject, codes.into_iter());
        }
        let mut model = new_model(&schema, &shapes, &settings, &past)
            .map_err(|error| store.damaged(&format!("its model cannot be made: {error}")))?;
        for block in &past.rows {
            model.restore(block, &mut books).ok_or_else(|| store.damaged("rows of the window cannot be read"))?;
        }
        let totals = past.progress.totals;
        let met = Met::new(schema.attributes.len(), settings.policy.k).resume(past.met, totals.consumed);
        telemetry.restore(totals, met.monitored());
        // A plan for other groups than the configured ones is of no use, nor is one that has nothing to compare classes
        // with: the next batch makes a new one.
        let known = |p: &Protection| past.references.iter().any(|r| r.attribute == p.attribute);
        let all_known = protections.iter().filter(|p| p.needs_reference()).all(known);
        // Neither is one that does not know, as it is configured now, what changes.
        let declares = |pace: &Pace| {
            schema.attributes.get(pace.attribute).is_some_and(|a| match a.changes {
                Some(changes) => pace.declared && pace.changes == changes,
                None => !pace.declared,
            })
        };
        let fits = |plan: &Plan| {
            all_known
                && plan.paces.is_empty() == (settings.repetition.max_delay_ms == 0)
                && plan.paces.iter().all(declares)
                && plan.groups.len() == shapes.len()
                && plan.groups.iter().zip(&shapes).all(|(g, s)| {
                    (&g.name, &g.quasi, &g.sensitive, &g.insensitive)
                        == (&s.name, &s.quasi, &s.sensitive, &s.insensitive)
                })
        };
        let plan = past.plan.filter(fits).unwrap_or(Plan::blank(Vec::new()));
        let mut engine = Self {
            quasi,
            plan,
            met,
            primed: past.primed,
            names: GroupNames::default(),
            terms: Vec::new(),
            protections,
            populations,
            references: past.references,
            protected: Vec::new(),
            schema,
            settings,
            shapes,
            books,
            subjects,
            numbering: 0,
            ledger,
            model,
            model_size: ModelSize::default(),
            sample,
            held,
            marked: past.progress.marked,
            progress: past.progress,
            search: None,
            recheck: None,
            evidence: past.evidence,
            packer: RowPacker::default(),
            baseline: past.baseline,
            doubt_at: 0,
            store,
            telemetry,
            digest,
            draws,
            turn_names: Vec::new(),
            health: None,
        };
        engine.settle_model();
        engine.adopt(engine.plan.clone());
        engine.model.watch(&engine.baseline, &engine.books);
        engine.keep_witnesses(&past.witnessed);
        if let Some(asked) = engine.progress.asked.filter(|_| engine.plan.version > 0) {
            engine.seek(asked, asked_of);
        }
        Ok(engine)
    }

    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// What an operator must know of the records of this state, the worst first.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.met.findings(&self.schema)
    }

    /// Identity of the state.
    #[must_use]
    pub fn state_id(&self) -> String {
        self.store.id().to_owned()
    }

    /// From here on a state that does not answer makes the daemon not ready, and `stop` shortens the wait for it.
    pub fn heed(&mut self, stop: &Arc<AtomicBool>) {
        self.store.watch(&self.telemetry, stop);
    }

    /// What the marker beside the output files may say.
    #[must_use]
    pub fn marks(&self) -> &[Option<Mark>] {
        self.store.marks()
    }

    /// Notes what it was found to say.
    pub fn found_marked(&mut self, marked: Option<Mark>) {
        self.marked = marked;
        self.store.found_marked(marked);
    }

    /// Reports the lag that the client knows of.
    pub fn watch(&mut self, health: Arc<Health>) {
        self.health = Some(health);
    }

    /// Notes the lengths of freshly opened output files: they are ours from here on.
    ///
    /// # Errors
    /// When the state fails.
    pub fn begin(&mut self, lengths: crate::release::sink::Lengths) -> Result<(), StateError> {
        self.progress.lengths = lengths;
        self.store.begin(&self.progress)
    }

    /// Whether a committed batch is not yet written to the state (its intent is, so nothing can be lost).
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.store.is_behind()
    }

    /// Writes what only the memory knows. Call it when there is nothing else to do, and at the end.
    ///
    /// # Errors
    /// When the state fails.
    pub fn flush(&mut self) -> Result<(), StateError> {
        self.store.flush(&self.ledger)
    }

    /// Treats, verifies and delivers a batch, and remembers it.
    ///
    /// `retry` is the intent of the attempt before, when there was one: its clock and its ranges are kept, so that the
    /// attempt reproduces the same bytes; unless a crowd has lost support since, and the batch is treated anew. What is `upcoming` is encoded while the batch leaves.
    ///
    /// # Errors
    /// See [`BatchError`]; nothing has left and nothing is remembered then.
    pub fn process(
        &mut self,
        turn: &mut Turn,
        settling: Settling,
        retry: Option<&Intent>,
        sink: &mut dyn Sink,
        now: impl Into<Moment>,
        upcoming: &mut dyn Upcoming,
    ) -> Result<(), BatchError> {
        self.process_part(turn, settling, |_| true, retry, sink, now.into(), upcoming)
    }

    /// Settles the held records of some partitions, and only those. What waits for a delay is settled where the
    /// records' time here is over (end, shutdown, revocation), and waits on where the stream is only quiet.
    ///
    /// # Errors
    /// As [`process`](Self::process).
    pub fn settle(
        &mut self,
        of: impl Fn(Coordinate) -> bool,
        settling: Settling,
        retry: Option<&Intent>,
        sink: &mut dyn Sink,
        now: impl Into<Moment>,
    ) -> Result<(), BatchError> {
        let now = now.into();
        let age_ms = retry.map_or(now.age_ms, |r| r.after.age_ms).max(self.progress.age_ms);
        if self.held.joining(&of, age_ms, is_all(settling, retry)).is_empty() {
            return Ok(());
        }
        let mut input = InputBatch::new(self.schema.attributes.len(), 0);
        input.source_bytes = self.progress.source_bytes;
        self.process_part(&mut Box::new(input).into(), settling, of, retry, sink, now, &mut Unseen)
    }

    #[allow(clippy::too_many_arguments, reason = "a batch, how it is to be treated, and the world around it")]
    fn process_part(
        &mut self,
        turn: &mut Turn,
        settling: Settling,
        of: impl Fn(Coordinate) -> bool,
        retry: Option<&Intent>,
        sink: &mut dyn Sink,
        now: Moment,
        upcoming: &mut dyn Upcoming,
    ) -> Result<(), BatchError> {
        let encoded = turn.take_encoded(self.numbering);
        let input = &*turn.input;
        self.check_positions(input)?;
        let mut seconds =
            StageSeconds { read: input.read_seconds, decode: input.decode_seconds, ..StageSeconds::default() };
        let clock_ms = retry.map_or(now.clock_ms, |r| r.after.clock_ms).max(self.progress.clock_ms);
        let age_ms = retry.map_or(now.age_ms, |r| r.after.age_ms).max(self.progress.age_ms);
        // Whoever encoded ahead saw that there was room.
        self.compact_dictionaries(if encoded.is_some() { 0 } else { input.raw.rows() });
        let planned = self.plan_if_due(age_ms);
        let adopted = planned.plan.is_some();

        let (schema, settings, subjects) = (&self.schema, &self.settings, self.subjects.as_mut());
        let mut encoder = Encoder { schema, settings, subjects, books: &mut self.books, numbering: self.numbering };
        let encoded = encoded.unwrap_or_else(|| encoder.encode(input));
        seconds.encode = encoded.seconds;
        let all = is_all(settling, retry);
        let Gathered { fresh, mut batch, waited, ordinals, taken, waits, rejected, uncovered_cells } =
            self.gather(input, encoded, &of, age_ms, all);
        self.model.begin(&fresh);

        let start = Instant::now();
        let waiting = batch.rows() - fresh.rows();
        if self.settings.dampening.is_some() {
            self.settle_model();
        }
        let dampened_cells = self.dampen(&mut batch, waiting);
        let last = settling != Settling::No || input.closed == Closed::Settle;
        let mut turnout = self.turn_out(&batch, &waits, age_ms, all);
        // The intent may be old: what supported its batch then need not any more.
        let late = retry.is_some().then_some(now.age_ms).filter(|now| *now > age_ms);
        let ledger = &self.ledger;
        let (plan, names, books, policy) = (&self.plan, &self.names, &self.books, &self.settings.policy);
        let mask = &turnout.mask;
        let (packer, store, attributes) = (&mut self.packer, &mut self.store, self.model.kept());
        let (sequence, first) = (self.progress.sequence + 1, self.progress.rows);
        let needs = self.settings.needs;
        let (protected, terms, populations) = (&self.protected, &self.terms, self.populations.treated.as_slice());
        let (mut proposal, verified, age_ms) = std::thread::scope(|scope| {
            // Rows are large and must be on disk before the batch leaves: that is waited for beside the treatment.
            let laid = scope.spawn(|| {
                let rows = (fresh.rows() > 0).then(|| packer.pack(&fresh, first, attributes, books));
                store.lay_rows(sequence, rows.as_ref())
            });
            let treated = |mask: &Mask, age| {
                treat(&batch, mask, &waited, plan, names, books, &ledger.at(age), policy, protected, populations, last)
            };
            let (subjects, columns) = (batch.subjects.as_slice(), batch.columns.as_slice());
            let given = |age_ms| Given { subjects, columns, waiting, sequence, age_ms };
            let verified = |groups, age| verify(groups, &given(age), terms, books, ledger.at(age), needs);
            let (mut proposal, mut age_ms) = (treated(mask, age_ms), age_ms);
            seconds.treat = start.elapsed().as_secs_f64();

            let start = Instant::now();
            let judge = |proposal: &mut Proposal, age, at, keeps| {
                let treated = |mask: &Mask| treated(mask, age);
                judged(proposal, plan, mask, keeps, treated, |groups| verified(groups, at))
            };
            let mut verdict = judge(&mut proposal, age_ms, late.unwrap_or(age_ms), late.is_some());
            if let Some(now) = late {
                if verdict.is_ok() {
                    verdict = verified(std::mem::take(&mut proposal.groups), age_ms);
                } else {
                    // Other bytes than those of the attempt before: the crowd is worth more.
                    (proposal, age_ms) = (treated(mask, now), now);
                    verdict = judge(&mut proposal, now, now, false);
                }
            }
            let verified = verdict?;
            seconds.verify = start.elapsed().as_secs_f64();
            laid.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok::<_, BatchError>((proposal, verified, age_ms))
        })?;
        let clock_ms = if late == Some(age_ms) { clock_ms.max(now.clock_ms) } else { clock_ms };
        let witnessed =
            ledger.at(age_ms).witness_delta(sequence, verified.delta().time, &batch, &proposal.cells, &self.books);

        let before = Before { batch: &batch, waits: &waits, waited: &waited };
        let remaining = self.remaining(&mut turnout, &before, &mut proposal, &verified, age_ms);
        let mut report =
            self.account(input, &fresh, &before, &proposal, &turnout, &remaining, &verified, &rejected, settling);
        report.dampened_cells = dampened_cells;
        let monitor = self.settings.monitor;
        let keep = |(&row, wait): (&u32, &Remaining)| {
            kept_waiting(&batch, row as usize, ordinals[row as usize], wait, &self.needs(wait), &self.books)
        };
        let held: Vec<KeptRow> = remaining.iter().map(keep).collect();
        let settled = taken.iter().map(|&at| self.held.ordinals[at]).collect();
        let sampled = self.sampled(&fresh);
        let ledger = if monitor { Vec::new() } else { verified.delta().to_bytes() };
        // The last moment: the pairs of the batch before have had all this time.
        let start = Instant::now();
        self.settle_model();
        self.measure_model(&mut report);
        seconds.learn = start.elapsed().as_secs_f64();
        let moment = Moment { clock_ms, age_ms, anchor: now.anchor };
        let attempt = uuid::Uuid::new_v4().as_u64_pair().0;
        let mut after = self.progress_after(input, moment, fresh.rows(), &report, &planned);
        if sink.marks() {
            after.marked = Some(Mark { sequence: after.sequence, attempt });
        }
        let intent = Intent {
            attempt,
            ranges: ranges_of(input),
            last,
            all,
            after,
            marked_before: self.marked,
            ledger,
            witnessed: if monitor { WitnessDelta::default() } else { witnessed.clone() },
            sampled,
            settled,
            held,
            baseline: planned.plan.is_some().then(|| self.baseline.clone()),
            references: if planned.plan.is_some() { self.references.clone() } else { Vec::new() },
            plan: planned.plan,
            evidence: self.take_evidence(),
            met: Some(self.met_with(&fresh, &rejected, input.long_rows, &report)),
        };

        let start = Instant::now();
        let positions: Positions = input.ranges.iter().map(|(place, range)| (*place, range.1)).collect();
        let envelope = Envelope {
            sequence: intent.after.sequence,
            attempt: intent.attempt,
            clock_ms,
            positions: &positions,
            rejected: &rejected,
            subjects: &batch.subjects,
            coordinates: &batch.coordinates,
        };
        let nothing = Verified::nothing(self.plan.groups.len());
        let bytes_before = sink.bytes_out();
        let (schema, settings, subjects) = (&self.schema, &self.settings, self.subjects.as_mut());
        let mut encoder = Encoder { schema, settings, subjects, books: &mut self.books, numbering: self.numbering };
        let (store, ledger, over) = (&mut self.store, &self.ledger, AtomicBool::new(false));
        let delivered = std::thread::scope(|scope| {
            scope.spawn(|| encoder.look_ahead(upcoming, &over));
            let _over = Finally(&over);
            store.intend(&intent, ledger)?;
            crash_point("intent-flushed");
            Ok::<_, StateError>(sink.deliver(if monitor { &nothing } else { &verified }, &envelope))
        })?;
        let lengths = match delivered {
            Ok(lengths) => lengths,
            Err(DeliveryError::Aborted(why)) => {
                return Err(BatchError::Aborted { why, intent: Box::new(intent) });
            }
            Err(DeliveryError::Fatal(why)) => return Err(BatchError::Fatal(why)),
        };
        crash_point("delivered");

        // From here on the batch has left: nothing below may fail, and all of it is remembered.
        if !self.ledger.apply(verified.delta()) {
            LimitReached { limit: Limit::LedgerClasses }.emit(&self.telemetry);
        }
        self.tell_of_full_tally(batch.rows());
        self.tell_of_full_supporters(batch.rows());
        self.ledger.expire(usize::try_from(intent.after.sequence).unwrap_or(0) % SHARDS, age_ms);
        self.remember_witnesses(&witnessed);
        self.meet(intent.met.as_ref());
        self.sample.add(&fresh, self.progress.rows);
        self.progress = Progress { lengths: lengths.clone(), ..intent.after.clone() };
        if sink.marks() {
            self.marked = self.progress.marked;
        }
        let (plan, names, width) = (&self.plan, &self.turn_names, self.schema.attributes.len());
        let needs = |wait: &Remaining| turnout::needs(plan, names, width, wait);
        self.held.advance(&taken, &batch, &ordinals, remaining, needs);
        if let Some(limit) = turnout.full {
            LimitReached { limit }.emit(&self.telemetry);
        }
        self.store.left(intent, lengths);
        if self.sample.rows() > 0 {
            let oldest = self.search.as_ref().and_then(|search| search.first_row).unwrap_or(u64::MAX);
            self.store.forget_sample_before(self.sample.ordinal(0).min(oldest));
        }
        seconds.commit = start.elapsed().as_secs_f64();
        let start = Instant::now();
        self.learn(&fresh);
        seconds.learn += start.elapsed().as_secs_f64();
        if adopted {
            self.begin_recheck();
        }
        self.store.forget_rows_before(self.progress.rows - self.model.window().rows() as u64);
        crash_point("applied");
        report.append_to_commit_seconds =
            input.oldest_ms.map(|oldest| (super::file_run::now_ms() - oldest).max(0) as f64 / 1000.0);
        self.tell(report, seconds, sink.bytes_out() - bytes_before, uncovered_cells);
        self.tell_of_misfits(&rejected);
        self.doubt();
        Ok(())
    }
}
