//! Tests limits with a clock that counts work.

use super::brute_force::BruteForceTable;
use super::tests::{STRATEGIES, columns_of, larger_table, masks, numbers, question, tables};
use super::{CountedTable, QidBorders, QidSearchClock, QidSearchRequest, QidStrategy, search, search_by_clock};
use crate::counting::{AttributeSet, ClassSummary, ComputeError, CpuCounter, GroupCounter};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(50);

/// Judging a set takes one tick.
struct TickingCounter<'a> {
    counter: &'a CpuCounter<'a>,
    /// Judges without the table.
    assume_non_qid: bool,
    late_calls: AtomicU32,
}

impl GroupCounter for TickingCounter<'_> {
    fn count(&self, sets: &[AttributeSet], k: u32) -> Result<Vec<ClassSummary>, ComputeError> {
        self.counter.count(sets, k)
    }

    fn judge(
        &self,
        sets: &[AttributeSet],
        k: u32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Option<bool>>, ComputeError> {
        let mut verdicts = vec![None; sets.len()];
        for (at, verdict) in verdicts.iter_mut().enumerate() {
            if stop() {
                self.late_calls.fetch_add(u32::from(at == 0), Ordering::Relaxed);
                break;
            }
            let set = &sets[at..=at];
            *verdict = if self.assume_non_qid { Some(false) } else { self.counter.judge(set, k, &|| false)?[0] };
        }
        Ok(verdicts)
    }

    fn records_below(&self, set: &AttributeSet, k: u32) -> Result<Vec<u32>, ComputeError> {
        self.counter.records_below(set, k)
    }
}

fn search_for_ticks(table: &CountedTable, asked: &QidSearchRequest, ticks: u32, pretends: bool) -> (QidBorders, u32) {
    let looks = AtomicU64::new(0);
    let elapsed = || TICK * u32::try_from(looks.fetch_add(1, Ordering::Relaxed)).expect("few looks");
    let clock = QidSearchClock { budget: Some(TICK * ticks), elapsed: &elapsed };
    let asked = QidSearchRequest { budget: clock.budget, ..asked.clone() };
    let own = CpuCounter::new(table, 1);
    let counter = TickingCounter { counter: &own, assume_non_qid: pretends, late_calls: AtomicU32::new(0) };
    let found = search_by_clock(&clock, &own, &counter, &asked, true, &|_| ()).expect("a table");
    (found, counter.late_calls.into_inner())
}

fn assert_sound(found: &QidBorders, rows: &BruteForceTable, k: u32, how: &str) -> Result<(), TestCaseError> {
    let (qids, non_qids) = (masks(&found.minimal_qids), masks(&found.maximal_non_qids));
    for (listed, is_qid) in [(&qids, true), (&non_qids, false)] {
        for set in listed {
            prop_assert_eq!(rows.is_qid(*set, k), is_qid, "{}: {:b}", how, set);
            prop_assert_eq!(listed.iter().filter(|other| *other & set == *set).count(), 1, "{}: {:b}", how, set);
        }
    }
    if found.complete {
        prop_assert_eq!((numbers(&found.minimal_qids), numbers(&found.maximal_non_qids)), rows.borders(k));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn results_within_time_limit_are_sound(rows in tables(), k in 2_u32..=6, ticks in 0_u32..200) {
        let table = columns_of(&rows);
        for strategy in STRATEGIES {
            let (found, _) = search_for_ticks(&table, &question(k, strategy, 1, table.width()), ticks, false);
            assert_sound(&found, &rows, k, &format!("{strategy:?}"))?;
        }
    }

    #[test]
    fn results_within_memory_limit_are_sound(rows in tables(), k in 2_u32..=6, memory in 0_u64..60_000) {
        let table = columns_of(&rows);
        for strategy in STRATEGIES {
            let asked = QidSearchRequest { memory: Some(memory), ..question(k, strategy, 1, table.width()) };
            let found = search(&table, &asked, &|_| ());
            prop_assert_eq!(found.complete, !found.out_of_memory);
            assert_sound(&found, &rows, k, &format!("{strategy:?}"))?;
        }
    }

    #[test]
    fn longer_time_limit_proves_no_less(rows in tables(), k in 2_u32..=6, ticks in 0_u32..200, more in 1_u32..200) {
        let table = columns_of(&rows);
        for strategy in STRATEGIES {
            let asked = question(k, strategy, 1, table.width());
            let (less, _) = search_for_ticks(&table, &asked, ticks, false);
            let (more, _) = search_for_ticks(&table, &asked, ticks + more, false);
            for set in &less.maximal_non_qids {
                prop_assert!(more.maximal_non_qids.iter().any(|other| set.is_subset(other)), "{:?}: {:?}", strategy, set);
            }
            for set in &less.minimal_qids {
                prop_assert!(more.minimal_qids.iter().any(|other| other.is_subset(set)), "{:?}: {:?}", strategy, set);
            }
        }
    }
}

#[test]
fn verification_starts_before_the_descent_ends() {
    let table = larger_table(2000, &[3; 16], None, 1);
    let asked = question(2, QidStrategy::Border, 1, table.width());
    let proved = |ticks| search_for_ticks(&table, &asked, ticks, false).0.maximal_non_qids.len();
    assert!(proved(40) > 0 && proved(80) > 0, "{} and {}", proved(40), proved(80));
}

#[test]
fn no_judge_call_begins_after_the_time_limit() {
    // Several calls per size.
    let columns = (0..14_u32).map(|c| (0..8_u32).map(|row| row >> (c % 3) & 1).collect()).collect();
    let table = CountedTable::new(columns, None).expect("a table");
    for ticks in (1..=40).map(|n| n * 1000) {
        let (found, late) = search_for_ticks(&table, &question(2, QidStrategy::Greedy, 1, 14), ticks, true);
        assert!(late <= 1, "{late} calls after {ticks} ticks, complete: {}", found.complete);
    }
}

#[test]
fn memory_limited_search_keeps_proved_sets() {
    let table = larger_table(3000, &[2; 14], None, 7);
    for strategy in STRATEGIES {
        let asked = question(2, strategy, 2, table.width());
        let whole = search(&table, &asked, &|_| ());
        assert!(whole.complete && !whole.out_of_memory);
        let cut = search(&table, &QidSearchRequest { memory: Some(200_000), ..asked }, &|_| ());
        assert!(!cut.complete && cut.out_of_memory, "{strategy:?}");
        assert!(!cut.maximal_non_qids.is_empty(), "{strategy:?}");
        assert!(cut.evaluated + cut.pruned < whole.evaluated + whole.pruned, "{strategy:?}");
    }
}
