//! A plan as the status page and `GET /plan` show it: names and levels, no value of the data.

use crate::anonymity::plan::Plan;
use crate::anonymity::plan::evidence::Evidence;
use serde_json::{Value, json};

/// The plan as JSON: version, rows it was made from, identifiers to drop, each group with the ends of its ladder, and the
/// evidence that has been gathered, for this plan or one before it.
#[must_use]
pub fn summary(plan: &Plan, evidence: Option<&Evidence>, attribute_names: &[&str]) -> Value {
    let names = |attributes: &[usize]| attributes.iter().map(|&a| attribute_names[a]).collect::<Vec<_>>();
    json!({
        "version": plan.version,
        "rows": plan.rows,
        "primed": plan.primed,
        "identifiers": names(&plan.identifiers),
        "groups": plan.groups.iter().map(|group| json!({
            "name": group.name,
            "attributes": names(&group.attributes()),
            "quasi": names(&group.quasi),
            "sensitive": names(&group.sensitive),
            "insensitive": names(&group.insensitive),
            "static": plan.is_static(group),
            "nodes": group.ladder.len(),
            "finest": group.ladder.first().map(|n| json!({"levels": n.levels, "loss": n.loss})),
            "coarsest": group.ladder.last().map(|n| json!({"levels": n.levels, "loss": n.loss})),
        })).collect::<Vec<_>>(),
        "changes": plan.paces.iter().map(|pace| json!({
            "attribute": attribute_names[pace.attribute],
            "changes": pace.changes.name(),
            "declared": pace.declared,
            "share": pace.share.map(rounded),
        })).collect::<Vec<_>>(),
        "evidence": evidence.map(|evidence| evidence_of(evidence, &names)),
    })
}

fn evidence_of<'n>(evidence: &Evidence, names: &dyn Fn(&[usize]) -> Vec<&'n str>) -> Value {
    let sets = |sets: &[Vec<usize>]| sets.iter().map(|set| names(set)).collect::<Vec<_>>();
    let triage = evidence.triage.as_ref().map(|triage| {
        json!({
            "theta": triage.theta,
            "sizes": triage.sizes.iter().map(|size| json!({
                "size": size.size,
                "sets": size.sets,
                "suspects": size.suspects,
                "qids": size.qids,
                "precision": size.precision,
                "recall": size.recall,
                "evaluations_to_nine_tenths": size.nine_tenths.map(|[deviation, inference, cardinality, chance]| json!({
                    "deviation": deviation, "inference": inference, "cardinality": cardinality, "chance": chance,
                })),
            })).collect::<Vec<_>>(),
        })
    });
    let aggregation = evidence.aggregation.map(|a| {
        json!({
            "nodes": a.nodes, "edges": a.edges, "coarse_nodes": a.coarse_nodes, "coarse_edges": a.coarse_edges,
            "implied_attributes": a.implied_attributes,
        })
    });
    json!({
        "plan": evidence.plan,
        "primed": evidence.primed,
        "k": evidence.k,
        "records": evidence.records,
        "support": evidence.support,
        "attributes": names(&evidence.attributes),
        "complete": evidence.complete,
        "qids_by_size": evidence.qids_by_size,
        "minimal_qids": sets(&evidence.minimal_qids),
        "maximal_non_qids": evidence.maximal_non_qids,
        "largest_non_qids": sets(&evidence.largest_non_qids),
        "evaluated": evidence.evaluated,
        "pruned": evidence.pruned,
        "triage": triage,
        "inferences": evidence.inferences.iter().map(|i| json!({
            "from": names(&[i.from])[0], "to": names(&[i.to])[0], "mean": i.mean,
        })).collect::<Vec<_>>(),
        "strongest": evidence.strongest.iter().map(|i| json!({
            "from": names(&[i.from])[0], "to": names(&[i.to])[0], "records": i.records, "support": i.support,
            "probability": i.probability,
        })).collect::<Vec<_>>(),
        "aggregation": aggregation,
        "expected_loss": evidence.expected_loss,
        "computed_by": evidence.computed_by,
        "seconds": evidence.seconds,
    })
}

/// Two significant digits: a figure of the window that tells of no single record.
fn rounded(share: f32) -> f64 {
    if share == 0.0 {
        return 0.0;
    }
    let unit = 10_f64.powi(f64::from(share).abs().log10().floor() as i32 - 1);
    (f64::from(share) / unit).round() * unit
}
