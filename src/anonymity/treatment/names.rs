//! What names the groups and attributes of a plan: line layouts, and the digests that class keys begin with.

use crate::anonymity::plan::{Group, Plan};
use std::collections::BTreeSet;
use throng_core::values::digest::DigestKey;
use throng_formats::{LineFormat, LineLayout};

/// What never changes between two batches of the same plan: layouts and the digests that name the groups.
#[derive(Default)]
pub struct GroupNames {
    /// How lines are written, by group.
    pub layouts: Vec<LineLayout>,
    /// Digest of the quasi attribute set, by group.
    pub bases: Vec<u128>,
    /// Digest of "this attribute, beside a class", by attribute.
    pub sensitive_bases: Vec<u128>,
    /// Key of the order in which subjects cover sensitive cells that hide.
    pub covers: DigestKey,
}

/// The layouts of `plan`'s groups as rows that have every attribute of all groups, in the order of the schema.
pub fn joined_layouts(plan: &Plan, attribute_names: &[&str], format: &LineFormat) -> Vec<LineLayout> {
    let columns: BTreeSet<usize> = plan.groups.iter().flat_map(Group::attributes).collect();
    let names: Vec<&str> = columns.iter().map(|&a| attribute_names[a]).collect();
    let place = |(place, attribute): (usize, &usize), own: &[usize]| own.contains(attribute).then_some(place);
    let layout = |group: &Group| {
        let own = group.attributes();
        let places: Vec<usize> = columns.iter().enumerate().filter_map(|column| place(column, &own)).collect();
        LineLayout::joined(format, &names, &places)
    };
    plan.groups.iter().map(layout).collect()
}

fn name_set(attributes: &[usize], attribute_names: &[&str]) -> String {
    let by_name: BTreeSet<&str> = attributes.iter().map(|&a| attribute_names[a]).collect();
    by_name.into_iter().map(|n| format!("{}:{n}", n.len())).collect()
}

/// The digest that the classes of a group begin with.
pub fn class_base(group: &Group, attribute_names: &[&str], digest: impl Fn(&str) -> u128) -> u128 {
    digest(&format!("class of {}", name_set(&group.quasi, attribute_names)))
}

/// The name of a group among what waits and what has been said: it stays the same as long as its attributes do.
pub fn turn_name(group: &Group, attribute_names: &[&str], digest: impl Fn(&str) -> u128) -> u128 {
    let names = group.attributes().into_iter().map(|a| attribute_names[a]);
    digest(&format!("lines of {}", names.map(|n| format!("{}:{n}", n.len())).collect::<String>()))
}

/// Names the groups of `plan` for the treatment: `digest` is a keyed digest of a text.
pub fn group_names(
    plan: &Plan,
    attribute_names: &[&str],
    format: &LineFormat,
    digest: impl Fn(&str) -> u128,
) -> GroupNames {
    GroupNames {
        layouts: plan
            .groups
            .iter()
            .map(|g| {
                let names: Vec<&str> = g.attributes().iter().map(|&a| attribute_names[a]).collect();
                LineLayout::new(format, &names)
            })
            .collect(),
        bases: plan.groups.iter().map(|g| class_base(g, attribute_names, &digest)).collect(),
        sensitive_bases: attribute_names.iter().map(|n| digest(&format!("beside a class {n}"))).collect(),
        covers: DigestKey::of_halves(digest("covers, one half"), digest("covers, the other half")),
    }
}
