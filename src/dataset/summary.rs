//! What is told of a data set beside its measures: its people, its risk before, its levels in words.

use super::read::Input;
use crate::anonymity::domain::Domain;
use crate::anonymity::lattice::passes::Recoded;
use crate::anonymity::lattice::table::{NOBODY, Records};
use std::collections::{BTreeMap, BTreeSet};

/// The people of the records to be released, where the schema names a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct People {
    /// Distinct subjects; records that name nobody are left out.
    pub all: u64,
    /// Of whom no record leaves.
    pub lost: u64,
}

/// Prosecutor's risk of the records to be released, were they to leave as they are: 1 / people of their class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RawRisk {
    /// In (0, 1]; 1: somebody is alone. 0 without records.
    pub highest: f64,
    /// Mean over the records, in (0, 1]; 0 without records.
    pub average: f64,
}

pub(super) fn people(records: &Records, recoded: &Recoded) -> Option<People> {
    let subjects = records.subjects.as_ref()?;
    let of = |row: usize| Some(subjects[row]).filter(|&subject| subject != NOBODY);
    let asked = (0..records.len()).filter(|&row| records.is_released(row));
    let all: BTreeSet<u32> = asked.clone().filter_map(of).collect();
    let left: BTreeSet<u32> = asked.filter(|&row| recoded.by[row].is_some()).filter_map(of).collect();
    Some(People { all: all.len() as u64, lost: (all.len() - left.len()) as u64 })
}

/// The risk of the raw quasi tuples.
pub(super) fn raw_risk(records: &Records) -> RawRisk {
    let mut rows: Vec<usize> = (0..records.len()).filter(|&row| records.is_released(row)).collect();
    let tuple = |row: usize| records.quasi.iter().map(move |column| column[row]);
    rows.sort_unstable_by(|&a, &b| tuple(a).cmp(tuple(b)));
    let mut sizes = Sizes::default();
    for class in rows.chunk_by(|&a, &b| tuple(a).eq(tuple(b))) {
        let people = match &records.subjects {
            None => class.len(),
            Some(subjects) => {
                let known = class.iter().map(|&row| subjects[row]).filter(|&subject| subject != NOBODY);
                known.collect::<BTreeSet<u32>>().len().max(1)
            }
        };
        sizes.add(class.len() as u64, people as u64);
    }
    sizes.risk()
}

/// How many raw tuples there are of each size: what is told of them does not hang on their order then.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// By people and records.
    tuples: BTreeMap<(u64, u64), u64>,
    records: u64,
}

impl Sizes {
    /// Adds a tuple of so many records, of so many people.
    pub fn add(&mut self, records: u64, people: u64) {
        *self.tuples.entry((people, records)).or_default() += 1;
        self.records += records;
    }

    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn risk(&self) -> RawRisk {
        let mut risk = RawRisk::default();
        for (&(people, records), &tuples) in &self.tuples {
            let each = 1.0 / people as f64;
            risk.highest = risk.highest.max(each);
            risk.average += each * (records * tuples) as f64 / self.records as f64;
        }
        risk
    }
}

/// By quasi attribute and level: what it shows, and which level of how many that is.
pub(super) fn labels(input: &Input) -> Vec<Vec<String>> {
    let of = |&attribute: &usize| {
        let hierarchy = &input.schema.attributes[attribute].hierarchy;
        let top = hierarchy.levels() - 1;
        (0..=top).map(|level| format!("{} (level {level} of {top})", hierarchy.label(level))).collect()
    };
    input.quasi.iter().map(of).collect()
}

/// A policy in words.
pub(super) fn policy(domains: &[Domain], input: &Input, policy: &[u8]) -> String {
    let labels = labels(input);
    let of = domains.iter().zip(&labels).zip(policy);
    let said: Vec<String> =
        of.map(|((domain, labels), &level)| format!("{}: {}", domain.name(), labels[usize::from(level)])).collect();
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(subjects: Option<Vec<u32>>) -> Records {
        Records { quasi: vec![vec![0, 0, 0, 1, 1], vec![2, 2, 2, 2, 3]], subjects, ..Records::default() }
    }

    #[test]
    fn the_risk_before_counts_people_of_raw_tuples() {
        let risk = raw_risk(&records(None));
        assert!(risk.highest == 1.0 && (risk.average - 3.0 / 5.0).abs() < 1e-12, "{risk:?}");
        let risk = raw_risk(&records(Some(vec![7, 7, 8, NOBODY, 9])));
        assert!((risk.average - (3.0 / 2.0 + 2.0) / 5.0).abs() < 1e-12, "{risk:?}");
        let risk = raw_risk(&Records { released: Some(vec![true, true, true, false, false]), ..records(None) });
        assert!((risk.highest - 1.0 / 3.0).abs() < 1e-12 && (risk.average - 1.0 / 3.0).abs() < 1e-12, "{risk:?}");
    }
}
