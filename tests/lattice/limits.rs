//! One end for all passes, on a clock that counts how often it is asked: the same on every machine.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use throng::anonymity::domain::{Domain, Level};
use throng::anonymity::lattice::check::{Checker, Terms};
use throng::anonymity::lattice::passes::{Cut, Passes, Recoded, recode};
use throng::anonymity::lattice::search::{Progress, Strategy};
use throng::anonymity::lattice::strategies::search;
use throng::anonymity::lattice::table::{Records, Table};
use throng::anonymity::lattice::until::Until;
use throng::anonymity::privacy::Model;
use throng::anonymity::quality::Measure;

/// Five attributes of 16 values that merge in pairs, and 400 records without a pattern.
fn records() -> (Vec<Domain>, Records) {
    let level = |shift: u32| Level {
        cell_of: (0..16).map(|value| value >> shift).collect(),
        loss: vec![f64::from((1 << shift) - 1) / 15.0; 16 >> shift],
    };
    let domain = |name: usize| Domain::new(name.to_string(), (0..=4).map(level).collect()).expect("a hierarchy");
    let mut state = 7u64;
    let mut value = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Small values are frequent.
        let (a, b) = (state >> 40 & 15, state >> 50 & 15);
        a.min(b) as u32
    };
    let quasi = (0..5).map(|_| (0..400).map(|_| value()).collect()).collect();
    ((0..5).map(domain).collect(), Records { quasi, ..Records::default() })
}

fn terms() -> Terms {
    Terms { models: vec![Model::KAnonymity { k: 5 }], limit: 0.05, measure: Measure::Loss }
}

/// What became of the records within `limit` looks at the clock, and how often it was looked at.
fn local(limit: u64) -> (Recoded, u64) {
    let (domains, records) = records();
    let looks = AtomicU64::new(0);
    let clock = || Duration::from_secs(looks.fetch_add(1, Ordering::Relaxed));
    let stop = AtomicBool::new(false);
    let until = Until::new(&clock, Some(Duration::from_secs(limit)), &stop);
    let passes = Passes { most: 10, leaves: 1.0, strategy: Strategy::Bfs };
    let table = Table::new(domains, &records).expect("a table");
    let recoded = recode(&table, &terms(), passes, until, &|_| {}).expect("possible terms");
    (recoded, looks.load(Ordering::Relaxed))
}

#[test]
fn one_limit_holds_for_all_passes() {
    let (whole, work) = local(1 << 40);
    assert!(whole.cut.is_none() && whole.is_proved() && whole.passes.len() > 1, "{} passes", whole.passes.len());
    for limit in [work / 8, work / 4, work / 2] {
        let (cut, looks) = local(limit);
        // Each search begins and ends with a few looks of its own, and is told once that it is over.
        let own = 10 * (cut.searches.len() as u64 + 2);
        assert!(looks <= limit + own, "{looks} looks of {limit}, {} searches", cut.searches.len());
        assert_eq!(cut.cut, Some(Cut::Time));
        assert!(!cut.is_proved());
    }
}

#[test]
fn what_a_single_search_finds_in_a_quarter_of_the_limit_is_never_lost() {
    let (domains, records) = records();
    let table = Table::new(domains, &records).expect("a table");
    let terms = terms();
    let checker = Checker::new(&table, &terms).expect("possible terms");
    let (_, work) = local(1 << 40);
    let mut found = 0;
    for limit in (4..work).step_by((work / 24).max(1) as usize) {
        let looks = AtomicU64::new(0);
        let clock = || Duration::from_secs(looks.fetch_add(1, Ordering::Relaxed));
        let quarter = Until::timed(&clock, Some(Duration::from_secs((limit / 4).saturating_sub(3))));
        let single = search(&checker, Strategy::Bfs, quarter, &|_| {}).expect("a small lattice");
        let says = |policy: &[u8]| policy != table.lattice().top();
        let (recoded, _) = local(limit);
        let kept = !recoded.passes.is_empty() && recoded.account.suppressed <= recoded.limit;
        if single.best.is_some_and(|best| says(&best.policy)) {
            found += 1;
            assert!(kept, "{limit} looks: {} of {} suppressed", recoded.account.suppressed, recoded.limit);
        }
    }
    assert!(found > 5, "{found} found");
}

#[test]
fn a_stop_leaves_the_best_found() {
    let (domains, records) = records();
    let table = Table::new(domains, &records).expect("a table");
    let recoded = |most: u8, leaves: f64, stop: &AtomicBool, watch: &(dyn Fn(&Progress) + Sync)| {
        let passes = Passes { most, leaves, strategy: Strategy::Bfs };
        let until = Until::new(&|| Duration::ZERO, None, stop);
        recode(&table, &terms(), passes, until, watch).expect("possible terms")
    };
    let whole = recoded(1, 0.0, &AtomicBool::new(false), &|_| {});
    assert!(whole.is_proved() && whole.cut.is_none());
    let stop = AtomicBool::new(false);
    let improved = AtomicU64::new(0);
    // The third improvement says something: the first is the policy of no value at all.
    let third = |_: &Progress| {
        if improved.fetch_add(1, Ordering::Relaxed) >= 2 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let stopped = recoded(1, 0.0, &stop, &third);
    assert_eq!((stopped.cut, stopped.is_proved()), (Some(Cut::Stopped), false));
    assert!(stopped.checked() < whole.checked(), "{} of {}", stopped.checked(), whole.checked());
    assert!(stopped.passes.len() == 1 && stopped.account.suppressed <= stopped.limit);
    let before = recoded(1, 0.0, &AtomicBool::new(true), &|_| {});
    assert!(before.passes.is_empty() && before.cut == Some(Cut::Stopped), "{:?}", before.passes);
    // Passes that have left more than the limit are no release: some policy that keeps it is.
    let stop = AtomicBool::new(false);
    let passes = recoded(10, 1.0, &stop, &|progress| {
        stop.fetch_or(progress.pass == 1 && progress.checked > 20, Ordering::Relaxed);
    });
    assert_eq!(passes.cut, Some(Cut::Stopped));
    assert!(passes.account.suppressed <= passes.limit, "{} of {}", passes.account.suppressed, passes.limit);
}
