//! What two attributes say of each other: mutual information beyond chance (docs/methods.md §14.1).

use super::sample::Sample;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use throng_core::values::codebook::{Code, Codebook};

/// Values of one attribute that are told apart at most; more are put into as many bins of about equal numbers of rows.
const BINS: usize = 16;

/// The codes of `column` that occur: numbers in their order, then texts in theirs, which is that of time for times.
pub fn in_order(book: &Codebook, column: &[Code]) -> Vec<Code> {
    let mut codes: Vec<Code> = column.to_vec();
    codes.sort_unstable();
    codes.dedup();
    let number = |code: Code| book.canonical(code).parse::<f64>().unwrap_or(f64::INFINITY);
    codes.sort_by(|&a, &b| number(a).total_cmp(&number(b)).then_with(|| book.canonical(a).cmp(book.canonical(b))));
    codes
}

/// The bin of every row. Few values have one each; many share, in their order, bins of about equal numbers of rows.
pub fn bins(book: &Codebook, column: &[Code]) -> Vec<u8> {
    let mut counts = vec![0_usize; book.codes()];
    column.iter().for_each(|&code| counts[code as usize] += 1);
    let codes = in_order(book, column);
    let many = codes.len() > BINS;
    let (rows, mut before) = (column.len().max(1), 0);
    let mut bin = vec![0_u8; book.codes()];
    for (rank, &code) in codes.iter().enumerate() {
        let share = if many { before * BINS / rows } else { rank };
        bin[code as usize] = share.min(BINS - 1) as u8;
        before += counts[code as usize];
    }
    column.iter().map(|&code| bin[code as usize]).collect()
}

/// Mutual information in bits, less what the same columns seem to say of each other where each record is paired with one of a
/// stranger; not below 0.
///
/// Few people with many records have much in common by chance: what does not change within a person names that person, whatever it
/// is. Pairing whole people, rather than records, keeps that part of the bias.
pub fn beyond_chance(a: &[u8], b: &[u8], strangers: &[Vec<u32>]) -> f64 {
    let paired = |rows: &Vec<u32>| mutual_information(a, rows.iter().map(|&row| b[row as usize]));
    let chance = strangers.iter().map(paired).sum::<f64>() / strangers.len().max(1) as f64;
    (mutual_information(a, b.iter().copied()) - chance).max(0.0)
}

/// Times that people are paired at random.
const PAIRINGS: usize = 3;

/// By pairing and row: a row of a person drawn for the row's own person.
pub fn strangers(subjects: &[u64]) -> Vec<Vec<u32>> {
    // People by first sight, not by number: subjects are keyed digests, and what is found must not depend on the key.
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
    (0..PAIRINGS).map(pairing).collect()
}

/// Mutual information in bits of pairs of bins.
fn mutual_information(one: &[u8], other: impl Iterator<Item = u8>) -> f64 {
    // A table of all pairs in one: every pair of attributes fills it, and with many attributes that is most of a start.
    let mut joint = [0_u32; BINS * BINS];
    for (&x, y) in one.iter().zip(other) {
        joint[usize::from(x) * BINS + usize::from(y)] += 1;
    }
    let (mut left, mut right) = ([0_u32; BINS], [0_u32; BINS]);
    let mut joint_bits = 0.0;
    for (counts, of_left) in joint.chunks_exact(BINS).zip(&mut left) {
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

/// `count · log2(count)`, and 0 of 0. Small counts are looked up: wide tables ask for them a billion times.
fn weighted_log2(count: u32) -> f64 {
    static SMALL: LazyLock<[f64; 1024]> = LazyLock::new(|| {
        std::array::from_fn(|count| if count == 0 { 0.0 } else { count as f64 * (count as f64).log2() })
    });
    SMALL.get(count as usize).copied().unwrap_or_else(|| f64::from(count) * f64::from(count).log2())
}

/// What attributes say of each other, in bits, by pair.
#[derive(Clone, Debug, Default)]
pub struct Dependence(BTreeMap<(usize, usize), f64>);

impl Dependence {
    /// The dependence of `attributes` in a sample: every pair once, O(attributes² · rows).
    pub fn of(attributes: &[usize], sample: &Sample, books: &[Codebook]) -> Self {
        let strangers = strangers(sample.subjects());
        let binned: Vec<(usize, Vec<u8>)> =
            attributes.par_iter().map(|&a| (a, bins(&books[a], sample.column(a)))).collect();
        let pairs: Vec<(usize, usize)> =
            (0..binned.len()).flat_map(|a| (a + 1..binned.len()).map(move |b| (a, b))).collect();
        let bits = |&(a, b): &(usize, usize)| {
            let ((a, of_a), (b, of_b)) = (&binned[a], &binned[b]);
            ((*a.min(b), *a.max(b)), beyond_chance(of_a, of_b, &strangers))
        };
        Self(pairs.par_iter().map(bits).collect())
    }

    /// What two attributes say of each other, in bits.
    pub fn bits(&self, a: usize, b: usize) -> f64 {
        self.0.get(&(a.min(b), a.max(b))).copied().unwrap_or(0.0)
    }

    /// What the attributes of a group say of each other, over all its pairs, in bits.
    pub fn inside(&self, group: &[usize]) -> f64 {
        let pairs = group.iter().enumerate().flat_map(|(at, &a)| group[at + 1..].iter().map(move |&b| (a, b)));
        pairs.fold(0.0, |sum, (a, b)| sum + self.bits(a, b))
    }

    /// What the attributes of a group say of `attribute`, in bits.
    pub fn said_of(&self, attribute: usize, group: &[usize]) -> f64 {
        group.iter().map(|&a| self.bits(a, attribute)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_independent_says_nothing_and_what_is_equal_says_its_entropy() {
        let subjects: Vec<u64> = (0..4000).collect();
        let a: Vec<u8> = subjects.iter().map(|n| (n % 4) as u8).collect();
        let b: Vec<u8> = subjects.iter().map(|n| (n / 4 % 4) as u8).collect();
        let strangers = strangers(&subjects);
        assert!(beyond_chance(&a, &b, &strangers) < 1e-9);
        // Four equally frequent values: two bits, less what chance gives 4,000 records.
        assert!((beyond_chance(&a, &a, &strangers) - 2.0).abs() < 0.01);
    }

    #[test]
    fn the_names_of_people_change_nothing() {
        let subjects: Vec<u64> = (0..400).map(|n| n * n % 37).collect();
        let renamed: Vec<u64> = subjects.iter().map(|subject| subject.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        assert_eq!(strangers(&subjects), strangers(&renamed));
    }

    #[test]
    fn what_few_people_have_in_common_by_chance_does_not_count() {
        // 20 people, 200 records each: two unrelated attributes that never change.
        let subjects: Vec<u64> = (0..4000).map(|n| n / 200).collect();
        let of = |salt: u64| -> Vec<u8> {
            subjects.iter().map(|person| ((person + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as u8).collect()
        };
        let (a, b) = (of(1), of(1_000_003));
        let raw = mutual_information(&a, b.iter().copied());
        let found = beyond_chance(&a, &b, &strangers(&subjects));
        assert!(raw > 1.0 && found < raw / 3.0, "{raw} raw, {found} beyond chance");
    }
}
