//! Contribution limits: who takes part in which group of a batch (docs/methods.md §12.4).
//!
//! What does not change within a person would be said again with every record, beside all else that the person sends at
//! that moment: enough batches then tell whose fragments belong together. So a group that does not change says it once
//! per subject and window, at a moment that has nothing to do with the record: the first record of the subject claims the
//! line, which waits for a delay drawn from the secret, and every other one is thinned. Every other group has at most
//! `max_lines` lines of a subject in a batch, so that no burst can be counted.
//!
//! A line whose delay is over needs a class as every line does, and few are due at once: one that finds none comes again at
//! moments that all have in common ([`RepetitionSettings::next_call`]), until a window has passed since it was claimed.
//!
//! All of it is a function of the batch, its clock, the secret, what waits and what has been said: an attempt that is
//! repeated has the same bytes.

use super::held::{Held, Remaining};
use super::settings::RepetitionSettings;
use crate::anonymity::plan::{Group, Plan};
use crate::anonymity::treatment::mask::Mask;
use crate::anonymity::treatment::proposal::Proposal;
use crate::daemon::state::records::Part;
use crate::release::verified::Verified;
use crate::telemetry::Limit;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::ledger::said::{Said, said_key};
use throng_core::values::codebook::{ABSENT, NULL};
use throng_core::values::digest::{DigestKey, Keyed};
use throng_core::values::raw::Coordinate;
use throng_core::values::table::Batch;

/// Who takes part in what, and what waits on.
#[derive(Debug, Default)]
pub(super) struct Turnout {
    pub mask: Mask,
    /// By row: the groups that it waits for beside what becomes of it now.
    later: BTreeMap<u32, Vec<Part>>,
    /// Fragments that other lines of their subject stand for.
    pub thinned: u64,
    /// Lines that have waited and take part now, and their delays in all.
    pub waited: (u64, i64),
    /// A limit kept a line from waiting.
    pub full: Option<Limit>,
    /// There are limits: what waits of a row is told by group.
    is_limited: bool,
    /// Nothing waits any longer.
    all: bool,
    /// The moment at which who takes part was decided.
    age_ms: i64,
}

/// The attributes that what remains of a row is made of, under `plan` with groups of these names.
pub(super) fn needs(plan: &Plan, names: &[u128], width: usize, wait: &Remaining) -> Vec<bool> {
    let Some(parts) = &wait.parts else { return vec![true; width] };
    let mut needed = vec![false; width];
    for (group, name) in plan.groups.iter().zip(names) {
        if parts.iter().any(|part| part.group == *name) {
            group.attributes().into_iter().for_each(|a| needed[a] = true);
        }
    }
    needed
}

/// Limits what a batch says of each subject, and decides what waits.
pub(super) struct ContributionLimiter<'a> {
    pub settings: RepetitionSettings,
    pub plan: &'a Plan,
    /// Names of the plan's groups among what waits and what has been said.
    pub names: &'a [u128],
    pub draws: &'a Draws,
    pub said: Option<&'a Said>,
    pub held: &'a Held,
    /// The held rows that come along, then the fresh ones.
    pub batch: &'a Batch,
    /// What the held rows have waited for.
    pub waits: &'a [Remaining],
    /// How many batches each row was held for.
    pub waited: &'a [u8],
    pub age_ms: i64,
}

impl ContributionLimiter<'_> {
    /// Decides who takes part in the batch. With `all` nothing waits any longer for its delay.
    pub fn turn_out(&self, all: bool) -> Turnout {
        let batch = self.batch;
        let groups = self.plan.groups.iter().zip(self.names);
        let lanes: Vec<Lane<'_>> =
            groups.map(|(group, &name)| Lane { name, group, is_static: self.plan.is_static(group) }).collect();
        let scattered = lanes.iter().any(|lane| lane.is_static);
        if self.settings.max_lines == 0 && !scattered && self.waits.iter().all(|wait| wait.parts.is_none()) {
            return Turnout::default();
        }
        let mut calls = Calls {
            limiter: self,
            shared: self.plan.shared(),
            claims: 0,
            marks: vec![vec![false; batch.rows()]; lanes.len()],
            turnout: Turnout { is_limited: true, all, age_ms: self.age_ms, ..Turnout::default() },
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
                    calls.take_first(number, lane, &ranked);
                }
            }
        }
        let Calls { marks, mut turnout, .. } = calls;
        if !all {
            self.wait_on(&mut turnout);
        }
        let one_each = self.settings.max_lines == 1 || lanes.iter().all(|lane| lane.is_static);
        turnout.mask = Mask::new(marks.into_iter().map(Some).collect(), scattered, one_each);
        turnout
    }

    /// What held rows still wait for.
    fn wait_on(&self, turnout: &mut Turnout) {
        for (row, wait) in (0u32..).zip(self.waits) {
            let due_later = |part: &&Part| part.due_ms > self.age_ms;
            let parts: Vec<Part> = wait.parts.iter().flatten().filter(due_later).copied().collect();
            if !parts.is_empty() {
                turnout.later.entry(row).or_default().extend(parts);
            }
        }
    }

    /// What a held row has waited for in the group of this name.
    fn part(&self, row: usize, name: u128) -> Option<&Part> {
        self.waits.get(row)?.parts.as_ref()?.iter().find(|part| part.group == name)
    }

    /// What goes on waiting of the batch, by row. What waits on for a class is no loss of this batch.
    pub fn remaining(
        &self,
        turnout: &mut Turnout,
        proposal: &mut Proposal,
        verified: &Verified,
        monitor: bool,
    ) -> BTreeMap<u32, Remaining> {
        let held: BTreeSet<u32> = proposal.held.iter().copied().collect();
        if turnout.is_limited && !turnout.all {
            self.defer(turnout, &held, proposal, verified);
        }
        let released = |row: usize| {
            let leaves = !monitor && proposal.unreleased[row].is_none() && !held.contains(&(row as u32));
            leaves || self.waits.get(row).is_some_and(|wait| wait.released)
        };
        let mut remaining = BTreeMap::new();
        for (row, parts) in std::mem::take(&mut turnout.later) {
            let at = row as usize;
            let wait = Remaining { waited: self.waited[at], released: released(at), parts: Some(parts) };
            remaining.insert(row, wait);
        }
        for &row in &held {
            let at = row as usize;
            let waited = self.waited[at] + 1;
            if !turnout.is_limited {
                remaining.insert(row, Remaining { waited, released: false, parts: None });
                continue;
            }
            let taking = self.names.iter().enumerate().filter(|(group, _)| turnout.mask.takes_part(*group, at));
            let parts = taking.map(|(_, &group)| {
                let now = Part { group, since_ms: self.age_ms, due_ms: self.age_ms };
                self.part(at, group).copied().unwrap_or(now)
            });
            let released = released(at);
            let wait = remaining.entry(row).or_insert(Remaining { waited, released, parts: Some(Vec::new()) });
            wait.waited = waited;
            wait.parts.get_or_insert_default().extend(parts);
        }
        remaining
    }

    /// Lines that say something once a window and found no class are called again, unless their time is over.
    fn defer(&self, turnout: &mut Turnout, held: &BTreeSet<u32>, proposal: &mut Proposal, verified: &Verified) {
        let (batch, age_ms, shared) = (self.batch, self.age_ms, self.plan.shared());
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
                    turnout.waited.0 -= 1;
                    turnout.waited.1 -= turnout.age_ms - since_ms;
                }
                let part = Part { group: name, since_ms, due_ms: self.settings.next_call(age_ms) };
                turnout.later.entry(at).or_default().push(part);
                let is_present = |a: &&usize| !matches!(batch.columns[**a][row], ABSENT | NULL);
                let cells = group.quasi.iter().filter(|a| !shared.contains(a)).filter(is_present).count() as u64;
                proposal.loss = ((proposal.loss.0 - cells as f64).max(0.0), proposal.loss.1.saturating_sub(cells));
            }
        }
    }
}

/// A group of the plan.
struct Lane<'a> {
    name: u128,
    group: &'a Group,
    is_static: bool,
}

/// Calls the rows of one subject after another.
struct Calls<'a> {
    limiter: &'a ContributionLimiter<'a>,
    /// Attributes that stand in several groups.
    shared: Vec<usize>,
    /// Lines claimed in this batch.
    claims: usize,
    /// By group and row.
    marks: Vec<Vec<bool>>,
    turnout: Turnout,
}

impl Calls<'_> {
    /// Takes at most `max_lines` rows of one subject, by rank, into a group that changes.
    fn take_first(&mut self, number: usize, lane: &Lane<'_>, ranked: &[u32]) {
        let most = if self.limiter.settings.max_lines == 0 { usize::MAX } else { self.limiter.settings.max_lines };
        let mut taken = 0;
        for &row in ranked {
            if !self.comes(lane.name, row) {
                continue;
            }
            if taken < most {
                taken += 1;
                self.take(number, lane.name, row);
            } else {
                self.turnout.thinned += 1;
            }
        }
    }

    /// Takes at most one row of one subject, by rank, into a group that does not change; a new line waits for its delay.
    fn claim_line(&mut self, number: usize, lane: &Lane<'_>, ranked: &[u32]) {
        let ContributionLimiter { settings, batch, waits, age_ms, .. } = *self.limiter;
        let is_held = |row: &u32| (*row as usize) < waits.len();
        let coming = || ranked.iter().copied().filter(|&row| self.comes(lane.name, row));
        let count = coming().count() as u64;
        if count == 0 {
            return;
        }
        let key = said_key(lane.name, batch.subjects[ranked[0] as usize]);
        // What has waited longest goes first.
        let waiting = coming().filter(is_held).min();
        let fresh = coming().find(|row| !is_held(row) && self.says_something(lane.group, *row));
        self.turnout.thinned += count;
        let (Some(said), Some(row)) = (self.limiter.said, waiting.or(fresh)) else { return };
        if said.is_said(key, age_ms) {
            return;
        }
        if waiting.is_some() {
            self.turnout.thinned -= 1;
            self.take(number, lane.name, row);
            return;
        }
        if self.limiter.held.waits_for(key) {
            return;
        }
        let lines = self.limiter.held.lines() + self.claims;
        if !said.has_room(lines) {
            self.turnout.full = Some(Limit::SaidLines);
            return;
        }
        let delay_ms = if self.turnout.all {
            0
        } else {
            self.limiter.draws.delay_ms(key, said.window(key, age_ms).number, settings.max_delay_ms)
        };
        if delay_ms > 0 && lines >= settings.max_waiting {
            self.turnout.full = Some(Limit::WaitingLines);
            return;
        }
        self.claims += 1;
        self.turnout.thinned -= 1;
        if delay_ms > 0 {
            let part = Part { group: lane.name, since_ms: age_ms, due_ms: age_ms + delay_ms };
            self.turnout.later.entry(row).or_default().push(part);
        } else {
            self.marks[number][row as usize] = true;
        }
    }

    /// Whether a row could take part in the group of this name now.
    fn comes(&self, name: u128, row: u32) -> bool {
        let Some(wait) = self.limiter.waits.get(row as usize) else { return true };
        let due = |part: &Part| part.group == name && (self.turnout.all || part.due_ms <= self.limiter.age_ms);
        wait.parts.as_ref().is_none_or(|parts| parts.iter().any(due))
    }

    fn take(&mut self, number: usize, name: u128, row: u32) {
        self.marks[number][row as usize] = true;
        if let Some(part) = self.limiter.part(row as usize, name) {
            self.turnout.waited.0 += 1;
            self.turnout.waited.1 += self.limiter.age_ms - part.since_ms;
        }
    }

    /// Whether a row has any value in a group: one that has none does not use up its subject's line.
    fn says_something(&self, group: &Group, row: u32) -> bool {
        group.own(&self.shared).any(|a| !matches!(self.limiter.batch.columns[a][row as usize], ABSENT | NULL))
    }
}

/// Draws what must not be guessed.
pub(super) struct Draws {
    delays: Keyed,
    choices: Keyed,
}

impl Draws {
    /// Derives one key for delays and one for choices: the same secret gives the same draws in every process.
    pub fn new(secret: &DigestKey) -> Self {
        Self { delays: Keyed::new(secret, "throng delay"), choices: Keyed::new(secret, "throng choice") }
    }

    /// The delay of the line of `key` in window `number`: uniform between 0 and `most_ms`.
    fn delay_ms(&self, key: u128, number: i64, most_ms: i64) -> i64 {
        let mut text = [0; 24];
        text[..16].copy_from_slice(&key.to_be_bytes());
        text[16..].copy_from_slice(&number.to_be_bytes());
        (self.delays.digest(&text) % (u128::from(most_ms.unsigned_abs()) + 1)) as i64
    }

    /// The rank of a record among those of its subject.
    fn rank(&self, at: Coordinate) -> u128 {
        let mut text = [0; 18];
        text[..2].copy_from_slice(&at.topic.to_be_bytes());
        text[2..6].copy_from_slice(&at.partition.to_be_bytes());
        text[6..14].copy_from_slice(&at.offset.to_be_bytes());
        text[14..].copy_from_slice(&at.element.to_be_bytes());
        // A message as a whole is drawn as it was before there were elements: a batch that is repeated repeats its draws.
        self.choices.digest(if at.element == 0 { &text[..14] } else { &text })
    }
}
