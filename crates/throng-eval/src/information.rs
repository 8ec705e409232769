//! Pairwise information: share of the mutual information between attributes that a release keeps
//! (docs/internals/methods.md §14.1).

use super::facts::AttributeFacts;
use super::original::OriginalData;
use crate::released_lines::ReleasedGroup;
use rayon::prelude::*;
use std::collections::BTreeMap;
use throng_core::attribute_dependence::{bin_column, draw_random_pairings, information_beyond_chance};

/// Mutual information of two attributes, and kept share.
#[derive(Clone, Copy, Debug)]
pub struct PairInformation {
    /// Both attributes, ascending.
    pub attributes: [usize; 2],
    /// Mutual information in the original, in bits.
    pub bits: f64,
    /// Mean of (1 − loss)(1 − loss) over lines with both attributes, or 0.
    pub kept: f64,
    /// Mean over all records; 0 for a record without such a line.
    pub kept_of_all: f64,
}

/// Computes every pair of the distinct attributes `of`.
pub fn measure_pairs(
    original: &OriginalData,
    facts: &[AttributeFacts],
    groups: &[ReleasedGroup],
    of: &[usize],
) -> Vec<PairInformation> {
    let binned: BTreeMap<usize, Vec<u8>> =
        of.par_iter().map(|&a| (a, bin_column(&original.books[a], &original.batch.columns[a]))).collect();
    let every: Vec<[usize; 2]> =
        of.iter().enumerate().flat_map(|(at, &a)| of[at + 1..].iter().map(move |&b| [a.min(b), a.max(b)])).collect();
    let strangers = draw_random_pairings(&original.batch.subjects);
    let rows = original.rows().max(1) as f64;
    every
        .into_par_iter()
        .map(|[a, b]| {
            let bits = information_beyond_chance(&binned[&a], &binned[&b], &strangers);
            // Count a pair of several groups where most is kept.
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
            PairInformation { attributes: [a, b], bits, kept: mean, kept_of_all: kept / rows }
        })
        .collect()
}

/// Returns the mean kept share, weighted by mutual information; 1 without any.
pub fn weighted_share(pairs: &[PairInformation], kept: impl Fn(&PairInformation) -> f64) -> f64 {
    let bits: f64 = pairs.iter().map(|pair| pair.bits).sum();
    if bits <= 0.0 {
        return 1.0;
    }
    pairs.iter().map(|pair| pair.bits * kept(pair)).sum::<f64>() / bits
}
