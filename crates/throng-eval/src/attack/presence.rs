//! Presence attack: the attacker knows sending moments and guesses the label most in excess afterwards.

use super::attack_input::{AttackInput, LinkedGroup};
use super::subject_exchange::exchange_subjects;
use super::trials::{AttackTrials, AttackYield};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::BTreeSet;
use throng_core::values::schema::Role;

const MOMENTS: usize = 20;
const LEAST_MOMENTS: usize = 3;
/// Bins counted after a moment.
const REACHES: [usize; 4] = [1, 5, 20, 60];
const MOST_BINS: usize = 500;
const MOST_TARGETS: usize = 300;
/// Drawn at random.
const MOST_LABELS: usize = 5_000;

/// Attacks each group.
pub fn run(release: &AttackInput<'_>, targets: usize, dice: &mut ChaCha8Rng) -> Vec<AttackYield> {
    let known = release.linked_groups();
    let batches: BTreeSet<u64> = known.iter().flat_map(|group| group.batches.keys().copied()).collect();
    let batches: Vec<u64> = batches.into_iter().collect();
    let width = batches.len().div_ceil(MOST_BINS).max(1);
    let bin = |batch: u64| batches.partition_point(|at| *at < batch) / width;
    let bins = batches.len() / width + 1;
    let mut moments: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); release.population];
    for (arrival, person) in release.arrival_batches().into_iter().zip(&release.people) {
        if let Some(batch) = arrival {
            moments[*person as usize].insert(bin(batch));
        }
    }
    let mut yields = Vec::new();
    for group in &known {
        let timeless = |a: &usize| release.original.schema.attributes[*a].role != Role::Time;
        if !group.shape.quasi.iter().any(timeless) {
            continue;
        }
        let seen = LabelCounts::from_group(release, group, &bin, bins, dice);
        let mut people: Vec<u32> = (0..release.population as u32)
            .filter(|person| {
                moments[*person as usize].len() >= LEAST_MOMENTS && !seen.of_person[*person as usize].is_empty()
            })
            .collect();
        people.shuffle(dice);
        people.truncate(targets.min(MOST_TARGETS));
        let told: Vec<(u32, Vec<usize>)> = people
            .into_iter()
            .map(|person| {
                let mut known: Vec<usize> = moments[person as usize].iter().copied().collect();
                known.shuffle(dice);
                known.truncate(MOMENTS);
                (person, known)
            })
            .collect();
        let doubles = exchange_subjects(&seen.lines, dice);
        let ways = REACHES
            .into_iter()
            .flat_map(|reach| [(reach, ExpectedCount::WholeRelease), (reach, ExpectedCount::NearbyBins)]);
        let tried: Vec<(f64, f64)> = ways.map(|way| seen.success_shares(&told, way, &doubles)).collect();
        let best = |of: fn(&(f64, f64)) -> f64| tried.iter().map(of).fold(0.0, f64::max);
        let mut trials = AttackTrials::default();
        told.iter().for_each(|_| trials.add(best(|(right, _)| *right), best(|(_, chance)| *chance)));
        let given = format!("up to {MOMENTS} moments, for a class of {}", group.group.name);
        yields.push(trials.into_yield("presence", given, release.repetition_bound()).allow_chance());
    }
    yields
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedCount {
    WholeRelease,
    /// Removes the common trend.
    NearbyBins,
}

/// Bins per side relative to the counted bins, and their minimum.
const NEARBY_FACTOR: usize = 2;
const MIN_NEARBY_BINS: usize = 5;

struct LabelCounts {
    /// Cumulative lines, by label.
    before: Vec<Vec<u32>>,
    of_person: Vec<BTreeSet<u32>>,
    lines: Vec<usize>,
    bins: usize,
}

impl LabelCounts {
    fn from_group(
        release: &AttackInput<'_>,
        known: &LinkedGroup<'_>,
        bin: &dyn Fn(u64) -> usize,
        bins: usize,
        dice: &mut ChaCha8Rng,
    ) -> Self {
        let (number, of_line) = known.labels(&release.original.schema);
        // Index by label number.
        let mut drawn: Vec<usize> = (0..number).collect();
        drawn.shuffle(dice);
        drawn.truncate(MOST_LABELS);
        let mut place = vec![None; number];
        drawn.iter().enumerate().for_each(|(at, label)| place[*label] = Some(at as u32));
        let mut before = vec![vec![0_u32; bins + 1]; drawn.len()];
        let mut of_person = vec![BTreeSet::new(); release.population];
        let mut lines = vec![0; release.population];
        for (line, label) in of_line.into_iter().enumerate() {
            let person = known.person(&release.people, line) as usize;
            lines[person] += 1;
            if let Some(label) = label.and_then(|label| place[label as usize]) {
                before[label as usize][bin(known.origins[line].batch) + 1] += 1;
                of_person[person].insert(label);
            }
        }
        for counts in &mut before {
            (1..=bins).for_each(|at| counts[at] += counts[at - 1]);
        }
        Self { before, of_person, lines, bins }
    }

    /// Shares of correct targets, and of doubles by chance.
    fn success_shares(&self, told: &[(u32, Vec<usize>)], way: (usize, ExpectedCount), doubles: &[u32]) -> (f64, f64) {
        let found: Vec<[bool; 2]> = told
            .par_iter()
            .map(|(person, moments)| {
                let best = (0..self.before.len()).max_by(|a, b| {
                    self.score(*a, moments, way).total_cmp(&self.score(*b, moments, way)).then(b.cmp(a))
                });
                let has =
                    |person: u32| best.is_some_and(|best| self.of_person[person as usize].contains(&(best as u32)));
                [has(*person), has(doubles[*person as usize])]
            })
            .collect();
        let share = |of: usize| found.iter().filter(|found| found[of]).count() as f64 / found.len().max(1) as f64;
        (share(0), share(1))
    }

    /// Excess of the label, in standard deviations.
    fn score(&self, label: usize, moments: &[usize], (reach, baseline): (usize, ExpectedCount)) -> f64 {
        let before = &self.before[label];
        let lines = |from: usize, to: usize| f64::from(before[to] - before[from]);
        let mean = lines(0, self.bins) / self.bins as f64;
        let (mut met, mut expected) = (0.0, 0.0);
        for &at in moments {
            let to = (at + reach).min(self.bins);
            met += lines(at, to);
            expected += match baseline {
                ExpectedCount::WholeRelease => mean * reach as f64,
                ExpectedCount::NearbyBins => {
                    let side = (NEARBY_FACTOR * reach).max(MIN_NEARBY_BINS);
                    let (from, until) = (at.saturating_sub(side), (to + side).min(self.bins));
                    let around = (until - from).saturating_sub(to - at).max(1);
                    (lines(from, until) - lines(at, to)) / around as f64 * (to - at) as f64
                }
            };
        }
        let spread = match baseline {
            ExpectedCount::WholeRelease => mean,
            ExpectedCount::NearbyBins => expected,
        };
        (met - expected) / spread.max(1e-3).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    /// Sixty unique classes, one of two hundred, and a load that varies fifteenfold: the large class exceeds its mean
    /// after any moment.
    #[test]
    fn presence_with_nearby_bins_finds_classes_under_varying_load() {
        const PEOPLE: usize = 60;
        const BINS: usize = 400;
        let mut dice = ChaCha8Rng::seed_from_u64(5);
        let mut before = vec![vec![0_u32; BINS + 1]; PEOPLE + 1];
        let mut moments: Vec<Vec<usize>> = vec![Vec::new(); PEOPLE];
        for bin in 0..BINS {
            let load = if bin / 40 % 2 == 0 { 0.02 } else { 0.3 };
            for (label, counts) in before.iter_mut().enumerate() {
                let people = if label < PEOPLE { 1 } else { 200 };
                let lines = (0..people).filter(|_| dice.random_bool(load)).count() as u32;
                counts[bin + 1] = counts[bin] + lines;
                if label < PEOPLE && lines > 0 {
                    moments[label].push(bin);
                }
            }
        }
        let told: Vec<(u32, Vec<usize>)> = (0..)
            .zip(moments)
            .map(|(person, mut known)| {
                known.shuffle(&mut dice);
                known.truncate(MOMENTS);
                (person, known)
            })
            .collect();
        let of_person = (0..PEOPLE as u32).map(|label| BTreeSet::from([label])).collect();
        let seen = LabelCounts { before, of_person, lines: vec![1; PEOPLE], bins: BINS };
        let doubles: Vec<u32> = (1..=PEOPLE as u32).map(|next| next % PEOPLE as u32).collect();
        let (whole, _) = seen.success_shares(&told, (1, ExpectedCount::WholeRelease), &doubles);
        let (around, chance) = seen.success_shares(&told, (1, ExpectedCount::NearbyBins), &doubles);
        assert!(
            whole < 0.1 && around > 0.7 && chance < 0.1,
            "{whole} by the whole release, {around} by what is around, {chance} by chance"
        );
    }
}
