//! Exclusion attack: a coarse class excludes subjects that fit a finer class of its batch (docs/internals/methods.md
//! §12.3).

use super::attack_input::{AttackInput, LinkedGroup};
use super::trials::{AttackTrials, AttackYield};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::{CellId, Code, SUPPRESSED};

/// Judges each line, because class rates always sum to 1.
pub fn run(release: &AttackInput<'_>) -> Vec<AttackYield> {
    let mut trials = AttackTrials::default();
    for group in &release.linked_groups() {
        let view = GroupClasses::from_group(release, group);
        for members in view.lines.values().filter(|members| view.is_coarse(members[0])) {
            let of_batch = |a: &usize, b: &usize| group.origins[*a].batch == group.origins[*b].batch;
            for members in members.chunk_by(of_batch) {
                let narrowed = view.narrowed_probabilities(members);
                narrowed.iter().for_each(|(right, chance)| trials.add_to_group(&group.shape.name, *right, *chance));
            }
        }
    }
    let found =
        trials.into_yield("exclusion", "lines released finer in the batch".to_owned(), Some(release.batch_bound()));
    vec![found.judge_each_trial()]
}

struct GroupClasses<'a> {
    release: &'a AttackInput<'a>,
    known: &'a LinkedGroup<'a>,
    lines: BTreeMap<Vec<CellId>, Vec<usize>>,
    shown: BTreeMap<Vec<CellId>, BTreeSet<u64>>,
}

impl<'a> GroupClasses<'a> {
    fn from_group(release: &'a AttackInput<'a>, known: &'a LinkedGroup<'a>) -> Self {
        let (mut lines, mut shown) = (BTreeMap::new(), BTreeMap::new());
        for (&batch, of_batch) in &known.batches {
            for &line in of_batch {
                let class = known.class(line);
                lines.entry(class.clone()).or_insert_with(Vec::new).push(line);
                shown.entry(class).or_insert_with(BTreeSet::new).insert(batch);
            }
        }
        Self { release, known, lines, shown }
    }

    fn is_coarse(&self, line: usize) -> bool {
        let cells = self.known.class(line);
        self.known.shape.quasi.iter().zip(&cells).any(|(&a, &cell)| !self.release.facts[a].get(cell).exact)
    }

    /// Probability of each line's subject, with and without exclusion.
    fn narrowed_probabilities(&self, members: &[usize]) -> Vec<(f64, f64)> {
        let Some(&first) = members.first() else { return Vec::new() };
        let (class, batch) = (self.known.class(first), self.known.origins[first].batch);
        let person = |member: usize| self.known.person(&self.release.people, member);
        let mut codes_of: BTreeMap<u32, BTreeSet<Vec<Code>>> = BTreeMap::new();
        for &member in members {
            codes_of.entry(person(member)).or_default().insert(self.codes(member));
        }
        let mut struck: BTreeMap<Vec<Code>, bool> = BTreeMap::new();
        let mut is_struck = |codes: &Vec<Code>| {
            *struck.entry(codes.clone()).or_insert_with(|| self.fits_finer_class(codes, &class, batch))
        };
        let is_left =
            |(person, codes): (&u32, &BTreeSet<Vec<Code>>)| (!codes.iter().all(&mut is_struck)).then_some(*person);
        let left: BTreeSet<u32> = codes_of.iter().filter_map(is_left).collect();
        let rate = |member: usize| if left.contains(&person(member)) { 1.0 / left.len() as f64 } else { 0.0 };
        members.iter().map(|&member| (rate(member), 1.0 / codes_of.len() as f64)).collect()
    }

    fn codes(&self, line: usize) -> Vec<Code> {
        let row = self.known.origins[line].row as usize;
        self.known.shape.quasi.iter().map(|&a| self.release.original.batch.columns[a][row]).collect()
    }

    fn fits_finer_class(&self, codes: &[Code], class: &[CellId], batch: u64) -> bool {
        if self.known.shape.ranges {
            return self.is_in_finer_range(codes, class, batch);
        }
        // From the raw value up to the class.
        let mut finer: Vec<Vec<CellId>> = Vec::with_capacity(class.len());
        for ((&attribute, &code), &cell) in self.known.shape.quasi.iter().zip(codes).zip(class) {
            let book = &self.release.original.books[attribute];
            let mut cells = Vec::new();
            for level in 0..book.levels() {
                let at = book.cell(code, level);
                if cells.last() != Some(&at) {
                    cells.push(at);
                }
                if at == cell {
                    break;
                }
            }
            finer.push(cells);
        }
        self.is_finer_class_shown(&mut Vec::with_capacity(class.len()), &finer, class, batch)
    }

    /// The other class covers the values, with no cell coarser than in `class`.
    fn is_in_finer_range(&self, codes: &[Code], class: &[CellId], batch: u64) -> bool {
        let is_finer = |cells: &[CellId]| {
            let attributes = self.known.shape.quasi.iter().map(|&attribute| &self.release.facts[attribute]);
            let mut cells = attributes.zip(cells).zip(class).zip(codes);
            cells.all(|(((facts, &cell), &wide), &code)| {
                let within = || facts.get(cell).codes.iter().all(|code| facts.holds(wide, *code));
                facts.holds(cell, code) && (cell == wide || wide == SUPPRESSED || cell != SUPPRESSED && within())
            })
        };
        let mut others =
            self.shown.iter().filter(|(other, batches)| other.as_slice() != class && batches.contains(&batch));
        others.any(|(other, _)| is_finer(other))
    }

    /// Follows only existing prefixes.
    fn is_finer_class_shown(
        &self,
        prefix: &mut Vec<CellId>,
        finer: &[Vec<CellId>],
        class: &[CellId],
        batch: u64,
    ) -> bool {
        let at = prefix.len();
        if at == finer.len() {
            return prefix != class && self.shown.get(prefix).is_some_and(|batches| batches.contains(&batch));
        }
        for &cell in &finer[at] {
            prefix.push(cell);
            let next = self.shown.range(prefix.clone()..).next();
            let found = next.is_some_and(|(next, _)| next.starts_with(prefix))
                && self.is_finer_class_shown(prefix, finer, class, batch);
            prefix.pop();
            if found {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
