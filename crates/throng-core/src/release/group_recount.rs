//! Recount of one group: the claims of [`super::verify`] about one group.

use super::forced_pairs::GroupFragments;
use super::line_limits::CountingUnits;
use super::ranges::{self, RangeLine};
use super::shared_attributes::SharedCellLines;
use super::verified_batch::{ClassSizeStats, ReidentificationRisk};
use super::verifier_input::{GroupTerms, RecountContext, VerifierInput};
use super::violation::Violation;
use super::{
    hidden_cells, identifier_forms::has_identifier_form, invariants, narrowing, protected_attributes, subject_budgets,
};
use crate::treatment::proposal::{LineRun, ProposedGroup};
use crate::values::digest::{BuildClassKeyHash, value_number};
use crate::values::subject_digest::NO_SUBJECT;
use hashbrown::HashMap;
use std::collections::HashSet;

pub(super) struct GroupTally {
    pub fragments: GroupFragments,
    pub parts: SharedCellLines,
    pub risk: ReidentificationRisk,
    pub crowd: ClassSizeStats,
    /// Group, subject and class.
    pub pairs: Vec<(u128, u64, u128)>,
    pub window_keys: Vec<u128>,
}

/// Subjects are in the order of their first line.
#[derive(Default)]
struct RecountedClass {
    lines: u64,
    subjects: Vec<u64>,
    /// Set for large classes.
    seen: Option<HashSet<u64>>,
}

const LINEAR_SEARCH_LIMIT: usize = 16;

impl RecountedClass {
    fn add(&mut self, subject: u64) {
        self.lines += 1;
        if subject == NO_SUBJECT {
            return;
        }
        if self.subjects.len() <= LINEAR_SEARCH_LIMIT {
            if self.subjects.contains(&subject) {
                return;
            }
            self.subjects.push(subject);
        } else if self.seen.get_or_insert_with(|| self.subjects.iter().copied().collect()).insert(subject) {
            self.subjects.push(subject);
        }
    }

    fn contains(&self, subject: u64) -> bool {
        self.seen.as_ref().map_or_else(|| self.subjects.contains(&subject), |seen| seen.contains(&subject))
    }
}

type ClassesByKey = HashMap<u128, RecountedClass, BuildClassKeyHash>;

struct LineCells {
    key: u128,
    sensitive_classes: Vec<u128>,
    /// Coverages of quasi and sensitive cells; none if suppressed.
    guarded: Vec<Option<u128>>,
    /// Coverages of sensitive cells; none if exact.
    hidden: Vec<Option<u128>>,
    places: Vec<usize>,
}

struct GroupRecount<'a> {
    basis: RecountContext<'a>,
    carriers: &'a CountingUnits,
    group: &'a ProposedGroup,
    terms: &'a GroupTerms,
    classes: ClassesByKey,
    sensitive_classes: ClassesByKey,
    fragments: GroupFragments,
    parts: SharedCellLines,
    taken: Vec<bool>,
    /// By line, if the ladder is known.
    class_of: Vec<(u128, u32)>,
    hidden: Vec<hidden_cells::HiddenRun<'a>>,
    /// Only if classes show ranges.
    ranges: Vec<RangeLine<'a>>,
    /// Class, value and subject, by protected attribute.
    shown: Vec<Vec<(u128, u64, u64)>>,
}

/// `room` is the most supporter entries that such a batch can add.
pub(super) fn recount(
    group: &ProposedGroup,
    terms: &GroupTerms,
    basis: RecountContext<'_>,
    carriers: &CountingUnits,
    room: usize,
) -> Result<GroupTally, Violation> {
    let guarded = terms.quasi.iter().zip(&terms.sensitive).filter(|(quasi, sensitive)| **quasi || **sensitive).count();
    let mut recount = GroupRecount {
        basis,
        carriers,
        group,
        terms,
        classes: HashMap::default(),
        sensitive_classes: HashMap::default(),
        fragments: GroupFragments::new(guarded),
        parts: SharedCellLines::new(terms, basis.shared, basis.books),
        taken: vec![false; basis.given.subjects.len()],
        class_of: Vec::new(),
        hidden: Vec::with_capacity(group.runs.len()),
        ranges: Vec::new(),
        shown: vec![Vec::new(); terms.protected.len()],
    };
    recount.read_lines()?;
    recount.finish_recount(room)
}

impl GroupRecount<'_> {
    fn read_lines(&mut self) -> Result<(), Violation> {
        let mut cells = Vec::new();
        let mut previous: Option<&[u8]> = None;
        let group = self.group;
        for run in &group.runs {
            let line = group.arena.get(run.line.clone()).ok_or(Violation::UnreadableLine)?;
            if previous.is_some_and(|p| p >= line) {
                return Err(Violation::Unsorted);
            }
            previous = Some(line);
            self.terms.layout.read(line, &mut cells).ok_or(Violation::UnreadableLine)?;
            self.read_run(run, &cells)?;
        }
        let counted: usize = group.runs.iter().map(|run| run.rows.len()).sum();
        if counted == group.rows.len() { Ok(()) } else { Err(Violation::WrongRow) }
    }

    fn read_run(&mut self, run: &LineRun, cells: &[String]) -> Result<(), Violation> {
        let (group, terms, books) = (self.group, self.terms, self.basis.books);
        let said = self.read_cells(cells)?;
        let values = self.protected_values(cells)?;
        let rows = group.rows.get(run.rows.clone()).ok_or(Violation::WrongRow)?;
        self.count_rows(&said, &values, rows)?;
        if terms.narrowing.is_some() {
            self.class_of.extend(rows.iter().map(|&row| (said.key, row)));
        }
        if terms.ranges {
            let quasi = cells.iter().zip(&terms.quasi).filter(|(_, quasi)| **quasi);
            self.ranges.push(RangeLine { class: said.key, cells: quasi.map(|(cell, _)| cell.clone()).collect(), rows });
        }
        if !said.hidden.is_empty() {
            self.hidden.push(hidden_cells::HiddenRun { class: said.key, hidden: said.hidden, rows });
        }
        let above = |column: usize| {
            let place = said.places[column];
            books[terms.attributes[place]].coverages_above(&cells[place])
        };
        self.fragments.add(&said.guarded, &self.carriers.rows(rows), above);
        let attribute = |column: usize| terms.attributes[said.places[column]];
        self.parts.add(&said.guarded, attribute, rows, self.carriers, self.basis, above)
    }

    fn read_cells(&self, cells: &[String]) -> Result<LineCells, Violation> {
        let (terms, books) = (self.terms, self.basis.books);
        if cells.len() != terms.attributes.len() {
            return Err(Violation::UnreadableLine);
        }
        let mut said = LineCells {
            key: terms.base,
            sensitive_classes: Vec::new(),
            guarded: Vec::new(),
            hidden: Vec::new(),
            places: Vec::new(),
        };
        let mut says_something = !terms.quasi.contains(&true);
        for (i, text) in cells.iter().enumerate() {
            let attribute = terms.attributes[i];
            let book = &books[attribute];
            let range =
                || book.find_range(text).filter(|_| terms.ranges && terms.quasi[i]).map(|range| book.digest(range));
            let coverage = book.coverage_of(text).or_else(range).ok_or(Violation::UnknownCell)?;
            let suppressed = text == r#""*""#;
            if terms.quasi[i] {
                said.key = said.key.wrapping_add(coverage);
                says_something |= !suppressed && !self.basis.shared.contains(&attribute);
            } else if terms.sensitive[i] && !suppressed {
                said.sensitive_classes.push(terms.sensitive_bases[attribute].wrapping_add(coverage));
            }
            if terms.sensitive[i] {
                said.hidden.push(books[attribute].exact_coverage_of(text).is_none().then_some(coverage));
            }
            if terms.quasi[i] || terms.sensitive[i] {
                // Hierarchy labels may have the form of an identifier.
                if has_identifier_form(text) && books[attribute].exact_coverage_of(text).is_some() {
                    return Err(Violation::Identifier);
                }
                said.guarded.push((!suppressed).then_some(coverage));
                said.places.push(i);
            }
        }
        if says_something { Ok(said) } else { Err(Violation::EmptyClass) }
    }

    /// Values are none if suppressed.
    fn protected_values(&self, cells: &[String]) -> Result<Vec<Option<u64>>, Violation> {
        let value = |term: &protected_attributes::ProtectedTerms| {
            let text = cells.get(term.column).ok_or(Violation::UnreadableLine)?;
            let exact = self.basis.books[term.attribute].exact_coverage_of(text).map(value_number);
            if text != r#""*""# && exact.is_none() { Err(Violation::ProtectedCell) } else { Ok(exact) }
        };
        self.terms.protected.iter().map(value).collect()
    }

    fn count_rows(&mut self, line: &LineCells, values: &[Option<u64>], rows: &[u32]) -> Result<(), Violation> {
        if rows.is_empty() {
            return Err(Violation::WrongRow);
        }
        let class = self.classes.entry(line.key).or_default();
        for &row in rows {
            let subject = *self.basis.given.subjects.get(row as usize).ok_or(Violation::WrongRow)?;
            if std::mem::replace(&mut self.taken[row as usize], true) {
                return Err(Violation::WrongRow);
            }
            class.add(if is_muted(self.group, row) { NO_SUBJECT } else { subject });
            for single in &line.sensitive_classes {
                self.sensitive_classes.entry(*single).or_default().add(subject);
            }
            for (shown, value) in self.shown.iter_mut().zip(values) {
                if let Some(value) = value {
                    if subject == NO_SUBJECT {
                        return Err(Violation::ProtectedCell);
                    }
                    shown.push((line.key, *value, subject));
                }
            }
        }
        Ok(())
    }

    fn finish_recount(self, room: usize) -> Result<GroupTally, Violation> {
        let RecountContext { given, ledger, .. } = self.basis;
        let terms = self.terms;
        let (risk, crowd) = self.judge_classes()?;
        debug_assert!(self.classes_are_their_texts(), "a class is not the lines that print its cells");
        if let Some(narrowing) = &terms.narrowing {
            let counts = |(row, &subject)| if is_muted(self.group, row) { NO_SUBJECT } else { subject };
            let counting: Vec<u64> = (0..).zip(given.subjects).map(counts).collect();
            let given = VerifierInput { subjects: &counting, ..*given };
            let basis = RecountContext { given: &given, ..self.basis };
            narrowing::check_narrowing(narrowing, terms.base, self.class_of, basis)?;
        }
        if terms.ranges {
            let quasi = terms.attributes.iter().zip(&terms.quasi).filter(|(_, quasi)| **quasi);
            let quasi: Vec<usize> = quasi.map(|(&attribute, _)| attribute).collect();
            ranges::check_ranges(&self.ranges, &quasi, given.columns, self.basis.books)?;
        }
        hidden_cells::check_hidden_cells(&self.hidden, terms, self.basis)?;
        protected_attributes::check_protected(&terms.protected, self.shown)?;
        let of_group = self.classes.iter().filter(|_| terms.quasi.contains(&true));
        let counted = of_group.map(|(key, class)| (*key, class.subjects.as_slice()));
        let pairs = subject_budgets::check_budgets(terms.base, counted, room, ledger)?;
        let (fragments, parts) = (self.fragments, self.parts);
        Ok(GroupTally { fragments, parts, risk, crowd, pairs, window_keys: Vec::new() })
    }

    fn judge_classes(&self) -> Result<(ReidentificationRisk, ClassSizeStats), Violation> {
        let k = self.basis.k;
        let (mut risk, mut crowd) = (ReidentificationRisk::default(), ClassSizeStats::default());
        for class in self.classes.values() {
            risk.add(ReidentificationRisk::of_class(class.subjects.len(), class.lines, k));
            if self.terms.quasi.contains(&true) {
                if class.subjects.len() < k {
                    return Err(Violation::ClassBelowK);
                }
                crowd.add(ClassSizeStats::of_class(class.subjects.len(), class.lines, k));
            }
        }
        let beside = |key: u128, class: &RecountedClass| {
            self.terms.holders_elsewhere.subjects_with(key).iter().filter(|subject| !class.contains(**subject)).count()
        };
        let few = |(key, class): (&u128, &RecountedClass)| class.subjects.len() + beside(*key, class) < k;
        if self.sensitive_classes.iter().any(few) { Err(Violation::SensitiveBelowK) } else { Ok((risk, crowd)) }
    }

    fn classes_are_their_texts(&self) -> bool {
        let mut members: Vec<(Vec<String>, Option<u64>)> = Vec::new();
        let mut cells = Vec::new();
        for run in &self.group.runs {
            let Some(()) = self.terms.layout.read(&self.group.arena[run.line.clone()], &mut cells) else {
                return false;
            };
            let quasi = cells.iter().zip(&self.terms.quasi).filter(|(_, quasi)| **quasi);
            let class: Vec<String> = quasi.map(|(text, _)| text.clone()).collect();
            for &row in &self.group.rows[run.rows.clone()] {
                let subject = self.basis.given.subjects[row as usize];
                let counts = subject != NO_SUBJECT && !is_muted(self.group, row);
                members.push((class.clone(), counts.then_some(subject)));
            }
        }
        let smallest = self.classes.values().map(|class| class.subjects.len()).min();
        invariants::smallest_class(members).map(|(_, subjects)| subjects) == smallest
    }
}

fn is_muted(group: &ProposedGroup, row: u32) -> bool {
    group.muted.get(row as usize).copied().unwrap_or(false)
}
