//! Drift: are the values distributed otherwise than when the plan in force was made?
//!
//! The test. For every watched attribute, p is the distribution of its values in the window at the moment of the plan and
//! q the one now, over the heaviest values of p and one cell for the rest. The divergence of Jensen and Shannon [LIN],
//! `½·KL(p‖m) + ½·KL(q‖m)` with `m = ½(p + q)`, in bits, is 0 for equal distributions and 1 for disjoint ones. What two samples of
//! one distribution show by chance, `(cells − 1)/(8·ln 2)·(1/n_p + 1/n_q)` to second order, is taken off. The stream has
//! drifted when the largest divergence of an attribute reaches the threshold.
//!
//! An attribute whose values never come back (times, running numbers) would always have drifted: it is watched only where
//! the two halves of the window of the plan agree with each other to half the threshold. One that does not agree then and
//! does a window later was changing while the plan was made, which is a drift as well.

use serde::{Deserialize, Serialize};
use throng_core::values::codebook::{Code, Codebook};

/// Values of an attribute that have a cell of their own.
const CELLS: usize = 256;

/// The distribution of one attribute when the plan was made. Values are keyed digests: codes do not outlive the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    attribute: usize,
    /// The heaviest values, heaviest first.
    values: Vec<(u128, u64)>,
    total: u64,
}

/// What the window looked like when the plan in force was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    known: Vec<Known>,
    unsteady: Vec<usize>,
}

impl Baseline {
    /// Adds an attribute from the older and the newer half of the window: to those that are watched, unless they differ.
    pub fn watch(&mut self, attribute: usize, older: &[u64], newer: &[u64], book: &Codebook, threshold: f64) {
        let at = |half: &[u64], code: usize| half.get(code).copied().unwrap_or(0);
        let both: Vec<u64> = (0..older.len().max(newer.len())).map(|code| at(older, code) + at(newer, code)).collect();
        let digests = book.digests(0);
        let mut codes: Vec<usize> = (0..both.len()).filter(|&code| both[code] > 0).collect();
        codes.sort_unstable_by_key(|&code| (std::cmp::Reverse(both[code]), digests[code]));
        codes.truncate(CELLS);
        let cells = |half: &[u64]| codes.iter().map(|&code| at(half, code)).collect::<Vec<_>>();
        let (old, new): (u64, u64) = (older.iter().sum(), newer.iter().sum());
        if divergence(&cells(older), old, &cells(newer), new) * 2.0 > threshold {
            self.unsteady.push(attribute);
            return;
        }
        let values = codes.iter().map(|&code| (digests[code], both[code])).collect();
        self.known.push(Known { attribute, values, total: old + new });
    }

    /// The attributes that are watched.
    pub fn watched(&self) -> impl Iterator<Item = usize> + '_ {
        self.known.iter().map(|known| known.attribute)
    }

    /// The attributes that are not, since their values differed from one half of the window to the other.
    pub fn unsteady(&self) -> &[usize] {
        &self.unsteady
    }

    /// The baseline in the codes of this moment. To be resolved again after a codebook was compacted.
    pub fn resolve(&self, books: &[Codebook]) -> Watch {
        let resolve = |known: &Known| {
            let places: hashbrown::HashMap<u128, Code> =
                (0..).zip(books[known.attribute].digests(0)).map(|(code, digest)| (*digest, code)).collect();
            Watched {
                attribute: known.attribute,
                codes: known.values.iter().map(|(digest, _)| places.get(digest).copied()).collect(),
                counts: known.values.iter().map(|(_, count)| *count).collect(),
                total: known.total,
            }
        };
        Watch { watched: self.known.iter().map(resolve).collect() }
    }
}

#[derive(Clone, Debug)]
struct Watched {
    attribute: usize,
    /// `None` where the value is forgotten: it does not occur.
    codes: Vec<Option<Code>>,
    counts: Vec<u64>,
    total: u64,
}

/// A [`Baseline`] in codes.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    watched: Vec<Watched>,
}

impl Watch {
    /// The attribute that has drifted farthest and its divergence in bits, the lowest of equals; `counts` gives the count
    /// of a value now, and `total` the sum over an attribute. `None` where nothing is watched.
    pub fn farthest(&self, counts: impl Fn(usize, Code) -> u64, total: impl Fn(usize) -> u64) -> Option<(usize, f64)> {
        let judge = |watched: &Watched| {
            let now = |code: &Option<Code>| code.map_or(0, |code| counts(watched.attribute, code));
            let now: Vec<u64> = watched.codes.iter().map(now).collect();
            (watched.attribute, divergence(&watched.counts, watched.total, &now, total(watched.attribute)))
        };
        self.watched.iter().map(judge).reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

/// The divergence of two samples over the same cells and one for the rest, less what chance shows; 0 where one is empty.
fn divergence(p: &[u64], p_total: u64, q: &[u64], q_total: u64) -> f64 {
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
    use throng_core::values::codebook::books_of;
    use throng_core::values::raw::Token;

    fn book(values: usize) -> Codebook {
        let text = "name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"string\"\n";
        let mut book = books_of(text, 10_000).remove(0);
        for value in 0..values {
            book.encode(Token::Text(&format!("v{value}"))).expect("a text");
        }
        book
    }

    fn farthest(baseline: &Baseline, now: &[u64], books: &[Codebook]) -> Option<f64> {
        let count = |_: usize, code: Code| now.get(code as usize).copied().unwrap_or(0);
        baseline.resolve(books).farthest(count, |_| now.iter().sum()).map(|(_, divergence)| divergence)
    }

    #[test]
    fn equal_distributions_have_no_divergence_and_disjoint_ones_a_bit() {
        let books = [book(4)];
        let mut baseline = Baseline::default();
        baseline.watch(0, &[0, 0, 0, 500, 500], &[0, 0, 0, 500, 500], &books[0], 0.1);
        assert_eq!(farthest(&baseline, &[0, 0, 0, 900, 900], &books), Some(0.0));
        let disjoint = farthest(&baseline, &[0, 0, 0, 0, 0, 1000, 1000], &books).expect("a watched attribute");
        assert!((0.99..=1.0).contains(&disjoint), "{disjoint}");
        // 0.25 bits: half of the one value has become a third one; by hand, ½·(¼·0 + …).
        let moved = farthest(&baseline, &[0, 0, 0, 100_000, 50_000, 50_000], &books).expect("a watched attribute");
        let by_hand = 0.5 * (0.5 * (0.5_f64 / 0.375).log2()) + 0.5 * (0.25 * (0.25_f64 / 0.375).log2() + 0.25 * 1.0);
        assert!((moved - by_hand).abs() < 0.002, "{moved} {by_hand}");
    }

    #[test]
    fn values_that_never_come_back_are_not_watched() {
        let book = book(4);
        let mut baseline = Baseline::default();
        baseline.watch(0, &[0, 0, 0, 500, 500], &[0, 0, 0, 0, 0, 500, 500], &book, 0.1);
        assert_eq!((baseline.watched().count(), baseline.unsteady()), (0, &[0][..]));
        assert_eq!(farthest(&baseline, &[1, 2, 3], &[book]), None);
    }

    proptest! {
        /// Against the definition over a map of all values, where none is heavier than the cells can tell.
        #[test]
        fn agrees_with_the_definition(p in proptest::collection::vec(0_u64..50, 3..20), q in proptest::collection::vec(0_u64..50, 3..20)) {
            let books = [book(20)];
            let mut baseline = Baseline::default();
            baseline.watch(0, &p, &p, &books[0], 0.5);
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
