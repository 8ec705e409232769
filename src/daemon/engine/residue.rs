//! Records that find no crowd here are handed to other instances of the group, and theirs are taken up (decision 0058).
//!
//! Handed on is a record of which nothing has left, nothing waits, and whose lines found no class in the batch that settles it; never one
//! that was handed on so before. It may leave elsewhere in the groups in which it took part here, but for those that say things once a window:
//! who knows what of a person has been said is here.
//!
//! What still waits when its partition is taken away is handed on, too, and goes on waiting where it comes to (decision 0060).

use super::fields::Engine;
use super::gathered::Gathered;
use super::handing::{HandedOn, Handing, Way};
use super::held::Remaining;
use super::settling::Settling;
use super::turnout::{Turnout, needs};
use crate::anonymity::plan::Group;
use crate::anonymity::treatment::proposal::{Proposal, Unreleased};
use crate::daemon::state::records::{Intent, Part};
use crate::io::input::InputBatch;
use crate::io::residue::{Door, Handed, Residue, Sender};
use crate::records::codebook::ABSENT;
use crate::records::raw::Coordinate;
use crate::records::table::Batch;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a batch takes up of others.
#[derive(Debug)]
pub(super) struct TakenUp {
    /// Their rows.
    pub batch: Batch,
    /// The groups in which each may leave.
    pub waits: Vec<Remaining>,
    /// Records that are too old.
    pub late: u64,
}

impl Engine {
    /// Records that find no crowd here go through `door` from here on, to a topic of `partitions`; those of others count for `max_age`.
    pub fn hand_on_by(&mut self, door: Door, partitions: i32, max_age: Duration) {
        let instance = self.state_number().into_bytes();
        let max_age_ms = i64::try_from(max_age.as_millis()).unwrap_or(i64::MAX);
        self.handing = Handing(Some(Way { door, partitions, instance, max_age_ms }));
    }

    /// The rows that others have handed on to the batch of `input`, with stamp `clock_ms` and age `age_ms`.
    pub(super) fn take_up(&mut self, input: &InputBatch, clock_ms: i64, age_ms: i64) -> TakenUp {
        let mut taken = TakenUp { batch: Batch::new(self.schema.attributes.len()), waits: Vec::new(), late: 0 };
        let max_age_ms = self.handing.0.as_ref().map_or(0, |way| way.max_age_ms);
        let plan = &self.in_force.plan;
        let groups = plan.groups.iter().zip(&self.in_force.turn_names);
        // Who hands it on has seen that the group changes: where nothing is known of it yet, it may be said, as often as what does not change.
        let speaks = |group: &Group| !plan.is_static(group) || plan.is_unknown(group);
        let speaking: BTreeSet<u128> = groups.filter(|(group, _)| speaks(group)).map(|(_, name)| *name).collect();
        for Residue { coordinate, handed } in &input.residue {
            if clock_ms.saturating_sub(handed.stamp_ms) > max_age_ms {
                taken.late += 1;
                continue;
            }
            for ((column, book), cell) in taken.batch.columns.iter_mut().zip(&mut self.coding.books).zip(&handed.cells)
            {
                column.push(book.encode_canonical(cell));
            }
            taken.batch.subjects.push(handed.subject);
            taken.batch.coordinates.push(*coordinate);
            let part = |group: &u128| Part { group: *group, since_ms: age_ms, due_ms: age_ms };
            let parts = handed.groups.iter().filter(|group| speaking.contains(group)).map(part).collect();
            taken.waits.push(match handed.waited {
                Some(waited) => Remaining { waited, released: false, parts: Some(parts) },
                None => Remaining::pooled(parts),
            });
        }
        taken
    }

    /// Places of the held records among those that `of` names which can be handed on as they wait: nothing of them has left, and they wait
    /// for no line that is said once a window.
    pub(super) fn movable(&self, of: &impl Fn(Coordinate) -> bool) -> BTreeSet<Coordinate> {
        if self.handing.0.is_none() {
            return BTreeSet::new();
        }
        let held = self.held.waits.iter().zip(&self.held.batch.coordinates);
        held.filter(|(wait, place)| of(**place) && !self.open_groups(wait).is_empty())
            .map(|(_, place)| *place)
            .collect()
    }

    /// Whether a batch that has not left was to release nothing, and to hand on all that it was to settle.
    #[must_use]
    pub fn has_only_handed_on(&self, intent: &Intent) -> bool {
        let before = self.durable.progress.totals.forwarded;
        let handed_on = intent.after.totals.forwarded.saturating_sub(before);
        intent.ranges.is_empty() && handed_on > 0 && handed_on == intent.settled.len() as u64
    }

    /// The groups in which a held record may leave elsewhere; none where a part of it has left, or waits to be said once a window.
    fn open_groups(&self, wait: &Remaining) -> Vec<u128> {
        let plan = &self.in_force.plan;
        let mut groups = Vec::new();
        for (group, name) in plan.groups.iter().zip(&self.in_force.turn_names) {
            let waits = wait.parts.as_ref().is_none_or(|parts| parts.iter().any(|part| part.group == *name));
            match waits && !wait.released {
                false => {}
                true if plan.is_static(group) => return Vec::new(),
                true => groups.push(*name),
            }
        }
        groups
    }

    /// What a treated batch hands on.
    pub(super) fn hand_on(
        &self,
        gathered: &Gathered<'_>,
        proposal: &Proposal,
        turnout: &Turnout,
        remaining: &BTreeMap<u32, Remaining>,
        settling: Settling,
    ) -> HandedOn {
        let Handing(Some(way)) = &self.handing else { return HandedOn::default() };
        let mut handed_on =
            HandedOn { partition: Door::partition(gathered.clock_ms, way.partitions), ..HandedOn::default() };
        let plan = &self.in_force.plan;
        let moves = settling == Settling::Moved;
        for row in (0..gathered.batch.rows()).filter(|row| !gathered.is_pooled(*row)) {
            let number = u32::try_from(row).expect("a batch is bounded");
            let has_left = gathered.waits.get(row).is_some_and(|wait| wait.released);
            let found_nothing = proposal.unreleased[row] == Some(Unreleased::NoSupport);
            if has_left || remaining.contains_key(&number) || !(moves || found_nothing) {
                continue;
            }
            let takes_part =
                |group: &usize| !plan.is_static(&plan.groups[*group]) && turnout.mask.takes_part(*group, row);
            let groups: Vec<u128> = if moves {
                self.open_groups(&gathered.waits[row])
            } else {
                (0..plan.groups.len()).filter(takes_part).map(|group| self.in_force.turn_names[group]).collect()
            };
            if groups.is_empty() {
                continue;
            }
            let sender = Sender {
                instance: way.instance,
                sequence: self.durable.progress.sequence + 1,
                number: u32::try_from(handed_on.records.len()).expect("a batch is bounded"),
            };
            let handed = Handed {
                waited: moves.then_some(gathered.waited[row]),
                ..self.handed(gathered, row, groups, way.door.terms())
            };
            if let Some(record) = way.door.seal(&handed, sender, handed_on.partition) {
                handed_on.rows.insert(number);
                handed_on.records.push(record);
            }
        }
        handed_on
    }

    /// What is handed on of a row: whom it counts for, and what `groups` say.
    fn handed(&self, gathered: &Gathered<'_>, row: usize, groups: Vec<u128>, terms: [u8; 16]) -> Handed {
        let batch = &gathered.batch;
        let part = |group: &u128| Part { group: *group, since_ms: 0, due_ms: 0 };
        let wait = Remaining { waited: 0, released: false, parts: Some(groups.iter().map(part).collect()) };
        let needed = needs(&self.in_force.plan, &self.in_force.turn_names, self.schema.attributes.len(), &wait);
        let columns = batch.columns.iter().zip(&self.coding.books).zip(needed);
        let cells = columns
            .map(|((column, book), needed)| book.canonical(if needed { column[row] } else { ABSENT }).to_owned());
        let (stamp_ms, subject, cells) = (gathered.clock_ms, batch.subjects[row], cells.collect());
        Handed { terms, stamp_ms, subject, groups, waited: None, cells }
    }
}
