use super::*;
use crate::ledger::subject_ledger::SubjectLedger;
use crate::values::codebook::test_codebooks;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const BASE: u128 = 77;
const SCHEMA: &str = r#"
    name = "two"
    [[attribute]]
    name = "a"
    type = "integer"
    hierarchy = { kind = "intervals", min = 0, max = 5, origin = 0, widths = [2] }
    [[attribute]]
    name = "b"
    type = "integer"
    hierarchy = { kind = "intervals", min = 0, max = 3, origin = 0, widths = [2] }
"#;

type RawPair = (u8, u8);

/// Subject, raw tuple, printed node.
type PrintedLine = (u64, RawPair, usize);

struct NarrowingFixture {
    books: Vec<Codebook>,
    terms: NarrowingTerms,
}

impl NarrowingFixture {
    fn new() -> Self {
        let mut books = test_codebooks(SCHEMA, 100);
        for value in 0..6 {
            books.iter_mut().for_each(|book| {
                book.encode_canonical(&value.to_string());
            });
        }
        let mut nodes: Vec<Vec<u8>> = (0..3).flat_map(|a| (0..3).map(move |b| vec![a, b])).collect();
        nodes.sort_by_key(|levels| (levels.iter().sum::<u8>(), levels.clone()));
        nodes.pop();
        Self { books, terms: NarrowingTerms { attributes: vec![0, 1], nodes } }
    }

    fn codes(&mut self, raw: RawPair) -> [Code; 2] {
        [self.books[0].encode_canonical(&raw.0.to_string()), self.books[1].encode_canonical(&raw.1.to_string())]
    }

    fn texts(&mut self, raw: RawPair, node: usize) -> Vec<String> {
        let codes = self.codes(raw);
        let cell = |a: usize| {
            let book = &self.books[a];
            book.text(book.cell(codes[a], usize::from(self.terms.nodes[node][a]))).to_owned()
        };
        vec![cell(0), cell(1)]
    }

    fn key(&mut self, raw: RawPair, node: usize) -> u128 {
        let codes = self.codes(raw);
        (0..2).fold(BASE, |key, a| {
            let level = usize::from(self.terms.nodes[node][a]);
            key.wrapping_add(self.books[a].digests(level)[codes[a] as usize])
        })
    }

    /// Sweeps over all nodes and raw tuples.
    fn is_narrowed(&mut self, lines: &[PrintedLine], k: usize) -> bool {
        let first = |bench: &mut Self, class: &Vec<String>, raw: RawPair| {
            (0..bench.terms.nodes.len()).find(|&node| &bench.texts(raw, node) == class)
        };
        let published: BTreeSet<Vec<String>> = lines.iter().map(|l| self.texts(l.1, l.2)).collect();
        let mut exits: BTreeMap<RawPair, usize> = BTreeMap::new();
        for node in 0..self.terms.nodes.len() {
            for raw in lines.iter().map(|l| l.1).collect::<BTreeSet<RawPair>>() {
                if !exits.contains_key(&raw) && published.contains(&self.texts(raw, node)) {
                    exits.insert(raw, node);
                }
            }
        }
        published.iter().any(|class| {
            let mut crowd = BTreeSet::new();
            let here = lines.iter().filter(|l| &self.texts(l.1, l.2) == class).map(|l| (l.0, l.1)).collect::<Vec<_>>();
            for (subject, raw) in here {
                let node = first(self, class, raw);
                if node.is_some_and(|node| exits.get(&raw).is_none_or(|&exit| exit >= node)) {
                    crowd.insert(subject);
                }
            }
            crowd.len() < k
        })
    }

    fn is_refused(&mut self, lines: &[PrintedLine], k: usize) -> bool {
        let (mut columns, mut subjects, mut printed) = (vec![Vec::new(), Vec::new()], Vec::new(), Vec::new());
        for (row, &(subject, raw, node)) in (0..).zip(lines) {
            let codes = self.codes(raw);
            (0..2).for_each(|a| columns[a].push(codes[a]));
            subjects.push(subject);
            printed.push((self.key(raw, node), row));
        }
        let given = VerifierInput { subjects: &subjects, columns: &columns, waiting: 0, sequence: 9, age_ms: 6000 };
        let ledger = SubjectLedger::default();
        let basis = RecountContext { given: &given, books: &self.books, ledger: ledger.at(6000), k, shared: &[] };
        check_narrowing(&self.terms, BASE, printed, basis).is_err()
    }
}

fn lines(most: usize) -> impl Strategy<Value = Vec<PrintedLine>> {
    prop::collection::vec((1u64..9, (0u8..6, 0u8..4), 0usize..8), 1..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn narrowing_matches_brute_force_observer(lines in lines(14), fine in any::<bool>(), k in 2usize..4) {
        let mut bench = NarrowingFixture::new();
        let lines: Vec<PrintedLine> = lines.into_iter().map(|(s, raw, node)| (s, raw, if fine { node % 4 } else { node })).collect();
        prop_assert_eq!(bench.is_refused(&lines, k), bench.is_narrowed(&lines, k));
    }
}

#[test]
fn narrowing_accepts_and_refuses() {
    let mut bench = NarrowingFixture::new();
    let alike = |count: u64, node| (1..=count).map(move |s| (s, (1, 1), node)).collect::<Vec<PrintedLine>>();
    assert!(!bench.is_refused(&alike(2, 0), 2));
    let mut both = alike(2, 0);
    both.extend((3..5).map(|s| (s, (1, 1), 1)));
    assert!(bench.is_refused(&both, 2), "those of the coarser class would have left finer");
}
