//! Contribution limits per subject and group (docs/internals/methods.md §12.4).
//!
//! A static group releases one line per subject and window, after a delay derived from the secret; other groups at most
//! `max_lines` lines per subject and batch. A due line without a class is retried
//! ([`RepetitionSettings::next_attempt_ms`]).
//!
//! The result depends only on batch, clock, secret, held rows and release log: a retry has the same bytes.

use super::held_records::{HeldRows, PendingRow};
use crate::daemon::engine::build::settings::RepetitionSettings;
use crate::daemon::state::records::PendingGroup;
use crate::telemetry::Limit;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::ledger::release_log::{ReleaseLog, release_log_key};
use throng_core::plan::{Plan, PlanGroup};
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::treatment::group_mask::GroupMask;
use throng_core::treatment::proposal::Proposal;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{ABSENT, NULL};
use throng_core::values::digest::{DigestKey, KeyedDigest};
use throng_core::values::raw_batch::RecordPosition;

#[derive(Debug, Default)]
pub(crate) struct GroupParticipation {
    pub mask: GroupMask,
    pending_parts: BTreeMap<u32, Vec<PendingGroup>>,
    /// Fragments represented by another line of their subject.
    pub thinned: u64,
    /// Delayed lines that contribute now, and their total delay in milliseconds.
    pub ended_delays: (u64, i64),
    /// Limit that prevented waiting.
    pub reached_limit: Option<Limit>,
    /// Pending parts are tracked by group.
    is_limited: bool,
    ends_delays: bool,
    age_ms: i64,
}

pub(crate) fn needed_attributes(plan: &Plan, names: &[u128], width: usize, wait: &PendingRow) -> Vec<bool> {
    let Some(parts) = &wait.parts else { return vec![true; width] };
    let mut needed = vec![false; width];
    for (group, name) in plan.groups.iter().zip(names) {
        if parts.iter().any(|part| part.group == *name) {
            group.attributes().into_iter().for_each(|a| needed[a] = true);
        }
    }
    needed
}

pub(crate) struct ContributionLimiter<'a> {
    pub settings: RepetitionSettings,
    pub plan: &'a Plan,
    /// Group keys.
    pub names: &'a [u128],
    pub draws: &'a ContributionDraws,
    pub known_releases: Option<&'a ReleaseLog>,
    pub held: &'a HeldRows,
    /// Held rows, then fresh ones.
    pub batch: &'a CodeBatch,
    pub waits: &'a [PendingRow],
    /// Batches that each row was held for.
    pub waited: &'a [u8],
    pub age_ms: i64,
}

impl ContributionLimiter<'_> {
    /// Selects the contributing rows; with `all`, delays end.
    pub fn select_rows(&self, all: bool) -> GroupParticipation {
        let batch = self.batch;
        let groups = self.plan.groups.iter().zip(self.names);
        let lanes: Vec<LimitedGroup<'_>> =
            groups.map(|(group, &name)| LimitedGroup { name, group, is_static: self.plan.is_static(group) }).collect();
        let scattered = lanes.iter().any(|lane| lane.is_static);
        if self.settings.max_lines == 0 && !scattered && self.waits.iter().all(|wait| wait.parts.is_none()) {
            return GroupParticipation::default();
        }
        let mut calls = RowSelection {
            limiter: self,
            shared: self.plan.attributes_in_several_groups(),
            claims: 0,
            marks: vec![vec![false; batch.rows()]; lanes.len()],
            turnout: GroupParticipation {
                is_limited: true,
                ends_delays: all,
                age_ms: self.age_ms,
                ..GroupParticipation::default()
            },
        };
        let mut rows: Vec<u32> = (0..u32::try_from(batch.rows()).expect("a batch is bounded")).collect();
        rows.sort_unstable_by_key(|&row| (batch.subjects[row as usize], row));
        let mut ranked = Vec::new();
        for of_subject in rows.chunk_by(|a, b| batch.subjects[*a as usize] == batch.subjects[*b as usize]) {
            ranked.clear();
            ranked.extend_from_slice(of_subject);
            if of_subject.len() > 1 {
                ranked.sort_by_cached_key(|&row| self.draws.rank(batch.coordinates[row as usize]));
            }
            for (number, lane) in lanes.iter().enumerate() {
                if lane.is_static {
                    calls.claim_line(number, lane, &ranked);
                } else {
                    calls.select_first(number, lane, &ranked);
                }
            }
        }
        let RowSelection { marks, mut turnout, .. } = calls;
        if !all {
            self.keep_undue_parts(&mut turnout);
        }
        let one_each = self.settings.max_lines == 1 || lanes.iter().all(|lane| lane.is_static);
        turnout.mask = GroupMask::new(marks.into_iter().map(Some).collect(), scattered, one_each);
        turnout
    }

    fn keep_undue_parts(&self, turnout: &mut GroupParticipation) {
        for (row, wait) in (0u32..).zip(self.waits) {
            let due_later = |part: &&PendingGroup| part.due_ms > self.age_ms;
            let parts: Vec<PendingGroup> = wait.parts.iter().flatten().filter(due_later).copied().collect();
            if !parts.is_empty() {
                turnout.pending_parts.entry(row).or_default().extend(parts);
            }
        }
    }

    fn part(&self, row: usize, name: u128) -> Option<&PendingGroup> {
        self.waits.get(row)?.parts.as_ref()?.iter().find(|part| part.group == name)
    }

    /// Returns held parts by row.
    pub fn pending_rows(
        &self,
        turnout: &mut GroupParticipation,
        proposal: &mut Proposal,
        verified: &ReleasableBatch,
        monitor: bool,
    ) -> BTreeMap<u32, PendingRow> {
        let held: BTreeSet<u32> = proposal.held.iter().copied().collect();
        if turnout.is_limited && !turnout.ends_delays {
            self.schedule_retries(turnout, &held, proposal, verified);
        }
        let released = |row: usize| {
            let leaves = !monitor && proposal.unreleased[row].is_none() && !held.contains(&(row as u32));
            leaves || self.waits.get(row).is_some_and(|wait| wait.released)
        };
        let mut remaining = BTreeMap::new();
        for (row, parts) in std::mem::take(&mut turnout.pending_parts) {
            let at = row as usize;
            let wait = PendingRow { waited: self.waited[at], released: released(at), parts: Some(parts) };
            remaining.insert(row, wait);
        }
        for &row in &held {
            let at = row as usize;
            let waited = self.waited[at] + 1;
            if !turnout.is_limited {
                remaining.insert(row, PendingRow { waited, released: false, parts: None });
                continue;
            }
            let taking = self.names.iter().enumerate().filter(|(group, _)| turnout.mask.takes_part(*group, at));
            let parts = taking.map(|(_, &group)| {
                let now = PendingGroup { group, since_ms: self.age_ms, due_ms: self.age_ms };
                self.part(at, group).copied().unwrap_or(now)
            });
            let released = released(at);
            let wait = remaining.entry(row).or_insert(PendingRow { waited, released, parts: Some(Vec::new()) });
            wait.waited = waited;
            wait.parts.get_or_insert_default().extend(parts);
        }
        remaining
    }

    fn schedule_retries(
        &self,
        turnout: &mut GroupParticipation,
        held: &BTreeSet<u32>,
        proposal: &mut Proposal,
        verified: &ReleasableBatch,
    ) {
        let (batch, age_ms, shared) = (self.batch, self.age_ms, self.plan.attributes_in_several_groups());
        let groups = self.plan.groups.iter().zip(self.names).enumerate();
        for (number, (group, &name)) in groups.filter(|(_, (group, _))| self.plan.is_static(group)) {
            let mut left = vec![false; batch.rows()];
            verified.lines(number).for_each(|line| left[line.row as usize] = true);
            for row in (0..batch.rows()).filter(|&row| turnout.mask.takes_part(number, row) && !left[row]) {
                let at = row as u32;
                let known = self.part(row, name);
                let since_ms = known.map_or(age_ms, |part| part.since_ms);
                if held.contains(&at) || age_ms - since_ms >= self.settings.window_ms {
                    continue;
                }
                if known.is_some() {
                    turnout.ended_delays.0 -= 1;
                    turnout.ended_delays.1 -= turnout.age_ms - since_ms;
                }
                let part = PendingGroup { group: name, since_ms, due_ms: self.settings.next_attempt_ms(age_ms) };
                turnout.pending_parts.entry(at).or_default().push(part);
                let is_present = |a: &&usize| !matches!(batch.columns[**a][row], ABSENT | NULL);
                let cells = group.quasi.iter().filter(|a| !shared.contains(a)).filter(is_present).count() as u64;
                proposal.loss = ((proposal.loss.0 - cells as f64).max(0.0), proposal.loss.1.saturating_sub(cells));
            }
        }
    }
}

struct LimitedGroup<'a> {
    name: u128,
    group: &'a PlanGroup,
    is_static: bool,
}

struct RowSelection<'a> {
    limiter: &'a ContributionLimiter<'a>,
    /// Attributes of several groups.
    shared: Vec<usize>,
    claims: usize,
    /// By group and row.
    marks: Vec<Vec<bool>>,
    turnout: GroupParticipation,
}

impl RowSelection<'_> {
    /// At most `max_lines` rows of one subject by rank, for a changing group.
    fn select_first(&mut self, number: usize, lane: &LimitedGroup<'_>, ranked: &[u32]) {
        let most = if self.limiter.settings.max_lines == 0 { usize::MAX } else { self.limiter.settings.max_lines };
        let mut taken = 0;
        for &row in ranked {
            if !self.is_eligible(lane.name, row) {
                continue;
            }
            if taken < most {
                taken += 1;
                self.select_row(number, lane.name, row);
            } else {
                self.turnout.thinned += 1;
            }
        }
    }

    /// At most one row of one subject by rank, for a static group; new lines wait.
    fn claim_line(&mut self, number: usize, lane: &LimitedGroup<'_>, ranked: &[u32]) {
        let ContributionLimiter { settings, batch, waits, age_ms, .. } = *self.limiter;
        let is_held = |row: &u32| (*row as usize) < waits.len();
        let coming = || ranked.iter().copied().filter(|&row| self.is_eligible(lane.name, row));
        let count = coming().count() as u64;
        if count == 0 {
            return;
        }
        let key = release_log_key(lane.name, batch.subjects[ranked[0] as usize]);
        // Longest wait first.
        let waiting = coming().filter(is_held).min();
        let fresh = coming().find(|row| !is_held(row) && self.has_any_value(lane.group, *row));
        self.turnout.thinned += count;
        let (Some(said), Some(row)) = (self.limiter.known_releases, waiting.or(fresh)) else { return };
        if said.has_current_entry(key, age_ms) {
            return;
        }
        if waiting.is_some() {
            self.turnout.thinned -= 1;
            self.select_row(number, lane.name, row);
            return;
        }
        if self.limiter.held.has_waiting_line(key) {
            return;
        }
        let lines = self.limiter.held.lines() + self.claims;
        if !said.has_room(lines) {
            self.turnout.reached_limit = Some(Limit::SaidLines);
            return;
        }
        let delay_ms = if self.turnout.ends_delays {
            0
        } else {
            self.limiter.draws.delay_ms(key, said.window(key, age_ms).number, settings.max_delay_ms)
        };
        if delay_ms > 0 && lines >= settings.max_waiting {
            self.turnout.reached_limit = Some(Limit::WaitingLines);
            return;
        }
        self.claims += 1;
        self.turnout.thinned -= 1;
        if delay_ms > 0 {
            let part = PendingGroup { group: lane.name, since_ms: age_ms, due_ms: age_ms + delay_ms };
            self.turnout.pending_parts.entry(row).or_default().push(part);
        } else {
            self.marks[number][row as usize] = true;
        }
    }

    fn is_eligible(&self, name: u128, row: u32) -> bool {
        let Some(wait) = self.limiter.waits.get(row as usize) else { return true };
        let due = |part: &PendingGroup| {
            part.group == name && (self.turnout.ends_delays || part.due_ms <= self.limiter.age_ms)
        };
        wait.parts.as_ref().is_none_or(|parts| parts.iter().any(due))
    }

    fn select_row(&mut self, number: usize, name: u128, row: u32) {
        self.marks[number][row as usize] = true;
        if let Some(part) = self.limiter.part(row as usize, name) {
            self.turnout.ended_delays.0 += 1;
            self.turnout.ended_delays.1 += self.limiter.age_ms - part.since_ms;
        }
    }

    /// An empty row must not use up the line.
    fn has_any_value(&self, group: &PlanGroup, row: u32) -> bool {
        group
            .unshared_attributes(&self.shared)
            .any(|a| !matches!(self.limiter.batch.columns[a][row as usize], ABSENT | NULL))
    }
}

pub(crate) struct ContributionDraws {
    delays: KeyedDigest,
    choices: KeyedDigest,
}

impl ContributionDraws {
    /// Derives separate keys for delays and ranks.
    pub fn new(secret: &DigestKey) -> Self {
        Self { delays: KeyedDigest::new(secret, "throng delay"), choices: KeyedDigest::new(secret, "throng choice") }
    }

    fn delay_ms(&self, key: u128, number: i64, most_ms: i64) -> i64 {
        let mut text = [0; 24];
        text[..16].copy_from_slice(&key.to_be_bytes());
        text[16..].copy_from_slice(&number.to_be_bytes());
        (self.delays.digest(&text) % (u128::from(most_ms.unsigned_abs()) + 1)) as i64
    }

    fn rank(&self, at: RecordPosition) -> u128 {
        let mut text = [0; 18];
        text[..2].copy_from_slice(&at.topic.to_be_bytes());
        text[2..6].copy_from_slice(&at.partition.to_be_bytes());
        text[6..14].copy_from_slice(&at.offset.to_be_bytes());
        text[14..].copy_from_slice(&at.element.to_be_bytes());
        // Compatible with digests before elements existed.
        self.choices.digest(if at.element == 0 { &text[..14] } else { &text })
    }
}
