use std::time::Instant;

use rayon::prelude::*;

use crate::counting::{AttributeSet, ComputeError, GroupCounter};

/// Most row visits. Bounds work, not time, so that the report is reproducible.
const MAX_MEASURE_VISITS: u64 = 200_000_000;

/// Fewest and most measured sets for any table length.
const MEASURED_SETS_BOUNDS: (u64, u64) = (50, 2_000);

const MEASURE_SETS_PER_CALL: usize = 64;

/// Risk of one quasi-identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetRisk {
    /// Attributes of the set.
    pub set: AttributeSet,
    /// Support of its smallest class.
    pub smallest_class: u64,
    /// Its classes with support below k.
    pub classes_below_k: u64,
    /// Records in these classes.
    pub records_below_k: u64,
    /// Subjects in these classes.
    pub people_below_k: u64,
    /// First row below k, on request.
    pub example: Option<u32>,
}

/// Involvement of an attribute in the quasi-identifiers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttributeWeight {
    /// Attribute number.
    pub attribute: usize,
    /// Minimal QIDs that contain it.
    pub sets: u64,
    /// Share of the attribute in the minimal QIDs. Attributes of one QID share its weight equally; all shares sum to 1.
    pub involvement: f64,
    /// Size of the smallest of these sets, or 0.
    pub smallest_set: usize,
}

/// Computes the involvement of the searched attributes, ascending.
pub fn involvement(searched: &AttributeSet, minimal: &[AttributeSet]) -> Vec<AttributeWeight> {
    let mut weights: Vec<AttributeWeight> =
        searched.iter().map(|attribute| AttributeWeight { attribute, ..AttributeWeight::default() }).collect();
    for set in minimal.iter().filter(|set| !set.is_empty()) {
        for attribute in set.iter() {
            let Ok(at) = weights.binary_search_by_key(&attribute, |weight| weight.attribute) else { continue };
            let weight = &mut weights[at];
            weight.sets += 1;
            weight.involvement += 1.0 / set.len() as f64;
            weight.smallest_set = if weight.smallest_set == 0 { set.len() } else { weight.smallest_set.min(set.len()) };
        }
    }
    let votes = minimal.iter().filter(|set| !set.is_empty()).count().max(1) as f64;
    for weight in &mut weights {
        weight.involvement /= votes;
    }
    weights
}

/// Measures QIDs in order, within the limits of work and time. Examples double the cost.
pub fn measure_qids(
    rows: usize,
    counter: &dyn GroupCounter,
    qids: &[AttributeSet],
    k: u32,
    examples: bool,
    until: Option<Instant>,
    progress: &dyn Fn(usize, usize),
) -> Result<Vec<SetRisk>, ComputeError> {
    let budget =
        (MAX_MEASURE_VISITS / (rows as u64).max(1)).clamp(MEASURED_SETS_BOUNDS.0, MEASURED_SETS_BOUNDS.1) as usize;
    let sets = &qids[..qids.len().min(budget)];
    let mut measured = Vec::with_capacity(sets.len());
    for batch in sets.chunks(MEASURE_SETS_PER_CALL) {
        if until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
        let counts = counter.count(batch, k)?;
        let first = |set: &AttributeSet| {
            if examples { counter.first_below(set, k) } else { Ok(None) }
        };
        let examples: Vec<Option<u32>> = batch.par_iter().map(first).collect::<Result<_, ComputeError>>()?;
        measured.extend(batch.iter().zip(counts).zip(examples).map(|((set, count), example)| SetRisk {
            set: set.clone(),
            smallest_class: count.smallest,
            classes_below_k: count.classes_below,
            records_below_k: count.records_below,
            people_below_k: count.subjects_below,
            example,
        }));
        progress(measured.len(), sets.len());
    }
    Ok(measured)
}
