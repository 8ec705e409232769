//! The plan for pages, without values of the data. One record changes a number only with a secret random draw
//! (docs/internals/threats.md, 28).

use crate::telemetry::{RoundingDraws, round_count, round_to_step};
use serde_json::{Value, json};
use throng_core::plan::Plan;
use throng_core::plan::evidence::PlanEvidence;

const SHARE_STEP: f64 = 0.05;
const PLAN_LOSS_STEP: f64 = 0.01;
const COUNT_STEP: u64 = 1_000;
/// Minimum subjects behind a published inference, and records behind a mean: one more changes the value by less than a
/// fifth of a step.
const MIN_SHOWN_SUBJECTS: u64 = 100;
const MIN_SHOWN_MEAN_RECORDS: u64 = 1_000;
/// Multiple of k subjects singled out by a published quasi-identifier; a random draw at most doubles it.
const MIN_SINGLED_OUT_FACTOR: u64 = 10;

/// Returns the plan and its evidence as JSON.
#[must_use]
pub fn plan_summary(
    plan: &Plan,
    evidence: Option<&PlanEvidence>,
    attribute_names: &[&str],
    draws: RoundingDraws,
) -> Value {
    let names = |attributes: &[usize]| attributes.iter().map(|&a| attribute_names[a]).collect::<Vec<_>>();
    let end = |levels: &[u8], loss: f64| json!({"levels": levels, "loss": round_to_step(loss, PLAN_LOSS_STEP, 0.5)});
    json!({
        "version": plan.version,
        "rows": plan.rows,
        "primed": plan.primed,
        "identifiers": names(&plan.identifiers),
        "shared": plan.shared_levels().into_iter().map(|(attribute, level)| json!({
            "attribute": attribute_names[attribute],
            "level": level,
            "groups": (0..plan.groups.len())
                .filter(|&at| plan.groups[at].quasi.contains(&attribute) && plan.shows_attribute(at, attribute))
                .map(|at| plan.groups[at].name.as_str())
                .collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "groups": plan.groups.iter().map(|group| json!({
            "name": group.name,
            "attributes": names(&group.attributes()),
            "quasi": names(&group.quasi),
            "sensitive": names(&group.sensitive),
            "insensitive": names(&group.insensitive),
            "static": plan.is_static(group),
            "nodes": group.ladder.len(),
            "finest": group.ladder.first().map(|n| end(&n.levels, f64::from(n.loss))),
            "coarsest": group.ladder.last().map(|n| end(&n.levels, f64::from(n.loss))),
        })).collect::<Vec<_>>(),
        "changes": plan.paces.iter().map(|pace| json!({
            "attribute": attribute_names[pace.attribute],
            "changes": pace.changes.name(),
            "declared": pace.declared,
        })).collect::<Vec<_>>(),
        "evidence": evidence.map(|evidence| evidence_summary(evidence, &names, draws)),
    })
}

/// Returns the quasi-identifiers that single out enough subjects: one more or less has little effect.
#[must_use]
pub fn shown_qids(evidence: &PlanEvidence, draws: RoundingDraws) -> Vec<&Vec<usize>> {
    let least = (MIN_SINGLED_OUT_FACTOR * u64::from(evidence.k)) as f64;
    let measured = evidence.minimal_qids.iter().zip(&evidence.people_below);
    let is_shown = |set: &[usize], people: u64| {
        people as f64 >= least * (1.0 + draws.draw(&format!("quasi-identifier {set:?}"), evidence.plan))
    };
    measured.filter(|(set, people)| is_shown(set, **people)).map(|(set, _)| set).collect()
}

/// Returns the number of sets with one, two, … attributes.
#[must_use]
pub fn by_size(qids: &[&Vec<usize>]) -> Vec<u64> {
    let mut sizes = Vec::new();
    for set in qids {
        sizes.resize(sizes.len().max(set.len()), 0_u64);
        if let Some(size) = set.len().checked_sub(1).and_then(|at| sizes.get_mut(at)) {
            *size += 1;
        }
    }
    sizes
}

/// Returns the share (0 to 1) of sets that contain each of `attributes`.
#[must_use]
pub fn involvement(qids: &[&Vec<usize>], attributes: &[usize]) -> Vec<(usize, f64)> {
    let share = |attribute| {
        let with = qids.iter().filter(|set| set.contains(attribute)).count();
        with as f64 / qids.len().max(1) as f64
    };
    attributes.iter().map(|attribute| (*attribute, share(attribute))).collect()
}

fn evidence_summary<'n>(
    evidence: &PlanEvidence,
    names: &dyn Fn(&[usize]) -> Vec<&'n str>,
    draws: RoundingDraws,
) -> Value {
    let draw = |figure: &str| draws.draw(figure, evidence.plan);
    let count = |figure: &str, value: u64| round_count(value, COUNT_STEP, draw(figure));
    let qids = shown_qids(evidence, draws);
    // Rounded before sorting: the order would reveal exact values.
    let step = |kind: &str, from: usize, to: usize, share: f64| {
        round_to_step(share, SHARE_STEP, draw(&format!("{kind} {from} {to}")))
    };
    let means = evidence.inferences.iter().filter(|_| evidence.records >= MIN_SHOWN_MEAN_RECORDS);
    let means = means.map(|i| (i.from, i.to, step("mean", i.from, i.to, i.mean), 0));
    let strongest = evidence.strongest.iter().filter(|i| i.support >= MIN_SHOWN_SUBJECTS);
    let strongest = strongest.map(|i| {
        let support = round_count(i.support, MIN_SHOWN_SUBJECTS, draw(&format!("support {} {}", i.from, i.to)));
        (i.from, i.to, step("strongest", i.from, i.to, i.probability), support.max(MIN_SHOWN_SUBJECTS))
    });
    json!({
        "plan": evidence.plan,
        "primed": evidence.primed,
        "k": evidence.k,
        "records": count("records", evidence.records),
        "support": count("support", evidence.support),
        "attributes": names(&evidence.attributes),
        "complete": evidence.complete,
        "qids_by_size": by_size(&qids),
        "minimal_qids": qids.into_iter().map(|set| names(set)).collect::<Vec<_>>(),
        "inferences": sorted_by_share(means).into_iter().map(|(from, to, mean, _)| json!({
            "from": names(&[from])[0], "to": names(&[to])[0], "mean": mean,
        })).collect::<Vec<_>>(),
        "strongest": sorted_by_share(strongest).into_iter().map(|(from, to, probability, support)| json!({
            "from": names(&[from])[0], "to": names(&[to])[0], "support": support, "probability": probability,
        })).collect::<Vec<_>>(),
        "aggregation": evidence.aggregation.map(|a| json!({
            "nodes": count("nodes", a.nodes), "edges": count("edges", a.edges),
            "coarse_nodes": count("coarse nodes", a.coarse_nodes), "coarse_edges": count("coarse edges", a.coarse_edges),
        })),
        "expected_loss": round_to_step(evidence.expected_loss, PLAN_LOSS_STEP, draw("expected loss")),
        "computed_by": evidence.computed_by,
        "seconds": round_to_step(evidence.seconds, 0.01, 0.5),
    })
}

/// From attribute, to attribute, share, support.
type RoundedInference = (usize, usize, f64, u64);

fn sorted_by_share(told: impl Iterator<Item = RoundedInference>) -> Vec<RoundedInference> {
    let mut told: Vec<RoundedInference> = told.filter(|(_, _, share, _)| *share > 0.0).collect();
    told.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::plan::AttributeChangeRate;
    use throng_core::plan::evidence::StrongestInference;
    use throng_core::values::schema::ChangeFrequency;

    #[test]
    fn plan_page_omits_quasi_identifiers_of_few_subjects() {
        let evidence = |people: u64| PlanEvidence {
            k: 5,
            minimal_qids: vec![vec![0, 1], vec![2]],
            people_below: vec![people, 1_000],
            ..PlanEvidence::default()
        };
        let draws = RoundingDraws::new(&[3; 32]);
        assert_eq!(shown_qids(&evidence(1), draws), [&vec![2]]);
        assert_eq!(shown_qids(&evidence(49), draws), [&vec![2]]);
        assert_eq!(shown_qids(&evidence(100), draws).len(), 2);
        let page = plan_summary(&Plan::inactive(Vec::new()), Some(&evidence(7)), &["age", "zip", "job"], draws);
        assert_eq!(page["evidence"]["minimal_qids"], json!([["job"]]));
        assert_eq!(page["evidence"]["qids_by_size"], json!([1]));
    }

    #[test]
    fn involvement_is_the_share_of_sets_with_the_attribute() {
        let sets = [vec![0, 1], vec![0, 2, 3], vec![2], vec![0]];
        let shown: Vec<&Vec<usize>> = sets.iter().collect();
        assert_eq!(by_size(&shown), [2, 1, 1]);
        assert_eq!(involvement(&shown, &[0, 1, 2, 4]), [(0, 0.75), (1, 0.25), (2, 0.5), (4, 0.0)]);
        assert_eq!(by_size(&[&Vec::new()]), [0_u64; 0]);
        assert_eq!(involvement(&[], &[7]), [(7, 0.0)]);
    }

    #[test]
    fn plan_page_omits_change_shares() {
        let pace = |share| AttributeChangeRate {
            attribute: 0,
            changes: ChangeFrequency::Slowly,
            declared: false,
            share: Some(share),
        };
        let shown = |share| {
            let plan = Plan { paces: vec![pace(share)], ..Plan::inactive(Vec::new()) };
            plan_summary(&plan, None, &["age"], RoundingDraws::new(&[3; 32]))
        };
        assert_eq!(shown(0.0123)["changes"], json!([{"attribute": "age", "changes": "slowly", "declared": false}]));
        assert_eq!(shown(0.0123), shown(0.0124));
    }

    #[test]
    fn plan_page_omits_inferences_of_few_subjects() {
        let told = |support| StrongestInference { from: 0, to: 1, records: support, support, probability: 0.93 };
        let evidence = |support| PlanEvidence { strongest: vec![told(support)], ..PlanEvidence::default() };
        let shown = |support| {
            let draws = RoundingDraws::new(&[3; 32]);
            plan_summary(&Plan::inactive(Vec::new()), Some(&evidence(support)), &["age", "zip"], draws)["evidence"]["strongest"]
                .as_array()
                .expect("a list")
                .clone()
        };
        assert!(shown(99).is_empty());
        let one = &shown(123)[0];
        assert!(["0.9", "0.95"].contains(&one["probability"].to_string().as_str()), "{one}");
        assert!([100, 200].contains(&one["support"].as_u64().expect("a number")), "{one}");
    }
}
