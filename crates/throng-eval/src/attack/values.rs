//! Joining attack by values of dependent attributes.

use super::attack_input::{AttackEffort, AttackInput};
use super::joining::GroupPair;
use super::trials::{AttackTrials, AttackYield};
use crate::released_lines::ReleasedGroup;
use rayon::prelude::*;
use std::collections::BTreeMap;
use throng_core::attribute_dependence::{bin_column, draw_random_pairings, information_beyond_chance};
use throng_core::values::codebook::CellId;

const BINS: usize = 16;
/// By mutual information.
const MAX_ATTRIBUTE_PAIRS: usize = 6;
const LEAST_BITS: f64 = 0.02;
/// Keeps unseen combinations possible.
const BIN_PSEUDO_COUNT: f64 = 0.5;

/// Joint frequency of bins relative to independence.
struct BinLift {
    attributes: [usize; 2],
    of: [[f64; BINS]; BINS],
}

/// Attacks `effort.targets` lines over the group pairs.
pub fn run(release: &AttackInput<'_>, meetings: &[GroupPair<'_>], effort: AttackEffort) -> Vec<AttackYield> {
    if meetings.is_empty() {
        return Vec::new();
    }
    let columns = &release.original.batch.columns;
    let mut attributes: Vec<usize> = release.shapes.iter().flat_map(|shape| shape.quasi.clone()).collect();
    attributes.sort_unstable();
    attributes.dedup();
    let binned: BTreeMap<usize, Vec<u8>> =
        attributes.par_iter().map(|&a| (a, bin_column(&release.original.books[a], &columns[a]))).collect();
    let strangers = draw_random_pairings(&release.original.batch.subjects);
    let mut lifts: BTreeMap<[usize; 2], Vec<BinLift>> = BTreeMap::new();
    let of_each = (effort.targets / meetings.len()).max(1);
    let mut trials = AttackTrials::default();
    for meeting in meetings {
        let key = [meeting.groups[0].number, meeting.groups[1].number];
        let lifts = lifts.entry(key).or_insert_with(|| strongest_lifts(release, meeting, &binned, &strangers));
        if !lifts.is_empty() {
            join_by_values(release, meeting, &binned, lifts, of_each, &mut trials);
        }
    }
    let given = "two groups of a batch, joint frequencies of values".to_owned();
    vec![release.adjust_pair_yield(trials.into_yield("joining by values", given, Some(release.batch_bound())))]
}

fn strongest_lifts(
    release: &AttackInput<'_>,
    meeting: &GroupPair<'_>,
    binned: &BTreeMap<usize, Vec<u8>>,
    strangers: &[Vec<u32>],
) -> Vec<BinLift> {
    let [left, right] = meeting.groups.map(|group| &group.shape.quasi);
    // Shared attributes are equal in all candidates.
    let own = |of: &[usize], other: &[usize]| of.iter().copied().filter(|a| !other.contains(a)).collect::<Vec<_>>();
    let (left, right) = (own(left, right), own(right, left));
    let pairs: Vec<[usize; 2]> = left.iter().flat_map(|&a| right.iter().map(move |&b| [a, b])).collect();
    let said = |[a, b]: [usize; 2]| (information_beyond_chance(&binned[&a], &binned[&b], strangers), [a, b]);
    let mut pairs: Vec<(f64, [usize; 2])> =
        pairs.into_par_iter().filter(|[a, b]| a != b).map(said).filter(|(bits, _)| *bits >= LEAST_BITS).collect();
    pairs.sort_by(|x, y| y.0.total_cmp(&x.0).then_with(|| x.1.cmp(&y.1)));
    pairs.truncate(MAX_ATTRIBUTE_PAIRS);
    let rows = release.original.rows() as f64;
    let lift = |(_, [a, b]): (f64, [usize; 2])| {
        let (mut of, mut of_a, mut of_b) =
            ([[BIN_PSEUDO_COUNT; BINS]; BINS], [BIN_PSEUDO_COUNT; BINS], [BIN_PSEUDO_COUNT; BINS]);
        for (&x, &y) in binned[&a].iter().zip(&binned[&b]) {
            of[x as usize][y as usize] += 1.0;
            of_a[x as usize] += 1.0;
            of_b[y as usize] += 1.0;
        }
        for (x, row) in of.iter_mut().enumerate() {
            row.iter_mut().enumerate().for_each(|(y, n)| *n *= rows / (of_a[x] * of_b[y]));
        }
        BinLift { attributes: [a, b], of }
    };
    pairs.into_iter().map(lift).collect()
}

fn cell_distributions(release: &AttackInput<'_>, attribute: usize, binned: &[u8]) -> BTreeMap<CellId, [f64; BINS]> {
    let column = &release.original.batch.columns[attribute];
    let mut bin_of = vec![0_u8; release.facts[attribute].counts.len()];
    column.iter().zip(binned).for_each(|(code, bin)| bin_of[*code as usize] = *bin);
    let printed = release.groups.iter().filter_map(|group: &ReleasedGroup| group.column(attribute)).flatten();
    let mut spread = BTreeMap::new();
    for &cell in printed {
        spread.entry(cell).or_insert_with(|| {
            let facts = release.facts[attribute].get(cell);
            let mut of = [0.0; BINS];
            for &code in &facts.codes {
                of[bin_of[code as usize] as usize] +=
                    release.facts[attribute].counts[code as usize] as f64 / facts.records.max(1) as f64;
            }
            // Without known values: uniform.
            if facts.codes.is_empty() { [1.0 / BINS as f64; BINS] } else { of }
        });
    }
    spread
}

fn join_by_values(
    release: &AttackInput<'_>,
    meeting: &GroupPair<'_>,
    binned: &BTreeMap<usize, Vec<u8>>,
    lifts: &[BinLift],
    most: usize,
    trials: &mut AttackTrials,
) {
    let [left, right] = &meeting.lines;
    let [one, other] = meeting.groups;
    let mut scores = vec![vec![0.0_f64; right.len()]; left.len().min(most)];
    // Sample the whole batch.
    let step = left.len().div_ceil(most).max(1);
    let tried: Vec<usize> = left.iter().step_by(step).take(most).copied().collect();
    for lift in lifts {
        let [a, b] = lift.attributes;
        let (Some(of_a), Some(of_b)) = (one.group.column(a), other.group.column(b)) else { continue };
        let (left_spread, right_spread) =
            (cell_distributions(release, a, &binned[&a]), cell_distributions(release, b, &binned[&b]));
        for (scores, &line) in scores.iter_mut().zip(&tried) {
            let mut weights = [0.0; BINS];
            for (x, share) in left_spread[&of_a[line]].iter().enumerate() {
                weights.iter_mut().zip(&lift.of[x]).for_each(|(weight, lift)| *weight += share * lift);
            }
            for (score, &to) in scores.iter_mut().zip(right) {
                let fit: f64 = weights.iter().zip(&right_spread[&of_b[to]]).map(|(w, r)| w * r).sum();
                *score += fit.max(1e-9).ln();
            }
        }
    }
    for (scores, &line) in scores.iter().zip(&tried) {
        let own = one.person(&release.people, line);
        let is_own = |to: usize| other.person(&release.people, right[to]) == own;
        let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let equal: Vec<usize> = (0..right.len()).filter(|&to| scores[to] > best - 1e-9).collect();
        let share = |of: usize, all: usize| of as f64 / all.max(1) as f64;
        let found = equal.iter().filter(|&&to| is_own(to)).count();
        trials.add_to_group(
            &meeting.name(),
            share(found, equal.len()),
            share((0..right.len()).filter(|&to| is_own(to)).count(), right.len()),
        );
    }
}
