//! The table of sound conclusions, walked through: what it allows holds on thousands of random tables, and what it
//! forbids has a counterexample among them.

use crate::lattice::properties::checked;
use crate::lattice::twin::{Case, case};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use throng::anonymity::lattice::check::Checker;
use throng::anonymity::lattice::policy::is_below;
use throng::anonymity::lattice::soundness::Conclusion;

/// Whether a conclusion is wrong somewhere in this lattice.
fn refuted(case: &Case) -> Vec<(Conclusion, bool, bool)> {
    let table = case.table();
    let checker = Checker::new(&table, &case.terms).expect("possible terms");
    let all = checked(&checker);
    let best = all.iter().map(|(_, o)| o.cost).fold(f64::INFINITY, f64::min);
    let pairs = || {
        let above = |x| all.iter().filter(move |(y, _)| is_below(x, y));
        all.iter().flat_map(move |(x, low)| above(x).map(move |(_, high)| (low, high)))
    };
    let wrong = |conclusion: Conclusion| match conclusion {
        Conclusion::LostBelow => pairs().any(|(low, high)| high.failing > checker.limit() && low.admissible),
        Conclusion::InadmissibleBelow | Conclusion::AdmissibleAbove => {
            pairs().any(|(low, high)| low.admissible && !high.admissible)
        }
        Conclusion::DearerAbove => {
            pairs().any(|(low, high)| low.admissible && high.admissible && high.cost < low.cost - 1e-6)
        }
        Conclusion::BeatenAbove => pairs().any(|(low, high)| low.bound > best && high.cost <= best),
    };
    Conclusion::ALL.into_iter().map(|c| (c, c.is_sound(&case.terms, checker.limit()), wrong(c))).collect()
}

#[test]
fn what_is_sound_holds_and_what_is_not_has_a_counterexample() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    // By conclusion and the models that forbid it: how many counterexamples.
    let mut counterexamples: BTreeMap<(String, String), u32> = BTreeMap::new();
    for _ in 0..30_000 {
        let case = case().new_tree(&mut runner).expect("a case").current();
        let [model] = case.terms.models.as_slice() else { continue };
        let suppresses = Checker::new(&case.table(), &case.terms).expect("possible terms").limit() > 0;
        for (conclusion, sound, wrong) in refuted(&case) {
            assert!(!(sound && wrong), "{conclusion:?} is called sound for {:?}", case.terms);
            if !sound {
                let kind = format!("{model:?}").split(' ').next().expect("a name").to_owned();
                let limit = if suppresses { "suppressing" } else { "not suppressing" };
                *counterexamples.entry((format!("{conclusion:?}"), format!("{kind}, {limit}"))).or_default() +=
                    u32::from(wrong);
            }
        }
    }
    assert!(counterexamples.len() >= 15, "{counterexamples:?}");
    // Too rare to be drawn: `fuller::presence_is_not_monotone_without_suppression` has the counterexample.
    let rare = |kind: &str| kind == "Presence, not suppressing";
    let found = counterexamples.iter();
    let needless: Vec<_> = found.filter(|&((_, kind), &count)| count == 0 && !rare(kind)).collect();
    assert!(needless.is_empty(), "forbidden without need: {needless:?}");
}
