//! Cycle inference `M` and `μ`.

use super::Adjacency;
use super::pair_count_block::PairCountBlock;
use crate::counting::AttributeSet;
use rayon::prelude::*;

/// Fixed-point unit of `M`, so that sums do not depend on their order.
pub(super) const FIXED_POINT_ONE: u64 = 1 << 32;

/// Mean inference `M(A→B)` of all ordered pairs of attributes (docs/internals/methods.md §4).
///
/// It is 1 if every value of A has one partner in B, and for left-out pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferenceMatrix {
    pub(super) attributes: Vec<usize>,
    pub(super) values: Vec<u64>,
    /// Row-major, in units of 2^-32; 0 on the diagonal.
    pub(super) m: Vec<u64>,
}

impl Adjacency {
    /// Computes the matrix in parallel. Time: values times attributes.
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

fn mean(nodes: &[u32], partners: &[u32]) -> u64 {
    let held = nodes.iter().zip(partners).filter(|(n, partners)| **n > 0 && **partners > 0);
    // The n of one attribute sum to at most 32 bits.
    let (sum, units) = held.fold((0, 0), |(sum, units), (n, partners)| {
        (sum + u64::from(*n) * FIXED_POINT_ONE / u64::from(*partners), units + u64::from(*n))
    });
    sum.checked_div(units).unwrap_or(0)
}

impl InferenceMatrix {
    /// Returns the attributes by ascending schema numbers.
    pub fn attributes(&self) -> &[usize] {
        &self.attributes
    }

    /// Returns `M(A→B)` in [0, 1]; `None` for equal attributes or one outside the model.
    pub fn m(&self, from: usize, to: usize) -> Option<f64> {
        let (a, b) = (self.matrix_index(from)?, self.matrix_index(to)?);
        (a != b).then(|| self.at(a, b) as f64 / FIXED_POINT_ONE as f64)
    }

    /// Returns `μ(t)` in [0, 1]; `None` for fewer than two attributes or one outside the model.
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

    pub(super) fn matrix_indices(&self, set: &AttributeSet) -> Option<Vec<usize>> {
        let places: Option<Vec<usize>> = set.iter().map(|attribute| self.matrix_index(attribute)).collect();
        places.filter(|places| places.len() > 1)
    }

    pub(super) fn cycle_sum(&self, places: &[usize]) -> u64 {
        let last = places.last().zip(places.first()).map_or(0, |(last, first)| self.at(*last, *first));
        places.windows(2).fold(last, |sum, two| sum + self.at(two[0], two[1]))
    }
}
