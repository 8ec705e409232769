//! Input record numbers of table rows.

/// Ascending record numbers of rows, from 1; 16 bytes per gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordNumbers {
    rows: usize,
    /// First row after each gap, and its record.
    runs: Vec<(usize, u64)>,
}

impl RecordNumbers {
    /// Appends the next row.
    pub fn push(&mut self, number: u64) {
        if self.record_of_row(self.rows) != number {
            self.runs.push((self.rows, number));
        }
        self.rows += 1;
    }

    /// Returns the record of a row.
    pub fn record_of_row(&self, row: usize) -> u64 {
        let run = self.runs.partition_point(|(first, _)| *first <= row).checked_sub(1);
        let (first, number) = run.map_or((0, 1), |run| self.runs[run]);
        number + (row - first) as u64
    }

    /// Returns the numbers of rows with true `keep`.
    #[must_use]
    pub fn retained(&self, keep: &[bool]) -> Self {
        let mut kept = Self::default();
        keep.iter().enumerate().filter(|(_, keep)| **keep).for_each(|(row, _)| kept.push(self.record_of_row(row)));
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn record_numbers_equal_a_list(present in proptest::collection::vec(any::<bool>(), 0..60), keep: [bool; 60]) {
            let listed: Vec<u64> = (1..).zip(&present).filter(|(_, here)| **here).map(|(number, _)| number).collect();
            let mut numbers = RecordNumbers::default();
            listed.iter().for_each(|number| numbers.push(*number));
            let of = |numbers: &RecordNumbers, rows: usize| (0..rows).map(|row| numbers.record_of_row(row)).collect::<Vec<_>>();
            prop_assert_eq!(of(&numbers, listed.len()), listed.clone());
            let keep = &keep[..listed.len()];
            let kept: Vec<u64> = listed.iter().zip(keep).filter(|(_, keep)| **keep).map(|(number, _)| *number).collect();
            prop_assert_eq!(of(&numbers.retained(keep), kept.len()), kept);
        }
    }
}
