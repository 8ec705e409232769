//! Groups that the planner chooses: every `plan.groups` but `given`.

use super::chosen::{self, Grown, Unchosen};
use super::sampling::read;
use crate::anonymity::planner::GroupShape;
use crate::anonymity::planner::wishes::Wish;
use crate::config::{Config, Group, Grouping, Plan, Problem, SourceKind};
use crate::records::schema::Schema;
use std::path::Path;

/// Records that groups are chosen from at most: the first of the file.
const READ: usize = 50_000;

/// A configuration whose groups are settled: chosen, where it leaves them to the planner, and why; else as they are given.
///
/// # Errors
/// Where there is no file to choose them from, or nothing can be learned of it; where a wish cannot be understood; and where the chosen
/// groups cannot leave as the configuration says.
pub fn settle(config: Config, schema: &Schema, file: &str) -> Result<(Config, Option<Grown>), Vec<Problem>> {
    if config.plan.groups == Grouping::Given {
        return Ok((config, None));
    }
    let wishes = wishes(&config, schema, file)?;
    let grown = grow(&config, schema, file, wishes)?;
    let group = |shape: &GroupShape| {
        let attributes = [&shape.quasi[..], &shape.sensitive, &shape.insensitive].concat();
        let attributes = attributes.into_iter().map(|a| schema.attributes[a].name.clone()).collect();
        Group { name: shape.name.clone(), attributes }
    };
    let groups = grown.shapes.iter().map(group).collect();
    // They are given from here on: what is asked for has been done.
    let plan = Plan { groups: Grouping::Given, ..config.plan.clone() };
    Ok((Config { plan, keep: Vec::new(), ..config }.with_groups(groups, file)?, Some(grown)))
}

/// The wishes of a configuration in terms of a schema, the weightiest first.
fn wishes(config: &Config, schema: &Schema, file: &str) -> Result<Vec<Wish>, Vec<Problem>> {
    let (mut wishes, mut problems) = (Vec::new(), Vec::new());
    for (index, keep) in config.keep.iter().enumerate() {
        let key = format!("keep[{index}].attributes");
        let mut attributes = Vec::new();
        for name in &keep.attributes {
            let (message, remedy) = match schema.position(name) {
                None => (format!("the schema has no attribute {name:?}"), "correct the name, or add it to the schema"),
                Some(a) if !schema.attributes[a].role.is_releasable() => {
                    let role = schema.attributes[a].role.name();
                    (format!("{name:?} has the role {role}, which never leaves"), "take it out of the wish")
                }
                Some(a) => {
                    attributes.push(a);
                    continue;
                }
            };
            problems.push(Problem { file: file.to_owned(), key: key.clone(), message, remedy: remedy.to_owned() });
        }
        attributes.sort_unstable();
        wishes.push(Wish { attributes, weight: keep.weight });
    }
    wishes.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    if problems.is_empty() { Ok(wishes) } else { Err(problems) }
}

/// Chooses the groups of a configuration from `plan.prime`, or without it from the source file. The same records give the same
/// groups.
fn grow(config: &Config, schema: &Schema, file: &str, wishes: Vec<Wish>) -> Result<Grown, Vec<Problem>> {
    let problem = |key: &str, message: String, remedy: &str| {
        vec![Problem { file: file.to_owned(), key: key.to_owned(), message, remedy: remedy.to_owned() }]
    };
    let path = sample_file(config).ok_or_else(|| {
        let message = "groups are chosen from records, and there is no file of them before the stream begins";
        let remedy = "name a file of typical records in plan.prime, or give [[group]]s and plan.groups = \"given\"";
        problem("plan.groups", message.to_owned(), remedy)
    })?;
    let unreadable = |why: String| {
        let remedy = "correct the file, or name another in plan.prime";
        problem("plan.groups", format!("{}: {why}", path.display()), remedy)
    };
    if path.exists() && !path.is_file() {
        return Err(unreadable("it is no regular file".to_owned()));
    }
    let read = read(config, schema, path, READ, false).map_err(|error| unreadable(error.to_string()))?;
    if let Some(&absent) = read.absent.first() {
        return Err(unreadable(format!("no column for attribute {:?}", schema.attributes[absent].name)));
    }
    if read.batch.rows() == 0 {
        return Err(unreadable("no record of it can be read".to_owned()));
    }
    chosen::from_records(config, schema, &read, wishes).map_err(|unchosen| {
        let remedy = match unchosen {
            Unchosen::Late(_) | Unchosen::TooMany { .. } | Unchosen::Table(_) => "set plan.groups = \"price\"",
        };
        problem("plan.groups", unchosen.to_string(), remedy)
    })
}

fn sample_file(config: &Config) -> Option<&Path> {
    let source = (config.source.kind == SourceKind::File).then_some(config.source.path.as_path());
    config.plan.prime.as_deref().or(source.filter(|path| path.is_file()))
}
