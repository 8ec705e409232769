use super::*;
use crate::line_encoder::{LineEncoder, LineLayout};
use crate::release::line_limits::LineLimit;
use crate::treatment::proposal::LineRun;
use crate::values::codebook::test_codebooks;
use crate::values::raw_batch::RawToken;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

const STAR: &str = r#""*""#;
const ILLNESS: usize = 1;

/// Row number, subject, place, illness, hidden.
type PartRow = (u32, u64, &'static str, &'static str, bool);

#[derive(Debug)]
struct TestLines;

impl LineEncoder for TestLines {
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>) {
        out.extend(format!("{{\"place\":{},\"illness\":{}}}", cells[0], cells[1]).as_bytes());
    }

    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        let keys: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(line).ok()?;
        let cell = |name: &str| keys.get(name).map_or_else(String::new, |value| value.get().to_owned());
        *cells = vec![cell("place"), cell("illness")];
        Some(())
    }
}

struct PartFixture {
    books: Vec<Codebook>,
    layout: LineLayout,
}

impl PartFixture {
    fn new(rows: &[PartRow]) -> Self {
        let text = "name = \"t\"\n[[attribute]]\nname = \"place\"\ntype = \"string\"\n\
                    [[attribute]]\nname = \"illness\"\ntype = \"string\"\nrole = \"sensitive\"\n";
        let layout = LineLayout::new(Arc::new(TestLines));
        let mut world = Self { books: test_codebooks(text, 100), layout };
        for (_, _, place, illness, _) in rows {
            world.books[0].encode(RawToken::Untyped(place)).expect("a text");
            world.books[1].encode(RawToken::Untyped(illness)).expect("a text");
        }
        world
    }

    fn code(&self, attribute: usize, value: &str) -> u32 {
        let known = |code: &u32| self.books[attribute].canonical(*code) == format!("{value:?}");
        (0..self.books[attribute].codes() as u32).find(known).expect("a known value")
    }

    fn terms(&self) -> GroupTerms {
        GroupTerms {
            attributes: vec![0, 1],
            quasi: vec![true, false],
            sensitive: vec![false, true],
            layout: self.layout.clone(),
            base: 1,
            sensitive_bases: vec![10 << 64, 20 << 64],
            protected: Vec::new(),
            narrowing: None,
            lines: LineLimit::None,
            ranges: false,
            shown_elsewhere: Vec::new(),
            holders_elsewhere: SubjectsByValue::default(),
        }
    }

    fn true_premises(&self, parts: &[&[PartRow]], k: usize) -> PartPremises {
        let mut by_code = vec![Vec::new(); self.books[ILLNESS].codes()];
        let mut shown = Vec::new();
        for &&(_, person, _, illness, hides) in &parts.iter().flat_map(|part| part.iter()).collect::<Vec<_>>() {
            let people: &mut Vec<u64> = &mut by_code[self.code(ILLNESS, illness) as usize];
            if person != NO_SUBJECT && people.len() < k && !people.contains(&person) {
                people.push(person);
            }
            if !hides {
                shown = vec![ILLNESS];
            }
        }
        PartPremises { holders: vec![(ILLNESS, by_code)], shown }
    }

    fn verify(&self, parts: &[&[PartRow]], told: PartPremises, k: usize) -> Result<ReleasePermit, PartRefusal> {
        let mut verification = PartVerifier::new(40, told, self.terms(), &self.books, k)?;
        for part in parts {
            let mut lines: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
            for (row, (_, _, place, illness, hides)) in (0..).zip(*part) {
                let mut line = Vec::new();
                let texts = [format!("{place:?}"), if *hides { STAR.to_owned() } else { format!("{illness:?}") }];
                self.layout.write(&[&texts[0], &texts[1]], &mut line);
                lines.entry(line).or_default().push(row);
            }
            let mut proposed = ProposedGroup::default();
            for (line, rows) in lines {
                let (start, first) = (proposed.arena.len(), proposed.rows.len());
                proposed.arena.extend_from_slice(&line);
                proposed.rows.extend(rows);
                proposed.runs.push(LineRun { line: start..proposed.arena.len(), rows: first..proposed.rows.len() });
            }
            let numbers: Vec<u32> = part.iter().map(|row| row.0).collect();
            let subjects: Vec<u64> = part.iter().map(|row| row.1).collect();
            let columns = vec![
                part.iter().map(|row| self.code(0, row.2)).collect(),
                part.iter().map(|row| self.code(ILLNESS, row.3)).collect(),
            ];
            let given = VerifierInput { subjects: &subjects, columns: &columns, waiting: 0, sequence: 0, age_ms: 0 };
            verification.verify_part(proposed, &given, &numbers)?;
        }
        verification.finish_release()
    }

    fn verify_truth(parts: &[&[PartRow]], k: usize) -> Result<ReleasePermit, PartRefusal> {
        let world = Self::new(&parts.concat());
        world.verify(parts, world.true_premises(parts, k), k)
    }
}

fn of(violation: Violation) -> PartRefusal {
    PartRefusal::Part(BatchRefusal { group: Some(0), violation })
}

const ONE: [PartRow; 2] = [(0, 1, "Aa", "flu", false), (1, 2, "Aa", "cold", false)];
const OTHER: [PartRow; 2] = [(2, 3, "Bb", "flu", false), (3, 4, "Bb", "cold", false)];

#[test]
fn sensitive_value_counts_subjects_of_all_parts() {
    let whole = PartFixture::verify_truth(&[&ONE, &OTHER], 2).expect("each illness has two people");
    assert_eq!((whole.risk().lines, whole.risk().below_k), (4, 0));
    assert!((whole.risk().highest - 0.5).abs() < 1e-12 && (whole.risk().sum - 2.0).abs() < 1e-12);
}

#[test]
fn sensitive_value_below_k_over_all_parts_is_refused() {
    let other = [OTHER[0], (3, 4, "Bb", "gout", false)];
    assert_eq!(PartFixture::verify_truth(&[&ONE, &other], 2).expect_err("gout"), of(Violation::SensitiveBelowK));
    // The part accepts subjects of another part, the whole does not.
    let world = PartFixture::new(&[&ONE[..], &other[..]].concat());
    let mut told = world.true_premises(&[&ONE, &other], 2);
    for illness in ["gout", "cold"] {
        told.holders[0].1[world.code(ILLNESS, illness) as usize] = vec![4, 9];
    }
    assert_eq!(world.verify(&[&ONE, &other], told, 2).expect_err("9 is nobody"), PartRefusal::SensitiveBelowK);
    let other = [(2, 1, "Bb", "flu", false), OTHER[1], (4, 5, "Bb", "cold", false)];
    assert_eq!(PartFixture::verify_truth(&[&ONE, &other], 2).expect_err("flu"), of(Violation::SensitiveBelowK));
}

#[test]
fn unconfirmed_premise_is_refused() {
    let world = PartFixture::new(&[&ONE[..], &OTHER[..]].concat());
    let mut told = world.true_premises(&[&ONE, &OTHER], 3);
    told.holders[0].1[world.code(ILLNESS, "flu") as usize].push(9);
    assert_eq!(world.verify(&[&ONE, &OTHER], told, 2).expect_err("9 is nobody"), PartRefusal::FalsePremise);
    let told = PartPremises { shown: Vec::new(), ..world.true_premises(&[&ONE, &OTHER], 2) };
    assert_eq!(world.verify(&[&ONE, &OTHER], told, 2).expect_err("it is shown"), PartRefusal::FalsePremise);
}

#[test]
fn class_or_row_in_two_parts_is_refused() {
    let again = [(2, 3, "Aa", "flu", false), (3, 4, "Aa", "cold", false)];
    assert_eq!(PartFixture::verify_truth(&[&ONE, &again], 2).expect_err("Aa"), PartRefusal::DividedClass);
    let twice = [OTHER[0], (1, 4, "Bb", "cold", false)];
    assert_eq!(PartFixture::verify_truth(&[&ONE, &twice], 2).expect_err("row 1"), of(Violation::WrongRow));
    let beyond = [OTHER[0], (99, 4, "Bb", "cold", false)];
    assert_eq!(PartFixture::verify_truth(&[&ONE, &beyond], 2).expect_err("row 99"), of(Violation::WrongRow));
    let (one, small) = ([ONE[0], ONE[1], (5, 6, "Aa", "cold", false)], [OTHER[0]]);
    assert_eq!(PartFixture::verify_truth(&[&one, &small], 2).expect_err("one of Bb"), of(Violation::ClassBelowK));
}

/// Only Bb hides illnesses, which reveals its unique ones.
#[test]
fn part_that_hides_all_is_judged_if_others_show() {
    let hiding = [(2, 3, "Bb", "gout", true), (3, 3, "Bb", "gout", true), (4, 4, "Bb", "cold", true)];
    let one = [ONE[0], ONE[1], (5, 5, "Aa", "flu", false), (6, 6, "Aa", "cold", false)];
    assert!(PartFixture::verify_truth(&[&one, &hiding], 2).is_ok(), "3 is one of two");
    let telling = [(2, 3, "Bb", "gout", true), (3, 4, "Bb", "plague", true), (4, 0, "Bb", "gout", true)];
    assert_eq!(PartFixture::verify_truth(&[&one, &telling], 2).expect_err("gout"), of(Violation::RevealingCell));
    let silent: Vec<PartRow> = one.iter().map(|row| (row.0, row.1, row.2, row.3, true)).collect();
    assert!(PartFixture::verify_truth(&[&silent, &telling], 2).is_ok());
}
