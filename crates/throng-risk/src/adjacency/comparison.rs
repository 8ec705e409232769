//! How good the triage is: against the exact answer, and beside other orders of looking ([POD] Fig. 5.6a).

use super::triage::{Falling, Triage, each_set};
use crate::counting::AttributeSet;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Suspects against the exact answer, for the sets of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detection {
    /// Attributes of a set.
    pub size: usize,
    /// Sets of that size.
    pub sets: u64,
    /// Of them: quasi-identifiers, minimal or not.
    pub qids: u64,
    /// Of those: minimal ones.
    pub minimal: u64,
    /// Sets suspect at θ.
    pub suspects: u64,
    /// Suspects that are quasi-identifiers.
    pub hits: u64,
    /// Suspects that are minimal quasi-identifiers.
    pub minimal_hits: u64,
}

impl Detection {
    /// Share of the suspects that are quasi-identifiers; `None` without suspects.
    pub fn precision(&self) -> Option<f64> {
        (self.suspects > 0).then(|| self.hits as f64 / self.suspects as f64)
    }

    /// Share of the quasi-identifiers that are suspect; `None` where there are none.
    pub fn recall(&self) -> Option<f64> {
        (self.qids > 0).then(|| self.hits as f64 / self.qids as f64)
    }
}

/// In which order the sets of one size are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// By falling deviation from the sets around them ([POD] Def. 9).
    Deviation,
    /// By falling μ: the stronger the inference, the greater the risk, as [POD] §5.1.3 has it.
    Inference,
    /// By rising μ: attributes that say little about each other cut the records into the most classes.
    Independence,
    /// By falling product of the numbers of values.
    Cardinality,
    /// In any order: the expected effort.
    Chance,
}

/// Exact evaluations of the open sets of one size, one after the other in an order, until a share of the minimal
/// quasi-identifiers has been met. A set with a smaller quasi-identifier in it is one and needs no evaluation: it is not open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Attributes of a set.
    pub size: usize,
    /// In which order the sets were checked.
    pub order: Order,
    /// Sets that are open.
    pub open: u64,
    /// Until half of them.
    pub half: f64,
    /// Until nine of ten.
    pub nine_tenths: f64,
    /// Until all.
    pub all: f64,
}

/// The triage of a window against the exact answer for the same window.
#[derive(Clone, Debug, PartialEq)]
pub struct TriageReport {
    /// The θ at which the suspects cover every minimal quasi-identifier of a judged size; `None` where none does.
    pub theta: Option<f64>,
    /// A line for each size that was compared.
    pub detections: Vec<Detection>,
    /// Where a size has minimal quasi-identifiers: a line for each order.
    pub efforts: Vec<Effort>,
    /// Sizes with too many sets to be judged.
    pub left_out: Vec<usize>,
}

impl Triage {
    /// Compares with the minimal quasi-identifiers that an exact search found, by the schema's numbers of the attributes; those with
    /// attributes that the model does not count are left out. Sizes that are not judged are named and not compared.
    ///
    /// Time and memory: every set of the compared sizes, about 50 bytes each.
    pub fn compare(&self, minimal_qids: &[AttributeSet]) -> TriageReport {
        let own: AttributeSet = self.inference().attributes().iter().copied().collect();
        let theta = self.choose_theta(minimal_qids.iter().filter(|set| set.len() <= Self::LARGEST));
        let place = |attribute| self.inference().attributes().binary_search(&attribute).ok();
        let minimal: BTreeSet<Vec<usize>> = minimal_qids
            .iter()
            .filter(|set| set.is_subset(&own))
            .map(|set| set.iter().filter_map(place).collect())
            .collect();
        let mut report = TriageReport { theta, detections: Vec::new(), efforts: Vec::new(), left_out: Vec::new() };
        for size in 2..=Self::LARGEST.min(self.inference().width()) {
            if !self.judged_sizes().contains(&size) {
                report.left_out.push(size);
                continue;
            }
            let sets = self.judged(size, &minimal);
            report.detections.push(detection(size, &sets, theta.unwrap_or(f64::INFINITY)));
            report.efforts.extend(self.efforts(size, sets));
        }
        report
    }

    fn judged(&self, size: usize, minimal: &BTreeSet<Vec<usize>>) -> Vec<Judged> {
        let mut sets = Vec::new();
        let width = self.inference().width();
        for first in 0..width {
            each_set(width, first, size, &mut |places| {
                let is_minimal = minimal.contains(places);
                let parts = 0..(1_u32 << size);
                let mut part = Vec::with_capacity(size);
                let is_qid = parts.into_iter().any(|mask| {
                    part.clear();
                    part.extend((0..size).filter(|bit| mask >> bit & 1 == 1).map(|bit| places[bit]));
                    minimal.contains(&part)
                });
                let mut four = [0; Triage::LARGEST];
                places.iter().zip(&mut four).for_each(|(place, slot)| *slot = *place as u16);
                sets.push(Judged { places: four, deviation: self.deviation_at(places), is_qid, is_minimal });
            });
        }
        sets
    }

    fn efforts(&self, size: usize, mut sets: Vec<Judged>) -> Vec<Effort> {
        sets.retain(|set| set.is_minimal || !set.is_qid);
        let wanted = sets.iter().filter(|set| set.is_minimal).count();
        if wanted == 0 {
            return Vec::new();
        }
        let places = |set: &Judged| set.places[..size].iter().map(|place| usize::from(*place)).collect::<Vec<_>>();
        // Of equals, each order takes them as they are numbered.
        sets.sort_by_key(|set| Falling(set.deviation));
        let deviation = effort(size, Order::Deviation, &sets);
        sets.sort_by_cached_key(|set| (Reverse(self.inference().round(&places(set))), set.places));
        let inference = effort(size, Order::Inference, &sets);
        sets.sort_by_cached_key(|set| (self.inference().round(&places(set)), set.places));
        let independence = effort(size, Order::Independence, &sets);
        let values = |set: &Judged| {
            let factors = places(set).into_iter().map(|place| u128::from(self.inference().values[place]));
            factors.fold(1_u128, u128::saturating_mul)
        };
        sets.sort_by_cached_key(|set| (Reverse(values(set)), set.places));
        let cardinality = effort(size, Order::Cardinality, &sets);
        // The r-th of w marked ones among n in random order is expected at place r·(n + 1)/(w + 1).
        let chance = |share| nth(wanted, share) as f64 * (sets.len() + 1) as f64 / (wanted + 1) as f64;
        let (half, nine_tenths, all) = (chance(SHARES[0]), chance(SHARES[1]), chance(SHARES[2]));
        vec![
            deviation,
            inference,
            independence,
            cardinality,
            Effort { size, order: Order::Chance, open: sets.len() as u64, half, nine_tenths, all },
        ]
    }
}

/// A set with its verdicts.
struct Judged {
    /// The first `size` of them.
    places: [u16; Triage::LARGEST],
    deviation: f64,
    is_qid: bool,
    is_minimal: bool,
}

/// A half, nine tenths, all; in tenths.
const SHARES: [usize; 3] = [5, 9, 10];

/// How many of `wanted` are the share, rounded up.
fn nth(wanted: usize, tenths: usize) -> usize {
    (wanted * tenths).div_ceil(10)
}

fn effort(size: usize, order: Order, sets: &[Judged]) -> Effort {
    let met: Vec<usize> = (1..).zip(sets).filter(|(_, set)| set.is_minimal).map(|(at, _)| at).collect();
    let [half, nine_tenths, all] = SHARES.map(|share| met[nth(met.len(), share) - 1] as f64);
    Effort { size, order, open: sets.len() as u64, half, nine_tenths, all }
}

fn detection(size: usize, sets: &[Judged], theta: f64) -> Detection {
    let count = |marked: &dyn Fn(&Judged) -> bool| sets.iter().filter(|set| marked(set)).count() as u64;
    let suspect = |set: &Judged| set.deviation > theta;
    Detection {
        size,
        sets: sets.len() as u64,
        qids: count(&|set| set.is_qid),
        minimal: count(&|set| set.is_minimal),
        suspects: count(&suspect),
        hits: count(&|set| suspect(set) && set.is_qid),
        minimal_hits: count(&|set| suspect(set) && set.is_minimal),
    }
}
