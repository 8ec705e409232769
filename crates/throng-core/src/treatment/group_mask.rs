//! Marks the rows of a batch that take part in each attribute group.

use crate::values::codebook::{CellId, SUPPRESSED};
use hashbrown::HashMap;
use std::borrow::Cow;

/// Rows by group; by default all rows in every group.
#[derive(Clone, Debug, Default)]
pub struct GroupMask {
    /// By group and row; `None` means all rows.
    groups: Vec<Option<Vec<bool>>>,
    rows_differ_by_group: bool,
    one_line_per_subject: bool,
}

impl GroupMask {
    /// Creates a mask from the marked rows of each group.
    ///
    /// `scattered`: some group is released once per window, so records differ by group. `one_each`: no group has two
    /// lines of one subject.
    pub fn new(groups: Vec<Option<Vec<bool>>>, scattered: bool, one_each: bool) -> Self {
        Self { groups, rows_differ_by_group: scattered, one_line_per_subject: one_each }
    }

    /// Returns a copy without rows in `group`.
    #[must_use]
    pub fn without(&self, group: usize, rows: usize) -> Self {
        let mut mask = self.clone();
        mask.groups.resize(mask.groups.len().max(group + 1), None);
        mask.groups[group] = Some(vec![false; rows]);
        mask
    }

    /// Returns true if a row takes part in a group.
    pub fn takes_part(&self, group: usize, row: usize) -> bool {
        self.groups.get(group).and_then(Option::as_ref).is_none_or(|marks| marks[row])
    }

    /// Returns true if a row takes part in one of `groups` groups.
    pub fn takes_part_in_any(&self, groups: usize, row: usize) -> bool {
        (0..groups).any(|group| self.takes_part(group, row))
    }

    /// Returns the `rows` that take part in a group.
    pub fn rows_in_group<'a>(&self, group: usize, rows: &'a [u32]) -> Cow<'a, [u32]> {
        match self.groups.get(group) {
            Some(Some(marks)) => rows.iter().copied().filter(|row| marks[*row as usize]).collect(),
            _ => Cow::Borrowed(rows),
        }
    }

    /// Returns the `rows` that take part in one of `groups` groups.
    pub fn rows_in_any_group<'a>(&self, groups: usize, rows: &'a [u32]) -> Cow<'a, [u32]> {
        if self.groups.iter().all(Option::is_some) && !self.groups.is_empty() {
            rows.iter().copied().filter(|row| self.takes_part_in_any(groups, *row as usize)).collect()
        } else {
            Cow::Borrowed(rows)
        }
    }

    /// Returns the join of rows by subject, or `None` for a join by row.
    ///
    /// Requires one line per subject and group: otherwise the join of lines is ambiguous.
    pub fn join_by_subject(&self, subjects: &[u64]) -> Option<SubjectSlots> {
        if !self.rows_differ_by_group || !self.one_line_per_subject {
            return None;
        }
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut slots = SubjectSlots { of_row: Vec::with_capacity(subjects.len()), subjects: Vec::new() };
        for &subject in subjects {
            let number = *numbers.entry(subject).or_insert_with(|| {
                slots.subjects.push(subject);
                slots.subjects.len() as u32 - 1
            });
            slots.of_row.push(number);
        }
        Some(slots)
    }
}

/// Rows joined by subject: one slot each.
pub struct SubjectSlots {
    /// Slot of each row.
    pub of_row: Vec<u32>,
    /// Subject of each slot.
    pub subjects: Vec<u64>,
}

impl SubjectSlots {
    /// Returns the last cell of each slot that is not suppressed, else suppressed.
    pub fn gather_column(&self, column: &[CellId]) -> Vec<CellId> {
        let mut slots = vec![SUPPRESSED; self.subjects.len()];
        for (&slot, &cell) in self.of_row.iter().zip(column) {
            if cell != SUPPRESSED {
                slots[slot as usize] = cell;
            }
        }
        slots
    }

    /// Returns the subject that each slot counts for, given those of the rows.
    pub fn counting_subjects(&self, subjects: &[u64]) -> Vec<u64> {
        let mut counting = self.subjects.clone();
        for (&slot, &subject) in self.of_row.iter().zip(subjects) {
            counting[slot as usize] = subject;
        }
        counting
    }

    /// Returns the maximum worth of each slot.
    pub fn max_worth(&self, worth: &[f32]) -> Vec<f32> {
        let mut slots = vec![0.0_f32; self.subjects.len()];
        for (&slot, &worth) in self.of_row.iter().zip(worth) {
            let best = &mut slots[slot as usize];
            *best = best.max(worth);
        }
        slots
    }

    /// Suppresses the cells of `column` whose slot is suppressed in `slots`.
    pub fn suppress_lost(&self, column: &mut [CellId], slots: &[CellId]) {
        for (&slot, cell) in self.of_row.iter().zip(column) {
            if slots[slot as usize] == SUPPRESSED {
                *cell = SUPPRESSED;
            }
        }
    }
}
