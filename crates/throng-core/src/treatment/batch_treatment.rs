//! Treats one batch with one plan.

use super::cell_hiding::{CellHiding, HiddenCells, NEVER_SHOWN, SensitiveColumn};
pub use super::group_digests::{GroupNames, group_names, joined_layouts};
use super::group_mask::GroupMask;
use super::hold_selection::select_held_rows;
use super::local_recoding::{ClassAssignment, QuasiColumns, UNRELEASED_NODE, recode};
use super::proposal::{Proposal, UnreleasedReason};
use super::ranges::{RangeColumns, divide_into_ranges};
pub use super::stream_models::ProtectedAttribute;
use super::stream_models::StreamModels;
use super::subject_counting::NO_SUBJECT;
use super::support_budget::{recode_within_budget, tenured_subjects};
use crate::ledger::subject_ledger::{LedgerView, SupporterView};
use crate::plan::{Plan, PlanGroup};
use crate::values::code_batch::CodeBatch;
use crate::values::codebook::{ABSENT, CellId, Codebook, NULL, SUPPRESSED};
use crate::values::subjects_by_value::SubjectsByValue;
use rayon::prelude::*;
use std::collections::HashSet;

mod counting_guard;
mod fragments;
mod proposal_building;

const HOLD_ABOVE_LOSS: f32 = 0.05;

/// Settings outside the plan.
#[derive(Clone, Copy, Debug)]
pub struct TreatmentSettings {
    /// Minimum distinct subjects of a class and a batch, at least 2.
    pub k: usize,
    /// Maximum batches for which a record may be held.
    pub max_hold_batches: u8,
}

/// Records to treat.
#[derive(Clone, Copy)]
pub struct TreatmentInput<'a> {
    /// Codes and subjects of the records.
    pub batch: &'a CodeBatch,
    /// Groups in which each row may be released.
    pub mask: &'a GroupMask,
    /// Batches for which each row has been held.
    pub waited: &'a [u8],
    /// Forbids holding: the stream ends, or its partitions are revoked.
    pub holding_ended: bool,
}

/// Plan, names and settings.
#[derive(Clone, Copy)]
pub struct TreatmentRules<'a> {
    /// Groups and their ladders.
    pub plan: &'a Plan,
    /// Layouts and digests of the groups.
    pub names: &'a GroupNames,
    /// Codebooks, by attribute.
    pub books: &'a [Codebook],
    /// Settings outside the plan.
    pub policy: &'a TreatmentSettings,
    /// Sensitive attributes that privacy models protect.
    pub protected: &'a [ProtectedAttribute],
}

/// Treats `records` with `rules`, and the tenure and budgets of `ledger`.
pub fn treat_batch(records: &TreatmentInput<'_>, rules: &TreatmentRules<'_>, ledger: &LedgerView<'_>) -> Proposal {
    let TreatmentInput { batch, mask, waited, holding_ended: last } = *records;
    let TreatmentRules { plan, names, books, policy, protected } = *rules;
    let rows: Vec<u32> = (0..u32::try_from(batch.rows()).expect("a batch is bounded")).collect();
    // Below the minimum tenure, subjects do not count.
    let counting = tenured_subjects(&batch.subjects, ledger).map(|subjects| CodeBatch { subjects, ..batch.clone() });
    let owners = batch.subjects.as_slice();
    let batch = counting.as_ref().unwrap_or(batch);
    let shared = SharedLevels::of(plan);
    let scene = TreatmentContext { batch, owners, mask, plan, shared, names, books, policy, protected, ledger };
    if !has_enough_subjects(batch, &mask.rows_in_any_group(plan.groups.len(), &rows), policy.k) {
        return scene.empty_proposal(UnreleasedReason::TooFewSubjects);
    }
    let mut assignments = scene.assign(&rows);
    let held = if last { Vec::new() } else { scene.hold_rows(&mut assignments, &rows, waited) };
    let staying: HashSet<u32> = held.iter().copied().collect();
    let leaving: Vec<u32> = rows.iter().copied().filter(|row| !staying.contains(row)).collect();
    scene.remove_failing(&mut assignments, &leaving);
    let mut cells = scene.released_cells(&assignments, &rows, &held);
    let before = scene.rows_with_fragment(&cells);
    let guarded_fragments = scene.withdraw_joinable(&mut cells);
    let mut proposal = scene.build_proposal(cells, held, &before, guarded_fragments);
    for (group, assignment) in proposal.groups.iter_mut().zip(assignments) {
        group.muted = assignment.muted_rows;
    }
    proposal
}

struct SharedLevels {
    /// Shared attributes (ascending), with the finest shown level.
    levels: Vec<(usize, u8)>,
    shown: Vec<Vec<usize>>,
}

impl SharedLevels {
    pub fn of(plan: &Plan) -> Self {
        let levels = plan.shared_levels();
        let shown = |group: usize| {
            let has = |a: &usize| plan.groups[group].quasi.contains(a) && plan.shows_attribute(group, *a);
            levels.iter().map(|(a, _)| *a).filter(has).collect()
        };
        Self { shown: (0..plan.groups.len()).map(shown).collect(), levels }
    }

    pub fn levels(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.levels.iter().map(|&(a, level)| (a, usize::from(level)))
    }

    pub fn has(&self, attribute: usize) -> bool {
        self.levels.iter().any(|(a, _)| *a == attribute)
    }

    pub fn is_shown(&self, group: usize, attribute: usize) -> bool {
        self.shown[group].contains(&attribute)
    }

    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }
}

const MAX_RECODING_ROUNDS: usize = 8;

struct TreatmentContext<'a> {
    batch: &'a CodeBatch,
    /// Subject of each row, regardless of its tenure.
    owners: &'a [u64],
    mask: &'a GroupMask,
    plan: &'a Plan,
    shared: SharedLevels,
    names: &'a GroupNames,
    books: &'a [Codebook],
    policy: &'a TreatmentSettings,
    protected: &'a [ProtectedAttribute],
    ledger: &'a LedgerView<'a>,
}

/// By attribute and row; [`TreatmentContext::shown_column`] handles shared attributes.
type ReleasedCells = Vec<Vec<CellId>>;

impl TreatmentContext<'_> {
    fn rows(&self) -> usize {
        self.batch.rows()
    }

    fn budget(&self) -> Option<SupporterView<'_>> {
        self.ledger.supporters().filter(|supporters| supporters.limits().max_classes > 0)
    }

    fn hold_rows(&self, assignments: &mut [ClassAssignment], rows: &[u32], waited: &[u8]) -> Vec<u32> {
        if self.policy.max_hold_batches == 0 {
            return Vec::new();
        }
        let dear = |row: &u32| {
            waited[*row as usize] < self.policy.max_hold_batches
                && self.row_mean_loss(assignments, *row).is_some_and(|loss| loss > HOLD_ABOVE_LOSS)
        };
        let wishes: Vec<bool> = rows.iter().map(dear).collect();
        let waiting = select_held_rows(wishes, assignments, &self.batch.subjects, self.policy.k);
        let held: Vec<u32> = rows.iter().copied().filter(|&row| waiting[row as usize]).collect();
        for assignment in assignments.iter_mut() {
            for &row in &held {
                assignment.node[row as usize] = UNRELEASED_NODE;
            }
        }
        held
    }

    fn assign(&self, rows: &[u32]) -> Vec<ClassAssignment> {
        let groups = self.plan.groups.par_iter().zip(&self.names.bases).enumerate();
        groups.map(|(at, (group, &base))| self.assign_group(group, base, &self.mask.rows_in_group(at, rows))).collect()
    }

    fn assign_group(&self, group: &PlanGroup, base: u128, rows: &[u32]) -> ClassAssignment {
        let room = self.rows() * self.plan.groups.len();
        let mut assignment = recode_within_budget(base, &self.batch.subjects, self.budget(), room, |subjects| {
            if group.ranges {
                let (attributes, identifiers) = (group.quasi.as_slice(), self.plan.identifiers.as_slice());
                let (columns, books) = (self.batch.columns.as_slice(), self.books);
                let columns = RangeColumns { base, attributes, identifiers, columns, subjects, books };
                return divide_into_ranges(&columns, rows, self.policy.k);
            }
            let columns = QuasiColumns::new(base, &group.quasi, &self.batch.columns, subjects, self.books);
            recode(&columns, &group.ladder, rows, self.policy.k)
        });
        self.remove_uninformative_rows(group, &mut assignment);
        assignment
    }

    /// Removes classes that cannot hide their sensitive cells; a coarser class would reveal the failure.
    fn remove_failing(&self, assignments: &mut [ClassAssignment], rows: &[u32]) {
        let groups = self.plan.groups.par_iter().zip(&self.names.bases).zip(assignments.par_iter_mut()).enumerate();
        groups.filter(|(_, ((group, _), _))| !group.quasi.is_empty() && !group.sensitive.is_empty()).for_each(
            |(number, ((group, &base), assignment))| {
                self.recode_without_failing(group, base, assignment, &self.mask.rows_in_group(number, rows));
            },
        );
    }

    fn failing_rows(&self, group: &PlanGroup, assignment: &ClassAssignment) -> Vec<u32> {
        let leaves = |(row, node): (u32, &u32)| (*node != UNRELEASED_NODE).then_some(row);
        let leaving: Vec<u32> = (0u32..).zip(&assignment.node).filter_map(leaves).collect();
        self.hide_sensitive(group, &assignment.class, leaving).failing
    }

    /// Removes failing rows and recodes the others, because released classes determine the excludable raw tuples.
    ///
    /// Releases nothing if classes still fail after [`MAX_RECODING_ROUNDS`].
    fn recode_without_failing(&self, group: &PlanGroup, base: u128, assignment: &mut ClassAssignment, rows: &[u32]) {
        if group.ranges {
            return self.remove_failing_classes(group, assignment);
        }
        let mut rows = rows.to_vec();
        for _ in 0..MAX_RECODING_ROUNDS {
            let failing: HashSet<u32> = self.failing_rows(group, assignment).into_iter().collect();
            if failing.is_empty() {
                return;
            }
            rows.retain(|row| !failing.contains(row));
            *assignment = self.assign_group(group, base, &rows);
        }
        if !self.failing_rows(group, assignment).is_empty() {
            *assignment = ClassAssignment::none_released(self.rows());
        }
    }

    /// Keeps the other classes, so that no cut depends on sensitive values.
    fn remove_failing_classes(&self, group: &PlanGroup, assignment: &mut ClassAssignment) {
        loop {
            let failing = self.failing_rows(group, assignment);
            if failing.is_empty() {
                return;
            }
            failing.iter().for_each(|&row| assignment.node[row as usize] = UNRELEASED_NODE);
        }
    }

    fn released_cells(&self, assignments: &[ClassAssignment], rows: &[u32], held: &[u32]) -> ReleasedCells {
        let mut stays = vec![true; self.rows()];
        for &row in held {
            stays[row as usize] = false;
        }
        let mut cells = vec![Vec::new(); self.books.len()];
        let groups = self.plan.groups.par_iter().zip(&self.names.bases).zip(assignments).enumerate();
        let of_group = |(at, ((group, &base), assignment)): (usize, ((&PlanGroup, &u128), &ClassAssignment))| {
            self.group_cells(group, base, assignment, &self.mask.rows_in_group(at, rows), &stays)
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
        group: &PlanGroup,
        base: u128,
        assignment: &ClassAssignment,
        rows: &[u32],
        stays: &[bool],
    ) -> Vec<(usize, Vec<CellId>)> {
        let mut out: Vec<(usize, Vec<CellId>)> = group
            .quasi
            .iter()
            .enumerate()
            .map(|(i, &a)| {
                let (book, codes) = (&self.books[a], &self.batch.columns[a]);
                let cell =
                    |(row, &node): (usize, &u32)| match (group.ladder.get(node as usize), &assignment.range_cells) {
                        (_, Some(shown)) if node != UNRELEASED_NODE => shown[i][row],
                        (Some(node), _) => book.cell(codes[row], node.levels[i] as usize),
                        (None, _) => SUPPRESSED,
                    };
                (a, assignment.node.iter().enumerate().map(cell).collect())
            })
            .collect();
        // Without a quasi-identifier, every supported value is released.
        let leaves = |row: &u32| {
            stays[*row as usize] && (group.quasi.is_empty() || assignment.node[*row as usize] != UNRELEASED_NODE)
        };
        let leaving: Vec<u32> = rows.iter().copied().filter(leaves).collect();
        let quasi: Vec<&[CellId]> = out.iter().map(|(_, column)| column.as_slice()).collect();
        let class = self.class_keys(group, base, &quasi);
        let hidden = self.hide_sensitive(group, &class, leaving.clone());
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

    fn class_keys(&self, group: &PlanGroup, base: u128, quasi: &[&[CellId]]) -> Vec<u128> {
        let mut class = vec![base; self.rows()];
        for (&a, column) in group.quasi.iter().zip(quasi) {
            for (class, &cell) in class.iter_mut().zip(*column) {
                *class = class.wrapping_add(self.books[a].digest(cell));
            }
        }
        class
    }

    fn hide_sensitive(&self, group: &PlanGroup, class: &[u128], leaving: Vec<u32>) -> HiddenCells {
        let side = |&a: &usize| {
            let protected = self.protected.iter().find(|p| p.attribute == a);
            let never = self.plan.identifiers.contains(&a) || protected.is_some_and(|p| p.judge.is_none());
            // No model can judge a row without a subject.
            let unshown = |row: usize| never || protected.is_some() && self.batch.subjects[row] == NO_SUBJECT;
            SensitiveColumn {
                attribute: a,
                // Two generalized cells may cover one value and would count as two.
                levels: if protected.is_some() { 1 } else { self.books[a].levels() - 1 },
                protected: protected.is_some(),
                finest_levels: (0..self.rows()).map(|row| if unshown(row) { NEVER_SHOWN } else { 0 }).collect(),
            }
        };
        let sides: Vec<SensitiveColumn> = group.sensitive.iter().map(side).collect();
        let order = self.names.cover_key.keyed_digest("who covers");
        let hiding = CellHiding {
            batch: self.batch,
            books: self.books,
            k: self.policy.k,
            first_level_only: true,
            bases: &self.names.sensitive_bases,
            cover_order: &|row| order.digest(&self.batch.subjects[row as usize].to_be_bytes()),
            holders: &SubjectsByValue::default(),
            class,
            without_quasi: group.quasi.is_empty(),
            has_other_lines: false,
        };
        let mine = self.protected.iter().filter(|p| group.sensitive.contains(&p.attribute));
        hiding.hide_cells(sides, leaving, &mut StreamModels::new(self.batch, self.books, mine))
    }

    /// `None` without present unshared quasi-identifier cells.
    fn row_mean_loss(&self, assignments: &[ClassAssignment], row: u32) -> Option<f32> {
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

fn has_enough_subjects(batch: &CodeBatch, rows: &[u32], enough: usize) -> bool {
    let mut seen = HashSet::new();
    rows.iter().map(|&row| batch.subjects[row as usize]).filter(|s| *s != NO_SUBJECT).any(|subject| {
        seen.insert(subject);
        seen.len() >= enough
    })
}
