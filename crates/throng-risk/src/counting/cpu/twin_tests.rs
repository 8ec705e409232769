//! A table in a file, counted with little memory, against the definition.

use super::keys::{Numbered, Packing, Partition};
use super::tests::counted;
use crate::counting::codes::{Block, CodeTable, CodeWriter, PreparedTable, WrittenColumns};
use crate::counting::{AttributeSet, CountedTable, CpuCounter, GroupCount, GroupCounter};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Writes columns in pieces of some rows; the last column is that of the people, where `named`, and 0 is nobody.
fn written(columns: &[Vec<u32>], piece: usize, named: bool, memory: u64) -> PreparedTable {
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
    CodeTable::of(WrittenColumns { writer, columns, rows, people, directory, memory }).expect("a table")
}

/// The same in memory.
fn held(columns: &[Vec<u32>], named: bool) -> CountedTable {
    if !named {
        return CountedTable::new(columns.to_vec(), None).expect("a table");
    }
    let (people, columns) = columns.split_last().expect("people");
    let kept = |column: &Vec<u32>| column.iter().zip(people).filter(|(_, p)| **p > 0).map(|(c, _)| *c).collect();
    CountedTable::new(columns.iter().map(kept).collect(), Some(kept(people))).expect("a table")
}

fn tables() -> impl Strategy<Value = Vec<Vec<u32>>> {
    (2_usize..6, 1_usize..60, 1_u32..9, 0_u32..3).prop_flat_map(|(width, rows, values, far)| {
        let code = (0..values).prop_map(move |code| if code > 3 { code + far * 300 } else { code });
        prop::collection::vec(prop::collection::vec(code, rows), width)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_answer_is_that_of_maps(
        columns in tables(),
        piece in 1_usize..50,
        named in any::<bool>(),
        memory in 0_u64..3000,
        k in 2_u32..6,
        threads in 1_usize..3,
    ) {
        let (there, here) = (written(&columns, piece, named, memory), held(&columns, named));
        let table = &there.table;
        prop_assert_eq!((table.rows(), table.width(), table.subjects()), (here.rows(), here.width(), here.subjects()));
        for column in 0..here.width() {
            prop_assert_eq!(table.cardinality(column), here.cardinality(column));
        }
        let every = |mask: u32| (0..here.width()).filter(|c| mask >> c & 1 == 1).collect::<AttributeSet>();
        let sets: Vec<AttributeSet> = (1..1 << here.width()).map(every).collect();
        let counter = CpuCounter::over(table, threads, memory);
        let expected: Vec<(GroupCount, Vec<u32>)> = sets.iter().map(|set| counted(&here, set, k)).collect();
        prop_assert_eq!(counter.count(&sets, k), Ok(expected.iter().map(|(count, _)| *count).collect()));
        let verdicts = expected.iter().map(|(count, _)| Some(count.is_qid())).collect();
        prop_assert_eq!(counter.judge(&sets, k, &|| false), Ok(verdicts));
        let mut below = vec![BTreeSet::new(); sets.len()];
        counter.below_each(&sets, &[], k, &mut |at, row, _| below[at].extend([row])).expect("read");
        for ((set, below), (_, rows)) in sets.iter().zip(below).zip(&expected) {
            prop_assert_eq!(rows, &below.into_iter().collect::<Vec<u32>>());
            prop_assert_eq!(counter.records_below(set, k), Ok(rows.clone()));
            prop_assert_eq!(counter.first_below(set, k), Ok(rows.first().copied()));
        }
        // What a device gets are the rows of the input.
        prop_assert_eq!(CodeTable::held(&here).unpacked(), Some(here.clone()));
        for row in 0..here.rows() {
            let all: Vec<usize> = (0..here.width()).collect();
            let codes: Vec<u32> = all.iter().map(|c| here.column(*c)[row]).collect();
            prop_assert_eq!(table.codes_of(row as u32, &all).expect("read"), codes);
        }
    }

    /// More columns than 64 bits hold.
    #[test]
    fn tuples_of_many_columns_are_told_apart(
        columns in prop::collection::vec(prop::collection::vec(0_u32..40, 40), 16..20),
        alike in 0_usize..40,
        memory in 0_u64..2000,
    ) {
        let copied = |mut column: Vec<u32>| {
            column[alike] = column[0];
            // All values occur, so that the domain is what it seems.
            column.extend(0..40);
            column
        };
        let columns: Vec<Vec<u32>> = columns.into_iter().map(copied).collect();
        let (there, here) = (written(&columns, 64, false, 0), held(&columns, false));
        let sets = [AttributeSet::first(columns.len()), AttributeSet::from_iter([0, 3, 5])];
        let counter = CpuCounter::over(&there.table, 1, memory);
        prop_assert_eq!(counter.count(&sets, 2), Ok(sets.iter().map(|set| counted(&here, set, 2).0).collect()));
    }
}

/// Counting ends where every class has reached k, and not before: one value comes with the last row, one pair of values never.
#[test]
fn a_set_is_counted_until_nothing_can_change_what_it_is() {
    let rows = 150_000_u32;
    let turn = |of: u32| (0..rows).map(|row| row / 3 % of).collect::<Vec<u32>>();
    let mut late = turn(5);
    late[rows as usize - 1] = 5;
    let mut early = turn(7);
    early[0] = 7;
    let people = (0..rows).map(|row| 1 + row / 3).collect();
    let columns = vec![turn(4), turn(2), late, early, people];
    for named in [false, true] {
        let (there, here) = (written(&columns, 40_000, named, 1 << 24), held(&columns, named));
        let every = |mask: u32| (0..4).filter(|c| mask >> c & 1 == 1).collect::<AttributeSet>();
        let sets: Vec<AttributeSet> = (1..1 << 4).map(every).collect();
        let counter = CpuCounter::over(&there.table, 2, 1 << 26);
        for k in [2, 300, 20_000] {
            let verdicts = counter.judge(&sets, k, &|| false).expect("read");
            let expected: Vec<(GroupCount, Vec<u32>)> = sets.iter().map(|set| counted(&here, set, k)).collect();
            assert!(
                verdicts.iter().eq(expected.iter().map(|(count, _)| Some(count.is_qid())).collect::<Vec<_>>().iter()),
                "{named} {k}"
            );
            let mut below = vec![BTreeSet::new(); sets.len()];
            counter.below_each(&sets, &[], k, &mut |at, row, _| below[at].extend([row])).expect("read");
            for ((set, below), (_, rows)) in sets.iter().zip(below).zip(&expected) {
                assert!(below.iter().eq(rows), "{named} {k} {set:?}");
            }
        }
        // Four by two columns go together, so half of their pairs are never seen.
        assert_eq!(
            counter.judge(&[every(3), every(4), every(8)], 2, &|| false),
            Ok(vec![Some(false), Some(true), Some(true)])
        );
    }
}

#[test]
fn a_number_of_64_bits_is_one_tuple() {
    let radix = 1_usize << 31;
    let packing = Packing::new(&[radix, radix, 4, 3, radix]);
    assert_eq!(packing.domain(), None, "several groups");
    let ends = [0, (1 << 31) - 1];
    let tuples: Vec<[u32; 5]> =
        ends.iter().flat_map(|a| ends.iter().flat_map(move |b| (0..3).map(move |c| [*a, *b, c, c, *b]))).collect();
    let codes = (0..5).map(|column| tuples.iter().map(|tuple| tuple[column]).collect()).collect();
    let block = Block { codes, ..Block::default() };
    let (mut numbered, mut interned) = (Numbered::default(), packing.interned());
    let whole = Partition { number: 0, of: 1, without: None };
    assert!(packing.number(&block, whole, &mut interned, usize::MAX, &mut numbered).is_ok());
    let mut keys = numbered.keys.clone();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), tuples.len());
    assert!(packing.number(&block, whole, &mut packing.interned(), 2, &mut numbered).is_err(), "no room for three");
}

#[test]
fn a_disk_that_is_gone_is_an_error_that_says_so() {
    let there = written(&[vec![1, 2, 3]], 3, false, 0);
    let counter = CpuCounter::over(&there.table, 1, 0);
    counter.remember(Ok(()));
    assert!(counter.sound().is_ok());
    counter.remember(Err(crate::counting::ComputeError::Codes { reason: "gone".to_owned() }));
    assert!(counter.sound().expect_err("remembered").to_string().contains("--temp"));
    assert!(CodeWriter::new(Some(std::path::Path::new("/nowhere/at/all")), 1).is_err());
}
