//! Covariance attack: labels of two groups with correlated counts over the batches share subjects.

use super::attack_input::{AttackInput, LinkedGroup};
use super::subject_exchange::exchange_subjects;
use super::trials::{AttackTrials, AttackYield};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::BTreeSet;

const BIN_WIDTHS: [usize; 4] = [1, 5, 20, 60];
const LEAST_BINS: usize = 10;
const MOST_BINS: usize = 500;
/// Maximum labels, drawn from those with [`LEAST_LINES`] lines.
const MOST_LABELS: usize = 200;
const LEAST_LINES: usize = 5;
const CLAIMED_PAIRS: usize = 100;
/// Subject exchanges for the chance rate.
const EXCHANGES: usize = 5;

struct GroupLabels {
    lines: Vec<Vec<usize>>,
    people: Vec<BTreeSet<u32>>,
    all: Vec<usize>,
}

/// Correlation, then group and label of both sides.
type LabelPairClaim = (f64, (usize, usize), (usize, usize));

/// Attacks all pairs of groups.
pub fn run(release: &AttackInput<'_>, dice: &mut ChaCha8Rng) -> Vec<AttackYield> {
    let known = release.linked_groups();
    if known.len() < 2 {
        return Vec::new();
    }
    let batches: BTreeSet<u64> = known.iter().flat_map(|group| group.batches.keys().copied()).collect();
    let batches: Vec<u64> = batches.into_iter().collect();
    let groups: Vec<GroupLabels> = known.iter().map(|group| draw_labels(release, group, &batches, dice)).collect();
    let mut lines = vec![0_usize; release.population];
    for group in &known {
        (0..group.group.lines).for_each(|line| lines[group.person(&release.people, line) as usize] += 1);
    }
    let doubles: Vec<Vec<u32>> = (0..EXCHANGES).map(|_| exchange_subjects(&lines, dice)).collect();
    let least = batches.len().div_ceil(MOST_BINS).max(1);
    let mut widths: Vec<usize> = BIN_WIDTHS.iter().map(|width| (*width).max(least)).collect();
    widths.dedup();
    widths.retain(|width| batches.len() / width >= LEAST_BINS);
    let mut best: Option<(f64, f64, usize)> = None;
    for width in widths {
        let claims = pair_claims(&groups, batches.len(), width);
        if claims.is_empty() {
            continue;
        }
        let share = |true_of: &dyn Fn(&LabelPairClaim) -> bool| {
            claims.iter().filter(|claim| true_of(claim)).count() as f64 / claims.len() as f64
        };
        let right = share(&|(_, x, y)| !groups[x.0].people[x.1].is_disjoint(&groups[y.0].people[y.1]));
        let by_chance = doubles.iter().map(|double| {
            share(&|(_, x, y)| {
                let of_x = &groups[x.0].people[x.1];
                groups[y.0].people[y.1].iter().any(|person| of_x.contains(&double[*person as usize]))
            })
        });
        let chance = by_chance.sum::<f64>() / EXCHANGES as f64;
        best = Some(best.map_or((right, chance, claims.len()), |best| {
            (best.0.max(right), best.1.max(chance), best.2.max(claims.len()))
        }));
    }
    let mut trials = AttackTrials::default();
    if let Some((right, chance, claims)) = best {
        (0..claims).for_each(|_| trials.add(right, chance));
    }
    let given = format!("counts of labels over {} batches", batches.len());
    vec![trials.into_yield("joining by covariance", given, release.repetition_bound()).allow_chance()]
}

fn draw_labels(
    release: &AttackInput<'_>,
    known: &LinkedGroup<'_>,
    batches: &[u64],
    dice: &mut ChaCha8Rng,
) -> GroupLabels {
    let at = |line: usize| batches.partition_point(|batch| *batch < known.origins[line].batch);
    let (number, of_line) = known.labels(&release.original.schema);
    let mut lines: Vec<Vec<usize>> = vec![Vec::new(); number];
    for (line, label) in of_line.iter().enumerate() {
        if let Some(label) = label {
            lines[*label as usize].push(line);
        }
    }
    lines.retain(|lines| lines.len() >= LEAST_LINES);
    lines.shuffle(dice);
    lines.truncate(MOST_LABELS);
    let person = |line: &usize| known.person(&release.people, *line);
    GroupLabels {
        people: lines.iter().map(|lines| lines.iter().map(person).collect()).collect(),
        lines: lines.iter().map(|lines| lines.iter().map(|line| at(*line)).collect()).collect(),
        all: (0..known.group.lines).map(at).collect(),
    }
}

/// Lines by bin minus the label's share, scaled to length 1.
fn label_series(labels: &GroupLabels, batches: usize, width: usize) -> Vec<Vec<f64>> {
    let bins = batches / width + 1;
    let mut all = vec![0.0_f64; bins];
    labels.all.iter().for_each(|batch| all[batch / width] += 1.0);
    let total: f64 = all.iter().sum();
    let one = |lines: &Vec<usize>| {
        let share = lines.len() as f64 / total.max(1.0);
        let mut series: Vec<f64> = all.iter().map(|all| -share * all).collect();
        lines.iter().for_each(|batch| series[batch / width] += 1.0);
        let length = series.iter().map(|x| x * x).sum::<f64>().sqrt();
        if length > 1e-9 {
            series.iter_mut().for_each(|x| *x /= length);
        }
        series
    };
    labels.lines.iter().map(one).collect()
}

fn pair_claims(groups: &[GroupLabels], batches: usize, width: usize) -> Vec<LabelPairClaim> {
    let series: Vec<Vec<Vec<f64>>> = groups.par_iter().map(|labels| label_series(labels, batches, width)).collect();
    let pairs: Vec<(usize, usize)> =
        (0..groups.len()).flat_map(|a| (a + 1..groups.len()).map(move |b| (a, b))).collect();
    let of_pair = |(a, b): (usize, usize)| {
        let mut claims: Vec<LabelPairClaim> = Vec::new();
        for (i, x) in series[a].iter().enumerate() {
            let score = |y: &Vec<f64>| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
            claims.extend(series[b].iter().enumerate().map(|(j, y)| (score(y), (a, i), (b, j))));
        }
        top_claims(claims)
    };
    let all: Vec<LabelPairClaim> = pairs.into_par_iter().flat_map_iter(of_pair).collect();
    top_claims(all)
}

fn top_claims(mut claims: Vec<LabelPairClaim>) -> Vec<LabelPairClaim> {
    claims.sort_by(|x, y| y.0.total_cmp(&x.0).then_with(|| (x.1, x.2).cmp(&(y.1, y.2))));
    claims.truncate(CLAIMED_PAIRS);
    claims.retain(|claim| claim.0 > 0.0);
    claims
}
