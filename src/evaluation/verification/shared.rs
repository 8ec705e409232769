//! Attributes that stand in several groups: what the lines of a record show of them, and who shows it, from texts.

use super::finding::{Asked, Findings};
use super::lines::Group;
use super::told::Told;
use std::collections::{BTreeMap, BTreeSet};

/// The texts of the attributes `of` in a line.
fn shown<'g>(group: &'g Group, line: usize, of: &[usize]) -> Vec<&'g str> {
    let place = |a: &usize| group.attributes.iter().position(|own| own == a);
    of.iter().filter_map(place).map(|at| group.lines[line][at].as_str()).collect()
}

fn says(texts: &[&str]) -> bool {
    texts.iter().any(|text| *text != "\"*\"")
}

/// The lines of two groups by what they show of the attributes that stand in both; nothing where there are none, or where a group shows
/// nothing of them.
pub(super) fn parts(groups: [&Group; 2], lines: [&[usize]; 2]) -> Vec<[Vec<usize>; 2]> {
    let of: Vec<usize> = groups[0].attributes.iter().copied().filter(|a| groups[1].attributes.contains(a)).collect();
    if of.is_empty() || [0, 1].iter().any(|&side| !lines[side].iter().any(|&l| says(&shown(groups[side], l, &of)))) {
        return Vec::new();
    }
    let mut parts: BTreeMap<Vec<&str>, [Vec<usize>; 2]> = BTreeMap::new();
    for side in [0, 1] {
        for &line in lines[side] {
            parts.entry(shown(groups[side], line, &of)).or_default()[side].push(line);
        }
    }
    parts.into_values().collect()
}

/// All lines of a record show the same, and what is shown has a crowd in its batch.
pub(super) fn judge(groups: &[Group], told: &[Vec<Told>], asked: &Asked, findings: &mut Findings) {
    let mut times: BTreeMap<usize, usize> = BTreeMap::new();
    groups.iter().flat_map(|group| &group.attributes).for_each(|a| *times.entry(*a).or_default() += 1);
    let of: Vec<usize> = times.into_iter().filter(|(_, times)| *times > 1).map(|(a, _)| a).collect();
    if of.is_empty() {
        return;
    }
    let mut of_record: BTreeMap<(u64, u32), Vec<&str>> = BTreeMap::new();
    let mut crowds: BTreeMap<(u64, Vec<&str>), (usize, usize, BTreeSet<u32>)> = BTreeMap::new();
    for (number, group) in groups.iter().enumerate() {
        for (line, told) in told[number].iter().enumerate() {
            let texts = shown(group, line, &of);
            if !says(&texts) {
                continue;
            }
            let known = of_record.entry((told.batch, told.record)).or_insert_with(|| texts.clone());
            if *known != texts {
                let promise = "the lines of a record show the same of the attributes that stand in several groups";
                findings.note(promise, &group.file, line, None, None);
            }
            let who = if asked.people { told.person } else { Some(told.record) };
            let (_, _, people) = crowds.entry((told.batch, texts)).or_insert_with(|| (number, line, BTreeSet::new()));
            people.extend(who);
        }
    }
    for (number, line, people) in crowds.into_values().filter(|(_, _, people)| people.len() < asked.crowd) {
        let promise = "a value that stands in several groups has its crowd in its batch";
        findings.note(promise, &groups[number].file, line, None, Some([people.len(), asked.crowd]));
    }
}
