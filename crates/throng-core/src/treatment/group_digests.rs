//! Line layouts and digests of a plan's groups.

use crate::line_encoder::LineLayout;
use crate::plan::{Plan, PlanGroup};
use crate::values::digest::DigestKey;
use std::collections::BTreeSet;

/// Layouts and digests, constant for one plan.
#[derive(Default)]
pub struct GroupNames {
    /// Line layout of each group.
    pub layouts: Vec<LineLayout>,
    /// Digest of the quasi-identifiers, by group.
    pub bases: Vec<u128>,
    /// Digest of each sensitive attribute.
    pub sensitive_bases: Vec<u128>,
    /// Key of the order in which subjects cover.
    pub cover_key: DigestKey,
}

/// Returns the layouts of `plan`'s groups in rows with all attributes, in the order of the schema.
///
/// `joined_layout` is for example `LineFormat::joined_layout` of throng-formats.
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

/// Returns the start of a group's class keys.
pub fn class_key_base(group: &PlanGroup, attribute_names: &[&str], digest: impl Fn(&str) -> u128) -> u128 {
    digest(&format!("class of {}", attribute_set_name(&group.quasi, attribute_names)))
}

/// Returns the digest of a group's attributes for held records and the release log.
pub fn group_identity(group: &PlanGroup, attribute_names: &[&str], digest: impl Fn(&str) -> u128) -> u128 {
    let names = group.attributes().into_iter().map(|a| attribute_names[a]);
    digest(&format!("lines of {}", names.map(|n| format!("{}:{n}", n.len())).collect::<String>()))
}

/// Returns the layouts and digests of `plan`'s groups; `digest` is keyed.
///
/// `layout` is for example `LineFormat::layout` of throng-formats.
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
