//! Which quasi-identifiers put how many at risk, and which attributes they are made of.

use std::time::Instant;

use rayon::prelude::*;

use crate::counting::{AttributeSet, ComputeError, GroupCounter};

/// Row visits that measuring may cost: sets × rows. A bound on work and not on time, so that the same table gives the
/// same report on every machine.
const ROW_VISITS: u64 = 200_000_000;

/// Sets that are measured however long the table is, and at most.
const SETS: (u64, u64) = (50, 2_000);

/// Sets asked in one call.
const BATCH: usize = 64;

/// One quasi-identifier and whom it singles out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetRisk {
    /// The set.
    pub set: AttributeSet,
    /// Support of its smallest class.
    pub smallest_class: u64,
    /// Its classes of a support below k.
    pub classes_below_k: u64,
    /// Records in them.
    pub records_below_k: u64,
    /// People with a record in them (the records where the table names no people).
    pub people_below_k: u64,
    /// The first row in one of its classes below k, where it was asked for.
    pub example: Option<u32>,
}

/// How much an attribute has to do with the quasi-identifiers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttributeWeight {
    /// The attribute.
    pub attribute: usize,
    /// Minimal QIDs that it is part of.
    pub sets: u64,
    /// Its share of all minimal QIDs, each set's one vote divided evenly among its members: a small set is worse than a
    /// large one, and the shares of all attributes sum to 1.
    pub involvement: f64,
    /// Size of the smallest of those sets; 0 where there is none.
    pub smallest_set: usize,
}

/// The involvement of every searched attribute in the minimal QIDs, in the order of attribute numbers.
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

/// Measures QIDs in the given order: as many as the work allows, and none after `until`. Examples cost as much again.
pub fn measure(
    rows: usize,
    counter: &dyn GroupCounter,
    qids: &[AttributeSet],
    k: u32,
    examples: bool,
    until: Option<Instant>,
    progress: &dyn Fn(usize, usize),
) -> Result<Vec<SetRisk>, ComputeError> {
    let budget = (ROW_VISITS / (rows as u64).max(1)).clamp(SETS.0, SETS.1) as usize;
    let sets = &qids[..qids.len().min(budget)];
    let mut measured = Vec::with_capacity(sets.len());
    for batch in sets.chunks(BATCH) {
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
