//! Series of a stream: readings of a batch, the proposal, its verification, and the state behind them.

use super::series_exchange::{Exchange, IdleSources, OtherSeries, Share};
use crate::anonymity::series::{
    Cohort, CohortTerms, Head, Readings, SeriesChanges, SeriesState, Terms, Totals, propose,
};
use crate::daemon::state::entries::EntryCodec;
use crate::io::input::{InputBatch, Place};
use crate::release::series::{SeriesRefusal, VerifiedSeries, verify_series};
use crate::telemetry::{SeriesPublished, SeriesRecords, TooFewBuckets};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use throng_core::values::canonical::Canonical;
use throng_core::values::codebook::{Code, Codebook, FIRST_VALUE, UNCOVERED};
use throng_core::values::digest::{DigestKey, Keyed};
use throng_core::values::hierarchy::Hierarchy;
use throng_core::values::json::unquoted;
use throng_core::values::moment;
use throng_core::values::raw::Coordinate;
use throng_core::values::table::Batch;

/// Series of a stream: their terms and all that is remembered of them.
pub(super) struct SeriesStream {
    terms: Arc<Terms>,
    state: SeriesState,
    /// People of all sets that have been published.
    represented: u64,
    /// Counts with which a job over files begins: those of earlier jobs, which its figures leave out. Zero for a stream.
    before: Vec<Totals>,
    draws: Keyed,
    numbers: NumberCache,
    /// A state is kept: a later run may go on with the open buckets.
    keeps_state: bool,
    /// How contributions reach the instance that has the cohorts; none where the records are taken in here.
    exchange: Option<Exchange>,
}

/// Whether more records can come after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceEnd {
    /// The source goes on.
    No,
    /// The run ends, and the source may go on.
    Stopped,
    /// The source has ended.
    Ended,
}

/// A batch as it was read and as it was encoded.
#[derive(Clone, Copy)]
pub(super) struct EncodedInput<'a> {
    pub input: &'a InputBatch,
    pub rows: &'a Batch,
    pub books: &'a [Codebook],
    /// Numbering of the books.
    pub numbering: u64,
}

/// What a batch publishes, changes and drops.
#[derive(Default)]
pub(super) struct SeriesStep {
    /// Rows that may leave, and entries of the state as they are once the batch has left; none of an instance that has no cohorts, or
    /// to which nothing has come.
    pub published: Option<(VerifiedSeries, SeriesChanges)>,
    /// Records that contribute nothing, each with the position of the series.
    pub dropped: Vec<(Coordinate, usize)>,
    /// Sealed contributions for the instance that has the cohorts.
    pub contributions: Vec<Vec<u8>>,
    /// Partitions that were idle for it, and all partitions.
    pub idle: BTreeMap<Place, i64>,
    pub sources: Vec<Place>,
}

/// Why a batch has no step.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Refused(#[from] SeriesRefusal),
    #[error(transparent)]
    OtherSeries(#[from] OtherSeries),
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

/// Reads the numbers or times of an attribute again that have no code because they are outside the range of its hierarchy, or because the
/// dictionary is full. A number that a list of values does not have stays missing.
fn restore(batch: EncodedInput<'_>, attribute: usize, read: fn(&str) -> Option<f64>, values: &mut [f64]) {
    let EncodedInput { input, rows, books, .. } = batch;
    let described = books[attribute].attribute();
    let codes = &rows.columns[attribute];
    let has_numbers = matches!(described.hierarchy, Hierarchy::Ruler(_) | Hierarchy::Calendar(_) | Hierarchy::Flat);
    if !has_numbers || !codes.contains(&UNCOVERED) {
        return;
    }
    // Encoding drops records and keeps their order.
    let (mut raw_row, mut text) = (0, String::new());
    for (row, coordinate) in rows.coordinates.iter().enumerate() {
        while input.raw.coordinates().get(raw_row).is_some_and(|read| read != coordinate) {
            raw_row += 1;
        }
        if codes[row] == UNCOVERED && raw_row < input.raw.rows() {
            let token = input.raw.token(raw_row, attribute);
            let is_value = described.typing.canonical(token, &mut text) == Ok(Canonical::Value);
            values[row] = read(&text).filter(|_| is_value).unwrap_or(f64::NAN);
        }
    }
}

/// Number of people in the published sets of these cohorts.
fn people_in_sets<'a>(cohorts: impl Iterator<Item = &'a Cohort>) -> u64 {
    let in_a_set = |cohort: &'a Cohort| {
        let published = cohort.sets.iter().flatten().fold(0, |all, set| all | set);
        cohort.members(published)
    };
    cohorts.flat_map(in_a_set).collect::<BTreeSet<u64>>().len() as u64
}

impl SeriesStream {
    pub(super) fn new(terms: Arc<Terms>, secret: &DigestKey, keeps_state: bool) -> Self {
        let state = SeriesState::new(&terms);
        Self {
            before: state.head.counts.clone(),
            terms,
            state,
            represented: 0,
            draws: Keyed::new(secret, "throng cohorts"),
            numbers: NumberCache::default(),
            keeps_state,
            exchange: None,
        }
    }

    /// Contributions go through partition `place` of a topic from now on; `sources` are the partitions of the source.
    pub(super) fn exchange_through(&mut self, place: Place, sources: Vec<Place>, codec: EntryCodec) {
        self.exchange = Some(Exchange { place, sources, idle: None, codec });
    }

    /// The partition of the contributions; whoever has it has the cohorts.
    pub(super) fn place(&self) -> Option<Place> {
        self.exchange.as_ref().map(|exchange| exchange.place)
    }

    /// No bucket waits for partitions without an unread record.
    pub(super) fn note_idle(&mut self, idle: IdleSources) {
        if let Some(exchange) = &mut self.exchange {
            exchange.idle = Some(idle);
        }
    }

    /// Partitions for which buckets wait that a crowd of people has passed, each with the offset where it stands.
    pub(super) fn waits_for(&self) -> BTreeMap<Place, i64> {
        let waits =
            |exchange: &Exchange| self.state.head.waits_for(&self.terms, &exchange.all_sources(&self.state.head));
        self.exchange.as_ref().map(waits).unwrap_or_default()
    }

    /// Whether buckets can close without further contributions.
    pub(super) fn has_due(&self, position: i64) -> bool {
        let head = &self.state.head;
        let is_due =
            |exchange: &Exchange| head.has_due(&self.terms, &exchange.all_sources(head), &exchange.idle_at(position));
        self.exchange.as_ref().is_some_and(is_due)
    }

    /// Goes on from a state that was read back; false where it is of other series.
    pub(super) fn resume(&mut self, past: Option<SeriesState>) -> bool {
        let mut state = past.unwrap_or_else(|| SeriesState::new(&self.terms));
        state.release_members();
        let fits = state.head.identity == self.terms.identity();
        if fits {
            self.state = state;
            if self.terms.cohorts.is_batch {
                self.before.clone_from(&self.state.head.counts);
            }
            self.count_represented();
        }
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
        self.represented = people_in_sets(self.state.cohorts.values());
    }

    /// Whether this run or an earlier one of the state has published rows.
    pub(super) fn has_published(&self) -> bool {
        self.state.head.totals().rows > 0
    }

    /// Counts of the published rows.
    pub(super) fn published(&self) -> SeriesPublished {
        let counts = self.counts(&self.state.head, self.represented, self.state.people.len() as u64);
        let is_empty = self.terms.cohorts.is_batch && counts.rows == 0 && counts.rows_before == 0;
        let too_short = is_empty.then(|| self.state.too_few_buckets(&self.terms)).flatten();
        SeriesPublished { too_short: too_short.map(|(most, needed)| TooFewBuckets { most, needed }), ..counts }
    }

    /// The same counts once `changes` are applied.
    pub(super) fn published_after(&self, changes: &SeriesChanges) -> SeriesPublished {
        let represented = if changes.cohorts.is_empty() {
            self.represented
        } else {
            let changed: BTreeMap<u32, &Cohort> =
                changes.cohorts.iter().map(|(number, cohort)| (*number, cohort)).collect();
            let kept = self.state.cohorts.iter().filter(|(number, _)| !changed.contains_key(number));
            people_in_sets(kept.map(|(_, cohort)| cohort).chain(changed.values().copied()))
        };
        let known = &self.state.people;
        let new = changes.people.iter().filter(|(subject, _)| !known.contains_key(subject)).count();
        self.counts(&changes.head, represented, (known.len() + new) as u64)
    }

    /// People of sets and people of rows with noise may be the same: the greater number counts.
    fn counts(&self, head: &Head, in_sets: u64, people_seen: u64) -> SeriesPublished {
        let counts: Vec<Totals> = head.counts.iter().zip(&self.before).map(|(now, before)| now.since(before)).collect();
        let of_series = counts.iter().zip(&head.epochs).map(|(counts, epochs)| SeriesRecords {
            records: counts.records,
            represented: counts.represented,
            warming_up: counts.warming_up,
            dropped: counts.dropped(),
            is_pending: epochs.records > 0,
        });
        let share = |records: &SeriesRecords| records.records_share().unwrap_or(-1.0);
        let best = of_series.reduce(|best, other| if share(&other) > share(&best) { other } else { best });
        let totals = counts.iter().fold(Totals::default(), |sum, counts| sum.plus(counts));
        SeriesPublished {
            people: in_sets.max(head.noise_people),
            people_seen,
            rows_before: self.before.iter().map(|before| before.rows).sum(),
            best: best.unwrap_or_default(),
            pending: head.epochs.iter().map(|epochs| epochs.records).sum(),
            rows: totals.rows,
            late: totals.dropped(),
            too_few: totals.too_few,
            binned: totals.binned,
            dominated: totals.dominated,
            too_short: None,
        }
    }

    /// Whether a batch closes all buckets: the last one of a job, or of a stream that has ended where no later run can go on with its
    /// buckets.
    pub(super) fn closes_all(&self, end: SourceEnd) -> bool {
        match end {
            SourceEnd::No => false,
            SourceEnd::Stopped => self.terms.cohorts.is_batch,
            SourceEnd::Ended => self.terms.cohorts.is_batch || !self.keeps_state,
        }
    }

    /// Whether buckets are open.
    pub(super) fn has_open_buckets(&self) -> bool {
        !self.state.open.is_empty()
    }

    /// What a batch contributes, the rows of the buckets that it closes, verified, and what the state becomes with it. With `repeated`, the
    /// partitions were idle that were idle then. Only an instance that `has_cohorts` publishes.
    pub(super) fn step(
        &mut self,
        batch: EncodedInput<'_>,
        batch_clock_ms: i64,
        end: SourceEnd,
        share: &Share<'_>,
    ) -> Result<SeriesStep, StepError> {
        let is_end = self.closes_all(end);
        let readings = self.readings(batch);
        // Clocks of devices may be ahead by what a bucket waits for late records. A later time would close buckets of later jobs.
        let tolerance_ms = self.terms.series.iter().map(|series| series.lateness_ms).min().unwrap_or(0);
        let clock_ms = Some(batch_clock_ms.saturating_add(tolerance_ms));
        let Some(exchange) = &self.exchange else {
            let (published, dropped) = self.publish(&readings, clock_ms, is_end)?;
            let dropped = dropped.into_iter().map(|(row, series)| (batch.rows.coordinates[row], series)).collect();
            return Ok(SeriesStep { published: Some(published), dropped, ..SeriesStep::default() });
        };
        let EncodedInput { input, rows, .. } = batch;
        let contributions = exchange.contributions(&self.terms, (input, rows), &readings, clock_ms, share.age_ms)?;
        let due = share.repeated.map_or_else(|| self.has_due(share.position), |intent| intent.series_place.is_some());
        if !share.has_cohorts || input.contributions.is_empty() && !due {
            return Ok(SeriesStep { contributions, ..SeriesStep::default() });
        }
        let received = exchange.received(&self.terms, &self.state.head, input, share)?;
        let (idle, sources) = (received.idle.clone(), received.sources.clone());
        let readings = Readings { received: Some(received), ..Readings::default() };
        let (published, _) = self.publish(&readings, clock_ms, is_end)?;
        Ok(SeriesStep { published: Some(published), contributions, idle, sources, ..SeriesStep::default() })
    }

    /// The rows of the buckets that close, verified, what the state becomes, and what contributes nothing.
    fn publish(
        &self,
        readings: &Readings,
        clock_ms: Option<i64>,
        is_end: bool,
    ) -> Result<((VerifiedSeries, SeriesChanges), BTreeSet<(usize, usize)>), SeriesRefusal> {
        let Self { terms, state, draws, .. } = self;
        let draw = |number: u128| draws.digest(&number.to_be_bytes());
        let proposal = propose(terms, state, readings, clock_ms, is_end, &draw);
        let verified = verify_series(terms, state, readings, clock_ms, &proposal)?;
        Ok(((verified, proposal.changes), proposal.dropped))
    }

    /// Terms of the series.
    pub(super) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// What is remembered of the series.
    pub(super) fn state(&self) -> &SeriesState {
        &self.state
    }

    fn readings(&mut self, batch: EncodedInput<'_>) -> Readings {
        let EncodedInput { rows: fresh, books, numbering, .. } = batch;
        if self.numbers.numbering != numbering {
            self.numbers = NumberCache { numbering, ..NumberCache::default() };
        }
        let terms = Arc::clone(&self.terms);
        let mut column =
            |attribute: usize, read| self.numbers.column(attribute, &fresh.columns[attribute], &books[attribute], read);
        let mut times = column(terms.cohorts.time, milliseconds);
        restore(batch, terms.cohorts.time, milliseconds, &mut times);
        let times = times.into_iter().map(|time| (!time.is_nan()).then_some(time as i64)).collect();
        let mut values = vec![Vec::new(); books.len()];
        for signal in terms.series.iter().flat_map(|series| &series.signals) {
            if values[signal.attribute].is_empty() {
                values[signal.attribute] = column(signal.attribute, parsed);
                restore(batch, signal.attribute, parsed, &mut values[signal.attribute]);
            }
        }
        let strata = self.strata(fresh, books, &terms.cohorts);
        Readings { subjects: fresh.subjects.clone(), times, values, strata, received: None }
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
