//! Joining attacks by time, order and counts: pair fragments of one record.

use super::attack_input::{AttackEffort, AttackInput, LinkedGroup};
use super::trials::{AttackTrials, AttackYield};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::{CellId, SUPPRESSED};

/// Joinable lines of two groups in one batch.
pub struct GroupPair<'a> {
    /// Both groups.
    pub groups: [&'a LinkedGroup<'a>; 2],
    /// Lines per group, with the same shared values.
    pub lines: [Vec<usize>; 2],
}

impl GroupPair<'_> {
    /// Returns both group names.
    pub fn name(&self) -> String {
        format!("{} and {}", self.groups[0].shape.name, self.groups[1].shape.name)
    }
}

/// Returns up to `effort.targets` random pairs.
pub fn draw_group_pairs<'a>(
    known: &'a [LinkedGroup<'a>],
    effort: AttackEffort,
    dice: &mut ChaCha8Rng,
) -> Vec<GroupPair<'a>> {
    let mut meetings = Vec::new();
    for (at, one) in known.iter().enumerate() {
        for other in &known[at + 1..] {
            for (batch, left) in &one.batches {
                if let Some(right) = other.batches.get(batch) {
                    let parts = split_by_shared([one, other], [left, right]);
                    meetings.extend(parts.into_iter().map(|lines| GroupPair { groups: [one, other], lines }));
                }
            }
        }
    }
    meetings.shuffle(dice);
    meetings.truncate(effort.targets);
    meetings
}

/// One part if either group shows none.
fn split_by_shared(groups: [&LinkedGroup<'_>; 2], lines: [&[usize]; 2]) -> Vec<[Vec<usize>; 2]> {
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

/// Attacks group pairs by order, time and counts.
pub fn run(release: &AttackInput<'_>, meetings: &[GroupPair<'_>]) -> Vec<AttackYield> {
    if meetings.is_empty() {
        return Vec::new();
    }
    let mut yields = join_by_position(release, meetings);
    let mut counts = AttackTrials::default();
    meetings.iter().for_each(|meeting| join_by_counts(release, meeting, &mut counts));
    let given = "two classes that must overlap".to_owned();
    yields.push(release.adjust_pair_yield(counts.into_yield("joining by counts", given, Some(release.batch_bound()))));
    yields
}

fn join_by_position(release: &AttackInput<'_>, meetings: &[GroupPair<'_>]) -> Vec<AttackYield> {
    let bound = Some(release.batch_bound());
    let mut time = AttackTrials::default();
    meetings.iter().for_each(|meeting| join_by_time(meeting, &release.people, &mut time));
    let tried: Vec<LineOrder<'_, '_>> =
        meetings.iter().map(|meeting| LineOrder::from_pair(meeting, &release.people)).collect();
    // Search the best mode on a sample.
    let few = &tried[..tried.len().min(MODE_SEARCH_PAIRS)];
    let ways: Vec<(f64, PairingMode)> =
        PairingMode::all().into_par_iter().map(|way| (pair_all(way, few).rate(), way)).collect();
    let best = ways.iter().fold((0.0, PairingMode::PLAIN), |best, way| if way.0 > best.0 { *way } else { best }).1;
    let mut yields = vec![pair_all(PairingMode::PLAIN, &tried).into_yield(
        "joining by order",
        "two groups of a batch".to_owned(),
        bound,
    )];
    let given = format!("two groups of a batch, one of them {}", best.mode_description());
    yields.push(pair_all(best, &tried).into_yield("joining by order", given, bound));
    yields.push(time.into_yield("joining by time", "two groups of a batch, any of its lines".to_owned(), bound));
    yields.into_iter().map(|found| release.adjust_pair_yield(found)).collect()
}

fn pair_all(way: PairingMode, orders: &[LineOrder<'_, '_>]) -> AttackTrials {
    let mut trials = AttackTrials::default();
    orders.iter().for_each(|order| order.pair_lines(way, &mut trials));
    trials
}

fn join_by_time(meeting: &GroupPair<'_>, people: &[u32], trials: &mut AttackTrials) {
    let [left, right] = &meeting.lines;
    let (mut there, name): (BTreeMap<u32, usize>, _) = (BTreeMap::new(), meeting.name());
    right.iter().for_each(|&line| *there.entry(meeting.groups[1].person(people, line)).or_default() += 1);
    let all = meeting.groups[1].group.lines as f64;
    for &line in left {
        let own = there.get(&meeting.groups[0].person(people, line)).copied().unwrap_or(0) as f64;
        trials.add_to_group(&name, own / right.len() as f64, own / all);
    }
}

const MODE_SEARCH_PAIRS: usize = 50;
/// In lines.
const MOST_SHIFT: i64 = 8;
/// Per batch.
const ROTATIONS: i64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PairingMode {
    is_reversed: bool,
    lines: i64,
    sixteenths: i64,
}

impl PairingMode {
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

    fn position_of(self, at: usize, all: usize, of: usize) -> usize {
        let place = (at * of / all) as i64;
        let (place, of) = (if self.is_reversed { of as i64 - 1 - place } else { place }, of as i64);
        (place + self.lines + self.sixteenths * of / ROTATIONS).rem_euclid(of) as usize
    }

    fn mode_description(self) -> String {
        let reversed = if self.is_reversed { "reversed, " } else { "" };
        match (self.lines, self.sixteenths) {
            (0, 0) => "reversed".to_owned(),
            (lines, 0) => format!("{reversed}shifted by {lines} lines"),
            (_, sixteenths) => format!("{reversed}rotated by {sixteenths}/{ROTATIONS}"),
        }
    }
}

/// Equal lines are interchangeable.
struct LineOrder<'a, 'm> {
    meeting: &'a GroupPair<'m>,
    /// By side, with lines per subject.
    runs: [Vec<EqualLines>; 2],
    there: BTreeMap<u32, usize>,
}

struct EqualLines {
    from: usize,
    to: usize,
    people: BTreeMap<u32, usize>,
}

impl<'a, 'm> LineOrder<'a, 'm> {
    fn from_pair(meeting: &'a GroupPair<'m>, people: &[u32]) -> Self {
        let whose = |side: usize, line: usize| meeting.groups[side].person(people, line);
        let runs = [0, 1].map(|side| {
            let counted = |(from, to): (usize, usize)| {
                let mut counted: BTreeMap<u32, usize> = BTreeMap::new();
                let lines = &meeting.lines[side][from..to];
                lines.iter().for_each(|&line| *counted.entry(whose(side, line)).or_default() += 1);
                EqualLines { from, to, people: counted }
            };
            equal_runs(meeting, side).into_iter().map(counted).collect()
        });
        let mut there: BTreeMap<u32, usize> = BTreeMap::new();
        meeting.lines[1].iter().for_each(|&line| *there.entry(whose(1, line)).or_default() += 1);
        Self { meeting, runs, there }
    }

    fn pair_lines(&self, way: PairingMode, trials: &mut AttackTrials) {
        let [left, right] = &self.meeting.lines;
        let (name, [of_left, of_right]) = (self.meeting.name(), &self.runs);
        for all in of_left {
            let size = all.to - all.from;
            let chance: usize =
                all.people.iter().map(|(person, lines)| lines * self.there.get(person).copied().unwrap_or(0)).sum();
            // Positions between two runs are equivalent.
            let mut known: Option<(usize, usize)> = None;
            for at in all.from..all.to {
                let place = way.position_of(at, left.len(), right.len());
                let guess = of_right.partition_point(|all| all.to <= place);
                let hits = match known {
                    Some((of, hits)) if of == guess => hits,
                    _ => {
                        let guessed = &of_right[guess].people;
                        all.people.iter().map(|(person, n)| n * guessed.get(person).copied().unwrap_or(0)).sum()
                    }
                };
                known = Some((guess, hits));
                let behind = of_right[guess].to - of_right[guess].from;
                let right_by_chance = chance as f64 / (size * right.len()) as f64;
                trials.add_to_group(&name, hits as f64 / (size * behind) as f64, right_by_chance);
            }
        }
    }
}

fn equal_runs(meeting: &GroupPair<'_>, side: usize) -> Vec<(usize, usize)> {
    let (group, lines) = (meeting.groups[side].group, &meeting.lines[side]);
    let same = lines.chunk_by(|&a, &b| group.cells.iter().all(|column| column[a] == column[b]));
    let ends = same.scan(0, |end, same| {
        *end += same.len();
        Some((*end - same.len(), *end))
    });
    ends.collect()
}

/// Sizes force an overlap if both groups release the same records.
fn join_by_counts(release: &AttackInput<'_>, meeting: &GroupPair<'_>, trials: &mut AttackTrials) {
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
            // Anonymity set of the pair.
            let both = of_x.intersection(of_y).count().max(1);
            trials.add_to_group(&meeting.name(), 1.0 / both as f64, 1.0 / all as f64);
        }
    }
}
