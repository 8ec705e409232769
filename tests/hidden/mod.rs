//! Threat 26: sensitive cells that are not exact. The tests count the subjects that show a text and the values it may
//! hide.

use crate::support;

mod observer;
mod small;

use observer::{Cell, Row, too_telling};
use proptest::prelude::*;
use small::Bench;
use support::schemas::schema;
use support::stand::{Fault, Stand, record};
use throng::daemon::state::records::Flush;
use throng_core::release::verify::Violation;

const SCHEMA: &str = schema!("clinic"; person, text "zip", sensitive "diagnosis");
const K: usize = 5;
const NOW: i64 = 1_700_000_000_000;

/// 2,000 people in 20 postal codes with three common diagnoses; persons 137, 800, 1204 and 1777 have a rare one.
fn diagnosis(person: usize) -> &'static str {
    if [137, 800, 1204, 1777].contains(&person) { "hiv" } else { ["flu", "asthma", "migraine"][person / 20 % 3] }
}

/// Returns the lines of the second of two batches: zip, person, printed diagnosis.
fn clinic(settings: &str) -> Vec<(String, usize, String)> {
    let mut stand = Stand::new(SCHEMA, &format!("[privacy]\nk = {K}\n{settings}"));
    for batch in 0..2 {
        let record = |person: usize| {
            let (zip, diagnosis) = (8000 + person % 20, diagnosis(person));
            record(format!(r#"{{"person":"p{person}","zip":"{zip}","diagnosis":"{diagnosis}"}}"#))
        };
        let records: Vec<_> = (0..2000).map(record).collect();
        stand.offer(&records, Flush::No, NOW + batch, Fault::Nothing);
    }
    let last = stand.sink.lines.iter().map(|line| line.batch).max().expect("lines");
    let of = |text: &serde_json::Value, name: &str| text[name].as_str().expect("a text").to_owned();
    let lines = stand.sink.lines.iter().filter(|line| line.batch == last);
    lines
        .map(|line| {
            let text: serde_json::Value = serde_json::from_str(&line.text).expect("a JSON line");
            let person = usize::try_from(line.source.2).expect("an offset") % 2000;
            (of(&text, "zip"), person, of(&text, "diagnosis"))
        })
        .collect()
}

fn assert_nobody_is_named(settings: &str) {
    let lines = clinic(settings);
    assert_eq!(lines.len(), 2000, "everybody leaves");
    let starred: Vec<_> = lines.iter().filter(|line| line.2 == "*").collect();
    assert!(starred.iter().filter(|line| diagnosis(line.1) == "hiv").count() == 4, "four are too few to be printed");
    assert!(starred.len() <= 4 * 2 * K, "{} lines hide: covers are few", starred.len());
    for line in &starred {
        let alike: Vec<_> = starred.iter().filter(|other| other.0 == line.0).collect();
        let rare = alike.iter().filter(|other| diagnosis(other.1) == "hiv").count();
        assert!(alike.len() >= K, "the * of {} is shown by {} people only", line.0, alike.len());
        assert!(2 * rare <= alike.len(), "the * of {} is hiv for {rare} of {}", line.0, alike.len());
    }
}

#[test]
fn threat_26_suppressed_cell_does_not_reveal_rare_value() {
    assert_nobody_is_named("");
}

#[test]
fn threat_26_suppressed_cell_hides_rare_value_under_l_diversity() {
    assert_nobody_is_named(
        "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"diagnosis\"\ndiversity = \"distinct\"\nl = 2\n",
    );
}

#[test]
fn threat_26_suppressed_cell_hides_rare_value_under_t_closeness() {
    assert_nobody_is_named("[[privacy.model]]\nkind = \"t_closeness\"\nattribute = \"diagnosis\"\nt = 0.6\n");
}

fn row() -> impl Strategy<Value = Row> {
    let illness = prop_oneof![4 => 0u8..2, 3 => 2u8..6, 1 => 6u8..8];
    (0u64..9, 0u8..3, illness, prop_oneof![3 => 0u8..2, 2 => 2u8..8]).prop_map(|(subject, age, illness, income)| Row {
        subject,
        age,
        illness,
        income,
    })
}

fn batches() -> impl Strategy<Value = Vec<Vec<Row>>> {
    prop::collection::vec(prop::collection::vec(row(), 0..26), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn treated_batch_reveals_no_hidden_value(
        batches in batches(),
        k in 2usize..5,
        groups in 0usize..4,
    ) {
        let mut bench = Bench::new(k, groups);
        for rows in &batches {
            let treated = bench.treat(rows);
            prop_assert_eq!(too_telling(&bench, rows, &treated), None);
            prop_assert_eq!(&bench.treat(rows).groups, &treated.groups, "a second attempt");
            let verified = bench.verify(rows, treated.lines(&bench));
            prop_assert!(verified.is_ok(), "{:?}", verified.err());
        }
    }

    /// `RevealingCell` only if the observer learns something.
    #[test]
    fn revealing_cell_is_refused_by_verification(
        rows in prop::collection::vec(row(), 0..26),
        k in 2usize..4,
        groups in 0usize..4,
        stars in prop::collection::vec((any::<prop::sample::Index>(), 0usize..2, any::<bool>()), 1..8),
    ) {
        let mut bench = Bench::new(k, groups);
        let mut treated = bench.treat(&rows);
        for (row, side, star) in stars {
            if !rows.is_empty() {
                let cell = if star { Cell::Star } else { Cell::Own };
                treated.change(row.index(rows.len()), side, cell, &bench);
            }
        }
        let told = too_telling(&bench, &rows, &treated);
        match bench.verify(&rows, treated.lines(&bench)).err().map(|refusal| refusal.violation) {
            None => prop_assert_eq!(told, None),
            Some(Violation::RevealingCell) => prop_assert!(told.is_some()),
            // The batch also breaks another rule.
            Some(_) => {}
        }
    }
}
