//! Report of an anonymized data set.

use super::ceiling_release::CeilingReport;
use super::input_encoding::DatasetInput;
use super::microaggregated_cells::MicroaggregationReport;
use crate::config::RecodingScope;
use std::collections::BTreeMap;
use throng_core::domain::Domain;
use throng_core::lattice::recoding_passes::LocalRecodingResult;
use throng_core::lattice::search::LatticeStrategy;
use throng_core::lattice::table::{LatticeTable, UNCOUNTED_SUBJECT};
use throng_core::quality::QualityMeasure;
use throng_core::release::verified_batch::ReidentificationRisk;

/// Report of an anonymized data set.
#[derive(Debug)]
pub struct AnonymizationReport {
    /// Records read.
    pub rows: u64,
    /// Records to be released by `anonymize.released`.
    pub to_release: u64,
    /// Records swallowed by an unclosed quote.
    pub swallowed: u64,
    /// Quasi attributes, in the order of schema and policies.
    pub quasi: Vec<String>,
    /// Label per quasi attribute and level.
    pub labels: Vec<Vec<String>>,
    /// Configured scope.
    pub transformation: RecodingScope,
    /// Policies and suppressed records.
    pub recoded: LocalRecodingResult,
    /// Optimized measure.
    pub measure: QualityMeasure,
    /// Search strategy.
    pub strategy: LatticeStrategy,
    /// Number of policies, approximate above 128 bits.
    pub lattice: f64,
    /// Risk of the lines, as counted by verification.
    pub risk: ReidentificationRisk,
    /// Risk of the records without anonymization.
    pub risk_before: RawRisk,
    /// Subjects; `None` if every record is one.
    pub people: Option<SubjectCounts>,
    /// Sensitive cells released as `*`, rare or covering.
    pub rare_sensitive_cells: u64,
    /// Attributes with aggregates.
    pub aggregated: Vec<MicroaggregationReport>,
    /// Result of the ceiling; other figures count true records only.
    pub ceiled: Option<CeilingReport>,
    /// Warnings about redundant schema definitions.
    pub warnings: Vec<String>,
    /// Wall time, including input and output.
    pub seconds: f64,
}

/// Subjects to be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectCounts {
    /// Distinct subjects, without missing ones.
    pub all: u64,
    /// Subjects without a released record.
    pub without_release: u64,
}

/// Prosecutor risk without anonymization: 1 / subjects of the class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RawRisk {
    /// In (0, 1]; 0 without records.
    pub highest: f64,
    /// Mean over records, in (0, 1]; 0 without records.
    pub average: f64,
}

/// Sums over tuple sizes, so that the order of tuples has no effect.
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn raw_risk(table: &LatticeTable) -> RawRisk {
    // By subjects and records.
    let mut tuples: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut people: Vec<u32> = Vec::new();
    let is_named = table.has_subjects();
    table.visit_raw_tuples(&mut |records, subjects| {
        people.clear();
        people.extend(subjects.filter(|&subject| subject != UNCOUNTED_SUBJECT));
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

/// Label and number per quasi attribute and level.
pub(super) fn level_labels(input: &DatasetInput) -> Vec<Vec<String>> {
    let of = |&attribute: &usize| {
        let hierarchy = &input.schema.attributes[attribute].hierarchy;
        let top = hierarchy.levels() - 1;
        (0..=top).map(|level| format!("{} (level {level} of {top})", hierarchy.label(level))).collect()
    };
    input.quasi.iter().map(of).collect()
}

pub(super) fn format_policy(domains: &[Domain], input: &DatasetInput, policy: &[u8]) -> String {
    let labels = level_labels(input);
    let of = domains.iter().zip(&labels).zip(policy);
    let said: Vec<String> =
        of.map(|((domain, labels), &level)| format!("{}: {}", domain.name(), labels[usize::from(level)])).collect();
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::domain::HierarchyLevel;
    use throng_core::lattice::table::TableRecords;

    fn table(records: &TableRecords) -> LatticeTable {
        let bottom = HierarchyLevel { cell_of: vec![0, 1, 2, 3], loss: vec![0.0; 4] };
        let top = HierarchyLevel { cell_of: vec![0; 4], loss: vec![1.0] };
        let domain = |name| Domain::new(name, vec![bottom.clone(), top.clone()]).expect("a hierarchy");
        LatticeTable::new(vec![domain("a"), domain("b")], records).expect("a table")
    }

    fn records(subjects: Option<Vec<u32>>) -> TableRecords {
        TableRecords { quasi: vec![vec![0, 0, 0, 1, 1], vec![2, 2, 2, 2, 3]], subjects, ..TableRecords::default() }
    }

    #[test]
    fn raw_risk_counts_subjects_per_tuple() {
        let risk = raw_risk(&table(&records(None)));
        assert!(risk.highest == 1.0 && (risk.average - 3.0 / 5.0).abs() < 1e-12, "{risk:?}");
        let risk = raw_risk(&table(&records(Some(vec![7, 7, 8, UNCOUNTED_SUBJECT, 9]))));
        assert!((risk.average - (3.0 / 2.0 + 2.0) / 5.0).abs() < 1e-12, "{risk:?}");
        let released = Some(vec![true, true, true, false, false]);
        let risk = raw_risk(&table(&TableRecords { released, ..records(None) }));
        assert!((risk.highest - 1.0 / 3.0).abs() < 1e-12 && (risk.average - 1.0 / 3.0).abs() < 1e-12, "{risk:?}");
    }
}
