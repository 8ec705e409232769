//! Verification of attributes that stand in several groups (docs/methods.md §10.6), from the bytes.
//!
//! Claim. If [`Parts::of`] and [`Parts::judge`] return `Ok`: (1) all fragments of a row that show anything of the shared attributes
//! show the same; (2) each shared attribute is shown at one level of its hierarchy in all groups, but for groups that show nothing but `*` of
//! any; (3) each combination of shared cells that is shown has at least k distinct subjects; (4) within each combination no pair of label
//! sets of two groups is forced by counting below k, as if its fragments were a batch.
//!
//! Written from the definition, apart from the treatment: which attributes are shared follows from the terms of the groups, and what a
//! line shows of them from its text.

use super::forced_pairs::{Counting, Fragments, Records, judge};
use super::given::{Basis, GroupTerms};
use super::repetition::{Carriers, LineLimit};
use super::violation::Violation;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::{Codebook, SUPPRESSED};
use throng_core::values::subject::NO_SUBJECT;

/// The attributes that stand in several groups, ascending.
pub(super) fn attributes(terms: &[GroupTerms]) -> Vec<usize> {
    let mut times: BTreeMap<usize, usize> = BTreeMap::new();
    terms.iter().flat_map(|terms| &terms.attributes).for_each(|a| *times.entry(*a).or_default() += 1);
    times.into_iter().filter(|(_, times)| *times > 1).map(|(a, _)| a).collect()
}

/// The lines of one group by what they show of the shared attributes that it has.
#[derive(Default)]
pub(super) struct GroupParts {
    /// Those attributes, in the order of the schema.
    attributes: Vec<usize>,
    /// Whether the group leaves once a window of a person: nothing that is shared may tie that to a moment.
    is_still: bool,
    /// By attribute: the digest of `*`, and by level whether every line so far shows the cell that its record has there.
    levels: Vec<(u128, Vec<bool>)>,
    /// By the coverages that are shown.
    parts: BTreeMap<Vec<u128>, GroupPart>,
}

struct GroupPart {
    rows: Vec<u32>,
    /// Without the shared cells.
    fragments: Fragments,
}

impl GroupParts {
    /// No lines yet of a group.
    pub fn new(terms: &GroupTerms, shared: &[usize], books: &[Codebook]) -> Self {
        let attributes: Vec<usize> = terms.attributes.iter().copied().filter(|a| shared.contains(a)).collect();
        let is_still = matches!(terms.lines, LineLimit::OncePerWindow(_));
        let levels = attributes.iter().map(|&a| (books[a].digest(SUPPRESSED), vec![true; books[a].levels()])).collect();
        Self { attributes, is_still, levels, parts: BTreeMap::new() }
    }

    /// Takes in a line with all rows that print it: its guarded cells by column, as coverages with none where suppressed, the `attribute`
    /// of each column, and the coverages `above` it.
    ///
    /// # Errors
    /// Where a shared cell is none that its record has on any level, or anything but `*` in a group that leaves once a window.
    pub fn add<A: IntoIterator<Item = u128>>(
        &mut self,
        cells: &[Option<u128>],
        attribute: impl Fn(usize) -> usize,
        rows: &[u32],
        carriers: &Carriers,
        basis: Basis<'_>,
        above: impl Fn(usize) -> A,
    ) -> Result<(), Violation> {
        if self.attributes.is_empty() {
            return Ok(());
        }
        let (mut shown, mut own) = (Vec::with_capacity(self.attributes.len()), Vec::with_capacity(cells.len()));
        for (column, &cell) in cells.iter().enumerate() {
            match self.attributes.iter().position(|a| *a == attribute(column)) {
                Some(at) => {
                    let (suppressed, is_level) = &mut self.levels[at];
                    let cell = cell.unwrap_or(*suppressed);
                    if self.is_still && cell != *suppressed {
                        return Err(Violation::SharedCells);
                    }
                    let (book, codes) = (&basis.books[attribute(column)], &basis.given.columns[attribute(column)]);
                    for (level, is_level) in is_level.iter_mut().enumerate().filter(|(_, is_level)| **is_level) {
                        let digests = book.digests(level);
                        let has =
                            |row: &u32| codes.get(*row as usize).map(|code| digests[*code as usize]) == Some(cell);
                        *is_level = rows.iter().all(has);
                    }
                    if !is_level.contains(&true) {
                        return Err(Violation::SharedCells);
                    }
                    shown.push(cell);
                }
                None => own.push((column, cell)),
            }
        }
        // A shared attribute that is no guarded one could not be judged.
        if shown.len() != self.attributes.len() {
            return Err(Violation::SharedCells);
        }
        let part = self.parts.entry(shown);
        let part = part.or_insert_with(|| GroupPart { rows: Vec::new(), fragments: Fragments::new(own.len()) });
        part.rows.extend_from_slice(rows);
        let guarded: Vec<Option<u128>> = own.iter().map(|(_, cell)| *cell).collect();
        part.fragments.add(&guarded, &carriers.rows(rows), |at| above(own[at].0));
        Ok(())
    }

    /// Whether no line shows anything of what is shared.
    fn is_mute(&self) -> bool {
        self.parts
            .keys()
            .flat_map(|shown| shown.iter().zip(&self.levels))
            .all(|(shown, (suppressed, _))| shown == suppressed)
    }
}

/// The fragments of a batch by the shared cells that they show.
pub(super) struct Parts {
    /// By what is shown of the shared attributes: the fragments of each group that has some, with its number.
    parts: Vec<Vec<(usize, GroupPart)>>,
    /// Records that everybody can count: of each value that is shown the most fragments that one group has. What shows `*` may be of
    /// the same records.
    records: usize,
}

impl Parts {
    /// The parts of a batch whose rows count for `subjects`.
    ///
    /// # Errors
    /// Where groups share different attributes or show them at several levels, where a row is in several parts, or where the people of a
    /// part are fewer than k.
    pub fn of(groups: Vec<GroupParts>, subjects: &[u64], k: usize) -> Result<Self, Violation> {
        let mut sharing = groups.iter().map(|group| &group.attributes).filter(|attributes| !attributes.is_empty());
        let shared = sharing.next().cloned().unwrap_or_default();
        if sharing.any(|attributes| *attributes != shared) {
            return Err(Violation::SharedCells);
        }
        for at in 0..shared.len() {
            is_one_cell(groups.iter().filter(|group| !group.is_mute()), at, subjects.len())?;
        }
        let of_one = groups.iter().find(|group| !group.attributes.is_empty());
        let suppressed: Vec<u128> = of_one.into_iter().flat_map(|group| &group.levels).map(|(own, _)| *own).collect();
        let mut parts: BTreeMap<Vec<u128>, Vec<(usize, GroupPart)>> = BTreeMap::new();
        for (number, group) in groups.into_iter().enumerate() {
            for (shown, part) in group.parts {
                parts.entry(shown).or_default().push((number, part));
            }
        }
        let most = |part: &Vec<(usize, GroupPart)>| part.iter().map(|(_, of)| of.rows.len()).max().unwrap_or(0);
        let is_shown = |shown: &[u128]| !shown.iter().zip(&suppressed).all(|(shown, suppressed)| shown == suppressed);
        let records = parts.iter().filter(|(shown, _)| is_shown(shown)).map(|(_, part)| most(part)).sum();
        let parts: Vec<Vec<(usize, GroupPart)>> = parts.into_values().collect();
        let reaches = |part: &Vec<(usize, GroupPart)>| {
            let rows = part.iter().flat_map(|(_, of_group)| &of_group.rows);
            reach(rows.filter_map(|&row| subjects.get(row as usize)).copied(), k)
        };
        if parts.iter().all(reaches) { Ok(Self { parts, records }) } else { Err(Violation::SharedBelowK) }
    }

    /// What everybody can count of the whole batch.
    pub fn records(&self) -> Records {
        Records::AtLeast(self.records)
    }

    /// Judges each part as a batch.
    ///
    /// # Errors
    /// Where counting joins two groups below k, or there was no time to tell.
    pub fn judge(self, carriers: &Carriers, k: usize) -> Result<(), Violation> {
        let records = if carriers.scattered { Records::OfBoth } else { Records::OfLargest };
        let all = self.parts.len();
        for part in self.parts {
            let (numbers, fragments): (Vec<usize>, Vec<Fragments>) =
                part.into_iter().map(|(number, of_group)| (number, of_group.fragments)).unzip();
            match judge(&fragments, &carriers.subjects, k, records, all) {
                Counting::Unjudged(groups) => return Err(Violation::Unjudged(groups.map(|group| numbers[group]))),
                otherwise => free(otherwise)?,
            }
        }
        Ok(())
    }
}

/// Whether `k` distinct subjects are among `subjects`.
pub(super) fn reach(subjects: impl Iterator<Item = u64>, k: usize) -> bool {
    let mut seen = BTreeSet::new();
    subjects.filter(|subject| *subject != NO_SUBJECT).any(|subject| {
        seen.insert(subject);
        seen.len() >= k
    })
}

/// What a batch must be for counting.
pub(super) fn free(counting: Counting) -> Result<(), Violation> {
    match counting {
        Counting::Free => Ok(()),
        Counting::Forced => Err(Violation::ForcedPair),
        Counting::Unjudged(groups) => Err(Violation::Unjudged(groups)),
    }
}

/// Whether the `groups` show one attribute, the `at`th of the shared ones, at one level, and of each of so many rows the same cell.
fn is_one_cell<'a>(groups: impl Iterator<Item = &'a GroupParts>, at: usize, rows: usize) -> Result<(), Violation> {
    let mut cells: Vec<Option<u128>> = vec![None; rows];
    let mut levels: Option<Vec<bool>> = None;
    for group in groups {
        let own = &group.levels[at].1;
        levels.get_or_insert_with(|| own.clone()).iter_mut().zip(own).for_each(|(known, own)| *known &= own);
        for (shown, part) in &group.parts {
            let mut same = |row: &u32| cells.get_mut(*row as usize).map(|cell| *cell.get_or_insert(shown[at]));
            if !part.rows.iter().all(|row| same(row) == Some(shown[at])) {
                return Err(Violation::SharedCells);
            }
        }
    }
    if levels.is_none_or(|levels| levels.contains(&true)) { Ok(()) } else { Err(Violation::SharedCells) }
}
