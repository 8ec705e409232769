//! Verdicts on many sets at once, slice by slice.
//!
//! The rows are cut into slices by the value of one column, for all sets whose largest column it is. A set is no QID when
//! in no slice the rest of it is one. Rare slices come first, so a set that fails does so early.

use super::clusters::{Cluster, Remainder, clusters};
use super::matrix::{Field, Matrix};
use super::slice::Bench;
use super::threads::in_threads;
use crate::counting::AttributeSet;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Largest k that the narrow counters of a slice hold.
pub(super) const LARGEST_K: u32 = 1 << 14;

/// Sets with the same largest column.
pub(super) struct Family {
    first: usize,
    pub(super) clusters: Vec<Cluster>,
    sets: usize,
    /// Rows of each value of the first column, counted when first asked for.
    sizes: OnceLock<Vec<usize>>,
}

impl Family {
    fn sizes(&self, matrix: &Matrix) -> &[usize] {
        self.sizes.get_or_init(|| {
            let field = matrix.fields[self.first];
            let mut sizes = vec![0_usize; field.cardinality];
            field.each(&matrix.bytes, matrix.stride, 0..matrix.rows, |code| sizes[code as usize] += 1);
            sizes
        })
    }
}

/// Is each set a QID? `None` where `stop` was heard before. The empty set is not asked here.
pub(super) fn judge(
    matrix: &Matrix,
    sets: &[AttributeSet],
    k: u32,
    threads: usize,
    stop: &(dyn Fn() -> bool + Sync),
) -> Vec<Option<bool>> {
    let families = families(matrix, sets, k);
    let failed: Vec<AtomicBool> = sets.iter().map(|_| AtomicBool::new(false)).collect();
    let open: Vec<AtomicBool> = sets.iter().map(|_| AtomicBool::new(false)).collect();
    // Every part reads the whole table once to find its rows: only families that are much of the work are shared out.
    let much = sets.len() / (4 * threads);
    let parts = |family: &Family| if threads > 1 && family.sets > much { threads } else { 1 };
    let tasks: Vec<(&Family, usize, usize)> =
        families.iter().flat_map(|f| (0..parts(f)).map(move |part| (f, part, parts(f)))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut bench = Bench::new(matrix, k);
        let mut sorted = Sorted::default();
        while let Some(&(family, part, parts)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            bench.forget();
            sorted.cut(matrix, family, part, parts);
            for range in &sorted.ranges {
                if stop() {
                    family
                        .clusters
                        .iter()
                        .flat_map(|c| &c.sets)
                        .for_each(|s| open[s.at].store(true, Ordering::Relaxed));
                    break;
                }
                if bench.slice(sorted.slice(matrix.stride, range), &family.clusters, &failed) == 0 {
                    break;
                }
            }
        }
    };
    in_threads(threads.min(tasks.len()), &work);
    let verdict = |(failed, open): (AtomicBool, AtomicBool)| match (failed.into_inner(), open.into_inner()) {
        (true, _) => Some(true),
        (false, true) => None,
        (false, false) => Some(false),
    };
    failed.into_iter().zip(open).map(verdict).collect()
}

/// The sets by their largest column, large families first.
fn families(matrix: &Matrix, sets: &[AttributeSet], k: u32) -> Vec<Family> {
    let cardinality = |c: &usize| matrix.fields[*c].cardinality;
    let mut asked: Vec<Vec<Remainder>> = vec![Vec::new(); matrix.fields.len()];
    for (at, set) in sets.iter().enumerate() {
        let mut rest: Vec<usize> = set.iter().collect();
        rest.sort_by_key(|c| (std::cmp::Reverse(cardinality(c)), *c));
        let first = rest.remove(0);
        let domain = rest.iter().fold(1_u64, |d, c| d.saturating_mul(cardinality(c) as u64));
        asked[first].push(Remainder { at, rest, domain });
    }
    let family = |(first, sets): (usize, Vec<Remainder>)| {
        // Distinct subjects of a union are not the sum of those of its parts: nothing is shared then.
        let share = matrix.subject.is_none();
        let rows = if share { matrix.rows / cardinality(&first).max(1) } else { 0 };
        let (count, clusters) = (sets.len(), clusters(sets, &matrix.fields, rows, k));
        Family { first, sets: count, clusters, sizes: OnceLock::new() }
    };
    let mut families: Vec<Family> =
        asked.into_iter().enumerate().filter(|(_, sets)| !sets.is_empty()).map(family).collect();
    families.sort_by_key(|f| std::cmp::Reverse(f.sets));
    families
}

/// Rows in the order of their value of one column, and the range of each value.
#[derive(Default)]
struct Sorted {
    bytes: Vec<u8>,
    ranges: Vec<Range<usize>>,
    places: Vec<usize>,
}

impl Sorted {
    fn slice(&self, stride: usize, rows: &Range<usize>) -> &[u8] {
        &self.bytes[rows.start * stride..rows.end * stride]
    }

    /// Takes the rows of one part of the values, rare values first. Rows of a value keep their order.
    fn cut(&mut self, matrix: &Matrix, family: &Family, part: usize, parts: usize) {
        let (field, sizes) = (matrix.fields[family.first], family.sizes(matrix));
        let mut values: Vec<usize> = (0..field.cardinality).filter(|v| sizes[*v] > 0).collect();
        values.sort_by_key(|v| (sizes[*v], *v));
        self.places.clear();
        self.places.resize(field.cardinality, usize::MAX);
        self.ranges.clear();
        let mut end = 0;
        for value in values.into_iter().skip(part).step_by(parts) {
            self.places[value] = end;
            self.ranges.push(end..end + sizes[value]);
            end += sizes[value];
        }
        if self.bytes.len() < end * matrix.stride {
            self.bytes.resize(end * matrix.stride, 0);
        }
        match matrix.stride {
            16 => self.scatter::<16>(matrix, field),
            24 => self.scatter::<24>(matrix, field),
            32 => self.scatter::<32>(matrix, field),
            40 => self.scatter::<40>(matrix, field),
            48 => self.scatter::<48>(matrix, field),
            64 => self.scatter::<64>(matrix, field),
            stride => {
                let (places, bytes, mut row) = (&mut self.places, &mut self.bytes, 0);
                field.each(&matrix.bytes, stride, 0..matrix.rows, |code| {
                    let place = &mut places[code as usize];
                    if *place != usize::MAX {
                        let (from, to) = (row * stride, *place * stride);
                        bytes[to..to + stride].copy_from_slice(&matrix.bytes[from..from + stride]);
                        *place += 1;
                    }
                    row += 1;
                });
            }
        }
    }

    /// The copy of a row of known length is a few instructions.
    fn scatter<const STRIDE: usize>(&mut self, matrix: &Matrix, field: Field) {
        let from = matrix.bytes.as_chunks::<STRIDE>().0;
        let to = self.bytes.as_chunks_mut::<STRIDE>().0;
        let places = &mut self.places;
        let mut row = 0;
        field.each(&matrix.bytes, STRIDE, 0..matrix.rows, |code| {
            let place = &mut places[code as usize];
            if *place != usize::MAX {
                to[*place] = from[row];
                *place += 1;
            }
            row += 1;
        });
    }
}
