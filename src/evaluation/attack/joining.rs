//! Joining: which fragments of two groups were one record?
//!
//! By time: any line of the other group that came in the same batch. By order: the lines of a batch are paired in the order in
//! which they lie in their files. By counts: where n of N records show x and m show y, n + m − N of them must show both; if that
//! is at least one, a fragment of x and one of y are joined. Where attributes stand in both groups, all of it is tried among the lines
//! that show the same of them.

use super::release::{Effort, Known, Release};
use super::trials::{Trials, Yield};
use crate::records::codebook::{CellId, SUPPRESSED};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};

/// The lines of two groups in one batch.
pub struct Meeting<'a> {
    /// The groups.
    pub groups: [&'a Known<'a>; 2],
    /// Their lines in the batch: those that show the same of what stands in both groups.
    pub lines: [Vec<usize>; 2],
}

/// Every two groups in every batch that shows both, in an order that is drawn; at most `effort.targets`.
pub fn meetings<'a>(known: &'a [Known<'a>], effort: Effort, dice: &mut ChaCha8Rng) -> Vec<Meeting<'a>> {
    let mut meetings = Vec::new();
    for (at, one) in known.iter().enumerate() {
        for other in &known[at + 1..] {
            for (batch, left) in &one.batches {
                if let Some(right) = other.batches.get(batch) {
                    let parts = parts([one, other], [left, right]);
                    meetings.extend(parts.into_iter().map(|lines| Meeting { groups: [one, other], lines }));
                }
            }
        }
    }
    meetings.shuffle(dice);
    meetings.truncate(effort.targets);
    meetings
}

/// The lines of two groups by what they show of the attributes that stand in both: shared values join them as far as they go.
/// Undivided where there are none, or where one of the groups shows nothing of them.
fn parts(groups: [&Known<'_>; 2], lines: [&[usize]; 2]) -> Vec<[Vec<usize>; 2]> {
    let undivided = || vec![lines.map(<[usize]>::to_vec)];
    let has = |a: &&usize| groups[1].group.column(**a).is_some();
    let shared: Vec<usize> = groups[0].group.attributes.iter().filter(has).copied().collect();
    let shown = |side: usize, line: usize| -> Vec<CellId> {
        shared.iter().filter_map(|&a| groups[side].group.column(a)).map(|column| column[line]).collect()
    };
    let says = |side: usize| lines[side].iter().any(|&line| shown(side, line).iter().any(|cell| *cell != SUPPRESSED));
    if shared.is_empty() || !says(0) || !says(1) {
        return undivided();
    }
    let mut parts: BTreeMap<Vec<CellId>, [Vec<usize>; 2]> = BTreeMap::new();
    for side in [0, 1] {
        for &line in lines[side] {
            parts.entry(shown(side, line)).or_default()[side].push(line);
        }
    }
    parts.into_values().filter(|[left, right]| !left.is_empty() && !right.is_empty()).collect()
}

/// Tries every meeting.
pub fn run(release: &Release<'_>, meetings: &[Meeting<'_>]) -> Vec<Yield> {
    if meetings.is_empty() {
        return Vec::new();
    }
    let mut yields = by_place(release, meetings);
    let mut counts = Trials::default();
    meetings.iter().for_each(|meeting| by_counts(release, meeting, &mut counts));
    let given = "two classes that must overlap".to_owned();
    yields.push(counts.sum_up("joining by counts", given, Some(release.in_batch())));
    yields
}

/// Tries every meeting by order and by time.
fn by_place(release: &Release<'_>, meetings: &[Meeting<'_>]) -> Vec<Yield> {
    let bound = Some(release.in_batch());
    let (mut order, mut time) = (Trials::default(), Trials::default());
    for meeting in meetings {
        by_order(meeting, &release.people, &mut order);
        by_time(meeting, &release.people, &mut time);
    }
    vec![
        order.sum_up("joining by order", "two groups of a batch".to_owned(), bound),
        time.sum_up("joining by time", "two groups of a batch, any line of it".to_owned(), bound),
    ]
}

/// Any line of the other group in the batch; by chance, any line of the other group at all.
fn by_time(meeting: &Meeting<'_>, people: &[u32], trials: &mut Trials) {
    let [left, right] = &meeting.lines;
    let mut there: BTreeMap<u32, usize> = BTreeMap::new();
    right.iter().for_each(|&line| *there.entry(meeting.groups[1].person(people, line)).or_default() += 1);
    let all = meeting.groups[1].group.lines as f64;
    for &line in left {
        let own = there.get(&meeting.groups[0].person(people, line)).copied().unwrap_or(0) as f64;
        trials.add(own / right.len() as f64, own / all);
    }
}

/// The line at the same share of the one file's batch and of the other's. Lines that say the same lie in an order that nobody sees: a
/// place among them is that of any of their people.
fn by_order(meeting: &Meeting<'_>, people: &[u32], trials: &mut Trials) {
    let [left, right] = &meeting.lines;
    let whose = |side: usize, line: usize| meeting.groups[side].person(people, line);
    let mut there: BTreeMap<u32, usize> = BTreeMap::new();
    right.iter().for_each(|&line| *there.entry(whose(1, line)).or_default() += 1);
    let (of_left, of_right) = (runs(meeting, 0), runs(meeting, 1));
    let counted = |side: usize, run: &(usize, usize)| {
        let mut counted: BTreeMap<u32, usize> = BTreeMap::new();
        let lines = &meeting.lines[side][run.0..run.1];
        lines.iter().for_each(|&line| *counted.entry(whose(side, line)).or_default() += 1);
        counted
    };
    let guessed: Vec<BTreeMap<u32, usize>> = of_right.iter().map(|run| counted(1, run)).collect();
    for run in &of_left {
        let own = counted(0, run);
        let size = run.1 - run.0;
        for at in run.0..run.1 {
            let place = at * right.len() / left.len();
            let guess = of_right.partition_point(|run| run.1 <= place);
            let behind = of_right[guess].1 - of_right[guess].0;
            let hits: usize =
                own.iter().map(|(person, lines)| lines * guessed[guess].get(person).copied().unwrap_or(0)).sum();
            let chance: usize = own.iter().map(|(person, lines)| lines * there.get(person).copied().unwrap_or(0)).sum();
            trials.add(hits as f64 / (size * behind) as f64, chance as f64 / (size * right.len()) as f64);
        }
    }
}

/// The runs of neighbouring lines of one side that say the same, from and to.
fn runs(meeting: &Meeting<'_>, side: usize) -> Vec<(usize, usize)> {
    let (group, lines) = (meeting.groups[side].group, &meeting.lines[side]);
    let same = lines.chunk_by(|&a, &b| group.cells.iter().all(|column| column[a] == column[b]));
    let ends = same.scan(0, |end, same| {
        *end += same.len();
        Some((*end - same.len(), *end))
    });
    ends.collect()
}

/// Classes that must overlap by their sizes, where the records of both groups are the same ones.
fn by_counts(release: &Release<'_>, meeting: &Meeting<'_>, trials: &mut Trials) {
    let rows = |side: usize| -> BTreeSet<u32> {
        meeting.lines[side].iter().map(|&line| meeting.groups[side].origins[line].row).collect()
    };
    if rows(0) != rows(1) {
        return;
    }
    let classes = |side: usize| {
        let known = meeting.groups[side];
        let group = known.group;
        let mut classes: BTreeMap<Vec<CellId>, BTreeSet<u32>> = BTreeMap::new();
        for &line in &meeting.lines[side] {
            let class = group.cells.iter().map(|column| column[line]).collect();
            classes.entry(class).or_default().insert(known.person(&release.people, line));
        }
        classes
    };
    let all = rows(0).len();
    let lines = |side: usize, class: &[CellId]| {
        let group = meeting.groups[side].group;
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
