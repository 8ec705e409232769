//! Which rows of a batch take part in which group of attributes.
//!
//! Without limits on repetition every row takes part in every group. With them a group may leave rows out, and a row may
//! be in the batch for the sake of one group alone.

use hashbrown::HashMap;
use std::borrow::Cow;
use throng_core::values::codebook::{CellId, SUPPRESSED};

/// The rows of a batch by group; by default every row takes part in every group.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    /// By group and row; `None`: all rows.
    groups: Vec<Option<Vec<bool>>>,
    /// Some group says things once a window: its lines are of other records than those of other groups.
    scattered: bool,
    /// No group has two lines of one subject.
    one_each: bool,
}

impl Mask {
    /// The rows marked for each group. `scattered`: the lines of one subject may be of different rows; `one_each`: no two
    /// marked rows of one group are of one subject.
    pub fn new(groups: Vec<Option<Vec<bool>>>, scattered: bool, one_each: bool) -> Self {
        Self { groups, scattered, one_each }
    }

    /// The same, but that none of `rows` rows takes part in `group`.
    #[must_use]
    pub fn without(&self, group: usize, rows: usize) -> Self {
        let mut mask = self.clone();
        mask.groups.resize(mask.groups.len().max(group + 1), None);
        mask.groups[group] = Some(vec![false; rows]);
        mask
    }

    /// Whether a row takes part in a group.
    pub fn takes_part(&self, group: usize, row: usize) -> bool {
        self.groups.get(group).and_then(Option::as_ref).is_none_or(|marks| marks[row])
    }

    /// Whether a row takes part in any of `groups` groups.
    pub fn is_in(&self, groups: usize, row: usize) -> bool {
        (0..groups).any(|group| self.takes_part(group, row))
    }

    /// Of `rows`, those that take part in a group.
    pub fn among<'a>(&self, group: usize, rows: &'a [u32]) -> Cow<'a, [u32]> {
        match self.groups.get(group) {
            Some(Some(marks)) => rows.iter().copied().filter(|row| marks[*row as usize]).collect(),
            _ => Cow::Borrowed(rows),
        }
    }

    /// Of `rows`, those that take part in any of `groups` groups.
    pub fn present<'a>(&self, groups: usize, rows: &'a [u32]) -> Cow<'a, [u32]> {
        if self.groups.iter().all(Option::is_some) && !self.groups.is_empty() {
            rows.iter().copied().filter(|row| self.is_in(groups, *row as usize)).collect()
        } else {
            Cow::Borrowed(rows)
        }
    }

    /// Whose lines counting would join: by row of the batch a number, equal for the rows of one subject, and the subject
    /// of each number. `None` where lines are joined by row: no group says things once a window, or a subject may have
    /// several lines of a group, so that its lines of another could belong to any of them.
    pub fn slots(&self, subjects: &[u64]) -> Option<Slots> {
        if !self.scattered || !self.one_each {
            return None;
        }
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut slots = Slots { of_row: Vec::with_capacity(subjects.len()), subjects: Vec::new() };
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

/// Rows joined by subject.
pub struct Slots {
    /// By row: its slot.
    pub of_row: Vec<u32>,
    /// By slot.
    pub subjects: Vec<u64>,
}

impl Slots {
    /// A column by slot: the cell of the row that says something, else suppressed.
    pub fn gather(&self, column: &[CellId]) -> Vec<CellId> {
        let mut slots = vec![SUPPRESSED; self.subjects.len()];
        for (&slot, &cell) in self.of_row.iter().zip(column) {
            if cell != SUPPRESSED {
                slots[slot as usize] = cell;
            }
        }
        slots
    }

    /// Whom each slot counts for, where its rows count for `subjects`.
    pub fn counting(&self, subjects: &[u64]) -> Vec<u64> {
        let mut counting = self.subjects.clone();
        for (&slot, &subject) in self.of_row.iter().zip(subjects) {
            counting[slot as usize] = subject;
        }
        counting
    }

    /// What the rows are worth, by slot: that of the row that is worth most.
    pub fn worth(&self, worth: &[f32]) -> Vec<f32> {
        let mut slots = vec![0.0_f32; self.subjects.len()];
        for (&slot, &worth) in self.of_row.iter().zip(worth) {
            let best = &mut slots[slot as usize];
            *best = best.max(worth);
        }
        slots
    }

    /// Suppresses in `column` what `slots`, gathered from it, have lost since.
    pub fn withdraw(&self, column: &mut [CellId], slots: &[CellId]) {
        for (&slot, cell) in self.of_row.iter().zip(column) {
            if slots[slot as usize] == SUPPRESSED {
                *cell = SUPPRESSED;
            }
        }
    }
}
