//! Record linkage: an outsider who knows some raw values of a person, and when that person's records left, looks for the
//! person's line.
//!
//! The outsider takes, in the group that leaves the fewest lines, one of the lines that fit all that is known, each as likely as
//! another.

use super::release::{Effort, Known, Release, shuffled_lines};
use super::trials::{Trials, Yield};
use crate::evaluation::facts::is_present;
use crate::evaluation::released::Origin;
use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use throng_core::values::codebook::CellId;

/// Tries with 1 … `effort.known` known attributes.
pub fn run(release: &Release<'_>, effort: Effort, dice: &mut ChaCha8Rng) -> Vec<Yield> {
    let groups = release.known();
    let places = shuffled_lines(&groups, dice);
    if places.is_empty() {
        return Vec::new();
    }
    let quasi: BTreeSet<usize> = release.shapes.iter().flat_map(|shape| shape.quasi.iter().copied()).collect();
    let quasi: Vec<usize> = quasi.into_iter().collect();
    let widths = (1..=effort.known.min(quasi.len())).chain((effort.known < quasi.len()).then_some(quasi.len()));
    let mut yields = Vec::new();
    for known in widths {
        let mut trials = Trials::default();
        for &(group, line) in places.iter().take(effort.targets) {
            let target = groups[group].origins[line];
            let mut attributes = quasi.clone();
            attributes.shuffle(dice);
            attributes.truncate(known);
            let right = right(release, &groups, target, &attributes, dice);
            trials.add_to(&groups[group].shape.name, right, 1.0 / release.population.max(1) as f64);
        }
        let given = format!("{known} known attribute(s) and the batch");
        yields.push(release.of_lines(trials.sum_up("linkage", given, Some(release.in_batch())).of_each_trial()));
    }
    yields
}

/// How probably the outsider takes a line of the target's person.
fn right(release: &Release<'_>, groups: &[Known<'_>], target: Origin, known: &[usize], dice: &mut ChaCha8Rng) -> f64 {
    let batch = &release.original.batch;
    let whose = release.people[target.row as usize];
    let mut best: Option<(usize, f64)> = None;
    for known_group in groups {
        let columns: Vec<(usize, &[CellId])> = known
            .iter()
            .filter(|&&attribute| is_present(batch.columns[attribute][target.row as usize]))
            .filter_map(|&attribute| known_group.group.column(attribute).map(|column| (attribute, column)))
            .collect();
        let Some(lines) = known_group.batches.get(&target.batch).filter(|_| !columns.is_empty()) else { continue };
        let fits = |line: &&usize| release.fits(&columns, **line, target.row as usize);
        let candidates: Vec<usize> = lines.iter().filter(fits).copied().collect();
        if candidates.is_empty() {
            continue;
        }
        let own = candidates.iter().filter(|&&line| known_group.person(&release.people, line) == whose).count();
        let found = (candidates.len(), own as f64 / candidates.len() as f64);
        // Of groups that narrow it equally any is taken.
        if best.is_none_or(|best| found.0 < best.0 || found.0 == best.0 && dice.random_bool(0.5)) {
            best = Some(found);
        }
    }
    best.map_or(0.0, |(_, right)| right)
}
