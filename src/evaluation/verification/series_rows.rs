//! Rows of series with their places, and what they are judged by.

use super::finding::Findings;
use crate::anonymity::series::{SeriesRow, Statistic, Terms};
use crate::evaluation::series::{Contributions, SeriesLineage};
use std::collections::BTreeMap;
use std::path::Path;

/// A row with its place.
#[derive(Clone, Copy)]
pub(super) struct Placed<'a> {
    /// Its file.
    pub file: &'a Path,
    /// Its line, from 0.
    pub line: usize,
    /// The row, with its sets where there is a lineage.
    pub row: &'a SeriesRow,
    /// Whether it is of contributor sets and does not roll up other rows.
    pub of_sets: bool,
}

impl Placed<'_> {
    /// Label and share of an interval; none of a mean.
    pub(super) fn share(&self) -> Option<(&str, f64)> {
        match &self.row.statistic {
            Statistic::Bin { label, share } => Some((label, *share)),
            Statistic::Mean(_) | Statistic::Moment(_) | Statistic::Noisy(_) => None,
        }
    }
}

/// What rows are judged by.
pub(super) struct Basis<'a> {
    /// Terms of the series.
    pub terms: &'a Terms,
    /// Cohorts and sets.
    pub lineage: Option<&'a SeriesLineage>,
    /// Subject digests, ascending, and the contributions of each person.
    pub people: Option<(&'a [u64], &'a Contributions)>,
}

impl Basis<'_> {
    /// Position of the history of a row among all of a person.
    pub(super) fn channel(&self, row: &SeriesRow) -> usize {
        row.channel(self.terms)
    }

    /// Name of the signal of a row.
    fn signal(&self, row: &SeriesRow) -> &str {
        &self.terms.series[row.series].signals[row.signal].name
    }

    /// Notes a broken promise of a row.
    pub(super) fn note(
        &self,
        findings: &mut Findings,
        promise: &'static str,
        at: &Placed<'_>,
        counts: Option<[usize; 2]>,
    ) {
        findings.note(promise, at.file, at.line, Some(self.signal(at.row)), counts);
    }

    /// Digests of the people of a row's contributor set.
    pub(super) fn members(&self, row: &SeriesRow) -> Vec<u64> {
        let Some(lineage) = self.lineage else { return Vec::new() };
        let cohorts = row.sets.iter().filter_map(|(number, atoms)| Some((lineage.cohorts.get(number)?, *atoms)));
        cohorts.flat_map(|(cohort, atoms)| cohort.members(atoms)).collect()
    }
}

/// The rounding step of a row of `n` people with this deviation: at most half of the standard error of the mean.
pub(super) fn step_of(deviation: f64, n: f64) -> f64 {
    step_below(0.5 * deviation / n.sqrt())
}

/// The largest of 1, 2 and 5 times a power of ten that is at most `target`.
pub(super) fn step_below(target: f64) -> f64 {
    let powers = (-330..330).map(|power| 10f64.powi(power));
    let steps = powers.flat_map(|power| [power, 2.0 * power, 5.0 * power]);
    steps
        .filter(|step| *step > 0.0)
        .take_while(|step| *step <= target * (1.0 + 1e-9))
        .last()
        .unwrap_or(f64::MIN_POSITIVE)
}

/// The level of the hierarchy that has all of these intervals.
pub(super) fn level_of(basis: &Basis<'_>, row: &SeriesRow, shares: &[(&str, f64)]) -> Option<usize> {
    let ruler = basis.terms.series[row.series].signals[row.signal].intervals.as_ref()?;
    let is_of_level = |level: &usize| {
        let has = |label: &str| {
            let low = lower_end(label)?;
            Some(ruler.interval_of(*level, low)?.1 == label)
        };
        shares.iter().all(|(label, _)| has(label) == Some(true))
    };
    (0..ruler.cuts().len()).find(is_of_level)
}

/// The lower end of an interval `30-34` or `[30,35)`, or the number that it is.
fn lower_end(label: &str) -> Option<f64> {
    let inner = label.strip_prefix('[').and_then(|inner| inner.split_once(',')).map(|(low, _)| low);
    // The first minus may be a sign.
    let dash = label.char_indices().skip(1).find(|(_, c)| *c == '-').map(|(at, _)| &label[..at]);
    inner.or(dash).unwrap_or(label).parse().ok()
}

/// Rows of sets by signal, bucket, cohort and stratum, in the order of the files.
pub(super) fn blocks<'b, 'a>(placed: &'b [Placed<'a>]) -> Vec<Vec<&'b Placed<'a>>> {
    let mut blocks: BTreeMap<_, Vec<&Placed<'_>>> = BTreeMap::new();
    for at in placed.iter().filter(|at| at.of_sets) {
        let row = at.row;
        blocks.entry((row.series, row.bucket, row.signal, &row.cohort, &row.stratum)).or_default().push(at);
    }
    blocks.into_values().collect()
}
