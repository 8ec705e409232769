//! Anonymity assurance ([POD] Def. 9): which sets of attributes deviate, and in which order to look at them.
//!
//! Triage orders the exact re-check and never replaces it: what it does not suspect is not safe.

use super::expectation::{Expectation, LARGEST, Moments, moments};
use super::inference::Inference;
use crate::counting::AttributeSet;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::ops::RangeInclusive;

/// Cycle inference with its statistics.
#[derive(Clone, Debug)]
pub struct Triage {
    inference: Inference,
    moments: Vec<Vec<Moments>>,
    /// The largest size that is judged; below 2 none is.
    largest: usize,
}

/// Sets that deviate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suspects {
    /// In lexicographic order.
    pub sets: Vec<AttributeSet>,
    /// False where there are more than were asked for; then these are the first.
    pub complete: bool,
}

impl Triage {
    /// Sets of 2 to this many attributes are judged, where a size has few enough sets.
    pub const LARGEST: usize = LARGEST;

    /// Expectations from what the counts say, for the sizes up to the first with more than `most_sets` sets: of a wide table, not even
    /// the pairs are judged.
    pub fn new(inference: Inference, most_sets: u64) -> Self {
        let is_judged = |size: &usize| sets_of(inference.width(), *size) <= most_sets;
        let largest = (2..=LARGEST.min(inference.width())).take_while(is_judged).last().unwrap_or(0);
        let moments = moments(&inference, largest);
        Self { inference, moments, largest }
    }

    /// The sizes that are judged.
    pub fn judged_sizes(&self) -> RangeInclusive<usize> {
        2..=self.largest
    }

    /// What the counts say.
    pub fn inference(&self) -> &Inference {
        &self.inference
    }

    /// `E[μ(T_n(c))]` and `σ(μ(T_n(c)))` for n = `size`; `None` where no set of that size is judged or the attribute takes no
    /// part.
    pub fn expectation(&self, attribute: usize, size: usize) -> Option<Expectation> {
        let place = self.inference.attributes.binary_search(&attribute).ok()?;
        self.judged_sizes().contains(&size).then(|| self.moments[size][place].expectation(size))
    }

    /// The largest `|E[μ(T_n(c))] − μ(t)| / σ(μ(T_n(c)))` over the attributes c of t: t is suspect at every θ below it.
    /// 0 where all sets around c have one μ; `None` where the set is not judged.
    pub fn deviation(&self, set: &AttributeSet) -> Option<f64> {
        let places = self.inference.places(set).filter(|places| self.judged_sizes().contains(&places.len()))?;
        Some(self.deviation_at(&places))
    }

    pub(super) fn deviation_at(&self, places: &[usize]) -> f64 {
        let (round, moments) = (self.inference.round(places), &self.moments[places.len()]);
        places.iter().map(|c| moments[*c].deviations(round)).fold(0.0, f64::max)
    }

    /// The sets of `size` attributes that are suspect at θ ([POD] Def. 9), `most` of them at most.
    pub fn suspects(&self, theta: f64, size: usize, most: usize) -> Suspects {
        if !self.judged_sizes().contains(&size) {
            return Suspects { sets: Vec::new(), complete: true };
        }
        let width = self.inference.width();
        let lists: Vec<Vec<Vec<usize>>> = (0..width)
            .into_par_iter()
            .map(|first| {
                let mut found = Vec::new();
                each_set(width, first, size, &mut |places| {
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
        Suspects { sets: sets.map(set).collect(), complete }
    }

    /// θ lowered until every one of the sets is suspect, and no further: the largest such θ. `None` where no θ of 0 or above
    /// does that, or no set is judged. Sets that are not judged, like those of one attribute, do not count.
    pub fn choose_theta<'a>(&self, qids: impl IntoIterator<Item = &'a AttributeSet>) -> Option<f64> {
        let least = qids.into_iter().filter_map(|set| self.deviation(set)).min_by(f64::total_cmp)?;
        (least > 0.0).then(|| least.next_down())
    }

    /// Puts candidates into the order in which to check them: the largest deviation first, of equals as sets are ordered;
    /// sets that are not judged at the end.
    pub fn order(&self, candidates: &mut [AttributeSet]) {
        candidates.sort_by_cached_key(|set| (Falling(self.deviation(set).unwrap_or(-1.0)), set.clone()));
    }
}

/// Orders numbers downwards.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Falling(pub(super) f64);

impl Eq for Falling {}

impl Ord for Falling {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0)
    }
}

impl PartialOrd for Falling {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `width` choose `size`.
fn sets_of(width: usize, size: usize) -> u64 {
    (0..size as u64).fold(1, |sets, i| sets * (width as u64).saturating_sub(i) / (i + 1))
}

/// Every ascending set of `size` places below `width` that starts with `first`, in lexicographic order.
pub(super) fn each_set(width: usize, first: usize, size: usize, visit: &mut dyn FnMut(&[usize])) {
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
