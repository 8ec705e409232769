//! How much of what attributes say of each other is still said (docs/methods.md §14.1).
//!
//! The loss of single cells can be zero where every relation between attributes is gone: fragments that hold one attribute each.
//! Pairwise information looks at pairs.

use super::facts::AttributeFacts;
use super::original::Original;
use super::released::ReleasedGroup;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Values of one attribute that are told apart at most; more are put into as many bins of equal numbers of records.
const BINS: usize = 16;

/// Two attributes, what they say of each other, and how much of it a release says.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The attributes, the first one lower.
    pub attributes: [usize; 2],
    /// Mutual information in the original, in bits.
    pub bits: f64,
    /// Mean of (1 − loss)(1 − loss) over the lines in which both are, in [0, 1]; 0 where no line has both.
    pub kept: f64,
    /// The same over all records: one without such a line keeps nothing.
    pub kept_of_all: f64,
}

/// Every pair of the attributes `of`.
#[must_use]
pub fn pairs(original: &Original, facts: &[AttributeFacts], groups: &[ReleasedGroup], of: &[usize]) -> Vec<Pair> {
    let binned: BTreeMap<usize, Vec<u8>> = of.par_iter().map(|&a| (a, bins(original, a, &facts[a]))).collect();
    let every: Vec<[usize; 2]> =
        of.iter().enumerate().flat_map(|(at, &a)| of[at + 1..].iter().map(move |&b| [a.min(b), a.max(b)])).collect();
    let rows = original.rows().max(1) as f64;
    every
        .into_par_iter()
        .map(|[a, b]| {
            let bits = mutual_information(&binned[&a], &binned[&b]);
            let (mut kept, mut lines) = (0.0, 0_usize);
            for group in groups {
                let (Some(left), Some(right)) = (group.column(a), group.column(b)) else { continue };
                let both =
                    left.iter().zip(right).map(|(l, r)| (1.0 - facts[a].get(*l).loss) * (1.0 - facts[b].get(*r).loss));
                kept += both.sum::<f64>();
                lines += group.lines;
            }
            let mean = if lines == 0 { 0.0 } else { kept / lines as f64 };
            Pair { attributes: [a, b], bits, kept: mean, kept_of_all: kept / rows }
        })
        .collect()
}

/// The mean of what pairs keep, weighted by what they say of each other. 1 where nothing says anything of anything.
#[must_use]
pub fn weighted(pairs: &[Pair], kept: impl Fn(&Pair) -> f64) -> f64 {
    let bits: f64 = pairs.iter().map(|pair| pair.bits).sum();
    if bits <= 0.0 {
        return 1.0;
    }
    pairs.iter().map(|pair| pair.bits * kept(pair)).sum::<f64>() / bits
}

/// The bin of every record. Few values have one each; many are put in order, numbers as numbers and texts as texts, and share
/// bins of about equal numbers of records.
fn bins(original: &Original, attribute: usize, facts: &AttributeFacts) -> Vec<u8> {
    let codes = original.in_order(attribute, facts);
    let many = codes.len() > BINS;
    let (rows, mut before) = (original.rows().max(1) as u64, 0);
    let mut bin = vec![0_u8; facts.counts.len()];
    for (rank, &code) in codes.iter().enumerate() {
        let share = if many { (before * BINS as u64 / rows) as usize } else { rank };
        bin[code as usize] = share.min(BINS - 1) as u8;
        before += facts.counts[code as usize];
    }
    original.batch.columns[attribute].iter().map(|&code| bin[code as usize]).collect()
}

/// Mutual information in bits of two columns of bins, less its bias by the number of cells (Miller and Madow), not below 0.
fn mutual_information(a: &[u8], b: &[u8]) -> f64 {
    let n = a.len() as f64;
    if a.is_empty() {
        return 0.0;
    }
    let (mut joint, mut left, mut right) = ([[0_u64; BINS]; BINS], [0_u64; BINS], [0_u64; BINS]);
    for (&x, &y) in a.iter().zip(b) {
        joint[x as usize][y as usize] += 1;
        left[x as usize] += 1;
        right[y as usize] += 1;
    }
    let (mut bits, mut cells) = (0.0, 0_i64);
    for (x, row) in joint.iter().enumerate() {
        for (y, &count) in row.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = count as f64;
            bits += count / n * (count * n / (left[x] as f64 * right[y] as f64)).log2();
            cells += 1;
        }
    }
    let used = |marginal: &[u64]| marginal.iter().filter(|count| **count > 0).count() as i64;
    let bias = (cells - used(&left) - used(&right) + 1) as f64 / (2.0 * n * std::f64::consts::LN_2);
    (bits - bias).max(0.0)
}
