//! All configurations of `adult/reference-optima.json` with every exact strategy.

use crate::lattice::data::{self, DataSet};
use serde_json::Value;
use throng_core::lattice::policy_check::{PolicyChecker, PolicyTerms};
use throng_core::lattice::search::LatticeStrategy;
use throng_core::lattice::search_deadline::SearchDeadline;
use throng_core::lattice::strategies::search_lattice;
use throng_core::privacy::{ClassPrivacyModel, GroundMetric, ValueRequirement};
use throng_core::quality::QualityMeasure;

/// Parses a configuration such as `k5+rl43:0.05:nue`.
fn terms(config: &str, set: &DataSet) -> PolicyTerms {
    let mut parts = config.split(':');
    let models = parts.next().expect("models").split('+').map(|model| match model {
        "rl43" => ClassPrivacyModel::Sensitive { attribute: 0, of: ValueRequirement::Recursive { c: 4.0, l: 3 } },
        "dl3" => ClassPrivacyModel::Sensitive { attribute: 0, of: ValueRequirement::Distinct { l: 3 } },
        // The reference tool refuses a class exactly at the bound because of rounding.
        "el3" => ClassPrivacyModel::Sensitive { attribute: 0, of: ValueRequirement::Entropy { l: 3.000_000_001 } },
        "teq" => ClassPrivacyModel::Sensitive {
            attribute: 0,
            of: ValueRequirement::Closeness { t: 0.2, ground: GroundMetric::Equal },
        },
        "thier" => ClassPrivacyModel::Sensitive {
            attribute: 0,
            of: ValueRequirement::Closeness { t: 0.2, ground: GroundMetric::Hierarchical(set.beside[0].parents()) },
        },
        k => {
            ClassPrivacyModel::KAnonymity { k: k.trim_start_matches('k').trim_end_matches("all").parse().expect("kN") }
        }
    });
    let models = models.collect();
    let limit = parts.next().expect("limit").parse().expect("a share");
    let measure = match parts.next().expect("measure") {
        "loss_geo" => QualityMeasure::LossGeometric,
        "loss_arith" => QualityMeasure::Loss,
        "nue" => QualityMeasure::Nue,
        "nue_mono" => QualityMeasure::NueMonotonic,
        "nnue" => QualityMeasure::NueNormalized,
        other => panic!("an unknown measure {other}"),
    };
    PolicyTerms { models, limit, measure }
}

fn reproduce(strategies: &[LatticeStrategy]) {
    let folder = data::folder().expect("THRONG_TEST_DATA is set").join("adult");
    let text = std::fs::read_to_string(folder.join("reference-optima.json")).expect("the reference");
    let reference: Value = serde_json::from_str(&text).expect("JSON");
    let beside = data::read(&folder, "adult.csv", &["occupation"]);
    let all = data::read(&folder, "adult.csv", &[]);
    let (beside_table, all_table) = (beside.table(), all.table());
    let mut compared = 0;
    for case in reference["results"].as_array().expect("results") {
        let config = case["config"].as_str().expect("a name");
        let (set, table) = if config.starts_with("k5all") { (&all, &all_table) } else { (&beside, &beside_table) };
        let terms = terms(config, set);
        let checker = PolicyChecker::new(table, &terms).expect("possible terms");
        assert_eq!(table.lattice().size(), case["lattice_size"].as_u64().map(u128::from), "{config}");
        for &strategy in strategies {
            let found = search_lattice(&checker, strategy, SearchDeadline::without_deadline(), &|_| {})
                .expect("a small lattice");
            let best = found.best.expect("an admissible policy");
            let shown = terms.measure.shown(best.cost, set.quasi.len());
            let expected = case["score"].as_f64().expect("a score");
            assert!((shown - expected).abs() <= 1e-9 * expected, "{config}: {shown} for {expected}");
            for (name, &level) in set.quasi.iter().zip(&best.policy) {
                assert_eq!(case["levels"][name].as_u64(), Some(u64::from(level)), "{config}: level of {name}");
            }
            assert_eq!(case["suppressed_records"].as_u64(), Some(best.suppressed), "{config}");
            assert!(found.complete);
            compared += 1;
        }
    }
    assert_eq!(compared, 20 * strategies.len());
}

#[test]
#[ignore = "needs the data folder that THRONG_TEST_DATA names"]
fn real_data_best_first_search_reproduces_reference_optima() {
    reproduce(&[LatticeStrategy::Bfs]);
}

#[test]
#[ignore = "needs the data folder that THRONG_TEST_DATA names"]
fn real_data_every_strategy_reproduces_reference_optima() {
    reproduce(&[
        LatticeStrategy::Flash,
        LatticeStrategy::Flash2p,
        LatticeStrategy::Ola,
        LatticeStrategy::Incognito,
        LatticeStrategy::Dfs,
    ]);
}
