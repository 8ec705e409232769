//! Recount of row values from the original: presence, carried values, statistics and dominance.

use super::series_rows::{PositionedRow, SeriesCheckInput, interval_level, row_rounding_step};
use super::violation_log::ViolationLog;
use std::collections::BTreeMap;
use throng_core::series::{MeanStatistic, RowStatistic, SeriesRow, SeriesTerms};

/// Weight of a carried value's distance from the mean, per missed window.
const CARRY_FACTOR: f64 = 0.5;

/// Earlier values of a subject in a channel.
#[derive(Clone, Copy, Default)]
struct ChannelHistory {
    values: f64,
    sum: f64,
    last: f64,
    bucket: i64,
}

impl ChannelHistory {
    /// None before the first value.
    fn carried(&self, terms: &SeriesTerms, bucket: i64) -> Option<f64> {
        let mean = self.sum / self.values;
        let windows = terms.windows_between(self.bucket, bucket);
        (self.values > 0.0).then(|| mean + CARRY_FACTOR.powf(windows as f64) * (self.last - mean))
    }
}

/// Present and carried values of a set.
#[derive(Default)]
struct SetValues {
    present: Vec<f64>,
    carried: Vec<f64>,
}

impl SetValues {
    fn all(&self) -> Vec<f64> {
        self.present.iter().chain(&self.carried).copied().collect()
    }
}

/// Checks contributor rows and returns the fewest present subjects by series. Does nothing without contributions or
/// after an earlier run, whose records determine carried values.
pub(super) fn check_set_values(
    basis: &SeriesCheckInput<'_>,
    placed: &[PositionedRow<'_>],
    findings: &mut ViolationLog,
) -> BTreeMap<usize, usize> {
    let mut fewest = BTreeMap::new();
    let (Some(_), Some(lineage)) = (basis.people, basis.lineage) else { return fewest };
    if lineage.has_earlier_run() {
        return fewest;
    }
    let mut channels: BTreeMap<usize, BTreeMap<i64, Vec<&PositionedRow<'_>>>> = BTreeMap::new();
    for at in placed.iter().filter(|at| at.of_sets && !at.row.sets.is_empty()) {
        channels.entry(basis.channel(at.row)).or_default().entry(at.row.bucket).or_default().push(at);
    }
    for rows in channels.into_values() {
        check_channel(basis, &rows, &mut fewest, findings);
    }
    fewest
}

fn check_channel(
    basis: &SeriesCheckInput<'_>,
    rows: &BTreeMap<i64, Vec<&PositionedRow<'_>>>,
    fewest: &mut BTreeMap<usize, usize>,
    findings: &mut ViolationLog,
) {
    let Some((people, contributions)) = basis.people else { return };
    let Some((series, signal, bucket)) =
        rows.values().flatten().next().map(|at| (at.row.series, at.row.signal, at.row.bucket))
    else {
        return;
    };
    let terms = &basis.terms.series[series];
    let of_channel = contributions
        .range((series, i64::MIN)..=(series, i64::MAX))
        .filter(|((_, at), _)| terms.slot(*at) == terms.slot(bucket))
        .map(|((_, at), people)| (*at, people));
    let mut first: Vec<Option<f64>> = vec![None; people.len()];
    for (_, of_bucket) in of_channel.clone() {
        for (person, contribution) in of_bucket {
            first[*person] = first[*person].or(contribution.values[signal]);
        }
    }
    let mut past = vec![ChannelHistory::default(); people.len()];
    for (at, of_bucket) in of_channel {
        for placed in rows.get(&at).into_iter().flatten() {
            let mut set = SetValues::default();
            for digest in basis.members(placed.row) {
                let Ok(person) = people.binary_search(&digest) else { continue };
                let value = of_bucket.get(&person).and_then(|contribution| contribution.values[signal]);
                match value {
                    Some(value) => set.present.push(value),
                    None => set.carried.extend(past[person].carried(terms, at).or(first[person])),
                }
            }
            fewest
                .entry(series)
                .and_modify(|least| *least = set.present.len().min(*least))
                .or_insert(set.present.len());
            check_row(basis, placed, &set, findings);
        }
        for (person, contribution) in of_bucket {
            if let Some(value) = contribution.values[signal] {
                let ChannelHistory { values, sum, .. } = past[*person];
                past[*person] = ChannelHistory { values: values + 1.0, sum: sum + value, last: value, bucket: at };
            }
        }
    }
    let buckets = rows.iter().filter(|(at, _)| !contributions.contains_key(&(series, **at)));
    for placed in buckets.flat_map(|(_, rows)| rows) {
        basis.add_row_violation(
            findings,
            "the required number of members is present",
            placed,
            Some([0, basis.terms.cohorts.crowd]),
        );
    }
}

fn check_row(basis: &SeriesCheckInput<'_>, at: &PositionedRow<'_>, set: &SetValues, findings: &mut ViolationLog) {
    let crowd = basis.terms.cohorts.crowd;
    let (row, values) = (at.row, set.all());
    if set.present.len() < crowd {
        basis.add_row_violation(
            findings,
            "the required number of members is present",
            at,
            Some([set.present.len(), crowd]),
        );
    }
    if values.len() as u64 != row.n || values.is_empty() {
        return basis.add_row_violation(findings, "every member has a value or has had one", at, None);
    }
    let filled = set.carried.len() as f64 / values.len() as f64;
    if (row.filled - filled).abs() > 0.050_001 {
        basis.add_row_violation(findings, "the filled share is that of the members without a value", at, None);
    }
    let promise = match &row.statistic {
        RowStatistic::Mean(statistic) => {
            let range = basis.terms.series[row.series].signals[row.signal].range;
            if is_dominated_from(&reference_points(range, &values), &values, basis.terms.cohorts.colluders) {
                basis.add_row_violation(findings, "neither one nor two people dominate a sum", at, None);
            }
            statistics_violation(statistic, &values, crowd)
        }
        RowStatistic::Bin { label, share } => share_violation(basis, row, (label, *share), set),
        RowStatistic::Moment(_) | RowStatistic::Noisy(_) => None,
    };
    if let Some(promise) = promise {
        basis.add_row_violation(findings, promise, at, None);
    }
}

/// Returns the ends of a finite range, or 0, and the median.
pub(super) fn reference_points((low, high): (f64, f64), values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
    let mut points = if low.is_infinite() || high.is_infinite() { vec![0.0] } else { vec![low, high] };
    points.push(median);
    points
}

/// Returns true if the largest distance exceeds half of the sum, or if the rest without the next max(1, colluders) is
/// below a tenth of it. `error` bounds floating-point differences.
pub(super) fn is_dominated(mut distances: Vec<f64>, colluders: usize, error: f64) -> bool {
    distances.iter_mut().for_each(|distance| *distance = distance.abs());
    distances.sort_by(|one, other| other.total_cmp(one));
    let (total, rest): (f64, f64) = (distances.iter().sum(), distances.iter().skip(1 + colluders.max(1)).sum());
    distances.first().is_none_or(|largest| {
        rest < 0.1 * largest * (1.0 - 1e-9) - error || *largest > 0.5 * total * (1.0 + 1e-9) + error
    })
}

/// Applies [`is_dominated`] to the distances from each point.
pub(super) fn is_dominated_from(points: &[f64], values: &[f64], colluders: usize) -> bool {
    let error = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs())) * 1e-13;
    points.iter().any(|point| is_dominated(values.iter().map(|value| value - point).collect(), colluders, error))
}

/// A carried value at an edge can be on either side.
fn share_violation(
    basis: &SeriesCheckInput<'_>,
    row: &SeriesRow,
    (label, share): (&str, f64),
    set: &SetValues,
) -> Option<&'static str> {
    let ruler = basis.terms.series[row.series].signals[row.signal].intervals.as_ref()?;
    let level = interval_level(basis, row, &[(label, share)])?;
    let is_in = |value: f64| ruler.labelled_interval(level, value).is_some_and(|(_, of)| of == label);
    let (low, high) = ruler.domain_bounds();
    let certain = set.present.iter().filter(|value| is_in(**value)).count();
    let possible = set.carried.iter().filter(|value| {
        let error = value.abs() * 1e-9 + (high - low) * 1e-12;
        [**value - error, **value, **value + error].into_iter().any(|value| is_in(value.clamp(low, high)))
    });
    let most = certain + possible.count();
    let n = row.n as f64;
    if most < basis.terms.cohorts.crowd {
        return Some("an interval has the required number of people, in hundredths");
    }
    let is_near = share >= certain as f64 / n - 0.005_001 && share <= most as f64 / n + 0.005_001;
    (!is_near).then_some("a share is that of the contributions")
}

fn statistics_violation(row: &MeanStatistic, values: &[f64], crowd: usize) -> Option<&'static str> {
    let n = values.len() as f64;
    let within = |step: f64, shown: f64, exact: f64| (shown - exact).abs() <= step * 0.500_001 + exact.abs() * 1e-9;
    let step = row_rounding_step(row.sd, n);
    let is_near = |shown: f64, exact: f64| within(step, shown, exact);
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    if !is_near(row.mean, mean) {
        return Some("a mean is that of the contributions");
    }
    let deviation = (squares / (n - 1.0)).sqrt();
    if !within(row_rounding_step(deviation * (1.0 + 1e-9), n), row.sd, deviation) {
        return Some("a deviation is that of the contributions");
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let quartile = |quarters: usize| {
        let within = |reach: usize| -> Vec<f64> {
            let is_near = |at: usize| (4 * at).abs_diff(quarters * (sorted.len() - 1)) <= reach;
            (0..sorted.len()).filter(|at| is_near(*at)).map(|at| sorted[at]).collect()
        };
        let members = (0..=4 * sorted.len()).map(within).find(|members| members.len() >= crowd).unwrap_or_default();
        members.iter().sum::<f64>() / members.len() as f64
    };
    let shown = row.quartiles.into_iter().flatten();
    let follows = shown.zip(1..).all(|(shown, quarters)| is_near(shown, quartile(quarters)));
    (!follows).then_some("a quartile is that of the contributions")
}
