//! Who takes part in which group of a batch (docs/methods.md §12.4).
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

use super::Engine;
use super::account::Before;
use crate::anonymity::plan::{Group, Plan};
use crate::anonymity::treatment::mask::Mask;
use crate::anonymity::treatment::proposal::Proposal;
use crate::daemon::engine::held::{Held, Remaining};
use crate::daemon::state::records::Part;
use crate::ledger::said::{Said, said_key};
use crate::records::codebook::{ABSENT, NULL};
use crate::records::digest::{DigestKey, Keyed};
use crate::records::raw::Coordinate;
use crate::records::table::Batch;
use crate::release::repetition::LineLimit;
use crate::release::verified::Verified;
use crate::telemetry::Limit;
use std::collections::{BTreeMap, BTreeSet};

/// Limits on repetition. Without a subject in the schema there are none: every record is its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct RepetitionSettings {
    /// Lines of a subject in a batch, in a group that changes; 0: no limit.
    pub max_lines: usize,
    /// The longest delay of a line in a group that does not; 0: there are no such groups.
    pub max_delay_ms: i64,
    /// How long a line stands for the others of its subject in such a group, and may look for a class.
    pub window_ms: i64,
    /// Lines that wait at most.
    pub max_waiting: usize,
    /// People who may be one person's invention: what only they change does not change.
    pub colluders: usize,
}

/// How often in the longest delay a line that has found no class looks for one.
const CALLS: i64 = 24;

impl RepetitionSettings {
    /// When a line that found no class at `age_ms` comes again. These moments are the same for all lines, so that those who
    /// make a crowd together meet; they lie after `age_ms`, so that a quiet stream does not ask for ever.
    fn next_call(&self, age_ms: i64) -> i64 {
        let step = (self.max_delay_ms / CALLS).max(1);
        (age_ms.div_euclid(step) + 1) * step
    }
}

/// Draws what must not be guessed.
pub struct Draws {
    delays: Keyed,
    choices: Keyed,
}

impl Draws {
    #[must_use]
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
        let mut text = [0; 14];
        text[..2].copy_from_slice(&at.topic.to_be_bytes());
        text[2..6].copy_from_slice(&at.partition.to_be_bytes());
        text[6..].copy_from_slice(&at.offset.to_be_bytes());
        self.choices.digest(&text)
    }
}

/// Who takes part in what, and what waits on.
#[derive(Debug, Default)]
pub(super) struct Turnout {
    pub mask: Mask,
    /// By row: the groups that it waits for beside what becomes of it now.
    pub later: BTreeMap<u32, Vec<Part>>,
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

/// A group as the turnout sees it.
struct Lane<'a> {
    name: u128,
    group: &'a Group,
    is_static: bool,
}

impl Engine {
    /// The names of the groups of `plan`: what stays the same as long as their attributes do.
    pub(super) fn name_turns(&mut self, plan: &Plan) {
        let name = |group: &Group| {
            let names = group.attributes().into_iter().map(|a| self.schema.attributes[a].name.as_str());
            (self.digest)(&format!("lines of {}", names.map(|n| format!("{}:{n}", n.len())).collect::<String>()))
        };
        self.in_force.turn_names = plan.groups.iter().map(name).collect();
    }

    /// How many lines of a subject verification lets through, by group of the plan in force.
    pub(super) fn line_limits(&self, plan: &Plan) -> Vec<LineLimit> {
        let limit = |(group, &name): (&Group, &u128)| match self.settings.repetition.max_lines {
            _ if plan.is_static(group) => LineLimit::OncePerWindow(name),
            0 => LineLimit::None,
            most => LineLimit::PerBatch(most),
        };
        plan.groups.iter().zip(&self.in_force.turn_names).map(limit).collect()
    }

    /// Decides who takes part in a batch at `age_ms` that begins with held rows, which waited for `waits`. With `all`
    /// nothing waits any longer for its delay.
    pub(super) fn turn_out(&self, batch: &Batch, waits: &[Remaining], age_ms: i64, all: bool) -> Turnout {
        let settings = self.settings.repetition;
        let groups = self.in_force.plan.groups.iter().zip(&self.in_force.turn_names);
        let turns: Vec<Lane<'_>> =
            groups.map(|(group, &name)| Lane { name, group, is_static: self.in_force.plan.is_static(group) }).collect();
        let scattered = turns.iter().any(|turn| turn.is_static);
        if settings.max_lines == 0 && !scattered && waits.iter().all(|wait| wait.parts.is_none()) {
            return Turnout::default();
        }
        let mut caller = Caller {
            settings,
            draws: &self.draws,
            said: self.ledger.said(),
            held: &self.held,
            batch,
            waits,
            age_ms,
            all,
            claims: 0,
            marks: vec![vec![false; batch.rows()]; turns.len()],
            turnout: Turnout { is_limited: true, all, age_ms, ..Turnout::default() },
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
            for (number, turn) in turns.iter().enumerate() {
                caller.call(number, turn, &ranked);
            }
        }
        caller.wait_on();
        let Caller { marks, mut turnout, .. } = caller;
        let one_each = settings.max_lines == 1 || turns.iter().all(|turn| turn.is_static);
        turnout.mask = Mask::new(marks.into_iter().map(Some).collect(), scattered, one_each);
        turnout
    }

    /// What goes on waiting of a batch, by row. What waits on for a class is no loss of this batch.
    pub(super) fn remaining(
        &self,
        turnout: &mut Turnout,
        before: &Before<'_>,
        proposal: &mut Proposal,
        verified: &Verified,
        age_ms: i64,
    ) -> BTreeMap<u32, Remaining> {
        let &Before { batch, waits, waited } = before;
        let held: BTreeSet<u32> = proposal.held.iter().copied().collect();
        self.call_again(turnout, before, &held, proposal, verified, age_ms);
        let monitor = self.settings.monitor;
        let released = |row: usize| {
            let leaves = !monitor && proposal.unreleased[row].is_none() && !held.contains(&(row as u32));
            leaves || waits.get(row).is_some_and(|wait| wait.released)
        };
        let mut remaining = BTreeMap::new();
        for (row, parts) in std::mem::take(&mut turnout.later) {
            let at = row as usize;
            let wait = Remaining { waited: waited[at], released: released(at), parts: Some(parts) };
            remaining.insert(row, wait);
        }
        for &row in &held {
            let at = row as usize;
            let waited = waited[at] + 1;
            if !turnout.is_limited {
                remaining.insert(row, Remaining { waited, released: false, parts: None });
                continue;
            }
            let now = |name: u128| Part { group: name, since_ms: age_ms, due_ms: age_ms };
            let taking =
                self.in_force.turn_names.iter().enumerate().filter(|(group, _)| turnout.mask.takes_part(*group, at));
            let parts = taking.map(|(_, &name)| {
                let known = waits.get(at).and_then(|wait| wait.parts.as_ref());
                known.and_then(|parts| parts.iter().find(|part| part.group == name)).copied().unwrap_or(now(name))
            });
            let released = released(at);
            let wait = remaining.entry(row).or_insert(Remaining { waited, released, parts: Some(Vec::new()) });
            wait.waited = waited;
            wait.parts.get_or_insert_default().extend(parts);
        }
        debug_assert!(remaining.keys().all(|row| (*row as usize) < batch.rows()));
        remaining
    }

    /// Lines that say something once a window and found no class are called again, unless their time is over.
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn call_again(
        &self,
        turnout: &mut Turnout,
        before: &Before<'_>,
        held: &BTreeSet<u32>,
        proposal: &mut Proposal,
        verified: &Verified,
        age_ms: i64,
    ) {
        let settings = self.settings.repetition;
        if !turnout.is_limited || turnout.all {
            return;
        }
        let &Before { batch, waits, .. } = before;
        for (number, (group, &name)) in self.in_force.plan.groups.iter().zip(&self.in_force.turn_names).enumerate() {
            if !self.in_force.plan.is_static(group) {
                continue;
            }
            let mut left = vec![false; batch.rows()];
            verified.lines(number).for_each(|line| left[line.row as usize] = true);
            for row in (0..batch.rows()).filter(|&row| turnout.mask.takes_part(number, row) && !left[row]) {
                let at = row as u32;
                let known = waits.get(row).and_then(|wait| wait.parts.as_ref());
                let known = known.and_then(|parts| parts.iter().find(|part| part.group == name));
                let since_ms = known.map_or(age_ms, |part| part.since_ms);
                if held.contains(&at) || age_ms - since_ms >= settings.window_ms {
                    continue;
                }
                if known.is_some() {
                    turnout.waited.0 -= 1;
                    turnout.waited.1 -= turnout.age_ms - since_ms;
                }
                let part = Part { group: name, since_ms, due_ms: settings.next_call(age_ms) };
                turnout.later.entry(at).or_default().push(part);
                let is_present = |a: &&usize| !matches!(batch.columns[**a][row], ABSENT | NULL);
                let cells = group.quasi.iter().filter(is_present).count() as u64;
                proposal.loss = ((proposal.loss.0 - cells as f64).max(0.0), proposal.loss.1.saturating_sub(cells));
            }
        }
    }

    /// The attributes that what remains of a row is made of.
    pub(super) fn needs(&self, wait: &Remaining) -> Vec<bool> {
        needs(&self.in_force.plan, &self.in_force.turn_names, self.schema.attributes.len(), wait)
    }
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

/// Calls the rows of one subject after another.
struct Caller<'a> {
    settings: RepetitionSettings,
    draws: &'a Draws,
    said: Option<&'a Said>,
    held: &'a Held,
    batch: &'a Batch,
    waits: &'a [Remaining],
    age_ms: i64,
    all: bool,
    /// Lines claimed in this batch.
    claims: usize,
    /// By group and row.
    marks: Vec<Vec<bool>>,
    turnout: Turnout,
}

impl Caller<'_> {
    /// Calls the rows of one subject, by rank, into a group.
    fn call(&mut self, number: usize, turn: &Lane<'_>, ranked: &[u32]) {
        if !turn.is_static {
            let most = if self.settings.max_lines == 0 { usize::MAX } else { self.settings.max_lines };
            let mut taken = 0;
            for &row in ranked {
                if !self.comes(turn.name, row) {
                    continue;
                }
                if taken < most {
                    taken += 1;
                    self.take(number, turn.name, row);
                } else {
                    self.turnout.thinned += 1;
                }
            }
            return;
        }
        let held = |row: &u32| (*row as usize) < self.waits.len();
        let coming = || ranked.iter().copied().filter(|&row| self.comes(turn.name, row));
        let count = coming().count() as u64;
        if count == 0 {
            return;
        }
        let key = said_key(turn.name, self.batch.subjects[ranked[0] as usize]);
        // What has waited longest goes first.
        let waiting = coming().filter(held).min();
        let fresh = coming().find(|row| !held(row) && self.says_something(turn.group, *row));
        self.turnout.thinned += count;
        let (Some(said), Some(row)) = (self.said, waiting.or(fresh)) else { return };
        if said.is_said(key, self.age_ms) {
            return;
        }
        if waiting.is_some() {
            self.turnout.thinned -= 1;
            self.take(number, turn.name, row);
            return;
        }
        if self.held.waits_for(key) {
            return;
        }
        let lines = self.held.lines() + self.claims;
        if !said.has_room(lines) {
            self.turnout.full = Some(Limit::SaidLines);
            return;
        }
        let delay_ms = if self.all {
            0
        } else {
            self.draws.delay_ms(key, said.window(key, self.age_ms).number, self.settings.max_delay_ms)
        };
        if delay_ms > 0 && lines >= self.settings.max_waiting {
            self.turnout.full = Some(Limit::WaitingLines);
            return;
        }
        self.claims += 1;
        self.turnout.thinned -= 1;
        if delay_ms > 0 {
            let part = Part { group: turn.name, since_ms: self.age_ms, due_ms: self.age_ms + delay_ms };
            self.turnout.later.entry(row).or_default().push(part);
        } else {
            self.marks[number][row as usize] = true;
        }
    }

    /// Whether a row could take part in the group of this name now.
    fn comes(&self, name: u128, row: u32) -> bool {
        let Some(wait) = self.waits.get(row as usize) else { return true };
        let due = |part: &Part| part.group == name && (self.all || part.due_ms <= self.age_ms);
        wait.parts.as_ref().is_none_or(|parts| parts.iter().any(due))
    }

    fn take(&mut self, number: usize, name: u128, row: u32) {
        self.marks[number][row as usize] = true;
        let parts = self.waits.get(row as usize).and_then(|wait| wait.parts.as_ref());
        if let Some(part) = parts.and_then(|parts| parts.iter().find(|part| part.group == name)) {
            self.turnout.waited.0 += 1;
            self.turnout.waited.1 += self.age_ms - part.since_ms;
        }
    }

    /// Whether a row has any value in a group: one that has none does not use up its subject's line.
    fn says_something(&self, group: &Group, row: u32) -> bool {
        let mut attributes = group.quasi.iter().chain(&group.sensitive);
        attributes.any(|&a| !matches!(self.batch.columns[a][row as usize], ABSENT | NULL))
    }

    /// What held rows still wait for.
    fn wait_on(&mut self) {
        if self.all {
            return;
        }
        for (row, wait) in (0u32..).zip(self.waits) {
            let due_later = |part: &&Part| part.due_ms > self.age_ms;
            let parts: Vec<Part> = wait.parts.iter().flatten().filter(due_later).copied().collect();
            if !parts.is_empty() {
                self.turnout.later.entry(row).or_default().extend(parts);
            }
        }
    }
}
