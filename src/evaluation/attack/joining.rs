//! Joining: which fragments of two groups were one record?
//!
//! By time: any line of the other group that came in the same batch. By order: the lines of a batch are paired in the order in
//! which they lie in their files, and once more with one of the files reversed, shifted or rotated, whichever way is right most often. By counts: where n of N records show x and m show y, n + m − N of them must show both; if that
//! is at least one, a fragment of x and one of y are joined. Where attributes stand in both groups, all of it is tried among the lines
//! that show the same of them.

use super::release::{Effort, Known, Release};
use super::trials::{Trials, Yield};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::{CellId, SUPPRESSED};

/// The lines of two groups in one batch.
pub struct Meeting<'a> {
    /// The groups.
    pub groups: [&'a Known<'a>; 2],
    /// Their lines in the batch: those that show the same of what stands in both groups.
    pub lines: [Vec<usize>; 2],
}

impl Meeting<'_> {
    /// The names of both groups.
    pub fn name(&self) -> String {
        format!("{} and {}", self.groups[0].shape.name, self.groups[1].shape.name)
    }
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
    yields.push(release.of_pairs(counts.sum_up("joining by counts", given, Some(release.in_batch()))));
    yields
}

/// Tries every meeting by order and by time.
fn by_place(release: &Release<'_>, meetings: &[Meeting<'_>]) -> Vec<Yield> {
    let bound = Some(release.in_batch());
    let mut time = Trials::default();
    meetings.iter().for_each(|meeting| by_time(meeting, &release.people, &mut time));
    let tried: Vec<Order<'_, '_>> = meetings.iter().map(|meeting| Order::of(meeting, &release.people)).collect();
    // The best of all ways but the plain one is looked for in a part of the meetings.
    let few = &tried[..tried.len().min(MEETINGS_OF_WAYS)];
    let ways: Vec<(f64, Way)> = Way::all().into_par_iter().map(|way| (paired(way, few).rate(), way)).collect();
    let best = ways.iter().fold((0.0, Way::PLAIN), |best, way| if way.0 > best.0 { *way } else { best }).1;
    let mut yields =
        vec![paired(Way::PLAIN, &tried).sum_up("joining by order", "two groups of a batch".to_owned(), bound)];
    let given = format!("two groups of a batch, one of them {}", best.words());
    yields.push(paired(best, &tried).sum_up("joining by order", given, bound));
    yields.push(time.sum_up("joining by time", "two groups of a batch, any line of it".to_owned(), bound));
    yields.into_iter().map(|found| release.of_pairs(found)).collect()
}

/// Pairs the lines of all meetings in one way.
fn paired(way: Way, orders: &[Order<'_, '_>]) -> Trials {
    let mut trials = Trials::default();
    orders.iter().for_each(|order| order.pair(way, &mut trials));
    trials
}

/// Any line of the other group in the batch; by chance, any line of the other group at all.
fn by_time(meeting: &Meeting<'_>, people: &[u32], trials: &mut Trials) {
    let [left, right] = &meeting.lines;
    let (mut there, name): (BTreeMap<u32, usize>, _) = (BTreeMap::new(), meeting.name());
    right.iter().for_each(|&line| *there.entry(meeting.groups[1].person(people, line)).or_default() += 1);
    let all = meeting.groups[1].group.lines as f64;
    for &line in left {
        let own = there.get(&meeting.groups[0].person(people, line)).copied().unwrap_or(0) as f64;
        trials.add_to(&name, own / right.len() as f64, own / all);
    }
}

/// Meetings on which all ways of pairing are tried.
const MEETINGS_OF_WAYS: usize = 50;
/// Lines by which one group is shifted at most, either way.
const MOST_SHIFT: i64 = 8;
/// Parts of a batch by which one group is rotated.
const ROTATIONS: i64 = 16;

/// A way of pairing the lines of two groups: the other one may be reversed, shifted by lines, and rotated by a part of the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    is_reversed: bool,
    lines: i64,
    sixteenths: i64,
}

impl Way {
    const PLAIN: Self = Self { is_reversed: false, lines: 0, sixteenths: 0 };

    fn all() -> Vec<Self> {
        let shifted = (-MOST_SHIFT..=MOST_SHIFT).map(|lines| (lines, 0));
        let rotated = (1..ROTATIONS).map(|sixteenths| (0, sixteenths));
        let moved: Vec<(i64, i64)> = shifted.chain(rotated).collect();
        let ways = [false, true].into_iter().flat_map(|is_reversed| {
            moved.iter().map(move |&(lines, sixteenths)| Self { is_reversed, lines, sixteenths })
        });
        ways.filter(|way| *way != Self::PLAIN).collect()
    }

    /// The place among `of` lines of the other group for the place `at` among `all`.
    fn place(self, at: usize, all: usize, of: usize) -> usize {
        let place = (at * of / all) as i64;
        let (place, of) = (if self.is_reversed { of as i64 - 1 - place } else { place }, of as i64);
        (place + self.lines + self.sixteenths * of / ROTATIONS).rem_euclid(of) as usize
    }

    fn words(self) -> String {
        let reversed = if self.is_reversed { "reversed, " } else { "" };
        match (self.lines, self.sixteenths) {
            (0, 0) => "reversed".to_owned(),
            (lines, 0) => format!("{reversed}shifted by {lines} lines"),
            (_, sixteenths) => format!("{reversed}rotated by {sixteenths}/{ROTATIONS}"),
        }
    }
}

/// A meeting by the order of its lines. Lines that say the same lie in an order that nobody sees: a place among them is that of any of their
/// people.
struct Order<'a, 'm> {
    meeting: &'a Meeting<'m>,
    /// By side its runs of equal lines, from and to, and how many lines each person has in them.
    runs: [Vec<Run>; 2],
    /// Lines of each person on the other side.
    there: BTreeMap<u32, usize>,
}

struct Run {
    from: usize,
    to: usize,
    people: BTreeMap<u32, usize>,
}

impl<'a, 'm> Order<'a, 'm> {
    fn of(meeting: &'a Meeting<'m>, people: &[u32]) -> Self {
        let whose = |side: usize, line: usize| meeting.groups[side].person(people, line);
        let runs = [0, 1].map(|side| {
            let counted = |(from, to): (usize, usize)| {
                let mut counted: BTreeMap<u32, usize> = BTreeMap::new();
                let lines = &meeting.lines[side][from..to];
                lines.iter().for_each(|&line| *counted.entry(whose(side, line)).or_default() += 1);
                Run { from, to, people: counted }
            };
            runs(meeting, side).into_iter().map(counted).collect()
        });
        let mut there: BTreeMap<u32, usize> = BTreeMap::new();
        meeting.lines[1].iter().for_each(|&line| *there.entry(whose(1, line)).or_default() += 1);
        Self { meeting, runs, there }
    }

    /// Takes for each line of the one group the line at its place of the other.
    fn pair(&self, way: Way, trials: &mut Trials) {
        let [left, right] = &self.meeting.lines;
        let (name, [of_left, of_right]) = (self.meeting.name(), &self.runs);
        for run in of_left {
            let size = run.to - run.from;
            let chance: usize =
                run.people.iter().map(|(person, lines)| lines * self.there.get(person).copied().unwrap_or(0)).sum();
            // Places of a run that lead to one run of the other side are alike.
            let mut known: Option<(usize, usize)> = None;
            for at in run.from..run.to {
                let place = way.place(at, left.len(), right.len());
                let guess = of_right.partition_point(|run| run.to <= place);
                let hits = match known {
                    Some((of, hits)) if of == guess => hits,
                    _ => {
                        let guessed = &of_right[guess].people;
                        run.people.iter().map(|(person, n)| n * guessed.get(person).copied().unwrap_or(0)).sum()
                    }
                };
                known = Some((guess, hits));
                let behind = of_right[guess].to - of_right[guess].from;
                let right_by_chance = chance as f64 / (size * right.len()) as f64;
                trials.add_to(&name, hits as f64 / (size * behind) as f64, right_by_chance);
            }
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
            trials.add_to(&meeting.name(), 1.0 / both as f64, 1.0 / all as f64);
        }
    }
}
