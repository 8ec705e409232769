//! The treatment of one batch by one plan.

use super::budget::{settled, within_budget};
use super::crowd::NO_SUBJECT;
use super::hide::{Hidden, Hiding, Side, UNSHOWN};
use super::hold::let_stay_supported;
use super::mask::Mask;
pub use super::names::{GroupNames, group_names, joined_layouts};
use super::proposal::{Proposal, Unreleased};
use super::ranges::{RangeColumns, divide};
use super::recode::{Assignment, QuasiColumns, UNRELEASED, recode};
pub use super::sensitive::Protected;
use super::sensitive::StreamModels;
use crate::anonymity::plan::{Group, Plan};
use crate::config::Config;
use rayon::prelude::*;
use std::collections::HashSet;
use throng_core::ledger::per_subject::{LedgerAt, SupportersAt};
use throng_core::values::codebook::{ABSENT, CellId, Codebook, NULL, SUPPRESSED};
use throng_core::values::holders::Holders;
use throng_core::values::table::Batch;

mod fragments;
mod guard;
mod propose;

/// A record waits only where its mean loss would be above this.
const HOLD_ABOVE_LOSS: f32 = 0.05;

/// The settings of the treatment that are not the plan's.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Distinct subjects that a class needs, at least 2; a batch with fewer releases nothing.
    pub k: usize,
    /// How many batches a record may wait for a better class.
    pub max_hold_batches: u8,
}

impl Policy {
    /// The settings of a configuration.
    pub fn of(config: &Config) -> Self {
        let max_hold_batches = u8::try_from(config.privacy.max_hold_batches).unwrap_or(u8::MAX);
        Self { k: config.privacy.crowd(), max_hold_batches }
    }
}

/// The records that are to be treated, with what becomes of them while they wait.
#[derive(Clone, Copy)]
pub struct Records<'a> {
    /// Their codes and subjects.
    pub batch: &'a Batch,
    /// In which groups each row takes part: it leaves in no other.
    pub mask: &'a Mask,
    /// For how many batches each row has been held.
    pub waited: &'a [u8],
    /// Nothing may be held any more: the stream ends, or its partitions are taken away.
    pub last: bool,
}

/// By what a batch is treated.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// The groups and their ladders.
    pub plan: &'a Plan,
    /// Layouts and digests of the plan's groups.
    pub names: &'a GroupNames,
    /// By attribute: what its codes print.
    pub books: &'a [Codebook],
    /// The settings that are not the plan's.
    pub policy: &'a Policy,
    /// The sensitive attributes that models protect.
    pub protected: &'a [Protected],
}

/// Treats `records` by `rules`: the proposal of what may leave. `ledger` knows how long each subject has been seen, and its budget.
pub fn treat(records: &Records<'_>, rules: &Rules<'_>, ledger: &LedgerAt<'_>) -> Proposal {
    let Records { batch, mask, waited, last } = *records;
    let Rules { plan, names, books, policy, protected } = *rules;
    let rows: Vec<u32> = (0..u32::try_from(batch.rows()).expect("a batch is bounded")).collect();
    // Who has not been seen for long enough is nobody to everything below.
    let counting = settled(&batch.subjects, ledger).map(|subjects| Batch { subjects, ..batch.clone() });
    let owners = batch.subjects.as_slice();
    let batch = counting.as_ref().unwrap_or(batch);
    let shared = Shared::of(plan);
    let scene = Scene { batch, owners, mask, plan, shared, names, books, policy, protected, ledger };
    if !has_subjects(batch, &mask.present(plan.groups.len(), &rows), policy.k) {
        return scene.nothing(Unreleased::Quiet);
    }
    let mut assignments = scene.assign(&rows);
    let held = if last { Vec::new() } else { scene.hold(&mut assignments, &rows, waited) };
    let staying: HashSet<u32> = held.iter().copied().collect();
    let leaving: Vec<u32> = rows.iter().copied().filter(|row| !staying.contains(row)).collect();
    scene.leave_out_failing(&mut assignments, &leaving);
    let mut cells = scene.cells(&assignments, &rows, &held);
    let before = scene.leaving(&cells);
    let guarded_fragments = scene.guard(&mut cells);
    let mut proposal = scene.propose(cells, held, &before, guarded_fragments);
    for (group, assignment) in proposal.groups.iter_mut().zip(assignments) {
        group.muted = assignment.muted;
    }
    proposal
}

/// The shared attributes of a plan.
struct Shared {
    /// Positions in the schema, ascending, each with its level: the finest that any group shows.
    levels: Vec<(usize, u8)>,
    /// By group: those that it shows.
    shown: Vec<Vec<usize>>,
}

impl Shared {
    /// Those of `plan`.
    pub fn of(plan: &Plan) -> Self {
        let levels = plan.shared_levels();
        let shown = |group: usize| {
            let has = |a: &usize| plan.groups[group].quasi.contains(a) && plan.shows(group, *a);
            levels.iter().map(|(a, _)| *a).filter(has).collect()
        };
        Self { shown: (0..plan.groups.len()).map(shown).collect(), levels }
    }

    /// The shared attributes and their levels.
    pub fn levels(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.levels.iter().map(|&(a, level)| (a, usize::from(level)))
    }

    /// Whether an attribute is shared.
    pub fn has(&self, attribute: usize) -> bool {
        self.levels.iter().any(|(a, _)| *a == attribute)
    }

    /// Whether a group shows anything of an attribute that is.
    pub fn is_shown(&self, group: usize, attribute: usize) -> bool {
        self.shown[group].contains(&attribute)
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }
}

/// How often the others are recoded anew when classes that cannot hide their sensitive cells have been left out.
const TURNS: usize = 8;

struct Scene<'a> {
    batch: &'a Batch,
    /// Whose each row is, whether he counts or not.
    owners: &'a [u64],
    mask: &'a Mask,
    plan: &'a Plan,
    /// Attributes that stand in several groups.
    shared: Shared,
    names: &'a GroupNames,
    books: &'a [Codebook],
    policy: &'a Policy,
    protected: &'a [Protected],
    /// How long each subject has been seen, and its budget.
    ledger: &'a LedgerAt<'a>,
}

/// Cells by attribute and row: what leaves. Of a shared attribute what a row shows in every group in which it has a fragment that
/// shows it ([`Scene::column`]).
type Cells = Vec<Vec<CellId>>;

impl Scene<'_> {
    fn rows(&self) -> usize {
        self.batch.rows()
    }

    /// How many classes each subject may support, where that is bounded.
    fn budget(&self) -> Option<SupportersAt<'_>> {
        self.ledger.supporters().filter(|supporters| supporters.limits().max_classes > 0)
    }

    /// Takes the rows out of `assignments` that wait for a better class, and gives them.
    fn hold(&self, assignments: &mut [Assignment], rows: &[u32], waited: &[u8]) -> Vec<u32> {
        if self.policy.max_hold_batches == 0 {
            return Vec::new();
        }
        let dear = |row: &u32| {
            waited[*row as usize] < self.policy.max_hold_batches
                && self.loss(assignments, *row).is_some_and(|loss| loss > HOLD_ABOVE_LOSS)
        };
        let wishes: Vec<bool> = rows.iter().map(dear).collect();
        let waiting = let_stay_supported(wishes, assignments, &self.batch.subjects, self.policy.k);
        let held: Vec<u32> = rows.iter().copied().filter(|&row| waiting[row as usize]).collect();
        for assignment in assignments.iter_mut() {
            for &row in &held {
                assignment.node[row as usize] = UNRELEASED;
            }
        }
        held
    }

    /// The node and class of every row, by group.
    fn assign(&self, rows: &[u32]) -> Vec<Assignment> {
        let groups = self.plan.groups.par_iter().zip(&self.names.bases).enumerate();
        groups.map(|(at, (group, &base))| self.assign_group(group, base, &self.mask.among(at, rows))).collect()
    }

    /// The same in one group, within everybody's budget.
    fn assign_group(&self, group: &Group, base: u128, rows: &[u32]) -> Assignment {
        let room = self.rows() * self.plan.groups.len();
        let mut assignment = within_budget(base, &self.batch.subjects, self.budget(), room, |subjects| {
            if group.ranges {
                let (attributes, identifiers) = (group.quasi.as_slice(), self.plan.identifiers.as_slice());
                let (columns, books) = (self.batch.columns.as_slice(), self.books);
                let columns = RangeColumns { base, attributes, identifiers, columns, subjects, books };
                return divide(&columns, rows, self.policy.k);
            }
            let columns = QuasiColumns::new(base, &group.quasi, &self.batch.columns, subjects, self.books);
            recode(&columns, &group.ladder, rows, self.policy.k)
        });
        self.leave_out_silent(group, &mut assignment);
        assignment
    }

    /// Leaves out classes that cannot hide their sensitive cells. They do not go on to coarser nodes: an observer who knows the
    /// rule would learn from a coarser class that it had something to hide. `rows` are those that are not held.
    fn leave_out_failing(&self, assignments: &mut [Assignment], rows: &[u32]) {
        let groups = self.plan.groups.par_iter().zip(&self.names.bases).zip(assignments.par_iter_mut()).enumerate();
        groups.filter(|(_, ((group, _), _))| !group.quasi.is_empty() && !group.sensitive.is_empty()).for_each(
            |(number, ((group, &base), assignment))| {
                self.leave_out(group, base, assignment, &self.mask.among(number, rows));
            },
        );
    }

    fn failing(&self, group: &Group, assignment: &Assignment) -> Vec<u32> {
        let leaves = |(row, node): (u32, &u32)| (*node != UNRELEASED).then_some(row);
        let leaving: Vec<u32> = (0u32..).zip(&assignment.node).filter_map(leaves).collect();
        self.hide(group, &assignment.class, leaving).failing
    }

    /// Whatever goes, the others are recoded anew: which raw tuples can be excluded depends on which classes leave. Where that
    /// does not end, nothing of the group leaves.
    fn leave_out(&self, group: &Group, base: u128, assignment: &mut Assignment, rows: &[u32]) {
        if group.ranges {
            return self.leave_out_classes(group, assignment);
        }
        let mut rows = rows.to_vec();
        for _ in 0..TURNS {
            let failing: HashSet<u32> = self.failing(group, assignment).into_iter().collect();
            if failing.is_empty() {
                return;
            }
            rows.retain(|row| !failing.contains(row));
            *assignment = self.assign_group(group, base, &rows);
        }
        if !self.failing(group, assignment).is_empty() {
            *assignment = Assignment::nothing(self.rows());
        }
    }

    /// The same where classes show ranges: the others stay as they are, so that sensitive values decide no cut. Every turn leaves out
    /// a class, so it ends.
    fn leave_out_classes(&self, group: &Group, assignment: &mut Assignment) {
        loop {
            let failing = self.failing(group, assignment);
            if failing.is_empty() {
                return;
            }
            failing.iter().for_each(|&row| assignment.node[row as usize] = UNRELEASED);
        }
    }

    /// The cells that the assignments stand for, and those that leave beside them.
    fn cells(&self, assignments: &[Assignment], rows: &[u32], held: &[u32]) -> Cells {
        let mut stays = vec![true; self.rows()];
        for &row in held {
            stays[row as usize] = false;
        }
        let mut cells = vec![Vec::new(); self.books.len()];
        let groups = self.plan.groups.par_iter().zip(&self.names.bases).zip(assignments).enumerate();
        let of_group = |(at, ((group, &base), assignment)): (usize, ((&Group, &u128), &Assignment))| {
            self.group_cells(group, base, assignment, &self.mask.among(at, rows), &stays)
        };
        let by_group: Vec<Vec<(usize, Vec<CellId>)>> = groups.map(of_group).collect();
        for (attribute, column) in by_group.into_iter().flatten() {
            cells[attribute] = column;
        }
        for (attribute, level) in self.shared.levels() {
            let (book, codes) = (&self.books[attribute], &self.batch.columns[attribute]);
            cells[attribute] = codes.iter().map(|&code| book.cell(code, level)).collect();
        }
        cells
    }

    fn group_cells(
        &self,
        group: &Group,
        base: u128,
        assignment: &Assignment,
        rows: &[u32],
        stays: &[bool],
    ) -> Vec<(usize, Vec<CellId>)> {
        let mut out: Vec<(usize, Vec<CellId>)> = group
            .quasi
            .iter()
            .enumerate()
            .map(|(i, &a)| {
                let (book, codes) = (&self.books[a], &self.batch.columns[a]);
                let cell = |(row, &node): (usize, &u32)| match (group.ladder.get(node as usize), &assignment.shown) {
                    (_, Some(shown)) if node != UNRELEASED => shown[i][row],
                    (Some(node), _) => book.cell(codes[row], node.levels[i] as usize),
                    (None, _) => SUPPRESSED,
                };
                (a, assignment.node.iter().enumerate().map(cell).collect())
            })
            .collect();
        // With no quasi attribute there is no class to join: such a group is released with whatever has support.
        let leaves = |row: &u32| {
            stays[*row as usize] && (group.quasi.is_empty() || assignment.node[*row as usize] != UNRELEASED)
        };
        let leaving: Vec<u32> = rows.iter().copied().filter(leaves).collect();
        let quasi: Vec<&[CellId]> = out.iter().map(|(_, column)| column.as_slice()).collect();
        let class = self.classes(group, base, &quasi);
        let hidden = self.hide(group, &class, leaving.clone());
        for (_, column) in &mut out {
            hidden.failing.iter().for_each(|&row| column[row as usize] = SUPPRESSED);
        }
        out.extend(group.sensitive.iter().copied().zip(hidden.columns));
        for &a in &group.insensitive {
            let mut column = vec![SUPPRESSED; self.rows()];
            for &row in &leaving {
                column[row as usize] = self.books[a].cell(self.batch.columns[a][row as usize], 0);
            }
            hidden.failing.iter().for_each(|&row| column[row as usize] = SUPPRESSED);
            out.push((a, column));
        }
        out
    }

    /// The class key of every row, from the cells `quasi` that form the classes of a group.
    fn classes(&self, group: &Group, base: u128, quasi: &[&[CellId]]) -> Vec<u128> {
        let mut class = vec![base; self.rows()];
        for (&a, column) in group.quasi.iter().zip(quasi) {
            for (class, &cell) in class.iter_mut().zip(*column) {
                *class = class.wrapping_add(self.books[a].digest(cell));
            }
        }
        class
    }

    /// The sensitive cells of a group for the `leaving` rows, whose classes are `class`.
    fn hide(&self, group: &Group, class: &[u128], leaving: Vec<u32>) -> Hidden {
        let side = |&a: &usize| {
            let protected = self.protected.iter().find(|p| p.attribute == a);
            let never = self.plan.identifiers.contains(&a) || protected.is_some_and(|p| p.judge.is_none());
            // Who names nobody counts for nobody, so no model could count what is shown of him.
            let unshown = |row: usize| never || protected.is_some() && self.batch.subjects[row] == NO_SUBJECT;
            Side {
                attribute: a,
                // Exactly or not at all: two generalized cells may cover the same value, and would be counted as two.
                levels: if protected.is_some() { 1 } else { self.books[a].levels() - 1 },
                protected: protected.is_some(),
                floors: (0..self.rows()).map(|row| if unshown(row) { UNSHOWN } else { 0 }).collect(),
            }
        };
        let sides: Vec<Side> = group.sensitive.iter().map(side).collect();
        let order = self.names.covers.keyed("who covers");
        let hiding = Hiding {
            batch: self.batch,
            books: self.books,
            k: self.policy.k,
            strict: true,
            bases: &self.names.sensitive_bases,
            order: &|row| order.digest(&self.batch.subjects[row as usize].to_be_bytes()),
            holders: &Holders::default(),
            class,
            bare: group.quasi.is_empty(),
            beside: false,
        };
        let mine = self.protected.iter().filter(|p| group.sensitive.contains(&p.attribute));
        hiding.settle(sides, leaving, &mut StreamModels::new(self.batch, self.books, mine))
    }

    /// Mean Loss of the present quasi cells of a row; `None` when all of them are missing.
    fn loss(&self, assignments: &[Assignment], row: u32) -> Option<f32> {
        let (mut sum, mut present) = (0.0, 0u16);
        for (number, (group, assignment)) in self.plan.groups.iter().zip(assignments).enumerate() {
            if !self.mask.takes_part(number, row as usize) {
                continue;
            }
            let node = group.ladder.get(assignment.node[row as usize] as usize);
            for (i, &a) in group.quasi.iter().enumerate().filter(|(_, a)| !self.shared.has(**a)) {
                let code = self.batch.columns[a][row as usize];
                if !matches!(code, ABSENT | NULL) {
                    sum += node.map_or(1.0, |node| self.books[a].losses(node.levels[i] as usize)[code as usize]);
                    present += 1;
                }
            }
        }
        (present > 0).then(|| sum / f32::from(present))
    }
}

/// Whether `rows` have at least `enough` distinct subjects; rows without a subject count for nobody.
fn has_subjects(batch: &Batch, rows: &[u32], enough: usize) -> bool {
    let mut seen = HashSet::new();
    rows.iter().map(|&row| batch.subjects[row as usize]).filter(|s| *s != NO_SUBJECT).any(|subject| {
        seen.insert(subject);
        seen.len() >= enough
    })
}
