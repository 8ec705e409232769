//! Strongest inferences, in terms of the report.

use std::time::Instant;

use super::prepare::AuditTable;
use super::report::InferenceReport;
use crate::inferences::{InferenceRequest, ValueInference, affordable_pairs};

const MAX_LISTED_INFERENCES: usize = 100;

/// Bounds work, not time, so that the report is reproducible.
const MAX_INFERENCE_VISITS: u64 = 500_000_000;

const PAIRS_PER_TIME_CHECK: usize = 64;

/// Inferences, strongest first.
pub(super) struct InferenceList {
    found: Vec<ValueInference>,
    pub pairs: u64,
    pub pairs_of: u64,
}

impl InferenceList {
    /// No pair is started after `until`.
    pub fn of(
        table: &AuditTable,
        k: u32,
        threads: usize,
        until: Option<Instant>,
        strongest: &dyn Fn(&InferenceRequest<'_>) -> Vec<ValueInference>,
    ) -> Self {
        let searched: Vec<usize> = table.searched.iter().collect();
        let each = searched.iter().enumerate();
        let mut pairs: Vec<(usize, usize)> =
            each.flat_map(|(at, &a)| searched[at + 1..].iter().map(move |&b| (a, b))).collect();
        // Columns of few values have large classes. Ties do not depend on the column order.
        let name = |column: usize| table.judged[column].name.as_str();
        pairs.sort_by_cached_key(|&(a, b)| {
            let values = table.columns.cardinality(a) * table.columns.cardinality(b);
            (values, name(a).min(name(b)).to_owned(), name(a).max(name(b)).to_owned())
        });
        let looked = affordable_pairs(&pairs, table.columns.rows(), MAX_INFERENCE_VISITS);
        let at_once = if until.is_some() { PAIRS_PER_TIME_CHECK } else { looked.len().max(1) };
        let (mut found, mut done) = (Vec::new(), 0);
        for pairs in looked.chunks(at_once) {
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            found.extend(strongest(&InferenceRequest { k, missing: &table.missing, pairs, threads }));
            done += pairs.len() as u64;
        }
        found.sort_by(|a, b| {
            a.compare_strength(b).then_with(|| (name(a.from), name(a.to)).cmp(&(name(b.from), name(b.to))))
        });
        found.truncate(MAX_LISTED_INFERENCES);
        Self { found, pairs: done, pairs_of: pairs.len() as u64 }
    }

    pub fn report(&self, table: &AuditTable) -> Vec<InferenceReport> {
        let name = |column: usize| table.judged[column].name.clone();
        let of = |inference: &ValueInference| InferenceReport {
            from: name(inference.from),
            to: name(inference.to),
            records: inference.records,
            people: table.subject.is_some().then_some(inference.people),
            given: inference.of_given,
            probability: inference.probability(),
            expected: inference.expected(),
            values: table.values.as_ref().map(|values| {
                [values.text(inference.from, inference.given), values.text(inference.to, inference.inferred_code)]
            }),
        };
        self.found.iter().map(of).collect()
    }
}
