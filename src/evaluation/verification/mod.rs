//! A release recounted by an auditor: from its bytes, the configuration and, where there is one, the lineage; without the daemon, its
//! state or the records before (docs/methods.md §14.4). Nothing is shared with the verification inside the daemon (`release/`) but
//! schema, hierarchies and codebooks.
//!
//! | file | what it holds |
//! |---|---|
//! | `lines` | the files of a release, line by line, and what is wrong with their form |
//! | `spelled` | whether a cell is a value of its attribute, or a label of its hierarchy |
//! | `told` | what a lineage says of the lines |
//! | `counts` | crowds, by class, batch and sensitive value |
//! | `shared` | attributes that stand in several groups |
//! | `finding` | what the configuration asks for, what is broken, and where |

mod counts;
mod finding;
mod lines;
mod shared;
mod spelled;
mod told;

pub use finding::{Broken, GroupCount, Recount};

use super::error::EvaluationError;
use crate::anonymity::planner::GroupShape;
use crate::config::{Config, Rows};
use crate::records::schema::Schema;
use finding::{Asked, Findings};
use std::path::Path;

/// Recounts the release at `path`, written as the sink of `config` writes. With a `lineage` people are counted, and batches.
///
/// # Errors
/// When a file cannot be read, or the lineage is not of this release. A broken promise is no error: it is in the [`Recount`].
pub fn recount(
    config: &Config,
    schema: &Schema,
    shapes: &[GroupShape],
    path: &Path,
    lineage: Option<&Path>,
) -> Result<Recount, EvaluationError> {
    let mut findings = Findings::default();
    let mut spelling = spelled::Spelling::new(schema);
    let groups = if config.sink.rows == Rows::Joined {
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
        counts::sorted(&groups, told, &mut findings);
    }
    Ok(Recount {
        counted: if told.is_some() && asked.people { "people" } else { "lines" },
        crowd: asked.crowd,
        lines: groups.iter().map(|group| group.lines.len() as u64).sum(),
        groups: counted,
        kept: findings.is_empty(),
        broken_in_all: findings.in_all(),
        broken: findings.into_first(),
        not_checked: not_checked(config, told.is_some(), asked.people),
    })
}

/// What bytes, or bytes and a lineage, cannot show.
fn not_checked(config: &Config, told: bool, people: bool) -> Vec<&'static str> {
    let mut open = vec![
        "exclusion and hidden sensitive values: they need the records before",
        "counting over generalized labels: single cells are counted",
    ];
    if !told {
        open.push("crowds inside batches (they are counted over the whole release), lines of one person, and forced pairs: they need --lineage");
        if config.sink.rows == Rows::Joined {
            open.push("rows in which every cell is missing: without --lineage they belong to no group");
        }
        if people {
            open.push("people: lines are counted, of which one person may have several");
        }
    }
    if !config.privacy.model.is_empty() {
        open.push("the privacy models beside k");
    }
    open
}

#[cfg(test)]
mod round_trip_tests;
#[cfg(test)]
mod tests;
