//! Joined rows: verification refuses a row that shows a cell of another group.

use super::*;
use throng_core::plan::{Plan, PlanGroup};
use throng_core::treatment::batch_treatment::joined_layouts;

const NAMES: [&str; 5] = ["person", "age", "city", "mood", "illness"];

impl Bench {
    fn joined(mut self) -> Self {
        let group = |terms: &GroupTerms| PlanGroup {
            name: String::new(),
            quasi: terms.attributes.clone(),
            sensitive: Vec::new(),
            insensitive: Vec::new(),
            ranges: false,
            ladder: Vec::new(),
        };
        let plan = Plan::inactive(self.terms.iter().map(group).collect());
        let layouts = joined_layouts(&plan, &NAMES, |names, places| LineFormat::Json.joined_layout(names, places));
        for ((terms, layout), group) in self.terms.iter_mut().zip(layouts).zip(&mut self.proposed) {
            let narrow = std::mem::replace(&mut terms.layout, layout);
            let row = |(line, rows): (Vec<u8>, Vec<u32>)| {
                let (mut cells, mut row) = (Vec::new(), Vec::new());
                narrow.read(&line, &mut cells).expect("a fragment");
                terms.layout.write(&cells.iter().map(String::as_str).collect::<Vec<_>>(), &mut row);
                (row, rows)
            };
            let mut runs: Vec<_> = taken_apart(group).into_iter().map(row).collect();
            runs.sort();
            *group = put_together(&runs);
        }
        self
    }
}

fn tampered(group: usize, change: impl FnOnce(&mut Vec<(Vec<u8>, Vec<u32>)>)) -> Option<Violation> {
    let bench = two_towns().joined();
    let mut proposed = bench.proposed.clone();
    let mut runs = taken_apart(&proposed[group]);
    change(&mut runs);
    proposed[group] = put_together(&runs);
    bench.violation(proposed)
}

#[test]
fn joined_rows_pass_and_are_released_in_one_sorted_output() {
    let bench = two_towns().joined();
    let verified = bench.verify(bench.proposed.clone()).expect("passes");
    assert_eq!((verified.outputs(), verified.len(0), verified.len(1)), (1, 10, 10));
    let lines: Vec<(usize, String)> = verified
        .output(0)
        .into_iter()
        .map(|(group, line)| (group, String::from_utf8(line.bytes.to_vec()).expect("text")))
        .collect();
    assert!(lines.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{lines:?}");
    assert_eq!(lines[0], (0, r#"{"age":30,"city":"c0","mood":null,"illness":null}"#.to_owned()));
    assert_eq!(lines[19], (1, r#"{"age":null,"city":null,"mood":"m1","illness":"i1"}"#.to_owned()));
    let fragments = two_towns();
    let of_fragments = fragments.verify(fragments.proposed.clone()).expect("passes");
    assert_eq!(of_fragments.outputs(), 2);
    assert_eq!(verified.delta(), of_fragments.delta());
    assert_eq!((verified.risk(), verified.crowd()), (of_fragments.risk(), of_fragments.crowd()));
}

#[test]
fn joined_row_with_cell_of_other_group_is_refused() {
    for text in [
        r#"{"age":30,"city":"c0","mood":"m0","illness":null}"#,
        r#"{"age":30,"city":"c0","mood":null,"illness":"i0"}"#,
        r#"{"age":30,"city":"c0","mood":null,"illness":"*"}"#,
        r#"{"age":30,"city":"c0","mood":"","illness":null}"#,
        r#"{"age":30,"city":"c0","mood":null}"#,
        r#"{"age":30,"city":"c0"}"#,
        r#"{"city":"c0","mood":null,"illness":null}"#,
        r#"{"person":"p1","age":30,"city":"c0","mood":null,"illness":null}"#,
        r#"{"age":30,"city":"c0","mood":null,"illness":null,"person":"p1"}"#,
        r#"{"age":30,"city":"c0","illness":null,"mood":null}"#,
    ] {
        assert_eq!(tampered(0, |runs| runs[0].0 = text.into()), Some(Violation::UnreadableLine), "{text}");
    }
    let missing = r#"{"age":30,"city":"c1","mood":null,"illness":null}"#;
    let split = tampered(0, |runs| {
        let row = runs[0].1.remove(0);
        runs.insert(1, (missing.into(), vec![row]));
    });
    assert_eq!(split, Some(Violation::ClassBelowK), "its own cells are counted");
    assert_eq!(tampered(0, |runs| runs.swap(0, 1)), Some(Violation::Unsorted));
}

#[derive(Clone, Debug)]
struct Change {
    group: usize,
    run: usize,
    cell: usize,
    text: &'static str,
}

proptest! {
    #[test]
    fn random_cell_outside_group_is_refused(
        records in prop::collection::vec((0u8..12, 28u8..33, 0u8..2, 0u8..2, 0u8..2), 10..60),
        group in 0usize..2, run in any::<usize>(), cell in 0usize..4,
        text in prop::sample::select(vec!["30", "\"c0\"", "\"m0\"", "\"i0\"", "\"*\"", "null"]),
    ) {
        let bench = Bench::new(&records);
        let narrow = bench.violation(bench.proposed.clone());
        let bench = bench.joined();
        prop_assert_eq!(bench.violation(bench.proposed.clone()), narrow, "padding changes no verdict");
        let change = Change { group, run, cell, text };
        let mut proposed = bench.proposed.clone();
        let mut runs = taken_apart(&proposed[change.group]);
        prop_assume!(!runs.is_empty());
        let at = change.run % runs.len();
        let rows = LineFormat::Json.layout(&NAMES[1..]);
        let (mut cells, mut row) = (Vec::new(), Vec::new());
        rows.read(&runs[at].0, &mut cells).expect("a row");
        let before = std::mem::replace(&mut cells[change.cell], change.text.to_owned());
        rows.write(&cells.iter().map(String::as_str).collect::<Vec<_>>(), &mut row);
        runs[at].0 = row;
        runs.sort();
        proposed[change.group] = put_together(&runs);
        // The schema has the person as additional first attribute.
        let is_own = bench.terms[change.group].attributes.contains(&(change.cell + 1));
        if !is_own && change.text != "null" {
            prop_assert_eq!(bench.violation(proposed), Some(Violation::UnreadableLine));
        } else if before == change.text {
            prop_assert_eq!(bench.violation(proposed), narrow);
        }
    }
}
