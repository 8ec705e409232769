//! Hides sensitive cells as `*` or labels of several values (docs/internals/methods.md §12.2).
//!
//! *Claim.* After [`CellHiding::hide_cells`], at least k distinct subjects of a class show each inexact text, and each
//! combination in several columns. No value without individual support belongs to more than half of them. A column that
//! shows nothing in the batch is exempt: k subjects share its `*`.
//!
//! Rounds only coarsen cells or remove rows, so they terminate. A keyed digest orders the cover subjects: a repeated
//! attempt gives the same bytes.

use super::local_recoding::{QuasiColumns, UNRELEASED_NODE, recode, recode_with_holders};
use super::subject_counting::{NO_SUBJECT, SubjectCountTable};
use crate::plan::LadderNode;
use crate::values::code_batch::CodeBatch;
use crate::values::codebook::{CellId, Code, Codebook, SUPPRESSED};
use crate::values::digest::BuildClassKeyHash;
use crate::values::subjects_by_value::SubjectsByValue;
use hashbrown::HashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Privacy models that judge shown values.
pub trait ClassModels {
    /// Returns the classes that may not show exact values of `attribute`; `showing` has sorted (class, row) pairs.
    fn rejected_classes(&mut self, attribute: usize, showing: &[(u128, u32)]) -> Vec<u128>;
}

/// Sensitive attribute of a group.
pub struct SensitiveColumn {
    /// Position in the schema.
    pub attribute: usize,
    /// Number of levels that may be released; 1: exact or `*`.
    pub levels: usize,
    /// Set if privacy models judge the attribute.
    pub protected: bool,
    /// Finest permitted level, by row.
    pub finest_levels: Vec<u8>,
}

/// Level of a cell that is not shown.
pub const NEVER_SHOWN: u8 = u8::MAX;

/// Lines of one group with undecided sensitive cells.
pub struct CellHiding<'a> {
    /// Batch of the lines.
    pub batch: &'a CodeBatch,
    /// Codebooks, by attribute.
    pub books: &'a [Codebook],
    /// Minimum distinct subjects of a class.
    pub k: usize,
    /// Restricts a value to its first supported level, or `*`; set in a stream.
    pub first_level_only: bool,
    /// Digest of each sensitive attribute.
    pub bases: &'a [u128],
    /// Returns the place of a row's subject in the cover order: a keyed digest.
    pub cover_order: &'a dyn Fn(u32) -> u128,
    /// Subjects outside these lines, for individual support.
    pub holders: &'a SubjectsByValue,
    /// Class key by row.
    pub class: &'a [u128],
    /// Set without quasi-identifiers: a row that shows nothing has no line.
    pub without_quasi: bool,
    /// Set if lines of other classes show all their sensitive values.
    pub has_other_lines: bool,
}

/// Sensitive cells of a group, and failing classes.
pub struct HiddenCells {
    /// Cells by sensitive attribute and row; suppressed if not released.
    pub columns: Vec<Vec<CellId>>,
    /// Rows of classes that cannot be released.
    pub failing: Vec<u32>,
}

/// [`NEVER_SHOWN`] is the level of `*`.
struct ShownCells {
    cells: Vec<CellId>,
    levels: Vec<u8>,
}

struct HidingCriteria<'a> {
    attributes: Vec<usize>,
    shown: &'a [ShownCells],
    /// By side and code.
    lacks_support: Vec<Vec<bool>>,
    judged_sides: Vec<usize>,
}

enum ClassOutcome {
    NoChange,
    Changed,
    CannotHide,
}

impl CellHiding<'_> {
    /// Determines the sensitive cells of `rows`, the candidate lines.
    pub fn hide_cells(
        &self,
        mut sides: Vec<SensitiveColumn>,
        mut rows: Vec<u32>,
        models: &mut dyn ClassModels,
    ) -> HiddenCells {
        let mut joint: HashSet<u128, BuildClassKeyHash> = HashSet::default();
        let mut failing = Vec::new();
        loop {
            let shown: Vec<ShownCells> =
                sides.iter_mut().map(|side| self.accepted_cells(side, &rows, models)).collect();
            let gone = self.run_round(&mut sides, &rows, &shown, &mut joint);
            let Some(gone) = gone else {
                return HiddenCells { columns: shown.into_iter().map(|shown| shown.cells).collect(), failing };
            };
            if !gone.is_empty() {
                let gone: HashSet<u32> = gone.into_iter().collect();
                rows.retain(|row| !gone.contains(row));
                failing.extend(gone);
            }
        }
    }

    fn accepted_cells(&self, side: &mut SensitiveColumn, rows: &[u32], models: &mut dyn ClassModels) -> ShownCells {
        loop {
            let shown = self.supported_cells(side, rows);
            if !side.protected {
                return shown;
            }
            let showing = rows.iter().filter(|&&row| shown.cells[row as usize] != SUPPRESSED);
            let mut showing: Vec<(u128, u32)> = showing.map(|&row| (self.class[row as usize], row)).collect();
            showing.sort_unstable();
            let refused: HashSet<u128, BuildClassKeyHash> =
                models.rejected_classes(side.attribute, &showing).into_iter().collect();
            if refused.is_empty() {
                return shown;
            }
            // A value that a class no longer shows can lose support for other classes.
            for &row in rows.iter().filter(|&&row| refused.contains(&self.class[row as usize])) {
                side.finest_levels[row as usize] = NEVER_SHOWN;
            }
        }
    }

    fn supported_cells(&self, side: &SensitiveColumn, rows: &[u32]) -> ShownCells {
        let (a, book) = (side.attribute, &self.books[side.attribute]);
        let columns = QuasiColumns::new(self.bases[a], &[a], &self.batch.columns, &self.batch.subjects, self.books);
        let node =
            |level: usize| LadderNode { levels: vec![u8::try_from(level).expect("hierarchies are low")], loss: 0.0 };
        let mut shown =
            ShownCells { cells: vec![SUPPRESSED; self.batch.rows()], levels: vec![NEVER_SHOWN; self.batch.rows()] };
        let mut take = |row: u32, level: usize| {
            shown.cells[row as usize] = book.cell(self.batch.columns[a][row as usize], level);
            shown.levels[row as usize] = u8::try_from(level).expect("hierarchies are low");
        };
        if self.first_level_only {
            let ladder: Vec<LadderNode> = (0..side.levels).map(node).collect();
            let speaking: Vec<u32> =
                rows.iter().copied().filter(|&row| side.finest_levels[row as usize] == 0).collect();
            let taken = recode(&columns, &ladder, &speaking, self.k);
            for &row in speaking.iter().filter(|&&row| taken.node[row as usize] != UNRELEASED_NODE) {
                take(row, taken.node[row as usize] as usize);
            }
            return shown;
        }
        let mut left = rows.to_vec();
        for level in 0..side.levels {
            let here: Vec<u32> =
                left.iter().copied().filter(|&row| usize::from(side.finest_levels[row as usize]) <= level).collect();
            if here.is_empty() {
                continue;
            }
            let taken = recode_with_holders(&columns, &[node(level)], &here, self.k, self.holders);
            left.retain(|&row| {
                let is_taken = taken.node[row as usize] != UNRELEASED_NODE;
                if is_taken {
                    take(row, level);
                }
                !is_taken
            });
        }
        shown
    }

    /// Returns the rows to remove, or `None` if nothing changed.
    fn run_round(
        &self,
        sides: &mut [SensitiveColumn],
        rows: &[u32],
        shown: &[ShownCells],
        joint: &mut HashSet<u128, BuildClassKeyHash>,
    ) -> Option<Vec<u32>> {
        let says = |row: &u32| !self.without_quasi || shown.iter().any(|side| side.cells[*row as usize] != SUPPRESSED);
        let lines: Vec<u32> = rows.iter().copied().filter(says).collect();
        let speaks =
            |at: &usize| self.has_other_lines || lines.iter().any(|&row| shown[*at].cells[row as usize] != SUPPRESSED);
        let open: Vec<usize> =
            (0..sides.len()).filter(|at| speaks(at) || self.distinct_row_subjects(&lines) < self.k).collect();
        let attributes: Vec<usize> = sides.iter().map(|side| side.attribute).collect();
        let hides =
            |row: &u32| open.iter().any(|&at| self.is_hiding_cell(attributes[at], shown[at].cells[*row as usize]));
        let hiding: HashSet<u128, BuildClassKeyHash> =
            lines.iter().filter(|row| hides(row)).map(|&row| self.class[row as usize]).collect();
        if hiding.is_empty() {
            return None;
        }
        let members = lines.iter().map(|&row| (self.class[row as usize], row));
        let mut members: Vec<(u128, u32)> = members.filter(|(class, _)| hiding.contains(class)).collect();
        members.sort_unstable();
        let rare = sides.iter().map(|side| self.unsupported_values(side.attribute, &lines)).collect();
        let criteria = HidingCriteria { attributes, shown, lacks_support: rare, judged_sides: open };
        let (mut changed, mut gone) = (false, Vec::new());
        for of_class in members.chunk_by(|a, b| a.0 == b.0) {
            let rows: Vec<u32> = of_class.iter().map(|member| member.1).collect();
            match self.repair_class(sides, &criteria, &rows, of_class[0].0, joint) {
                ClassOutcome::NoChange => {}
                ClassOutcome::Changed => changed = true,
                ClassOutcome::CannotHide => gone.extend(rows),
            }
        }
        (changed || !gone.is_empty()).then_some(gone)
    }

    fn repair_class(
        &self,
        sides: &mut [SensitiveColumn],
        criteria: &HidingCriteria<'_>,
        rows: &[u32],
        class: u128,
        joint: &mut HashSet<u128, BuildClassKeyHash>,
    ) -> ClassOutcome {
        let hides =
            |at: usize, row: u32| self.is_hiding_cell(criteria.attributes[at], criteria.shown[at].cells[row as usize]);
        // Labels first: their rows then count for coarser texts.
        let mut coarser: Vec<(usize, u32)> = Vec::new();
        for &at in &criteria.judged_sides {
            let cells = &criteria.shown[at].cells;
            let mut labels: BTreeMap<CellId, Vec<u32>> = BTreeMap::new();
            for &row in rows.iter().filter(|&&row| cells[row as usize] != SUPPRESSED && hides(at, row)) {
                labels.entry(cells[row as usize]).or_default().push(row);
            }
            for (_, of_label) in labels {
                if !self.hides_enough(criteria, &of_label, &[at]) {
                    coarser.extend(of_label.into_iter().map(|row| (at, row)));
                }
            }
        }
        if !coarser.is_empty() {
            let strict = self.first_level_only;
            for (at, row) in coarser {
                let level = criteria.shown[at].levels[row as usize];
                sides[at].finest_levels[row as usize] = if strict { NEVER_SHOWN } else { level + 1 };
            }
            return ClassOutcome::Changed;
        }
        let shows = |at: &usize| rows.iter().any(|&row| criteria.shown[*at].cells[row as usize] != SUPPRESSED);
        let (speaking, silent): (Vec<usize>, Vec<usize>) = criteria.judged_sides.iter().partition(|at| shows(at));
        if silent.iter().any(|&at| !self.hides_enough(criteria, rows, &[at])) {
            return ClassOutcome::CannotHide;
        }
        let hiding: Vec<u32> = rows.iter().copied().filter(|&row| speaking.iter().any(|&at| hides(at, row))).collect();
        if joint.contains(&class) {
            // Such a class hides all attributes of a line or none.
            return self.cover_lines(sides, criteria, rows, &hiding, &speaking);
        }
        for &at in &speaking {
            let starred = |row: &u32| criteria.shown[at].cells[*row as usize] == SUPPRESSED;
            let starred: Vec<u32> = rows.iter().copied().filter(starred).collect();
            match self.cover_lines(sides, criteria, rows, &starred, &[at]) {
                ClassOutcome::NoChange => {}
                other => return other,
            }
        }
        if speaking.len() > 1 {
            let mut patterns: BTreeMap<Vec<Option<CellId>>, Vec<u32>> = BTreeMap::new();
            for &row in &hiding {
                let mark = |&at: &usize| hides(at, row).then_some(criteria.shown[at].cells[row as usize]);
                patterns.entry(speaking.iter().map(mark).collect()).or_default().push(row);
            }
            let says_too_much = |(pattern, rows): (&Vec<Option<CellId>>, &Vec<u32>)| {
                let marked: Vec<usize> =
                    speaking.iter().zip(pattern).filter(|(_, mark)| mark.is_some()).map(|(&at, _)| at).collect();
                !self.hides_enough(criteria, rows, &marked)
            };
            if patterns.iter().any(says_too_much) {
                joint.insert(class);
                return ClassOutcome::Changed;
            }
        }
        ClassOutcome::NoChange
    }

    fn cover_lines(
        &self,
        sides: &mut [SensitiveColumn],
        criteria: &HidingCriteria<'_>,
        rows: &[u32],
        hiding: &[u32],
        at: &[usize],
    ) -> ClassOutcome {
        if hiding.is_empty() {
            return ClassOutcome::NoChange;
        }
        let mut chosen = hiding.to_vec();
        if !self.hides_enough(criteria, &chosen, at) {
            let mut others: BTreeMap<(u128, u64), Vec<u32>> = BTreeMap::new();
            let taken: HashSet<u32> = hiding.iter().copied().collect();
            for &row in rows.iter().filter(|row| !taken.contains(*row)) {
                if let Some(subject) = self.counted_subject(row) {
                    others.entry(((self.cover_order)(row), subject)).or_default().push(row);
                }
            }
            let mut others = others.into_values();
            while !self.hides_enough(criteria, &chosen, at) {
                match others.next() {
                    Some(of_subject) => chosen.extend(of_subject),
                    None => return ClassOutcome::CannotHide,
                }
            }
        }
        let mut changed = false;
        for &at in at {
            for &row in &chosen {
                changed |= criteria.shown[at].cells[row as usize] != SUPPRESSED;
                sides[at].finest_levels[row as usize] = NEVER_SHOWN;
            }
        }
        if changed { ClassOutcome::Changed } else { ClassOutcome::NoChange }
    }

    /// Checks that `rows` have k distinct subjects, and each value without individual support belongs to at most half.
    ///
    /// A row without a subject counts only as a holder.
    fn hides_enough(&self, criteria: &HidingCriteria<'_>, rows: &[u32], at: &[usize]) -> bool {
        let subjects = self.distinct_row_subjects(rows);
        let says_little = |&at: &usize| {
            let mut holders: BTreeMap<Code, (BTreeSet<u64>, usize)> = BTreeMap::new();
            for &row in rows {
                let code = self.batch.columns[criteria.attributes[at]][row as usize];
                if criteria.lacks_support[at][code as usize] {
                    let (known, nobody) = holders.entry(code).or_default();
                    match self.counted_subject(row) {
                        Some(subject) => drop(known.insert(subject)),
                        None => *nobody += 1,
                    }
                }
            }
            holders.values().all(|(known, nobody)| 2 * (known.len() + nobody) <= subjects)
        };
        subjects >= self.k && at.iter().all(says_little)
    }

    fn unsupported_values(&self, attribute: usize, lines: &[u32]) -> Vec<bool> {
        let (codes, book) = (&self.batch.columns[attribute], &self.books[attribute]);
        let mut crowds = SubjectCountTable::new(self.k, lines.len());
        crowds.restart();
        let mut class_of: Vec<Option<u32>> = vec![None; book.codes()];
        for &row in lines {
            let code = codes[row as usize] as usize;
            let key = self.bases[attribute].wrapping_add(book.digests(0)[code]);
            class_of[code] = Some(crowds.add(key, self.batch.subjects[row as usize]));
        }
        crowds.add_holders(self.holders);
        class_of.into_iter().map(|class| !class.is_some_and(|class| crowds.reaches_k(class))).collect()
    }

    fn distinct_row_subjects(&self, rows: &[u32]) -> usize {
        rows.iter().filter_map(|&row| self.counted_subject(row)).collect::<HashSet<u64>>().len()
    }

    fn counted_subject(&self, row: u32) -> Option<u64> {
        Some(self.batch.subjects[row as usize]).filter(|subject| *subject != NO_SUBJECT)
    }

    fn is_hiding_cell(&self, attribute: usize, cell: CellId) -> bool {
        cell == SUPPRESSED || !self.books[attribute].is_exact(cell)
    }
}
