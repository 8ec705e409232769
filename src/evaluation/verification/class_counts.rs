//! Recount of anonymity sets.

use super::cell_validation::PrintedCellKind;
use super::group_reader::GroupLines;
use super::line_lineage::LineLineage;
use super::shared_values;
use super::violation_log::{GroupClassCounts, RecountRequirements, ViolationLog};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::plan::GroupShape;

#[derive(Default)]
struct SubjectSet {
    shown_by: BTreeSet<u32>,
    first: Option<usize>,
}

impl SubjectSet {
    fn add(&mut self, line: usize, who: Option<u32>) {
        self.first.get_or_insert(line);
        self.shown_by.extend(who);
    }
}

/// `told` is indexed by line.
pub(super) fn count_group(
    group: &GroupLines,
    shape: &GroupShape,
    told: Option<&[LineLineage]>,
    asked: &RecountRequirements,
    findings: &mut ViolationLog,
) -> GroupClassCounts {
    let place = |of: &[usize]| -> Vec<usize> {
        (0..group.attributes.len()).filter(|at| of.contains(&group.attributes[*at])).collect()
    };
    let (quasi, sensitive) = (place(&shape.quasi), place(&shape.sensitive));
    let who = |line: usize| match told {
        // Without subjects, a line counts as one.
        Some(told) if asked.counts_subjects => told[line].person,
        _ => Some(line as u32),
    };
    let (mut classes, mut in_batch) = (BTreeMap::<Vec<&str>, SubjectSet>::new(), BTreeMap::<_, SubjectSet>::new());
    let mut values = BTreeMap::<(usize, &str, Option<u64>), SubjectSet>::new();
    // By attribute, cell, batch and class.
    let mut hidden = BTreeMap::<(usize, &str, u64, Vec<&str>), SubjectSet>::new();
    let mut of_person = BTreeMap::<(u64, Option<u32>), Vec<usize>>::new();
    for (line, cells) in group.lines.iter().enumerate() {
        let class: Vec<&str> = quasi.iter().map(|&at| cells[at].as_str()).collect();
        if let Some(told) = told {
            in_batch.entry((told[line].batch, class.clone())).or_default().add(line, who(line));
            if asked.counts_subjects {
                of_person.entry((told[line].batch, told[line].person)).or_default().push(line);
            }
        }
        classes.entry(class.clone()).or_default().add(line, who(line));
        for &at in &sensitive {
            let batch = told.map(|told| told[line].batch);
            if let (Some(batch), Some(person)) = (batch, who(line))
                && group.cell_kinds[line][at] != PrintedCellKind::Exact
            {
                hidden.entry((at, cells[at].as_str(), batch, class.clone())).or_default().add(line, Some(person));
            }
            if group.cell_kinds[line][at] == PrintedCellKind::Suppressed {
                continue;
            }
            values.entry((at, cells[at].as_str(), batch)).or_default().add(line, who(line));
        }
    }
    let mut judge = |crowd: &SubjectSet, least: usize, promise: &'static str, attribute: Option<&str>| {
        if crowd.shown_by.len() < least {
            let first = crowd.first.map_or(0, |line| group.line_number(line));
            findings.add_violation(promise, &group.file, first, attribute, Some([crowd.shown_by.len(), least]));
        }
    };
    if !quasi.is_empty() {
        for crowd in classes.values() {
            judge(crowd, asked.crowd, "a class has the required size in the release", None);
        }
        for crowd in in_batch.values() {
            judge(crowd, asked.crowd, "a class has the required size in its batch", None);
        }
    }
    for ((at, ..), crowd) in &values {
        judge(crowd, asked.crowd, "a sensitive value has the required number of subjects", Some(&group.names[*at]));
    }
    for ((at, ..), crowd) in &hidden {
        judge(
            crowd,
            asked.crowd,
            "a sensitive cell that is not exact has the required number of subjects of its class in its batch",
            Some(&group.names[*at]),
        );
    }
    for lines in
        of_person.values().filter(|lines| asked.max_lines_per_batch > 0 && lines.len() > asked.max_lines_per_batch)
    {
        let promise = "a person has no more lines in a batch than `max_lines_per_subject`";
        findings.add_violation(
            promise,
            &group.file,
            group.line_number(lines[0]),
            None,
            Some([lines.len(), asked.max_lines_per_batch]),
        );
    }
    let smallest = |crowd: Option<usize>| crowd.unwrap_or(0) as u64;
    GroupClassCounts {
        group: group.name.clone(),
        lines: group.lines.len() as u64,
        classes: classes.len() as u64,
        smallest_class: smallest(classes.values().map(|crowd| crowd.shown_by.len()).min()),
        smallest_class_in_batch: told.map(|_| smallest(in_batch.values().map(|crowd| crowd.shown_by.len()).min())),
    }
}

/// If n and m of N records show cells of two groups, n + m > N forces a pair, which needs a crowd of subjects.
pub(super) fn check_forced_cells(
    groups: &[GroupLines],
    told: &[Vec<LineLineage>],
    asked: &RecountRequirements,
    findings: &mut ViolationLog,
) {
    let mut batches: Vec<BTreeMap<u64, Vec<usize>>> = vec![BTreeMap::new(); groups.len()];
    for (batches, told) in batches.iter_mut().zip(told) {
        told.iter().enumerate().for_each(|(line, told)| batches.entry(told.batch).or_default().push(line));
    }
    for one in 0..groups.len() {
        for other in one + 1..groups.len() {
            for (batch, left) in &batches[one] {
                let Some(right) = batches[other].get(batch) else { continue };
                let pair = [one, other];
                check_pairs_among(groups, told, pair, [left, right], asked, findings);
                for [left, right] in shared_values::partition_by_shared(pair.map(|group| &groups[group]), [left, right])
                {
                    check_pairs_among(groups, told, pair, [&left, &right], asked, findings);
                }
            }
        }
    }
}

fn check_pairs_among(
    groups: &[GroupLines],
    told: &[Vec<LineLineage>],
    [one, other]: [usize; 2],
    [left, right]: [&[usize]; 2],
    asked: &RecountRequirements,
    findings: &mut ViolationLog,
) {
    let records = |group: usize, lines: &[usize]| -> BTreeSet<u32> {
        lines.iter().map(|line| told[group][*line].record).collect()
    };
    let all = records(one, left);
    if all != records(other, right) {
        return;
    }
    let (x, y) = (lines_of_cells(&groups[one], left, all.len()), lines_of_cells(&groups[other], right, all.len()));
    for lines in &x {
        for there in y.iter().filter(|there| lines.len() + there.len() > all.len()) {
            let both = &records(one, lines) & &records(other, there);
            let shown = lines.iter().filter(|line| both.contains(&told[one][**line].record));
            let people: BTreeSet<u32> = shown
                .filter_map(|line| {
                    let told = &told[one][*line];
                    if asked.counts_subjects { told.person } else { Some(told.record) }
                })
                .collect();
            if people.len() < asked.crowd {
                let counts = Some([people.len(), asked.crowd]);
                let promise = "no pair of cells of two groups is forced by counting below the required size";
                let (file, first) = (&groups[one].file, groups[one].line_number(lines[0]));
                findings.add_violation(promise, file, first, None, counts);
            }
        }
    }
}

/// Only cells that can force a pair.
fn lines_of_cells(group: &GroupLines, lines: &[usize], all: usize) -> Vec<Vec<usize>> {
    let mut shown = Vec::new();
    for at in 0..group.attributes.len() {
        let mut of_cell: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for &line in lines.iter().filter(|line| group.cell_kinds[**line][at] != PrintedCellKind::Suppressed) {
            of_cell.entry(group.lines[line][at].as_str()).or_default().push(line);
        }
        // A cell of all records forces nothing.
        shown.extend(of_cell.into_values().filter(|lines| lines.len() < all));
    }
    shown
}
