//! Reports of small tables, computed by hand.

use super::*;
use crate::counting::BackendChoice;
use crate::identifiers::{IdentifierReason, IdentifierRule};
use crate::qid::QidStrategy;
use throng_core::values::dictionary::Dictionary;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::record_numbers::RecordNumbers;

fn column(name: &str, cells: &[&str]) -> AuditColumn {
    let mut dictionary = Dictionary::new(None);
    let codes = cells.iter().map(|cell| dictionary.encode(RawToken::Untyped(cell)).expect("a text")).collect();
    AuditColumn { name: name.to_owned(), role: None, recodable: false, codes, dictionary }
}

fn question(k: u32, singletons: SingletonPolicy) -> AuditRequest {
    AuditRequest {
        input: "table".into(),
        k,
        singletons,
        strategy: QidStrategy::Exhaustive,
        threads: 1,
        backend: BackendChoice::Cpu,
        budget: None,
        memory: None,
        rows: 0,
        read_seconds: 0.0,
    }
}

fn report(
    columns: Vec<AuditColumn>,
    subject: Option<usize>,
    k: u32,
    singletons: SingletonPolicy,
    show: bool,
) -> AuditReport {
    let read = ReadColumns::from_memory(columns, RecordNumbers::default(), subject).expect("columns");
    let table = prepare(read, IdentifierRule::for_file(0.8), show).expect("a table");
    audit(&table, &question(k, singletons), &|_| {}).expect("a report")
}

/// Each sex and city belongs to at least two; (f, Bern) and the age 52 to one.
fn people() -> Vec<AuditColumn> {
    vec![
        column(
            "ssn",
            &[
                "078-05-1120",
                "078-05-1121",
                "078-05-1122",
                "078-05-1123",
                "078-05-1124",
                "078-05-1125",
                "078-05-1126",
                "078-05-1127",
            ],
        ),
        column("sex", &["m", "m", "m", "m", "f", "f", "f", "m"]),
        column("city", &["Bern", "Bern", "Zug", "Zug", "Zug", "Zug", "Bern", "Bern"]),
        column("age", &["30", "30", "30", "30", "30", "30", "30", "52"]),
    ]
}

fn names(sets: &[Vec<String>]) -> Vec<String> {
    sets.iter().map(|set| set.join("+")).collect()
}

#[test]
fn report_equals_manual_calculation() {
    let report = report(people(), None, 2, SingletonPolicy::Include, false);
    assert_eq!((report.rows, report.subjects, report.complete), (8, None, true));
    assert_eq!(report.standalone_identifiers, ["ssn"]);
    assert_eq!(names(&report.minimal_qids), ["age", "city+sex"]);
    assert_eq!(names(&report.maximal_non_qids), ["city", "sex"]);
    // (m, Bern, 30) ×2, (m, Zug, 30) ×2, (f, Zug, 30) ×2, (f, Bern, 30), (m, Bern, 52).
    let risk = &report.risk.risk;
    assert_eq!((report.risk.attributes, risk.classes, risk.smallest_class), (3, 5, 1));
    assert_eq!((risk.records_below_k, risk.share_below_k, risk.average), (2, 0.25, 5.0 / 8.0));
    let reach: Vec<(usize, u64)> = report.risk.reach.iter().map(|r| (r.size, r.records)).collect();
    assert_eq!(reach, [(1, 1), (2, 2)]);
    let qids: Vec<(String, u64, u64)> =
        report.qids.iter().map(|q| (q.attributes.join("+"), q.classes_below_k, q.records_below_k)).collect();
    assert_eq!(qids, [("age".into(), 1, 1), ("city+sex".into(), 1, 1)]);
    let weights: Vec<(&str, f64, u64, Option<usize>)> =
        report.attributes.iter().map(|a| (a.name.as_str(), a.involvement, a.records_at_risk, a.smallest_qid)).collect();
    assert_eq!(
        weights,
        [("age", 0.5, 1, Some(1)), ("city", 0.25, 1, Some(2)), ("sex", 0.25, 1, Some(2)), ("ssn", 0.0, 0, None)]
    );
    let ssn = &report.attributes[3];
    assert!(
        matches!(ssn.identifier[..], [IdentifierReason::Shape { .. }, IdentifierReason::Injective]),
        "{:?}",
        ssn.identifier
    );
    assert!(report.qids.iter().all(|qid| qid.example.is_none()));
}

#[test]
fn masking_removes_rare_values_and_keeps_the_column() {
    let report = report(people(), None, 2, SingletonPolicy::Mask, true);
    // 52 is now *, which is still unique.
    assert_eq!((names(&report.minimal_qids), report.masked_cells), (vec!["age".into(), "city+sex".into()], 1));
    let examples: Vec<_> = report.qids.iter().map(|qid| qid.example.clone().expect("values were asked for")).collect();
    assert_eq!(examples, [vec!["*"], vec!["Bern", "f"]]);
    let mut two = people();
    two[3] = column("age", &["30", "30", "30", "30", "30", "30", "51", "52"]);
    let report = super::tests::report(two, None, 2, SingletonPolicy::Mask, false);
    assert_eq!((names(&report.minimal_qids), report.masked_cells), (vec!["age+sex".into(), "city+sex".into()], 2));
}

#[test]
fn records_without_subject_are_left_out() {
    let columns = || {
        vec![
            column("who", &["a", "a", "a", "b", "c", ""]),
            column("city", &["Zug", "Zug", "Zug", "Bern", "Bern", "Chur"]),
            column("badge", &["1", "1", "1", "2", "3", "9"]),
        ]
    };
    let report = report(columns(), Some(0), 2, SingletonPolicy::Include, false);
    assert_eq!((report.rows, report.subjects, report.without_subject), (5, Some(3), 1));
    assert_eq!(report.standalone_identifiers, ["badge"], "one a person, whatever the number of records");
    assert_eq!(names(&report.minimal_qids), ["city"]);
    let risk = &report.risk.risk;
    assert_eq!((risk.records_below_k, risk.people_below_k, risk.share_people_below_k), (3, 1, 1.0 / 3.0));
    let nobody = vec![column("who", &["", ""]), column("x", &["1", "1"])];
    let refused = ReadColumns::from_memory(nobody, RecordNumbers::default(), Some(0))
        .and_then(|read| prepare(read, IdentifierRule::for_file(0.8), false))
        .expect_err("refused");
    assert_eq!(refused, AuditError::WithoutSubjects { column: "who".into() });
}

#[test]
fn riskiest_records_have_numbers_and_column_names() {
    let table = ReadColumns::from_memory(people(), RecordNumbers::default(), None)
        .and_then(|read| prepare(read, IdentifierRule::for_file(0.8), false))
        .expect("a table");
    let asked = AuditRequest { rows: 2, ..question(2, SingletonPolicy::Include) };
    let found = audit(&table, &asked, &|_| {}).expect("a report").riskiest.expect("it was asked for");
    assert_eq!((found.largest, found.complete, found.at_risk), (3, true, 2));
    // (3 − 1)·(3 − 2) for the age of the eighth record, 3 − 2 for the woman in Bern.
    let records: Vec<(u64, f64, Vec<String>)> =
        found.records.iter().map(|record| (record.record, record.score, names(&record.combinations))).collect();
    assert_eq!(records, [(8, 2.0, vec!["age".into()]), (7, 1.0, vec!["city+sex".into()])]);
    assert!(report(people(), None, 2, SingletonPolicy::Include, false).riskiest.is_none());
}

#[test]
fn audit_handles_degenerate_tables() {
    let one_row = report(vec![column("a", &["1"]), column("b", &["2"])], None, 2, SingletonPolicy::Include, false);
    assert_eq!((names(&one_row.minimal_qids), one_row.maximal_non_qids.len()), (vec!["a".into(), "b".into()], 0));
    assert!(one_row.notes.iter().any(|note| note.contains("exceeds the 1 records")), "{:?}", one_row.notes);
    let constant =
        report(vec![column("a", &["1"; 5]), column("b", &["2"; 5])], None, 2, SingletonPolicy::Include, false);
    assert_eq!((constant.minimal_qids.len(), names(&constant.maximal_non_qids)), (0, vec!["a+b".into()]));
    assert_eq!((constant.risk.risk.highest, constant.risk.risk.share_below_k), (0.2, 0.0));
    let unique =
        report(vec![column("a", &["1", "2"]), column("b", &["x", "y"])], None, 2, SingletonPolicy::Include, false);
    assert_eq!(unique.standalone_identifiers, ["a", "b"]);
    assert_eq!((unique.minimal_qids.len(), unique.maximal_non_qids.len(), unique.evaluated), (0, 0, 0));
    assert!(unique.notes.iter().any(|note| note.contains("no column is left")), "{:?}", unique.notes);
}

#[test]
fn report_does_not_depend_on_column_order() {
    let forth = report(people(), None, 3, SingletonPolicy::Include, false);
    let mut columns = people();
    columns.reverse();
    let back = report(columns, None, 3, SingletonPolicy::Include, false);
    assert_eq!((forth.minimal_qids, forth.maximal_non_qids), (back.minimal_qids, back.maximal_non_qids));
    assert_eq!((forth.attributes, forth.qids), (back.attributes, back.qids));
}

#[test]
fn report_shows_values_only_on_request() {
    let text = |show| serde_json::to_string(&report(people(), None, 2, SingletonPolicy::Include, show)).expect("JSON");
    assert!(!text(false).contains("Bern") && !text(false).contains("078-05") && !text(false).contains("52\""));
    assert!(text(true).contains("Bern"));
}
