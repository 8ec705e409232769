//! Compares the audits of a table in a file and in memory.

use super::*;
use crate::counting::codes::WrittenColumns;
use crate::counting::{BackendChoice, CodeWriter};
use crate::identifiers::IdentifierRule;
use crate::qid::QidStrategy as How;
use proptest::prelude::*;
use throng_core::values::dictionary::{Dictionary, FIRST_VALUE};
use throng_core::values::raw_batch::RawToken;
use throng_core::values::record_numbers::RecordNumbers;

fn columns(cells: &[Vec<Option<u8>>]) -> Vec<AuditColumn> {
    let column = |(number, cells): (usize, &Vec<Option<u8>>)| {
        let mut dictionary = Dictionary::new(None);
        let spelled = cells.iter().map(|cell| cell.map_or(String::new(), |cell| format!("v{cell}")));
        let codes = spelled.map(|text| dictionary.encode(RawToken::Untyped(&text)).expect("a text")).collect();
        AuditColumn { name: format!("c{number}"), role: None, recodable: number % 3 == 2, codes, dictionary }
    };
    cells.iter().enumerate().map(column).collect()
}

fn write_to_files(mut columns: Vec<AuditColumn>, subject: Option<usize>, memory: u64) -> ReadColumns {
    let directory = std::env::temp_dir();
    let rows = columns[0].codes.len();
    let mut writer = CodeWriter::new(Some(&directory), columns.len()).expect("a file");
    for (number, column) in columns.iter_mut().enumerate() {
        for codes in std::mem::take(&mut column.codes).chunks(7) {
            writer.append(number, codes).expect("written");
        }
    }
    let numbers = (0..columns.len()).filter(|number| Some(*number) != subject).collect();
    let people = subject.map(|number| (number, FIRST_VALUE));
    let subject = subject.map(|number| columns.remove(number).name);
    let written =
        WrittenColumns { writer, columns: numbers, rows, subject_column: people, directory: Some(directory), memory };
    ReadColumns { columns, unread_columns: Vec::new(), written, numbers: RecordNumbers::default(), subject }
}

fn without_storage_details(report: AuditReport) -> AuditReport {
    AuditReport { seconds: 0.0, timings: AuditTimings::default(), ..report }
}

fn tables() -> impl Strategy<Value = Vec<Vec<Option<u8>>>> {
    (1_usize..6, 1_usize..40, 1_u8..7).prop_flat_map(|(width, rows, values)| {
        let skewed = (0..values, 0..values).prop_map(|(a, b)| a.min(b));
        prop::collection::vec(prop::collection::vec(prop::option::weighted(0.9, skewed), rows), width)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn audit_of_file_equals_audit_of_memory(
        cells in tables(),
        subject in prop::option::of(0_usize..6),
        k in 2_u32..5,
        (mask, show) in (any::<bool>(), any::<bool>()),
        strategy in prop::sample::select(vec![How::Border, How::Greedy, How::Exhaustive]),
        rows in prop::sample::select(vec![0_usize, 3, 1000]),
        threads in 1_usize..3,
        memory in 1_u64 << 21..1 << 24,
        cramped in 0_u64..3000,
    ) {
        let subject = subject.filter(|number| *number < cells.len());
        let rule = IdentifierRule::for_file(0.8);
        let question = AuditRequest {
            input: "table".into(),
            k,
            singletons: if mask { SingletonPolicy::Mask } else { SingletonPolicy::Include },
            strategy,
            threads,
            backend: BackendChoice::Cpu,
            budget: None,
            memory: Some(memory),
            rows,
            read_seconds: 0.0,
        };
        let held = ReadColumns::from_memory(columns(&cells), RecordNumbers::default(), subject);
        let held = held.and_then(|held| prepare(held, rule, show));
        let files = prepare(write_to_files(columns(&cells), subject, cramped), rule, show);
        let (held, files) = match (held, files) {
            (Ok(held), Ok(files)) => (held, files),
            (held, files) => {
                prop_assert_eq!(held.err(), files.err());
                return Ok(());
            }
        };
        let here = audit(&held, &AuditRequest { memory: None, ..question.clone() }, &|_| ()).expect("audited");
        let there = audit(&files, &question, &|_| ()).expect("audited");
        prop_assert_eq!(without_storage_details(there), without_storage_details(here));
    }
}

#[test]
fn truncated_column_is_judged_by_the_records_read() {
    let cells: Vec<Vec<Option<u8>>> = vec![(0..40).map(|row| Some(row % 4)).collect(), (0..40).map(Some).collect()];
    let mut read = write_to_files(columns(&cells), None, 0);
    let mut name = read.columns.pop().expect("two columns");
    let counts: Vec<u64> = [0, 0].into_iter().chain((0..30).map(|_| 1)).collect();
    let given_up = PartialColumnCounts::of(&counts, &name.dictionary, false);
    name.dictionary = Dictionary::new(None);
    read.written.columns.pop();
    read.unread_columns.push((name, given_up));
    let table = prepare(read, IdentifierRule::for_file(0.8), false).expect("a table");
    let question = AuditRequest {
        input: "table".into(),
        k: 2,
        singletons: SingletonPolicy::Include,
        strategy: How::Border,
        threads: 1,
        backend: BackendChoice::Cpu,
        budget: None,
        memory: Some(1 << 22),
        rows: 0,
        read_seconds: 0.0,
    };
    let report = audit(&table, &question, &|_| ()).expect("audited");
    assert_eq!(report.standalone_identifiers, ["c1"]);
    assert_eq!(report.maximal_non_qids, [["c0"]]);
    let column = report.attributes.iter().find(|column| column.name == "c1").expect("it is told");
    assert_eq!((column.distinct, column.smallest_class, column.records_below_k, column.searched), (30, 1, 30, false));
    assert!(
        report.notes.iter().any(|note| note.contains("c1") && note.contains("first 30 records")),
        "{:?}",
        report.notes
    );
}
