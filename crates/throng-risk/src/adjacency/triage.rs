//! Anonymity assurance (\[POD] Def. 9). It only orders the exact check.

use super::expectation::{CycleMoments, InferenceExpectation, MAX_CYCLE_SIZE, cycle_moments};
use super::inference_matrix::InferenceMatrix;
use crate::counting::AttributeSet;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::ops::RangeInclusive;

/// Cycle inference with its statistics.
#[derive(Clone, Debug)]
pub struct Triage {
    inference: InferenceMatrix,
    moments: Vec<Vec<CycleMoments>>,
    /// Below 2, no set is judged.
    largest: usize,
}

/// Suspect sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuspectSets {
    /// Sets in lexicographic order.
    pub sets: Vec<AttributeSet>,
    /// False if there are more suspects than requested.
    pub complete: bool,
}

impl Triage {
    /// Largest size of judged sets; the smallest is 2.
    pub const MAX_JUDGED_SIZE: usize = MAX_CYCLE_SIZE;

    /// Judges the sizes below the first with more than `most_sets` sets.
    pub fn new(inference: InferenceMatrix, most_sets: u64) -> Self {
        let is_judged = |size: &usize| binomial_coefficient(inference.width(), *size) <= most_sets;
        let largest = (2..=MAX_CYCLE_SIZE.min(inference.width())).take_while(is_judged).last().unwrap_or(0);
        let moments = cycle_moments(&inference, largest);
        Self { inference, moments, largest }
    }

    /// Returns the judged sizes.
    pub fn judged_sizes(&self) -> RangeInclusive<usize> {
        2..=self.largest
    }

    /// Returns the inference matrix.
    pub fn inference(&self) -> &InferenceMatrix {
        &self.inference
    }

    /// Returns mean and deviation of `μ(T_n(c))` for n = `size`; `None` if not judged or outside the model.
    pub fn expectation(&self, attribute: usize, size: usize) -> Option<InferenceExpectation> {
        let place = self.inference.attributes.binary_search(&attribute).ok()?;
        self.judged_sizes().contains(&size).then(|| self.moments[size][place].expectation(size))
    }

    /// Returns the largest `|E[μ(T_n(c))] − μ(t)| / σ(μ(T_n(c)))` over c in t: the set is suspect at every smaller θ.
    ///
    /// Returns 0 if σ is 0, and `None` if the set is not judged.
    pub fn deviation(&self, set: &AttributeSet) -> Option<f64> {
        let places = self.inference.matrix_indices(set).filter(|places| self.judged_sizes().contains(&places.len()))?;
        Some(self.deviation_at(&places))
    }

    pub(super) fn deviation_at(&self, places: &[usize]) -> f64 {
        let (round, moments) = (self.inference.cycle_sum(places), &self.moments[places.len()]);
        places.iter().map(|c| moments[*c].relative_deviation(round)).fold(0.0, f64::max)
    }

    /// Returns at most `most` sets of `size` attributes that are suspect at θ.
    pub fn suspects(&self, theta: f64, size: usize, most: usize) -> SuspectSets {
        if !self.judged_sizes().contains(&size) {
            return SuspectSets { sets: Vec::new(), complete: true };
        }
        let width = self.inference.width();
        let lists: Vec<Vec<Vec<usize>>> = (0..width)
            .into_par_iter()
            .map(|first| {
                let mut found = Vec::new();
                visit_sets(width, first, size, &mut |places| {
                    if found.len() <= most && self.deviation_at(places) > theta {
                        found.push(places.to_vec());
                    }
                });
                found
            })
            .collect();
        let complete = lists.iter().map(Vec::len).sum::<usize>() <= most;
        let sets = lists.into_iter().flatten().take(most);
        let set = |places: Vec<usize>| places.into_iter().map(|at| self.inference.attributes[at]).collect();
        SuspectSets { sets: sets.map(set).collect(), complete }
    }

    /// Returns the largest θ ≥ 0 at which every judged set is suspect, if any.
    pub fn choose_theta<'a>(&self, qids: impl IntoIterator<Item = &'a AttributeSet>) -> Option<f64> {
        let least = qids.into_iter().filter_map(|set| self.deviation(set)).min_by(f64::total_cmp)?;
        (least > 0.0).then(|| least.next_down())
    }

    /// Sorts sets by falling deviation, then in set order; sets not judged come last.
    pub fn sort_for_check(&self, candidates: &mut [AttributeSet]) {
        candidates.sort_by_cached_key(|set| (DescendingNumber(self.deviation(set).unwrap_or(-1.0)), set.clone()));
    }
}

/// Number that sorts in descending order.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct DescendingNumber(pub(super) f64);

impl Eq for DescendingNumber {}

impl Ord for DescendingNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0)
    }
}

impl PartialOrd for DescendingNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn binomial_coefficient(width: usize, size: usize) -> u64 {
    (0..size as u64).fold(1, |sets, i| sets * (width as u64).saturating_sub(i) / (i + 1))
}

/// Visits the ascending sets that start with `first`, in lexicographic order.
pub(super) fn visit_sets(width: usize, first: usize, size: usize, visit: &mut dyn FnMut(&[usize])) {
    fn extend(width: usize, size: usize, places: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
        if places.len() == size {
            return visit(places);
        }
        let missing = size - places.len();
        for next in places[places.len() - 1] + 1..=width - missing {
            places.push(next);
            extend(width, size, places, visit);
            places.pop();
        }
    }
    if first + size <= width {
        extend(width, size, &mut vec![first], visit);
    }
}
