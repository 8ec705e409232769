//! Decides every row under one policy.

use super::policy_check::PolicyChecker;
use super::table::{CodedRows, TableRecords, row_attribute_values, rows_from_records};
use crate::quality::ClassSums;

/// Result for a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowDecision {
    /// Released.
    ClassReleased,
    /// Without a visible quasi attribute.
    Uninformative,
    /// Too few members or no record to release: depends on the quasi attributes alone.
    TooSmall,
    /// Large enough, but refused by a model of values.
    Refused,
}

/// Class that is released or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecidedClass {
    /// One of its rows.
    pub row: u32,
    /// Records to be released.
    pub records: u64,
    /// True if released.
    pub is_class_released: bool,
}

/// Results under one policy.
#[derive(Clone, Debug, Default)]
pub struct PolicyDecisions {
    /// Result by row.
    pub decision_by_row: Vec<RowDecision>,
    /// Released or refused classes.
    pub classes: Vec<DecidedClass>,
    /// Sums over the released classes.
    pub released_class_sums: ClassSums,
    /// Records of the smallest released class, or 0.
    pub smallest_released_class: u64,
    /// Summed prosecutor risks: Σ records / subjects over the released classes.
    pub prosecutor_risk_sum: f64,
}

impl PolicyChecker<'_> {
    /// Applies `policy` to the `records`, one row each.
    #[must_use]
    pub fn decide_records(&self, policy: &[u8], records: &TableRecords) -> PolicyDecisions {
        self.decide_packed_rows(policy, &rows_from_records(records, &self.table().composites))
    }

    /// Applies `policy` to packed rows, distinct or not.
    pub(super) fn decide_packed_rows(&self, policy: &[u8], rows: &CodedRows) -> PolicyDecisions {
        let (domains, composites) = (self.table().domains(), &self.table().composites);
        self.judge_rows(policy, rows, |bench, satisfied| {
            let cells = &bench.grouping.cells;
            let mut fate_of = vec![RowDecision::TooSmall; cells.len()];
            let mut settled = PolicyDecisions { smallest_released_class: u64::MAX, ..PolicyDecisions::default() };
            for &class in &bench.refused_class_numbers {
                let cell = &cells[class as usize];
                fate_of[class as usize] = RowDecision::Refused;
                settled.classes.push(DecidedClass {
                    row: cell.row,
                    records: u64::from(cell.records),
                    is_class_released: false,
                });
            }
            let mut values = vec![0; domains.len()];
            for &(class, records, subjects) in satisfied {
                let row = cells[class as usize].row;
                row_attribute_values(composites, &rows.codes, row as usize, &mut values);
                let mut shown = values.iter().zip(domains).zip(policy);
                if shown.all(|((&value, domain), &level)| domain.is_uninformative(level, value)) {
                    fate_of[class as usize] = RowDecision::Uninformative;
                    continue;
                }
                fate_of[class as usize] = RowDecision::ClassReleased;
                settled.classes.push(DecidedClass { row, records, is_class_released: true });
                settled.released_class_sums.add(records);
                settled.released_class_sums.add_bits(records);
                settled.smallest_released_class = settled.smallest_released_class.min(records);
                settled.prosecutor_risk_sum += records as f64 / subjects.max(1) as f64;
            }
            if settled.released_class_sums.classes == 0 {
                settled.smallest_released_class = 0;
            }
            settled.decision_by_row = bench.grouping.class_of.iter().map(|&class| fate_of[class as usize]).collect();
            settled
        })
    }
}
