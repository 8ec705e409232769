//! Standalone identifiers found in the data (METHODS §2): by the share of distinct values and by shape.

use super::sample::Sample;
use crate::records::codebook::{Codebook, FIRST_VALUE};
use crate::records::shapes;
use std::collections::{BTreeSet, HashSet};

/// Rows below which a share of distinct values says nothing about a stream.
const MIN_ROWS: usize = 1000;

/// Share of an attribute's distinct values that must have an identifier's shape.
const SHAPE_SHARE: f64 = 0.5;

/// The attributes among `candidates` that are identifiers by themselves, ascending.
///
/// Cardinality is distinct values over rows, missing values included, and only counts against attributes that have no
/// hierarchy: the others are recoded. A shape (e-mail, phone, …) counts against any attribute.
#[must_use]
pub fn found_in(sample: &Sample, candidates: &[usize], books: &[Codebook], threshold: f64) -> Vec<usize> {
    let mut found: Vec<usize> = candidates
        .iter()
        .copied()
        .filter(|&a| {
            has_identifier_shape(sample, a, books) || (books[a].levels() <= 2 && injective(sample, a, threshold))
        })
        .collect();
    found.sort_unstable();
    found
}

#[allow(clippy::cast_precision_loss, reason = "row counts are far below 2^52")]
fn injective(sample: &Sample, attribute: usize, threshold: f64) -> bool {
    let codes = sample.column(attribute);
    let distinct: HashSet<u32> = codes.iter().copied().collect();
    codes.len() >= MIN_ROWS && distinct.len() as f64 / codes.len() as f64 >= threshold
}

/// Judged on the sample and not on all values ever seen, so that a restart judges the same.
fn has_identifier_shape(sample: &Sample, attribute: usize, books: &[Codebook]) -> bool {
    let distinct: BTreeSet<u32> = sample.column(attribute).iter().copied().filter(|c| *c >= FIRST_VALUE).collect();
    // Numbers of eight digits are not telephones: only texts are judged by their shape.
    let texts = distinct.into_iter().map(|code| books[attribute].canonical(code)).filter(|text| text.starts_with('"'));
    shapes::share(texts).is_some_and(|(_, share)| share >= SHAPE_SHARE)
}
