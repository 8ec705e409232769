//! The records that are most at risk, in terms of the report.

use super::prepare::AuditTable;
use super::report::{RiskiestReport, RiskyRecord};
use crate::risk::exposure::Riskiest;

/// Combinations of one record that are listed at most, smaller ones first.
const COMBINATIONS: usize = 100;

/// The records by number, their combinations by the names of the columns.
pub(super) fn riskiest_report(table: &AuditTable, found: &Riskiest) -> RiskiestReport {
    let record = |(row, score): &(u32, f64)| {
        let of = found.combinations(*row).count() as u64;
        // They come by size already: only those that are listed get names.
        let mut combinations: Vec<Vec<String>> =
            found.combinations(*row).take(COMBINATIONS).map(|set| table.names(set)).collect();
        combinations.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        RiskyRecord { record: table.numbers.of(*row as usize), score: *score, combinations, combinations_of: of }
    };
    RiskiestReport {
        largest: found.largest,
        complete: found.complete,
        at_risk: found.at_risk,
        records: found.rows.iter().map(record).collect(),
    }
}
