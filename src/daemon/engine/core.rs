//! Engine state, and operations between batches.

use super::audit::Auditor;
use super::clock::BatchTime;
use super::contribution_limit::ContributionDraws;
use super::held_records::HeldRows;
use super::model::{ModelSize, StreamModel};
use super::prime::PrimedPlan;
use super::profile_joins::{ProfileJoins, ProfileUpdates};
use super::search::{EvidenceRecheck, PlanSearch};
use super::series_stream::SeriesStream;
use super::settings::{EmptyStateFactory, EngineSettings};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::entries::{EntryCodec, ErasedEntry, StateBinding};
use crate::daemon::state::records::{BatchIntent, StreamProgress};
use crate::daemon::state::rows::RowPacker;
use crate::daemon::state::store::StateStore;
use crate::daemon::state::store::state_binding::TopicPosition;
use crate::io::profiles::{ProfileFeed, ProfileReadError};
use crate::planner::closeness_counts::ReferenceCounts;
use crate::planner::drift::DriftBaseline;
use crate::planner::planner_sample::PlannerSample;
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

/// Plan in force and derived values.
pub(super) struct ActivePlan {
    pub(super) plan: Plan,
    pub(super) names: GroupNames,
    /// Group keys in the release log and among held rows.
    pub(super) group_keys: Vec<u128>,
    pub(super) terms: Vec<GroupTerms>,
    pub(super) protections: Vec<SensitiveProtection>,
    pub(super) protected: Vec<ProtectedAttribute>,
    pub(super) references: Vec<ReferenceCounts>,
}

pub(super) struct StreamKnowledge {
    pub(super) model: StreamModel,
    /// At most one batch behind the stream.
    pub(super) model_size: ModelSize,
    pub(super) sample: PlannerSample,
    /// Distributions for which the plan in force was made.
    pub(super) baseline: DriftBaseline,
    pub(super) met: RunStatistics,
    /// Record count at which unprotected values are next checked.
    pub(super) next_value_check: u64,
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
pub(super) struct PlanningState {
    /// First plan, if made before the stream.
    pub(super) primed: Option<PrimedPlan>,
    pub(super) search: Option<PlanSearch>,
    pub(super) recheck: Option<EvidenceRecheck>,
    /// Latest re-check result.
    pub(super) evidence: Option<PlanEvidence>,
    /// Origin of the groups for the status pages; null if configured.
    pub(super) chosen: serde_json::Value,
    /// Treatments chosen by the rules, for the status pages.
    pub(super) treatments: serde_json::Value,
}

/// State that survives the process.
pub(super) struct DurableState {
    pub(super) store: StateStore,
    /// `None` if the source is a file.
    pub(super) log: Option<EntryCodec>,
    /// Digests of the stream, sink and groups.
    pub(super) binding: StateBinding,
    /// Partitions with a known state.
    pub(super) places: BTreeSet<InputPartition>,
    /// Recently erased subjects, by age of the state. Newly assigned partitions are cleared of them.
    pub(super) erased: VecDeque<(i64, BTreeSet<u64>)>,
    /// Changelog changes for a separate batch.
    pub(super) pending: Vec<(InputPartition, ErasedEntry)>,
    pub(super) packer: RowPacker,
    pub(super) progress: StreamProgress,
}

/// Encoding of values.
pub(super) struct ValueEncoding {
    pub(super) books: Vec<Codebook>,
    /// `None` if the schema names no subject: each record is then a separate subject.
    pub(super) subjects: Option<SubjectDigester>,
    /// Increases when a dictionary is renumbered.
    pub(super) numbering: u64,
    /// Dictionary bytes after the last compaction for lack of memory, or 0.
    pub(super) compacted_bytes: u64,
}

/// Batch processor with its state.
pub struct Engine {
    pub(super) schema: Arc<Schema>,
    pub(super) settings: EngineSettings,
    /// In release order.
    pub(super) shapes: Vec<GroupShape>,
    /// Quasi-identifiers of all groups, ascending.
    pub(super) quasi: Vec<usize>,
    pub(super) in_force: ActivePlan,
    pub(super) learning: StreamKnowledge,
    pub(super) planning: PlanningState,
    pub(super) durable: DurableState,
    pub(super) coding: ValueEncoding,
    pub(super) ledger: SubjectLedger,
    pub(super) held: HeldRows,
    pub(super) joins: ProfileJoins,
    pub(super) series: Option<SeriesStream>,
    pub(super) telemetry: Telemetry,
    /// Keyed digest of a name.
    pub(super) digest: Box<dyn Fn(&str) -> u128 + Send + Sync>,
    pub(super) draws: ContributionDraws,
    pub(super) blank: EmptyStateFactory,
    pub(super) auditor: Option<Auditor>,
    /// Reason why released values may be untrue.
    pub(super) untruthful: Option<String>,
    pub(super) origin: Arc<dyn SourceStatus>,
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
    /// The verifier refused the batch: nothing is released, and the run ends.
    #[error(transparent)]
    Refused(#[from] BatchRefusal),
    /// The verifier refused rows of a series: nothing is released, and the run ends.
    #[error(transparent)]
    RefusedSeries(#[from] SeriesRefusal),
    /// The sink is closed, or one batch was aborted too often. Recovery needs a restart.
    #[error("{0}")]
    Fatal(String),
    /// The state failed; the next start determines if the batch was released.
    #[error(transparent)]
    State(#[from] StateError),
    /// Profiles cannot be read.
    #[error(transparent)]
    Profiles(#[from] ProfileReadError),
    /// The source repeats settled records; permitted with `--accept-rewind`.
    #[error(
        "partition {partition} of topic {} of the source starts at offset {offset}, but this state has released up to offset {position}: releasing records a second time could undo their generalization (restore the offsets, or accept it with --accept-rewind)",
        .topic + 1
    )]
    Rewound {
        /// Topic index; 0 for a file.
        topic: u16,
        /// 0 for a file.
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

    /// Returns the reason why released values may be untrue, if any.
    pub fn untruthful(&self) -> Option<&str> {
        self.untruthful.as_deref()
    }

    /// Reports not ready while the state does not respond; `stop` shortens that wait.
    pub fn watch_store(&mut self, stop: &Arc<AtomicBool>) {
        self.durable.store.watch(&self.telemetry, stop);
    }

    /// Sets the record source; the default is a file.
    pub fn set_origin(&mut self, origin: Arc<dyn SourceStatus>) {
        self.origin = origin;
    }

    /// Returns whether series rows were published, also before the start.
    pub fn has_published_series(&self) -> bool {
        self.series.as_ref().is_some_and(SeriesStream::has_published)
    }

    /// Records the input of a job. Returns false for an input processed before.
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

    /// Returns whether a committed batch is unwritten; its stored intent prevents loss.
    pub fn is_behind(&self) -> bool {
        self.durable.store.is_behind()
    }

    /// Gives up an aborted batch because its records belong to another instance now.
    pub fn discard_aborted(&mut self, aborted: &BatchIntent) -> Result<(), StateError> {
        self.durable.store.mark_given_up(aborted.after.sequence)
    }

    /// Writes memory-only state. Call it when idle, and at the end.
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

    /// Returns the number of lines waiting for a delay or a class.
    pub fn waiting_lines(&self) -> usize {
        self.held.lines()
    }

    /// Returns the digests of subjects; `None` if the schema names no subject.
    pub fn subjects(&self) -> Option<SubjectDigester> {
        self.coding.subjects.clone()
    }

    /// Sets the profile feeds, in join order.
    pub fn set_profile_feeds(&mut self, feeds: Vec<ProfileFeed>) {
        self.joins.set_feeds(feeds);
    }

    /// Waits for the initial profiles, and replaces the known ones. Returns false if `stop` was set first.
    ///
    /// Must not be called while a batch is to be repeated: it was made with the known profiles.
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

    /// Takes profile updates, written with the effect of a released batch. A reader failure prevents the next
    /// release.
    pub(super) fn receive_updates_with_batch(&mut self) {
        match self.take_profile_updates() {
            Ok(updates) => self.durable.store.queue_profiles(updates.changes),
            Err(error) => self.joins.record_failure(error),
        }
    }

    /// Takes profile updates while idle. Must not be called while a batch is to be repeated.
    pub fn receive_updates_while_idle(&mut self) -> Result<(), BatchError> {
        let updates = self.take_profile_updates()?;
        if updates.changes.is_empty() {
            return Ok(());
        }
        Ok(self.durable.store.commit_profiles(updates.changes, &self.ledger)?)
    }

    /// Refuses a batch after a reader failure, or a retry with different profiles.
    pub(super) fn check_profiles(&mut self, retry: Option<&BatchIntent>) -> Result<(), BatchError> {
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
}
