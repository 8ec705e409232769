//! Strongest inferences between values of a table (docs/internals/methods.md §4).

use crate::counting::CpuCounter;
use hashbrown::HashMap;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::ops::Range;

/// Most cells per record of a dense table.
const CELLS_PER_RECORD: usize = 4;

const PAIR_BYTES: u64 = 64;

/// Inference u → v, by columns and dense codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueInference {
    /// Column of the known value.
    pub from: usize,
    /// Column of the inferred value.
    pub to: usize,
    /// Code of the known value.
    pub given: u32,
    /// Code of the inferred value.
    pub inferred_code: u32,
    /// Records with both values.
    pub records: u64,
    /// Subjects with such a record.
    pub people: u64,
    /// Records with the known value.
    pub of_given: u64,
    /// Records with the inferred value.
    pub of_inferred_code: u64,
    /// All records.
    pub of_all: u64,
}

impl ValueInference {
    /// Returns P(v|u), in (0, 1].
    pub fn probability(&self) -> f64 {
        self.records as f64 / self.of_given as f64
    }

    /// Returns P(v), in (0, 1).
    pub fn expected(&self) -> f64 {
        self.of_inferred_code as f64 / self.of_all as f64
    }

    /// Orders by probability, then subjects, then records, strongest first.
    pub fn compare_strength(&self, other: &Self) -> Ordering {
        let fraction = |n: u64, of: u64| u128::from(n) * u128::from(of);
        fraction(other.records, self.of_given)
            .cmp(&fraction(self.records, other.of_given))
            .then(other.people.cmp(&self.people))
            .then(other.records.cmp(&self.records))
    }

    fn compare_fully(&self, other: &Self) -> Ordering {
        self.compare_strength(other).then((self.given, self.inferred_code).cmp(&(other.given, other.inferred_code)))
    }

    fn is_informative(&self) -> bool {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.records, self.of_all) > product(self.of_given, self.of_inferred_code)
    }
}

/// Request for inferences.
#[derive(Clone, Copy, Debug)]
pub struct InferenceRequest<'a> {
    /// Least support of an inference.
    pub k: u32,
    /// Number of missing codes per column; they come first.
    pub missing: &'a [u32],
    /// Pairs of columns, for both directions.
    pub pairs: &'a [(usize, usize)],
    /// Number of threads.
    pub threads: usize,
}

/// Returns the first pairs, at least one, that `visits` record visits allow.
pub fn affordable_pairs(pairs: &[(usize, usize)], rows: usize, visits: u64) -> &[(usize, usize)] {
    let most = usize::try_from(visits / rows.max(1) as u64).unwrap_or(usize::MAX).max(1);
    &pairs[..pairs.len().min(most)]
}

/// Returns the strongest inference of each ordered pair of columns, if any.
///
/// Memory: the limit of the counter, which remembers a file error.
pub fn find_strongest_inferences(counter: &CpuCounter<'_>, asked: &InferenceRequest<'_>) -> Vec<ValueInference> {
    let most_cells = usize::try_from(counter.memory() / asked.threads.max(1) as u64 / PAIR_BYTES);
    let most_cells = most_cells.unwrap_or(usize::MAX).max(1);
    let rows = InferenceCounter { counter, most_cells, common: Vec::new() };
    let is_asked = |column: usize| asked.pairs.iter().any(|(a, b)| *a == column || *b == column);
    let of_column = |column| if is_asked(column) { rows.common_values(column, asked) } else { CommonValues::default() };
    let common = (0..counter.table().width()).map(of_column).collect();
    let rows = InferenceCounter { common, ..rows };
    let pair = |&(a, b): &(usize, usize)| rows.strongest_of(a, b, u64::from(asked.k));
    let pool = (asked.threads > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(asked.threads).build());
    match pool {
        Some(Ok(pool)) => pool.install(|| asked.pairs.par_iter().flat_map_iter(pair).collect()),
        Some(Err(_)) | None => asked.pairs.iter().flat_map(pair).collect(),
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct SubjectTally {
    records: u32,
    people: u32,
    /// Last counted subject plus one, since rows are sorted by subject.
    last: u32,
}

impl SubjectTally {
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
struct CommonValues {
    /// Number of each code; `None` if missing or too rare.
    number: Vec<Option<u32>>,
    values: Vec<(u32, u32)>,
}

struct InferenceCounter<'a> {
    counter: &'a CpuCounter<'a>,
    most_cells: usize,
    common: Vec<CommonValues>,
}

impl InferenceCounter<'_> {
    /// Visits rows in the order of subjects.
    fn visit_rows(&self, a: usize, b: usize, visit: impl FnMut(u32, u32, u32)) {
        self.counter.store_error(self.counter.visit_column_pair(a, b, visit));
    }

    fn common_values(&self, column: usize, asked: &InferenceRequest<'_>) -> CommonValues {
        let mut tallies = vec![SubjectTally::default(); self.counter.table().cardinality(column)];
        self.visit_rows(column, column, |code, _, person| tallies[code as usize].add(person));
        let missing = asked.missing.get(column).copied().unwrap_or(0);
        let mut common = CommonValues { number: Vec::with_capacity(tallies.len()), values: Vec::new() };
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
        self.count_common_pairs((a, b), |x, y, tally| {
            if u64::from(tally.people) < k {
                return;
            }
            let ((u, n_u), (v, n_v)) = (of_a.values[x as usize], of_b.values[y as usize]);
            let (records, people) = (u64::from(tally.records), u64::from(tally.people));
            let (n_u, n_v) = (u64::from(n_u), u64::from(n_v));
            let both_ways = [(a, b, u, v, n_u, n_v), (b, a, v, u, n_v, n_u)];
            for (slot, (from, to, given, told, of_given, of_told)) in best.iter_mut().zip(both_ways) {
                let found = ValueInference {
                    from,
                    to,
                    given,
                    inferred_code: told,
                    records,
                    people,
                    of_given,
                    of_inferred_code: of_told,
                    of_all,
                };
                let is_best = slot.is_none_or(|best| found.compare_fully(&best) == Ordering::Less);
                if is_best && found.is_informative() {
                    *slot = Some(found);
                }
            }
        });
        best.into_iter().flatten()
    }

    /// Memory limits the first column's values per pass.
    fn count_common_pairs(&self, (a, b): (usize, usize), mut found: impl FnMut(u32, u32, &SubjectTally)) {
        let (of_a, of_b) = (&self.common[a], &self.common[b]);
        let width = of_b.values.len();
        for values in of_a.split_ranges(width, self.most_cells) {
            let both = |a: u32, b: u32| {
                let x = of_a.number[a as usize].filter(|x| values.contains(x))?;
                Some((x, of_b.number[b as usize]?))
            };
            let cells = values.len().saturating_mul(width);
            if cells <= (CELLS_PER_RECORD * self.counter.table().rows()).min(self.most_cells) {
                let first = values.start;
                let mut cells = vec![SubjectTally::default(); cells];
                self.visit_rows(a, b, |a, b, person| {
                    if let Some((x, y)) = both(a, b) {
                        cells[(x - first) as usize * width + y as usize].add(person);
                    }
                });
                let held = cells.iter().enumerate().filter(|(_, tally)| tally.records > 0);
                held.for_each(|(cell, tally)| found(first + (cell / width) as u32, (cell % width) as u32, tally));
            } else {
                let mut cells: HashMap<(u32, u32), SubjectTally> = HashMap::new();
                self.visit_rows(a, b, |a, b, person| {
                    if let Some(pair) = both(a, b) {
                        cells.entry(pair).or_default().add(person);
                    }
                });
                cells.iter().for_each(|((x, y), tally)| found(*x, *y, tally));
            }
        }
    }
}

impl CommonValues {
    /// Each range has about `most` pairs, and at least one value.
    fn split_ranges(&self, width: usize, most: usize) -> Vec<Range<u32>> {
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
