//! Compares file tables, counted with little memory, with the reference.

use super::tests::reference_count;
use super::tuple_keys::{NumberedRows, TuplePacking, TuplePartition};
use crate::counting::codes::{CodeBlock, CodeTable, CodeWriter, PreparedTable, WrittenColumns};
use crate::counting::{AttributeSet, ClassSummary, CountedTable, CpuCounter, GroupCounter};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// With `named`, the last column has subjects; 0 is none.
fn table_in_file(columns: &[Vec<u32>], piece: usize, named: bool, memory: u64) -> PreparedTable {
    let directory = std::env::temp_dir();
    let mut writer = CodeWriter::new(Some(&directory), columns.len()).expect("a file");
    let rows = columns[0].len();
    for start in (0..rows).step_by(piece) {
        for (number, column) in columns.iter().enumerate() {
            writer.append(number, &column[start..rows.min(start + piece)]).expect("written");
        }
    }
    let last = columns.len() - 1;
    let (columns, people) = if named { ((0..last).collect(), Some((last, 1))) } else { ((0..=last).collect(), None) };
    let directory = Some(directory);
    CodeTable::from_written(WrittenColumns { writer, columns, rows, subject_column: people, directory, memory })
        .expect("a table")
}

fn table_in_memory(columns: &[Vec<u32>], named: bool) -> CountedTable {
    if !named {
        return CountedTable::new(columns.to_vec(), None).expect("a table");
    }
    let (people, columns) = columns.split_last().expect("people");
    let kept = |column: &Vec<u32>| column.iter().zip(people).filter(|(_, p)| **p > 0).map(|(c, _)| *c).collect();
    CountedTable::new(columns.iter().map(kept).collect(), Some(kept(people))).expect("a table")
}

fn column_strategy() -> impl Strategy<Value = Vec<Vec<u32>>> {
    (2_usize..6, 1_usize..60, 1_u32..9, 0_u32..3).prop_flat_map(|(width, rows, values, far)| {
        let code = (0..values).prop_map(move |code| if code > 3 { code + far * 300 } else { code });
        prop::collection::vec(prop::collection::vec(code, rows), width)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn counts_over_file_with_little_memory_match_reference(
        columns in column_strategy(),
        piece in 1_usize..50,
        named in any::<bool>(),
        memory in 0_u64..3000,
        k in 2_u32..6,
        threads in 1_usize..3,
    ) {
        let (there, here) = (table_in_file(&columns, piece, named, memory), table_in_memory(&columns, named));
        let table = &there.table;
        prop_assert_eq!((table.rows(), table.width(), table.subjects()), (here.rows(), here.width(), here.subjects()));
        for column in 0..here.width() {
            prop_assert_eq!(table.cardinality(column), here.cardinality(column));
        }
        let every = |mask: u32| (0..here.width()).filter(|c| mask >> c & 1 == 1).collect::<AttributeSet>();
        let sets: Vec<AttributeSet> = (1..1 << here.width()).map(every).collect();
        let counter = CpuCounter::with_memory(table, threads, memory);
        let expected: Vec<(ClassSummary, Vec<u32>)> = sets.iter().map(|set| reference_count(&here, set, k)).collect();
        prop_assert_eq!(counter.count(&sets, k), Ok(expected.iter().map(|(count, _)| *count).collect()));
        let verdicts = expected.iter().map(|(count, _)| Some(count.is_qid())).collect();
        prop_assert_eq!(counter.judge(&sets, k, &|| false), Ok(verdicts));
        let mut below = vec![BTreeSet::new(); sets.len()];
        counter.visit_records_below(&sets, &[], k, &mut |at, row, _| below[at].extend([row])).expect("read");
        for ((set, below), (_, rows)) in sets.iter().zip(below).zip(&expected) {
            prop_assert_eq!(rows, &below.into_iter().collect::<Vec<u32>>());
            prop_assert_eq!(counter.records_below(set, k), Ok(rows.clone()));
            prop_assert_eq!(counter.first_below(set, k), Ok(rows.first().copied()));
        }
        prop_assert_eq!(CodeTable::from_counted_table(&here).to_counted_table(), Some(here.clone()));
        for row in 0..here.rows() {
            let all: Vec<usize> = (0..here.width()).collect();
            let codes: Vec<u32> = all.iter().map(|c| here.column(*c)[row]).collect();
            prop_assert_eq!(table.row_codes(row as u32, &all).expect("read"), codes);
        }
    }

    #[test]
    fn tuples_beyond_64_bits_are_distinguished(
        columns in prop::collection::vec(prop::collection::vec(0_u32..40, 40), 16..20),
        alike in 0_usize..40,
        memory in 0_u64..2000,
    ) {
        let copied = |mut column: Vec<u32>| {
            column[alike] = column[0];
            column.extend(0..40);
            column
        };
        let columns: Vec<Vec<u32>> = columns.into_iter().map(copied).collect();
        let (there, here) = (table_in_file(&columns, 64, false, 0), table_in_memory(&columns, false));
        let sets = [AttributeSet::first(columns.len()), AttributeSet::from_iter([0, 3, 5])];
        let counter = CpuCounter::with_memory(&there.table, 1, memory);
        prop_assert_eq!(counter.count(&sets, 2), Ok(sets.iter().map(|set| reference_count(&here, set, 2).0).collect()));
    }
}

#[test]
fn judgement_reads_until_all_classes_reach_k() {
    let rows = 150_000_u32;
    let turn = |of: u32| (0..rows).map(|row| row / 3 % of).collect::<Vec<u32>>();
    let mut late = turn(5);
    late[rows as usize - 1] = 5;
    let mut early = turn(7);
    early[0] = 7;
    let people = (0..rows).map(|row| 1 + row / 3).collect();
    let columns = vec![turn(4), turn(2), late, early, people];
    for named in [false, true] {
        let (there, here) = (table_in_file(&columns, 40_000, named, 1 << 24), table_in_memory(&columns, named));
        let every = |mask: u32| (0..4).filter(|c| mask >> c & 1 == 1).collect::<AttributeSet>();
        let sets: Vec<AttributeSet> = (1..1 << 4).map(every).collect();
        let counter = CpuCounter::with_memory(&there.table, 2, 1 << 26);
        for k in [2, 300, 20_000] {
            let verdicts = counter.judge(&sets, k, &|| false).expect("read");
            let expected: Vec<(ClassSummary, Vec<u32>)> =
                sets.iter().map(|set| reference_count(&here, set, k)).collect();
            assert!(
                verdicts.iter().eq(expected.iter().map(|(count, _)| Some(count.is_qid())).collect::<Vec<_>>().iter()),
                "{named} {k}"
            );
            let mut below = vec![BTreeSet::new(); sets.len()];
            counter.visit_records_below(&sets, &[], k, &mut |at, row, _| below[at].extend([row])).expect("read");
            for ((set, below), (_, rows)) in sets.iter().zip(below).zip(&expected) {
                assert!(below.iter().eq(rows), "{named} {k} {set:?}");
            }
        }
        // Correlated columns: half of the pairs never occur.
        assert_eq!(
            counter.judge(&[every(3), every(4), every(8)], 2, &|| false),
            Ok(vec![Some(false), Some(true), Some(true)])
        );
    }
}

#[test]
fn tuple_numbers_of_several_groups_are_distinct() {
    let radix = 1_usize << 31;
    let packing = TuplePacking::new(&[radix, radix, 4, 3, radix]);
    assert_eq!(packing.domain(), None, "several groups");
    let ends = [0, (1 << 31) - 1];
    let tuples: Vec<[u32; 5]> =
        ends.iter().flat_map(|a| ends.iter().flat_map(move |b| (0..3).map(move |c| [*a, *b, c, c, *b]))).collect();
    let codes = (0..5).map(|column| tuples.iter().map(|tuple| tuple[column]).collect()).collect();
    let block = CodeBlock { codes, ..CodeBlock::default() };
    let (mut numbered, mut interned) = (NumberedRows::default(), packing.empty_tuple_numbers());
    let whole = TuplePartition { number: 0, of: 1, excluded_rows: None };
    assert!(packing.number_rows(&block, whole, &mut interned, usize::MAX, &mut numbered).is_ok());
    let mut keys = numbered.keys.clone();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), tuples.len());
    assert!(
        packing.number_rows(&block, whole, &mut packing.empty_tuple_numbers(), 2, &mut numbered).is_err(),
        "no room for three"
    );
}

#[test]
fn disk_failure_is_reported_as_error() {
    let there = table_in_file(&[vec![1, 2, 3]], 3, false, 0);
    let counter = CpuCounter::with_memory(&there.table, 1, 0);
    counter.store_error(Ok(()));
    assert!(counter.stored_error().is_ok());
    counter.store_error(Err(crate::counting::ComputeError::Codes { reason: "gone".to_owned() }));
    assert!(counter.stored_error().expect_err("remembered").to_string().contains("--temp"));
    assert!(CodeWriter::new(Some(std::path::Path::new("/nowhere/at/all")), 1).is_err());
}
