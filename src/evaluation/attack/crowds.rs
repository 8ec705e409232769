//! Arrival and invented people: whoever saw the batch arrive sees the crowd of that batch alone (docs/methods.md §12.1), and
//! whoever invented some of it knows who they are (§12.5).

use super::release::{Known, Release};
use super::trials::{Trials, Yield};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::CellId;

/// The people of every class, by batch.
type Classes = BTreeMap<Vec<CellId>, BTreeMap<u64, BTreeSet<u32>>>;

/// Tries every line.
pub fn run(release: &Release<'_>) -> Vec<Yield> {
    let known = release.known();
    let classes: Vec<Classes> = known.iter().map(|group| classes(release, group)).collect();
    let lines = || known.iter().enumerate().flat_map(|(at, group)| (0..group.group.lines).map(move |line| (at, line)));
    if lines().next().is_none() {
        return Vec::new();
    }
    let colluders = release.promises.colluders;
    let chance = 1.0 / release.population.max(1) as f64;
    let (mut arrival, mut invented) = (Trials::default(), Trials::default());
    for (at, line) in lines() {
        let batch = known[at].origins[line].batch;
        let by_batch = &classes[at][&known[at].class(line)];
        let now = by_batch.get(&batch).map_or(1, BTreeSet::len);
        arrival.add_to(&known[at].shape.name, 1.0 / now.max(1) as f64, chance);
        invented.add_to(&known[at].shape.name, 1.0 / now.saturating_sub(colluders).max(1) as f64, chance);
    }
    let k = release.promises.crowd.saturating_sub(colluders).max(1) as f64;
    let mut yields = vec![
        arrival.sum_up("arrival", "the class, and the batch".to_owned(), Some(release.in_batch())).of_each_trial(),
    ];
    if colluders > 0 {
        let given = format!("the class, {colluders} of whose people are invented");
        yields.push(invented.sum_up("invented people", given, Some(1.0 / k)).of_each_trial());
    }
    yields
}

fn classes(release: &Release<'_>, known: &Known<'_>) -> Classes {
    let mut classes = Classes::new();
    for line in 0..known.group.lines {
        let batches = classes.entry(known.class(line)).or_default();
        let people = batches.entry(known.origins[line].batch).or_default();
        people.insert(known.person(&release.people, line));
    }
    classes
}
