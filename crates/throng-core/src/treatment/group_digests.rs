//! Line layouts of a plan's groups, and the digests that identify groups and attributes in class keys.

use crate::line_encoder::LineLayout;
use crate::plan::{Plan, PlanGroup};
use crate::values::digest::DigestKey;
use std::collections::BTreeSet;

/// Layouts and digests that are constant for all batches of one plan.
#[derive(Default)]
pub struct GroupNames {
    /// Line layout of each group.
    pub layouts: Vec<LineLayout>,
    /// Digest of the set of quasi-identifiers of each group.
    pub bases: Vec<u128>,
    /// Digest of each attribute in its role as sensitive attribute.
    pub sensitive_bases: Vec<u128>,
    /// Key of the order in which subjects cover hidden sensitive cells.
    pub cover_key: DigestKey,
}

/// Returns the layouts of `plan`'s groups for rows with all attributes of all groups, in the order of the schema.
/// `joined_layout` makes the layout for column names and the columns of one group, for example
/// `LineFormat::joined_layout` of throng-formats.
pub fn joined_layouts(
    plan: &Plan,
    attribute_names: &[&str],
    joined_layout: impl Fn(&[&str], &[usize]) -> LineLayout,
) -> Vec<LineLayout> {
    let columns: BTreeSet<usize> = plan.groups.iter().flat_map(PlanGroup::attributes).collect();
    let names: Vec<&str> = columns.iter().map(|&a| attribute_names[a]).collect();
    let place = |(place, attribute): (usize, &usize), own: &[usize]| own.contains(attribute).then_some(place);
    let layout = |group: &PlanGroup| {
        let own = group.attributes();
        let places: Vec<usize> = columns.iter().enumerate().filter_map(|column| place(column, &own)).collect();
        joined_layout(&names, &places)
    };
    plan.groups.iter().map(layout).collect()
}

fn attribute_set_name(attributes: &[usize], attribute_names: &[&str]) -> String {
    let by_name: BTreeSet<&str> = attributes.iter().map(|&a| attribute_names[a]).collect();
    by_name.into_iter().map(|n| format!("{}:{n}", n.len())).collect()
}

/// Returns the digest from which the class keys of a group start.
pub fn class_key_base(group: &PlanGroup, attribute_names: &[&str], digest: impl Fn(&str) -> u128) -> u128 {
    digest(&format!("class of {}", attribute_set_name(&group.quasi, attribute_names)))
}

/// Returns the digest that identifies a group among held records and in the release log. It depends only on the
/// attributes.
pub fn group_identity(group: &PlanGroup, attribute_names: &[&str], digest: impl Fn(&str) -> u128) -> u128 {
    let names = group.attributes().into_iter().map(|a| attribute_names[a]);
    digest(&format!("lines of {}", names.map(|n| format!("{}:{n}", n.len())).collect::<String>()))
}

/// Returns the layouts and digests of the groups of `plan`. `layout` makes the layout for attribute names, for example
/// `LineFormat::layout` of throng-formats; `digest` is a keyed digest of a text.
pub fn group_names(
    plan: &Plan,
    attribute_names: &[&str],
    layout: impl Fn(&[&str]) -> LineLayout,
    digest: impl Fn(&str) -> u128,
) -> GroupNames {
    GroupNames {
        layouts: plan
            .groups
            .iter()
            .map(|g| {
                let names: Vec<&str> = g.attributes().iter().map(|&a| attribute_names[a]).collect();
                layout(&names)
            })
            .collect(),
        bases: plan.groups.iter().map(|g| class_key_base(g, attribute_names, &digest)).collect(),
        sensitive_bases: attribute_names.iter().map(|n| digest(&format!("beside a class {n}"))).collect(),
        cover_key: DigestKey::from_halves(digest("covers, one half"), digest("covers, the other half")),
    }
}
