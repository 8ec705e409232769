//! The strongest inferences of a table: which value gives which other one away, and to how many.
//!
//! The support of an inference u → v is what holds both: records, and the distinct people behind them where the table names
//! people. Its probability is P(v|u) = n(u,v)/n(u), counted in records as everywhere in the adjacency (docs/methods.md
//! §4). For each ordered pair of columns the strongest one is found: of highest probability, then of most people and
//! records.
//!
//! Left out is
//! - what fewer than `k` people (records, where nobody is named) support: few people are a disclosure themselves;
//! - what a missing value says, or what is said of one: that a cell is empty is no value of a person;
//! - what is no inference: P(v|u) ≤ P(v), so that u tells nothing of v. So a constant is not told by everything.

use crate::counting::CpuCounter;
use hashbrown::HashMap;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::ops::Range;

/// Counted pairs of values stay in a table while it has at most so many cells for each record, and in a map beyond.
const CELLS_PER_RECORD: usize = 4;

/// Bytes of the counts of a pair, in a map that grows.
const PAIR_BYTES: u64 = 64;

/// u → v, by columns and dense codes of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueInference {
    /// The column of the value that is known.
    pub from: usize,
    /// The column of the value that it gives away.
    pub to: usize,
    /// The value that is known, by its code.
    pub given: u32,
    /// The value that it gives away, by its code.
    pub told: u32,
    /// Records with both, and the people behind them: the support.
    pub records: u64,
    /// People behind the records (the records where the table names no people).
    pub people: u64,
    /// Records with the given value, those with the told one, and all.
    pub of_given: u64,
    /// Records with the value that is given away.
    pub of_told: u64,
    /// All records.
    pub of_all: u64,
}

impl ValueInference {
    /// P(v|u), in (0, 1].
    pub fn probability(&self) -> f64 {
        self.records as f64 / self.of_given as f64
    }

    /// P(v): what a guess without u is worth, in (0, 1).
    pub fn expected(&self) -> f64 {
        self.of_told as f64 / self.of_all as f64
    }

    /// Strongest first: probability, then people, then records. Equal ones may be of different values.
    pub fn stronger(&self, other: &Self) -> Ordering {
        let fraction = |n: u64, of: u64| u128::from(n) * u128::from(of);
        fraction(other.records, self.of_given)
            .cmp(&fraction(self.records, other.of_given))
            .then(other.people.cmp(&self.people))
            .then(other.records.cmp(&self.records))
    }

    fn order(&self, other: &Self) -> Ordering {
        self.stronger(other).then((self.given, self.told).cmp(&(other.given, other.told)))
    }

    fn tells_something(&self) -> bool {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.records, self.of_all) > product(self.of_given, self.of_told)
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct InferenceQuestion<'a> {
    /// People, or records where nobody is named, that an inference is supported by at least.
    pub k: u32,
    /// Of each column, how many of its first codes are no values.
    pub missing: &'a [u32],
    /// Pairs of columns, each looked at both ways.
    pub pairs: &'a [(usize, usize)],
    /// 1: on the calling thread.
    pub threads: usize,
}

/// The pairs of columns that `visits` record visits allow, at least one: the result depends on the table and on no clock.
pub fn affordable(pairs: &[(usize, usize)], rows: usize, visits: u64) -> &[(usize, usize)] {
    let most = usize::try_from(visits / rows.max(1) as u64).unwrap_or(usize::MAX).max(1);
    &pairs[..pairs.len().min(most)]
}

/// The strongest inference of each ordered pair of columns that has one; in the order of the pairs, either direction after
/// the other.
///
/// Time: the records for each pair. Memory: what the counter may hold. A file that fails is remembered by the counter.
pub fn strongest(counter: &CpuCounter<'_>, asked: &InferenceQuestion<'_>) -> Vec<ValueInference> {
    let most_cells = usize::try_from(counter.memory() / asked.threads.max(1) as u64 / PAIR_BYTES);
    let most_cells = most_cells.unwrap_or(usize::MAX).max(1);
    let rows = Rows { counter, most_cells, common: Vec::new() };
    let is_asked = |column: usize| asked.pairs.iter().any(|(a, b)| *a == column || *b == column);
    let of_column = |column| if is_asked(column) { rows.common(column, asked) } else { Common::default() };
    let common = (0..counter.table().width()).map(of_column).collect();
    let rows = Rows { common, ..rows };
    let pair = |&(a, b): &(usize, usize)| rows.strongest_of(a, b, u64::from(asked.k));
    let pool = (asked.threads > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(asked.threads).build());
    match pool {
        Some(Ok(pool)) => pool.install(|| asked.pairs.par_iter().flat_map_iter(pair).collect()),
        Some(Err(_)) | None => asked.pairs.iter().flat_map(pair).collect(),
    }
}

/// Counts of one value, or of a pair of values.
#[derive(Clone, Copy, Debug, Default)]
struct Support {
    records: u32,
    people: u32,
    /// The person counted last, one more than their number. People come one after the other.
    last: u32,
}

impl Support {
    fn add(&mut self, person: u32) {
        self.records += 1;
        if self.last != person + 1 {
            self.people += 1;
            self.last = person + 1;
        }
    }
}

/// Values that can be part of an inference.
#[derive(Default)]
struct Common {
    /// The number of each code among the common ones; `None` for one that is missing or too rare.
    number: Vec<Option<u32>>,
    /// Code and records of each.
    values: Vec<(u32, u32)>,
}

struct Rows<'a> {
    counter: &'a CpuCounter<'a>,
    /// Counts that one thread holds at once.
    most_cells: usize,
    common: Vec<Common>,
}

impl Rows<'_> {
    /// Each row's codes of two columns and its person, person after person.
    fn each(&self, a: usize, b: usize, visit: impl FnMut(u32, u32, u32)) {
        self.counter.remember(self.counter.each_pair(a, b, visit));
    }

    fn common(&self, column: usize, asked: &InferenceQuestion<'_>) -> Common {
        let mut tallies = vec![Support::default(); self.counter.table().cardinality(column)];
        self.each(column, column, |code, _, person| tallies[code as usize].add(person));
        let missing = asked.missing.get(column).copied().unwrap_or(0);
        let mut common = Common { number: Vec::with_capacity(tallies.len()), values: Vec::new() };
        for (code, tally) in (0_u32..).zip(&tallies) {
            let is_common = code >= missing && tally.people >= asked.k;
            common.number.push(is_common.then_some(common.values.len() as u32));
            if is_common {
                common.values.push((code, tally.records));
            }
        }
        common
    }

    fn strongest_of(&self, a: usize, b: usize, k: u64) -> impl Iterator<Item = ValueInference> + use<> {
        let (of_a, of_b) = (&self.common[a], &self.common[b]);
        let of_all = self.counter.table().rows() as u64;
        let mut best: [Option<ValueInference>; 2] = [None, None];
        self.count((a, b), |x, y, tally| {
            if u64::from(tally.people) < k {
                return;
            }
            let ((u, n_u), (v, n_v)) = (of_a.values[x as usize], of_b.values[y as usize]);
            let (records, people) = (u64::from(tally.records), u64::from(tally.people));
            let (n_u, n_v) = (u64::from(n_u), u64::from(n_v));
            let both_ways = [(a, b, u, v, n_u, n_v), (b, a, v, u, n_v, n_u)];
            for (slot, (from, to, given, told, of_given, of_told)) in best.iter_mut().zip(both_ways) {
                let found = ValueInference { from, to, given, told, records, people, of_given, of_told, of_all };
                let is_best = slot.is_none_or(|best| found.order(&best) == Ordering::Less);
                if is_best && found.tells_something() {
                    *slot = Some(found);
                }
            }
        });
        best.into_iter().flatten()
    }

    /// Counts the pairs of common values, by their numbers; as many of the first column's values at once as there is room for.
    fn count(&self, (a, b): (usize, usize), mut found: impl FnMut(u32, u32, &Support)) {
        let (of_a, of_b) = (&self.common[a], &self.common[b]);
        let width = of_b.values.len();
        for values in of_a.ranges(width, self.most_cells) {
            let both = |a: u32, b: u32| {
                let x = of_a.number[a as usize].filter(|x| values.contains(x))?;
                Some((x, of_b.number[b as usize]?))
            };
            let cells = values.len().saturating_mul(width);
            if cells <= (CELLS_PER_RECORD * self.counter.table().rows()).min(self.most_cells) {
                let first = values.start;
                let mut cells = vec![Support::default(); cells];
                self.each(a, b, |a, b, person| {
                    if let Some((x, y)) = both(a, b) {
                        cells[(x - first) as usize * width + y as usize].add(person);
                    }
                });
                let held = cells.iter().enumerate().filter(|(_, tally)| tally.records > 0);
                held.for_each(|(cell, tally)| found(first + (cell / width) as u32, (cell % width) as u32, tally));
            } else {
                let mut cells: HashMap<(u32, u32), Support> = HashMap::new();
                self.each(a, b, |a, b, person| {
                    if let Some(pair) = both(a, b) {
                        cells.entry(pair).or_default().add(person);
                    }
                });
                cells.iter().for_each(|((x, y), tally)| found(*x, *y, tally));
            }
        }
    }
}

impl Common {
    /// The values in pieces whose pairs with `width` others are about `most` at once; at least one value each.
    fn ranges(&self, width: usize, most: usize) -> Vec<Range<u32>> {
        let mut ranges: Vec<Range<u32>> = Vec::new();
        let mut pairs = usize::MAX;
        for (value, (_, records)) in (0_u32..).zip(&self.values) {
            let own = width.min(*records as usize);
            pairs = pairs.saturating_add(own);
            match ranges.last_mut() {
                Some(range) if pairs <= most => range.end = value + 1,
                _ => {
                    ranges.push(value..value + 1);
                    pairs = own;
                }
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests;
