//! The engine: all that it knows and remembers, and what the daemon asks of it between batches.

use super::audit::Auditor;
use super::clock::Moment;
use super::contribution_limit::Draws;
use super::held::Held;
use super::joins::{Joins, Updates};
use super::model::{Model, ModelSize};
use super::prime::Primed;
use super::search::{Recheck, Search};
use super::series_stream::SeriesStream;
use super::settings::{Blank, EngineSettings};
use crate::anonymity::plan::Plan;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::GroupShape;
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::anonymity::planner::sample::Sample;
use crate::anonymity::privacy::protection::Protection;
use crate::anonymity::treatment::treat::{GroupNames, Protected};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::entries::{Binding, EntryCodec, Erased};
use crate::daemon::state::records::{Intent, Progress};
use crate::daemon::state::rows::RowPacker;
use crate::daemon::state::store::Store;
use crate::daemon::state::store::binding::TopicPosition;
use crate::io::input::{Origin, Place};
use crate::io::profiles::{Feed, ProfilesError};
use crate::release::given::GroupTerms;
use crate::release::series::SeriesRefusal;
use crate::release::verify::Refusal;
use crate::start::findings::{Finding, Met};
use crate::telemetry::{Limit, LimitReached, Telemetry};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use throng_core::ledger::per_subject::Ledger;
use throng_core::values::codebook::Codebook;
use throng_core::values::schema::Schema;
use throng_core::values::subject::Subjects;

/// Time between two looks at the stop flag while profiles are read.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What is in force for a batch: the plan, and all that follows from it.
pub(super) struct InForce {
    pub(super) plan: Plan,
    pub(super) names: GroupNames,
    /// Names of the plan's groups among what waits and what has been said.
    pub(super) turn_names: Vec<u128>,
    pub(super) terms: Vec<GroupTerms>,
    pub(super) protections: Vec<Protection>,
    pub(super) protected: Vec<Protected>,
    /// What the plan compares classes with.
    pub(super) references: Vec<ReferenceCounts>,
}

/// What has been learned of the stream.
pub(super) struct Learning {
    pub(super) model: Model,
    /// As it was when its pairs were last settled: behind the stream by a batch at most.
    pub(super) model_size: ModelSize,
    pub(super) sample: Sample,
    /// What the plan in force was made for.
    pub(super) baseline: Baseline,
    /// Since the start of the process.
    pub(super) met: Met,
    /// Records from which the values are asked again what the schema leaves unprotected.
    pub(super) doubt_at: u64,
}

impl InForce {
    /// Nothing, until a plan is adopted.
    pub fn new(protections: Vec<Protection>) -> Self {
        Self {
            plan: Plan::blank(Vec::new()),
            names: GroupNames::default(),
            turn_names: Vec::new(),
            terms: Vec::new(),
            protections,
            protected: Vec::new(),
            references: Vec::new(),
        }
    }
}

/// The next plan.
#[derive(Default)]
pub(super) struct Planning {
    /// The first plan, where one was made before the stream.
    pub(super) primed: Option<Primed>,
    pub(super) search: Option<Search>,
    pub(super) recheck: Option<Recheck>,
    /// What was found out last.
    pub(super) evidence: Option<Evidence>,
    /// Who chose the groups and why, for the pages; null where the configuration gives them.
    pub(super) chosen: serde_json::Value,
    /// Which treatments the rules have come to, as pages show it.
    pub(super) treatments: serde_json::Value,
}

/// What survives the process.
pub(super) struct Durable {
    pub(super) store: Store,
    /// Writes and reads entries of the changelog; none where the source is a file.
    pub(super) log: Option<EntryCodec>,
    /// What the entries belong to.
    pub(super) binding: Binding,
    /// Partitions whose state is known.
    pub(super) places: BTreeSet<Place>,
    /// People who were erased lately, each set with the age of the state then: whatever comes of them with a partition goes as well.
    pub(super) erased: VecDeque<(i64, BTreeSet<u64>)>,
    /// Changes of the changelog that a batch of their own is to make.
    pub(super) pending: Vec<(Place, Erased)>,
    pub(super) packer: RowPacker,
    pub(super) progress: Progress,
}

/// From values to codes.
pub(super) struct Coding {
    pub(super) books: Vec<Codebook>,
    /// `None` where the schema names no subject: then each record counts as a subject of its own.
    pub(super) subjects: Option<Subjects>,
    /// Rises when dictionaries number their values anew.
    pub(super) numbering: u64,
    /// Bytes that were left of the dictionaries when they were last rid of what no record needs for want of room; 0: never.
    pub(super) compacted_bytes: u64,
}

/// The engine.
pub struct Engine {
    pub(super) schema: Arc<Schema>,
    pub(super) settings: EngineSettings,
    /// The groups, in the order in which their fragments leave.
    pub(super) shapes: Vec<GroupShape>,
    /// The quasi attributes of all groups, ascending.
    pub(super) quasi: Vec<usize>,
    pub(super) in_force: InForce,
    pub(super) learning: Learning,
    pub(super) planning: Planning,
    pub(super) durable: Durable,
    pub(super) coding: Coding,
    pub(super) ledger: Ledger,
    pub(super) held: Held,
    pub(super) joins: Joins,
    /// Statistics of cohorts; none where the configuration has no series.
    pub(super) series: Option<SeriesStream>,
    pub(super) telemetry: Telemetry,
    /// Keyed digest of a name.
    pub(super) digest: Box<dyn Fn(&str) -> u128 + Send + Sync>,
    pub(super) draws: Draws,
    pub(super) blank: Blank,
    /// Makes audit records; none where none are configured.
    pub(super) auditor: Option<Auditor>,
    /// How what leaves may be untrue.
    pub(super) untruthful: Option<String>,
    /// Where the records come from.
    pub(super) origin: Arc<dyn Origin>,
}

/// Why a batch did not leave.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// Undone; it may be tried again with the same ranges and clock.
    #[error("{why}")]
    Aborted {
        /// What the sink says of it.
        why: String,
        /// What the next attempt repeats: the ranges, and what was settled.
        intent: Box<Intent>,
    },
    /// Verification refuses the batch: none of it leaves, and the run ends.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Verification refuses rows of a series: none of the batch leaves, and the run ends.
    #[error(transparent)]
    RefusedSeries(#[from] SeriesRefusal),
    /// The sink takes nothing more, or one batch was aborted too often: only a new start can mend it.
    #[error("{0}")]
    Fatal(String),
    /// The state failed; the next start finds out whether the batch left.
    #[error(transparent)]
    State(#[from] StateError),
    /// The profiles that the batch would be joined to cannot be read.
    #[error(transparent)]
    Profiles(#[from] ProfilesError),
    /// The source gives records again that this state has settled; `--accept-rewind` takes them nevertheless.
    #[error(
        "partition {partition} of topic number {topic} starts at offset {offset}, but this state has released up to offset {position}: releasing records a second time could undo their generalization (restore the offsets, or accept it with --accept-rewind)"
    )]
    Rewound {
        /// Index into the topics of the source; 0 for a file.
        topic: u16,
        /// 0 for a file.
        partition: i32,
        /// Where the source would go on reading.
        offset: i64,
        /// The first offset that the state has not settled; above `offset`.
        position: i64,
    },
}

impl Engine {
    /// Where the stream stands after the last batch that left.
    pub fn progress(&self) -> &Progress {
        &self.durable.progress
    }

    /// What an operator must know of the records of this state, the worst first.
    pub fn findings(&self) -> Vec<Finding> {
        self.learning.met.findings(&self.schema)
    }

    /// How what leaves, or has left from this state before, may be untrue; none where all is true.
    pub fn untruthful(&self) -> Option<&str> {
        self.untruthful.as_deref()
    }

    /// From here on a state that does not answer makes the daemon not ready, and `stop` shortens the wait for it.
    pub fn heed(&mut self, stop: &Arc<AtomicBool>) {
        self.durable.store.watch(&self.telemetry, stop);
    }

    /// Records come from `origin`; without it, from a file.
    pub fn come_from(&mut self, origin: Arc<dyn Origin>) {
        self.origin = origin;
    }

    /// Whether the state, or a batch since, has published rows of series.
    pub fn has_published_series(&self) -> bool {
        self.series.as_ref().is_some_and(SeriesStream::has_published)
    }

    /// Notes the input of a job. False where the state has taken it in already.
    pub fn begin_job(&mut self, digest: &[u8; 32]) -> Result<bool, StateError> {
        self.durable.store.note_input(digest)
    }

    /// Keeps the state as it is now, where the run works on a copy of it: the copy takes its place.
    ///
    /// # Errors
    /// When the state fails; the one before is in force then.
    pub fn keep_copy(&mut self) -> Result<(), StateError> {
        self.durable.store.keep_copy(self.durable.progress.sequence)
    }

    /// Position in the erasure topic.
    pub fn erasure_position(&self, topic: &str) -> Result<TopicPosition, StateError> {
        self.durable.store.erasure_position(topic)
    }

    /// Whether a committed batch is not yet written to the state (its intent is, so nothing can be lost).
    pub fn is_behind(&self) -> bool {
        self.durable.store.is_behind()
    }

    /// Gives up a batch that was aborted and is not repeated here: its records are somebody else's now.
    pub fn give_up(&mut self, aborted: &Intent) -> Result<(), StateError> {
        self.durable.store.give_up(aborted.after.sequence)
    }

    /// Writes what only the memory knows. Call it when there is nothing else to do, and at the end.
    pub fn flush(&mut self) -> Result<(), StateError> {
        self.durable.store.flush(&self.ledger)
    }

    /// Records that are held: nothing of them has left yet.
    pub fn held(&self) -> usize {
        self.held.unreleased()
    }

    /// Whether anything that is held waits for nothing but a batch.
    pub fn has_due(&self, now: impl Into<Moment>) -> bool {
        let age_ms = now.into().age_ms.max(self.durable.progress.age_ms);
        self.held.waits.iter().any(|wait| wait.is_due(age_ms))
    }

    /// Lines that wait for their delay, or for a better class of their own.
    pub fn waiting_lines(&self) -> usize {
        self.held.lines()
    }

    /// Digests people as those of the records are; none where the schema names no subject.
    pub fn subjects(&self) -> Option<Subjects> {
        self.coding.subjects.clone()
    }

    /// Profiles come from `feeds`, in the order of the joins.
    pub fn take_profiles_from(&mut self, feeds: Vec<Feed>) {
        self.joins.come_from(feeds);
    }

    /// Waits until all profiles have been read that there were at the start, and takes them over in place of what was known. Not while
    /// a batch is to be repeated: it was made with what was known. False where `stop` came first.
    pub fn read_profiles(&mut self, stop: &AtomicBool) -> Result<bool, BatchError> {
        if self.joins.is_whole() {
            return Ok(true);
        }
        while !self.joins.is_read(POLL_INTERVAL)? {
            if stop.load(Ordering::Acquire) {
                return Ok(false);
            }
        }
        while let Some(changes) = self.joins.take_over() {
            self.durable.store.settle_profiles(changes, &self.ledger)?;
        }
        Ok(true)
    }

    fn take_updates(&mut self) -> Result<Updates, ProfilesError> {
        let updates = self.joins.take_updates()?;
        if updates.full {
            LimitReached { limit: Limit::Profiles }.emit(&self.telemetry);
        }
        Ok(updates)
    }

    /// Takes updates with the end of a batch that has left: they are written with its effect. A reader that has failed is told of with
    /// the next batch, which does not leave.
    pub(super) fn take_updates_with_batch(&mut self) {
        match self.take_updates() {
            Ok(updates) => self.durable.store.note_profiles(updates.changes),
            Err(error) => self.joins.fail(error),
        }
    }

    /// Takes updates while nothing else is to be done, so that their reader need not wait for a batch. Not while a batch is to be
    /// repeated.
    pub fn take_updates_between_batches(&mut self) -> Result<(), BatchError> {
        let updates = self.take_updates()?;
        if updates.changes.is_empty() {
            return Ok(());
        }
        Ok(self.durable.store.settle_profiles(updates.changes, &self.ledger)?)
    }

    /// Refuses a batch whose profiles are not at hand as they must be.
    pub(super) fn check_profiles(&mut self, retry: Option<&Intent>) -> Result<(), BatchError> {
        if let Some(error) = self.joins.take_failure() {
            return Err(error.into());
        }
        match retry {
            Some(intent) if intent.profiles != self.durable.store.profiles_version() => {
                Err(self.durable.store.damaged("the profiles are not those that its last batch was made with").into())
            }
            _ => Ok(()),
        }
    }
}
