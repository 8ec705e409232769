//! Downcoding attack: the finest possible generalization can be partly undone \[COH].
//!
//! A child of a class has at most k − 1 of its subjects, otherwise it would have been released. Of n subjects in m
//! children, each child has at least n − (m − 1)(k − 1). In a range, the first and last interval each hold a subject.

use super::attack_input::{AttackInput, LinkedGroup};
use super::trials::{AttackTrials, AttackYield};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::{CellId, Code, SUPPRESSED, is_range};

/// Returns the share of correctly placed subjects.
pub fn run(release: &AttackInput<'_>) -> Vec<AttackYield> {
    let crowd = release.promises.crowd.max(1);
    let mut trials = AttackTrials::default();
    for known in release.linked_groups() {
        let children: Vec<ChildCells> =
            known.shape.quasi.iter().map(|&a| ChildCells::from_attribute(release, &known, a)).collect();
        for lines in known.batches.values() {
            let mut classes: BTreeMap<Vec<CellId>, BTreeMap<u32, usize>> = BTreeMap::new();
            for &line in lines {
                let person = known.person(&release.people, line);
                classes.entry(known.class(line)).or_default().entry(person).or_insert(line);
            }
            for (class, people) in classes {
                let lines: Vec<usize> = people.into_values().collect();
                let placed = if known.shape.ranges {
                    count_at_bounds(release, &known, &class, &lines)
                } else {
                    count_placed(release, &known, &children, &class, &lines, crowd)
                };
                let rate = placed as f64 / lines.len() as f64;
                lines.iter().for_each(|_| trials.add(rate, 0.0));
            }
        }
    }
    vec![trials.into_yield("downcoding", "the finer node had too few people".to_owned(), None).measured_only()]
}

/// Printed cells one level below.
struct ChildCells {
    below: BTreeMap<CellId, BTreeSet<CellId>>,
    child: BTreeMap<(CellId, Code), CellId>,
}

impl ChildCells {
    fn from_attribute(release: &AttackInput<'_>, known: &LinkedGroup<'_>, attribute: usize) -> Self {
        let book = &release.original.books[attribute];
        let printed: BTreeSet<CellId> = known.group.column(attribute).into_iter().flatten().copied().collect();
        let (mut below, mut child): (BTreeMap<CellId, BTreeSet<CellId>>, _) = (BTreeMap::new(), BTreeMap::new());
        for code in (0..book.codes() as Code).filter(|code| release.facts[attribute].counts[*code as usize] > 0) {
            for level in 1..book.levels() {
                let (coarse, fine) = (book.cell(code, level), book.cell(code, level - 1));
                if coarse == fine || coarse == SUPPRESSED && fine == SUPPRESSED {
                    continue;
                }
                child.insert((coarse, code), fine);
                if printed.contains(&book.cell(code, 0)) {
                    below.entry(coarse).or_default().insert(fine);
                }
            }
        }
        Self { below, child }
    }
}

/// Uses a range's outer intervals.
fn count_at_bounds(release: &AttackInput<'_>, known: &LinkedGroup<'_>, class: &[CellId], lines: &[usize]) -> usize {
    let ranges = known.shape.quasi.iter().zip(class).filter(|(_, cell)| is_range(**cell));
    let at_bounds = |(&attribute, &cell): (&usize, &CellId)| {
        let book = &release.original.books[attribute];
        let code = |line: &usize| release.original.batch.columns[attribute][known.origins[*line].row as usize];
        let positions: BTreeSet<u32> = lines.iter().filter_map(|line| book.position(code(line))).collect();
        positions.into_iter().filter(|&position| book.is_bound(cell, position)).count()
    };
    ranges.map(at_bounds).max().unwrap_or(0)
}

fn count_placed(
    release: &AttackInput<'_>,
    known: &LinkedGroup<'_>,
    children: &[ChildCells],
    class: &[CellId],
    lines: &[usize],
    crowd: usize,
) -> usize {
    let surely = |m: usize| lines.len().saturating_sub((m - 1) * (crowd - 1));
    let mut best: Option<(usize, usize)> = None;
    for (at, (children, cell)) in children.iter().zip(class).enumerate() {
        let m = children.below.get(cell).map_or(0, BTreeSet::len);
        if m < 2 {
            continue;
        }
        let claimed = (m * surely(m)).min(lines.len());
        if claimed > 0 && best.is_none_or(|(most, _)| claimed > most) {
            best = Some((claimed, at));
        }
    }
    let Some((_, at)) = best else { return 0 };
    let (attribute, cell) = (known.shape.quasi[at], class[at]);
    let mut real: BTreeMap<CellId, usize> = BTreeMap::new();
    for &line in lines {
        let code = release.original.batch.columns[attribute][known.origins[line].row as usize];
        if let Some(child) = children[at].child.get(&(cell, code)) {
            *real.entry(*child).or_default() += 1;
        }
    }
    let of_each = children[at].below.get(&cell).into_iter().flatten();
    let least = surely(children[at].below.get(&cell).map_or(0, BTreeSet::len));
    of_each.map(|child| real.get(child).copied().unwrap_or(0).min(least)).sum()
}
