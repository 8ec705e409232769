//! The recount of one group, line by line, from the encoded bytes: the claims of [`super::verify`] that concern one group.

use super::forced_pairs::Fragments;
use super::given::{Basis, Given, GroupTerms};
use super::ranges::{self, RangeLine};
use super::repetition::Carriers;
use super::shared::GroupParts;
use super::verified::{Crowd, Risk};
use super::violation::Violation;
use super::{budget, hidden, identifying::names_somebody, invariants, narrowing, protected};
use crate::anonymity::treatment::proposal::{ProposedGroup, Run};
use hashbrown::HashMap;
use std::collections::HashSet;
use throng_core::values::digest::{BuildClassKeyHash, value_number};
use throng_core::values::subject::NO_SUBJECT;

/// What the recount of a group leads to.
pub(super) struct GroupCount {
    pub fragments: Fragments,
    /// The same by what is shown of shared attributes.
    pub parts: GroupParts,
    pub risk: Risk,
    pub crowd: Crowd,
    /// Group, subject and class of whom the classes counted, where budgets are kept.
    pub pairs: Vec<(u128, u64, u128)>,
    /// Keys of what the group says once a window.
    pub said: Vec<u128>,
}

/// Subjects of a class, in the order of their first line.
#[derive(Default)]
struct Class {
    lines: u64,
    subjects: Vec<u64>,
    /// The subjects once more, when there are many.
    seen: Option<HashSet<u64>>,
}

/// Classes up to this many subjects are searched one by one.
const FEW: usize = 16;

impl Class {
    fn add(&mut self, subject: u64) {
        self.lines += 1;
        if subject == NO_SUBJECT {
            return;
        }
        if self.subjects.len() <= FEW {
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

type Classes = HashMap<u128, Class, BuildClassKeyHash>;

/// What the cells of one line say.
struct LineCells {
    /// Key of the class.
    key: u128,
    /// Keys of the sensitive values that stand beside the class.
    sensitive_classes: Vec<u128>,
    /// Coverage of the quasi and sensitive cells; none where suppressed.
    guarded: Vec<Option<u128>>,
    /// Coverage of the sensitive cells that are not exact; none for those that are.
    hidden: Vec<Option<u128>>,
    /// Places in the line of the cells that are `guarded`.
    places: Vec<usize>,
}

/// The lines of a group as far as they have been read.
struct Recount<'a> {
    basis: Basis<'a>,
    carriers: &'a Carriers,
    group: &'a ProposedGroup,
    terms: &'a GroupTerms,
    classes: Classes,
    /// Classes of single sensitive values.
    sensitive_classes: Classes,
    fragments: Fragments,
    parts: GroupParts,
    /// Rows that have a line.
    taken: Vec<bool>,
    /// Class and row of each line, where the ladder is known.
    class_of: Vec<(u128, u32)>,
    hidden: Vec<hidden::Run<'a>>,
    /// The cells of each line, where classes show ranges.
    ranges: Vec<RangeLine<'a>>,
    /// Class, value and subject, by protected attribute.
    shown: Vec<Vec<(u128, u64, u64)>>,
}

/// Recounts `group`; `room` is what a batch of as many groups could add to the memory of supporters.
///
/// # Errors
/// The first violation found.
pub(super) fn recount(
    group: &ProposedGroup,
    terms: &GroupTerms,
    basis: Basis<'_>,
    carriers: &Carriers,
    room: usize,
) -> Result<GroupCount, Violation> {
    let guarded = terms.quasi.iter().zip(&terms.sensitive).filter(|(quasi, sensitive)| **quasi || **sensitive).count();
    let mut recount = Recount {
        basis,
        carriers,
        group,
        terms,
        classes: HashMap::default(),
        sensitive_classes: HashMap::default(),
        fragments: Fragments::new(guarded),
        parts: GroupParts::new(terms, basis.shared, basis.books),
        taken: vec![false; basis.given.subjects.len()],
        class_of: Vec::new(),
        hidden: Vec::with_capacity(group.runs.len()),
        ranges: Vec::new(),
        shown: vec![Vec::new(); terms.protected.len()],
    };
    recount.read_lines()?;
    recount.judge(room)
}

impl Recount<'_> {
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

    /// Takes in one line with all rows that print it.
    fn read_run(&mut self, run: &Run, cells: &[String]) -> Result<(), Violation> {
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
            self.hidden.push(hidden::Run { class: said.key, hidden: said.hidden, rows });
        }
        let above = |column: usize| {
            let place = said.places[column];
            books[terms.attributes[place]].coverages_above(&cells[place])
        };
        self.fragments.add(&said.guarded, &self.carriers.rows(rows), above);
        let attribute = |column: usize| terms.attributes[said.places[column]];
        self.parts.add(&said.guarded, attribute, rows, self.carriers, self.basis, above)
    }

    /// What each cell covers, by its text.
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
                || book.range_of(text).filter(|_| terms.ranges && terms.quasi[i]).map(|range| book.digest(range));
            let coverage = book.coverage_of(text).or_else(range).ok_or(Violation::UnknownCell)?;
            let suppressed = text == r#""*""#;
            if terms.quasi[i] {
                said.key = said.key.wrapping_add(coverage);
                // What is shared is said by other lines too.
                says_something |= !suppressed && !self.basis.shared.contains(&attribute);
            } else if terms.sensitive[i] && !suppressed {
                said.sensitive_classes.push(terms.sensitive_bases[attribute].wrapping_add(coverage));
            }
            if terms.sensitive[i] {
                said.hidden.push(books[attribute].exact_coverage_of(text).is_none().then_some(coverage));
            }
            if terms.quasi[i] || terms.sensitive[i] {
                // A label of a hierarchy is the schema's own word.
                if names_somebody(text) && books[attribute].exact_coverage_of(text).is_some() {
                    return Err(Violation::Identifier);
                }
                said.guarded.push((!suppressed).then_some(coverage));
                said.places.push(i);
            }
        }
        if says_something { Ok(said) } else { Err(Violation::EmptyClass) }
    }

    /// The values of the protected attributes; none where they are suppressed.
    fn protected_values(&self, cells: &[String]) -> Result<Vec<Option<u64>>, Violation> {
        let value = |term: &protected::ProtectedTerms| {
            let text = cells.get(term.column).ok_or(Violation::UnreadableLine)?;
            let exact = self.basis.books[term.attribute].exact_coverage_of(text).map(value_number);
            if text != r#""*""# && exact.is_none() { Err(Violation::ProtectedCell) } else { Ok(exact) }
        };
        self.terms.protected.iter().map(value).collect()
    }

    /// Counts the subjects of the rows that print one line.
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

    /// Judges the group once all its lines have been read; a batch of as many groups could add `room` entries to the memory of
    /// supporters.
    fn judge(self, room: usize) -> Result<GroupCount, Violation> {
        let Basis { given, ledger, .. } = self.basis;
        let terms = self.terms;
        let (risk, crowd) = self.judge_classes()?;
        debug_assert!(self.classes_are_their_texts(), "a class is not the lines that print its cells");
        if let Some(narrowing) = &terms.narrowing {
            let counts = |(row, &subject)| if is_muted(self.group, row) { NO_SUBJECT } else { subject };
            let counting: Vec<u64> = (0..).zip(given.subjects).map(counts).collect();
            let given = Given { subjects: &counting, ..*given };
            let basis = Basis { given: &given, ..self.basis };
            narrowing::judge(narrowing, terms.base, self.class_of, basis)?;
        }
        if terms.ranges {
            let quasi = terms.attributes.iter().zip(&terms.quasi).filter(|(_, quasi)| **quasi);
            let quasi: Vec<usize> = quasi.map(|(&attribute, _)| attribute).collect();
            ranges::judge(&self.ranges, &quasi, given.columns, self.basis.books)?;
        }
        hidden::judge(&self.hidden, terms, self.basis)?;
        protected::judge(&terms.protected, self.shown)?;
        let of_group = self.classes.iter().filter(|_| terms.quasi.contains(&true));
        let counted = of_group.map(|(key, class)| (*key, class.subjects.as_slice()));
        let pairs = budget::judge(terms.base, counted, room, ledger)?;
        let (fragments, parts) = (self.fragments, self.parts);
        Ok(GroupCount { fragments, parts, risk, crowd, pairs, said: Vec::new() })
    }

    /// Asks that every class has its crowd, and so every single sensitive value: in its batch, and for a release in parts with the
    /// people of the others.
    fn judge_classes(&self) -> Result<(Risk, Crowd), Violation> {
        let k = self.basis.k;
        let (mut risk, mut crowd) = (Risk::default(), Crowd::default());
        for class in self.classes.values() {
            risk.add(Risk::of_class(class.subjects.len(), class.lines, k));
            if self.terms.quasi.contains(&true) {
                if class.subjects.len() < k {
                    return Err(Violation::ClassBelowK);
                }
                crowd.add(Crowd::of_class(class.subjects.len(), class.lines, k));
            }
        }
        let beside = |key: u128, class: &Class| {
            self.terms.holders_beside.of(key).iter().filter(|subject| !class.contains(**subject)).count()
        };
        let few = |(key, class): (&u128, &Class)| class.subjects.len() + beside(*key, class) < k;
        if self.sensitive_classes.iter().any(few) { Err(Violation::SensitiveBelowK) } else { Ok((risk, crowd)) }
    }

    /// Whether the smallest class by digests of what cells cover is the smallest by the texts of the cells: for debug builds.
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

/// Whether a row counts for nobody in the group.
fn is_muted(group: &ProposedGroup, row: u32) -> bool {
    group.muted.get(row as usize).copied().unwrap_or(false)
}
