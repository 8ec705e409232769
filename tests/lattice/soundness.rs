//! Soundness table of conclusions from one policy to others ([FL2] §2.4–2.7), on thousands of random tables.
//!
//! Searches rely on the two that always hold: [`Conclusion::LostBelow`] and [`Conclusion::BeatenAbove`].

use crate::lattice::properties::checked;
use crate::lattice::twin::{Case, case};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use throng_core::lattice::policy::is_same_or_specialization;
use throng_core::lattice::policy_check::{PolicyChecker, PolicyTerms};
use throng_core::privacy::{ClassPrivacyModel, ValueRequirement};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The records that x loses for every specialization exceed the limit: no specialization is admissible.
    LostBelow,
    /// x is not admissible: no specialization is.
    InadmissibleBelow,
    /// x is admissible: every generalization is.
    AdmissibleAbove,
    /// x is admissible: no generalization costs less.
    DearerAbove,
    /// The bound of x exceeds the cost of a known admissible policy: so does the cost of every generalization.
    BeatenAbove,
}

impl Conclusion {
    pub const ALL: [Self; 5] =
        [Self::LostBelow, Self::InadmissibleBelow, Self::AdmissibleAbove, Self::DearerAbove, Self::BeatenAbove];

    /// Checks that the conclusion is sound for these terms, with a limit of `may_suppress` records ([FL2] §2.5).
    ///
    /// | | nothing suppressed | k-anonymity, k-map, distinct-ℓ | any other model | δ-presence with min > 0 |
    /// |---|---|---|---|---|
    /// | `LostBelow` | yes | yes | yes | yes |
    /// | `InadmissibleBelow` | yes | yes | no | no |
    /// | `AdmissibleAbove` | yes | yes | no | no |
    /// | `DearerAbove` | yes | no | no | no; yes where nothing is suppressed |
    /// | `BeatenAbove` | yes | yes | yes | yes |
    ///
    /// The second and third row of the first column exclude δ-presence with min > 0.
    pub fn is_sound(self, terms: &PolicyTerms, may_suppress: u64) -> bool {
        match self {
            Self::LostBelow | Self::BeatenAbove => true,
            Self::DearerAbove => may_suppress == 0,
            Self::InadmissibleBelow | Self::AdmissibleAbove if may_suppress == 0 => {
                terms.models.iter().all(monotone_without_suppression)
            }
            Self::InadmissibleBelow | Self::AdmissibleAbove => terms.models.iter().all(monotone_under_suppression),
        }
    }
}

/// Checks that generalizations inherit admissibility under suppression ([FL2] §2.4).
fn monotone_under_suppression(model: &ClassPrivacyModel) -> bool {
    let distinct = |model: &ClassPrivacyModel| {
        matches!(model, ClassPrivacyModel::Sensitive { of: ValueRequirement::Distinct { .. }, .. })
    };
    matches!(model, ClassPrivacyModel::KAnonymity { .. } | ClassPrivacyModel::KMap { .. }) || distinct(model)
}

/// Checks that generalizations inherit admissibility without suppression ([FL2] §2.4).
fn monotone_without_suppression(model: &ClassPrivacyModel) -> bool {
    !matches!(model, ClassPrivacyModel::Presence { min, .. } if *min > 0.0)
}

/// Returns each conclusion with its soundness, and true if it is wrong in this lattice.
fn refuted(case: &Case) -> Vec<(Conclusion, bool, bool)> {
    let table = case.table();
    let checker = PolicyChecker::new(&table, &case.terms).expect("possible terms");
    let all = checked(&checker);
    let best = all.iter().map(|(_, o)| o.cost).fold(f64::INFINITY, f64::min);
    let pairs = || {
        let above = |x| all.iter().filter(move |(y, _)| is_same_or_specialization(x, y));
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
fn sound_conclusions_hold_and_unsound_ones_have_counterexamples() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut counterexamples: BTreeMap<(String, String), u32> = BTreeMap::new();
    for _ in 0..30_000 {
        let case = case().new_tree(&mut runner).expect("a case").current();
        let [model] = case.terms.models.as_slice() else { continue };
        let suppresses = PolicyChecker::new(&case.table(), &case.terms).expect("possible terms").limit() > 0;
        for (conclusion, sound, wrong) in refuted(&case) {
            assert!(!(sound && wrong), "{conclusion:?} is called sound for {:?}", case.terms);
            if !sound {
                let kind = match model {
                    ClassPrivacyModel::Sensitive { of, .. } => format!("{of:?}"),
                    model => format!("{model:?}"),
                };
                let kind = kind.split(' ').next().expect("a name").to_owned();
                let limit = if suppresses { "suppressing" } else { "not suppressing" };
                *counterexamples.entry((format!("{conclusion:?}"), format!("{kind}, {limit}"))).or_default() +=
                    u32::from(wrong);
            }
        }
    }
    assert!(counterexamples.len() >= 15, "{counterexamples:?}");
    // Too rare; see `fuller::presence_is_not_monotone_without_suppression`.
    let rare = |kind: &str| kind == "Presence, not suppressing";
    let found = counterexamples.iter();
    let needless: Vec<_> = found.filter(|&((_, kind), &count)| count == 0 && !rare(kind)).collect();
    assert!(needless.is_empty(), "forbidden without need: {needless:?}");
}
