//! One deadline for all passes, on a clock that counts its reads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use throng_core::domain::{Domain, HierarchyLevel};
use throng_core::lattice::policy_check::{PolicyChecker, PolicyTerms};
use throng_core::lattice::recoding_passes::{
    EarlyEndReason, LocalRecodingResult, LocalRecodingSettings, recode_locally,
};
use throng_core::lattice::search::{LatticeSearchProgress, LatticeStrategy};
use throng_core::lattice::search_deadline::SearchDeadline;
use throng_core::lattice::strategies::search_lattice;
use throng_core::lattice::table::{LatticeTable, TableRecords};
use throng_core::privacy::ClassPrivacyModel;
use throng_core::quality::QualityMeasure;

fn records() -> (Vec<Domain>, TableRecords) {
    let level = |shift: u32| HierarchyLevel {
        cell_of: (0..16).map(|value| value >> shift).collect(),
        loss: vec![f64::from((1 << shift) - 1) / 15.0; 16 >> shift],
    };
    let domain = |name: usize| Domain::new(name.to_string(), (0..=4).map(level).collect()).expect("a hierarchy");
    let mut state = 7u64;
    let mut value = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (a, b) = (state >> 40 & 15, state >> 50 & 15);
        a.min(b) as u32
    };
    let quasi = (0..5).map(|_| (0..400).map(|_| value()).collect()).collect();
    ((0..5).map(domain).collect(), TableRecords { quasi, ..TableRecords::default() })
}

fn terms() -> PolicyTerms {
    PolicyTerms { models: vec![ClassPrivacyModel::KAnonymity { k: 5 }], limit: 0.05, measure: QualityMeasure::Loss }
}

fn local(limit: u64) -> (LocalRecodingResult, u64) {
    let (domains, records) = records();
    let looks = AtomicU64::new(0);
    let clock = || Duration::from_secs(looks.fetch_add(1, Ordering::Relaxed));
    let stop = AtomicBool::new(false);
    let until = SearchDeadline::new(&clock, Some(Duration::from_secs(limit)), &stop);
    let passes =
        LocalRecodingSettings { max_passes: 10, first_pass_unreleased_share: 1.0, strategy: LatticeStrategy::Bfs };
    let table = LatticeTable::new(domains, &records).expect("a table");
    let recoded = recode_locally(&table, &terms(), passes, until, &|_| {}).expect("possible terms");
    (recoded, looks.load(Ordering::Relaxed))
}

#[test]
fn time_limit_covers_all_recoding_passes() {
    let (whole, work) = local(1 << 40);
    assert!(
        whole.early_end_reason.is_none() && whole.is_proved_optimal() && whole.passes.len() > 1,
        "{} passes",
        whole.passes.len()
    );
    for limit in [work / 8, work / 4, work / 2] {
        let (cut, looks) = local(limit);
        // Each search needs a few additional clock reads.
        let own = 10 * (cut.searches.len() as u64 + 2);
        assert!(looks <= limit + own, "{looks} looks of {limit}, {} searches", cut.searches.len());
        assert_eq!(cut.early_end_reason, Some(EarlyEndReason::Time));
        assert!(!cut.is_proved_optimal());
    }
}

#[test]
fn result_of_search_within_quarter_limit_is_kept() {
    let (domains, records) = records();
    let table = LatticeTable::new(domains, &records).expect("a table");
    let terms = terms();
    let checker = PolicyChecker::new(&table, &terms).expect("possible terms");
    let (_, work) = local(1 << 40);
    let mut found = 0;
    for limit in (4..work).step_by((work / 24).max(1) as usize) {
        let looks = AtomicU64::new(0);
        let clock = || Duration::from_secs(looks.fetch_add(1, Ordering::Relaxed));
        let quarter = SearchDeadline::timed(&clock, Some(Duration::from_secs((limit / 4).saturating_sub(3))));
        let single = search_lattice(&checker, LatticeStrategy::Bfs, quarter, &|_| {}).expect("a small lattice");
        let says = |policy: &[u8]| policy != table.lattice().top();
        let (recoded, _) = local(limit);
        let kept = !recoded.passes.is_empty() && recoded.overall_figures.suppressed <= recoded.limit;
        if single.best.is_some_and(|best| says(&best.policy)) {
            found += 1;
            assert!(kept, "{limit} looks: {} of {} suppressed", recoded.overall_figures.suppressed, recoded.limit);
        }
    }
    assert!(found > 5, "{found} found");
}

#[test]
fn stopped_search_returns_best_policy() {
    let (domains, records) = records();
    let table = LatticeTable::new(domains, &records).expect("a table");
    let recoded = |most: u8, leaves: f64, stop: &AtomicBool, watch: &(dyn Fn(&LatticeSearchProgress) + Sync)| {
        let passes = LocalRecodingSettings {
            max_passes: most,
            first_pass_unreleased_share: leaves,
            strategy: LatticeStrategy::Bfs,
        };
        let until = SearchDeadline::new(&|| Duration::ZERO, None, stop);
        recode_locally(&table, &terms(), passes, until, watch).expect("possible terms")
    };
    let whole = recoded(1, 0.0, &AtomicBool::new(false), &|_| {});
    assert!(whole.is_proved_optimal() && whole.early_end_reason.is_none());
    let stop = AtomicBool::new(false);
    let improved = AtomicU64::new(0);
    // The first improvement is the fully generalized policy.
    let third = |_: &LatticeSearchProgress| {
        if improved.fetch_add(1, Ordering::Relaxed) >= 2 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let stopped = recoded(1, 0.0, &stop, &third);
    assert_eq!((stopped.early_end_reason, stopped.is_proved_optimal()), (Some(EarlyEndReason::Stopped), false));
    assert!(
        stopped.checked_policy_count() < whole.checked_policy_count(),
        "{} of {}",
        stopped.checked_policy_count(),
        whole.checked_policy_count()
    );
    assert!(stopped.passes.len() == 1 && stopped.overall_figures.suppressed <= stopped.limit);
    let before = recoded(1, 0.0, &AtomicBool::new(true), &|_| {});
    assert!(
        before.passes.is_empty() && before.early_end_reason == Some(EarlyEndReason::Stopped),
        "{:?}",
        before.passes
    );
    let stop = AtomicBool::new(false);
    let passes = recoded(10, 1.0, &stop, &|progress| {
        stop.fetch_or(progress.pass == 1 && progress.checked > 20, Ordering::Relaxed);
    });
    assert_eq!(passes.early_end_reason, Some(EarlyEndReason::Stopped));
    assert!(
        passes.overall_figures.suppressed <= passes.limit,
        "{} of {}",
        passes.overall_figures.suppressed,
        passes.limit
    );
}
