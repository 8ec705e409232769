//! Joining: which fragments of two groups were one record?
//!
//! By order: the lines of a batch are paired in the order in which they lie in their files. By counts: where n of N records
//! show x and m show y, n + m − N of them must show both; if that is at least one, a fragment of x and one of y are joined.

use super::release::{Effort, Release};
use super::trials::{Trials, Yield};
use crate::evaluation::released::{Origin, ReleasedGroup};
use crate::records::codebook::CellId;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};

/// The lines of two groups in one batch.
struct Meeting<'a> {
    groups: [(&'a ReleasedGroup, &'a [Origin]); 2],
    lines: [Vec<usize>; 2],
}

/// Tries every pair of groups, in `effort.targets` batches of them all.
pub fn run(release: &Release<'_>, effort: Effort, dice: &mut ChaCha8Rng) -> Vec<Yield> {
    let known: Vec<(&ReleasedGroup, &[Origin])> =
        release.groups.iter().filter_map(|group| group.origin.as_deref().map(|origins| (group, origins))).collect();
    let mut meetings = Vec::new();
    for (at, one) in known.iter().enumerate() {
        for other in &known[at + 1..] {
            let by_batch = [batches(one.1), batches(other.1)];
            for (batch, left) in &by_batch[0] {
                if let Some(right) = by_batch[1].get(batch) {
                    meetings.push(Meeting { groups: [*one, *other], lines: [left.clone(), right.clone()] });
                }
            }
        }
    }
    if meetings.is_empty() {
        return Vec::new();
    }
    meetings.shuffle(dice);
    meetings.truncate(effort.targets);
    let subjects = &release.original.batch.subjects;
    let [k, in_batch] = release.crowds;
    let bound = Some(1.0 / if in_batch > 0 { in_batch.min(k) } else { k }.max(1) as f64);
    let (mut order, mut counts) = (Trials::default(), Trials::default());
    for meeting in &meetings {
        by_order(meeting, subjects, &mut order);
        by_counts(release, meeting, &mut counts);
    }
    vec![
        order.sum_up("joining by order", "two groups of a batch".to_owned(), bound),
        counts.sum_up("joining by counts", "two classes that must overlap".to_owned(), bound),
    ]
}

fn batches(origins: &[Origin]) -> BTreeMap<u64, Vec<usize>> {
    let mut batches: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    origins.iter().enumerate().for_each(|(line, origin)| batches.entry(origin.batch).or_default().push(line));
    batches
}

/// The line at the same share of the one file's batch and of the other's.
fn by_order(meeting: &Meeting<'_>, subjects: &[u64], trials: &mut Trials) {
    let [left, right] = &meeting.lines;
    let whose = |side: usize, line: usize| subjects[meeting.groups[side].1[line].row as usize];
    let mut people: BTreeMap<u64, usize> = BTreeMap::new();
    right.iter().for_each(|&line| *people.entry(whose(1, line)).or_default() += 1);
    for (at, &line) in left.iter().enumerate() {
        let guess = right[at * right.len() / left.len()];
        let person = whose(0, line);
        let chance = people.get(&person).copied().unwrap_or(0) as f64 / right.len() as f64;
        trials.add(f64::from(u8::from(whose(1, guess) == person)), chance);
    }
}

/// Classes that must overlap by their sizes, where the records of both groups are the same ones.
fn by_counts(release: &Release<'_>, meeting: &Meeting<'_>, trials: &mut Trials) {
    let rows = |side: usize| -> BTreeSet<u32> {
        meeting.lines[side].iter().map(|&line| meeting.groups[side].1[line].row).collect()
    };
    if rows(0) != rows(1) {
        return;
    }
    let classes = |side: usize| {
        let (group, origins) = meeting.groups[side];
        let mut classes: BTreeMap<Vec<CellId>, BTreeSet<u64>> = BTreeMap::new();
        for &line in &meeting.lines[side] {
            let class = group.cells.iter().map(|column| column[line]).collect();
            let person = release.original.batch.subjects[origins[line].row as usize];
            classes.entry(class).or_default().insert(person);
        }
        classes
    };
    let all = rows(0).len();
    let lines = |side: usize, class: &[CellId]| {
        let group = meeting.groups[side].0;
        let shows = |line: &&usize| group.cells.iter().zip(class).all(|(column, cell)| column[**line] == *cell);
        meeting.lines[side].iter().filter(shows).count()
    };
    for (x, of_x) in &classes(0) {
        let n = lines(0, x);
        if 2 * n <= all && n + 1 < all {
            continue;
        }
        for (y, of_y) in &classes(1) {
            if n + lines(1, y) <= all {
                continue;
            }
            // How well the people who show both hide each other.
            let both = of_x.intersection(of_y).count().max(1);
            trials.add(1.0 / both as f64, 1.0 / all as f64);
        }
    }
}
