//! Error of random range queries on the lines (\[HCE] §Evaluation).
//!
//! A query asks for the share of records with one to three attributes in ranges. A cell is spread evenly over its
//! values.

use super::facts::AttributeFacts;
use super::original::OriginalData;
use crate::released_lines::ReleasedGroup;
use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::collections::BTreeMap;
use throng_core::attribute_dependence::sorted_distinct_codes;
use throng_core::values::codebook::CellId;

const MOST_ATTRIBUTES: usize = 3;
/// Lower bound of the divisor.
const MIN_DIVISOR_SHARE: f64 = 0.01;

/// Errors of queries of one width.
#[derive(Clone, Debug, Serialize)]
pub struct QueryErrors {
    /// Attributes per query.
    pub attributes: usize,
    /// Number of queries.
    pub queries: usize,
    /// Mean of |answer − truth| / max(truth, 0.01).
    pub mean: f64,
    /// Median of these errors.
    pub median: f64,
}

/// Asks `queries` random queries for each possible number of attributes.
pub fn measure_queries(
    original: &OriginalData,
    facts: &[AttributeFacts],
    groups: &[ReleasedGroup],
    queries: usize,
    dice: &mut ChaCha8Rng,
) -> Vec<QueryErrors> {
    let mut found = Vec::new();
    for width in 1..=MOST_ATTRIBUTES {
        let wide: Vec<&ReleasedGroup> =
            groups.iter().filter(|group| group.lines > 0 && group.attributes.len() >= width).collect();
        if wide.is_empty() {
            continue;
        }
        let mut errors: Vec<f64> = (0..queries)
            .map(|_| {
                let group = wide[dice.random_range(0..wide.len())];
                let mut places: Vec<usize> = (0..group.attributes.len()).collect();
                places.shuffle(dice);
                places.truncate(width);
                query_error(original, facts, group, &places, dice)
            })
            .collect();
        errors.sort_by(f64::total_cmp);
        let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        let median = errors.get(errors.len() / 2).copied().unwrap_or(0.0);
        found.push(QueryErrors { attributes: width, queries: errors.len(), mean, median });
    }
    found
}

fn query_error(
    original: &OriginalData,
    facts: &[AttributeFacts],
    group: &ReleasedGroup,
    places: &[usize],
    dice: &mut ChaCha8Rng,
) -> f64 {
    let mut inside = vec![true; original.rows()];
    let mut weights = vec![1.0; group.lines];
    for &place in places {
        let attribute = group.attributes[place];
        let range = draw_range(original, attribute, &facts[attribute], dice);
        for (inside, &code) in inside.iter_mut().zip(&original.batch.columns[attribute]) {
            *inside &= range[code as usize];
        }
        let mut share_of: BTreeMap<CellId, f64> = BTreeMap::new();
        for (weight, &cell) in weights.iter_mut().zip(&group.cells[place]) {
            *weight *= *share_of.entry(cell).or_insert_with(|| {
                let codes = &facts[attribute].get(cell).codes;
                let within = codes.iter().filter(|code| range[**code as usize]).count();
                within as f64 / codes.len().max(1) as f64
            });
        }
    }
    let truth = inside.iter().filter(|inside| **inside).count() as f64 / original.rows().max(1) as f64;
    let answer = weights.iter().sum::<f64>() / group.lines.max(1) as f64;
    (answer - truth).abs() / truth.max(MIN_DIVISOR_SHARE)
}

/// A range of one to all values.
fn draw_range(original: &OriginalData, attribute: usize, facts: &AttributeFacts, dice: &mut ChaCha8Rng) -> Vec<bool> {
    let codes = sorted_distinct_codes(&original.books[attribute], &original.batch.columns[attribute]);
    let (from, to) = (dice.random_range(0..codes.len()), dice.random_range(0..codes.len()));
    let mut range = vec![false; facts.counts.len()];
    codes[from.min(to)..=from.max(to)].iter().for_each(|&code| range[code as usize] = true);
    range
}
