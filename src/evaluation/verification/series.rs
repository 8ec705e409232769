//! Recount of series rows. Shares only the terms and the row format with the proposal and the daemon's verification.

use super::series_moments::check_moments;
use super::series_noise::check_noise;
use super::series_published::check_published;
use super::series_rows::{PositionedRow, SeriesCheckInput, interval_level, row_blocks, row_rounding_step, step_below};
use super::series_values::check_set_values;
use super::violation_log::{SeriesRowCounts, ViolationLog};
use crate::config::Config;
use crate::evaluation::released_series_rows::ReleasedSeriesFiles;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use throng_core::series::{AllSeriesTerms, MeanStatistic, RowStatistic, SeriesRow, SeriesTerms};
use throng_eval::error::EvaluationError;
use throng_eval::original::OriginalData;
use throng_eval::series::{
    CohortRecord, SeriesLineage, compute_original_subjects, contributor_sets, is_contributor_row,
};

/// Recounts all series at `path`. Values need `original`, sets and subjects need `lineage`.
///
/// # Errors
///
/// When a file is unreadable, or the lineage is of another original.
pub(super) fn check_series(
    config: &Config,
    terms: &AllSeriesTerms,
    path: &Path,
    lineage: Option<&Path>,
    original: Option<&OriginalData>,
    findings: &mut ViolationLog,
) -> Result<Vec<SeriesRowCounts>, EvaluationError> {
    let lineage = lineage.map(|path| SeriesLineage::read(path, terms)).transpose()?;
    let people = match (original, &lineage) {
        (Some(original), Some(lineage)) => Some(compute_original_subjects(original, terms, lineage)?),
        _ => None,
    };
    let read = ReleasedSeriesFiles::read(config, terms, path)?;
    let mut rows: Vec<(u64, SeriesRow)> = Vec::new();
    for read_row in &read.rows {
        let (file, line) = read.file_and_line(read_row.series, read_row.number);
        match &read_row.row {
            Ok(row) => {
                let sets = lineage.as_ref().map(|lineage| contributor_sets(row, read_row.number, terms, lineage));
                rows.push((line, SeriesRow { sets: sets.unwrap_or_default(), ..row.clone() }));
            }
            Err(_) => findings.add_violation("a row has the format of its series", file, line as usize - 1, None, None),
        }
    }
    let (moments, placed): (Vec<PositionedRow<'_>>, Vec<PositionedRow<'_>>) = rows
        .iter()
        .map(|(line, row)| {
            let line = usize::try_from(line - 1).unwrap_or(usize::MAX);
            PositionedRow { file: &read.files[row.series], line, row, of_sets: is_contributor_row(row, terms) }
        })
        .partition(|at| at.row.is_of_epoch());
    let contributions = people.as_ref().map(|people| (people.people.as_slice(), &people.contributions));
    let basis = SeriesCheckInput { terms, lineage: lineage.as_ref(), people: contributions };
    if let Some(lineage) = &lineage {
        check_lineage(terms, lineage, findings);
        check_published(terms, lineage, &read, findings);
    }
    check_form(&basis, &placed, findings);
    check_buckets(&basis, &placed, findings);
    check_roll_ups(&basis, &placed, findings);
    if lineage.is_some() {
        placed.iter().filter(|at| at.of_sets).for_each(|at| check_set(&basis, at, findings));
        check_subjects_once(&basis, &placed, findings);
    }
    check_blocks(&basis, &placed, findings);
    let mut present = check_moments(&basis, &moments, findings);
    check_noise(&basis, &placed, findings);
    present.extend(check_set_values(&basis, &placed, findings));
    Ok(count_series_rows(terms, &[placed, moments].concat(), &present))
}

fn count_series_rows(
    terms: &AllSeriesTerms,
    placed: &[PositionedRow<'_>],
    present: &BTreeMap<usize, usize>,
) -> Vec<SeriesRowCounts> {
    let count = |(number, series): (usize, &SeriesTerms)| {
        let rows = || placed.iter().filter(move |at| at.row.series == number).map(|at| at.row);
        SeriesRowCounts {
            series: series.name.clone(),
            rows: rows().count() as u64,
            buckets: rows().map(|row| row.bucket).collect::<BTreeSet<i64>>().len() as u64,
            smallest_set: rows()
                .filter(|row| series.noise.is_some() || is_contributor_row(row, terms))
                .map(|row| row.n)
                .min()
                .unwrap_or(0),
            fewest_present: present.get(&number).map(|people| *people as u64),
        }
    };
    terms.series.iter().enumerate().map(count).collect()
}

/// Atoms have new members, cohorts have each subject once, and entries do not conflict.
fn check_lineage(terms: &AllSeriesTerms, lineage: &SeriesLineage, findings: &mut ViolationLog) {
    let mut at =
        |promise, line: u64, counts| findings.add_violation(promise, &lineage.path, line as usize - 1, None, counts);
    for conflict in &lineage.conflicts {
        at(conflict.claim, conflict.line, None);
    }
    let crowd = terms.cohorts.crowd;
    let mut known: BTreeSet<u64> = BTreeSet::new();
    let erased: BTreeSet<u16> = lineage.cohorts.values().flat_map(|cohort| cohort.erased.iter().copied()).collect();
    let mut tokens = BTreeSet::new();
    let mut active: BTreeMap<u64, &CohortRecord> = BTreeMap::new();
    for cohort in lineage.cohorts.values() {
        if !tokens.insert(&cohort.token) {
            at("two cohorts have different names", cohort.line, None);
        }
        let mut own: BTreeSet<u64> = BTreeSet::new();
        for atom in &cohort.atoms {
            // A returning erased subject is not new.
            let is_new = |member: &&u64| !known.contains(*member) && !erased.contains(&(**member as u16));
            let fresh = atom.iter().filter(is_new).collect::<BTreeSet<_>>().len();
            // Retired cohorts of an earlier run lack erased members.
            if fresh < crowd && !(cohort.is_older && cohort.retired_after.is_some()) {
                at("an atom has the required number of new members", cohort.line, Some([fresh, crowd]));
            }
            if !atom.iter().all(|member| own.insert(*member)) {
                at("a person is in a cohort only once", cohort.line, None);
            }
        }
        for member in &own {
            let before = active.insert(*member, cohort);
            if before.is_some_and(|before| before.retired_after.is_none()) {
                at("a person is in one cohort that is not retired", cohort.line, None);
            }
        }
        known.extend(own);
    }
}

fn check_form(basis: &SeriesCheckInput<'_>, placed: &[PositionedRow<'_>], findings: &mut ViolationLog) {
    let crowd = basis.terms.cohorts.crowd;
    for at in placed {
        let row = at.row;
        let mut note = |promise, counts| basis.add_row_violation(findings, promise, at, counts);
        if !is_multiple(row.filled, 0.1) || !(0.0..=1.0).contains(&row.filled) {
            note("the filled share is in tenths", None);
        }
        if row.n < crowd as u64 {
            note("a set has the required number of people", Some([row.n as usize, crowd]));
        }
        // `filled` is rounded to tenths; at most this many subjects were present.
        let present = row.n as f64 * (1.05 - row.filled) + 1e-6;
        if at.of_sets && present < crowd as f64 {
            note("the required number of members is present", Some([present as usize, crowd]));
        }
        match &row.statistic {
            RowStatistic::Mean(statistic) => {
                let may_have_quartiles = at.of_sets && row.n >= 2 * crowd as u64;
                form_violations(statistic, row.n, may_have_quartiles)
                    .into_iter()
                    .for_each(|promise| note(promise, None));
            }
            RowStatistic::Bin { share, .. } => {
                let people = row.n as f64 * (share + 0.005_001);
                if !at.of_sets {
                    note("a row of several cohorts is a mean", None);
                }
                if !is_multiple(*share, 0.01) || people < crowd as f64 {
                    note(
                        "an interval has the required number of people, in hundredths",
                        Some([people as usize, crowd]),
                    );
                }
            }
            // Checked elsewhere.
            RowStatistic::Moment(_) | RowStatistic::Noisy(_) => {}
        }
    }
}

fn form_violations(statistic: &MeanStatistic, n: u64, may_have_quartiles: bool) -> Vec<&'static str> {
    let mut broken = Vec::new();
    if statistic.sd.is_nan() || statistic.sd <= 0.0 {
        broken.push("the values of a set are not all equal");
    }
    if statistic.quartiles.is_some_and(|quartiles| !quartiles.is_sorted()) {
        broken.push("quartiles ascend");
    }
    if statistic.quartiles.is_some() != may_have_quartiles {
        broken.push("quartiles are published exactly for sets of twice the required size or more");
    }
    let step = row_rounding_step(statistic.sd, n as f64);
    let mut values = [statistic.mean].into_iter().chain(statistic.quartiles.into_iter().flatten());
    // The exact deviation can be just below the limit of a finer step.
    let is_deviation = is_multiple(statistic.sd, step) || is_multiple(statistic.sd, step_below(step * 0.9));
    if !is_deviation || !values.all(|value| is_multiple(value, step)) {
        broken.push("values are rounded to the step of their row");
    }
    broken
}

/// One mean, or all shares of one level, per signal, bucket, cohort and stratum.
fn check_blocks(basis: &SeriesCheckInput<'_>, placed: &[PositionedRow<'_>], findings: &mut ViolationLog) {
    for block in row_blocks(placed) {
        let first = block[0];
        let shares: Option<Vec<(&str, f64)>> = block.iter().map(|at| at.share()).collect();
        let Some(shares) = shares else {
            if block.len() > 1 {
                basis.add_row_violation(findings, "a bucket is published only once", block[1], None);
            }
            continue;
        };
        if shares.len() < 2
            || (shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() > 0.006 * shares.len() as f64
        {
            basis.add_row_violation(findings, "shares cover all intervals with people, at least two", first, None);
        }
        if interval_level(basis, first.row, &shares).is_none() {
            basis.add_row_violation(findings, "intervals are of one level of the hierarchy", first, None);
        }
    }
}

/// Up to floating-point error.
fn is_multiple(value: f64, step: f64) -> bool {
    let multiple = value / step;
    (multiple - multiple.round()).abs() <= 1e-6 * multiple.abs().max(1.0)
}

/// Each bucket once, in order, after closing.
fn check_buckets(basis: &SeriesCheckInput<'_>, placed: &[PositionedRow<'_>], findings: &mut ViolationLog) {
    let mut seen = BTreeSet::new();
    let mut latest: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
    for at in placed {
        let row = at.row;
        let end = basis.terms.series[row.series].end(row.bucket);
        if !seen.insert((
            row.series,
            row.bucket,
            row.signal,
            &row.cohort,
            &row.stratum,
            at.share().map(|(label, _)| label),
        )) {
            basis.add_row_violation(findings, "a bucket is published only once", at, None);
        }
        let latest = latest.entry(row.series).or_insert((i64::MIN, i64::MIN));
        if (end, row.bucket) < *latest {
            basis.add_row_violation(findings, "no bucket is published after a later one", at, None);
        }
        *latest = (end, row.bucket).max(*latest);
        let Some(lineage) = basis.lineage else { continue };
        if end > lineage.closed_ms[row.series] {
            basis.add_row_violation(findings, "a bucket is closed before it is published", at, None);
        }
        if end <= lineage.begun_after[row.series] {
            basis.add_row_violation(
                findings,
                "a bucket that an earlier run has closed is not published again",
                at,
                None,
            );
        }
    }
}

/// A locked set of whole atoms of an existing cohort.
fn check_set(basis: &SeriesCheckInput<'_>, at: &PositionedRow<'_>, findings: &mut ViolationLog) {
    let (Some(lineage), row) = (basis.lineage, at.row) else { return };
    if row.sets.is_empty() {
        return basis.add_row_violation(findings, "a row is of a contributor set that is locked", at, None);
    }
    let end = basis.terms.series[row.series].end(row.bucket);
    for (number, _) in &row.sets {
        let Some(cohort) = lineage.cohorts.get(number) else { continue };
        if row.stratum.as_ref() != Some(&cohort.stratum) {
            basis.add_row_violation(findings, "a row is of the stratum of its cohort", at, None);
        }
        if end <= cohort.formed_after[row.series] {
            basis.add_row_violation(
                findings,
                "a cohort publishes no bucket that was closed before it was formed",
                at,
                None,
            );
        }
        if cohort.retired_after.as_ref().is_some_and(|closed_ms| end > closed_ms[row.series]) {
            basis.add_row_violation(findings, "a retired cohort publishes nothing", at, None);
        }
    }
    let members = basis.members(row).len();
    if row.n != members as u64 {
        basis.add_row_violation(findings, "n is the number of people of the set", at, Some([row.n as usize, members]));
    }
}

/// Each subject in one set per bucket and signal.
fn check_subjects_once(basis: &SeriesCheckInput<'_>, placed: &[PositionedRow<'_>], findings: &mut ViolationLog) {
    let mut seen: BTreeMap<(usize, i64, usize), BTreeSet<u64>> = BTreeMap::new();
    for at in row_blocks(placed).iter().map(|block| block[0]) {
        let people = seen.entry((at.row.series, at.row.bucket, at.row.signal)).or_default();
        if !basis.members(at.row).into_iter().all(|member| people.insert(member)) {
            basis.add_row_violation(findings, "a person counts only once in a bucket", at, None);
        }
    }
}

/// Roll-ups follow from all rows of their cohorts.
fn check_roll_ups(basis: &SeriesCheckInput<'_>, placed: &[PositionedRow<'_>], findings: &mut ViolationLog) {
    let mut buckets: BTreeMap<(usize, i64, usize), Vec<&PositionedRow<'_>>> = BTreeMap::new();
    for at in placed {
        buckets.entry((at.row.series, at.row.bucket, at.row.signal)).or_default().push(at);
    }
    for of_bucket in buckets.values() {
        for at in of_bucket.iter().filter(|at| !at.of_sets) {
            let is_part = |part: &&&PositionedRow<'_>| {
                part.of_sets && (at.row.stratum.is_none() || part.row.stratum == at.row.stratum)
            };
            let Some(shown) = at.row.mean_statistic() else { continue };
            let parts = of_bucket.iter().filter(is_part);
            let parts: Vec<(&SeriesRow, MeanStatistic)> =
                parts.filter_map(|part| Some((part.row, part.row.mean_statistic()?))).collect();
            if let Some(promise) = roll_up_violation((at.row, shown), &parts) {
                basis.add_row_violation(findings, promise, at, None);
            }
        }
    }
}

fn roll_up_violation(
    (row, shown): (&SeriesRow, MeanStatistic),
    parts: &[(&SeriesRow, MeanStatistic)],
) -> Option<&'static str> {
    let people: u64 = parts.iter().map(|(part, _)| part.n).sum();
    if people != row.n {
        return Some("a row of several cohorts covers the people of their rows");
    }
    let weights: Vec<f64> = parts.iter().map(|(part, _)| part.n as f64 * (1.0 - part.filled).max(0.1)).collect();
    let weighted = |of: &dyn Fn(&MeanStatistic) -> f64| {
        let sum: f64 = parts.iter().zip(&weights).map(|((_, part), weight)| of(part) * weight).sum();
        sum / weights.iter().sum::<f64>()
    };
    let mean = weighted(&|part: &MeanStatistic| part.mean);
    let deviation =
        weighted(&|part: &MeanStatistic| part.sd * part.sd + (part.mean - mean) * (part.mean - mean)).sqrt();
    let filled = parts.iter().map(|(part, _)| part.filled * part.n as f64).sum::<f64>() / people as f64;
    let is_near = |shown: f64, exact: f64, step: f64| (shown - exact).abs() <= step * 0.500_001 + exact.abs() * 1e-9;
    let steps = [shown.sd, deviation * (1.0 + 1e-9)].map(|deviation| row_rounding_step(deviation, people as f64));
    let follows = is_near(shown.mean, mean, steps[0])
        && is_near(shown.sd, deviation, steps[1])
        && (row.filled - filled).abs() <= 0.050_001;
    (!follows).then_some("a row of several cohorts follows from their rows")
}
