//! The counting guard between disjoint groups (METHODS §10, linking guard): what a reader can join by counting alone.
//!
//! # The claim
//! Let N be the largest number of fragments that one group of the batch has. For two groups A ≠ B, a non-empty set X of
//! cells of A that occur together and such a set Y of B (a cell is a column and a coverage; suppressed cells say nothing
//! and are left out), let n_X and m_Y be the rows whose fragment contains X, Y. Where n_X + m_Y ≥ N + 1, some record
//! must carry both, whoever joins the fragments. [`forced_pair`] is true exactly when for some such pair fewer than k
//! distinct subjects carry both X and Y. Fragments that contradict themselves are answered with true as well.
//!
//! # Why the answer is exact
//! 1. *One side is heavy.* n_X + m_Y > N needs one of them above N/2. Each ordered pair (A, B) is searched with X heavy, so
//!    every cell of X is in more than half of the rows: at most one a column. Y is any set with m_Y ≥ N + 1 − n_X.
//! 2. *Intervals of X.* The subjects S(X, Y) on the joint rows only fall as X grows, and so does n_X. So for all X between
//!    P and Q ⊇ P at once: if every Y with m_Y ≥ N + 1 − n_P has S(Q, Y) ≥ k, none of them is a violation. The same holds
//!    for a union of intervals, with the smallest threshold and the rows that all their Q share. Otherwise the union is
//!    halved, and a single interval is divided at one cell; at P = Q the bound is the definition itself. The search for X is
//!    exponential in the heavy cells of a group at worst, and mostly ends at the first question.
//! 3. *Thin sets.* For fixed rows Q, the question is whether a set Y in ≥ t rows has < k subjects in Q. Call a tuple of B
//!    thick if its own rows have ≥ k subjects in Q. Y inside a thick tuple is no answer (S is monotone), so all rows
//!    of an answer lie in the other, thin tuples, and these are searched depth first: rows counted in thin tuples alone
//!    must reach t, and sets that are not closed are left out (their closure has the same rows, so it is an answer too).
//! 4. *Portable rows.* Fewer than k subjects carry at most J rows: those of the k − 1 busiest subjects and the rows without
//!    a subject. So an answer has at least t − J rows outside Q, which falls as Y grows and prunes the rest.
//!
//! Runtime: O(cells) to read a batch in, one step where no group has a cell above N/2, else O(rows · width) a question,
//! with a factor of at most 2^width on the rows of thin tuples.
//!
//! Only conjunctions of published cells are judged: neither unions of cells nor joins over three and more groups.
//!
//! This is written independently of the treatment that avoids forced pairs, and shares no code with it: it is the check.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The fragments of one group of a batch as they are about to leave.
pub struct Fragments {
    /// By column: the number of each coverage, from 1.
    numbers: Vec<Numbers<u128>>,
    runs: Runs,
    /// A call to [`Fragments::add`] did not fit the width.
    misfit: bool,
}

impl Fragments {
    /// No fragments yet, of `width` cells each.
    #[must_use]
    pub fn new(width: usize) -> Self {
        let numbers = (0..width).map(|_| Numbers::default()).collect();
        Self { numbers, runs: Runs { width, carried: vec![0], ..Runs::default() }, misfit: false }
    }

    /// Adds one fragment for each of `rows` (indices into the batch, each at most once a group). `cells` are coverage
    /// digests by column; `None` is a suppressed cell. The same cells may be added again with other rows.
    pub fn add(&mut self, cells: &[Option<u128>], rows: &[u32]) {
        if cells.len() != self.runs.width {
            self.misfit = true;
            return;
        }
        for (cell, numbers) in cells.iter().zip(&mut self.numbers) {
            let number = cell.map_or(0, |digest| {
                let next = self.runs.carried.len() as u32;
                let number = *numbers.entry(digest).or_insert(next);
                if number == next {
                    self.runs.carried.push(0);
                }
                self.runs.carried[number as usize] += rows.len() as u32;
                number
            });
            self.runs.cells.push(number);
        }
        self.runs.rows.extend_from_slice(rows);
        self.runs.ends.push(self.runs.rows.len());
    }

    /// Every row at most once and within the batch.
    fn is_sound(&self, batch: usize) -> bool {
        let mut taken = Rows::none(batch);
        !self.misfit && self.runs.rows.iter().all(|&row| (row as usize) < batch && taken.insert(row))
    }
}

/// True if counting joins two groups below `k`: see the module for the claim. `subjects` is by row of the batch; 0 is no
/// subject and supports nobody. Also true where a row is twice in one group or not in `subjects`, or where cells did not
/// fit the width of their group, since nothing can be proven of such a batch.
#[must_use]
pub fn forced_pair(groups: &[Fragments], subjects: &[u64], k: usize) -> bool {
    if !groups.iter().all(|group| group.is_sound(subjects.len())) {
        return true;
    }
    let most = groups.iter().map(|group| group.runs.rows.len()).max().unwrap_or(0);
    let heavy: Vec<Vec<Rows>> = groups.iter().map(|group| group.runs.heavy(most, subjects.len())).collect();
    if heavy.iter().all(Vec::is_empty) {
        return false;
    }
    let intervals: Vec<Vec<Interval>> = heavy
        .iter()
        .map(|cells| (0..cells.len()).map(|lightest| Interval::down_to(cells, lightest)).collect())
        .collect();
    let mut search = Search::new(subjects, most, k);
    groups.iter().enumerate().any(|(b, group)| {
        let top = group.runs.carried.iter().copied().max().unwrap_or(0) as usize;
        let others = intervals.iter().enumerate().filter(|(a, _)| *a != b).flat_map(|(_, of_group)| of_group);
        let mut against: Vec<&Interval> = others.filter(|x| x.carried + top > most).collect();
        against.sort_by_key(|x| std::cmp::Reverse(x.carried));
        let Some(heaviest) = against.first() else { return false };
        let floor = most + 1 - heaviest.carried;
        search.violated(&group.runs.narrowed(floor), floor, &against)
    })
}

/// Tuples of one group and the rows that carry them.
#[derive(Default)]
struct Runs {
    width: usize,
    /// `width` numbers a run; 0 says nothing. Numbers of different columns differ.
    cells: Vec<u32>,
    /// By run: where its rows end in `rows`.
    ends: Vec<usize>,
    rows: Vec<u32>,
    /// By number of a cell: how many rows carry it.
    carried: Vec<u32>,
}

impl Runs {
    fn iter(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .enumerate()
            .map(|(run, (start, &end))| (&self.cells[run * self.width..(run + 1) * self.width], &self.rows[start..end]))
    }

    /// The rows of each cell that more than half of `most` carry, heaviest first.
    fn heavy(&self, most: usize, batch: usize) -> Vec<Rows> {
        let mut cells: Vec<usize> =
            (1..self.carried.len()).filter(|&cell| 2 * self.carried[cell] as usize > most).collect();
        cells.sort_by_key(|&cell| (std::cmp::Reverse(self.carried[cell]), cell));
        let mut found = vec![Rows::none(batch); cells.len()];
        for (tuple, rows) in self.iter() {
            for (&cell, bits) in cells.iter().zip(&mut found) {
                if tuple.contains(&(cell as u32)) {
                    for &row in rows {
                        bits.insert(row);
                    }
                }
            }
        }
        found
    }

    /// The same rows with only the cells that at least `floor` rows carry; equal tuples become one, empty ones go.
    fn narrowed(&self, floor: usize) -> Self {
        let mut carried = vec![0];
        let mut renumbered = vec![0; self.carried.len()];
        for (&count, number) in self.carried.iter().zip(&mut renumbered).skip(1) {
            if count as usize >= floor {
                *number = carried.len() as u32;
                carried.push(count);
            }
        }
        let kept: Vec<u32> = self.cells.iter().map(|&cell| renumbered[cell as usize]).collect();
        let mut classes: Numbers<&[u32]> = Numbers::default();
        let mut cells = Vec::new();
        let mut ends: Vec<usize> = Vec::new();
        let mut class_of = Vec::with_capacity(self.ends.len());
        for (run, (_, rows)) in self.iter().enumerate() {
            let tuple = &kept[run * self.width..(run + 1) * self.width];
            if tuple.iter().all(|&cell| cell == 0) {
                class_of.push(None);
                continue;
            }
            let class = *classes.entry(tuple).or_insert(ends.len() as u32) as usize;
            if class == ends.len() {
                ends.push(0);
                cells.extend_from_slice(tuple);
            }
            ends[class] += rows.len();
            class_of.push(Some(class));
        }
        let mut next = 0;
        let mut place: Vec<usize> = Vec::with_capacity(ends.len());
        for end in &mut ends {
            place.push(next);
            next += *end;
            *end = next;
        }
        let mut rows = vec![0; next];
        for ((_, own), class) in self.iter().zip(class_of) {
            if let Some(class) = class {
                rows[place[class]..place[class] + own.len()].copy_from_slice(own);
                place[class] += own.len();
            }
        }
        Self { width: self.width, cells, ends, rows, carried }
    }
}

/// All sets X of one group from `P` (its rows are `least`) up to `P` and all of `between`.
struct Interval<'a> {
    least: Rows,
    /// Rows of `least`: n_P.
    carried: usize,
    /// Rows of the further cells, heaviest first, none of them implied by P.
    between: Vec<&'a Rows>,
    /// The rows of P and all further cells: Q.
    joint: Rows,
}

impl<'a> Interval<'a> {
    /// The sets whose lightest cell is the one named, so that their threshold is close to its own.
    fn down_to(cells: &'a [Rows], lightest: usize) -> Self {
        Self::new(cells[lightest].clone(), cells[..lightest].iter())
    }

    fn new(least: Rows, further: impl Iterator<Item = &'a Rows>) -> Self {
        let between: Vec<&Rows> = further.filter(|cell| !least.is_within(cell)).collect();
        let joint = between.iter().fold(least.clone(), |joint, cell| joint.and(cell));
        Self { carried: least.count(), least, between, joint }
    }

    /// The sets with the lightest further cell and those without it; none where one set is all there is.
    fn divided(&self) -> Option<[Self; 2]> {
        let (lightest, rest) = self.between.split_last()?;
        let with = Self::new(self.least.and(lightest), rest.iter().copied());
        Some([with, Self::new(self.least.clone(), rest.iter().copied())])
    }
}

/// One batch under one k.
struct Search {
    most: usize,
    k: usize,
    /// J of the module: the rows that k − 1 subjects can carry.
    portable: usize,
    /// By row, numbers from 1; 0 is nobody.
    subject_of: Vec<u32>,
    tally: Tally,
}

impl Search {
    fn new(subjects: &[u64], most: usize, k: usize) -> Self {
        let mut numbers: Numbers<u64> = Numbers::default();
        let mut rows_of = vec![0usize];
        let mut subject_of = Vec::with_capacity(subjects.len());
        for &subject in subjects {
            let number = if subject == 0 { 0 } else { *numbers.entry(subject).or_insert(rows_of.len() as u32) };
            if number as usize == rows_of.len() {
                rows_of.push(0);
            }
            rows_of[number as usize] += 1;
            subject_of.push(number);
        }
        rows_of[1..].sort_unstable_by(|a, b| b.cmp(a));
        let portable = rows_of.iter().take(k.max(1)).sum();
        Self { most, k, portable, subject_of, tally: Tally { seen: vec![0; rows_of.len()], mark: 0 } }
    }

    /// Is there a violating X in one of `intervals` (heaviest first) with a Y of `runs`, narrowed to `floor`?
    fn violated(&mut self, runs: &Runs, floor: usize, intervals: &[&Interval]) -> bool {
        let Some((first, others)) = intervals.split_first() else { return false };
        let least = self.most + 1 - first.carried;
        // Fewer cells, fewer tuples: worth a pass when the threshold has doubled.
        let fewer = (least >= 2 * floor).then(|| runs.narrowed(least));
        let (runs, floor) = fewer.as_ref().map_or((runs, floor), |fewer| (fewer, least));
        // Thresholds far apart have little to share: a question each.
        let alike = intervals.partition_point(|x| self.most + 1 - x.carried < 2 * least);
        if alike < intervals.len() {
            let (heavier, lighter) = intervals.split_at(alike);
            return self.violated(runs, floor, heavier) || self.violated(runs, floor, lighter);
        }
        let joint = others.iter().fold(first.joint.clone(), |joint, x| joint.and(&x.joint));
        if !self.has_thin_set(runs, least, &joint) {
            return false;
        }
        if !others.is_empty() {
            let (heavier, lighter) = intervals.split_at(intervals.len() / 2);
            return self.violated(runs, floor, heavier) || self.violated(runs, floor, lighter);
        }
        match first.divided() {
            None => true,
            // Where X is no longer heavy, Y would have to be: that pair is met with the groups exchanged.
            Some(parts) => {
                let most = self.most;
                parts.iter().filter(|x| 2 * x.carried > most).any(|x| self.violated(runs, floor, &[x]))
            }
        }
    }

    /// Is there a set in at least `least` rows of `runs` with fewer than k subjects on the rows `joint`?
    fn has_thin_set(&mut self, runs: &Runs, least: usize, joint: &Rows) -> bool {
        let mut thin = ThinRuns {
            width: runs.width,
            k: self.k,
            least,
            least_outside: least.saturating_sub(self.portable),
            load: vec![Load::default(); runs.carried.len()],
            tally: &mut self.tally,
            cells: Vec::new(),
            weight: Vec::new(),
            subjects: Vec::new(),
            ends: Vec::new(),
            thick: Postings::default(),
        };
        let mut thick = Vec::new();
        let mut all = Load::default();
        for (tuple, rows) in runs.iter() {
            let start = thin.subjects.len();
            thin.tally.restart();
            let mut weight = Load::default();
            for &row in rows {
                let inside = joint.contains(row);
                weight.rows += 1;
                weight.outside += u32::from(!inside);
                let subject = self.subject_of[row as usize];
                if inside && thin.tally.is_new(subject) {
                    thin.subjects.push(subject);
                    if thin.subjects.len() - start >= self.k {
                        break;
                    }
                }
            }
            if thin.subjects.len() - start >= self.k {
                thin.subjects.truncate(start);
                thick.extend_from_slice(tuple);
            } else {
                all.add(weight);
                thin.cells.extend_from_slice(tuple);
                thin.weight.push(weight);
                thin.ends.push(thin.subjects.len());
            }
        }
        if !thin.suffices(all) {
            return false;
        }
        thin.thick = Postings::new(thick, runs.width, runs.carried.len());
        let left = thin.without_hopeless();
        thin.descend(&left, 0, &mut vec![0; runs.width])
    }
}

/// The tuples that have fewer than k subjects on the joint rows, and the search through their common parts.
struct ThinRuns<'a> {
    width: usize,
    k: usize,
    least: usize,
    /// `least` − J: how many rows of an answer cannot be joint ones.
    least_outside: usize,
    cells: Vec<u32>,
    weight: Vec<Load>,
    /// The subjects of each tuple on the joint rows, fewer than k each, up to `ends`.
    subjects: Vec<u32>,
    ends: Vec<usize>,
    thick: Postings,
    /// Scratch by cell, zero between uses.
    load: Vec<Load>,
    tally: &'a mut Tally,
}

impl ThinRuns<'_> {
    fn suffices(&self, load: Load) -> bool {
        load.rows as usize >= self.least && load.outside as usize >= self.least_outside
    }

    fn cell(&self, run: u32, column: usize) -> u32 {
        self.cells[run as usize * self.width + column]
    }

    /// Blanks the cells that no answer can have, and returns the tuples that still can be part of one.
    fn without_hopeless(&mut self) -> Vec<u32> {
        for (run, weight) in self.weight.iter().enumerate() {
            for &cell in &self.cells[run * self.width..(run + 1) * self.width] {
                self.load[cell as usize].add(*weight);
            }
        }
        let hopeless: Vec<bool> = self.load.iter().map(|load| !self.suffices(*load)).collect();
        self.load.fill(Load::default());
        for cell in &mut self.cells {
            if hopeless[*cell as usize] {
                *cell = 0;
            }
        }
        let tuple = |run: u32| &self.cells[run as usize * self.width..(run as usize + 1) * self.width];
        (0..self.weight.len() as u32)
            .filter(|&run| tuple(run).iter().any(|&cell| cell != 0) && !self.thick.contain(tuple(run)))
            .collect()
    }

    /// Is there an answer that contains `set` and otherwise only cells of the columns at and after `from`? `runs` are
    /// the thin tuples that contain `set`, which is empty at the start only (`from` = 0).
    fn descend(&mut self, runs: &[u32], from: usize, set: &mut [u32]) -> bool {
        if from > 0 {
            // Not closed: the set that has this cell as well is met elsewhere, with the same rows.
            if (0..from).any(|column| set[column] == 0 && self.is_uniform(runs, column)) {
                return false;
            }
            if self.has_few_subjects(runs) && !self.thick.contain(set) {
                return true;
            }
        }
        for column in from..self.width {
            for (cell, part) in self.parts(runs, column) {
                set[column] = cell;
                if self.descend(&part, column + 1, set) {
                    return true;
                }
                set[column] = 0;
                if part.len() == runs.len() {
                    return false;
                }
            }
        }
        false
    }

    fn is_uniform(&self, runs: &[u32], column: usize) -> bool {
        let cell = self.cell(runs[0], column);
        cell != 0 && runs.iter().all(|&run| self.cell(run, column) == cell)
    }

    fn has_few_subjects(&mut self, runs: &[u32]) -> bool {
        self.tally.restart();
        let mut count = 0;
        for &run in runs {
            let run = run as usize;
            let start = if run == 0 { 0 } else { self.ends[run - 1] };
            for &subject in &self.subjects[start..self.ends[run]] {
                count += usize::from(self.tally.is_new(subject));
            }
            if count >= self.k {
                return false;
            }
        }
        count < self.k
    }

    /// `runs` by their cell of `column`, where enough rows have it.
    fn parts(&mut self, runs: &[u32], column: usize) -> Vec<(u32, Vec<u32>)> {
        for &run in runs {
            let cell = self.cell(run, column) as usize;
            self.load[cell].add(self.weight[run as usize]);
        }
        self.load[0] = Load::default();
        let mut parts: Vec<(u32, Vec<u32>)> = Vec::new();
        for &run in runs {
            let cell = self.cell(run, column);
            let load = self.load[cell as usize];
            if cell == 0 || !self.suffices(load) {
                continue;
            }
            if load.part == 0 {
                parts.push((cell, Vec::new()));
                self.load[cell as usize].part = parts.len() as u32;
            }
            parts[self.load[cell as usize].part as usize - 1].1.push(run);
        }
        for &run in runs {
            let cell = self.cell(run, column) as usize;
            self.load[cell] = Load::default();
        }
        parts
    }
}

/// Rows of a cell or tuple; how many of them are outside the joint rows; its part of the column, from 1.
#[derive(Clone, Copy, Default)]
struct Load {
    rows: u32,
    outside: u32,
    part: u32,
}

impl Load {
    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.outside += other.outside;
    }
}

/// Tuples, found by their cells.
#[derive(Default)]
struct Postings {
    width: usize,
    tuples: Vec<u32>,
    /// By cell: where its tuples end in `found`.
    ends: Vec<usize>,
    found: Vec<u32>,
}

impl Postings {
    fn new(tuples: Vec<u32>, width: usize, cells: usize) -> Self {
        let mut ends = vec![0; cells];
        for &cell in &tuples {
            ends[cell as usize] += 1;
        }
        ends[0] = 0;
        let mut total = 0;
        for end in &mut ends {
            let count = std::mem::replace(end, total);
            total += count;
        }
        let mut found = vec![0; total];
        for (place, &cell) in tuples.iter().enumerate() {
            if cell != 0 {
                found[ends[cell as usize]] = (place / width) as u32;
                ends[cell as usize] += 1;
            }
        }
        Self { width, tuples, ends, found }
    }

    /// Does one of the tuples contain the cells of `set` (0 is no cell; some cell is there)?
    fn contain(&self, set: &[u32]) -> bool {
        let of = |cell: u32| &self.found[self.ends[cell as usize - 1]..self.ends[cell as usize]];
        let fewest = set.iter().filter(|&&cell| cell != 0).map(|&cell| of(cell)).min_by_key(|found| found.len());
        fewest.is_some_and(|found| {
            found.iter().any(|&tuple| {
                let tuple = &self.tuples[tuple as usize * self.width..][..self.width];
                set.iter().zip(tuple).all(|(&cell, &own)| cell == 0 || cell == own)
            })
        })
    }
}

/// Counts distinct subjects without clearing a set each time.
struct Tally {
    /// By subject: the last count that met it. Place 0, nobody, is never new.
    seen: Vec<u32>,
    mark: u32,
}

impl Tally {
    fn restart(&mut self) {
        if self.mark == u32::MAX {
            self.seen.fill(0);
            self.mark = 0;
        }
        self.mark += 1;
    }

    fn is_new(&mut self, subject: u32) -> bool {
        subject != 0 && std::mem::replace(&mut self.seen[subject as usize], self.mark) != self.mark
    }
}

/// A set of rows, one bit each.
#[derive(Clone)]
struct Rows(Vec<u64>);

impl Rows {
    fn none(batch: usize) -> Self {
        Self(vec![0; batch.div_ceil(64)])
    }

    /// True if the row was not there.
    fn insert(&mut self, row: u32) -> bool {
        let word = &mut self.0[row as usize / 64];
        let bit = 1 << (row % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    fn contains(&self, row: u32) -> bool {
        self.0[row as usize / 64] >> (row % 64) & 1 == 1
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }

    fn is_within(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }
}

/// Numbers of keys that are digests already or small: a multiplication spreads them, and order is never asked for.
type Numbers<K> = HashMap<K, u32, BuildHasherDefault<Fold>>;

#[derive(Default)]
struct Fold(u64);

impl Fold {
    fn fold(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.fold(word);
    }

    fn write_u128(&mut self, digest: u128) {
        self.fold(digest as u64);
        self.fold((digest >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// By group: the fragment of each row, if it has one.
    type Table = Vec<Vec<Option<Vec<Option<u128>>>>>;

    /// The groups as the verifier would hand them over; `by_row` adds one row a call, otherwise one run a call.
    fn fragments(table: &Table, by_row: bool) -> Vec<Fragments> {
        let of_group = |rows: &Vec<Option<Vec<Option<u128>>>>| {
            let width = rows.iter().flatten().map(Vec::len).next().unwrap_or(0);
            let mut group = Fragments::new(width);
            let mut runs: BTreeMap<&Vec<Option<u128>>, Vec<u32>> = BTreeMap::new();
            for (row, cells) in (0..).zip(rows) {
                let Some(cells) = cells else { continue };
                if by_row {
                    group.add(cells, &[row]);
                } else {
                    runs.entry(cells).or_default().push(row);
                }
            }
            for (cells, rows) in runs {
                group.add(cells, &rows);
            }
            group
        };
        table.iter().map(of_group).collect()
    }

    /// All non-empty sets of cells that occur together in one group, with their rows: the definition, letter by letter.
    fn all_sets(rows: &[Option<Vec<Option<u128>>>]) -> BTreeMap<Vec<(usize, u128)>, BTreeSet<usize>> {
        let mut sets: BTreeMap<Vec<(usize, u128)>, BTreeSet<usize>> = BTreeMap::new();
        for (row, cells) in rows.iter().enumerate() {
            let Some(cells) = cells else { continue };
            let said: Vec<(usize, u128)> = cells.iter().enumerate().filter_map(|(c, v)| v.map(|v| (c, v))).collect();
            for choice in 1..1u32 << said.len() {
                let set =
                    said.iter().enumerate().filter(|(i, _)| choice >> i & 1 == 1).map(|(_, cell)| *cell).collect();
                sets.entry(set).or_default().insert(row);
            }
        }
        sets
    }

    fn brute_force(table: &Table, subjects: &[u64], k: usize) -> bool {
        let most = table.iter().map(|rows| rows.iter().flatten().count()).max().unwrap_or(0);
        let sets: Vec<_> = table.iter().map(|rows| all_sets(rows)).collect();
        let violated = |x: &BTreeSet<usize>, y: &BTreeSet<usize>| {
            let joint: BTreeSet<u64> = x.intersection(y).map(|&row| subjects[row]).filter(|s| *s != 0).collect();
            x.len() + y.len() > most && joint.len() < k
        };
        (0..sets.len())
            .any(|a| (a + 1..sets.len()).any(|b| sets[a].values().any(|x| sets[b].values().any(|y| violated(x, y)))))
    }

    fn agrees(table: &Table, subjects: &[u64], k: usize) -> Result<(), TestCaseError> {
        let expected = brute_force(table, subjects, k);
        prop_assert_eq!(forced_pair(&fragments(table, false), subjects, k), expected);
        prop_assert_eq!(forced_pair(&fragments(table, true), subjects, k), expected);
        Ok(())
    }

    /// Value 0 of a column is chosen `skew` times more often than each other one.
    fn cell(skew: u32) -> impl Strategy<Value = Option<u128>> {
        prop_oneof![1 => Just(None), skew => Just(Some(0)), 2 => (1..4u128).prop_map(Some)]
    }

    fn table(rows: usize) -> impl Strategy<Value = Table> {
        let group = move |(width, skews): (usize, Vec<u32>)| {
            let cells: Vec<_> = skews.into_iter().take(width).map(cell).collect();
            prop::collection::vec(prop::option::weighted(0.95, cells), rows)
        };
        prop::collection::vec((1..=4usize, prop::collection::vec(1..40u32, 4)).prop_flat_map(group), 2..=3)
    }

    fn batch() -> impl Strategy<Value = (Table, Vec<u64>)> {
        (1..=16usize, 1..20u64).prop_flat_map(|(rows, people)| (table(rows), prop::collection::vec(0..=people, rows)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn answers_as_the_definition_does((table, subjects) in batch(), k in 0..5usize) {
            agrees(&table, &subjects, k)?;
        }
    }

    /// Rows that all carry one fragment a group, and every row its own subject.
    fn alone(columns: &[&[Option<u128>]]) -> (Table, Vec<u64>) {
        let table = columns.iter().map(|column| column.iter().map(|cell| Some(vec![*cell])).collect()).collect();
        (table, (1..).take(columns[0].len()).collect())
    }

    #[test]
    fn a_constant_column_forces_every_rare_cell() {
        // METHODS §10: five records, pulse all "high", one age "70+".
        let (high, young, old) = (Some(1), Some(2), Some(3));
        let (table, subjects) = alone(&[&[high; 5], &[young, young, young, young, old]]);
        assert!(forced_pair(&fragments(&table, false), &subjects, 2));
        let (recoded, subjects) = alone(&[&[high; 5], &[young, young, young, young, None]]);
        assert!(!forced_pair(&fragments(&recoded, false), &subjects, 4));
        assert!(forced_pair(&fragments(&recoded, false), &subjects, 5));
    }

    #[test]
    fn only_people_count() {
        let (table, _) = alone(&[&[Some(1); 4], &[Some(2); 4]]);
        let groups = fragments(&table, false);
        assert!(!forced_pair(&groups, &[1, 2, 3, 3], 3));
        assert!(forced_pair(&groups, &[1, 2, 2, 2], 3));
        assert!(forced_pair(&groups, &[1, 2, 0, 0], 3));
    }

    #[test]
    fn one_record_less_than_forced_is_free() {
        let (a, b) = (Some(1), Some(2));
        // 3 + 2 of 5 rows: the two may be apart, whoever has them in truth.
        let (free, subjects) = alone(&[&[a, a, a, b, b], &[a, b, b, a, b]]);
        assert!(!forced_pair(&fragments(&free, false), &subjects[..], 1));
        // 4 + 2 of 5: one record at least has both, and one has.
        let (forced, _) = alone(&[&[a, a, a, a, b], &[a, b, b, b, a]]);
        assert!(!forced_pair(&fragments(&forced, false), &subjects, 1));
        assert!(forced_pair(&fragments(&forced, false), &subjects, 2));
    }

    #[test]
    fn sets_between_cell_and_tuple_are_judged() {
        // Every single cell and every full tuple of B is harmless beside the constant; its first two cells (5, 6) are not.
        let c = |values: [u128; 3]| Some(values.iter().map(|v| (*v != 0).then_some(*v)).collect::<Vec<_>>());
        let b: Vec<_> = vec![c([5, 6, 0]), c([5, 6, 0]), c([5, 0, 0]), c([5, 0, 0]), c([0, 6, 0]), c([0, 6, 0])];
        let table = vec![vec![Some(vec![Some(1)]); 6], b];
        let subjects = [1, 2, 3, 4, 5, 6];
        assert!(!forced_pair(&fragments(&table, false), &subjects, 2));
        assert!(forced_pair(&fragments(&table, false), &subjects, 3));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let sound = || Fragments::new(1);
        let mut wide = sound();
        wide.add(&[None, None], &[0]);
        assert!(forced_pair(&[sound(), wide], &[1], 1));
        let mut twice = sound();
        twice.add(&[None], &[0]);
        twice.add(&[Some(1)], &[0]);
        assert!(forced_pair(&[sound(), twice], &[1], 1));
        let mut beyond = sound();
        beyond.add(&[None], &[1]);
        assert!(forced_pair(&[sound(), beyond], &[1], 1));
        assert!(!forced_pair(&[sound(), sound()], &[1], 1));
    }
}
