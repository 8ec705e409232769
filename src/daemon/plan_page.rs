//! A plan as the status page and `GET /plan` show it: names and levels, no value of the data.

use crate::anonymity::plan::Plan;
use serde_json::{Value, json};

/// The plan as JSON: version, rows it was made from, identifiers to drop, and each group with the ends of its ladder.
#[must_use]
pub fn summary(plan: &Plan, attribute_names: &[&str]) -> Value {
    let names = |attributes: &[usize]| attributes.iter().map(|&a| attribute_names[a]).collect::<Vec<_>>();
    json!({
        "version": plan.version,
        "rows": plan.rows,
        "removed": names(&plan.identifiers),
        "groups": plan.groups.iter().map(|group| json!({
            "name": group.name,
            "attributes": names(&group.attributes()),
            "quasi": names(&group.quasi),
            "sensitive": names(&group.sensitive),
            "insensitive": names(&group.insensitive),
            "nodes": group.ladder.len(),
            "finest": group.ladder.first().map(|n| json!({"levels": n.levels, "loss": n.loss})),
            "coarsest": group.ladder.last().map(|n| json!({"levels": n.levels, "loss": n.loss})),
        })).collect::<Vec<_>>(),
    })
}
