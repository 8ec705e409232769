//! Which values give others away, in terms of the report.

use std::time::Instant;

use super::prepare::AuditTable;
use super::report::InferenceReport;
use crate::inferences::{InferenceQuestion, ValueInference, affordable};

/// Inferences that are reported at most.
const LISTED: usize = 100;

/// Record visits that looking for them may take: a bound on work and not on time, so that every machine reports the same.
const MOST_VISITS: u64 = 500_000_000;

/// Pairs of columns between two looks at the clock.
const BATCH: usize = 64;

/// What was found, strongest first.
pub(super) struct Inferences {
    found: Vec<ValueInference>,
    pub pairs: u64,
    pub pairs_of: u64,
}

impl Inferences {
    /// The strongest inferences between the searched columns, as they are: nothing is masked, and what is rarer than k
    /// supports none.
    /// After `until` no more pairs are begun.
    pub fn of(
        table: &AuditTable,
        k: u32,
        threads: usize,
        until: Option<Instant>,
        strongest: &dyn Fn(&InferenceQuestion<'_>) -> Vec<ValueInference>,
    ) -> Self {
        let searched: Vec<usize> = table.searched.iter().collect();
        let each = searched.iter().enumerate();
        let mut pairs: Vec<(usize, usize)> =
            each.flat_map(|(at, &a)| searched[at + 1..].iter().map(move |&b| (a, b))).collect();
        // Few values have large crowds. By names, so that the order of the columns decides nothing.
        let name = |column: usize| table.judged[column].name.as_str();
        pairs.sort_by_cached_key(|&(a, b)| {
            let values = table.columns.cardinality(a) * table.columns.cardinality(b);
            (values, name(a).min(name(b)).to_owned(), name(a).max(name(b)).to_owned())
        });
        let looked = affordable(&pairs, table.columns.rows(), MOST_VISITS);
        let at_once = if until.is_some() { BATCH } else { looked.len().max(1) };
        let (mut found, mut done) = (Vec::new(), 0);
        for pairs in looked.chunks(at_once) {
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            found.extend(strongest(&InferenceQuestion { k, missing: &table.missing, pairs, threads }));
            done += pairs.len() as u64;
        }
        found.sort_by(|a, b| a.stronger(b).then_with(|| (name(a.from), name(a.to)).cmp(&(name(b.from), name(b.to)))));
        found.truncate(LISTED);
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
                [values.text(inference.from, inference.given), values.text(inference.to, inference.told)]
            }),
        };
        self.found.iter().map(of).collect()
    }
}
