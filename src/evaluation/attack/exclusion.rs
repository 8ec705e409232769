//! Exclusion: what would have left finer is not what has left coarse (docs/methods.md §12.3).
//!
//! The outsider knows the hierarchies and what has left. Of a class it strikes out everybody whose raw values are in a finer class of
//! the same batch: they would have left there. Who is left is as likely as another. Chance is the same outsider who strikes nobody
//! out, so that a rate above it is what exclusion gives.

use super::release::{Effort, Known, Release};
use super::trials::{Trials, Yield};
use crate::records::codebook::{CellId, Code};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};

/// Tries `effort.targets` lines of classes that are not exact.
pub fn run(release: &Release<'_>, effort: Effort, dice: &mut ChaCha8Rng) -> Vec<Yield> {
    let known = release.known();
    let views: Vec<View<'_>> = known.iter().map(|group| View::of(release, group)).collect();
    let mut places: Vec<(usize, usize)> = Vec::new();
    for (at, (view, group)) in views.iter().zip(&known).enumerate() {
        places.extend((0..group.group.lines).filter(|&line| view.is_coarse(line)).map(|line| (at, line)));
    }
    places.shuffle(dice);
    places.truncate(effort.targets);
    let mut trials = Trials::default();
    for (at, line) in places {
        let (right, chance) = views[at].narrowed(line);
        trials.add_to(&known[at].shape.name, right, chance);
    }
    vec![trials.sum_up("exclusion", "what left finer in the batch".to_owned(), Some(release.in_batch()))]
}

/// A group as its classes.
struct View<'a> {
    release: &'a Release<'a>,
    known: &'a Known<'a>,
    /// Lines by class, in the order of their batches.
    lines: BTreeMap<Vec<CellId>, Vec<usize>>,
    /// Batches that show a class, ascending.
    shown: BTreeMap<Vec<CellId>, BTreeSet<u64>>,
}

impl<'a> View<'a> {
    fn of(release: &'a Release<'a>, known: &'a Known<'a>) -> Self {
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

    /// How probably a line is its person's: with the others struck out, and without.
    fn narrowed(&self, line: usize) -> (f64, f64) {
        let (class, batch) = (self.known.class(line), self.known.origins[line].batch);
        let mut codes_of: BTreeMap<u32, BTreeSet<Vec<Code>>> = BTreeMap::new();
        for &member in &self.lines[&class] {
            if self.known.origins[member].batch == batch {
                let person = self.known.person(&self.release.people, member);
                codes_of.entry(person).or_default().insert(self.codes(member));
            }
        }
        let mut struck: BTreeMap<Vec<Code>, bool> = BTreeMap::new();
        let mut is_struck =
            |codes: &Vec<Code>| *struck.entry(codes.clone()).or_insert_with(|| self.leaves_finer(codes, &class, batch));
        let left = codes_of.values().filter(|codes| !codes.iter().all(&mut is_struck)).count();
        let own = self.known.person(&self.release.people, line);
        let own_left = codes_of.get(&own).is_some_and(|codes| !codes.iter().all(&mut is_struck));
        (if own_left { 1.0 / left as f64 } else { 0.0 }, 1.0 / codes_of.len().max(1) as f64)
    }

    /// The raw values of a line.
    fn codes(&self, line: usize) -> Vec<Code> {
        let row = self.known.origins[line].row as usize;
        self.known.shape.quasi.iter().map(|&a| self.release.original.batch.columns[a][row]).collect()
    }

    /// Whether raw values would have left in a finer class than `class`.
    fn leaves_finer(&self, codes: &[Code], class: &[CellId], batch: u64) -> bool {
        // By attribute, the cells of the value from the raw one up to that of the class.
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
        self.is_shown(&mut Vec::with_capacity(class.len()), &finer, class, batch)
    }

    /// Whether a class of the cells of `finer`, other than `class`, is shown in `batch`. Only prefixes that some class has
    /// are followed.
    fn is_shown(&self, prefix: &mut Vec<CellId>, finer: &[Vec<CellId>], class: &[CellId], batch: u64) -> bool {
        let at = prefix.len();
        if at == finer.len() {
            return prefix != class && self.shown.get(prefix).is_some_and(|batches| batches.contains(&batch));
        }
        for &cell in &finer[at] {
            prefix.push(cell);
            let next = self.shown.range(prefix.clone()..).next();
            let found =
                next.is_some_and(|(next, _)| next.starts_with(prefix)) && self.is_shown(prefix, finer, class, batch);
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
