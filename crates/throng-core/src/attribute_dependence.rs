//! Mutual information of two attributes beyond chance (docs/internals/methods.md §14.1).

use crate::values::codebook::{Code, Codebook};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Longer domains share bins.
const MAX_VALUE_BINS: usize = 16;

/// Distinct codes of `column`: numbers by size, then texts and times in text order.
pub fn sorted_distinct_codes(book: &Codebook, column: &[Code]) -> Vec<Code> {
    let mut codes: Vec<Code> = column.to_vec();
    codes.sort_unstable();
    codes.dedup();
    let number = |code: Code| book.canonical(code).parse::<f64>().unwrap_or(f64::INFINITY);
    codes.sort_by(|&a, &b| number(a).total_cmp(&number(b)).then_with(|| book.canonical(a).cmp(book.canonical(b))));
    codes
}

/// Bin of each row: a value, or a range of values.
pub fn bin_column(book: &Codebook, column: &[Code]) -> Vec<u8> {
    let mut counts = vec![0_usize; book.codes()];
    column.iter().for_each(|&code| counts[code as usize] += 1);
    let codes = sorted_distinct_codes(book, column);
    let many = codes.len() > MAX_VALUE_BINS;
    let (rows, mut before) = (column.len().max(1), 0);
    let mut bin = vec![0_u8; book.codes()];
    for (rank, &code) in codes.iter().enumerate() {
        let share = if many { before * MAX_VALUE_BINS / rows } else { rank };
        bin[code as usize] = share.min(MAX_VALUE_BINS - 1) as u8;
        before += counts[code as usize];
    }
    column.iter().map(|&code| bin[code as usize]).collect()
}

/// Mutual information minus its mean over random pairings of subjects; at least 0 bits.
///
/// Pairing whole subjects preserves the bias of few subjects with many records.
pub fn information_beyond_chance(a: &[u8], b: &[u8], strangers: &[Vec<u32>]) -> f64 {
    let paired = |rows: &Vec<u32>| mutual_information(a, rows.iter().map(|&row| b[row as usize]));
    let chance = strangers.iter().map(paired).sum::<f64>() / strangers.len().max(1) as f64;
    (mutual_information(a, b.iter().copied()) - chance).max(0.0)
}

const RANDOM_PAIRINGS: usize = 3;

/// Rows of randomly drawn subjects, by pairing and row.
pub fn draw_random_pairings(subjects: &[u64]) -> Vec<Vec<u32>> {
    // Numbers by first occurrence do not depend on the digest key.
    let mut number_of: BTreeMap<u64, usize> = BTreeMap::new();
    let mut people: Vec<Vec<u32>> = Vec::new();
    for (row, subject) in (0_u32..).zip(subjects) {
        let number = *number_of.entry(*subject).or_insert(people.len());
        if number == people.len() {
            people.push(Vec::new());
        }
        people[number].push(row);
    }
    let mut dice = ChaCha8Rng::seed_from_u64(0);
    let pairing = |_| {
        let mut others: Vec<usize> = (0..people.len()).collect();
        others.shuffle(&mut dice);
        let mut drawn = vec![0; subjects.len()];
        for (own, other) in people.iter().zip(others) {
            let theirs = people[other].iter().cycle();
            own.iter().zip(theirs).for_each(|(row, stranger)| drawn[*row as usize] = *stranger);
        }
        drawn
    };
    (0..RANDOM_PAIRINGS).map(pairing).collect()
}

fn mutual_information(one: &[u8], other: impl Iterator<Item = u8>) -> f64 {
    // Filling it dominates the startup of wide schemas.
    let mut joint = [0_u32; MAX_VALUE_BINS * MAX_VALUE_BINS];
    for (&x, y) in one.iter().zip(other) {
        joint[usize::from(x) * MAX_VALUE_BINS + usize::from(y)] += 1;
    }
    let (mut left, mut right) = ([0_u32; MAX_VALUE_BINS], [0_u32; MAX_VALUE_BINS]);
    let mut joint_bits = 0.0;
    for (counts, of_left) in joint.chunks_exact(MAX_VALUE_BINS).zip(&mut left) {
        for (&count, of_right) in counts.iter().zip(&mut right) {
            *of_left += count;
            *of_right += count;
            joint_bits += weighted_log2(count);
        }
    }
    let rows = left.iter().sum::<u32>();
    if rows == 0 {
        return 0.0;
    }
    let marginal_bits: f64 = left.iter().chain(&right).map(|&count| weighted_log2(count)).sum();
    (joint_bits - marginal_bits + weighted_log2(rows)) / f64::from(rows)
}

fn weighted_log2(count: u32) -> f64 {
    static SMALL_WEIGHTED_LOGS: LazyLock<[f64; 1024]> = LazyLock::new(|| {
        std::array::from_fn(|count| if count == 0 { 0.0 } else { count as f64 * (count as f64).log2() })
    });
    SMALL_WEIGHTED_LOGS.get(count as usize).copied().unwrap_or_else(|| f64::from(count) * f64::from(count).log2())
}

/// Mutual information of attribute pairs, in bits.
#[derive(Clone, Debug, Default)]
pub struct AttributeDependence(BTreeMap<(usize, usize), f64>);

impl AttributeDependence {
    /// Computes every pair in O(attributes² · rows). `subjects` is by row.
    pub fn of<'a>(
        attributes: &[usize],
        subjects: &[u64],
        column: impl Fn(usize) -> &'a [Code] + Sync,
        books: &[Codebook],
    ) -> Self {
        let strangers = draw_random_pairings(subjects);
        let binned: Vec<(usize, Vec<u8>)> =
            attributes.par_iter().map(|&a| (a, bin_column(&books[a], column(a)))).collect();
        let pairs: Vec<(usize, usize)> =
            (0..binned.len()).flat_map(|a| (a + 1..binned.len()).map(move |b| (a, b))).collect();
        let bits = |&(a, b): &(usize, usize)| {
            let ((a, of_a), (b, of_b)) = (&binned[a], &binned[b]);
            ((*a.min(b), *a.max(b)), information_beyond_chance(of_a, of_b, &strangers))
        };
        Self(pairs.par_iter().map(bits).collect())
    }

    /// Mutual information of two attributes, in bits.
    pub fn pair_information(&self, a: usize, b: usize) -> f64 {
        self.0.get(&(a.min(b), a.max(b))).copied().unwrap_or(0.0)
    }

    /// Sum over the pairs of a group, in bits.
    pub fn group_information(&self, group: &[usize]) -> f64 {
        let pairs = group.iter().enumerate().flat_map(|(at, &a)| group[at + 1..].iter().map(move |&b| (a, b)));
        pairs.fold(0.0, |sum, (a, b)| sum + self.pair_information(a, b))
    }

    /// Sum between `attribute` and a group, in bits.
    pub fn information_about(&self, attribute: usize, group: &[usize]) -> f64 {
        group.iter().map(|&a| self.pair_information(a, attribute)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependence_is_zero_if_independent_and_entropy_if_equal() {
        let subjects: Vec<u64> = (0..4000).collect();
        let a: Vec<u8> = subjects.iter().map(|n| (n % 4) as u8).collect();
        let b: Vec<u8> = subjects.iter().map(|n| (n / 4 % 4) as u8).collect();
        let strangers = draw_random_pairings(&subjects);
        assert!(information_beyond_chance(&a, &b, &strangers) < 1e-9);
        assert!((information_beyond_chance(&a, &a, &strangers) - 2.0).abs() < 0.01);
    }

    #[test]
    fn random_pairings_do_not_depend_on_subject_digests() {
        let subjects: Vec<u64> = (0..400).map(|n| n * n % 37).collect();
        let renamed: Vec<u64> = subjects.iter().map(|subject| subject.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        assert_eq!(draw_random_pairings(&subjects), draw_random_pairings(&renamed));
    }

    #[test]
    fn dependence_excludes_chance_agreement_of_few_subjects() {
        let subjects: Vec<u64> = (0..4000).map(|n| n / 200).collect();
        let of = |salt: u64| -> Vec<u8> {
            subjects.iter().map(|person| ((person + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as u8).collect()
        };
        let (a, b) = (of(1), of(1_000_003));
        let raw = mutual_information(&a, b.iter().copied());
        let found = information_beyond_chance(&a, &b, &draw_random_pairings(&subjects));
        assert!(raw > 1.0 && found < raw / 3.0, "{raw} raw, {found} beyond chance");
    }
}
