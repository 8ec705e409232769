//! Quality of the triage (\[POD] Fig. 5.6a).

use super::triage::{DescendingNumber, Triage, visit_sets};
use crate::counting::AttributeSet;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Suspects of one size, compared with the exact answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspectDetection {
    /// Attributes per set.
    pub size: usize,
    /// Number of sets of that size.
    pub sets: u64,
    /// Quasi-identifiers, minimal or not.
    pub qids: u64,
    /// Minimal quasi-identifiers.
    pub minimal: u64,
    /// Sets suspect at θ.
    pub suspects: u64,
    /// Suspects that are quasi-identifiers.
    pub hits: u64,
    /// Suspects that are minimal quasi-identifiers.
    pub minimal_hits: u64,
}

impl SuspectDetection {
    /// Returns the share of suspects that are quasi-identifiers; `None` without suspects.
    pub fn precision(&self) -> Option<f64> {
        (self.suspects > 0).then(|| self.hits as f64 / self.suspects as f64)
    }

    /// Returns the share of quasi-identifiers that are suspects; `None` without quasi-identifiers.
    pub fn recall(&self) -> Option<f64> {
        (self.qids > 0).then(|| self.hits as f64 / self.qids as f64)
    }
}

/// Check order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TriageCheckOrder {
    /// Descending deviation (\[POD] Def. 9).
    Deviation,
    /// Descending μ (\[POD] §5.1.3).
    Inference,
    /// Ascending μ.
    Independence,
    /// Descending product of the numbers of values.
    Cardinality,
    /// Random order, with its expected effort.
    RandomOrder,
}

/// Evaluations, in one order, of the sets of one size without a smaller quasi-identifier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TriageCheckEffort {
    /// Attributes per set.
    pub size: usize,
    /// Check order.
    pub order: TriageCheckOrder,
    /// Number of these sets.
    pub open: u64,
    /// Evaluations until half of the minimal quasi-identifiers are found.
    pub half: f64,
    /// Evaluations until nine tenths are found.
    pub nine_tenths: f64,
    /// Evaluations until all are found.
    pub all: f64,
}

/// Comparison of the triage of a window with the exact answer.
#[derive(Clone, Debug, PartialEq)]
pub struct TriageReport {
    /// Largest θ at which all judged minimal quasi-identifiers are suspect, if any.
    pub theta: Option<f64>,
    /// One entry per compared size.
    pub detections: Vec<SuspectDetection>,
    /// One entry per order and size with minimal quasi-identifiers.
    pub efforts: Vec<TriageCheckEffort>,
    /// Sizes that are not judged.
    pub left_out: Vec<usize>,
}

impl Triage {
    /// Compares with the minimal quasi-identifiers of an exact search.
    ///
    /// Ignores those with attributes outside the model. Time and memory: every compared set, about 50 bytes each.
    pub fn compare(&self, minimal_qids: &[AttributeSet]) -> TriageReport {
        let own: AttributeSet = self.inference().attributes().iter().copied().collect();
        let theta = self.choose_theta(minimal_qids.iter().filter(|set| set.len() <= Self::MAX_JUDGED_SIZE));
        let place = |attribute| self.inference().attributes().binary_search(&attribute).ok();
        let minimal: BTreeSet<Vec<usize>> = minimal_qids
            .iter()
            .filter(|set| set.is_subset(&own))
            .map(|set| set.iter().filter_map(place).collect())
            .collect();
        let mut report = TriageReport { theta, detections: Vec::new(), efforts: Vec::new(), left_out: Vec::new() };
        for size in 2..=Self::MAX_JUDGED_SIZE.min(self.inference().width()) {
            if !self.judged_sizes().contains(&size) {
                report.left_out.push(size);
                continue;
            }
            let sets = self.judge_all_sets(size, &minimal);
            report.detections.push(count_detections(size, &sets, theta.unwrap_or(f64::INFINITY)));
            report.efforts.extend(self.compare_orders(size, sets));
        }
        report
    }

    fn judge_all_sets(&self, size: usize, minimal: &BTreeSet<Vec<usize>>) -> Vec<JudgedAttributeSet> {
        let mut sets = Vec::new();
        let width = self.inference().width();
        for first in 0..width {
            visit_sets(width, first, size, &mut |places| {
                let is_minimal = minimal.contains(places);
                let parts = 0..(1_u32 << size);
                let mut part = Vec::with_capacity(size);
                let is_qid = parts.into_iter().any(|mask| {
                    part.clear();
                    part.extend((0..size).filter(|bit| mask >> bit & 1 == 1).map(|bit| places[bit]));
                    minimal.contains(&part)
                });
                let mut four = [0; Triage::MAX_JUDGED_SIZE];
                places.iter().zip(&mut four).for_each(|(place, slot)| *slot = *place as u16);
                sets.push(JudgedAttributeSet {
                    places: four,
                    deviation: self.deviation_at(places),
                    is_qid,
                    is_minimal,
                });
            });
        }
        sets
    }

    fn compare_orders(&self, size: usize, mut sets: Vec<JudgedAttributeSet>) -> Vec<TriageCheckEffort> {
        sets.retain(|set| set.is_minimal || !set.is_qid);
        let wanted = sets.iter().filter(|set| set.is_minimal).count();
        if wanted == 0 {
            return Vec::new();
        }
        let places =
            |set: &JudgedAttributeSet| set.places[..size].iter().map(|place| usize::from(*place)).collect::<Vec<_>>();
        sets.sort_by_key(|set| DescendingNumber(set.deviation));
        let deviation = measure_effort(size, TriageCheckOrder::Deviation, &sets);
        sets.sort_by_cached_key(|set| (Reverse(self.inference().cycle_sum(&places(set))), set.places));
        let inference = measure_effort(size, TriageCheckOrder::Inference, &sets);
        sets.sort_by_cached_key(|set| (self.inference().cycle_sum(&places(set)), set.places));
        let independence = measure_effort(size, TriageCheckOrder::Independence, &sets);
        let values = |set: &JudgedAttributeSet| {
            let factors = places(set).into_iter().map(|place| u128::from(self.inference().values[place]));
            factors.fold(1_u128, u128::saturating_mul)
        };
        sets.sort_by_cached_key(|set| (Reverse(values(set)), set.places));
        let cardinality = measure_effort(size, TriageCheckOrder::Cardinality, &sets);
        // In random order, the r-th of w marked sets among n is expected at r·(n + 1)/(w + 1).
        let chance = |share| share_rank(wanted, share) as f64 * (sets.len() + 1) as f64 / (wanted + 1) as f64;
        let (half, nine_tenths, all) = (chance(EFFORT_TENTHS[0]), chance(EFFORT_TENTHS[1]), chance(EFFORT_TENTHS[2]));
        vec![
            deviation,
            inference,
            independence,
            cardinality,
            TriageCheckEffort {
                size,
                order: TriageCheckOrder::RandomOrder,
                open: sets.len() as u64,
                half,
                nine_tenths,
                all,
            },
        ]
    }
}

struct JudgedAttributeSet {
    places: [u16; Triage::MAX_JUDGED_SIZE],
    deviation: f64,
    is_qid: bool,
    is_minimal: bool,
}

const EFFORT_TENTHS: [usize; 3] = [5, 9, 10];

fn share_rank(wanted: usize, tenths: usize) -> usize {
    (wanted * tenths).div_ceil(10)
}

fn measure_effort(size: usize, order: TriageCheckOrder, sets: &[JudgedAttributeSet]) -> TriageCheckEffort {
    let met: Vec<usize> = (1..).zip(sets).filter(|(_, set)| set.is_minimal).map(|(at, _)| at).collect();
    let [half, nine_tenths, all] = EFFORT_TENTHS.map(|share| met[share_rank(met.len(), share) - 1] as f64);
    TriageCheckEffort { size, order, open: sets.len() as u64, half, nine_tenths, all }
}

fn count_detections(size: usize, sets: &[JudgedAttributeSet], theta: f64) -> SuspectDetection {
    let count = |marked: &dyn Fn(&JudgedAttributeSet) -> bool| sets.iter().filter(|set| marked(set)).count() as u64;
    let suspect = |set: &JudgedAttributeSet| set.deviation > theta;
    SuspectDetection {
        size,
        sets: sets.len() as u64,
        qids: count(&|set| set.is_qid),
        minimal: count(&|set| set.is_minimal),
        suspects: count(&suspect),
        hits: count(&|set| suspect(set) && set.is_qid),
        minimal_hits: count(&|set| suspect(set) && set.is_minimal),
    }
}
