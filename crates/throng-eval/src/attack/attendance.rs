//! Attendance attack: least-squares estimate of a subject's cells from presence per batch. The dual form allows more
//! subjects than batches.

use super::attack_input::{AttackInput, LinkedGroup};
use super::subject_exchange::exchange_subjects;
use super::trials::{AttackTrials, AttackYield};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::{CellId, SUPPRESSED};
use throng_core::values::schema::Role;

const MOST_BINS: usize = 400;
const MOST_PEOPLE: usize = 2_000;
const MOST_CELLS: usize = 100;
const MOST_TARGETS: usize = 300;
const LEAST_BINS: usize = 10;
const LEAST_MOMENTS: usize = 3;
/// Relative to the mean square of the counts.
const PENALTIES: [f64; 4] = [1e-6, 1e-2, 0.1, 1.0];

/// Attacks each attribute, except time and shared attributes.
pub fn run(release: &AttackInput<'_>, targets: usize, dice: &mut ChaCha8Rng) -> Vec<AttackYield> {
    let known = release.linked_groups();
    let batches: BTreeSet<u64> = known.iter().flat_map(|group| group.batches.keys().copied()).collect();
    let batches: Vec<u64> = batches.into_iter().collect();
    let width = batches.len().div_ceil(MOST_BINS).max(1);
    let bins = batches.len().div_ceil(width);
    if bins < LEAST_BINS {
        return Vec::new();
    }
    let bin = |batch: u64| batches.partition_point(|at| *at < batch) / width;
    let mut moments: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); release.population];
    for (arrival, person) in release.arrival_batches().into_iter().zip(&release.people) {
        if let Some(batch) = arrival {
            moments[*person as usize].insert(bin(batch));
        }
    }
    let mut people: Vec<u32> = (0..release.population as u32).collect();
    people.retain(|person| moments[*person as usize].len() >= LEAST_MOMENTS);
    people.shuffle(dice);
    people.truncate(MOST_PEOPLE);
    let present: Vec<(u32, &BTreeSet<usize>)> =
        people.iter().map(|&person| (person, &moments[person as usize])).collect();
    let solvers: Vec<RidgeSolver> =
        PENALTIES.par_iter().filter_map(|&penalty| RidgeSolver::new(&present, bins, penalty)).collect();
    let mut trials = AttackTrials::default();
    for group in &known {
        let timeless =
            |a: &&usize| release.original.schema.attributes[**a].role != Role::Time && !group.shared.contains(*a);
        for &attribute in group.shape.quasi.iter().chain(&group.shape.sensitive).filter(timeless) {
            let Some(counted) = CellCounts::from_group(release, group, attribute, &bin, bins) else { continue };
            let of_person = |person: u32| &counted.of_person[person as usize];
            let mut tried: Vec<(u32, &BTreeSet<usize>)> =
                present.iter().copied().filter(|(person, _)| !of_person(*person).is_empty()).collect();
            tried.truncate(targets.min(MOST_TARGETS));
            let doubles = exchange_subjects(&counted.lines, dice);
            let share = |hits: usize| hits as f64 / tried.len().max(1) as f64;
            let found = solvers.par_iter().map(|solver| {
                let guesses = solver.guess_cells(&counted.counts, &tried);
                let hits = |whose: &dyn Fn(u32) -> u32| {
                    let is_right = |((person, _), guess): &(&(u32, &BTreeSet<usize>), &usize)| {
                        of_person(whose(*person)).contains(*guess)
                    };
                    tried.iter().zip(&guesses).filter(is_right).count()
                };
                (share(hits(&|person| person)), share(hits(&|person| doubles[person as usize])))
            });
            let found: Vec<(f64, f64)> = found.collect();
            let best = |of: fn(&(f64, f64)) -> f64| found.iter().map(of).fold(0.0, f64::max);
            let name = format!("{}, {}", group.shape.name, release.original.schema.attributes[attribute].name);
            tried.iter().for_each(|_| trials.add_to_group(&name, best(|found| found.0), best(|found| found.1)));
        }
    }
    let given = format!("senders of each of {} batches, for a cell", batches.len());
    vec![trials.into_yield("attendance", given, release.repetition_bound()).allow_chance()]
}

struct CellCounts {
    /// Lines by cell and bin, minus the mean.
    counts: Vec<Vec<f64>>,
    of_person: Vec<BTreeSet<usize>>,
    lines: Vec<usize>,
}

impl CellCounts {
    fn from_group(
        release: &AttackInput<'_>,
        known: &LinkedGroup<'_>,
        attribute: usize,
        bin: &dyn Fn(u64) -> usize,
        bins: usize,
    ) -> Option<Self> {
        let column = known.group.column(attribute)?;
        let mut frequency: BTreeMap<CellId, usize> = BTreeMap::new();
        column.iter().filter(|cell| **cell != SUPPRESSED).for_each(|cell| *frequency.entry(*cell).or_default() += 1);
        let mut cells: Vec<(usize, CellId)> = frequency.into_iter().map(|(cell, lines)| (lines, cell)).collect();
        cells.sort_unstable_by(|a, b| b.cmp(a));
        cells.truncate(MOST_CELLS);
        if cells.len() < 2 {
            return None;
        }
        let place: BTreeMap<CellId, usize> = cells.iter().enumerate().map(|(at, (_, cell))| (*cell, at)).collect();
        let mut counted = Self {
            counts: vec![vec![0.0; bins]; cells.len()],
            of_person: vec![BTreeSet::new(); release.population],
            lines: vec![0; release.population],
        };
        for (line, cell) in column.iter().enumerate() {
            let person = known.person(&release.people, line) as usize;
            counted.lines[person] += 1;
            if let Some(&cell) = place.get(cell) {
                counted.counts[cell][bin(known.origins[line].batch)] += 1.0;
                counted.of_person[person].insert(cell);
            }
        }
        counted.counts.iter_mut().for_each(|counts| subtract_mean(counts));
        Some(counted)
    }
}

fn subtract_mean(series: &mut [f64]) {
    let mean = series.iter().sum::<f64>() / series.len().max(1) as f64;
    series.iter_mut().for_each(|value| *value -= mean);
}

struct RidgeSolver {
    /// Cholesky factor of A·Aᵀ + penalty; A is the centered presence matrix, one row per bin.
    factor: Vec<Vec<f64>>,
}

impl RidgeSolver {
    fn new(present: &[(u32, &BTreeSet<usize>)], bins: usize, penalty: f64) -> Option<Self> {
        let mut gram = vec![vec![0.0; bins]; bins];
        for (_, moments) in present {
            for &a in *moments {
                moments.iter().for_each(|&b| gram[a][b] += 1.0);
            }
        }
        gram.iter_mut().for_each(|row| subtract_mean(row));
        for column in 0..bins {
            let mean = gram.iter().map(|row| row[column]).sum::<f64>() / bins as f64;
            gram.iter_mut().for_each(|row| row[column] -= mean);
        }
        let trace: f64 = (0..bins).map(|at| gram[at][at]).sum();
        let ridge = (penalty * trace / bins as f64).max(1e-9);
        (0..bins).for_each(|at| gram[at][at] += ridge);
        Some(Self { factor: cholesky(gram)? })
    }

    fn guess_cells(&self, counts: &[Vec<f64>], targets: &[(u32, &BTreeSet<usize>)]) -> Vec<usize> {
        let weights: Vec<Vec<f64>> = counts
            .iter()
            .map(|counts| {
                let mut weights = solve_factored(&self.factor, counts);
                // Equivalent to centering each subject's presence.
                subtract_mean(&mut weights);
                weights
            })
            .collect();
        let effect = |cell: usize, moments: &BTreeSet<usize>| moments.iter().map(|&at| weights[cell][at]).sum::<f64>();
        let best = |(_, moments): &(u32, &BTreeSet<usize>)| {
            (0..weights.len())
                .max_by(|a, b| effect(*a, moments).total_cmp(&effect(*b, moments)).then(b.cmp(a)))
                .unwrap_or(0)
        };
        targets.iter().map(best).collect()
    }
}

/// Lower triangle L of L·Lᵀ.
fn cholesky(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    for row in 0..matrix.len() {
        for column in 0..=row {
            let inner: f64 = (0..column).map(|at| matrix[row][at] * matrix[column][at]).sum();
            let rest = matrix[row][column] - inner;
            matrix[row][column] = if row == column {
                if rest <= 0.0 {
                    return None;
                }
                rest.sqrt()
            } else {
                rest / matrix[column][column]
            };
        }
    }
    Some(matrix)
}

/// Solves L·Lᵀ·x = `right`.
fn solve_factored(factor: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut x = right.to_vec();
    for row in 0..x.len() {
        let inner: f64 = (0..row).map(|at| factor[row][at] * x[at]).sum();
        x[row] = (x[row] - inner) / factor[row][row];
    }
    for row in (0..x.len()).rev() {
        let inner: f64 = (row + 1..x.len()).map(|at| factor[at][row] * x[at]).sum();
        x[row] = (x[row] - inner) / factor[row][row];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cholesky_factor_solves_equations() {
        let matrix = vec![vec![4.0, 2.0, 0.5], vec![2.0, 5.0, 1.0], vec![0.5, 1.0, 3.0]];
        let x = solve_factored(&cholesky(matrix.clone()).expect("positive definite"), &[1.0, -2.0, 3.0]);
        let product: Vec<f64> = matrix.iter().map(|row| row.iter().zip(&x).map(|(a, x)| a * x).sum()).collect();
        assert!(product.iter().zip([1.0, -2.0, 3.0]).all(|(a, b)| (a - b).abs() < 1e-12), "{product:?}");
        assert_eq!(cholesky(vec![vec![0.0]]), None);
    }
}
