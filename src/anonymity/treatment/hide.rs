//! Sensitive cells that hide: `*`, and every label that covers more than one value.
//!
//! A cell that is not exact is a value itself. Where only the values that lack support of their own leave as `*`, `*` is
//! the name of the rare (docs/methods.md §12.2).
//!
//! *Claim.* In what [`Hiding::settle`] returns, for every class of equal quasi cells of this batch and every text c in it
//! that is not exact: at least k distinct subjects of the class show c in this batch, and no value that lacks support of
//! its own belongs to more than half of them. The same holds of the lines of the class that hide the same sensitive
//! attributes of several behind the same texts. A column that shows nothing of anybody in the whole batch is not asked:
//! k subjects or more share its `*`, whatever class they are in. *Support of its own* of a value are the distinct
//! subjects of this batch's lines of the group that have it, and for a release in parts those of the other parts.
//!
//! Ways, the cheapest first: a label that says too much makes way for a coarser one; others of the class leave as `*`
//! too (covers); the whole class does (withheld). Where that is not enough, the class cannot leave in this group.
//!
//! Who covers is decided by a keyed digest of the subject alone: not by values, not by order, and in each batch anew
//! with the same answer, so that the same people cover wherever they can, and an attempt that is repeated gives the
//! same bytes.
//!
//! Cells only ever grow coarser and rows only ever go, so it ends. Time: a pass over the rows for each turn; there are
//! few turns, as only a class whose cells have just grown coarser calls for another.

use super::crowd::{CrowdTable, NO_SUBJECT};
use super::recode::{QuasiColumns, UNRELEASED, recode, recode_beside};
use crate::anonymity::plan::Node;
use hashbrown::HashSet;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::{CellId, Code, Codebook, SUPPRESSED};
use throng_core::values::digest::BuildClassKeyHash;
use throng_core::values::holders::Holders;
use throng_core::values::table::Batch;

/// Models that may refuse what classes show of an attribute.
pub trait Models {
    /// The classes that may not show the exact values of `attribute` in `showing`: class and row, in order.
    fn refused(&mut self, attribute: usize, showing: &[(u128, u32)]) -> Vec<u128>;
}

/// One sensitive attribute of a group.
pub struct Side {
    /// Its position in the schema.
    pub attribute: usize,
    /// It leaves at a level below this; 1: exactly or not at all.
    pub levels: usize,
    /// Whether models are asked.
    pub protected: bool,
    /// By row of the batch: the finest level at which it may leave.
    pub floors: Vec<u8>,
}

/// The floor of a cell that is not shown.
pub const UNSHOWN: u8 = u8::MAX;

/// The lines of one group, before their sensitive cells are known.
pub struct Hiding<'a> {
    /// The batch that they are of.
    pub batch: &'a Batch,
    /// By attribute: what the codes print.
    pub books: &'a [Codebook],
    /// Distinct subjects that every class needs.
    pub k: usize,
    /// A stream answers an observer who knows its rule: a value leaves at the first level that it reaches, or as `*`.
    pub strict: bool,
    /// Digest of "this attribute, beside a class", by attribute.
    pub bases: &'a [u128],
    /// The place of a row's subject in the order in which subjects cover: a keyed digest of the subject.
    pub order: &'a dyn Fn(u32) -> u128,
    /// People of lines beside these, for the support of single values.
    pub holders: &'a Holders,
    /// Class key by row of the batch.
    pub class: &'a [u128],
    /// The group has no quasi attribute: a row that shows nothing is no line.
    pub bare: bool,
    /// Lines of other classes leave beside these, and show every sensitive value that they have.
    pub beside: bool,
}

/// What was settled.
pub struct Hidden {
    /// The cells by row, in the order of the sides; suppressed for rows that do not leave.
    pub columns: Vec<Vec<CellId>>,
    /// Rows of classes that cannot leave in this group.
    pub failing: Vec<u32>,
}

/// Cells of one side, and the level of each that is below `*`.
struct Shown {
    cells: Vec<CellId>,
    levels: Vec<u8>,
}

/// What a class is judged by.
struct Criteria<'a> {
    /// By side: its attribute.
    attributes: Vec<usize>,
    shown: &'a [Shown],
    /// By side and code: whether the value lacks support of its own.
    rare: Vec<Vec<bool>>,
    /// Sides that are asked.
    open: Vec<usize>,
}

/// What becomes of a class in one turn.
enum Turn {
    Stays,
    Changed,
    Fails,
}

impl Hiding<'_> {
    /// Settles the sensitive cells of `rows`, the lines of the group that are to leave.
    pub fn settle(&self, mut sides: Vec<Side>, mut rows: Vec<u32>, models: &mut dyn Models) -> Hidden {
        let mut joint: HashSet<u128, BuildClassKeyHash> = HashSet::default();
        let mut failing = Vec::new();
        loop {
            let shown: Vec<Shown> = sides.iter_mut().map(|side| self.shown(side, &rows, models)).collect();
            let gone = self.turn(&mut sides, &rows, &shown, &mut joint);
            let Some(gone) = gone else {
                return Hidden { columns: shown.into_iter().map(|shown| shown.cells).collect(), failing };
            };
            if !gone.is_empty() {
                let gone: HashSet<u32> = gone.into_iter().collect();
                rows.retain(|row| !gone.contains(row));
                failing.extend(gone);
            }
        }
    }

    /// The cells of a side: each row at the finest level that it may take and at which its text has support.
    fn shown(&self, side: &mut Side, rows: &[u32], models: &mut dyn Models) -> Shown {
        loop {
            let shown = self.supported(side, rows);
            if !side.protected {
                return shown;
            }
            let showing = rows.iter().filter(|&&row| shown.cells[row as usize] != SUPPRESSED);
            let mut showing: Vec<(u128, u32)> = showing.map(|&row| (self.class[row as usize], row)).collect();
            showing.sort_unstable();
            let refused: HashSet<u128, BuildClassKeyHash> =
                models.refused(side.attribute, &showing).into_iter().collect();
            if refused.is_empty() {
                return shown;
            }
            // A value that a class no longer shows may lack the support that it lent to others, and so on.
            for &row in rows.iter().filter(|&&row| refused.contains(&self.class[row as usize])) {
                side.floors[row as usize] = UNSHOWN;
            }
        }
    }

    fn supported(&self, side: &Side, rows: &[u32]) -> Shown {
        let (a, book) = (side.attribute, &self.books[side.attribute]);
        let columns = QuasiColumns::new(self.bases[a], &[a], &self.batch.columns, &self.batch.subjects, self.books);
        let node = |level: usize| Node { levels: vec![u8::try_from(level).expect("hierarchies are low")], loss: 0.0 };
        let mut shown = Shown { cells: vec![SUPPRESSED; self.batch.rows()], levels: vec![UNSHOWN; self.batch.rows()] };
        let mut take = |row: u32, level: usize| {
            shown.cells[row as usize] = book.cell(self.batch.columns[a][row as usize], level);
            shown.levels[row as usize] = u8::try_from(level).expect("hierarchies are low");
        };
        if self.strict {
            let ladder: Vec<Node> = (0..side.levels).map(node).collect();
            let speaking: Vec<u32> = rows.iter().copied().filter(|&row| side.floors[row as usize] == 0).collect();
            let taken = recode(&columns, &ladder, &speaking, self.k);
            for &row in speaking.iter().filter(|&&row| taken.node[row as usize] != UNRELEASED) {
                take(row, taken.node[row as usize] as usize);
            }
            return shown;
        }
        let mut left = rows.to_vec();
        for level in 0..side.levels {
            let here: Vec<u32> =
                left.iter().copied().filter(|&row| usize::from(side.floors[row as usize]) <= level).collect();
            if here.is_empty() {
                continue;
            }
            let taken = recode_beside(&columns, &[node(level)], &here, self.k, self.holders);
            left.retain(|&row| {
                let is_taken = taken.node[row as usize] != UNRELEASED;
                if is_taken {
                    take(row, level);
                }
                !is_taken
            });
        }
        shown
    }

    /// One turn over the classes that hide anything; the rows that can no longer leave, and none where nothing changed.
    fn turn(
        &self,
        sides: &mut [Side],
        rows: &[u32],
        shown: &[Shown],
        joint: &mut HashSet<u128, BuildClassKeyHash>,
    ) -> Option<Vec<u32>> {
        let says = |row: &u32| !self.bare || shown.iter().any(|side| side.cells[*row as usize] != SUPPRESSED);
        let lines: Vec<u32> = rows.iter().copied().filter(says).collect();
        let speaks = |at: &usize| self.beside || lines.iter().any(|&row| shown[*at].cells[row as usize] != SUPPRESSED);
        let open: Vec<usize> = (0..sides.len()).filter(|at| speaks(at) || self.distinct(&lines) < self.k).collect();
        let attributes: Vec<usize> = sides.iter().map(|side| side.attribute).collect();
        let hides = |row: &u32| open.iter().any(|&at| self.hides(attributes[at], shown[at].cells[*row as usize]));
        let hiding: HashSet<u128, BuildClassKeyHash> =
            lines.iter().filter(|row| hides(row)).map(|&row| self.class[row as usize]).collect();
        if hiding.is_empty() {
            return None;
        }
        let members = lines.iter().map(|&row| (self.class[row as usize], row));
        let mut members: Vec<(u128, u32)> = members.filter(|(class, _)| hiding.contains(class)).collect();
        members.sort_unstable();
        let rare = sides.iter().map(|side| self.rare(side.attribute, &lines)).collect();
        let criteria = Criteria { attributes, shown, rare, open };
        let (mut changed, mut gone) = (false, Vec::new());
        for of_class in members.chunk_by(|a, b| a.0 == b.0) {
            let rows: Vec<u32> = of_class.iter().map(|member| member.1).collect();
            match self.mend(sides, &criteria, &rows, of_class[0].0, joint) {
                Turn::Stays => {}
                Turn::Changed => changed = true,
                Turn::Fails => gone.extend(rows),
            }
        }
        (changed || !gone.is_empty()).then_some(gone)
    }

    /// Mends one class, whose lines are `rows`, by one step.
    fn mend(
        &self,
        sides: &mut [Side],
        criteria: &Criteria<'_>,
        rows: &[u32],
        class: u128,
        joint: &mut HashSet<u128, BuildClassKeyHash>,
    ) -> Turn {
        let hides = |at: usize, row: u32| self.hides(criteria.attributes[at], criteria.shown[at].cells[row as usize]);
        // Labels first: what they give up adds to the crowd of coarser texts.
        let mut coarser: Vec<(usize, u32)> = Vec::new();
        for &at in &criteria.open {
            let cells = &criteria.shown[at].cells;
            let mut labels: BTreeMap<CellId, Vec<u32>> = BTreeMap::new();
            for &row in rows.iter().filter(|&&row| cells[row as usize] != SUPPRESSED && hides(at, row)) {
                labels.entry(cells[row as usize]).or_default().push(row);
            }
            for (_, of_label) in labels {
                if !self.is_crowd(criteria, &of_label, &[at]) {
                    coarser.extend(of_label.into_iter().map(|row| (at, row)));
                }
            }
        }
        if !coarser.is_empty() {
            let strict = self.strict;
            for (at, row) in coarser {
                let level = criteria.shown[at].levels[row as usize];
                sides[at].floors[row as usize] = if strict { UNSHOWN } else { level + 1 };
            }
            return Turn::Changed;
        }
        let shows = |at: &usize| rows.iter().any(|&row| criteria.shown[*at].cells[row as usize] != SUPPRESSED);
        let (speaking, silent): (Vec<usize>, Vec<usize>) = criteria.open.iter().partition(|at| shows(at));
        if silent.iter().any(|&at| !self.is_crowd(criteria, rows, &[at])) {
            return Turn::Fails;
        }
        let hiding: Vec<u32> = rows.iter().copied().filter(|&row| speaking.iter().any(|&at| hides(at, row))).collect();
        if joint.contains(&class) {
            // Whatever a line hides, it hides all: there are two kinds of lines.
            return self.cover(sides, criteria, rows, &hiding, &speaking);
        }
        for &at in &speaking {
            let starred = |row: &u32| criteria.shown[at].cells[*row as usize] == SUPPRESSED;
            let starred: Vec<u32> = rows.iter().copied().filter(starred).collect();
            match self.cover(sides, criteria, rows, &starred, &[at]) {
                Turn::Stays => {}
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
                !self.is_crowd(criteria, rows, &marked)
            };
            if patterns.iter().any(says_too_much) {
                joint.insert(class);
                return Turn::Changed;
            }
        }
        Turn::Stays
    }

    /// Lets `hiding` lines of a class leave as `*` in the sides `at`, with as many more as make them a crowd.
    fn cover(&self, sides: &mut [Side], criteria: &Criteria<'_>, rows: &[u32], hiding: &[u32], at: &[usize]) -> Turn {
        if hiding.is_empty() {
            return Turn::Stays;
        }
        let mut chosen = hiding.to_vec();
        if !self.is_crowd(criteria, &chosen, at) {
            let mut others: BTreeMap<(u128, u64), Vec<u32>> = BTreeMap::new();
            let taken: HashSet<u32> = hiding.iter().copied().collect();
            for &row in rows.iter().filter(|row| !taken.contains(*row)) {
                if let Some(subject) = self.subject(row) {
                    others.entry(((self.order)(row), subject)).or_default().push(row);
                }
            }
            let mut others = others.into_values();
            while !self.is_crowd(criteria, &chosen, at) {
                match others.next() {
                    Some(of_subject) => chosen.extend(of_subject),
                    None => return Turn::Fails,
                }
            }
        }
        let mut changed = false;
        for &at in at {
            for &row in &chosen {
                changed |= criteria.shown[at].cells[row as usize] != SUPPRESSED;
                sides[at].floors[row as usize] = UNSHOWN;
            }
        }
        if changed { Turn::Changed } else { Turn::Stays }
    }

    /// Whether `rows`, who show the same texts in the sides `at`, are a crowd: k subjects, and no value that lacks support
    /// of its own belongs to more than half of them. Who is nobody counts where he may do harm.
    fn is_crowd(&self, criteria: &Criteria<'_>, rows: &[u32], at: &[usize]) -> bool {
        let subjects = self.distinct(rows);
        let says_little = |&at: &usize| {
            let mut holders: BTreeMap<Code, (BTreeSet<u64>, usize)> = BTreeMap::new();
            for &row in rows {
                let code = self.batch.columns[criteria.attributes[at]][row as usize];
                if criteria.rare[at][code as usize] {
                    let (known, nobody) = holders.entry(code).or_default();
                    match self.subject(row) {
                        Some(subject) => drop(known.insert(subject)),
                        None => *nobody += 1,
                    }
                }
            }
            holders.values().all(|(known, nobody)| 2 * (known.len() + nobody) <= subjects)
        };
        subjects >= self.k && at.iter().all(says_little)
    }

    /// By code: whether its value lacks support of its own: among `lines`, and with the people beside them.
    fn rare(&self, attribute: usize, lines: &[u32]) -> Vec<bool> {
        let (codes, book) = (&self.batch.columns[attribute], &self.books[attribute]);
        let mut crowds = CrowdTable::new(self.k, lines.len());
        crowds.restart();
        let mut class_of: Vec<Option<u32>> = vec![None; book.codes()];
        for &row in lines {
            let code = codes[row as usize] as usize;
            let key = self.bases[attribute].wrapping_add(book.digests(0)[code]);
            class_of[code] = Some(crowds.add(key, self.batch.subjects[row as usize]));
        }
        crowds.complete(self.holders);
        class_of.into_iter().map(|class| !class.is_some_and(|class| crowds.supported(class))).collect()
    }

    fn distinct(&self, rows: &[u32]) -> usize {
        rows.iter().filter_map(|&row| self.subject(row)).collect::<HashSet<u64>>().len()
    }

    fn subject(&self, row: u32) -> Option<u64> {
        Some(self.batch.subjects[row as usize]).filter(|subject| *subject != NO_SUBJECT)
    }

    fn hides(&self, attribute: usize, cell: CellId) -> bool {
        cell == SUPPRESSED || !self.books[attribute].is_exact(cell)
    }
}
