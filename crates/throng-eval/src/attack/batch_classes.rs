//! Class size for an observer of arrivals (docs/internals/methods.md §12.1) and for an attacker with invented subjects
//! (§12.5).

use super::attack_input::{AttackInput, LinkedGroup};
use super::trials::{AttackTrials, AttackYield};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::CellId;

type ClassSubjects = BTreeMap<Vec<CellId>, BTreeMap<u64, BTreeSet<u32>>>;

/// Attacks every line.
pub fn run(release: &AttackInput<'_>) -> Vec<AttackYield> {
    let known = release.linked_groups();
    let classes: Vec<ClassSubjects> = known.iter().map(|group| subjects_by_class(release, group)).collect();
    let lines = || known.iter().enumerate().flat_map(|(at, group)| (0..group.group.lines).map(move |line| (at, line)));
    if lines().next().is_none() {
        return Vec::new();
    }
    let colluders = release.promises.colluders;
    let chance = 1.0 / release.population.max(1) as f64;
    let (mut arrival, mut invented) = (AttackTrials::default(), AttackTrials::default());
    for (at, line) in lines() {
        let batch = known[at].origins[line].batch;
        let by_batch = &classes[at][&known[at].class(line)];
        let now = by_batch.get(&batch).map_or(1, BTreeSet::len);
        arrival.add_to_group(&known[at].shape.name, 1.0 / now.max(1) as f64, chance);
        invented.add_to_group(&known[at].shape.name, 1.0 / now.saturating_sub(colluders).max(1) as f64, chance);
    }
    let k = release.promises.crowd.saturating_sub(colluders).max(1) as f64;
    let mut yields = vec![
        arrival
            .into_yield("arrival", "the class, and the batch".to_owned(), Some(release.batch_bound()))
            .judge_each_trial(),
    ];
    if colluders > 0 {
        let given = format!("the class, {colluders} of whose people are invented");
        yields.push(invented.into_yield("invented people", given, Some(1.0 / k)).judge_each_trial());
    }
    yields
}

fn subjects_by_class(release: &AttackInput<'_>, known: &LinkedGroup<'_>) -> ClassSubjects {
    let mut classes = ClassSubjects::new();
    for line in 0..known.group.lines {
        let batches = classes.entry(known.class(line)).or_default();
        let people = batches.entry(known.origins[line].batch).or_default();
        people.insert(known.person(&release.people, line));
    }
    classes
}
