//! Recount of moments from the original.

use super::series_rows::{PositionedRow, SeriesCheckInput, step_below};
use super::series_values::{is_dominated, is_dominated_from, reference_points as series_points};
use super::violation_log::ViolationLog;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::series::{MomentStatistic, RowStatistic, SeriesRow};

/// By signal.
type EpochRow = Vec<f64>;
type RowsOfEpochs = BTreeMap<u64, BTreeMap<i64, Vec<EpochRow>>>;

/// Returns the fewest subjects of an epoch per series.
pub(super) fn check_moments(
    basis: &SeriesCheckInput<'_>,
    placed: &[PositionedRow<'_>],
    findings: &mut ViolationLog,
) -> BTreeMap<usize, usize> {
    let mut blocks: BTreeMap<_, Vec<&PositionedRow<'_>>> = BTreeMap::new();
    for at in placed {
        let row = at.row;
        blocks.entry((row.series, row.bucket, &row.cohort, &row.stratum)).or_default().push(at);
    }
    let mut rows: BTreeMap<usize, RowsOfEpochs> = BTreeMap::new();
    let mut fewest: BTreeMap<usize, usize> = BTreeMap::new();
    let mut people: BTreeMap<(usize, i64), BTreeSet<u64>> = BTreeMap::new();
    for block in blocks.values() {
        let first = block[0];
        let same = |at: &&PositionedRow<'_>| (at.row.n, at.row.filled) == (first.row.n, first.row.filled);
        if !block.iter().all(|at| same(at) && at.of_sets) {
            basis.add_row_violation(findings, "moments of a cohort and an epoch are of the same people", first, None);
        }
        let variances: BTreeMap<usize, f64> = block
            .iter()
            .filter_map(|at| moment(at.row).filter(|of| of.with == at.row.signal).map(|of| (of.with, of.covariance)))
            .collect();
        let mut seen = BTreeSet::new();
        for at in block {
            let Some(of) = moment(at.row) else { continue };
            if !seen.insert((at.row.signal, of.with)) {
                basis.add_row_violation(findings, "an epoch is published only once", at, None);
            }
            if let Some(promise) = moment_violation(at.row.signal, of, &variances) {
                basis.add_row_violation(findings, promise, at, None);
            }
        }
        check_epoch_subjects(basis, first, findings);
        let of_epoch = people.entry((first.row.series, first.row.bucket)).or_default();
        if !basis.members(first.row).into_iter().all(|member| of_epoch.insert(member)) {
            basis.add_row_violation(findings, "a person counts only once in an epoch", first, None);
        }
        let is_known = basis.lineage.is_some_and(|lineage| !lineage.has_earlier_run()) && basis.people.is_some();
        if is_known && !first.row.sets.is_empty() {
            let rows = rows.entry(first.row.series).or_insert_with(|| rows_of(basis, first.row.series));
            let present = check_moment_values(basis, block, rows, &variances, findings);
            fewest.entry(first.row.series).and_modify(|fewest| *fewest = present.min(*fewest)).or_insert(present);
        }
    }
    fewest
}

fn moment(row: &SeriesRow) -> Option<MomentStatistic> {
    match row.statistic {
        RowStatistic::Moment(of) => Some(of),
        RowStatistic::Mean(_) | RowStatistic::Bin { .. } | RowStatistic::Noisy(_) => None,
    }
}

fn moment_violation(signal: usize, of: MomentStatistic, variances: &BTreeMap<usize, f64>) -> Option<&'static str> {
    let scale = variances.get(&signal).zip(variances.get(&of.with)).map(|(one, other)| (one * other).sqrt());
    let Some(scale) = scale.filter(|scale| *scale > 0.0) else {
        return Some("a covariance is published with both variances, which are above zero");
    };
    if of.with < signal || of.mean.is_some() != (of.with == signal) {
        return Some("a pair of signals is published only once, and a variance together with its mean");
    }
    let is_rounded = |value: f64, scale: f64| {
        let multiple = value / step_below(scale / 1_000.0);
        (multiple - multiple.round()).abs() <= 1e-6 * multiple.abs().max(1.0)
    };
    let is_round = is_rounded(of.covariance, scale) && of.mean.is_none_or(|mean| is_rounded(mean, scale.sqrt()));
    (!is_round).then_some("moments are rounded to a thousandth of a deviation")
}

fn check_epoch_subjects(basis: &SeriesCheckInput<'_>, at: &PositionedRow<'_>, findings: &mut ViolationLog) {
    let crowd = basis.terms.cohorts.crowd;
    let row = at.row;
    if row.n < crowd as u64 {
        basis.add_row_violation(findings, "a set has the required number of people", at, Some([row.n as usize, crowd]));
    }
    let Some(lineage) = basis.lineage else { return };
    if row.sets.is_empty() {
        return basis.add_row_violation(findings, "a row is of a contributor set that is locked", at, None);
    }
    let length = basis.terms.series[row.series].moments.as_ref().map_or(0, |moments| moments.every_ms);
    let (start, of) = (row.bucket, &basis.terms.series[row.series]);
    // A job's last epoch ends with the input.
    let end = of.end(of.bucket(row.bucket.saturating_add(length) - 1));
    if start >= lineage.closed_ms[row.series] {
        basis.add_row_violation(findings, "an epoch is closed before it is published", at, None);
    }
    if end <= lineage.begun_after[row.series] {
        basis.add_row_violation(findings, "an epoch that an earlier run has closed is not published again", at, None);
    }
    for cohort in row.sets.iter().filter_map(|(number, _)| lineage.cohorts.get(number)) {
        if row.stratum.as_ref() != Some(&cohort.stratum) {
            basis.add_row_violation(findings, "a row is of the stratum of its cohort", at, None);
        }
        if end <= cohort.formed_after[row.series] {
            basis.add_row_violation(
                findings,
                "a cohort publishes no epoch that was closed before it was formed",
                at,
                None,
            );
        }
        if cohort.retired_after.as_ref().is_some_and(|closed_ms| start >= closed_ms[row.series]) {
            basis.add_row_violation(findings, "a retired cohort publishes nothing", at, None);
        }
    }
    let members = basis.members(row).len();
    if row.n != members as u64 {
        basis.add_row_violation(findings, "n is the number of people of the set", at, Some([row.n as usize, members]));
    }
}

/// Complete buckets by subject and epoch.
fn rows_of(basis: &SeriesCheckInput<'_>, series: usize) -> RowsOfEpochs {
    let mut rows = RowsOfEpochs::new();
    let Some(moments) = &basis.terms.series[series].moments else { return rows };
    let Some((people, contributions)) = basis.people else { return rows };
    for ((_, bucket), of_bucket) in contributions.range((series, i64::MIN)..=(series, i64::MAX)) {
        for (person, contribution) in of_bucket {
            if let Some(row) = contribution.values.iter().copied().collect::<Option<EpochRow>>() {
                let of_person = rows.entry(people[*person]).or_default();
                of_person.entry(moments.epoch(*bucket)).or_default().push(row);
            }
        }
    }
    // Subjects need enough rows.
    let least = basis.terms.series[series].min_values as usize;
    rows.values_mut().for_each(|epochs| epochs.retain(|_, rows| rows.len() >= least));
    rows
}

fn check_moment_values(
    basis: &SeriesCheckInput<'_>,
    block: &[&PositionedRow<'_>],
    rows: &RowsOfEpochs,
    variances: &BTreeMap<usize, f64>,
    findings: &mut ViolationLog,
) -> usize {
    let (first, crowd) = (block[0], basis.terms.cohorts.crowd);
    let epoch = first.row.bucket;
    let members = basis.members(first.row);
    let has_rows = |member: &&u64| rows.get(member).is_some_and(|of| of.contains_key(&epoch));
    let present = members.iter().filter(has_rows).count();
    if present < crowd {
        basis.add_row_violation(findings, "the required number of members is present", first, Some([present, crowd]));
    }
    let filled = (members.len() - present) as f64 / members.len() as f64;
    if (first.row.filled - filled).abs() > 0.050_001 {
        basis.add_row_violation(findings, "the filled share is that of the members without a value", first, None);
    }
    let of_member = |member: &u64, value: &dyn Fn(&EpochRow) -> f64| epoch_mean(rows.get(member)?, epoch, value);
    let values = |value: &dyn Fn(&EpochRow) -> f64| -> Option<Vec<f64>> {
        members.iter().map(|member| of_member(member, value)).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    for at in block {
        let (signal, Some(of)) = (at.row.signal, moment(at.row)) else { continue };
        let numbers = values(&|row| row[signal]).zip(values(&|row| row[of.with]));
        let Some(((one, other), products)) = numbers.zip(values(&|row| row[signal] * row[of.with])) else {
            basis.add_row_violation(findings, "every member has a value or has had one", at, None);
            return present;
        };
        let (center, other_center) = (mean(&one), mean(&other));
        // Centered before summing, unlike in the release.
        let distance = |row: &EpochRow| (row[signal] - center) * (row[of.with] - other_center);
        let exact = values(&distance).map_or(f64::NAN, |products| mean(&products));
        let scale = variances.get(&signal).zip(variances.get(&of.with)).map_or(0.0, |(a, b)| a.sqrt() * b.sqrt());
        let size = products.iter().map(|product| product.abs()).sum::<f64>() / products.len() as f64;
        let is_near = |shown: f64, exact: f64, scale: f64, error: f64| {
            (shown - exact).abs() <= step_below(scale / 1_000.0) * 0.500_001 + error
        };
        let means = of.mean.is_none_or(|shown| is_near(shown, center, scale.sqrt(), center.abs() * 1e-9));
        if !means || !is_near(of.covariance, exact, scale, size * 1e-9) {
            basis.add_row_violation(findings, "moments are those of the contributions", at, None);
        }
        let colluders = basis.terms.cohorts.colluders;
        let range = |signal: usize| basis.terms.series[first.row.series].signals[signal].range;
        let has_ranges = [range(signal), range(of.with)].iter().all(|(low, high)| low.is_finite() && high.is_finite());
        let ends = |(low, high): (f64, f64)| if has_ranges { vec![low, high] } else { vec![0.0] };
        let points = ends(range(signal)).into_iter().zip(ends(range(of.with))).chain([(center, other_center)]);
        let is_pair_dominated = points.into_iter().any(|(end, other_end)| {
            let distances = values(&|row| (row[signal] - end) * (row[of.with] - other_end));
            is_dominated(distances.unwrap_or_default(), colluders, size * products.len() as f64 * 1e-12)
        });
        let is_mean_dominated = || is_dominated_from(&series_points(range(signal), &one), &one, colluders);
        if is_pair_dominated || of.mean.is_some() && is_mean_dominated() {
            basis.add_row_violation(findings, "neither one nor two people dominate a sum", at, None);
        }
    }
    present
}

/// Without enough rows: mean over earlier epochs, else of the first.
fn epoch_mean(epochs: &BTreeMap<i64, Vec<EpochRow>>, epoch: i64, value: &dyn Fn(&EpochRow) -> f64) -> Option<f64> {
    let mean = |rows: &Vec<EpochRow>| rows.iter().map(value).sum::<f64>() / rows.len() as f64;
    if let Some(rows) = epochs.get(&epoch) {
        return Some(mean(rows));
    }
    let earlier: Vec<f64> = epochs.range(..epoch).map(|(_, rows)| mean(rows)).collect();
    if earlier.is_empty() {
        return epochs.values().next().map(mean);
    }
    Some(earlier.iter().sum::<f64>() / earlier.len() as f64)
}
