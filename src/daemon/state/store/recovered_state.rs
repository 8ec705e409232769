//! Recovery of the state from the database.

use super::{BASELINE, EVIDENCE, FINDINGS_KEY, INTENT, PROGRESS, StateStore, StoreBookkeeping};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::numbered_keys::{key_number, numbered_key};
use crate::daemon::state::profile_journal::{PROFILE_PREFIX, PROFILES_VERSION, parse_profile_key};
use crate::daemon::state::records::{BatchIntent, ProfileChange, StoredRow, StreamProgress};
use crate::daemon::state::rows::RowBlock;
use crate::planner::closeness_counts::ReferenceCounts;
use crate::planner::drift::DriftBaseline;
use crate::start::run_findings::RunStatistics;
use throng_core::ledger::SHARDS;
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::ledger::supporters::SupportShard;
use throng_core::plan::Plan;
use throng_core::plan::evidence::PlanEvidence;
use throng_core::series::SeriesState;

/// State found at a start.
#[derive(Debug, Default)]
pub struct RecoveredState {
    /// Progress with the last batch known as released.
    pub progress: StreamProgress,
    /// Batch with an unknown outcome.
    pub intent: Option<BatchIntent>,
    /// Plan in force.
    pub plan: Option<Plan>,
    /// Reference counts of the plan.
    pub references: Vec<ReferenceCounts>,
    /// Distribution of the window for the plan.
    pub baseline: DriftBaseline,
    /// Evidence found for a plan.
    pub evidence: Option<PlanEvidence>,
    /// Rows of the planner's sample, in stream order.
    pub sample: Vec<StoredRow>,
    /// Rows of the window by batch.
    pub rows: Vec<(u64, RowBlock)>,
    /// Waiting rows, in any order.
    pub held: Vec<StoredRow>,
    /// Findings about the records.
    pub met: Option<RunStatistics>,
    /// Profiles by join and subject.
    pub profiles: Vec<ProfileChange>,
    /// State of the series.
    pub series: Option<SeriesState>,
    /// Number of applied ledger deltas.
    pub deltas: u64,
    /// Sealed bytes read, for the start event.
    pub bytes: u64,
}

impl RecoveredState {
    /// Applies the released batch of `intent`.
    pub fn apply_released(&mut self, intent: &BatchIntent) {
        if let Some(evidence) = &intent.evidence {
            self.evidence = Some(evidence.clone());
        }
        if let Some(baseline) = &intent.baseline {
            self.baseline = baseline.clone();
        }
        if let Some(plan) = &intent.plan {
            self.plan = Some(plan.clone());
            self.references.clone_from(&intent.references);
        }
        self.met.clone_from(&intent.met);
        if let Some(changes) = &intent.series {
            self.series.get_or_insert_default().apply(changes.clone());
        }
        self.held.retain(|row| intent.settled.iter().all(|(ordinal, _)| *ordinal != row.ordinal));
        self.held.extend(intent.held.iter().cloned());
        self.sample.extend(intent.sampled.iter().cloned());
        self.progress = intent.after.clone();
    }
}

impl StateStore {
    /// Loads the applied batches into `ledger`.
    pub fn load(&mut self, ledger: &mut SubjectLedger) -> Result<RecoveredState, StateError> {
        self.bookkeeping = StoreBookkeeping { shard_sequence: vec![0; SHARDS], ..StoreBookkeeping::default() };
        let mut found = RecoveredState {
            progress: self.read(PROGRESS)?.unwrap_or_default(),
            intent: self.read(INTENT)?,
            ..RecoveredState::default()
        };
        for (key, sealed) in self.scan("shard")? {
            let (sequence, entries): (u64, SupportShard) = self.open_value(&key, &sealed)?;
            let shard = key_number(&key).and_then(|n| usize::try_from(n).ok()).filter(|s| *s < SHARDS);
            let shard = shard.ok_or_else(|| self.damage_error("the key of a ledger shard is invalid"))?;
            found.bytes += sealed.len() as u64;
            self.bookkeeping.shard_sequence[shard] = sequence;
            if let Some(supporters) = &mut ledger.supporters {
                supporters.merge(&entries);
            }
        }
        if let Some(said) = &mut ledger.release_log {
            for (key, sealed) in self.scan("said")? {
                said.merge(&self.open_value::<Vec<(u128, i64)>>(&key, &sealed)?);
            }
        }
        // In release order, by which tenure is counted and memory filled.
        let deltas = self.scan("delta")?;
        self.bookkeeping.first_delta =
            deltas.first().and_then(|(key, _)| key_number(key)).unwrap_or(found.progress.sequence + 1);
        for (key, sealed) in deltas {
            ledger.apply(&self.open_value(&key, &sealed)?);
            found.deltas += 1;
            found.bytes += sealed.len() as u64;
        }
        // Otherwise frequent restarts would never rewrite the oldest shard.
        let written = self.bookkeeping.shard_sequence.iter().enumerate();
        self.bookkeeping.next_shard = written.min_by_key(|(_, sequence)| **sequence).map_or(0, |(shard, _)| shard);
        for (key, sealed) in self.scan("sample")? {
            let rows: Vec<StoredRow> = self.open_value(&key, &sealed)?;
            let last = rows.last().map_or(0, |r| r.ordinal);
            self.bookkeeping.sample_parts.push((key_number(&key).unwrap_or(0), last));
            found.sample.extend(rows);
        }
        let last = found.intent.as_ref().map_or(found.progress.sequence, |intent| intent.after.sequence);
        for key in self.row_keys()? {
            let sequence = key_number(&key).unwrap_or(0);
            if sequence > last {
                // Of a batch that was never intended.
                self.remove_rows(sequence)?;
                continue;
            }
            let sealed =
                self.read_window_rows(&key)?.ok_or_else(|| self.damage_error("rows of the window are missing"))?;
            let block: RowBlock = self.open_value(&key, &sealed)?;
            self.bookkeeping.row_parts.push_back((sequence, block.last));
            found.bytes += sealed.len() as u64;
            found.rows.push((sequence, block));
        }
        for (key, sealed) in self.scan("held")? {
            found.held.push(self.open_value(&key, &sealed)?);
        }
        self.bookkeeping.profiles.version = self.read(PROFILES_VERSION)?.unwrap_or_default();
        for (key, sealed) in self.scan(PROFILE_PREFIX)? {
            let (join, person) =
                parse_profile_key(&key).ok_or_else(|| self.damage_error("the key of a profile is invalid"))?;
            found.bytes += sealed.len() as u64;
            found.profiles.push(ProfileChange { join, person, cells: Some(self.open_value(&key, &sealed)?) });
        }
        if found.progress.plan_version > 0 {
            let key = numbered_key("plan", found.progress.plan_version);
            found.plan = Some(self.read(&key)?.ok_or_else(|| self.damage_error("its plan is missing"))?);
            found.references = self.read(&numbered_key("reference", found.progress.plan_version))?.unwrap_or_default();
            found.baseline = self.read(BASELINE)?.unwrap_or_default();
            found.evidence = self.read(EVIDENCE)?;
        }
        found.met = self.read(FINDINGS_KEY)?;
        found.series = self.load_series()?;
        Ok(found)
    }
}
