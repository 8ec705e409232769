//! Series of a stream: readings of a batch, the proposal, its verification, and the state behind them.

use crate::anonymity::series::{Cohort, CohortTerms, Readings, SeriesChanges, SeriesState, Terms, propose};
use crate::records::codebook::{Code, Codebook, FIRST_VALUE};
use crate::records::digest::{DigestKey, Keyed};
use crate::records::json::unquoted;
use crate::records::moment;
use crate::records::table::Batch;
use crate::release::series::{SeriesRefusal, VerifiedSeries, verify_series};
use crate::telemetry::SeriesPublished;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Series of a stream: their terms and all that is remembered of them.
pub(super) struct SeriesStream {
    terms: Arc<Terms>,
    state: SeriesState,
    /// People of all sets that have been published.
    represented: u64,
    draws: Keyed,
    numbers: NumberCache,
}

/// Numbers by attribute and code, as long as the dictionaries keep their numbering.
#[derive(Default)]
struct NumberCache {
    numbering: u64,
    /// None: not looked up yet.
    numbers: BTreeMap<usize, Vec<Option<f64>>>,
}

impl NumberCache {
    /// The numbers of a column, NaN where a cell has none.
    fn column(&mut self, attribute: usize, codes: &[Code], book: &Codebook, read: fn(&str) -> Option<f64>) -> Vec<f64> {
        let known = self.numbers.entry(attribute).or_default();
        known.resize(known.len().max(book.codes()), None);
        let number = |&code: &Code| {
            if code < FIRST_VALUE {
                return f64::NAN;
            }
            *known[code as usize].get_or_insert_with(|| read(book.canonical(code)).unwrap_or(f64::NAN))
        };
        codes.iter().map(number).collect()
    }
}

/// Milliseconds of a canonical date or timestamp.
fn milliseconds(canonical: &str) -> Option<f64> {
    unquoted(canonical).and_then(|text| moment::parse(&text)).map(|time| time as f64)
}

fn parsed(canonical: &str) -> Option<f64> {
    canonical.parse().ok()
}

impl SeriesStream {
    pub(super) fn new(terms: Arc<Terms>, secret: &DigestKey) -> Self {
        let state = SeriesState::new(&terms);
        Self {
            terms,
            state,
            represented: 0,
            draws: Keyed::new(secret, "throng cohorts"),
            numbers: NumberCache::default(),
        }
    }

    /// Goes on from a state that was read back; false where it is of other series.
    pub(super) fn resume(&mut self, past: Option<SeriesState>) -> bool {
        let mut state = past.unwrap_or_else(|| SeriesState::new(&self.terms));
        state.release_members();
        let fits =
            state.head.closed_ms.len() == self.terms.series.len() && state.head.steps.len() == self.terms.channels();
        self.state = state;
        self.count_represented();
        fits
    }

    /// Replaces the entries that a batch has changed.
    pub(super) fn apply(&mut self, changes: SeriesChanges) {
        let has_new_sets = !changes.cohorts.is_empty();
        self.state.apply(changes);
        if has_new_sets {
            self.count_represented();
        }
    }

    /// Counts the people of all sets that have been published.
    fn count_represented(&mut self) {
        let in_a_set = |cohort: &Cohort| {
            let published = cohort.sets.iter().flatten().fold(0, |all, set| all | set);
            cohort.members(published).collect::<Vec<u64>>()
        };
        let people: BTreeSet<u64> = self.state.cohorts.values().flat_map(in_a_set).collect();
        self.represented = people.len() as u64;
    }

    /// What the published rows represent.
    pub(super) fn published(&self) -> SeriesPublished {
        let totals = self.state.head.totals;
        SeriesPublished {
            people: self.represented,
            people_seen: self.state.people.len() as u64,
            records: totals.records,
            represented: totals.represented,
            rows: totals.rows,
            late: totals.late + totals.early + totals.over_limit + totals.unplaced,
            too_few: totals.too_few,
            dominated: totals.dominated,
        }
    }

    /// Whether the end of the source closes buckets.
    pub(super) fn awaits_end(&self) -> bool {
        self.terms.cohorts.is_batch && !self.state.open.is_empty()
    }

    /// Rows of the buckets that a batch closes, verified, and what the state becomes with it. `numbering` is that of the books.
    pub(super) fn step(
        &mut self,
        fresh: &Batch,
        (books, numbering): (&[Codebook], u64),
        batch_clock_ms: i64,
        is_end: bool,
    ) -> Result<(VerifiedSeries, SeriesChanges), SeriesRefusal> {
        let readings = self.readings(fresh, books, numbering);
        let Self { terms, state, draws, .. } = self;
        // A job over files may be of any time. Clocks of devices may be ahead by what a bucket waits for late records.
        let tolerance_ms = terms.series.iter().map(|series| series.lateness_ms).min().unwrap_or(0);
        let clock_ms = (!terms.cohorts.is_batch).then_some(batch_clock_ms.saturating_add(tolerance_ms));
        let draw = |number: u128| draws.digest(&number.to_be_bytes());
        let proposal = propose(terms, state, &readings, clock_ms, is_end, &draw);
        let verified = verify_series(terms, state, &readings, clock_ms, &proposal)?;
        Ok((verified, proposal.changes))
    }

    fn readings(&mut self, fresh: &Batch, books: &[Codebook], numbering: u64) -> Readings {
        if self.numbers.numbering != numbering {
            self.numbers = NumberCache { numbering, ..NumberCache::default() };
        }
        let terms = Arc::clone(&self.terms);
        let mut column =
            |attribute: usize, read| self.numbers.column(attribute, &fresh.columns[attribute], &books[attribute], read);
        let times = column(terms.cohorts.time, milliseconds);
        let times = times.into_iter().map(|time| (!time.is_nan()).then_some(time as i64)).collect();
        let mut values = vec![Vec::new(); books.len()];
        for signal in terms.series.iter().flat_map(|series| &series.signals) {
            if values[signal.attribute].is_empty() {
                values[signal.attribute] = column(signal.attribute, parsed);
            }
        }
        let strata = self.strata(fresh, books, &terms.cohorts);
        Readings { subjects: fresh.subjects.clone(), times, values, strata }
    }

    /// Labels of people whose stratum is not known, from the first record of each in the batch that has all of them.
    fn strata(&self, fresh: &Batch, books: &[Codebook], terms: &CohortTerms) -> BTreeMap<u64, Vec<String>> {
        let mut strata = BTreeMap::new();
        if terms.strata.is_empty() {
            return strata;
        }
        for (row, &subject) in fresh.subjects.iter().enumerate() {
            let is_known = self.state.people.get(&subject).is_some_and(|person| person.has_stratum(terms.strata.len()));
            if is_known || strata.contains_key(&subject) {
                continue;
            }
            let label = |&(attribute, level): &(usize, usize)| {
                let code = fresh.columns[attribute][row];
                let book = &books[attribute];
                let text = (code >= FIRST_VALUE).then(|| book.text(book.cell(code, level)))?;
                Some(unquoted(text).unwrap_or_else(|| text.to_owned()))
            };
            if let Some(labels) = terms.strata.iter().map(label).collect() {
                strata.insert(subject, labels);
            }
        }
        strata
    }
}
