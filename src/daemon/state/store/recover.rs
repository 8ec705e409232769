//! What a start finds in the tree, and how much of the past it may rely on.

use super::{BASELINE, EVIDENCE, INTENT, Known, MET, PROGRESS, Store};
use crate::anonymity::plan::Plan;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::anonymity::series::SeriesState;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::numbered::{number_of, numbered};
use crate::daemon::state::profile_journal::{PREFIX, VERSION, place_of};
use crate::daemon::state::records::{Intent, KeptRow, ProfileChange, Progress};
use crate::daemon::state::rows::RowBlock;
use crate::start::findings::Met;
use throng_core::ledger::SHARDS;
use throng_core::ledger::per_subject::Ledger;
use throng_core::ledger::supporters::SupportShard;

/// What a start finds.
#[derive(Debug, Default)]
pub struct Recovered {
    /// As written with the last batch that is known to have left; the default for a new state.
    pub progress: Progress,
    /// A batch that was about to leave when the process ended.
    pub intent: Option<Intent>,
    /// The plan in force; `None` before the first.
    pub plan: Option<Plan>,
    /// What that plan compares classes with.
    pub references: Vec<ReferenceCounts>,
    /// What the window looked like when the plan was made.
    pub baseline: Baseline,
    /// What has been found out for a plan.
    pub evidence: Option<Evidence>,
    /// Rows of the planner's sample, in the order of the stream.
    pub sample: Vec<KeptRow>,
    /// Rows of the window by batch, those of the pending intent last.
    pub rows: Vec<(u64, RowBlock)>,
    /// Rows that wait, in any order.
    pub held: Vec<KeptRow>,
    /// What the records had; none where nobody has noted it.
    pub met: Option<Met>,
    /// Profiles by the number of their join and the person.
    pub profiles: Vec<ProfileChange>,
    /// State of the series; none where there is none.
    pub series: Option<SeriesState>,
    /// Ledger deltas that were applied on top of the shards.
    pub deltas: u64,
    /// Sealed bytes read of the ledger, its deltas and the window, for the event of the start.
    pub bytes: u64,
}

impl Recovered {
    /// The batch of `intent` left before the process ended: what it said of itself is in force.
    pub fn take_over(&mut self, intent: &Intent) {
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

impl Store {
    /// Loads what was applied into `ledger`, as [`open`](Self::open) does, and forgets what this store knew of another database.
    pub fn load(&mut self, ledger: &mut Ledger) -> Result<Recovered, StateError> {
        self.known = Known { shard_sequence: vec![0; SHARDS], ..Known::default() };
        let mut found = Recovered {
            progress: self.read(PROGRESS)?.unwrap_or_default(),
            intent: self.read(INTENT)?,
            ..Recovered::default()
        };
        for (key, sealed) in self.scan("shard")? {
            let (sequence, entries): (u64, SupportShard) = self.open_value(&key, &sealed)?;
            let shard = number_of(&key).and_then(|n| usize::try_from(n).ok()).filter(|s| *s < SHARDS);
            let shard = shard.ok_or_else(|| self.damaged("a ledger shard has no place"))?;
            found.bytes += sealed.len() as u64;
            self.known.shard_sequence[shard] = sequence;
            if let Some(supporters) = &mut ledger.supporters {
                supporters.merge(&entries);
            }
        }
        if let Some(said) = &mut ledger.said {
            for (key, sealed) in self.scan("said")? {
                said.merge(&self.open_value::<Vec<(u128, i64)>>(&key, &sealed)?);
            }
        }
        // In the order in which they left: how long somebody has been seen for is counted batch by batch, and where a memory
        // is full the first to come find room.
        let deltas = self.scan("delta")?;
        self.known.first_delta =
            deltas.first().and_then(|(key, _)| number_of(key)).unwrap_or(found.progress.sequence + 1);
        for (key, sealed) in deltas {
            ledger.apply(&self.open_value(&key, &sealed)?);
            found.deltas += 1;
            found.bytes += sealed.len() as u64;
        }
        // The shard that was written longest ago comes next, or frequent restarts would never get round to it.
        let written = self.known.shard_sequence.iter().enumerate();
        self.known.next_shard = written.min_by_key(|(_, sequence)| **sequence).map_or(0, |(shard, _)| shard);
        for (key, sealed) in self.scan("sample")? {
            let rows: Vec<KeptRow> = self.open_value(&key, &sealed)?;
            let last = rows.last().map_or(0, |r| r.ordinal);
            self.known.sample_parts.push((number_of(&key).unwrap_or(0), last));
            found.sample.extend(rows);
        }
        let last = found.intent.as_ref().map_or(found.progress.sequence, |intent| intent.after.sequence);
        for key in self.row_keys()? {
            let sequence = number_of(&key).unwrap_or(0);
            if sequence > last {
                // Laid for a batch that was never intended.
                self.remove_rows(sequence)?;
                continue;
            }
            let sealed = self.rows_of(&key)?.ok_or_else(|| self.damaged("rows of the window are missing"))?;
            let block: RowBlock = self.open_value(&key, &sealed)?;
            self.known.row_parts.push_back((sequence, block.last));
            found.bytes += sealed.len() as u64;
            found.rows.push((sequence, block));
        }
        for (key, sealed) in self.scan("held")? {
            found.held.push(self.open_value(&key, &sealed)?);
        }
        self.known.profiles.version = self.read(VERSION)?.unwrap_or_default();
        for (key, sealed) in self.scan(PREFIX)? {
            let (join, person) = place_of(&key).ok_or_else(|| self.damaged("a profile has no place"))?;
            found.bytes += sealed.len() as u64;
            found.profiles.push(ProfileChange { join, person, cells: Some(self.open_value(&key, &sealed)?) });
        }
        if found.progress.plan_version > 0 {
            let key = numbered("plan", found.progress.plan_version);
            found.plan = Some(self.read(&key)?.ok_or_else(|| self.damaged("its plan is missing"))?);
            found.references = self.read(&numbered("reference", found.progress.plan_version))?.unwrap_or_default();
            found.baseline = self.read(BASELINE)?.unwrap_or_default();
            found.evidence = self.read(EVIDENCE)?;
        }
        found.met = self.read(MET)?;
        found.series = self.load_series()?;
        Ok(found)
    }
}
