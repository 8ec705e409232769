//! The treatment of one batch by one plan.

pub use super::beside::Protected;
use super::beside::{Beside, StreamModels};
use super::budget::{settled, within_budget};
use super::crowd::{Floor, NO_SUBJECT, Released};
use super::diverse::recode_diversely;
use super::divert::divert;
use super::hide::{Hidden, Hiding, Side, UNSHOWN};
use super::hold::let_stay_supported;
use super::mask::Mask;
pub use super::names::{GroupNames, group_names};
use super::population::Population;
use super::proposal::{Proposal, ProposedGroup, Run, Unreleased};
use super::recode::{Assignment, Columns, UNRELEASED};
use super::strict::recode_as_kept;
use crate::anonymity::plan::{Group, Plan};
use crate::records::codebook::{ABSENT, CellId, Codebook, NULL, SUPPRESSED};
use crate::records::digest::BuildClassKeyHash;
use crate::records::line::LineLayout;
use crate::records::table::Batch;
use rayon::prelude::*;
use std::collections::HashSet;

mod guard;

/// The settings of the treatment that are not the plan's.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub k: usize,
    /// Subjects that a class needs in the batch itself, at most k; 0: support inside the window is enough.
    pub batch_crowd: usize,
    /// Only raw tuples that cannot be excluded count toward a class.
    pub strict: bool,
    /// A batch with fewer distinct subjects releases nothing. At least k.
    pub min_subjects: usize,
    /// How many batches a record may wait for a better class.
    pub max_hold_batches: u8,
    /// Only records whose mean loss is above this wait.
    pub hold_above_loss: f32,
}

impl Policy {
    /// What every class needs.
    #[must_use]
    pub fn floor(&self) -> Floor {
        Floor { k: self.k, batch: self.batch_crowd }
    }
}

/// Treats `batch` by `plan`. `protected` are the sensitive attributes that models protect; every class needs enough people
/// of each of `populations`; `waited[row]` is the number of batches that a row has been held for; `last` forbids holding
/// (end of stream, revocation). A row leaves only in groups that it takes part in by `mask`.
#[must_use]
pub fn treat(
    batch: &Batch,
    mask: &Mask,
    waited: &[u8],
    plan: &Plan,
    names: &GroupNames,
    books: &[Codebook],
    released: &impl Released,
    policy: &Policy,
    protected: &[Protected],
    populations: &[Population],
    last: bool,
) -> Proposal {
    let rows: Vec<u32> = (0..u32::try_from(batch.rows()).expect("a batch is bounded")).collect();
    // Who has not been seen for long enough is nobody to everything below.
    let counting = settled(&batch.subjects, released).map(|subjects| Batch { subjects, ..batch.clone() });
    let owners = batch.subjects.as_slice();
    let batch = counting.as_ref().unwrap_or(batch);
    let scene = Scene { batch, owners, mask, plan, names, books, policy, protected, populations };
    if !has_subjects(batch, &mask.present(plan.groups.len(), &rows), policy.min_subjects) {
        return scene.nothing(Unreleased::Quiet);
    }
    let mut assignments = scene.assign(&rows, released);
    let mut held = Vec::new();
    if policy.max_hold_batches > 0 && !last {
        let dear = |row: &u32| {
            waited[*row as usize] < policy.max_hold_batches
                && scene.loss(&assignments, *row).is_some_and(|loss| loss > policy.hold_above_loss)
        };
        let wishes: Vec<bool> = rows.iter().map(dear).collect();
        let waiting = let_stay_supported(wishes, &assignments, &batch.subjects, policy.floor(), released);
        held = rows.iter().copied().filter(|&row| waiting[row as usize]).collect();
        for assignment in &mut assignments {
            for &row in &held {
                assignment.node[row as usize] = UNRELEASED;
            }
        }
        if assignments.iter().any(|assignment| assignment.counted.is_some()) && !held.is_empty() {
            // Which tuples can be excluded depends on which classes leave: they are judged by those that really do.
            let leaving: Vec<u32> = rows.iter().copied().filter(|&row| !waiting[row as usize]).collect();
            assignments = scene.assign(&leaving, released);
        }
    }
    let staying: HashSet<u32> = held.iter().copied().collect();
    let leaving: Vec<u32> = rows.iter().copied().filter(|row| !staying.contains(row)).collect();
    scene.divert(&mut assignments, &leaving, released);
    let mut cells = scene.cells(&assignments, &rows, &held, released);
    let before = scene.leaving(&cells);
    let guarded_fragments = scene.guard(&mut cells, &assignments, released);
    let mut proposal = scene.propose(cells, held, &before, guarded_fragments);
    for (group, assignment) in proposal.groups.iter_mut().zip(assignments) {
        group.muted = assignment.muted;
    }
    proposal
}

/// How often the lines of classes that cannot hide their sensitive cells go on to coarser ones.
const DIVERSIONS: usize = 8;

struct Scene<'a> {
    batch: &'a Batch,
    /// Whose each row is, whether he counts or not.
    owners: &'a [u64],
    mask: &'a Mask,
    plan: &'a Plan,
    names: &'a GroupNames,
    books: &'a [Codebook],
    policy: &'a Policy,
    protected: &'a [Protected],
    populations: &'a [Population],
}

/// Cells by attribute and row.
type Cells = Vec<Vec<CellId>>;

impl Scene<'_> {
    fn rows(&self) -> usize {
        self.batch.rows()
    }

    /// The node and class of every row, by group.
    fn assign(&self, rows: &[u32], released: &impl Released) -> Vec<Assignment> {
        self.plan
            .groups
            .par_iter()
            .zip(&self.names.bases)
            .enumerate()
            .map(|(number, (group, &base))| self.assign_group(group, base, &self.mask.among(number, rows), released))
            .collect()
    }

    /// The same in one group, within everybody's budget.
    fn assign_group(&self, group: &Group, base: u128, rows: &[u32], released: &impl Released) -> Assignment {
        let room = self.rows() * self.plan.groups.len();
        within_budget(base, &self.batch.subjects, released.budget(), room, |subjects| {
            self.recode_group(group, base, rows, subjects, released)
        })
    }

    /// The same, where the rows count for `subjects`.
    fn recode_group(
        &self,
        group: &Group,
        base: u128,
        rows: &[u32],
        subjects: &[u64],
        released: &impl Released,
    ) -> Assignment {
        let columns = Columns::new(base, &group.quasi, &self.batch.columns, subjects, self.books);
        let columns = columns.among(self.populations);
        let plain = recode_as_kept(&columns, &group.ladder, rows, self.policy.floor(), released);
        let protected: Vec<&Protected> =
            self.protected.iter().filter(|p| group.sensitive.contains(&p.attribute)).collect();
        // Strict recoding answers an observer who knows the rule: another rule would be another answer.
        if protected.is_empty() || self.policy.strict {
            return plain;
        }
        recode_diversely(plain, &columns, group, &protected, &self.beside(), released)
    }

    /// Takes classes that cannot hide their sensitive cells to coarser nodes; what still cannot is withdrawn later. Strict
    /// recoding answers an observer who knows the rule, and a budget counts classes that were joined already: there, they do
    /// not leave. `rows` are those that are not held.
    fn divert(&self, assignments: &mut [Assignment], rows: &[u32], released: &impl Released) {
        let groups = self.plan.groups.par_iter().zip(&self.names.bases).zip(assignments.par_iter_mut()).enumerate();
        groups.filter(|(_, ((group, _), _))| !group.quasi.is_empty() && !group.sensitive.is_empty()).for_each(
            |(number, ((group, &base), assignment))| {
                if self.policy.strict || released.budget().is_some() {
                    self.leave_out(group, base, assignment, &self.mask.among(number, rows), released);
                } else {
                    self.divert_group(group, base, assignment, released);
                }
            },
        );
    }

    fn failing(&self, group: &Group, assignment: &Assignment, released: &impl Released) -> Vec<u32> {
        let leaves = |(row, node): (u32, &u32)| (*node != UNRELEASED).then_some(row);
        let leaving: Vec<u32> = (0u32..).zip(&assignment.node).filter_map(leaves).collect();
        self.hide(group, &assignment.class, leaving, &assignment.silent, released).failing
    }

    fn divert_group(&self, group: &Group, base: u128, assignment: &mut Assignment, released: &impl Released) {
        let columns = Columns::new(base, &group.quasi, &self.batch.columns, &self.batch.subjects, self.books)
            .among(self.populations);
        let mut from = vec![0u32; self.rows()];
        for _ in 0..DIVERSIONS {
            let failing = self.failing(group, assignment, released);
            if failing.is_empty() {
                return;
            }
            divert(&columns, &group.ladder, assignment, &failing, &mut from, self.policy.k);
        }
    }

    /// Which tuples can be excluded depends on which classes leave: whatever goes, the others are judged anew. Where that
    /// does not end, nothing of the group leaves.
    fn leave_out(
        &self,
        group: &Group,
        base: u128,
        assignment: &mut Assignment,
        rows: &[u32],
        released: &impl Released,
    ) {
        let mut rows = rows.to_vec();
        for _ in 0..DIVERSIONS {
            let failing: HashSet<u32> = self.failing(group, assignment, released).into_iter().collect();
            if failing.is_empty() {
                return;
            }
            rows.retain(|row| !failing.contains(row));
            *assignment = self.assign_group(group, base, &rows, released);
        }
        if !self.failing(group, assignment, released).is_empty() {
            *assignment = Assignment::nothing(self.rows());
        }
    }

    fn beside(&self) -> Beside<'_> {
        Beside { batch: self.batch, books: self.books, floor: self.policy.floor(), bases: &self.names.beside }
    }

    /// The cells that the assignments stand for, and those that leave beside them.
    fn cells(&self, assignments: &[Assignment], rows: &[u32], held: &[u32], released: &impl Released) -> Cells {
        let mut stays = vec![true; self.rows()];
        for &row in held {
            stays[row as usize] = false;
        }
        let mut cells = vec![Vec::new(); self.books.len()];
        let by_group: Vec<Vec<(usize, Vec<CellId>)>> = self
            .plan
            .groups
            .par_iter()
            .zip(&self.names.bases)
            .zip(assignments)
            .enumerate()
            .map(|(number, ((group, &base), assignment))| {
                self.group_cells(group, base, assignment, &self.mask.among(number, rows), &stays, released)
            })
            .collect();
        for (attribute, column) in by_group.into_iter().flatten() {
            cells[attribute] = column;
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
        released: &impl Released,
    ) -> Vec<(usize, Vec<CellId>)> {
        let mut out: Vec<(usize, Vec<CellId>)> = group
            .quasi
            .iter()
            .enumerate()
            .map(|(i, &a)| {
                let (book, codes) = (&self.books[a], &self.batch.columns[a]);
                let cell = |(row, &node): (usize, &u32)| match group.ladder.get(node as usize) {
                    Some(node) => book.cell(codes[row], node.levels[i] as usize),
                    None => SUPPRESSED,
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
        let hidden = self.hide(group, &class, leaving.clone(), &assignment.silent, released);
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
    fn hide(
        &self,
        group: &Group,
        class: &[u128],
        leaving: Vec<u32>,
        silent: &[bool],
        released: &impl Released,
    ) -> Hidden {
        let side = |&a: &usize| {
            let protected = self.protected.iter().find(|p| p.attribute == a);
            let open =
                |p: &Protected| p.judge.is_some() && released.shown().is_none_or(|shown| shown.is_open(a, self.rows()));
            let never = self.plan.identifiers.contains(&a) || protected.is_some_and(|p| !open(p));
            // Who names nobody counts for nobody, so no model could count what is shown of him.
            let unshown = |row: usize| {
                never
                    || protected.is_some()
                        && (self.batch.subjects[row] == NO_SUBJECT || silent.get(row).copied().unwrap_or(false))
            };
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
            floor: self.policy.floor(),
            strict: self.policy.strict,
            bases: &self.names.beside,
            order: &|row| order.digest(&self.batch.subjects[row as usize].to_be_bytes()),
            released,
            class,
            bare: group.quasi.is_empty(),
        };
        let mine = self.protected.iter().filter(|p| group.sensitive.contains(&p.attribute));
        hiding.settle(sides, leaving, &mut StreamModels::new(self.beside(), mine, released))
    }

    /// Mean Loss of the present quasi cells of a row; `None` when all of them are missing.
    fn loss(&self, assignments: &[Assignment], row: u32) -> Option<f32> {
        let (mut sum, mut present) = (0.0, 0u16);
        for (number, (group, assignment)) in self.plan.groups.iter().zip(assignments).enumerate() {
            if !self.mask.takes_part(number, row as usize) {
                continue;
            }
            let node = group.ladder.get(assignment.node[row as usize] as usize);
            for (i, &a) in group.quasi.iter().enumerate() {
                let code = self.batch.columns[a][row as usize];
                if !matches!(code, ABSENT | NULL) {
                    sum += node.map_or(1.0, |node| self.books[a].losses(node.levels[i] as usize)[code as usize]);
                    present += 1;
                }
            }
        }
        (present > 0).then(|| sum / f32::from(present))
    }

    /// Which rows have a fragment that says something.
    fn leaving(&self, cells: &Cells) -> Vec<bool> {
        let mut leaves = vec![false; self.rows()];
        for &a in self.plan.groups.iter().flat_map(|g| g.quasi.iter().chain(&g.sensitive)) {
            for (row, &cell) in cells[a].iter().enumerate() {
                leaves[row] |= cell != SUPPRESSED;
            }
        }
        leaves
    }

    fn nothing(&self, reason: Unreleased) -> Proposal {
        let cells = vec![vec![SUPPRESSED; self.rows()]; self.books.len()];
        let mut proposal = self.propose(cells, Vec::new(), &[], 0);
        proposal.unreleased = vec![Some(reason); self.rows()];
        proposal
    }

    fn propose(&self, mut cells: Cells, held: Vec<u32>, before: &[bool], guarded_fragments: u64) -> Proposal {
        let mut is_held = vec![false; self.rows()];
        for &row in &held {
            is_held[row as usize] = true;
        }
        // Attributes of no group (identifiers, the subject) are suppressed cells, so that every column has every row.
        for column in &mut cells {
            column.resize(self.rows(), SUPPRESSED);
        }
        let mut leaves = self.leaving(&cells);
        let leaving: Vec<u32> = (0u32..).zip(&leaves).filter(|(_, l)| **l).map(|(row, _)| row).collect();
        let quiet = !leaving.is_empty() && !has_subjects(self.batch, &leaving, self.policy.k);
        if quiet {
            for column in &mut cells {
                column.fill(SUPPRESSED);
            }
            leaves.fill(false);
        }
        let unreleased = (0..self.rows())
            .map(|row| match (leaves[row] || is_held[row], quiet) {
                (true, _) => None,
                (false, true) => Some(Unreleased::Quiet),
                (false, false) if before.get(row).copied().unwrap_or(false) => Some(Unreleased::Guard),
                (false, false) => Some(Unreleased::NoSupport),
            })
            .collect();
        let groups = self
            .plan
            .groups
            .par_iter()
            .zip(&self.names.layouts)
            .map(|(group, layout)| self.encode(group, layout, &cells))
            .collect();
        let (loss, exact_cells) = self.utility(&cells, &is_held);
        let withheld_cells = self.withheld(&cells);
        Proposal { groups, cells, unreleased, held, guarded_fragments, withheld_cells, loss, exact_cells }
    }

    /// Encodes the fragments of one group, one line a distinct tuple, sorted by their bytes.
    fn encode(&self, group: &Group, layout: &LineLayout, cells: &Cells) -> ProposedGroup {
        let attributes = group.attributes();
        let guarded: Vec<usize> = group.quasi.iter().chain(&group.sensitive).copied().collect();
        // Rows with equal cells become one run. The map's order does not matter: runs are sorted below.
        let mut runs: hashbrown::HashMap<u128, Vec<u32>, BuildClassKeyHash> = hashbrown::HashMap::default();
        for row in 0..self.rows() {
            if guarded.iter().all(|&a| cells[a][row] == SUPPRESSED) {
                continue;
            }
            let key = attributes.iter().fold(0u128, |key, &a| key.wrapping_add(self.books[a].digest(cells[a][row])));
            runs.entry(key).or_default().push(u32::try_from(row).expect("a batch is bounded"));
        }
        let mut arena = Vec::new();
        let mut lines: Vec<(std::ops::Range<usize>, Vec<u32>)> = Vec::with_capacity(runs.len());
        for rows in runs.into_values() {
            let start = arena.len();
            let row = rows[0] as usize;
            layout.write(attributes.iter().map(|&a| self.books[a].text(cells[a][row])), &mut arena);
            lines.push((start..arena.len(), rows));
        }
        lines.sort_unstable_by(|(a, _), (b, _)| arena[a.clone()].cmp(&arena[b.clone()]));
        let mut proposed = ProposedGroup { arena, ..ProposedGroup::default() };
        for (line, rows) in lines {
            let start = proposed.rows.len();
            proposed.rows.extend(rows);
            proposed.runs.push(Run { line, rows: start..proposed.rows.len() });
        }
        proposed
    }

    /// Protected cells that are suppressed in fragments that leave.
    fn withheld(&self, cells: &Cells) -> u64 {
        let mut withheld = 0;
        for group in &self.plan.groups {
            let leaves = |row: usize| group.quasi.iter().chain(&group.sensitive).any(|&a| cells[a][row] != SUPPRESSED);
            for protected in self.protected.iter().filter(|p| group.sensitive.contains(&p.attribute)) {
                let column = cells[protected.attribute].iter().enumerate();
                withheld += column.filter(|(row, cell)| **cell == SUPPRESSED && leaves(*row)).count() as u64;
            }
        }
        withheld
    }

    fn utility(&self, cells: &Cells, held: &[bool]) -> ((f64, u64), u64) {
        let (mut sum, mut present, mut exact) = (0.0, 0u64, 0u64);
        let attributes = self.plan.groups.iter().enumerate().flat_map(|(n, g)| g.quasi.iter().map(move |&a| (n, a)));
        for (group, a) in attributes {
            let (book, codes) = (&self.books[a], &self.batch.columns[a]);
            for (row, &cell) in cells[a].iter().enumerate() {
                if held[row] || matches!(codes[row], ABSENT | NULL) || !self.mask.takes_part(group, row) {
                    continue;
                }
                sum += f64::from(book.loss(cell));
                present += 1;
                exact += u64::from(book.is_exact(cell));
            }
        }
        ((sum, present), exact)
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
