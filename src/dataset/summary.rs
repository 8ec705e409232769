//! What a data set became, for the report: its policies and measures, its people, its risk before, its levels in words.

use super::aggregate::Aggregated;
use super::ceiling::Ceiled;
use super::read::Input;
use crate::anonymity::domain::Domain;
use crate::anonymity::lattice::passes::Recoded;
use crate::anonymity::lattice::search::Strategy;
use crate::anonymity::lattice::table::{NOBODY, Table};
use crate::anonymity::quality::Measure;
use crate::config::Transformation;
use crate::release::verified::Risk;
use std::collections::BTreeMap;

/// What a data set became.
#[derive(Debug)]
pub struct Anonymized {
    /// Records that were read.
    pub rows: u64,
    /// Those of them that `anonymize.released` marks; all where it names no attribute.
    pub to_release: u64,
    /// Lines that a quote left open has swallowed: records that were read as part of another one.
    pub swallowed: u64,
    /// Names of the quasi attributes, in the order of the schema and of every policy.
    pub quasi: Vec<String>,
    /// By quasi attribute and level: what it shows, in words.
    pub labels: Vec<Vec<String>>,
    /// As configured: one policy for all records, or one a pass.
    pub transformation: Transformation,
    /// The policies, and how many records are suppressed.
    pub recoded: Recoded,
    /// The measure that the search has optimized.
    pub measure: Measure,
    /// The way through the lattice, as configured.
    pub strategy: Strategy,
    /// Number of policies; approximate, since there may be more than 128 bits can count.
    pub lattice: f64,
    /// Of the lines that leave, as verification has counted them.
    pub risk: Risk,
    /// Of the records to be released, were they to leave as they are.
    pub risk_before: RawRisk,
    /// None where every record counts for itself.
    pub people: Option<People>,
    /// Sensitive cells that leave as `*`: those of rare values, and those that hide them.
    pub rare_sensitive_cells: u64,
    /// Attributes whose cells are aggregates, not truths.
    pub aggregated: Vec<Aggregated>,
    /// What a ceiling came to, where one was asked for. Everything else here is of true records alone.
    pub ceiled: Option<Ceiled>,
    /// What the schema says twice.
    pub warnings: Vec<String>,
    /// Wall time of all of it, reading and writing included.
    pub seconds: f64,
}

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

/// The risk of the raw quasi tuples: how many there are of each size is summed, so that it does not hang on their order.
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn raw_risk(table: &Table) -> RawRisk {
    // By people and records.
    let mut tuples: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut people: Vec<u32> = Vec::new();
    let is_named = table.has_subjects();
    table.each_raw_tuple(&mut |records, subjects| {
        people.clear();
        people.extend(subjects.filter(|&subject| subject != NOBODY));
        people.sort_unstable();
        people.dedup();
        let known = if is_named { (people.len() as u64).max(1) } else { records };
        *tuples.entry((known, records)).or_default() += 1;
    });
    let mut risk = RawRisk::default();
    for (&(people, records), &number) in &tuples {
        let each = 1.0 / people as f64;
        risk.highest = risk.highest.max(each);
        risk.average += each * (records * number) as f64 / table.records() as f64;
    }
    risk
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
    use crate::anonymity::domain::Level;
    use crate::anonymity::lattice::table::Records;

    fn table(records: &Records) -> Table {
        let bottom = Level { cell_of: vec![0, 1, 2, 3], loss: vec![0.0; 4] };
        let top = Level { cell_of: vec![0; 4], loss: vec![1.0] };
        let domain = |name| Domain::new(name, vec![bottom.clone(), top.clone()]).expect("a hierarchy");
        Table::new(vec![domain("a"), domain("b")], records).expect("a table")
    }

    fn records(subjects: Option<Vec<u32>>) -> Records {
        Records { quasi: vec![vec![0, 0, 0, 1, 1], vec![2, 2, 2, 2, 3]], subjects, ..Records::default() }
    }

    #[test]
    fn the_risk_before_counts_people_of_raw_tuples() {
        let risk = raw_risk(&table(&records(None)));
        assert!(risk.highest == 1.0 && (risk.average - 3.0 / 5.0).abs() < 1e-12, "{risk:?}");
        let risk = raw_risk(&table(&records(Some(vec![7, 7, 8, NOBODY, 9]))));
        assert!((risk.average - (3.0 / 2.0 + 2.0) / 5.0).abs() < 1e-12, "{risk:?}");
        let released = Some(vec![true, true, true, false, false]);
        let risk = raw_risk(&table(&Records { released, ..records(None) }));
        assert!((risk.highest - 1.0 / 3.0).abs() < 1e-12 && (risk.average - 1.0 / 3.0).abs() < 1e-12, "{risk:?}");
    }
}
