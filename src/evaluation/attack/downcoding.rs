//! Downcoding: generalization that is no coarser than it must be can be undone in part [COH].
//!
//! At the node that is one level finer in one attribute, each child of a class has at most k − 1 of its people, for k would
//! have left there. Where n people have m children, at least n − (m − 1)(k − 1) of them are of each. The outsider takes the attribute that
//! places most people, and is right for as many of each child as there really are. Nothing is promised: where the ladder does not
//! hold that node, the claim is wrong.
//!
//! A range is no wider than its class: somebody is in its first interval, and somebody in its last. Of a class of n people that places two.

use super::release::{Known, Release};
use super::trials::{Trials, Yield};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::{CellId, Code, SUPPRESSED, is_range};

/// The share of the people of every class and batch that are placed below their printed cells, rightly.
pub fn run(release: &Release<'_>) -> Vec<Yield> {
    let crowd = release.promises.crowd.max(1);
    let mut trials = Trials::default();
    for known in release.known() {
        let children: Vec<Children> = known.shape.quasi.iter().map(|&a| Children::of(release, &known, a)).collect();
        for lines in known.batches.values() {
            let mut classes: BTreeMap<Vec<CellId>, BTreeMap<u32, usize>> = BTreeMap::new();
            for &line in lines {
                let person = known.person(&release.people, line);
                classes.entry(known.class(line)).or_default().entry(person).or_insert(line);
            }
            for (class, people) in classes {
                let lines: Vec<usize> = people.into_values().collect();
                let placed = if known.shape.ranges {
                    placed_at_bounds(release, &known, &class, &lines)
                } else {
                    placed(release, &known, &children, &class, &lines, crowd)
                };
                let rate = placed as f64 / lines.len() as f64;
                lines.iter().for_each(|_| trials.add(rate, 0.0));
            }
        }
    }
    vec![trials.sum_up("downcoding", "that the finer node had no crowd".to_owned(), None).measured_only()]
}

/// By cell of an attribute: the cells one level below it, among the values that have been printed.
struct Children {
    below: BTreeMap<CellId, BTreeSet<CellId>>,
    /// By cell and code: the child.
    child: BTreeMap<(CellId, Code), CellId>,
}

impl Children {
    fn of(release: &Release<'_>, known: &Known<'_>, attribute: usize) -> Self {
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

/// People of `lines`, one line each, that are placed rightly in the outer intervals of a range.
fn placed_at_bounds(release: &Release<'_>, known: &Known<'_>, class: &[CellId], lines: &[usize]) -> usize {
    let ranges = known.shape.quasi.iter().zip(class).filter(|(_, cell)| is_range(**cell));
    let at_bounds = |(&attribute, &cell): (&usize, &CellId)| {
        let book = &release.original.books[attribute];
        let code = |line: &usize| release.original.batch.columns[attribute][known.origins[*line].row as usize];
        let positions: BTreeSet<u32> = lines.iter().filter_map(|line| book.position(code(line))).collect();
        positions.into_iter().filter(|&position| book.is_bound(cell, position)).count()
    };
    ranges.map(at_bounds).max().unwrap_or(0)
}

/// People of `lines`, one line each, that are placed rightly.
fn placed(
    release: &Release<'_>,
    known: &Known<'_>,
    children: &[Children],
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
