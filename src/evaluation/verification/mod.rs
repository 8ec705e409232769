//! A release recounted by an auditor: from its bytes, the configuration and, where there is one, the lineage; without the daemon, its
//! state or the records before (docs/methods.md §14.4). Nothing is shared with the verification inside the daemon (`release/`) but
//! schema, hierarchies and codebooks.
//!
//! | file | what it holds |
//! |---|---|
//! | `lines` | the files of a release, line by line, and what is wrong with their form |
//! | `spelled` | whether a line is written in one way, and a cell is a value of its attribute, or a label of its hierarchy |
//! | `told` | what a lineage says of the lines |
//! | `counts` | crowds, by class, batch and sensitive value |
//! | `models` | diversity of the sensitive values of a class |
//! | `order` | the order of lines |
//! | `repetition` | lines of a person in a group that does not change |
//! | `series`, `series_rows`, `series_values` | rows of series: sets, atoms, rounding, roll-ups; with the original their values |
//! | `shared` | attributes that stand in several groups |
//! | `finding` | what the configuration asks for, what is broken, and where |

mod counts;
mod finding;
mod lines;
mod models;
mod order;
mod repetition;
mod series;
mod series_moments;
mod series_noise;
mod series_published;
mod series_rows;
mod series_values;
mod shared;
mod spelled;
mod told;

pub use finding::{Broken, GroupCount, Recount, SeriesCount};

use super::error::EvaluationError;
use crate::anonymity::plan::shared::in_several;
use crate::anonymity::planner::GroupShape;
use crate::anonymity::series::Terms;
use crate::config::{Config, Recoding, Rows};
use crate::evaluation::original::Original;
use finding::{Asked, Findings};
use std::path::Path;
use throng_core::values::schema::Schema;

/// Recounts the release at `path`, written as the sink of `config` writes. With a `lineage` people are counted, and batches. Values of
/// series, whose `terms` are given, are recounted from the `original`.
///
/// # Errors
/// When a file cannot be read, or the lineage is not of this release. A broken promise is no error: it is in the [`Recount`].
pub fn recount(
    (config, schema, shapes): (&Config, &Schema, &[GroupShape]),
    path: &Path,
    lineage: Option<&Path>,
    series: Option<&Terms>,
    original: Option<&Original>,
) -> Result<Recount, EvaluationError> {
    let mut findings = Findings::default();
    let mut spelling = spelled::Spelling::new(schema);
    let groups = if config.sink.rows == Rows::Joined && !shapes.is_empty() {
        let told = lineage.map(|lineage| told::groups(lineage, shapes)).transpose()?;
        lines::read_joined((config, schema), shapes, path, told, &mut spelling, &mut findings)?
    } else {
        let alone = shapes.len() == 1;
        let mut read = |shape| lines::read(config, schema, shape, alone, path, &mut spelling, &mut findings);
        shapes.iter().map(&mut read).collect::<Result<_, _>>()?
    };
    let told = lineage.map(|lineage| told::read(lineage, &groups)).transpose()?;
    let privacy = &config.privacy;
    let asked =
        Asked { crowd: privacy.crowd(), lines: privacy.max_lines_per_subject, people: schema.subject.is_some() };
    let counted = groups
        .iter()
        .zip(shapes)
        .enumerate()
        .map(|(number, (group, shape))| {
            counts::count(group, shape, told.as_ref().map(|told| told[number].as_slice()), &asked, &mut findings)
        })
        .collect();
    if let Some(told) = &told {
        counts::forced(&groups, told, &asked, &mut findings);
        shared::judge(&groups, told, &asked, &mut findings);
        order::sorted(config, &groups, told, &mut findings);
        for ((group, shape), told) in groups.iter().zip(shapes).zip(told) {
            models::judge((schema, &privacy.model), (group, shape), told, asked.people, &mut findings);
        }
        judge_repetition(config, schema, (&groups, shapes), told, &mut findings);
    }
    let count = |terms| series::judge(config, terms, path, lineage, original, &mut findings);
    let series_counts = series.map(count).transpose()?.unwrap_or_default();
    let mut not_checked =
        if shapes.is_empty() { Vec::new() } else { not_checked(config, told.as_deref(), asked.people) };
    not_checked.extend(series.into_iter().flat_map(|_| series_not_checked(lineage.is_some(), original.is_some())));
    Ok(Recount {
        series: series_counts,
        counted: if told.is_some() && asked.people { "people" } else { "lines" },
        crowd: asked.crowd,
        lines: groups.iter().map(|group| group.lines.len() as u64).sum(),
        groups: counted,
        kept: findings.is_empty(),
        broken_in_all: findings.in_all(),
        broken: findings.into_first(),
        not_checked,
    })
}

/// Counts what the groups that do not change say of a person over the batches, where that is limited.
fn judge_repetition(
    config: &Config,
    schema: &Schema,
    (groups, shapes): (&[lines::Group], &[GroupShape]),
    told: &[Vec<told::Told>],
    findings: &mut Findings,
) {
    let privacy = &config.privacy;
    if schema.subject.is_none() || privacy.longest_delay().is_zero() {
        return;
    }
    let window_ms = i64::try_from(privacy.static_window.as_millis()).unwrap_or(i64::MAX);
    let shared = in_several(shapes.iter().map(|shape| shape.quasi.as_slice()));
    for ((group, shape), told) in groups.iter().zip(shapes).zip(told) {
        if repetition::is_declared_static(schema, shape, &shared) {
            repetition::judge(group, told, window_ms, findings);
        }
    }
}

/// What bytes, or bytes and a lineage, cannot show.
fn not_checked(config: &Config, told: Option<&[Vec<told::Told>]>, people: bool) -> Vec<&'static str> {
    let mut open = vec![
        "exclusion, and which values hide behind a sensitive cell: they need the records before",
        "counting over generalized labels: single cells are counted",
    ];
    if config.group.iter().any(|group| group.treatment == Recoding::Ranges) {
        open.push("whether somebody of a class of ranges would have left in another: it needs the records before");
    }
    if told.is_none() {
        open.push("crowds inside batches (they are counted over the whole release), lines of one person, order, and forced pairs: they need --lineage");
        if config.sink.rows == Rows::Joined {
            open.push("rows in which every cell is missing: without --lineage they belong to no group");
        }
        if people {
            open.push("people: lines are counted, of which one person may have several");
        }
    }
    let is_timed = |told: &[Vec<told::Told>]| told.iter().flatten().all(|told| told.time.is_some());
    if people && !told.is_some_and(is_timed) {
        open.push("lines of one person over several batches: they need --lineage with the times of the batches");
    }
    if config.privacy.model.iter().any(|model| told.is_none() || !models::is_judged(model)) {
        open.push("the privacy models beside k, but for l_diversity where there is a lineage");
    }
    open
}

/// What cannot be checked of series.
fn series_not_checked(has_lineage: bool, has_original: bool) -> Vec<&'static str> {
    let mut open =
        vec!["whether values had a part in the draw of cohorts: it needs the secret and all that the run knew"];
    if !has_lineage {
        open.push("cohorts, atoms and contributor sets of series: they need --lineage");
    }
    if !has_lineage || !has_original {
        open.push("values of series, dominance, and who was present: they need --original and --lineage");
    } else {
        open.push(
            "values of series that go on from an earlier run: carried values are of records that this run has not read",
        );
    }
    open
}

#[cfg(test)]
mod round_trip_tests;
#[cfg(test)]
mod tests;
