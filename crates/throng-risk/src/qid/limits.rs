//! Limits of time and memory, by a clock that counts work.

use super::brute_force::Rows;
use super::tests::{STRATEGIES, columns_of, larger_table, masks, numbers, question, tables};
use super::{Borders, Clock, CountedTable, Question, Strategy, search, search_by};
use crate::counting::{AttributeSet, ComputeError, CpuCounter, GroupCount, GroupCounter};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Time goes on by this with each look at the clock.
const TICK: Duration = Duration::from_millis(50);

/// Looks at the clock before each set, as if judging it took a tick.
struct Paced<'a> {
    counter: &'a CpuCounter<'a>,
    /// Nothing is read: every set is said to be no QID.
    pretends: bool,
    /// Calls that began when time was up.
    late: AtomicU32,
}

impl GroupCounter for Paced<'_> {
    fn count(&self, sets: &[AttributeSet], k: u32) -> Result<Vec<GroupCount>, ComputeError> {
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
                self.late.fetch_add(u32::from(at == 0), Ordering::Relaxed);
                break;
            }
            let set = &sets[at..=at];
            *verdict = if self.pretends { Some(false) } else { self.counter.judge(set, k, &|| false)?[0] };
        }
        Ok(verdicts)
    }

    fn records_below(&self, set: &AttributeSet, k: u32) -> Result<Vec<u32>, ComputeError> {
        self.counter.records_below(set, k)
    }
}

/// What is found in so many ticks, and how many calls began after them.
fn in_ticks(table: &CountedTable, asked: &Question, ticks: u32, pretends: bool) -> (Borders, u32) {
    let looks = AtomicU64::new(0);
    let elapsed = || TICK * u32::try_from(looks.fetch_add(1, Ordering::Relaxed)).expect("few looks");
    let clock = Clock { budget: Some(TICK * ticks), elapsed: &elapsed };
    let asked = Question { budget: clock.budget, ..asked.clone() };
    let own = CpuCounter::new(table, 1);
    let counter = Paced { counter: &own, pretends, late: AtomicU32::new(0) };
    let found = search_by(&clock, &own, &counter, &asked, true, &|_| ()).expect("a table");
    (found, counter.late.into_inner())
}

/// Everything proved is true, no listed set says what another one says, and what is called complete is.
fn assert_sound(found: &Borders, rows: &Rows, k: u32, how: &str) -> Result<(), TestCaseError> {
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
    fn what_is_proved_in_some_time_is_true_and_listed_once(rows in tables(), k in 2_u32..=6, ticks in 0_u32..200) {
        let table = columns_of(&rows);
        for strategy in STRATEGIES {
            let (found, _) = in_ticks(&table, &question(k, strategy, 1, table.width()), ticks, false);
            assert_sound(&found, &rows, k, &format!("{strategy:?}"))?;
        }
    }

    #[test]
    fn what_is_proved_in_some_memory_is_true_and_listed_once(rows in tables(), k in 2_u32..=6, memory in 0_u64..60_000) {
        let table = columns_of(&rows);
        for strategy in STRATEGIES {
            let asked = Question { memory: Some(memory), ..question(k, strategy, 1, table.width()) };
            let found = search(&table, &asked, &|_| ());
            prop_assert_eq!(found.complete, !found.out_of_memory);
            assert_sound(&found, &rows, k, &format!("{strategy:?}"))?;
        }
    }

    #[test]
    fn a_longer_time_proves_no_less(rows in tables(), k in 2_u32..=6, ticks in 0_u32..200, more in 1_u32..200) {
        let table = columns_of(&rows);
        for strategy in STRATEGIES {
            let asked = question(k, strategy, 1, table.width());
            let (less, _) = in_ticks(&table, &asked, ticks, false);
            let (more, _) = in_ticks(&table, &asked, ticks + more, false);
            for set in &less.maximal_non_qids {
                prop_assert!(more.maximal_non_qids.iter().any(|other| set.is_subset(other)), "{:?}: {:?}", strategy, set);
            }
            for set in &less.minimal_qids {
                prop_assert!(more.minimal_qids.iter().any(|other| other.is_subset(set)), "{:?}: {:?}", strategy, set);
            }
        }
    }
}

/// Some time proves something although the descent is far from its end.
#[test]
fn verification_does_not_wait_for_the_end_of_the_descent() {
    let table = larger_table(2000, &[3; 16], None, 1);
    let asked = question(2, Strategy::Border, 1, table.width());
    let proved = |ticks| in_ticks(&table, &asked, ticks, false).0.maximal_non_qids.len();
    assert!(proved(40) > 0 && proved(80) > 0, "{} and {}", proved(40), proved(80));
}

#[test]
fn no_call_begins_after_the_time() {
    // 3,432 sets of seven columns: several calls for one size.
    let columns = (0..14_u32).map(|c| (0..8_u32).map(|row| row >> (c % 3) & 1).collect()).collect();
    let table = CountedTable::new(columns, None).expect("a table");
    for ticks in (1..=40).map(|n| n * 1000) {
        let (found, late) = in_ticks(&table, &question(2, Strategy::Greedy, 1, 14), ticks, true);
        assert!(late <= 1, "{late} calls after {ticks} ticks, complete: {}", found.complete);
    }
}

#[test]
fn a_search_of_little_memory_keeps_what_it_has_proved() {
    let table = larger_table(3000, &[2; 14], None, 7);
    for strategy in STRATEGIES {
        let asked = question(2, strategy, 2, table.width());
        let whole = search(&table, &asked, &|_| ());
        assert!(whole.complete && !whole.out_of_memory);
        let cut = search(&table, &Question { memory: Some(200_000), ..asked }, &|_| ());
        assert!(!cut.complete && cut.out_of_memory, "{strategy:?}");
        assert!(!cut.maximal_non_qids.is_empty(), "{strategy:?}");
        assert!(cut.evaluated + cut.pruned < whole.evaluated + whole.pruned, "{strategy:?}");
    }
}
