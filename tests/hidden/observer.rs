//! Reference implementation of the requirement for hidden cells, on printed texts and sets of subjects.

use crate::hidden::small::{Bench, ILLNESSES};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::treatment::proposal::ProposedGroup;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{CellId, SUPPRESSED};

/// Subject 0: the record has no subject.
#[derive(Clone, Debug)]
pub struct Row {
    pub subject: u64,
    pub age: u8,
    pub illness: u8,
    pub income: u8,
}

impl Row {
    pub fn texts(&self) -> [String; 3] {
        [self.age.to_string(), ILLNESSES[self.illness as usize].to_owned(), self.income.to_string()]
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Cell {
    Star,
    Own,
}

/// By group: the row, and its cells by attribute.
pub struct Treated {
    pub groups: Vec<Vec<(u32, Vec<(usize, CellId)>)>>,
    pub batch: CodeBatch,
}

impl Treated {
    pub fn lines(&self, bench: &Bench) -> Vec<ProposedGroup> {
        self.groups.iter().enumerate().map(|(number, cells)| bench.encode_lines(number, cells)).collect()
    }

    pub fn change(&mut self, row: usize, side: usize, cell: Cell, bench: &Bench) {
        let cell = bench.cell(&self.batch, row, 1 + side, cell);
        for (group, shape) in self.groups.iter_mut().zip(bench.groups()) {
            for (_, cells) in group.iter_mut().filter(|(of, _)| *of as usize == row) {
                for (_, old) in cells.iter_mut().filter(|(a, _)| *a == 1 + side) {
                    *old = cell;
                }
            }
            // A line with only suppressed cells is not released.
            let guarded = |a: &usize| shape.quasi.contains(a) || shape.sensitive.contains(a);
            group.retain(|(_, cells)| cells.iter().any(|(a, cell)| guarded(a) && *cell != SUPPRESSED));
        }
    }
}

/// Returns the group, class and text from which an observer learns too much.
pub fn too_telling(bench: &Bench, rows: &[Row], treated: &Treated) -> Option<(usize, Vec<String>, String)> {
    let texts: Vec<[String; 3]> = rows.iter().map(Row::texts).collect();
    for ((number, group), shape) in treated.groups.iter().enumerate().zip(bench.groups()) {
        let people = |rows: &[u32]| -> BTreeSet<u64> {
            rows.iter().map(|row| treated.batch.subjects[*row as usize]).filter(|subject| *subject != 0).collect()
        };
        let everybody: Vec<u32> = group.iter().map(|(row, _)| *row).collect();
        let mut classes: BTreeMap<Vec<String>, Vec<(u32, BTreeMap<usize, String>)>> = BTreeMap::new();
        for (row, cells) in group {
            let print = |of: &[usize]| {
                let of = cells.iter().filter(|(a, _)| of.contains(a));
                of.map(|(a, cell)| (*a, bench.books[*a].text(*cell).to_owned())).collect::<BTreeMap<_, _>>()
            };
            let class = print(&shape.quasi).into_values().collect();
            classes.entry(class).or_default().push((*row, print(&shape.sensitive)));
        }
        let printable = |a: usize, text: &String| {
            let having: Vec<u32> = everybody.iter().copied().filter(|row| texts[*row as usize][a] == *text).collect();
            people(&having).len() >= bench.k
        };
        let silent = |a: usize, of: &[(u32, BTreeMap<usize, String>)]| of.iter().all(|(_, cells)| cells[&a] == "\"*\"");
        let all: Vec<_> = classes.values().flatten().cloned().collect();
        for (class, lines) in &classes {
            let asked: Vec<usize> = shape
                .sensitive
                .iter()
                .copied()
                .filter(|&a| !(silent(a, &all) && people(&everybody).len() >= bench.k))
                .collect();
            // Lines are compared in each attribute alone, and in all attributes that distinguish lines of the class.
            let mut views: Vec<Vec<usize>> = asked.iter().map(|&a| vec![a]).collect();
            views.push(asked.iter().copied().filter(|&a| !silent(a, lines)).collect());
            for view in views {
                let mut alike: BTreeMap<Vec<(usize, String)>, Vec<u32>> = BTreeMap::new();
                for (row, cells) in lines {
                    let hides = |a: &usize| cells[a] != texts[*row as usize][*a] || cells[a] == "\"*\"";
                    let marks = view.iter().filter(|a| hides(a)).map(|a| (*a, cells[a].clone())).collect();
                    alike.entry(marks).or_default().push(*row);
                }
                for (marks, rows) in alike.iter().filter(|(marks, _)| !marks.is_empty()) {
                    let crowd = people(rows).len();
                    let names_a_rare_value = marks.iter().any(|(a, _)| {
                        let values: BTreeSet<&String> = rows.iter().map(|row| &texts[*row as usize][*a]).collect();
                        values.into_iter().filter(|value| !printable(*a, value)).any(|value| {
                            let having: Vec<u32> =
                                rows.iter().copied().filter(|row| texts[*row as usize][*a] == *value).collect();
                            let nobody = having.iter().filter(|row| treated.batch.subjects[**row as usize] == 0);
                            2 * (people(&having).len() + nobody.count()) > crowd
                        })
                    });
                    if crowd < bench.k || names_a_rare_value {
                        return Some((number, class.clone(), format!("{marks:?}")));
                    }
                }
            }
        }
    }
    None
}
