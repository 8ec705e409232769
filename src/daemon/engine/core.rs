//! Engine state, and operations between batches.

use super::build::prime::PrimedPlan;
use super::build::settings::{EmptyStateFactory, EngineSettings};
use super::gather::contribution_limit::ContributionDraws;
use super::gather::held_records::HeldRows;
use super::gather::profile_joins::{ProfileJoins, ProfileUpdates};
use super::learn::dictionary_compaction::DictionaryCompaction;
use super::learn::search::{EvidenceRecheck, PlanSearch};
use super::learn::stream_knowledge::{StreamKnowledge, new_model};
use super::release::series_stream::SeriesStream;
use super::report::audit::Auditor;
use crate::daemon::state::clock::BatchTime;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::entries::{EntryCodec, ErasedEntry, StateBinding};
use crate::daemon::state::records::{BatchIntent, StreamProgress};
use crate::daemon::state::rows::RowPacker;
use crate::daemon::state::store::state_binding::TopicPosition;
use crate::daemon::state::store::{RecoveredState, StateStore};
use crate::io::profiles::{ProfileFeed, ProfileReadError};
use crate::planner::closeness_counts::ReferenceCounts;
use crate::start::run_findings::{RunFinding, RunStatistics};
use crate::telemetry::{Limit, LimitReached, Telemetry};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::plan::GroupShape;
use throng_core::plan::Plan;
use throng_core::plan::evidence::PlanEvidence;
use throng_core::privacy::protection::SensitiveProtection;
use throng_core::release::series::SeriesRefusal;
use throng_core::release::verifier_input::GroupTerms;
use throng_core::release::verify::BatchRefusal;
use throng_core::stream::input_batch::{InputPartition, SourceStatus};
use throng_core::treatment::batch_treatment::{GroupNames, ProtectedAttribute};
use throng_core::values::codebook::Codebook;
use throng_core::values::schema::Schema;
use throng_core::values::subject_digest::SubjectDigester;

const PROFILE_POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct ActivePlan {
    pub(crate) plan: Plan,
    pub(crate) names: GroupNames,
    pub(crate) group_keys: Vec<u128>,
    pub(crate) terms: Vec<GroupTerms>,
    pub(crate) protections: Vec<SensitiveProtection>,
    pub(crate) protected: Vec<ProtectedAttribute>,
    pub(crate) references: Vec<ReferenceCounts>,
}

impl ActivePlan {
    /// Creates an empty plan.
    pub fn new(protections: Vec<SensitiveProtection>) -> Self {
        Self {
            plan: Plan::inactive(Vec::new()),
            names: GroupNames::default(),
            group_keys: Vec::new(),
            terms: Vec::new(),
            protections,
            protected: Vec::new(),
            references: Vec::new(),
        }
    }
}

#[derive(Default)]
pub(crate) struct PlanningState {
    pub(crate) primed: Option<PrimedPlan>,
    pub(crate) search: Option<PlanSearch>,
    pub(crate) recheck: Option<EvidenceRecheck>,
    /// Latest re-check result.
    pub(crate) evidence: Option<PlanEvidence>,
    /// Origin of the groups; null if configured.
    pub(crate) chosen: serde_json::Value,
    pub(crate) treatments: serde_json::Value,
}

pub(crate) struct DurableState {
    pub(crate) store: StateStore,
    pub(crate) log: Option<EntryCodec>,
    pub(crate) binding: StateBinding,
    pub(crate) places: BTreeSet<InputPartition>,
    pub(crate) erased: VecDeque<(i64, BTreeSet<u64>)>,
    pub(crate) pending: Vec<(InputPartition, ErasedEntry)>,
    pub(crate) packer: RowPacker,
    pub(crate) progress: StreamProgress,
}

/// Encoding of values.
pub(crate) struct ValueEncoding {
    pub(crate) books: Vec<Codebook>,
    /// `None` without a subject in the schema: each record is then a subject.
    pub(crate) subjects: Option<SubjectDigester>,
    /// Increases with every renumbering.
    pub(crate) numbering: u64,
    /// Dictionary bytes after the last compaction for lack of memory, or 0.
    pub(crate) compacted_bytes: u64,
}

impl ValueEncoding {
    pub(crate) fn dictionary_bytes(&self) -> u64 {
        self.books.iter().map(|book| book.approximate_bytes() as u64).sum()
    }
}

/// Batch processor with its state.
pub struct Engine {
    pub(crate) schema: Arc<Schema>,
    pub(crate) settings: EngineSettings,
    pub(crate) shapes: Vec<GroupShape>,
    /// Quasi-identifiers, ascending.
    pub(crate) quasi: Vec<usize>,
    pub(crate) in_force: ActivePlan,
    pub(crate) learning: StreamKnowledge,
    pub(crate) planning: PlanningState,
    pub(crate) durable: DurableState,
    pub(crate) coding: ValueEncoding,
    pub(crate) ledger: SubjectLedger,
    pub(crate) held: HeldRows,
    pub(crate) joins: ProfileJoins,
    pub(crate) series: Option<SeriesStream>,
    pub(crate) telemetry: Telemetry,
    pub(crate) digest: Box<dyn Fn(&str) -> u128 + Send + Sync>,
    pub(crate) draws: ContributionDraws,
    pub(crate) blank: EmptyStateFactory,
    pub(crate) auditor: Option<Auditor>,
    pub(crate) untruthful: Option<String>,
    pub(crate) origin: Arc<dyn SourceStatus>,
}

/// Reason why a batch was not released.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// Aborted; may be repeated with the same ranges and clock.
    #[error("{why}")]
    Aborted {
        /// Message of the sink.
        why: String,
        /// Intent that the next attempt repeats.
        intent: Box<BatchIntent>,
    },
    /// The verifier refused the batch; the run ends.
    #[error(transparent)]
    Refused(#[from] BatchRefusal),
    /// The verifier refused rows of a series; the run ends.
    #[error(transparent)]
    RefusedSeries(#[from] SeriesRefusal),
    /// The sink is closed, or one batch was aborted too often; recovery needs a restart.
    #[error("{0}")]
    Fatal(String),
    /// The state failed; the next start determines if the batch was released.
    #[error(transparent)]
    State(#[from] StateError),
    /// Profiles cannot be read.
    #[error(transparent)]
    Profiles(#[from] ProfileReadError),
    /// The source repeats settled records.
    #[error(
        "partition {partition} of topic {} of the source starts at offset {offset}, but this state has released up to offset {position}: releasing records a second time could undo their generalization (restore the offsets, or accept it with --accept-rewind)",
        .topic + 1
    )]
    Rewound {
        /// Topic index; 0 for a file.
        topic: u16,
        /// Partition; 0 for a file.
        partition: i32,
        /// Next offset of the source.
        offset: i64,
        /// First unsettled offset; greater than `offset`.
        position: i64,
    },
}

impl Engine {
    /// Returns the progress after the last released batch.
    pub fn progress(&self) -> &StreamProgress {
        &self.durable.progress
    }

    /// Returns findings for the operator, worst first.
    pub fn findings(&self) -> Vec<RunFinding> {
        self.learning.met.findings(&self.schema)
    }

    /// Returns the reason why released values may be untrue.
    pub fn untruthful(&self) -> Option<&str> {
        self.untruthful.as_deref()
    }

    /// Reports not ready while the state does not respond, until `stop`.
    pub fn watch_store(&mut self, stop: &Arc<AtomicBool>) {
        self.durable.store.watch(&self.telemetry, stop);
    }

    /// Sets the record source; the default is a file.
    pub fn set_origin(&mut self, origin: Arc<dyn SourceStatus>) {
        self.origin = origin;
    }

    /// Returns whether series rows were published.
    pub fn has_published_series(&self) -> bool {
        self.series.as_ref().is_some_and(SeriesStream::has_published)
    }

    /// Records the input of a job. Returns false for a repeated input.
    pub fn begin_job(&mut self, digest: &[u8; 32]) -> Result<bool, StateError> {
        self.durable.store.record_input(digest)
    }

    /// Replaces the original state with this run's copy.
    ///
    /// # Errors
    /// When the state fails; the original stays in force.
    pub fn keep_copy(&mut self) -> Result<(), StateError> {
        self.durable.store.promote_copy(self.durable.progress.sequence)
    }

    /// Returns the position in the erasure topic.
    pub fn erasure_position(&self, topic: &str) -> Result<TopicPosition, StateError> {
        self.durable.store.erasure_position(topic)
    }

    /// Returns whether a committed batch is unwritten.
    pub fn is_behind(&self) -> bool {
        self.durable.store.is_behind()
    }

    /// Discards an aborted batch whose records belong to another instance.
    pub fn discard_aborted(&mut self, aborted: &BatchIntent) -> Result<(), StateError> {
        self.durable.store.mark_given_up(aborted.after.sequence)
    }

    /// Writes memory-only state.
    pub fn flush(&mut self) -> Result<(), StateError> {
        self.durable.store.flush(&self.ledger)
    }

    /// Returns the number of held records without a released fragment.
    pub fn unreleased_records(&self) -> usize {
        self.held.unreleased()
    }

    /// Returns whether a held row is due.
    pub fn has_due(&self, now: impl Into<BatchTime>) -> bool {
        let age_ms = now.into().age_ms.max(self.durable.progress.age_ms);
        self.held.waits.iter().any(|wait| wait.is_due(age_ms))
    }

    /// Returns the number of waiting lines.
    pub fn waiting_lines(&self) -> usize {
        self.held.lines()
    }

    /// Returns the subject digester, if the schema names a subject.
    pub fn subjects(&self) -> Option<SubjectDigester> {
        self.coding.subjects.clone()
    }

    /// Sets the profile feeds, in join order.
    pub fn set_profile_feeds(&mut self, feeds: Vec<ProfileFeed>) {
        self.joins.set_feeds(feeds);
    }

    /// Waits for the initial profiles. Returns false if `stop` was set first. Must not be called before a retry.
    pub fn read_profiles(&mut self, stop: &AtomicBool) -> Result<bool, BatchError> {
        if self.joins.is_loaded() {
            return Ok(true);
        }
        while !self.joins.wait_for_initial(PROFILE_POLL_INTERVAL)? {
            if stop.load(Ordering::Acquire) {
                return Ok(false);
            }
        }
        while let Some(changes) = self.joins.next_changes() {
            self.durable.store.commit_profiles(changes, &self.ledger)?;
        }
        Ok(true)
    }

    fn take_profile_updates(&mut self) -> Result<ProfileUpdates, ProfileReadError> {
        let updates = self.joins.take_updates()?;
        if updates.has_full_table {
            LimitReached { limit: Limit::Profiles }.emit(&self.telemetry);
        }
        Ok(updates)
    }

    /// A reader failure prevents the next release.
    pub(crate) fn receive_updates_with_batch(&mut self) {
        match self.take_profile_updates() {
            Ok(updates) => self.durable.store.queue_profiles(updates.changes),
            Err(error) => self.joins.record_failure(error),
        }
    }

    /// Takes profile updates while idle. Must not be called before a retry.
    pub fn receive_updates_while_idle(&mut self) -> Result<(), BatchError> {
        let updates = self.take_profile_updates()?;
        if updates.changes.is_empty() {
            return Ok(());
        }
        Ok(self.durable.store.commit_profiles(updates.changes, &self.ledger)?)
    }

    /// Refuses a batch after a reader failure, or a retry with different profiles.
    pub(crate) fn check_profiles(&mut self, retry: Option<&BatchIntent>) -> Result<(), BatchError> {
        if let Some(error) = self.joins.take_failure() {
            return Err(error.into());
        }
        match retry {
            Some(intent) if intent.profiles != self.durable.store.profiles_version() => {
                Err(self.durable.store.damage_error("its profiles differ from those of its pending batch").into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn compaction(&mut self) -> DictionaryCompaction<'_> {
        DictionaryCompaction {
            schema: &self.schema,
            settings: &self.settings,
            coding: &mut self.coding,
            learning: &mut self.learning,
            held: &mut self.held,
            planning: &mut self.planning,
            telemetry: &self.telemetry,
        }
    }

    /// Returns the reference distributions in force.
    pub fn references(&self) -> &[ReferenceCounts] {
        &self.in_force.references
    }

    /// Replaces all state with `past`, except profiles and a primed plan. Requires the ledger of `past` and empty
    /// codebooks.
    pub(crate) fn restore_state(&mut self, mut past: RecoveredState) -> Result<(), StateError> {
        let Self { schema, settings, shapes, coding, learning, durable, .. } = self;
        let (books, store) = (&mut coding.books, &durable.store);
        self.held = HeldRows::new(schema.attributes.len(), schema.joined_attributes());
        past.held.sort_by_key(|row| row.ordinal);
        past.held.iter().for_each(|row| self.held.push(row, books));
        let mut sample = learning.sample.empty_at(0);
        sample.set_stride(past.progress.stride);
        let asked = past.progress.asked;
        let mut asked_of = asked.map(|asked| sample.empty_at(asked.rows));
        for row in &past.sample {
            let codes: Vec<u32> = row.cells.iter().zip(&mut *books).map(|(c, book)| book.encode_canonical(c)).collect();
            if let Some(then) = asked_of.as_mut().filter(|_| asked.is_some_and(|asked| row.ordinal < asked.rows)) {
                then.restore_row(row.ordinal, row.subject, codes.iter().copied());
            }
            sample.restore_row(row.ordinal, row.subject, codes.into_iter());
        }
        let mut model = new_model(schema, shapes, settings, &past.progress, store)?;
        for (_, block) in &past.rows {
            model.restore(block, books).ok_or_else(|| store.damage_error("rows of the window cannot be read"))?;
        }
        if let Some(series) = &mut self.series
            && !series.resume(past.series.take())
        {
            return Err(StateError::OtherSeries(store.path().to_owned()));
        }
        let (width, k) = (schema.attributes.len(), settings.policy.k);
        let plan = past.plan.take().filter(|plan| self.is_usable_plan(plan, &past.references));
        let Self { learning, planning, coding, durable, .. } = self;
        learning.met = RunStatistics::new(width, k).continue_from(past.met, past.progress.totals.consumed);
        (learning.model, learning.sample, learning.baseline) = (model, sample, past.baseline);
        (planning.search, planning.recheck, planning.evidence) = (None, None, past.evidence);
        coding.compacted_bytes = 0;
        durable.progress = past.progress;
        self.in_force.references = past.references;
        self.learning.wait_for_model(&self.telemetry);
        self.adopt(plan.unwrap_or(Plan::inactive(Vec::new())));
        self.learning.model.watch(&self.learning.baseline, &self.coding.books);
        if let Some(asked) = self.durable.progress.asked.filter(|_| self.in_force.plan.version > 0) {
            self.start_plan_search(asked, asked_of);
        }
        Ok(())
    }
}
