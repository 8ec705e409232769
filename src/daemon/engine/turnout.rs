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

use super::draws::Draws;
use super::held::{Held, Remaining};
use super::settings::RepetitionSettings;
use crate::anonymity::plan::{Group, Plan};
use crate::anonymity::treatment::mask::Mask;
use crate::daemon::state::records::Part;
use crate::ledger::said::{Said, said_key};
use crate::records::codebook::{ABSENT, NULL};
use crate::records::table::Batch;
use crate::telemetry::Limit;
use std::collections::BTreeMap;

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
    pub is_limited: bool,
    /// Nothing waits any longer.
    pub all: bool,
    /// The moment at which who takes part was decided.
    pub age_ms: i64,
}

/// A group as the turnout sees it.
pub(super) struct Lane<'a> {
    pub name: u128,
    pub group: &'a Group,
    pub is_static: bool,
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
pub(super) struct Caller<'a> {
    pub settings: RepetitionSettings,
    pub draws: &'a Draws,
    pub said: Option<&'a Said>,
    pub held: &'a Held,
    pub batch: &'a Batch,
    pub waits: &'a [Remaining],
    pub age_ms: i64,
    pub all: bool,
    /// Attributes that stand in several groups.
    pub shared: &'a [usize],
    /// Lines claimed in this batch.
    pub claims: usize,
    /// By group and row.
    pub marks: Vec<Vec<bool>>,
    pub turnout: Turnout,
}

impl Caller<'_> {
    /// Calls the rows of one subject, by rank, into a group.
    pub fn call(&mut self, number: usize, turn: &Lane<'_>, ranked: &[u32]) {
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
        group.own(self.shared).any(|a| !matches!(self.batch.columns[a][row as usize], ABSENT | NULL))
    }

    /// What held rows still wait for.
    pub fn wait_on(&mut self) {
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
