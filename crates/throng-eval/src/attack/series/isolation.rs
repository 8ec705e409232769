//! Isolation attack: the fewest subjects with non-zero coefficients in a combination of published sums (G1 of
//! docs/guarantees.md). The minimum weight is exact if feasible, otherwise over reduced rows and differences of two
//! sets.

use super::panel::Panel;
use crate::attack::trials::{AttackTrials, AttackYield};
use std::collections::{BTreeMap, BTreeSet};

const MOST_SUBSETS: u64 = 20_000;
const MOST_STEPS: u64 = 2_000_000_000;
const MOST_PAIRS: usize = 2_000;
const ZERO: f64 = 1e-9;

/// Fewest subjects with a non-zero coefficient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimumWeight {
    pub people: usize,
    /// False if smaller combinations may exist.
    pub is_exact: bool,
}

/// Runs one trial per component of sets.
pub fn run(panel: &Panel) -> AttackYield {
    let mut trials = AttackTrials::default();
    let (mut least, mut is_exact) = (usize::MAX, true);
    for sets in components(&published_sets(panel)) {
        let weight = minimum_weight(&sets);
        trials.add(1.0 / weight.people.max(1) as f64, 1.0 / panel.people.max(1) as f64);
        (least, is_exact) = (least.min(weight.people), is_exact && weight.is_exact);
    }
    let given = match (least, is_exact) {
        (usize::MAX, _) => "sums of sets".to_owned(),
        (least, true) => format!("smallest combination of all sums: {least} people"),
        (least, false) => format!("smallest combination of sums found: {least} people"),
    };
    trials.into_yield("series: isolation", given, Some(1.0 / panel.crowd.max(1) as f64)).judge_each_trial()
}

fn published_sets(panel: &Panel) -> Vec<&[u32]> {
    let sets: BTreeSet<&[u32]> = panel.sets.iter().map(Vec::as_slice).collect();
    sets.into_iter().filter(|set| !set.is_empty()).collect()
}

/// Partitions sets into disjoint components, whose weights add up.
pub fn components<'a>(sets: &[&'a [u32]]) -> Vec<Vec<&'a [u32]>> {
    let mut group_of: BTreeMap<u32, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&[u32]>> = Vec::new();
    for set in sets {
        let met: BTreeSet<usize> = set.iter().filter_map(|person| group_of.get(person).copied()).collect();
        let into = met.first().copied().unwrap_or(groups.len());
        if into == groups.len() {
            groups.push(Vec::new());
        }
        groups[into].push(set);
        for joined in met.into_iter().skip(1) {
            let moved = std::mem::take(&mut groups[joined]);
            moved.iter().flat_map(|set| set.iter()).for_each(|person| {
                group_of.insert(*person, into);
            });
            groups[into].extend(moved);
        }
        group_of.extend(set.iter().map(|person| (*person, into)));
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// Returns the minimum weight of the span of sets.
pub fn minimum_weight(sets: &[&[u32]]) -> MinimumWeight {
    let mut sets_of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (at, set) in (0_u32..).zip(sets) {
        set.iter().for_each(|person| sets_of.entry(*person).or_default().push(at));
    }
    let mut sizes: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    sets_of.into_values().for_each(|sets| *sizes.entry(sets).or_default() += 1);
    let (classes, sizes): (Vec<Vec<u32>>, Vec<usize>) = sizes.into_iter().unzip();
    let smallest = |found: usize, is_exact| MinimumWeight { people: found, is_exact };
    let (width, height) = (classes.len() as u64, sets.len() as u64);
    if width * height * width.min(height) > MOST_STEPS {
        return smallest(least_difference(sets), false);
    }
    // Rows are sets, columns are classes.
    let mut matrix = vec![vec![0.0; classes.len()]; sets.len()];
    for (column, sets) in classes.iter().enumerate() {
        sets.iter().for_each(|set| matrix[*set as usize][column] = 1.0);
    }
    let rank = reduce_rows(&mut matrix);
    matrix.truncate(rank);
    if rank == classes.len() {
        return smallest(sizes.iter().copied().min().unwrap_or(0), true);
    }
    let weight = |row: &[f64]| row.iter().zip(&sizes).filter(|(x, _)| x.abs() > ZERO).map(|(_, size)| size).sum();
    if subset_count(classes.len() as u64, rank as u64 - 1) <= MOST_SUBSETS {
        let mut least = usize::MAX;
        let mut chosen = Vec::new();
        for_each_subset(classes.len(), rank - 1, &mut chosen, &mut |zeros| {
            if let Some(row) = vanishing_combination(&matrix, zeros) {
                least = least.min(weight(&row));
            }
        });
        return smallest(least, true);
    }
    let least = matrix.iter().map(|row| weight(row)).min().unwrap_or(0);
    smallest(least.min(least_difference(sets)), false)
}

fn least_difference(sets: &[&[u32]]) -> usize {
    let mut least = sets.iter().map(|set| set.len()).min().unwrap_or(0);
    for (at, a) in sets.iter().enumerate().take(MOST_PAIRS) {
        let a: BTreeSet<u32> = a.iter().copied().collect();
        for b in &sets[..at] {
            let common = b.iter().filter(|person| a.contains(person)).count();
            let differing = a.len() + b.len() - 2 * common;
            least = if differing > 0 { least.min(differing) } else { least };
        }
    }
    least
}

/// Computes the reduced row echelon form and returns the rank.
fn reduce_rows(matrix: &mut [Vec<f64>]) -> usize {
    let (mut rank, width) = (0, matrix.first().map_or(0, Vec::len));
    for column in 0..width {
        let largest = (rank..matrix.len()).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()));
        let Some(pivot) = largest.filter(|row| matrix[*row][column].abs() > ZERO) else { continue };
        matrix.swap(rank, pivot);
        let factor = matrix[rank][column];
        matrix[rank].iter_mut().for_each(|x| *x /= factor);
        let pivot = matrix[rank].clone();
        for (at, row) in matrix.iter_mut().enumerate().filter(|(at, row)| *at != rank && row[column].abs() > ZERO) {
            debug_assert_ne!(at, rank);
            let factor = row[column];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
        rank += 1;
    }
    rank
}

/// Combination that is zero in these columns, if unique up to a factor.
fn vanishing_combination(rows: &[Vec<f64>], columns: &[usize]) -> Option<Vec<f64>> {
    // One equation per column for the row factors.
    let mut equations: Vec<Vec<f64>> =
        columns.iter().map(|column| rows.iter().map(|row| row[*column]).collect()).collect();
    if reduce_rows(&mut equations) + 1 != rows.len() {
        return None;
    }
    let pivots: Vec<usize> =
        equations.iter().filter_map(|equation| equation.iter().position(|x| x.abs() > ZERO)).collect();
    let free = (0..rows.len()).find(|at| !pivots.contains(at))?;
    let mut factors = vec![0.0; rows.len()];
    factors[free] = 1.0;
    equations.iter().zip(&pivots).for_each(|(equation, pivot)| factors[*pivot] = -equation[free]);
    let combine = |column: usize| rows.iter().zip(&factors).map(|(row, factor)| factor * row[column]).sum::<f64>();
    Some((0..rows[0].len()).map(combine).collect())
}

fn subset_count(of: u64, size: u64) -> u64 {
    (0..size).fold(1_u64, |number, at| number.saturating_mul(of - at) / (at + 1))
}

fn for_each_subset(of: usize, size: usize, chosen: &mut Vec<usize>, each: &mut impl FnMut(&[usize])) {
    if chosen.len() == size {
        each(chosen);
        return;
    }
    let first = chosen.last().map_or(0, |last| last + 1);
    for next in first..of {
        chosen.push(next);
        for_each_subset(of, size, chosen, each);
        chosen.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Small factors suffice for few subjects.
    fn brute_force_weight(sets: &[Vec<u32>], people: u32) -> usize {
        let mut least = usize::MAX;
        for code in 1..7_usize.pow(sets.len() as u32) {
            let factor = |set: usize| (code / 7_usize.pow(set as u32) % 7) as i64 - 3;
            let coefficient =
                |person: u32| -> i64 { (0..sets.len()).filter(|set| sets[*set].contains(&person)).map(&factor).sum() };
            let weight = (0..people).filter(|person| coefficient(*person) != 0).count();
            least = if weight > 0 { least.min(weight) } else { least };
        }
        least
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn minimum_weight_matches_all_combinations(bits in proptest::collection::vec(1_u32..256, 1..5)) {
            let sets: Vec<Vec<u32>> =
                bits.iter().map(|bits| (0..8).filter(|person| bits & (1 << person) != 0).collect()).collect();
            let borrowed: Vec<&[u32]> = sets.iter().map(Vec::as_slice).collect();
            let whole = minimum_weight(&borrowed);
            prop_assert_eq!(whole, MinimumWeight { people: brute_force_weight(&sets, 8), is_exact: true });
            let least = components(&borrowed).iter().map(|sets| minimum_weight(sets).people).min();
            prop_assert_eq!(least, Some(whole.people));
            prop_assert!(least_difference(&borrowed) >= whole.people);
        }
    }

    #[test]
    fn sets_differing_by_one_subject_isolate_it() {
        let sets: Vec<Vec<u32>> = vec![(0..10).collect(), (0..9).collect(), (20..30).collect()];
        let sets: Vec<&[u32]> = sets.iter().map(Vec::as_slice).collect();
        assert_eq!(minimum_weight(&sets), MinimumWeight { people: 1, is_exact: true });
        assert_eq!(minimum_weight(&sets[1..]), MinimumWeight { people: 9, is_exact: true });
    }
}
