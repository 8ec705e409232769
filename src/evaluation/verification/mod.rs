//! Recount of a release by an independent auditor (docs/internals/methods.md §14.4). Shares only schema, hierarchies
//! and codebooks with the daemon's verification.

mod cell_validation;
mod class_counts;
mod group_reader;
mod line_lineage;
mod models;
mod order;
mod repetition;
mod series;
mod series_moments;
mod series_noise;
mod series_published;
mod series_rows;
mod series_values;
mod shared_values;
mod violation_log;

pub use violation_log::{GroupClassCounts, RecountViolation, ReleaseRecount, SeriesRowCounts};

use crate::config::{Config, RecodingMode, RowContent};
use std::path::Path;
use throng_core::plan::GroupShape;
use throng_core::plan::plan_shared_attributes::find_shared_attributes;
use throng_core::series::AllSeriesTerms;
use throng_core::values::schema::Schema;
use throng_eval::error::EvaluationError;
use throng_eval::original::OriginalData;
use violation_log::{RecountRequirements, ViolationLog};

/// Recounts the release at `path`; a `lineage` adds subjects and batches, an `original` the values of series.
///
/// # Errors
///
/// When a file is unreadable or the lineage is of another release.
pub fn recount_release(
    (config, schema, shapes): (&Config, &Schema, &[GroupShape]),
    path: &Path,
    lineage: Option<&Path>,
    series: Option<&AllSeriesTerms>,
    original: Option<&OriginalData>,
) -> Result<ReleaseRecount, EvaluationError> {
    let mut findings = ViolationLog::default();
    let mut spelling = cell_validation::CellValidator::new(schema);
    let groups = if config.sink.rows == RowContent::Joined && !shapes.is_empty() {
        let told = lineage.map(|lineage| line_lineage::groups_by_row(lineage, shapes)).transpose()?;
        group_reader::read_joined((config, schema), shapes, path, told, &mut spelling, &mut findings)?
    } else {
        let alone = shapes.len() == 1;
        let mut read = |shape| group_reader::read(config, schema, shape, alone, path, &mut spelling, &mut findings);
        shapes.iter().map(&mut read).collect::<Result<_, _>>()?
    };
    let told = lineage.map(|lineage| line_lineage::read_line_lineage(lineage, &groups)).transpose()?;
    let privacy = &config.privacy;
    let asked = RecountRequirements {
        crowd: privacy.required_subjects(),
        max_lines_per_batch: privacy.max_lines_per_subject,
        counts_subjects: schema.subject.is_some(),
    };
    let counted = groups
        .iter()
        .zip(shapes)
        .enumerate()
        .map(|(number, (group, shape))| {
            class_counts::count_group(
                group,
                shape,
                told.as_ref().map(|told| told[number].as_slice()),
                &asked,
                &mut findings,
            )
        })
        .collect();
    if let Some(told) = &told {
        class_counts::check_forced_cells(&groups, told, &asked, &mut findings);
        shared_values::check_shared(&groups, told, &asked, &mut findings);
        order::check_order(config, &groups, told, &mut findings);
        for ((group, shape), told) in groups.iter().zip(shapes).zip(told) {
            models::check_models((schema, &privacy.model), (group, shape), told, asked.counts_subjects, &mut findings);
        }
        check_repetition(config, schema, (&groups, shapes), told, &mut findings);
    }
    let count = |terms| series::check_series(config, terms, path, lineage, original, &mut findings);
    let series_counts = series.map(count).transpose()?.unwrap_or_default();
    let mut not_checked = if shapes.is_empty() {
        Vec::new()
    } else {
        unchecked_guarantees(config, told.as_deref(), asked.counts_subjects)
    };
    not_checked.extend(series.into_iter().flat_map(|_| unchecked_series(lineage.is_some(), original.is_some())));
    Ok(ReleaseRecount {
        series: series_counts,
        counted: if told.is_some() && asked.counts_subjects { "people" } else { "lines" },
        crowd: asked.crowd,
        lines: groups.iter().map(|group| group.lines.len() as u64).sum(),
        groups: counted,
        kept: findings.is_empty(),
        broken_in_all: findings.violation_count(),
        broken: findings.into_listed(),
        not_checked,
    })
}

fn check_repetition(
    config: &Config,
    schema: &Schema,
    (groups, shapes): (&[group_reader::GroupLines], &[GroupShape]),
    told: &[Vec<line_lineage::LineLineage>],
    findings: &mut ViolationLog,
) {
    let privacy = &config.privacy;
    if schema.subject.is_none() || privacy.longest_delay().is_zero() {
        return;
    }
    let window_ms = i64::try_from(privacy.static_window.as_millis()).unwrap_or(i64::MAX);
    let shared = find_shared_attributes(shapes.iter().map(|shape| shape.quasi.as_slice()));
    for ((group, shape), told) in groups.iter().zip(shapes).zip(told) {
        if repetition::is_declared_static(schema, shape, &shared) {
            repetition::check_static_group(group, told, window_ms, findings);
        }
    }
}

fn unchecked_guarantees(
    config: &Config,
    told: Option<&[Vec<line_lineage::LineLineage>]>,
    people: bool,
) -> Vec<&'static str> {
    let mut open = vec![
        "exclusion, and the values behind a hidden sensitive cell: they depend on unreleased records",
        "counting over generalized labels: only single cells are counted",
    ];
    if config.group.iter().any(|group| group.treatment == RecodingMode::Ranges) {
        open.push("overlap of classes of ranges: it depends on unreleased records");
    }
    if told.is_none() {
        open.push("class sizes in batches (they are counted over the whole release), lines of one person, order, and forced pairs: --lineage is required");
        if config.sink.rows == RowContent::Joined {
            open.push("rows in which every cell is missing: their group is unknown without --lineage");
        }
        if people {
            open.push("people: lines are counted, and one person may have several");
        }
    }
    let is_timed = |told: &[Vec<line_lineage::LineLineage>]| told.iter().flatten().all(|told| told.time.is_some());
    if people && !told.is_some_and(is_timed) {
        open.push("lines of one person over several batches: --lineage with the times of the batches is required");
    }
    if config.privacy.model.iter().any(|model| told.is_none() || !models::is_checkable(model)) {
        open.push("the privacy models other than k, except l_diversity with a lineage");
    }
    open
}

fn unchecked_series(has_lineage: bool, has_original: bool) -> Vec<&'static str> {
    let mut open =
        vec!["independence of the cohort draw from values: the secret and the whole input of the run are required"];
    if !has_lineage {
        open.push("cohorts, atoms and contributor sets of series: --lineage is required");
    }
    if !has_lineage || !has_original {
        open.push("values of series, dominance, and presence of members: --original and --lineage are required");
    } else {
        open.push(
            "values of series that continue an earlier run: carried values come from records that this run has not read",
        );
    }
    open
}

#[cfg(test)]
mod round_trip_tests;
#[cfg(test)]
mod tests;
