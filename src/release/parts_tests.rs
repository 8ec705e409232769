use super::*;
use crate::anonymity::treatment::proposal::Run;
use crate::release::repetition::LineLimit;
use std::collections::BTreeMap;
use throng_core::values::codebook::books_of;
use throng_core::values::raw::Token;
use throng_formats::{LineFormat, LineLayout};

const STAR: &str = r#""*""#;
const ILLNESS: usize = 1;

/// A row: its number in the input, its person, place, illness, and whether it hides that.
type Row = (u32, u64, &'static str, &'static str, bool);

struct World {
    books: Vec<Codebook>,
    layout: LineLayout,
}

impl World {
    fn new(rows: &[Row]) -> Self {
        let text = "name = \"t\"\n[[attribute]]\nname = \"place\"\ntype = \"string\"\n\
                    [[attribute]]\nname = \"illness\"\ntype = \"string\"\nrole = \"sensitive\"\n";
        let layout = LineLayout::new(&LineFormat::Json, &["place", "illness"]);
        let mut world = Self { books: books_of(text, 100), layout };
        for (_, _, place, illness, _) in rows {
            world.books[0].encode(Token::Untyped(place)).expect("a text");
            world.books[1].encode(Token::Untyped(illness)).expect("a text");
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
            shown_beside: Vec::new(),
            holders_beside: Holders::default(),
        }
    }

    /// The truth about `parts`, k people a value.
    fn told(&self, parts: &[&[Row]], k: usize) -> Told {
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
        Told { holders: vec![(ILLNESS, by_code)], shown }
    }

    fn verify(&self, parts: &[&[Row]], told: Told, k: usize) -> Result<Whole, PartRefusal> {
        let mut verification = Parts::new(40, told, self.terms(), &self.books, k)?;
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
                proposed.runs.push(Run { line: start..proposed.arena.len(), rows: first..proposed.rows.len() });
            }
            let numbers: Vec<u32> = part.iter().map(|row| row.0).collect();
            let subjects: Vec<u64> = part.iter().map(|row| row.1).collect();
            let columns = vec![
                part.iter().map(|row| self.code(0, row.2)).collect(),
                part.iter().map(|row| self.code(ILLNESS, row.3)).collect(),
            ];
            let given = Given { subjects: &subjects, columns: &columns, waiting: 0, sequence: 0, age_ms: 0 };
            verification.part(proposed, &given, &numbers)?;
        }
        verification.whole()
    }

    /// Verifies what is told truly.
    fn truly(parts: &[&[Row]], k: usize) -> Result<Whole, PartRefusal> {
        let world = Self::new(&parts.concat());
        world.verify(parts, world.told(parts, k), k)
    }
}

fn of(violation: Violation) -> PartRefusal {
    PartRefusal::Part(Refusal { group: Some(0), violation })
}

const ONE: [Row; 2] = [(0, 1, "Aa", "flu", false), (1, 2, "Aa", "cold", false)];
const OTHER: [Row; 2] = [(2, 3, "Bb", "flu", false), (3, 4, "Bb", "cold", false)];

#[test]
fn a_value_may_have_its_people_in_several_parts() {
    let whole = World::truly(&[&ONE, &OTHER], 2).expect("each illness has two people");
    assert_eq!((whole.risk().lines, whole.risk().below_k), (4, 0));
    assert!((whole.risk().highest - 0.5).abs() < 1e-12 && (whole.risk().sum - 2.0).abs() < 1e-12);
}

#[test]
fn a_value_that_too_few_show_in_all_parts_is_refused() {
    let other = [OTHER[0], (3, 4, "Bb", "gout", false)];
    assert_eq!(World::truly(&[&ONE, &other], 2).expect_err("gout"), of(Violation::SensitiveBelowK));
    // Somebody is said to have it elsewhere: the part believes it, the whole does not.
    let world = World::new(&[&ONE[..], &other[..]].concat());
    let mut told = world.told(&[&ONE, &other], 2);
    for illness in ["gout", "cold"] {
        told.holders[0].1[world.code(ILLNESS, illness) as usize] = vec![4, 9];
    }
    assert_eq!(world.verify(&[&ONE, &other], told, 2).expect_err("9 is nobody"), PartRefusal::SensitiveBelowK);
    // The same person in both parts is one.
    let other = [(2, 1, "Bb", "flu", false), OTHER[1], (4, 5, "Bb", "cold", false)];
    assert_eq!(World::truly(&[&ONE, &other], 2).expect_err("flu"), of(Violation::SensitiveBelowK));
}

#[test]
fn what_a_part_is_told_must_be_seen() {
    let world = World::new(&[&ONE[..], &OTHER[..]].concat());
    let mut told = world.told(&[&ONE, &OTHER], 3);
    told.holders[0].1[world.code(ILLNESS, "flu") as usize].push(9);
    assert_eq!(world.verify(&[&ONE, &OTHER], told, 2).expect_err("9 is nobody"), PartRefusal::Untrue);
    let told = Told { shown: Vec::new(), ..world.told(&[&ONE, &OTHER], 2) };
    assert_eq!(world.verify(&[&ONE, &OTHER], told, 2).expect_err("it is shown"), PartRefusal::Untrue);
}

#[test]
fn no_class_and_no_row_is_in_two_parts() {
    let again = [(2, 3, "Aa", "flu", false), (3, 4, "Aa", "cold", false)];
    assert_eq!(World::truly(&[&ONE, &again], 2).expect_err("Aa"), PartRefusal::DividedClass);
    let twice = [OTHER[0], (1, 4, "Bb", "cold", false)];
    assert_eq!(World::truly(&[&ONE, &twice], 2).expect_err("row 1"), of(Violation::WrongRow));
    let beyond = [OTHER[0], (99, 4, "Bb", "cold", false)];
    assert_eq!(World::truly(&[&ONE, &beyond], 2).expect_err("row 99"), of(Violation::WrongRow));
    let (one, small) = ([ONE[0], ONE[1], (5, 6, "Aa", "cold", false)], [OTHER[0]]);
    assert_eq!(World::truly(&[&one, &small], 2).expect_err("one of Bb"), of(Violation::ClassBelowK));
}

/// All of Bb hide, and both have what nobody else has: `*` says it, where others show theirs.
#[test]
fn a_part_that_hides_all_is_told_apart_by_it() {
    let hiding = [(2, 3, "Bb", "gout", true), (3, 3, "Bb", "gout", true), (4, 4, "Bb", "cold", true)];
    let one = [ONE[0], ONE[1], (5, 5, "Aa", "flu", false), (6, 6, "Aa", "cold", false)];
    assert!(World::truly(&[&one, &hiding], 2).is_ok(), "3 is one of two");
    let telling = [(2, 3, "Bb", "gout", true), (3, 4, "Bb", "plague", true), (4, 0, "Bb", "gout", true)];
    assert_eq!(World::truly(&[&one, &telling], 2).expect_err("gout"), of(Violation::TellingCell));
    // Where nobody shows any, it tells nothing.
    let silent: Vec<Row> = one.iter().map(|row| (row.0, row.1, row.2, row.3, true)).collect();
    assert!(World::truly(&[&silent, &telling], 2).is_ok());
}
