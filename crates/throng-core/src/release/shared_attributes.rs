//! Verification of shared attributes (docs/internals/methods.md §10.6).
//!
//! Claim. If [`SharedValueParts::of`] and [`SharedValueParts::judge`] return `Ok`: (1) all fragments of a row show the
//! same shared cells; (2) each shared attribute has one level in the groups that show more than `*`; (3) each
//! combination of shared cells has k distinct subjects; (4) within each, counting forces no pair below k.

use super::forced_pairs::{CountingResult, GroupFragments, RecordCountBound, check_forced_pairs};
use super::line_limits::{CountingUnits, LineLimit};
use super::verifier_input::{GroupTerms, RecountContext};
use super::violation::Violation;
use crate::values::codebook::{Codebook, SUPPRESSED};
use crate::values::subject_digest::NO_SUBJECT;
use std::collections::{BTreeMap, BTreeSet};

/// Attributes of several groups, ascending.
pub(super) fn attributes(terms: &[GroupTerms]) -> Vec<usize> {
    let mut times: BTreeMap<usize, usize> = BTreeMap::new();
    terms.iter().flat_map(|terms| &terms.attributes).for_each(|a| *times.entry(*a).or_default() += 1);
    times.into_iter().filter(|(_, times)| *times > 1).map(|(a, _)| a).collect()
}

#[derive(Default)]
pub(super) struct SharedCellLines {
    attributes: Vec<usize>,
    /// Set if released once per window: a shared cell would link the line to a time.
    is_still: bool,
    /// By attribute: digest of `*`, and possible levels of all lines.
    levels: Vec<(u128, Vec<bool>)>,
    parts: BTreeMap<Vec<u128>, GroupPart>,
}

struct GroupPart {
    rows: Vec<u32>,
    /// Without shared cells.
    fragments: GroupFragments,
}

impl SharedCellLines {
    pub fn new(terms: &GroupTerms, shared: &[usize], books: &[Codebook]) -> Self {
        let attributes: Vec<usize> = terms.attributes.iter().copied().filter(|a| shared.contains(a)).collect();
        let is_still = matches!(terms.lines, LineLimit::OncePerWindow(_));
        let levels = attributes.iter().map(|&a| (books[a].digest(SUPPRESSED), vec![true; books[a].levels()])).collect();
        Self { attributes, is_still, levels, parts: BTreeMap::new() }
    }

    /// Adds a line. `cells` are coverages by column, none if suppressed. `attribute` maps a column, and `above` returns
    /// the coverages above its cell.
    ///
    /// # Errors
    /// [`Violation::SharedCells`] for a shared cell at no level of its records, or other than `*` in a group released
    /// once per window.
    pub fn add<A: IntoIterator<Item = u128>>(
        &mut self,
        cells: &[Option<u128>],
        attribute: impl Fn(usize) -> usize,
        rows: &[u32],
        carriers: &CountingUnits,
        basis: RecountContext<'_>,
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
        if shown.len() != self.attributes.len() {
            return Err(Violation::SharedCells);
        }
        let part = self.parts.entry(shown);
        let part = part.or_insert_with(|| GroupPart { rows: Vec::new(), fragments: GroupFragments::new(own.len()) });
        part.rows.extend_from_slice(rows);
        let guarded: Vec<Option<u128>> = own.iter().map(|(_, cell)| *cell).collect();
        part.fragments.add(&guarded, &carriers.rows(rows), |at| above(own[at].0));
        Ok(())
    }

    fn shows_nothing(&self) -> bool {
        self.parts
            .keys()
            .flat_map(|shown| shown.iter().zip(&self.levels))
            .all(|(shown, (suppressed, _))| shown == suppressed)
    }
}

/// Fragments, split by shared cells.
pub(super) struct SharedValueParts {
    /// Fragments by group number.
    parts: Vec<Vec<(usize, GroupPart)>>,
    /// Sum over shown values of the most fragments in one group; `*` may hide the same records.
    records: usize,
}

impl SharedValueParts {
    /// Splits a batch.
    ///
    /// # Errors
    /// Different shared attributes, several levels, a row in several parts, or a part below k.
    pub fn of(groups: Vec<SharedCellLines>, subjects: &[u64], k: usize) -> Result<Self, Violation> {
        let mut sharing = groups.iter().map(|group| &group.attributes).filter(|attributes| !attributes.is_empty());
        let shared = sharing.next().cloned().unwrap_or_default();
        if sharing.any(|attributes| *attributes != shared) {
            return Err(Violation::SharedCells);
        }
        for at in 0..shared.len() {
            require_one_level(groups.iter().filter(|group| !group.shows_nothing()), at, subjects.len())?;
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
            has_distinct_subjects(rows.filter_map(|&row| subjects.get(row as usize)).copied(), k)
        };
        if parts.iter().all(reaches) { Ok(Self { parts, records }) } else { Err(Violation::SharedBelowK) }
    }

    /// Bound on all records.
    pub fn records(&self) -> RecordCountBound {
        RecordCountBound::AtLeast(self.records)
    }

    /// Judges each part as a batch.
    ///
    /// # Errors
    /// A forced pair, or exhausted steps.
    pub fn judge(self, carriers: &CountingUnits, k: usize) -> Result<(), Violation> {
        let records = if carriers.scattered { RecordCountBound::OfBoth } else { RecordCountBound::OfLargest };
        let all = self.parts.len();
        for part in self.parts {
            let (numbers, fragments): (Vec<usize>, Vec<GroupFragments>) =
                part.into_iter().map(|(number, of_group)| (number, of_group.fragments)).unzip();
            match check_forced_pairs(&fragments, &carriers.subjects, k, records, all) {
                CountingResult::StepsExhausted(groups) => {
                    return Err(Violation::CountingUnfinished(groups.map(|group| numbers[group])));
                }
                otherwise => require_free(otherwise)?,
            }
        }
        Ok(())
    }
}

pub(super) fn has_distinct_subjects(subjects: impl Iterator<Item = u64>, k: usize) -> bool {
    let mut seen = BTreeSet::new();
    subjects.filter(|subject| *subject != NO_SUBJECT).any(|subject| {
        seen.insert(subject);
        seen.len() >= k
    })
}

pub(super) fn require_free(counting: CountingResult) -> Result<(), Violation> {
    match counting {
        CountingResult::Free => Ok(()),
        CountingResult::Forced => Err(Violation::ForcedPair),
        CountingResult::StepsExhausted(groups) => Err(Violation::CountingUnfinished(groups)),
    }
}

/// Also requires one cell per row.
fn require_one_level<'a>(
    groups: impl Iterator<Item = &'a SharedCellLines>,
    at: usize,
    rows: usize,
) -> Result<(), Violation> {
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
