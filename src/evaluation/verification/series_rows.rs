//! Positioned series rows, and inputs of their checks.

use super::violation_log::ViolationLog;
use std::collections::BTreeMap;
use std::path::Path;
use throng_core::series::{AllSeriesTerms, RowStatistic, SeriesRow};
use throng_eval::series::{OriginalContributions, SeriesLineage};

#[derive(Clone, Copy)]
pub(super) struct PositionedRow<'a> {
    /// File of the row.
    pub file: &'a Path,
    /// From 0.
    pub line: usize,
    /// Sets come from the lineage.
    pub row: &'a SeriesRow,
    /// False for a roll-up.
    pub of_sets: bool,
}

impl PositionedRow<'_> {
    /// None for a mean.
    pub(super) fn share(&self) -> Option<(&str, f64)> {
        match &self.row.statistic {
            RowStatistic::Bin { label, share } => Some((label, *share)),
            RowStatistic::Mean(_) | RowStatistic::Moment(_) | RowStatistic::Noisy(_) => None,
        }
    }
}

pub(super) struct SeriesCheckInput<'a> {
    /// Terms of the series.
    pub terms: &'a AllSeriesTerms,
    /// Cohorts and sets.
    pub lineage: Option<&'a SeriesLineage>,
    /// Subject digests, ascending, and contributions.
    pub people: Option<(&'a [u64], &'a OriginalContributions)>,
}

impl SeriesCheckInput<'_> {
    /// Index of the row's history per subject.
    pub(super) fn channel(&self, row: &SeriesRow) -> usize {
        row.channel(self.terms)
    }

    fn signal(&self, row: &SeriesRow) -> &str {
        &self.terms.series[row.series].signals[row.signal].name
    }

    pub(super) fn add_row_violation(
        &self,
        findings: &mut ViolationLog,
        promise: &'static str,
        at: &PositionedRow<'_>,
        counts: Option<[usize; 2]>,
    ) {
        findings.add_violation(promise, at.file, at.line, Some(self.signal(at.row)), counts);
    }

    pub(super) fn members(&self, row: &SeriesRow) -> Vec<u64> {
        let Some(lineage) = self.lineage else { return Vec::new() };
        let cohorts = row.sets.iter().filter_map(|(number, atoms)| Some((lineage.cohorts.get(number)?, *atoms)));
        cohorts.flat_map(|(cohort, atoms)| cohort.members(atoms)).collect()
    }
}

/// At most half the standard error of the mean.
pub(super) fn row_rounding_step(deviation: f64, n: f64) -> f64 {
    step_below(0.5 * deviation / n.sqrt())
}

/// 1, 2 or 5 times a power of ten.
pub(super) fn step_below(target: f64) -> f64 {
    let powers = (-330..330).map(|power| 10f64.powi(power));
    let steps = powers.flat_map(|power| [power, 2.0 * power, 5.0 * power]);
    steps
        .filter(|step| *step > 0.0)
        .take_while(|step| *step <= target * (1.0 + 1e-9))
        .last()
        .unwrap_or(f64::MIN_POSITIVE)
}

pub(super) fn interval_level(basis: &SeriesCheckInput<'_>, row: &SeriesRow, shares: &[(&str, f64)]) -> Option<usize> {
    let ruler = basis.terms.series[row.series].signals[row.signal].intervals.as_ref()?;
    let is_of_level = |level: &usize| {
        let has = |label: &str| {
            let low = lower_end(label)?;
            Some(ruler.labelled_interval(*level, low)?.1 == label)
        };
        shares.iter().all(|(label, _)| has(label) == Some(true))
    };
    (0..ruler.cuts().len()).find(is_of_level)
}

/// `30-34`, `[30,35)`, or a number.
fn lower_end(label: &str) -> Option<f64> {
    let inner = label.strip_prefix('[').and_then(|inner| inner.split_once(',')).map(|(low, _)| low);
    // A leading minus is a sign.
    let dash = label.char_indices().skip(1).find(|(_, c)| *c == '-').map(|(at, _)| &label[..at]);
    inner.or(dash).unwrap_or(label).parse().ok()
}

/// Groups contributor rows by signal, bucket, cohort and stratum, in file order.
pub(super) fn row_blocks<'b, 'a>(placed: &'b [PositionedRow<'a>]) -> Vec<Vec<&'b PositionedRow<'a>>> {
    let mut blocks: BTreeMap<_, Vec<&PositionedRow<'_>>> = BTreeMap::new();
    for at in placed.iter().filter(|at| at.of_sets) {
        let row = at.row;
        blocks.entry((row.series, row.bucket, row.signal, &row.cohort, &row.stratum)).or_default().push(at);
    }
    blocks.into_values().collect()
}
