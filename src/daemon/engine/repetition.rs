//! The limits on repetition, over a whole batch: who takes part in it, and what of it waits on.

use super::fields::Engine;
use super::gathered::Before;
use super::held::Remaining;
use super::turnout::{Caller, Lane, Turnout, needs};
use crate::anonymity::plan::{Group, Plan};
use crate::anonymity::treatment::mask::Mask;
use crate::anonymity::treatment::names::turn_name;
use crate::anonymity::treatment::proposal::Proposal;
use crate::daemon::state::records::Part;
use crate::records::codebook::{ABSENT, NULL};
use crate::records::table::Batch;
use crate::release::repetition::LineLimit;
use crate::release::verified::Verified;
use std::collections::{BTreeMap, BTreeSet};

impl Engine {
    /// The names of the groups of `plan`: what stays the same as long as their attributes do.
    pub(super) fn name_turns(&mut self, plan: &Plan) {
        let names: Vec<&str> = self.schema.attributes.iter().map(|a| a.name.as_str()).collect();
        let name = |group: &Group| turn_name(group, &names, &self.digest);
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
        let shared = self.in_force.plan.shared();
        let mut caller = Caller {
            shared: &shared,
            settings,
            draws: &self.draws,
            said: self.ledger.said.as_ref(),
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
        self.defer_calls(turnout, before, &held, proposal, verified, age_ms);
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
    fn defer_calls(
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
        let shared = self.in_force.plan.shared();
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
                let cells = group.quasi.iter().filter(|a| !shared.contains(a)).filter(is_present).count() as u64;
                proposal.loss = ((proposal.loss.0 - cells as f64).max(0.0), proposal.loss.1.saturating_sub(cells));
            }
        }
    }

    /// The attributes that what remains of a row is made of.
    pub(super) fn needs(&self, wait: &Remaining) -> Vec<bool> {
        needs(&self.in_force.plan, &self.in_force.turn_names, self.schema.attributes.len(), wait)
    }
}
