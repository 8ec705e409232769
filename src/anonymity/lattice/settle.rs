//! What becomes of every record under one policy.

use super::check::Checker;
use super::table::Records;
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

/// The records of a table under one policy.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// By record.
    pub fates: Vec<Fate>,
    /// Over the classes that leave.
    pub kept: ClassSums,
    /// Records of the smallest class that leaves; 0 when none does.
    pub smallest: u64,
    /// Σ records / subjects over the classes that leave: the prosecutor's risks of their records, summed.
    pub risk: f64,
}

impl Checker<'_> {
    /// Settles the `records` that the table was made of by `policy`.
    #[must_use]
    pub fn settle(&self, policy: &[u8], records: &Records) -> Settled {
        let mut satisfied: Vec<(u32, u64, u64)> = Vec::new();
        let mut note = |class, records, subjects| satisfied.push((class, records, subjects));
        let (mut fate_of, class_of, some_row) = self.judge_records(policy, records, &mut note, |bench| {
            let mut fates = vec![Fate::TooSmall; bench.grouping.cells.len()];
            for &class in &bench.refused {
                fates[class as usize] = Fate::Refused;
            }
            let rows: Vec<u32> = bench.grouping.cells.iter().map(|cell| cell.row).collect();
            (fates, bench.grouping.class_of.clone(), rows)
        });
        let domains = self.table().domains();
        let silent = |class: u32| {
            let row = some_row[class as usize] as usize;
            let values = records.quasi.iter().map(|column| column[row]);
            values.zip(domains).zip(policy).all(|((value, domain), &level)| domain.is_silent(level, value))
        };
        let mut settled = Settled { smallest: u64::MAX, ..Settled::default() };
        for (class, records, subjects) in satisfied {
            if silent(class) {
                fate_of[class as usize] = Fate::Silent;
                continue;
            }
            fate_of[class as usize] = Fate::Kept;
            settled.kept.add(records);
            settled.kept.add_bits(records);
            settled.smallest = settled.smallest.min(records);
            settled.risk += records as f64 / subjects.max(1) as f64;
        }
        if settled.kept.classes == 0 {
            settled.smallest = 0;
        }
        settled.fates = class_of.into_iter().map(|class| fate_of[class as usize]).collect();
        settled
    }
}
