//! Groups of a configuration.

use crate::config::{Config, ConfigProblem, RecodingMode, SinkKind};
use throng_core::plan::GroupShape;
use throng_core::values::schema::{Attribute, ChangeFrequency, Role, Schema};

/// The counting guard examines 2^12 combinations.
pub(super) const MAX_GUARDED: usize = 12;

/// Reason for which ranges would narrow down a subject over batches. A constant value lies in the intersection of the
/// subject's ranges. Therefore one line per subject and window, or no constant value.
fn narrowing_over_batches(config: &Config, schema: &Schema, shape: &GroupShape) -> Option<String> {
    let mut said = shape.quasi.iter().map(|&a| &schema.attributes[a]);
    let changes = |attribute: &std::sync::Arc<Attribute>| attribute.changes == Some(ChangeFrequency::Always);
    if schema.subject.is_none() || said.clone().all(changes) {
        return None;
    }
    let first = said.find(|attribute| !changes(attribute)).map_or("", |attribute| attribute.name.as_str());
    let same = format!("the value of {first:?} is not declared as changing, and overlapping ranges narrow it down");
    if config.privacy.longest_delay().is_zero() {
        return Some(format!("{same}: with privacy.max_delay = \"0s\" a person has a line in every batch"));
    }
    let still =
        |a: &usize| matches!(schema.attributes[*a].changes, Some(ChangeFrequency::Never | ChangeFrequency::Slowly));
    let sensitive = |a: &usize| schema.attributes[*a].changes != Some(ChangeFrequency::Always);
    (!(shape.quasi.iter().all(still) && shape.sensitive.iter().all(sensitive)))
        .then(|| format!("{same}: other attributes of the group change, so that a person has a line in every batch"))
}

fn group_shape(schema: &Schema, name: &str, attributes: &[usize], ranges: bool) -> GroupShape {
    let of = |wanted: fn(Role) -> bool| -> Vec<usize> {
        let mut found: Vec<usize> = attributes.iter().copied().filter(|&a| wanted(schema.attributes[a].role)).collect();
        found.sort_unstable();
        found
    };
    GroupShape {
        name: name.to_owned(),
        quasi: of(Role::is_quasi),
        sensitive: of(|r| r == Role::Sensitive),
        insensitive: of(|r| r == Role::Insensitive),
        ranges,
    }
}

/// Reports groups without their own quasi attribute, and groups too wide for the counting guard.
fn check_group_sizes(
    config: &Config,
    schema: &Schema,
    shapes: &[GroupShape],
    problem: &mut impl FnMut(String, String, &str),
) {
    for (index, shape) in shapes.iter().enumerate() {
        let shared: Vec<usize> = config.plan.shared.iter().filter_map(|name| schema.position(name)).collect();
        if shape.quasi.iter().all(|a| shared.contains(a)) && shape.quasi.iter().any(|a| shared.contains(a)) {
            problem(
                format!("group[{index}].attributes"),
                format!("group {:?} has no quasi attribute except the shared ones", shape.name),
                "add one, or remove the attributes of plan.shared from the group",
            );
        }
        let width = shape.quasi.len() + shape.sensitive.len();
        if shapes.len() > 1 && width > MAX_GUARDED {
            problem(
                format!("group[{index}].attributes"),
                format!(
                    "group {:?} has {width} attributes; with several groups at most {MAX_GUARDED} are allowed, because the counting guard between groups checks all their combinations",
                    shape.name
                ),
                "split it",
            );
        }
    }
}

/// Returns the configured groups as schema positions. Without groups, all releasable attributes form one fragment.
///
/// # Errors
/// Fails for attributes that are unknown, not releasable, or in no group.
pub fn group_shapes(config: &Config, schema: &Schema, file: &str) -> Result<Vec<GroupShape>, Vec<ConfigProblem>> {
    let shape = |name: &str, attributes: &[usize], ranges: bool| group_shape(schema, name, attributes, ranges);
    let releasable: Vec<usize> = schema.releasable().collect();
    if releasable.is_empty() && config.sink.kind != SinkKind::None {
        let message = "no attribute is released: all attributes of the schema are identifiers or the subject";
        let remedy = "give at least one attribute the role `quasi`, or set sink.kind = \"none\" to measure only";
        return Err(vec![ConfigProblem::new(file, "schema.file", message, remedy)]);
    }
    if config.group.is_empty() {
        return Ok(vec![shape("all", &releasable, false)]);
    }
    let mut problems = Vec::new();
    let mut problem = |key: String, message: String, remedy: &str| {
        problems.push(ConfigProblem { file: file.to_owned(), key, message, remedy: remedy.to_owned() });
    };
    let mut shapes = Vec::new();
    let mut grouped = vec![false; schema.attributes.len()];
    for (index, group) in config.group.iter().enumerate() {
        let mut attributes = Vec::new();
        for name in &group.attributes {
            let key = format!("group[{index}].attributes");
            match schema.position(name) {
                None => problem(
                    key,
                    format!("the schema has no attribute {name:?}"),
                    "correct the name, or add it to the schema",
                ),
                Some(a) if !schema.attributes[a].role.is_releasable() => problem(
                    key,
                    format!("{name:?} has the role {}, which is never released", schema.attributes[a].role.name()),
                    "remove it from the group",
                ),
                Some(a) => {
                    grouped[a] = true;
                    attributes.push(a);
                }
            }
        }
        let shape = shape(&group.name, &attributes, group.treatment == RecodingMode::Ranges);
        if shape.quasi.is_empty() && shape.sensitive.is_empty() && !attributes.is_empty() {
            problem(
                format!("group[{index}]"),
                format!("group {:?} has no attribute to form classes with", group.name),
                "move its attributes into a group with quasi attributes",
            );
        }
        if shape.ranges
            && let Some(message) = narrowing_over_batches(config, schema, &shape)
        {
            problem(
                format!("group[{index}].treatment"),
                message,
                "declare how its attributes change, remove those that do not from the group (role `identifier`), or set \"levels\"",
            );
        }
        shapes.push(shape);
    }
    check_group_sizes(config, schema, &shapes, &mut problem);
    for &a in releasable.iter().filter(|a| !grouped[**a]) {
        problem(
            "group".to_owned(),
            format!("attribute {:?} is in no group, so it would silently be withheld", schema.attributes[a].name),
            "add it to a group, or give it the role `identifier` in the schema",
        );
    }
    if problems.is_empty() { Ok(shapes) } else { Err(problems) }
}
