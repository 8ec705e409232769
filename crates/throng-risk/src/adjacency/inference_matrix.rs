//! Cycle inference: prediction of one attribute from another, and along a cycle of attributes.

use super::Adjacency;
use super::pair_count_block::PairCountBlock;
use crate::counting::AttributeSet;
use rayon::prelude::*;

/// Fixed-point unit of `M`: sums are exact and independent of their order.
pub(super) const FIXED_POINT_ONE: u64 = 1 << 32;

/// Mean inference `M(A→B)` for all ordered pairs of attributes (docs/internals/methods.md §4).
///
/// `M(A→B)` is the mean over the records of the mean of `P(b|a)` over the partners b of a in B. So it is a mean over
/// the values a of A, weighted by support.
///
/// The probabilities of the partners of a in B sum to 1, so their mean is `1 / (partners of a in B)`. Hence `M(A→B) =
/// Σ_a n(a) / partners_B(a) / Σ_a n(a)`. A value of 1 means that every value of A has one partner in B.
///
/// A pair that is left out has too many edges to be kept and counts as 1, so sets with it come first.
///
/// The matrix is small and independent of the model, so it can be sent to the planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferenceMatrix {
    pub(super) attributes: Vec<usize>,
    /// Number of distinct values in use, per attribute.
    pub(super) values: Vec<u64>,
    /// Row-major, in units of 2^-32; 0 on the diagonal.
    pub(super) m: Vec<u64>,
}

impl Adjacency {
    /// Computes the inference matrix of the attributes.
    ///
    /// Time: values times attributes, in parallel over the pairs. Reads no edge, since partners are counted as edges
    /// change.
    pub fn inference(&self) -> InferenceMatrix {
        let width = self.attributes.len();
        let places: Vec<(usize, usize, Option<&PairCountBlock>)> = self.indexed_pairs().collect();
        let both: Vec<(u64, u64)> = places
            .par_iter()
            .map(|(a, b, pair)| match pair {
                Some(block) => {
                    (mean(&self.nodes[*a], block.partners(true)), mean(&self.nodes[*b], block.partners(false)))
                }
                None => (FIXED_POINT_ONE, FIXED_POINT_ONE),
            })
            .collect();
        let mut m = vec![0; width * width];
        for ((a, b, _), (forth, back)) in places.into_iter().zip(both) {
            m[a * width + b] = forth;
            m[b * width + a] = back;
        }
        InferenceMatrix { attributes: self.attributes.clone(), values: self.values(), m }
    }
}

/// Returns the weighted mean of `1 / partners`. Each term is rounded down, independent of its position.
fn mean(nodes: &[u32], partners: &[u32]) -> u64 {
    let held = nodes.iter().zip(partners).filter(|(n, partners)| **n > 0 && **partners > 0);
    // The n of one attribute sum to at most 32 bits, so the scaled sum fits into 64 bits.
    let (sum, units) = held.fold((0, 0), |(sum, units), (n, partners)| {
        (sum + u64::from(*n) * FIXED_POINT_ONE / u64::from(*partners), units + u64::from(*n))
    });
    sum.checked_div(units).unwrap_or(0)
}

impl InferenceMatrix {
    /// Returns the attributes by their schema numbers, ascending.
    pub fn attributes(&self) -> &[usize] {
        &self.attributes
    }

    /// Returns `M(A→B)` in [0, 1]; `None` if one is not part of the model or both are equal.
    pub fn m(&self, from: usize, to: usize) -> Option<f64> {
        let (a, b) = (self.matrix_index(from)?, self.matrix_index(to)?);
        (a != b).then(|| self.at(a, b) as f64 / FIXED_POINT_ONE as f64)
    }

    /// Returns `μ(t)` in [0, 1]: the mean of `M` along the cycle of the set's attributes, ascending.
    ///
    /// Returns `None` for fewer than two attributes, or if one is not part of the model.
    pub fn mu(&self, set: &AttributeSet) -> Option<f64> {
        let places = self.matrix_indices(set)?;
        Some(self.cycle_sum(&places) as f64 / places.len() as f64 / FIXED_POINT_ONE as f64)
    }

    pub(super) fn width(&self) -> usize {
        self.attributes.len()
    }

    pub(super) fn at(&self, a: usize, b: usize) -> u64 {
        self.m[a * self.attributes.len() + b]
    }

    fn matrix_index(&self, attribute: usize) -> Option<usize> {
        self.attributes.binary_search(&attribute).ok()
    }

    /// Returns the ascending indices of a set of at least two attributes that are all part of the model.
    pub(super) fn matrix_indices(&self, set: &AttributeSet) -> Option<Vec<usize>> {
        let places: Option<Vec<usize>> = set.iter().map(|attribute| self.matrix_index(attribute)).collect();
        places.filter(|places| places.len() > 1)
    }

    /// Sums `M` along a cycle of ascending indices.
    pub(super) fn cycle_sum(&self, places: &[usize]) -> u64 {
        let last = places.last().zip(places.first()).map_or(0, |(last, first)| self.at(*last, *first));
        places.windows(2).fold(last, |sum, two| sum + self.at(two[0], two[1]))
    }
}
