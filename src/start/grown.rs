//! What a start settles before anything is built: treatments by rules, and groups that the planner chooses.

use super::chosen::{self, Aside, Grown, Unchosen};
use super::composition::{Treated, compartmented, compose, composed, treatments};
use super::sampling::typical;
use crate::anonymity::planner::GroupShape;
use crate::anonymity::planner::wishes::Wish;
use crate::config::{Config, Group, Grouping, Plan, Problem};
use crate::records::schema::{Changes, Schema};

/// Records that groups are chosen from at most: the first of the file.
const READ: usize = 50_000;

/// What a start has settled that a configuration leaves open.
#[derive(Default)]
pub struct Settled {
    /// What the rules of `[treatment]` have come to; nothing where there are none.
    pub treated: Vec<Treated>,
    /// Why these groups, where the planner chose them.
    pub grown: Option<Grown>,
}

/// A configuration whose treatments and groups are settled: by its rules, and chosen where it leaves them to the planner; else as they are
/// given.
///
/// # Errors
/// Where there is no file to choose them from, or nothing can be learned of it; where a rule or a wish cannot be understood; and where the
/// chosen groups cannot leave as the configuration says.
pub fn settle(config: Config, schema: &Schema, file: &str) -> Result<(Config, Settled), Vec<Problem>> {
    let shared = shared(&config, schema, file)?;
    let treated = compose(&config, schema, file)?;
    let apart = compartmented(&treated);
    let schema = &schema.with_treatments(&treatments(&treated));
    let config = composed(config, schema, &treated);
    if config.plan.groups == Grouping::Given && apart.is_empty() {
        return Ok((config, Settled { treated, grown: None }));
    }
    let wishes = wishes(&config, schema, file)?;
    let aside = Aside { apart: &apart, shared: &shared };
    let grown = grow(&config, schema, file, wishes, aside)?;
    let group = |shape: &GroupShape| {
        let attributes = [&shape.quasi[..], &shape.sensitive, &shape.insensitive].concat();
        let attributes = attributes.into_iter().map(|a| schema.attributes[a].name.clone()).collect();
        Group { name: shape.name.clone(), attributes }
    };
    let groups = grown.shapes.iter().map(group).collect();
    // They are given from here on: what is asked for has been done.
    let plan = Plan { groups: Grouping::Given, ..config.plan.clone() };
    let config = Config { plan, keep: Vec::new(), ..config }.with_groups(groups, file)?;
    Ok((config, Settled { treated, grown: Some(grown) }))
}

/// The attributes of `plan.shared` in terms of a schema, ascending.
fn shared(config: &Config, schema: &Schema, file: &str) -> Result<Vec<usize>, Vec<Problem>> {
    let (mut shared, mut problems) = (Vec::new(), Vec::new());
    for name in &config.plan.shared {
        let (message, remedy) = match schema.position(name).map(|a| (a, &schema.attributes[a])) {
            None => (format!("the schema has no attribute {name:?}"), "correct the name, or add it to the schema"),
            Some((_, attribute)) if !attribute.role.is_quasi() => (
                format!("{name:?} has the role {}: only quasi attributes are shared", attribute.role.name()),
                "take it out of plan.shared",
            ),
            Some((_, attribute)) if attribute.changes != Some(Changes::Always) => (
                format!(
                    "{name:?} is not said to change: beside everything that changes it would be said with every record"
                ),
                "set changes = \"always\" in the schema if it does, or take it out of plan.shared",
            ),
            Some((a, _)) => {
                shared.push(a);
                continue;
            }
        };
        let (file, key) = (file.to_owned(), "plan.shared".to_owned());
        problems.push(Problem { file, key, message, remedy: remedy.to_owned() });
    }
    shared.sort_unstable();
    if problems.is_empty() { Ok(shared) } else { Err(problems) }
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
fn grow(
    config: &Config,
    schema: &Schema,
    file: &str,
    wishes: Vec<Wish>,
    aside: Aside<'_>,
) -> Result<Grown, Vec<Problem>> {
    let apart = aside.apart;
    let key = (file, if apart.is_empty() { "plan.groups" } else { "treatment" });
    let wanted = ("groups are chosen", "give [[group]]s and plan.groups = \"given\"");
    let read = typical(config, schema, READ, key, wanted)?;
    chosen::from_records(config, schema, &read, wishes, aside).map_err(|unchosen| {
        let remedy = match unchosen {
            Unchosen::Unshared => {
                "remove plan.shared, or say in the schema which attributes change (changes = \"always\")"
            }
            Unchosen::Late(_) | Unchosen::TooMany { .. } | Unchosen::Table(_) if apart.is_empty() => {
                "set plan.groups = \"price\""
            }
            Unchosen::Late(_) | Unchosen::TooMany { .. } | Unchosen::Table(_) => {
                "name other treatments than \"compartment\" in treatment.rule, and fewer attributes"
            }
        };
        let (file, key) = (key.0.to_owned(), key.1.to_owned());
        vec![Problem { file, key, message: unchosen.to_string(), remedy: remedy.to_owned() }]
    })
}
