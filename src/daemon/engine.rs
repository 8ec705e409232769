//! The engine: one batch from raw tokens to a committed release, and everything that it remembers.
//!
//! Nothing that is remembered changes before the batch has left: an aborted batch leaves the engine as it was (but for
//! dictionary entries, on which no output depends).

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
use crate::anonymity::treatment::treat::{GroupNames, Policy, Protected};
use crate::codec::LineFormat;
use crate::daemon::engine::clock::Moment;
use crate::daemon::engine::held::Held;
use crate::daemon::engine::model::{Model, ModelSettings, ModelSize};
use crate::daemon::engine::prime::Primed;
use crate::io::input::{FileOrigin, InputBatch, Origin};
use crate::ledger::classes::Ledger;
use crate::records::codebook::Codebook;
use crate::records::raw::Coordinate;
use crate::records::schema::Schema;
use crate::records::subject::Subjects;
use crate::release::given::{GroupTerms, Needs};
use crate::release::sink::{Mark, Sink};
use crate::release::verify::Refusal;
use crate::start::findings::{Finding, Met};
use crate::start::population::Populations;
use crate::telemetry::Telemetry;
pub use ahead::{GLANCE, Turn, Unseen, Upcoming};
pub use dampening::DampeningSettings;
use holding::is_all;
use parts::new_model;
pub use parts::{Parts, Past};
use recheck::Recheck;
use search::Search;
pub use search::SearchSettings;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use steps::Order;
pub use turnout::{Draws, RepetitionSettings};

mod account;
mod ahead;
pub mod assemble;
pub mod clock;
mod dampening;
pub mod held;
mod holding;
mod input;
mod memory;
mod misfits;
pub mod model;
mod parts;
pub mod picture;
mod planning;
pub mod prime;
mod protection;
mod recheck;
mod search;
mod steps;
pub mod terms;
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

/// What is in force for a batch: the plan, and all that follows from it.
struct InForce {
    plan: Plan,
    names: GroupNames,
    /// Names of the plan's groups among what waits and what has been said.
    turn_names: Vec<u128>,
    terms: Vec<GroupTerms>,
    protections: Vec<Protection>,
    protected: Vec<Protected>,
    /// People of whom every class needs enough.
    populations: Populations,
    /// What the plan compares classes with.
    references: Vec<ReferenceCounts>,
}

/// What has been learned of the stream.
struct Learning {
    model: Model,
    /// As it was when its pairs were last settled: behind the stream by a batch at most.
    model_size: ModelSize,
    sample: Sample,
    /// What the plan in force was made for.
    baseline: Baseline,
    /// Since the start of the process.
    met: Met,
    /// Records from which the values are asked again what the schema leaves unprotected.
    doubt_at: u64,
}

/// The next plan.
struct Planning {
    /// The first plan, where one was made before the stream.
    primed: Option<Primed>,
    search: Option<Search>,
    recheck: Option<Recheck>,
    /// What was found out last.
    evidence: Option<Evidence>,
}

/// What survives the process.
struct Durable {
    store: Store,
    packer: RowPacker,
    progress: Progress,
    /// What the marker beside the output files says.
    marked: Option<Mark>,
}

/// From values to codes.
struct Coding {
    books: Vec<Codebook>,
    subjects: Option<Subjects>,
    /// Rises when dictionaries number their values anew.
    numbering: u64,
}

/// The engine.
pub struct Engine {
    schema: Arc<Schema>,
    settings: EngineSettings,
    shapes: Vec<GroupShape>,
    quasi: Vec<usize>,
    in_force: InForce,
    learning: Learning,
    planning: Planning,
    durable: Durable,
    coding: Coding,
    ledger: Ledger,
    held: Held,
    telemetry: Telemetry,
    digest: Box<dyn Fn(&str) -> u128 + Send + Sync>,
    draws: Draws,
    /// Where the records come from.
    origin: Arc<dyn Origin>,
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
        let progress = past.progress;
        let mut engine = Self {
            in_force: InForce {
                plan,
                names: GroupNames::default(),
                turn_names: Vec::new(),
                terms: Vec::new(),
                protections,
                protected: Vec::new(),
                populations,
                references: past.references,
            },
            learning: Learning {
                model,
                model_size: ModelSize::default(),
                sample,
                baseline: past.baseline,
                met,
                doubt_at: 0,
            },
            planning: Planning { primed: past.primed, search: None, recheck: None, evidence: past.evidence },
            durable: Durable { store, packer: RowPacker::default(), marked: progress.marked, progress },
            coding: Coding { books, subjects, numbering: 0 },
            quasi,
            schema,
            settings,
            shapes,
            ledger,
            held,
            telemetry,
            digest,
            draws,
            origin: Arc::new(FileOrigin),
        };
        engine.settle_model();
        engine.adopt(engine.in_force.plan.clone());
        engine.learning.model.watch(&engine.learning.baseline, &engine.coding.books);
        engine.keep_witnesses(&past.witnessed);
        if let Some(asked) = engine.durable.progress.asked.filter(|_| engine.in_force.plan.version > 0) {
            engine.seek(asked, asked_of);
        }
        Ok(engine)
    }

    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.durable.progress
    }

    /// What an operator must know of the records of this state, the worst first.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.learning.met.findings(&self.schema)
    }

    /// Identity of the state.
    #[must_use]
    pub fn state_id(&self) -> String {
        self.durable.store.id().to_owned()
    }

    /// From here on a state that does not answer makes the daemon not ready, and `stop` shortens the wait for it.
    pub fn heed(&mut self, stop: &Arc<AtomicBool>) {
        self.durable.store.watch(&self.telemetry, stop);
    }

    /// What the marker beside the output files may say.
    #[must_use]
    pub fn marks(&self) -> &[Option<Mark>] {
        self.durable.store.marks()
    }

    /// Notes what it was found to say.
    pub fn found_marked(&mut self, marked: Option<Mark>) {
        self.durable.marked = marked;
        self.durable.store.found_marked(marked);
    }

    /// Records come from `origin`; without it, from a file.
    pub fn come_from(&mut self, origin: Arc<dyn Origin>) {
        self.origin = origin;
    }

    /// Notes the lengths of freshly opened output files: they are ours from here on.
    ///
    /// # Errors
    /// When the state fails.
    pub fn begin(&mut self, lengths: crate::release::sink::Lengths) -> Result<(), StateError> {
        self.durable.progress.lengths = lengths;
        self.durable.store.begin(&self.durable.progress)
    }

    /// Whether a committed batch is not yet written to the state (its intent is, so nothing can be lost).
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.durable.store.is_behind()
    }

    /// Writes what only the memory knows. Call it when there is nothing else to do, and at the end.
    ///
    /// # Errors
    /// When the state fails.
    pub fn flush(&mut self) -> Result<(), StateError> {
        self.durable.store.flush(&self.ledger)
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
        self.process_part(turn, |_| true, &Order { settling, retry, now: now.into() }, sink, upcoming)
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
        let age_ms = retry.map_or(now.age_ms, |r| r.after.age_ms).max(self.durable.progress.age_ms);
        if self.held.joining(&of, age_ms, is_all(settling, retry)).is_empty() {
            return Ok(());
        }
        let mut input = InputBatch::new(self.schema.attributes.len(), 0);
        input.source_bytes = self.durable.progress.source_bytes;
        let order = Order { settling, retry, now };
        self.process_part(&mut Box::new(input).into(), of, &order, sink, &mut Unseen)
    }
}
