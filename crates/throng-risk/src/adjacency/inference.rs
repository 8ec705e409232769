//! Cycle inference: what one attribute says about another, and round a cycle of attributes.

use super::Adjacency;
use super::block::Block;
use crate::counting::AttributeSet;
use rayon::prelude::*;

/// 1 in the fixed point in which `M` is kept: sums of it are exact and do not depend on an order.
pub(super) const ONE: u64 = 1 << 32;

/// `M(A→B)` for all ordered pairs of attributes: the mean over the records, and so the support-weighted mean over the
/// values a of A, of the mean of `P(b|a)` over the partners b that a has in B (docs/methods.md §4).
///
/// The probabilities of a's partners in B add up to 1, so that mean is `1 / (partners of a in B)`, and
/// `M(A→B) = Σ_a n(a) / partners_B(a) / Σ_a n(a)`. 1 says that every value of A has one partner in B. A pair that is left out has
/// too many edges to be kept, is not judged, and stands as 1: sets with it come first.
///
/// A small value that has no part in the model any more: it can be sent to whoever plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inference {
    pub(super) attributes: Vec<usize>,
    /// Values held of each attribute.
    pub(super) values: Vec<u64>,
    /// Row-major, in units of 2^-32; 0 on the diagonal.
    pub(super) m: Vec<u64>,
}

impl Adjacency {
    /// What the counts say about the attributes. Time: the values times the attributes, in parallel over the pairs; no
    /// edge is read, since partners are counted as edges come and go.
    pub fn inference(&self) -> Inference {
        let width = self.attributes.len();
        let places: Vec<(usize, usize, Option<&Block>)> = self.numbered().collect();
        let both: Vec<(u64, u64)> = places
            .par_iter()
            .map(|(a, b, pair)| match pair {
                Some(block) => {
                    (mean(&self.nodes[*a], block.partners(true)), mean(&self.nodes[*b], block.partners(false)))
                }
                None => (ONE, ONE),
            })
            .collect();
        let mut m = vec![0; width * width];
        for ((a, b, _), (forth, back)) in places.into_iter().zip(both) {
            m[a * width + b] = forth;
            m[b * width + a] = back;
        }
        Inference { attributes: self.attributes.clone(), values: self.values(), m }
    }
}

/// Each term rounds down, alike wherever its value stands.
fn mean(nodes: &[u32], partners: &[u32]) -> u64 {
    let held = nodes.iter().zip(partners).filter(|(n, partners)| **n > 0 && **partners > 0);
    // All n of an attribute together fit 32 bits, hence 64 here.
    let (sum, units) = held.fold((0, 0), |(sum, units), (n, partners)| {
        (sum + u64::from(*n) * ONE / u64::from(*partners), units + u64::from(*n))
    });
    sum.checked_div(units).unwrap_or(0)
}

impl Inference {
    /// The attributes, by their numbers in the schema, ascending.
    pub fn attributes(&self) -> &[usize] {
        &self.attributes
    }

    /// `M(A→B)` in [0, 1]; `None` where one takes no part or both are one.
    pub fn m(&self, from: usize, to: usize) -> Option<f64> {
        let (a, b) = (self.place(from)?, self.place(to)?);
        (a != b).then(|| self.at(a, b) as f64 / ONE as f64)
    }

    /// `μ(t)` in [0, 1]: the mean of `M` round the cycle of the set's attributes, in ascending order and back to the first.
    /// `None` below two attributes, or where one takes no part.
    pub fn mu(&self, set: &AttributeSet) -> Option<f64> {
        let places = self.places(set)?;
        Some(self.round(&places) as f64 / places.len() as f64 / ONE as f64)
    }

    pub(super) fn width(&self) -> usize {
        self.attributes.len()
    }

    pub(super) fn at(&self, a: usize, b: usize) -> u64 {
        self.m[a * self.attributes.len() + b]
    }

    fn place(&self, attribute: usize) -> Option<usize> {
        self.attributes.binary_search(&attribute).ok()
    }

    /// The places of a set of two attributes or more that all take part, ascending.
    pub(super) fn places(&self, set: &AttributeSet) -> Option<Vec<usize>> {
        let places: Option<Vec<usize>> = set.iter().map(|attribute| self.place(attribute)).collect();
        places.filter(|places| places.len() > 1)
    }

    /// The sum of `M` round a cycle of ascending places.
    pub(super) fn round(&self, places: &[usize]) -> u64 {
        let last = places.last().zip(places.first()).map_or(0, |(last, first)| self.at(*last, *first));
        places.windows(2).fold(last, |sum, two| sum + self.at(two[0], two[1]))
    }
}
