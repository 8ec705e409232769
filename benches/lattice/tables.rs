//! The 11 combinations of models of [FL2] × 4 measures × suppression limits 0, 5 and 100 % on ADULT (Tables 5 to 11),
//! printed as Markdown for docs/internals/lattice.md.

use crate::{data, folder, timed};
use rand::{SeedableRng, seq::index::sample};
use rand_chacha::ChaCha8Rng;
use throng_core::lattice::policy_check::PolicyTerms;
use throng_core::lattice::search::LatticeStrategy;
use throng_core::lattice::table::LatticeTable;
use throng_core::privacy::{ClassPrivacyModel, GroundMetric, ValueRequirement};
use throng_core::quality::QualityMeasure;

pub fn run() {
    let Some(folder) = folder("adult") else { return };
    let mut set = data::read(&folder, "adult.csv", &["occupation"]);
    let k = ClassPrivacyModel::KAnonymity { k: 5 };
    let l = ClassPrivacyModel::Sensitive { attribute: 0, of: ValueRequirement::Recursive { c: 4.0, l: 3 } };
    let t = ClassPrivacyModel::Sensitive {
        attribute: 0,
        of: ValueRequirement::Closeness { t: 0.2, ground: GroundMetric::Hierarchical(set.beside[0].parents()) },
    };
    let d = ClassPrivacyModel::Presence { min: 0.05, max: 0.15 };
    let whole = set.table();
    let rows = set.records.quasi[0].len();
    let mut dice = ChaCha8Rng::seed_from_u64(1);
    let mut released = vec![false; rows];
    for row in sample(&mut dice, rows, rows / 10) {
        released[row] = true;
    }
    set.records.released = Some(released);
    let study = set.table();
    let combinations: [(&str, Vec<ClassPrivacyModel>); 11] = [
        ("(k)", vec![k.clone()]),
        ("(ℓ)", vec![l.clone()]),
        ("(t)", vec![t.clone()]),
        ("(δ)", vec![d.clone()]),
        ("(k, ℓ)", vec![k.clone(), l.clone()]),
        ("(k, t)", vec![k.clone(), t.clone()]),
        ("(k, δ)", vec![k.clone(), d.clone()]),
        ("(ℓ, δ)", vec![l.clone(), d.clone()]),
        ("(t, δ)", vec![t.clone(), d.clone()]),
        ("(k, ℓ, δ)", vec![k.clone(), l, d.clone()]),
        ("(k, t, δ)", vec![k, t, d]),
    ];
    for measure in
        [QualityMeasure::Nue, QualityMeasure::Precision, QualityMeasure::Discernibility, QualityMeasure::Aecs]
    {
        println!("\n### {}\n", measure.name());
        println!(
            "| models | 0 %: value, ms, checked | 5 % | 100 % | loss at 5 % of that at 0 % |\n|---|---|---|---|---|"
        );
        for (name, models) in &combinations {
            let table: &LatticeTable = if name.contains('δ') { &study } else { &whole };
            let mut cells = Vec::new();
            let mut costs = Vec::new();
            for limit in [0.0, 0.05, 1.0] {
                let terms = PolicyTerms { models: models.clone(), limit, measure };
                let (found, times) = timed(table, &terms, LatticeStrategy::Bfs, 1);
                let value = found.best.as_ref().map_or("impossible".to_owned(), |best| {
                    format!("{:.4}", measure.shown(best.cost, best.policy.len()))
                });
                costs.push(found.best.map(|best| best.cost));
                cells.push(format!("{value}, {:.1}, {}", times[0] * 1e3, found.checked));
            }
            let share = match (costs[0], costs[1]) {
                (Some(none), Some(some)) if none > 0.0 => format!("{:.0} %", 100.0 * some / none),
                _ => "—".to_owned(),
            };
            println!("| {name} | {} | {share} |", cells.join(" | "));
        }
    }
}
