//! Drift of value distributions since the current plan.
//!
//! Let p and q be distributions in the plan window and now, over the most frequent values of p and a rest cell. Drift
//! is the largest Jensen-Shannon divergence \[LIN], `½·KL(p‖m) + ½·KL(q‖m)` with `m = ½(p + q)`, minus its expectation
//! by chance, `(cells − 1)/(8·ln 2)·(1/n_p + 1/n_q)`.
//!
//! Only attributes with agreeing window halves are watched, because values that never recur would always drift.
//! Becoming steady later is drift.

use serde::{Deserialize, Serialize};
use throng_core::values::codebook::{Code, Codebook};

const MAX_DRIFT_CELLS: usize = 256;

/// Keyed digests survive code changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct AttributeBaseline {
    attribute: usize,
    /// Most frequent first.
    values: Vec<(u128, u64)>,
    total: u64,
}

/// Window statistics of the current plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftBaseline {
    known: Vec<AttributeBaseline>,
    unsteady: Vec<usize>,
}

impl DriftBaseline {
    /// Watches an attribute if both window halves agree.
    pub fn add_if_steady(&mut self, attribute: usize, older: &[u64], newer: &[u64], book: &Codebook, threshold: f64) {
        let at = |half: &[u64], code: usize| half.get(code).copied().unwrap_or(0);
        let both: Vec<u64> = (0..older.len().max(newer.len())).map(|code| at(older, code) + at(newer, code)).collect();
        let digests = book.digests(0);
        let mut codes: Vec<usize> = (0..both.len()).filter(|&code| both[code] > 0).collect();
        codes.sort_unstable_by_key(|&code| (std::cmp::Reverse(both[code]), digests[code]));
        codes.truncate(MAX_DRIFT_CELLS);
        let cells = |half: &[u64]| codes.iter().map(|&code| at(half, code)).collect::<Vec<_>>();
        let (old, new): (u64, u64) = (older.iter().sum(), newer.iter().sum());
        if divergence_beyond_chance(&cells(older), old, &cells(newer), new) * 2.0 > threshold {
            self.unsteady.push(attribute);
            return;
        }
        let values = codes.iter().map(|&code| (digests[code], both[code])).collect();
        self.known.push(AttributeBaseline { attribute, values, total: old + new });
    }

    /// Returns watched attributes.
    pub fn watched_attributes(&self) -> impl Iterator<Item = usize> + '_ {
        self.known.iter().map(|known| known.attribute)
    }

    /// Returns unsteady attributes.
    pub fn unsteady_attributes(&self) -> &[usize] {
        &self.unsteady
    }

    /// Converts to codes; repeat after codebook compaction.
    pub fn resolve(&self, books: &[Codebook]) -> DriftDetector {
        let resolve = |known: &AttributeBaseline| {
            let places: hashbrown::HashMap<u128, Code> =
                (0..).zip(books[known.attribute].digests(0)).map(|(code, digest)| (*digest, code)).collect();
            WatchedAttribute {
                attribute: known.attribute,
                codes: known.values.iter().map(|(digest, _)| places.get(digest).copied()).collect(),
                counts: known.values.iter().map(|(_, count)| *count).collect(),
                total: known.total,
            }
        };
        DriftDetector { watched: self.known.iter().map(resolve).collect() }
    }
}

#[derive(Clone, Debug)]
struct WatchedAttribute {
    attribute: usize,
    codes: Vec<Option<Code>>,
    counts: Vec<u64>,
    total: u64,
}

/// A [`DriftBaseline`] in codes.
#[derive(Clone, Debug, Default)]
pub struct DriftDetector {
    watched: Vec<WatchedAttribute>,
}

impl DriftDetector {
    /// Returns the attribute with the largest divergence in bits, from counts per value and total.
    pub fn farthest(&self, counts: impl Fn(usize, Code) -> u64, total: impl Fn(usize) -> u64) -> Option<(usize, f64)> {
        let judge = |watched: &WatchedAttribute| {
            let now = |code: &Option<Code>| code.map_or(0, |code| counts(watched.attribute, code));
            let now: Vec<u64> = watched.codes.iter().map(now).collect();
            (
                watched.attribute,
                divergence_beyond_chance(&watched.counts, watched.total, &now, total(watched.attribute)),
            )
        };
        self.watched.iter().map(judge).reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

fn divergence_beyond_chance(p: &[u64], p_total: u64, q: &[u64], q_total: u64) -> f64 {
    if p_total == 0 || q_total == 0 {
        return 0.0;
    }
    let rest = |cells: &[u64], total: u64| total - cells.iter().sum::<u64>();
    let pairs = p.iter().copied().zip(q.iter().copied()).chain([(rest(p, p_total), rest(q, q_total))]);
    let (mut sum, mut cells) = (0.0, 0_u32);
    for (p, q) in pairs.filter(|pair| *pair != (0, 0)) {
        let (p, q) = (p as f64 / p_total as f64, q as f64 / q_total as f64);
        let m = f64::midpoint(p, q);
        let term = |share: f64| if share > 0.0 { share * (share / m).log2() } else { 0.0 };
        sum += f64::midpoint(term(p), term(q));
        cells += 1;
    }
    let chance = f64::from(cells.saturating_sub(1)) / (8.0 * std::f64::consts::LN_2)
        * (1.0 / p_total as f64 + 1.0 / q_total as f64);
    (sum - chance).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use throng_core::values::codebook::test_codebooks;
    use throng_core::values::raw_batch::RawToken;

    fn book(values: usize) -> Codebook {
        let text = "name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"string\"\n";
        let mut book = test_codebooks(text, 10_000).remove(0);
        for value in 0..values {
            book.encode(RawToken::Text(&format!("v{value}"))).expect("a text");
        }
        book
    }

    fn farthest(baseline: &DriftBaseline, now: &[u64], books: &[Codebook]) -> Option<f64> {
        let count = |_: usize, code: Code| now.get(code as usize).copied().unwrap_or(0);
        baseline.resolve(books).farthest(count, |_| now.iter().sum()).map(|(_, divergence)| divergence)
    }

    #[test]
    fn divergence_is_zero_if_equal_and_one_bit_if_disjoint() {
        let books = [book(4)];
        let mut baseline = DriftBaseline::default();
        baseline.add_if_steady(0, &[0, 0, 0, 500, 500], &[0, 0, 0, 500, 500], &books[0], 0.1);
        assert_eq!(farthest(&baseline, &[0, 0, 0, 900, 900], &books), Some(0.0));
        let disjoint = farthest(&baseline, &[0, 0, 0, 0, 0, 1000, 1000], &books).expect("a watched attribute");
        assert!((0.99..=1.0).contains(&disjoint), "{disjoint}");
        // Half of one value became a third: ½·(¼·0 + …) = 0.25 bits.
        let moved = farthest(&baseline, &[0, 0, 0, 100_000, 50_000, 50_000], &books).expect("a watched attribute");
        let by_hand = 0.5 * (0.5 * (0.5_f64 / 0.375).log2()) + 0.5 * (0.25 * (0.25_f64 / 0.375).log2() + 0.25 * 1.0);
        assert!((moved - by_hand).abs() < 0.002, "{moved} {by_hand}");
    }

    #[test]
    fn attribute_with_nonrecurring_values_is_not_watched() {
        let book = book(4);
        let mut baseline = DriftBaseline::default();
        baseline.add_if_steady(0, &[0, 0, 0, 500, 500], &[0, 0, 0, 0, 0, 500, 500], &book, 0.1);
        assert_eq!((baseline.watched_attributes().count(), baseline.unsteady_attributes()), (0, &[0][..]));
        assert_eq!(farthest(&baseline, &[1, 2, 3], &[book]), None);
    }

    proptest! {
        #[test]
        fn drift_divergence_matches_definition(p in proptest::collection::vec(0_u64..50, 3..20), q in proptest::collection::vec(0_u64..50, 3..20)) {
            let books = [book(20)];
            let mut baseline = DriftBaseline::default();
            baseline.add_if_steady(0, &p, &p, &books[0], 0.5);
            let (n_p, n_q) = (2 * p.iter().sum::<u64>(), q.iter().sum::<u64>());
            let share = |counts: &[u64], code: usize| {
                counts.get(code).map_or(0.0, |n| *n as f64 / counts.iter().sum::<u64>().max(1) as f64)
            };
            let mut expected = 0.0;
            let mut cells: f64 = 0.0;
            let (mut rest, mut any_rest) = (0.0, false);
            for code in 0..20 {
                let (p, q) = (share(&p, code), share(&q, code));
                if p > 0.0 {
                    cells += 1.0;
                    expected += 0.5 * p * (2.0 * p / (p + q)).log2();
                    expected += if q > 0.0 { 0.5 * q * (2.0 * q / (p + q)).log2() } else { 0.0 };
                } else if q > 0.0 {
                    any_rest = true;
                    rest += q;
                }
            }
            cells += f64::from(u8::from(any_rest));
            expected += 0.5 * rest;
            let chance = (cells - 1.0).max(0.0) / (8.0 * 2.0_f64.ln()) * (1.0 / n_p as f64 + 1.0 / n_q as f64);
            let expected = if n_p == 0 || n_q == 0 { 0.0 } else { (expected - chance).max(0.0) };
            let found = farthest(&baseline, &q, &books).expect("steady in both halves");
            prop_assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
    }
}
