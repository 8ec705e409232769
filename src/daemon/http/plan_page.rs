//! A plan as the status page and `GET /plan` show it: names and levels, no value of the data, and no figure that one record
//! changes but by a draw that nobody foresees (docs/threats.md, 28).

use crate::anonymity::plan::Plan;
use crate::anonymity::plan::evidence::Evidence;
use crate::telemetry::{Draws, about, in_steps};
use serde_json::{Value, json};

/// Shares and means are in steps of this.
const STEP: f64 = 0.05;
/// Losses of a plan are in steps of this.
const LOSS: f64 = 0.01;
/// Counts are in steps of at least this.
const COUNT: u64 = 1_000;
/// People who must support an inference for it to be shown, and records that a mean must be of: then one more is less than a
/// fifth of a step.
const FEWEST_PEOPLE: u64 = 100;
const FEWEST_RECORDS: u64 = 1_000;
/// A quasi-identifier is named from this many times k people on that it singles out, and up to as many more, as is drawn.
const SINGLED_OUT: u64 = 10;

/// The plan as JSON: version, rows it was made from, identifiers to drop, each group with the ends of its ladder, and the
/// evidence that has been gathered, for this plan or one before it.
#[must_use]
pub fn summary(plan: &Plan, evidence: Option<&Evidence>, attribute_names: &[&str], draws: Draws) -> Value {
    let names = |attributes: &[usize]| attributes.iter().map(|&a| attribute_names[a]).collect::<Vec<_>>();
    let end = |levels: &[u8], loss: f64| json!({"levels": levels, "loss": in_steps(loss, LOSS, 0.5)});
    json!({
        "version": plan.version,
        "rows": plan.rows,
        "primed": plan.primed,
        "identifiers": names(&plan.identifiers),
        "shared": plan.shared_levels().into_iter().map(|(attribute, level)| json!({
            "attribute": attribute_names[attribute],
            "level": level,
            "groups": (0..plan.groups.len())
                .filter(|&at| plan.groups[at].quasi.contains(&attribute) && plan.shows(at, attribute))
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
        "evidence": evidence.map(|evidence| evidence_of(evidence, &names, draws)),
    })
}

/// The quasi-identifiers that single out so many people that one more or less decides nothing.
#[must_use]
pub fn shown_qids(evidence: &Evidence, draws: Draws) -> Vec<&Vec<usize>> {
    let least = (SINGLED_OUT * u64::from(evidence.k)) as f64;
    let measured = evidence.minimal_qids.iter().zip(&evidence.people_below);
    let is_shown = |set: &[usize], people: u64| {
        people as f64 >= least * (1.0 + draws.draw(&format!("quasi-identifier {set:?}"), evidence.plan))
    };
    measured.filter(|(set, people)| is_shown(set, **people)).map(|(set, _)| set).collect()
}

/// How many of these sets have one, two, … attributes.
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

/// The share of these sets that each of `attributes` is in, 0 to 1. It says no more than the sets, which pages show.
#[must_use]
pub fn involvement(qids: &[&Vec<usize>], attributes: &[usize]) -> Vec<(usize, f64)> {
    let share = |attribute| {
        let with = qids.iter().filter(|set| set.contains(attribute)).count();
        with as f64 / qids.len().max(1) as f64
    };
    attributes.iter().map(|attribute| (*attribute, share(attribute))).collect()
}

fn evidence_of<'n>(evidence: &Evidence, names: &dyn Fn(&[usize]) -> Vec<&'n str>, draws: Draws) -> Value {
    let draw = |figure: &str| draws.draw(figure, evidence.plan);
    let count = |figure: &str, value: u64| about(value, COUNT, draw(figure));
    let qids = shown_qids(evidence, draws);
    // Rounded before they are ordered: the order would say what the rounding does not.
    let step =
        |kind: &str, from: usize, to: usize, share: f64| in_steps(share, STEP, draw(&format!("{kind} {from} {to}")));
    let means = evidence.inferences.iter().filter(|_| evidence.records >= FEWEST_RECORDS);
    let means = means.map(|i| (i.from, i.to, step("mean", i.from, i.to, i.mean), 0));
    let strongest = evidence.strongest.iter().filter(|i| i.support >= FEWEST_PEOPLE);
    let strongest = strongest.map(|i| {
        let support = about(i.support, FEWEST_PEOPLE, draw(&format!("support {} {}", i.from, i.to)));
        (i.from, i.to, step("strongest", i.from, i.to, i.probability), support.max(FEWEST_PEOPLE))
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
        "inferences": ordered(means).into_iter().map(|(from, to, mean, _)| json!({
            "from": names(&[from])[0], "to": names(&[to])[0], "mean": mean,
        })).collect::<Vec<_>>(),
        "strongest": ordered(strongest).into_iter().map(|(from, to, probability, support)| json!({
            "from": names(&[from])[0], "to": names(&[to])[0], "support": support, "probability": probability,
        })).collect::<Vec<_>>(),
        "aggregation": evidence.aggregation.map(|a| json!({
            "nodes": count("nodes", a.nodes), "edges": count("edges", a.edges),
            "coarse_nodes": count("coarse nodes", a.coarse_nodes), "coarse_edges": count("coarse edges", a.coarse_edges),
        })),
        "expected_loss": in_steps(evidence.expected_loss, LOSS, draw("expected loss")),
        "computed_by": evidence.computed_by,
        "seconds": in_steps(evidence.seconds, 0.01, 0.5),
    })
}

/// From attribute, to attribute, share, support: largest shares first, then by attributes.
type Told = (usize, usize, f64, u64);

fn ordered(told: impl Iterator<Item = Told>) -> Vec<Told> {
    let mut told: Vec<Told> = told.filter(|(_, _, share, _)| *share > 0.0).collect();
    told.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymity::plan::Pace;
    use crate::anonymity::plan::evidence::StrongestInference;
    use throng_core::values::schema::Changes;

    #[test]
    fn a_quasi_identifier_of_few_people_is_not_named() {
        let evidence = |people: u64| Evidence {
            k: 5,
            minimal_qids: vec![vec![0, 1], vec![2]],
            people_below: vec![people, 1_000],
            ..Evidence::default()
        };
        let draws = Draws::new(&[3; 32]);
        assert_eq!(shown_qids(&evidence(1), draws), [&vec![2]]);
        assert_eq!(shown_qids(&evidence(49), draws), [&vec![2]]);
        assert_eq!(shown_qids(&evidence(100), draws).len(), 2);
        let page = summary(&Plan::blank(Vec::new()), Some(&evidence(7)), &["age", "zip", "job"], draws);
        assert_eq!(page["evidence"]["minimal_qids"], json!([["job"]]));
        assert_eq!(page["evidence"]["qids_by_size"], json!([1]));
    }

    #[test]
    fn an_attribute_is_involved_in_a_share_of_the_sets() {
        let sets = [vec![0, 1], vec![0, 2, 3], vec![2], vec![0]];
        let shown: Vec<&Vec<usize>> = sets.iter().collect();
        assert_eq!(by_size(&shown), [2, 1, 1]);
        assert_eq!(involvement(&shown, &[0, 1, 2, 4]), [(0, 0.75), (1, 0.25), (2, 0.5), (4, 0.0)]);
        // A window that is smaller than k has the set of no attribute, which has no size.
        assert_eq!(by_size(&[&Vec::new()]), [0_u64; 0]);
        assert_eq!(involvement(&[], &[7]), [(7, 0.0)]);
    }

    #[test]
    fn how_much_an_attribute_changes_is_not_shown() {
        let pace = |share| Pace { attribute: 0, changes: Changes::Slowly, declared: false, share: Some(share) };
        let shown = |share| {
            let plan = Plan { paces: vec![pace(share)], ..Plan::blank(Vec::new()) };
            summary(&plan, None, &["age"], Draws::new(&[3; 32]))
        };
        assert_eq!(shown(0.0123)["changes"], json!([{"attribute": "age", "changes": "slowly", "declared": false}]));
        assert_eq!(shown(0.0123), shown(0.0124));
    }

    #[test]
    fn an_inference_of_few_people_is_not_shown() {
        let told = |support| StrongestInference { from: 0, to: 1, records: support, support, probability: 0.93 };
        let evidence = |support| Evidence { strongest: vec![told(support)], ..Evidence::default() };
        let shown = |support| {
            let draws = Draws::new(&[3; 32]);
            summary(&Plan::blank(Vec::new()), Some(&evidence(support)), &["age", "zip"], draws)["evidence"]["strongest"]
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
