//! Composition attack: several releases of a subject reveal a constant value that each hides \[GAN].

use super::attack_input::{AttackEffort, AttackInput, LinkedGroup};
use super::trials::{AttackTrials, AttackYield};
use crate::facts::is_present;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use throng_core::values::codebook::{CellId, Code};

const MAX_RELEASES: usize = 8;
/// With more values, linkage is the better attack.
const MOST_VALUES: usize = 200;
/// One falsified line must not decide.
const EXCLUDED_LIKELIHOOD: f64 = 1e-6;

/// Attacks `effort.targets` pairs of subject and attribute.
pub fn run(release: &AttackInput<'_>, effort: AttackEffort, dice: &mut ChaCha8Rng) -> Vec<AttackYield> {
    let known = release.linked_groups();
    let mut targets = constant_targets(release, &known);
    targets.shuffle(dice);
    targets.truncate(effort.targets.min(300));
    let (mut single, mut all) = (AttackTrials::default(), AttackTrials::default());
    for (at, attribute, mut lines) in targets {
        lines.shuffle(dice);
        lines.truncate(MAX_RELEASES);
        let group = &known[at];
        let there: Vec<u64> = lines.iter().map(|line| group.origins[*line].batch).collect();
        let own = group.person(&release.people, lines[0]);
        let is_there = |lines: &[usize]| lines.iter().any(|line| group.person(&release.people, *line) == own);
        let mut others: Vec<u64> =
            group.batches.iter().filter(|(_, lines)| !is_there(lines)).map(|(batch, _)| *batch).collect();
        others.shuffle(dice);
        if others.is_empty() {
            continue;
        }
        let elsewhere: Vec<u64> = others.iter().cycle().take(lines.len()).copied().collect();
        for (trials, releases) in [(&mut single, 1), (&mut all, lines.len())] {
            let right = |batches: &[u64]| {
                f64::from(u8::from(is_guess_right(release, group, attribute, &lines[..releases], &batches[..releases])))
            };
            trials.add(right(&there), right(&elsewhere));
        }
    }
    let several = format!("2 to {MAX_RELEASES} releases of a person: constant values");
    vec![
        single.into_yield("composition", "one release of a person: constant values".to_owned(), None).measured_only(),
        all.into_yield("composition", several, None).measured_only(),
    ]
}

fn constant_targets(release: &AttackInput<'_>, known: &[LinkedGroup<'_>]) -> Vec<(usize, usize, Vec<usize>)> {
    let mut targets = Vec::new();
    for (at, group) in known.iter().enumerate() {
        let mut lines = group.lines_by_person(&release.people);
        lines.retain(|_, lines| lines.len() > 1);
        for &attribute in group.shape.quasi.iter().chain(&group.shape.sensitive) {
            let values = release.facts[attribute].counts.iter().filter(|count| **count > 0).count();
            if !(2..=MOST_VALUES).contains(&values) {
                continue;
            }
            let column = &release.original.batch.columns[attribute];
            let code = |line: &usize| column[group.origins[*line].row as usize];
            for lines in lines.values() {
                let lines: Vec<usize> = lines.values().copied().collect();
                if is_present(code(&lines[0])) && lines.iter().all(|line| code(line) == code(&lines[0])) {
                    targets.push((at, attribute, lines));
                }
            }
        }
    }
    targets
}

fn is_guess_right(
    release: &AttackInput<'_>,
    known: &LinkedGroup<'_>,
    attribute: usize,
    lines: &[usize],
    batches: &[u64],
) -> bool {
    let (facts, columns) = (&release.facts[attribute], &release.original.batch.columns);
    let rows = release.original.rows().max(1) as f64;
    let prior = |code: usize| facts.counts[code] as f64 / rows;
    let mut score: Vec<f64> = (0..facts.counts.len()).map(|code| prior(code).ln()).collect();
    let Some(wanted) = known.group.column(attribute) else { return false };
    let mut given = known.quasi_columns();
    given.retain(|(a, _)| *a != attribute);
    for (&line, batch) in lines.iter().zip(batches) {
        let row = known.origins[line].row as usize;
        let fits = |at: &&usize| release.fits(&given, **at, row);
        let mut cells: BTreeMap<CellId, f64> = BTreeMap::new();
        known.batches[batch].iter().filter(fits).for_each(|at| *cells.entry(wanted[*at]).or_default() += 1.0);
        let all: f64 = cells.values().sum();
        if all == 0.0 {
            continue;
        }
        let mut shown = vec![0.0; score.len()];
        for (cell, count) in cells {
            let facts = facts.get(cell);
            for &code in &facts.codes {
                shown[code as usize] +=
                    count / all * release.facts[attribute].counts[code as usize] as f64 / facts.records.max(1) as f64;
            }
        }
        for (code, score) in score.iter_mut().enumerate() {
            *score += ((shown[code] + EXCLUDED_LIKELIHOOD) / (prior(code) + EXCLUDED_LIKELIHOOD)).ln();
        }
    }
    let best = (0..score.len()).filter(|code| is_present(*code as Code)).max_by(|a, b| score[*a].total_cmp(&score[*b]));
    best == Some(columns[attribute][known.origins[lines[0]].row as usize] as usize)
}
