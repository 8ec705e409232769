//! Groups that the planner chooses: `plan.groups = "price"`.

use super::sampling::{Read, read};
use super::shapes::MAX_GUARDED;
use crate::anonymity::planner::dependence::Dependence;
use crate::anonymity::planner::grouping::{GrownGroup, by_price};
use crate::anonymity::planner::pace::paces;
use crate::anonymity::planner::sample::Sample;
use crate::anonymity::planner::{GroupShape, InBatch, LadderLimits, PlannerSettings};
use crate::config::{Config, Group, Grouping, Plan, Problem, SourceKind};
use crate::records::schema::{Changes, Role, Schema};
use crate::records::window::Window;
use std::path::Path;

/// Records that groups are grown from at most: the first of the file.
const READ: usize = 50_000;
/// Of them, those that candidates are tried on.
const SAMPLED: usize = 3_000;

/// Groups, and what speaks for each.
pub struct Grown {
    /// The groups, as a configuration would name them.
    pub shapes: Vec<GroupShape>,
    /// By group, its quasi attributes with their expected loss and the bits that they say of each other; nothing for a group
    /// without quasi attributes.
    pub why: Vec<Option<GrownGroup>>,
    /// Records that they were grown from.
    pub records: usize,
}

/// A configuration whose groups are settled: grown, where it leaves them to the planner, and why; else as they are given.
///
/// # Errors
/// Where there is no file to grow them from, or nothing can be learned of it; and where the grown groups cannot leave as the configuration says.
pub fn settle(config: Config, schema: &Schema, file: &str) -> Result<(Config, Option<Grown>), Vec<Problem>> {
    if config.plan.groups == Grouping::Given {
        return Ok((config, None));
    }
    let grown = grow(&config, schema, file)?;
    let group = |shape: &GroupShape| {
        let attributes = [&shape.quasi[..], &shape.sensitive, &shape.insensitive].concat();
        let attributes = attributes.into_iter().map(|a| schema.attributes[a].name.clone()).collect();
        Group { name: shape.name.clone(), attributes }
    };
    let groups = grown.shapes.iter().map(group).collect();
    // They are given from here on: what is asked for has been done.
    let plan = Plan { groups: Grouping::Given, ..config.plan.clone() };
    Ok((Config { plan, ..config }.with_groups(groups, file)?, Some(grown)))
}

/// Grows the groups of a configuration from `plan.prime`, or without it from the source file. The same records give the same
/// groups.
///
/// # Errors
/// Where there is no such file, or nothing can be learned of it.
fn grow(config: &Config, schema: &Schema, file: &str) -> Result<Grown, Vec<Problem>> {
    let problem = |message: String, remedy: &str| {
        let key = "plan.groups".to_owned();
        vec![Problem { file: file.to_owned(), key, message, remedy: remedy.to_owned() }]
    };
    let path = sample_file(config).ok_or_else(|| {
        let message = "groups are grown from records, and there is no file of them before the stream begins";
        problem(
            message.to_owned(),
            "name a file of typical records in plan.prime, or give [[group]]s and plan.groups = \"given\"",
        )
    })?;
    let unreadable =
        |why: String| problem(format!("{}: {why}", path.display()), "correct the file, or name another in plan.prime");
    let read = read(config, schema, path, READ, false).map_err(|error| unreadable(error.to_string()))?;
    if let Some(&absent) = read.absent.first() {
        return Err(unreadable(format!("no column for attribute {:?}", schema.attributes[absent].name)));
    }
    if read.batch.rows() == 0 {
        return Err(unreadable("no record of it can be read".to_owned()));
    }
    Ok(from_records(config, schema, &read))
}

fn sample_file(config: &Config) -> Option<&Path> {
    let source = (config.source.kind == SourceKind::File).then_some(config.source.path.as_path());
    config.plan.prime.as_deref().or(source.filter(|path| path.is_file()))
}

fn from_records(config: &Config, schema: &Schema, read: &Read) -> Grown {
    let (k, width) = (config.privacy.crowd(), schema.attributes.len());
    let mut sample = Sample::new(width, SAMPLED, READ);
    sample.add(&read.batch, 0);
    let settings = PlannerSettings {
        k,
        ladder: LadderLimits { complete: config.plan.complete_lattice, chosen: config.plan.ladder_nodes },
        identifier_cardinality: config.plan.identifier_cardinality,
        window_records: config.plan.window_records,
        batch: Some(InBatch { crowd: config.privacy.crowd_in_batch(), records: config.batch.max_records })
            .filter(|batch| batch.crowd > 0),
    };
    let of = |wanted: &dyn Fn(Role) -> bool| -> Vec<usize> {
        schema.releasable().filter(|&a| wanted(schema.attributes[a].role)).collect()
    };
    let quasi = of(&Role::is_quasi);
    let beside = of(&|role| !role.is_quasi());
    let all = [&quasi[..], &beside].concat();
    let still = still(config, schema, read, &all);
    let is_static = |attribute: usize| still.contains(&attribute);
    let dependence = Dependence::of(&all, &sample, &read.books);
    let groups = by_price(&quasi, &is_static, &dependence, &sample, &read.books, &settings, config.plan.price);
    let mut shapes: Vec<GroupShape> = groups.iter().map(|group| shape(group.attributes.clone())).collect();
    let mut why: Vec<Option<GrownGroup>> = groups.into_iter().map(Some).collect();
    for attribute in beside {
        let sensitive = schema.attributes[attribute].role == Role::Sensitive;
        let fits = |shape: &&mut GroupShape| {
            let alike = shape.quasi.first().is_some_and(|&first| is_static(first) == is_static(attribute));
            alike && shape.quasi.len() + shape.sensitive.len() < MAX_GUARDED
        };
        let says = |shape: &GroupShape| dependence.said_of(attribute, &shape.quasi);
        // Of equals the first.
        let nearest =
            shapes.iter_mut().filter(fits).reduce(|best, next| if says(next) > says(best) { next } else { best });
        match nearest {
            Some(shape) if sensitive => shape.sensitive.push(attribute),
            Some(shape) => shape.insensitive.push(attribute),
            None => {
                let own = vec![attribute];
                shapes.push(if sensitive {
                    GroupShape { sensitive: own, ..shape(Vec::new()) }
                } else {
                    GroupShape { insensitive: own, ..shape(Vec::new()) }
                });
                why.push(None);
            }
        }
    }
    for (number, shape) in shapes.iter_mut().enumerate() {
        shape.sensitive.sort_unstable();
        shape.insensitive.sort_unstable();
        shape.name = name(schema, shape, number);
    }
    Grown { shapes, why, records: read.batch.rows() }
}

fn shape(quasi: Vec<usize>) -> GroupShape {
    GroupShape { name: String::new(), quasi, sensitive: Vec::new(), insensitive: Vec::new() }
}

/// The attributes that do not change within a person, where that matters: none where nothing waits for a delay.
fn still(config: &Config, schema: &Schema, read: &Read, attributes: &[usize]) -> Vec<usize> {
    if schema.subject.is_none() || config.privacy.longest_delay().is_zero() {
        return Vec::new();
    }
    let mut window = Window::new(schema.attributes.len(), read.batch.rows().max(1));
    window.push(&read.batch);
    let paces = paces(schema, attributes, &window, config.privacy.crowd(), config.privacy.colluders);
    paces.into_iter().filter(|pace| pace.changes != Changes::Always).map(|pace| pace.attribute).collect()
}

/// A name for files and labels: that of the group's first attribute, where it is plain.
fn name(schema: &Schema, shape: &GroupShape, number: usize) -> String {
    let first = shape.quasi.iter().chain(&shape.sensitive).chain(&shape.insensitive).next();
    let name = first.map_or("", |&a| schema.attributes[a].name.as_str());
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(plain) { name.to_owned() } else { format!("group-{}", number + 1) }
}
