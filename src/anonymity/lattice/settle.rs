//! What becomes of every row under one policy.

use super::check::Checker;
use super::table::{Records, Rows, undivided, values_of};
use crate::anonymity::quality::ClassSums;

/// What becomes of a record, and of the members of the population who share its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its class leaves.
    Kept,
    /// Its class satisfies the models and says nothing of any quasi attribute.
    Silent,
    /// Its class has too few members, or nothing to release: a fact of the quasi attributes alone.
    TooSmall,
    /// Its class has the members, and values that a model refuses.
    Refused,
}

/// A class that leaves, or that a model refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettledClass {
    /// One of its rows.
    pub row: u32,
    /// Records to be released.
    pub records: u64,
    /// Whether it leaves.
    pub leaves: bool,
}

/// Rows under one policy.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// By row.
    pub fates: Vec<Fate>,
    /// The classes that leave, and those that a model refuses.
    pub classes: Vec<SettledClass>,
    /// Over the classes that leave.
    pub kept: ClassSums,
    /// Records of the smallest class that leaves; 0 when none does.
    pub smallest: u64,
    /// Σ records / subjects over the classes that leave: the prosecutor's risks of their records, summed.
    pub risk: f64,
}

impl Checker<'_> {
    /// Settles the `records` that the table was made of by `policy`; each is a row.
    #[must_use]
    pub fn settle(&self, policy: &[u8], records: &Records) -> Settled {
        self.settle_rows(policy, &undivided(records, &self.table().composites))
    }

    /// Settles `rows`, distinct or not, that are packed as those of the table are.
    pub(super) fn settle_rows(&self, policy: &[u8], rows: &Rows) -> Settled {
        let (domains, composites) = (self.table().domains(), &self.table().composites);
        self.judge_rows(policy, rows, |bench, satisfied| {
            let cells = &bench.grouping.cells;
            let mut fate_of = vec![Fate::TooSmall; cells.len()];
            let mut settled = Settled { smallest: u64::MAX, ..Settled::default() };
            for &class in &bench.refused {
                let cell = &cells[class as usize];
                fate_of[class as usize] = Fate::Refused;
                settled.classes.push(SettledClass { row: cell.row, records: u64::from(cell.records), leaves: false });
            }
            let mut values = vec![0; domains.len()];
            for &(class, records, subjects) in satisfied {
                let row = cells[class as usize].row;
                values_of(composites, &rows.codes, row as usize, &mut values);
                let mut shown = values.iter().zip(domains).zip(policy);
                if shown.all(|((&value, domain), &level)| domain.is_silent(level, value)) {
                    fate_of[class as usize] = Fate::Silent;
                    continue;
                }
                fate_of[class as usize] = Fate::Kept;
                settled.classes.push(SettledClass { row, records, leaves: true });
                settled.kept.add(records);
                settled.kept.add_bits(records);
                settled.smallest = settled.smallest.min(records);
                settled.risk += records as f64 / subjects.max(1) as f64;
            }
            if settled.kept.classes == 0 {
                settled.smallest = 0;
            }
            settled.fates = bench.grouping.class_of.iter().map(|&class| fate_of[class as usize]).collect();
            settled
        })
    }
}
