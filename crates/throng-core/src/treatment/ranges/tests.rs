//! Compares the division with its definition.

use super::*;
use crate::treatment::local_recoding::UNRELEASED_NODE;
use crate::values::codebook::{ABSENT, NULL, UNCOVERED, test_codebooks};
use crate::values::raw_batch::RawToken;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const SCHEMA: &str = r#"
name = "t"
subject = "record"

[[attribute]]
name = "age"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 39
widths = [5, 20]

[[attribute]]
name = "dose"
type = "float"
round = 0.5
[attribute.hierarchy]
kind = "bounds"
min = 0
max = 8
levels = [[0.5, 2, 4], [2]]

[[attribute]]
name = "device"
type = "string"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree]
"watch" = ["W1", "W2"]
"band" = ["B1", "B2"]
"#;

const AGES: [&str; 9] = ["0", "3", "4", "5", "17", "20", "22", "38", "39"];
const DOSES: [&str; 6] = ["0", "0.5", "1", "3.5", "4", "8"];
const DEVICES: [&str; 4] = ["W1", "W2", "B1", "B2"];

/// A number beyond the values is a missing, absent or uncovered cell.
fn encode_rows(rows: &[(usize, usize, usize)]) -> (Vec<Vec<Code>>, Vec<Codebook>) {
    let mut books = test_codebooks(SCHEMA, 100);
    let mut columns = vec![Vec::new(); 3];
    for &(age, dose, device) in rows {
        for ((at, number), texts) in [age, dose, device].into_iter().enumerate().zip([&AGES[..], &DOSES, &DEVICES]) {
            let code = match texts.get(number) {
                Some(text) if at == 2 => books[at].encode(RawToken::Text(text)).unwrap(),
                Some(text) => books[at].encode(RawToken::Number(text)).unwrap(),
                None => [NULL, ABSENT, UNCOVERED][number - texts.len()],
            };
            columns[at].push(code);
        }
    }
    (columns, books)
}

const REST_PART: u64 = u64::MAX;

struct RangeCase {
    columns: Vec<Vec<Code>>,
    books: Vec<Codebook>,
    subjects: Vec<u64>,
    k: usize,
}

impl RangeCase {
    fn of(rows: &[(usize, usize, usize)], subjects: &[u64], k: usize) -> Self {
        let (columns, books) = encode_rows(rows);
        Self { columns, books, subjects: subjects.to_vec(), k }
    }

    fn divide(&self, rows: &[u32]) -> ClassAssignment {
        let (columns, subjects, books) = (&self.columns[..], &self.subjects[..], &self.books[..]);
        let columns = RangeColumns { base: 1, attributes: &[0, 1, 2], identifiers: &[], columns, subjects, books };
        divide_into_ranges(&columns, rows, self.k)
    }

    fn subject_count(&self, rows: &[u32]) -> usize {
        let people: BTreeSet<u64> = rows.iter().map(|&row| self.subjects[row as usize]).filter(|s| *s != 0).collect();
        people.len()
    }

    fn has_k_subjects(&self, rows: &[u32]) -> bool {
        self.subject_count(rows) >= self.k
    }

    fn shown(&self, attribute: usize, rows: &[u32]) -> CellId {
        let book = &self.books[attribute];
        let codes: BTreeSet<Code> = rows.iter().map(|&row| self.columns[attribute][row as usize]).collect();
        let kind = |code: &Code| (*code).min(UNCOVERED + 1);
        if codes.contains(&UNCOVERED) || codes.iter().map(kind).collect::<BTreeSet<_>>().len() > 1 {
            return SUPPRESSED;
        }
        let first = *codes.first().unwrap();
        if codes.len() == 1 {
            return book.cell(first, 0);
        }
        let positions: BTreeSet<Option<u32>> = codes.iter().map(|&code| book.position(code)).collect();
        match (positions.first(), positions.last()) {
            (Some(Some(low)), Some(Some(high))) => book.range(*low, *high),
            _ => {
                let same =
                    |level: &usize| codes.iter().all(|&code| book.cell(code, *level) == book.cell(first, *level));
                book.cell(first, (0..book.levels()).find(same).unwrap())
            }
        }
    }

    fn loss(&self, rows: &[u32]) -> f64 {
        let of = |attribute: usize| {
            let present = |row: &&u32| !matches!(self.columns[attribute][**row as usize], NULL | ABSENT);
            rows.iter().filter(present).count() as f64
                * f64::from(self.books[attribute].loss(self.shown(attribute, rows)))
        };
        (0..3).map(of).sum()
    }

    fn cuts(&self, rows: &[u32]) -> Vec<(f64, Vec<Vec<u32>>)> {
        let mut cuts = Vec::new();
        let parted = |by: &dyn Fn(u32) -> u64| {
            let mut parts: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            rows.iter().for_each(|&row| parts.entry(by(row)).or_default().push(row));
            parts
        };
        let mut add = |parts: Vec<Vec<u32>>| {
            if parts.len() > 1 && parts.iter().all(|part| self.has_k_subjects(part)) {
                cuts.push((parts.iter().map(|part| self.loss(part)).sum(), parts));
            }
        };
        // Parts with too few subjects form the rest, joined by the smallest separate parts.
        let apart = |by: &dyn Fn(u32) -> u64| {
            let (mut alone, few): (Vec<_>, Vec<_>) =
                parted(by).into_iter().partition(|(number, part)| *number != REST_PART && self.has_k_subjects(part));
            let mut rest: Vec<u32> = few.into_iter().flat_map(|(_, part)| part).collect();
            while !rest.is_empty() && !self.has_k_subjects(&rest) {
                let least = alone.iter().map(|(_, part)| self.subject_count(part)).min().unwrap_or(0);
                let (joining, staying): (Vec<_>, Vec<_>) =
                    alone.into_iter().partition(|(_, part)| self.subject_count(part) == least);
                if joining.is_empty() {
                    return Vec::new();
                }
                rest.extend(joining.into_iter().flat_map(|(_, part)| part));
                alone = staying;
            }
            if alone.is_empty() {
                return Vec::new();
            }
            alone.into_iter().map(|(_, part)| part).chain((!rest.is_empty()).then_some(rest)).collect()
        };
        for attribute in 0..3 {
            let (book, column) = (&self.books[attribute], &self.columns[attribute]);
            let code = |row: u32| column[row as usize];
            let kind = |row: u32| match code(row) {
                UNCOVERED => REST_PART,
                code => u64::from(code.min(3)),
            };
            let values: Vec<u32> = rows.iter().copied().filter(|&row| code(row) > UNCOVERED).collect();
            let same = |level: usize| {
                values.iter().map(|&row| book.cell(code(row), level)).collect::<BTreeSet<_>>().len() == 1
            };
            let common = (0..book.levels()).find(|&level| same(level));
            let root = attribute == 2 && common == Some(book.levels() - 1);
            if parted(&kind).len() > 1 && !root {
                add(apart(&kind));
                continue;
            }
            if values.is_empty() {
                continue;
            }
            if attribute == 2 {
                if let Some(below) = common.and_then(|level| level.checked_sub(1)) {
                    let label = |row: u32| {
                        if code(row) > UNCOVERED { 9 + u64::from(book.cell(code(row), below)) } else { kind(row) }
                    };
                    add(apart(&label));
                }
                continue;
            }
            let positions: BTreeSet<u32> = rows.iter().filter_map(|&row| book.position(code(row))).collect();
            if positions.len() == 1 {
                add(apart(&|row| u64::from(code(row))));
            }
            for &position in &positions {
                add(parted(&|row| u64::from(book.position(code(row)).unwrap() < position)).into_values().collect());
            }
        }
        cuts
    }

    fn best_cuts_reach(&self, rows: &[u32], classes: &[BTreeSet<u32>]) -> bool {
        const EQUAL_LOSS_TOLERANCE: f64 = 1e-5;
        let cuts = self.cuts(rows);
        let least = cuts.iter().map(|(loss, _)| *loss).fold(f64::INFINITY, f64::min);
        let together: BTreeSet<u32> = rows.iter().copied().collect();
        if least > self.loss(rows) - EQUAL_LOSS_TOLERANCE && classes.contains(&together) {
            return true;
        }
        let best = cuts.iter().filter(|(loss, _)| *loss < least + EQUAL_LOSS_TOLERANCE && *loss < self.loss(rows));
        let mut best = best.map(|(_, parts)| parts);
        best.any(|parts| parts.iter().all(|part| self.best_cuts_reach(part, classes)))
    }
}

fn released_classes(assignment: &ClassAssignment) -> BTreeMap<u128, Vec<u32>> {
    let mut classes: BTreeMap<u128, Vec<u32>> = BTreeMap::new();
    for (row, node) in (0u32..).zip(&assignment.node) {
        if *node != UNRELEASED_NODE {
            classes.entry(assignment.class[row as usize]).or_default().push(row);
        }
    }
    classes
}

fn printed_cells(case: &RangeCase, assignment: &ClassAssignment, row: usize) -> Vec<String> {
    let shown = assignment.range_cells.as_ref().unwrap();
    (0..3).map(|a| case.books[a].printed_text(shown[a][row]).into_owned()).collect()
}

#[test]
fn range_classes_show_extent_of_their_rows() {
    // Ages 0, 3, 5 | 20, 22, 38; one dose; watches | bands.
    let rows = [(0, 3, 0), (1, 3, 0), (3, 3, 1), (5, 3, 2), (6, 3, 2), (7, 3, 3)];
    let case = RangeCase::of(&rows, &[1, 2, 3, 4, 5, 6], 3);
    let assignment = case.divide(&[0, 1, 2, 3, 4, 5]);
    assert_eq!(printed_cells(&case, &assignment, 0), [r#""0-9""#, "3.5", r#""watch""#]);
    assert_eq!(printed_cells(&case, &assignment, 5), [r#""20-39""#, "3.5", r#""band""#]);
    let few = case.divide(&[0, 1]);
    assert!(few.node.iter().all(|node| *node == UNRELEASED_NODE), "two people are no crowd of three");
}

#[test]
fn range_division_suppresses_identifiers() {
    let case = RangeCase::of(&[(0, 0, 0), (0, 0, 0), (0, 0, 0)], &[1, 2, 3], 2);
    let (columns, subjects, books) = (&case.columns[..], &case.subjects[..], &case.books[..]);
    let columns = RangeColumns { base: 1, attributes: &[0, 1, 2], identifiers: &[0], columns, subjects, books };
    let assignment = divide_into_ranges(&columns, &[0, 1, 2], 2);
    assert_eq!(printed_cells(&case, &assignment, 1), [r#""*""#, "0", r#""W1""#]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn range_division_matches_definition(
        rows in prop::collection::vec(((0usize..12, 0usize..9, 0usize..7), 0u64..9), 0..14), k in 2usize..4,
        rare in 0u8..4,
    ) {
        // Mostly values: missing or uncovered cells keep an axis together.
        let plain = |(age, dose, device): (usize, usize, usize)| match rare {
            0 => (age, dose, device),
            _ => (age % 9, dose % 6, device % 4),
        };
        let (cells, subjects): (Vec<_>, Vec<u64>) = rows.iter().map(|&(cells, subject)| (plain(cells), subject)).unzip();
        let case = RangeCase::of(&cells, &subjects, k);
        let all: Vec<u32> = (0u32..).take(cells.len()).collect();
        let assignment = case.divide(&all);
        let classes = released_classes(&assignment);
        let shown = assignment.range_cells.as_ref().unwrap();
        for rows in classes.values() {
            prop_assert!(case.has_k_subjects(rows));
            for (a, cells) in shown.iter().enumerate() {
                let cell = case.shown(a, rows);
                let digest = |row: &u32| case.books[a].digest(cells[*row as usize]) == case.books[a].digest(cell);
                prop_assert!(rows.iter().all(digest), "a class shows its extent");
                let covers = |row: &u32| {
                    let code = case.columns[a][*row as usize];
                    cell == SUPPRESSED || case.books[a].covers(cell, code)
                };
                prop_assert!(rows.iter().all(covers));
            }
        }
        let silent = |rows: &Vec<u32>| (0..3).all(|a| case.shown(a, rows) == SUPPRESSED);
        if case.has_k_subjects(&all) {
            let mut found: Vec<BTreeSet<u32>> = classes.values().map(|rows| rows.iter().copied().collect()).collect();
            let left: Vec<u32> = all.iter().copied().filter(|row| assignment.node[*row as usize] == UNRELEASED_NODE).collect();
            if left.is_empty() {
                prop_assert!(case.best_cuts_reach(&all, &found), "{found:?}");
            } else if silent(&left) && case.has_k_subjects(&left) {
                found.push(left.into_iter().collect());
                prop_assert!(case.best_cuts_reach(&all, &found), "{found:?}");
            }
        } else {
            prop_assert!(classes.is_empty());
        }
        let back: Vec<u32> = all.iter().rev().copied().collect();
        prop_assert_eq!(case.divide(&back).class, assignment.class);
    }
}
