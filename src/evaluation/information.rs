//! How much of what attributes say of each other is still said (docs/methods.md §14.1).
//!
//! The loss of single cells can be zero where every relation between attributes is gone: fragments that hold one attribute each.
//! Pairwise information looks at pairs.

use super::facts::AttributeFacts;
use super::original::Original;
use super::released::ReleasedGroup;
use crate::anonymity::planner::dependence::{beyond_chance, bins, strangers};
use rayon::prelude::*;
use std::collections::BTreeMap;

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

/// Every pair of the attributes `of`, each of which is named once.
pub fn pairs(original: &Original, facts: &[AttributeFacts], groups: &[ReleasedGroup], of: &[usize]) -> Vec<Pair> {
    let binned: BTreeMap<usize, Vec<u8>> =
        of.par_iter().map(|&a| (a, bins(&original.books[a], &original.batch.columns[a]))).collect();
    let every: Vec<[usize; 2]> =
        of.iter().enumerate().flat_map(|(at, &a)| of[at + 1..].iter().map(move |&b| [a.min(b), a.max(b)])).collect();
    let strangers = strangers(&original.batch.subjects);
    let rows = original.rows().max(1) as f64;
    every
        .into_par_iter()
        .map(|[a, b]| {
            let bits = beyond_chance(&binned[&a], &binned[&b], &strangers);
            // Where several groups have both, the pair counts in that which says most of it.
            let (mut kept, mut lines) = (0.0_f64, 0_usize);
            for group in groups {
                let (Some(left), Some(right)) = (group.column(a), group.column(b)) else { continue };
                let both =
                    left.iter().zip(right).map(|(l, r)| (1.0 - facts[a].get(*l).loss) * (1.0 - facts[b].get(*r).loss));
                let said = both.sum::<f64>();
                if lines == 0 || said > kept {
                    (kept, lines) = (said, group.lines);
                }
            }
            let mean = if lines == 0 { 0.0 } else { kept / lines as f64 };
            Pair { attributes: [a, b], bits, kept: mean, kept_of_all: kept / rows }
        })
        .collect()
}

/// The mean of what pairs keep, weighted by what they say of each other. 1 where nothing says anything of anything.
pub fn weighted(pairs: &[Pair], kept: impl Fn(&Pair) -> f64) -> f64 {
    let bits: f64 = pairs.iter().map(|pair| pair.bits).sum();
    if bits <= 0.0 {
        return 1.0;
    }
    pairs.iter().map(|pair| pair.bits * kept(pair)).sum::<f64>() / bits
}
