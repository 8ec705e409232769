//! Checks of shared attributes: lines of a record agree, and values have enough subjects.

use super::group_reader::GroupLines;
use super::line_lineage::LineLineage;
use super::violation_log::{RecountRequirements, ViolationLog};
use std::collections::{BTreeMap, BTreeSet};

fn shown_texts<'g>(group: &'g GroupLines, line: usize, of: &[usize]) -> Vec<&'g str> {
    let place = |a: &usize| group.attributes.iter().position(|own| own == a);
    of.iter().filter_map(place).map(|at| group.lines[line][at].as_str()).collect()
}

fn has_shown_value(texts: &[&str]) -> bool {
    texts.iter().any(|text| *text != "\"*\"")
}

/// Partitions two groups' lines by shared values; empty if either group shows none.
pub(super) fn partition_by_shared(groups: [&GroupLines; 2], lines: [&[usize]; 2]) -> Vec<[Vec<usize>; 2]> {
    let of: Vec<usize> = groups[0].attributes.iter().copied().filter(|a| groups[1].attributes.contains(a)).collect();
    if of.is_empty()
        || [0, 1].iter().any(|&side| !lines[side].iter().any(|&l| has_shown_value(&shown_texts(groups[side], l, &of))))
    {
        return Vec::new();
    }
    let mut parts: BTreeMap<Vec<&str>, [Vec<usize>; 2]> = BTreeMap::new();
    for side in [0, 1] {
        for &line in lines[side] {
            parts.entry(shown_texts(groups[side], line, &of)).or_default()[side].push(line);
        }
    }
    parts.into_values().collect()
}

/// Checks agreement per record, and subjects per value and batch.
pub(super) fn check_shared(
    groups: &[GroupLines],
    told: &[Vec<LineLineage>],
    asked: &RecountRequirements,
    findings: &mut ViolationLog,
) {
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
            let texts = shown_texts(group, line, &of);
            if !has_shown_value(&texts) {
                continue;
            }
            let known = of_record.entry((told.batch, told.record)).or_insert_with(|| texts.clone());
            if *known != texts {
                let promise = "the lines of a record show equal values of the attributes that several groups share";
                findings.add_violation(promise, &group.file, line, None, None);
            }
            let who = if asked.counts_subjects { told.person } else { Some(told.record) };
            let (_, _, people) = crowds.entry((told.batch, texts)).or_insert_with(|| (number, line, BTreeSet::new()));
            people.extend(who);
        }
    }
    for (number, line, people) in crowds.into_values().filter(|(_, _, people)| people.len() < asked.crowd) {
        let promise = "a value shared by several groups has the required number of subjects in its batch";
        findings.add_violation(promise, &groups[number].file, line, None, Some([people.len(), asked.crowd]));
    }
}
