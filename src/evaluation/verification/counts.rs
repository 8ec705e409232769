//! Crowds, counted again from texts: classes over the release and in each batch, sensitive values, lines of one person, pairs
//! that counting forces.

use super::finding::{Asked, Findings, GroupCount};
use super::lines::Group;
use super::shared;
use super::spelled::Spelled;
use super::told::Told;
use crate::anonymity::planner::GroupShape;
use std::collections::{BTreeMap, BTreeSet};

/// A crowd and where it is seen first.
#[derive(Default)]
struct Crowd {
    who: BTreeSet<u32>,
    first: Option<usize>,
}

impl Crowd {
    fn add(&mut self, line: usize, who: Option<u32>) {
        self.first.get_or_insert(line);
        self.who.extend(who);
    }
}

/// Counts a group; `told` is by line.
pub(super) fn count(
    group: &Group,
    shape: &GroupShape,
    told: Option<&[Told]>,
    asked: &Asked,
    findings: &mut Findings,
) -> GroupCount {
    let place = |of: &[usize]| -> Vec<usize> {
        (0..group.attributes.len()).filter(|at| of.contains(&group.attributes[*at])).collect()
    };
    let (quasi, sensitive) = (place(&shape.quasi), place(&shape.sensitive));
    let who = |line: usize| match told {
        // Without people every line is somebody.
        Some(told) if asked.people => told[line].person,
        _ => Some(line as u32),
    };
    let (mut classes, mut in_batch) = (BTreeMap::<Vec<&str>, Crowd>::new(), BTreeMap::<_, Crowd>::new());
    let mut values = BTreeMap::<(usize, &str, Option<u64>), Crowd>::new();
    // By attribute, cell, batch and class, who shows a cell that is not exact.
    let mut hidden = BTreeMap::<(usize, &str, u64, Vec<&str>), Crowd>::new();
    let mut of_person = BTreeMap::<(u64, Option<u32>), Vec<usize>>::new();
    for (line, cells) in group.lines.iter().enumerate() {
        let class: Vec<&str> = quasi.iter().map(|&at| cells[at].as_str()).collect();
        if let Some(told) = told {
            in_batch.entry((told[line].batch, class.clone())).or_default().add(line, who(line));
            if asked.people {
                of_person.entry((told[line].batch, told[line].person)).or_default().push(line);
            }
        }
        classes.entry(class.clone()).or_default().add(line, who(line));
        for &at in &sensitive {
            let batch = told.map(|told| told[line].batch);
            if let (Some(batch), Some(person)) = (batch, who(line))
                && group.spelled[line][at] != Spelled::Exact
            {
                hidden.entry((at, cells[at].as_str(), batch, class.clone())).or_default().add(line, Some(person));
            }
            if group.spelled[line][at] == Spelled::Suppressed {
                continue;
            }
            values.entry((at, cells[at].as_str(), batch)).or_default().add(line, who(line));
        }
    }
    let mut judge = |crowd: &Crowd, least: usize, promise: &'static str, attribute: Option<&str>| {
        if crowd.who.len() < least {
            let first = crowd.first.map_or(0, |line| group.place(line));
            findings.note(promise, &group.file, first, attribute, Some([crowd.who.len(), least]));
        }
    };
    if !quasi.is_empty() {
        for crowd in classes.values() {
            judge(crowd, asked.crowd, "a class has its crowd in the release", None);
        }
        for crowd in in_batch.values() {
            judge(crowd, asked.crowd, "a class has its crowd in its batch", None);
        }
    }
    for ((at, ..), crowd) in &values {
        judge(crowd, asked.crowd, "a sensitive value has its own crowd", Some(&group.names[*at]));
    }
    for ((at, ..), crowd) in &hidden {
        judge(
            crowd,
            asked.crowd,
            "a sensitive cell hides in a crowd of its class in its batch",
            Some(&group.names[*at]),
        );
    }
    for lines in of_person.values().filter(|lines| asked.lines > 0 && lines.len() > asked.lines) {
        let promise = "a person has no more lines in a batch than `max_lines_per_subject`";
        findings.note(promise, &group.file, group.place(lines[0]), None, Some([lines.len(), asked.lines]));
    }
    let smallest = |crowd: Option<usize>| crowd.unwrap_or(0) as u64;
    GroupCount {
        group: group.name.clone(),
        lines: group.lines.len() as u64,
        classes: classes.len() as u64,
        smallest_class: smallest(classes.values().map(|crowd| crowd.who.len()).min()),
        smallest_class_in_batch: told.map(|_| smallest(in_batch.values().map(|crowd| crowd.who.len()).min())),
    }
}

/// Two cells of two groups that counting joins: of the N records of a batch n show the one and m the other; where n + m > N some show
/// both, and as many people as a crowd must. Where attributes stand in both groups, within each of their values too.
pub(super) fn forced(groups: &[Group], told: &[Vec<Told>], asked: &Asked, findings: &mut Findings) {
    let mut batches: Vec<BTreeMap<u64, Vec<usize>>> = vec![BTreeMap::new(); groups.len()];
    for (batches, told) in batches.iter_mut().zip(told) {
        told.iter().enumerate().for_each(|(line, told)| batches.entry(told.batch).or_default().push(line));
    }
    for one in 0..groups.len() {
        for other in one + 1..groups.len() {
            for (batch, left) in &batches[one] {
                let Some(right) = batches[other].get(batch) else { continue };
                let pair = [one, other];
                forced_among(groups, told, pair, [left, right], asked, findings);
                for [left, right] in shared::parts(pair.map(|group| &groups[group]), [left, right]) {
                    forced_among(groups, told, pair, [&left, &right], asked, findings);
                }
            }
        }
    }
}

/// The same among some lines of two groups.
fn forced_among(
    groups: &[Group],
    told: &[Vec<Told>],
    [one, other]: [usize; 2],
    [left, right]: [&[usize]; 2],
    asked: &Asked,
    findings: &mut Findings,
) {
    let records = |group: usize, lines: &[usize]| -> BTreeSet<u32> {
        lines.iter().map(|line| told[group][*line].record).collect()
    };
    let all = records(one, left);
    if all != records(other, right) {
        return;
    }
    let (x, y) = (cells(&groups[one], left, all.len()), cells(&groups[other], right, all.len()));
    for lines in &x {
        for there in y.iter().filter(|there| lines.len() + there.len() > all.len()) {
            let both = &records(one, lines) & &records(other, there);
            let shown = lines.iter().filter(|line| both.contains(&told[one][**line].record));
            let people: BTreeSet<u32> = shown
                .filter_map(|line| {
                    let told = &told[one][*line];
                    if asked.people { told.person } else { Some(told.record) }
                })
                .collect();
            if people.len() < asked.crowd {
                let counts = Some([people.len(), asked.crowd]);
                let promise = "no pair of cells of two groups is forced by counting below the crowd";
                let (file, first) = (&groups[one].file, groups[one].place(lines[0]));
                findings.note(promise, file, first, None, counts);
            }
        }
    }
}

/// The lines of every cell that is shown, by attribute; only those that can force anything.
fn cells(group: &Group, lines: &[usize], all: usize) -> Vec<Vec<usize>> {
    let mut shown = Vec::new();
    for at in 0..group.attributes.len() {
        let mut of_cell: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for &line in lines.iter().filter(|line| group.spelled[**line][at] != Spelled::Suppressed) {
            of_cell.entry(group.lines[line][at].as_str()).or_default().push(line);
        }
        // A cell that all show says nothing of who shows another.
        shown.extend(of_cell.into_values().filter(|lines| lines.len() < all));
    }
    shown
}
