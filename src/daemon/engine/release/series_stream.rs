//! Series of a stream: readings, proposal, verification and state.

use super::series_exchange::{ContributionExchange, IdleSources, SeriesMismatch, SeriesStepContext};
use crate::daemon::state::entries::EntryCodec;
use crate::telemetry::{SeriesPublished, SeriesRecords, TooFewBuckets};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use throng_core::release::series::{SeriesRefusal, VerifiedSeries, verify_series};
use throng_core::series::{
    AllSeriesTerms, CohortState, CohortTerms, SeriesChanges, SeriesCounts, SeriesReadings, SeriesState,
    SharedSeriesState, propose_series,
};
use throng_core::stream::input_batch::{InputBatch, InputPartition};
use throng_core::values::canonical::CanonicalKind;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{Code, Codebook, FIRST_VALUE, UNCOVERED};
use throng_core::values::digest::{DigestKey, KeyedDigest};
use throng_core::values::hierarchy::Hierarchy;
use throng_core::values::json::unquoted;
use throng_core::values::moment;
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::resolved_cells::ResolvedCells;
use throng_core::values::schema::Attribute;

pub(crate) struct SeriesStream {
    terms: Arc<AllSeriesTerms>,
    state: SeriesState,
    /// Subjects in published sets.
    represented: u64,
    before: Vec<SeriesCounts>,
    draws: KeyedDigest,
    numbers: NumberCache,
    /// A later run can continue open buckets.
    keeps_state: bool,
    /// `None` if this process has the cohorts.
    exchange: Option<ContributionExchange>,
}

/// Possibility of further records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceEnd {
    Continues,
    /// The run ends; the source may continue.
    Stopped,
    Ended,
}

#[derive(Clone, Copy)]
pub(crate) struct SeriesBatchInput<'a> {
    pub input: &'a InputBatch,
    pub rows: &'a CodeBatch,
    pub books: &'a [Codebook],
    pub numbering: u64,
}

#[derive(Default)]
pub(crate) struct SeriesStep {
    /// Verified rows and state changes; `None` without cohorts or contributions.
    pub published: Option<(VerifiedSeries, SeriesChanges)>,
    /// Records that contribute nothing, with series positions.
    pub dropped: Vec<(RecordPosition, usize)>,
    /// Sealed, for the owner of the cohorts.
    pub contributions: Vec<Vec<u8>>,
    /// Idle partitions.
    pub idle: BTreeMap<InputPartition, i64>,
    pub sources: Vec<InputPartition>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error(transparent)]
    Refused(#[from] SeriesRefusal),
    #[error(transparent)]
    OtherSeries(#[from] SeriesMismatch),
}

#[derive(Default)]
struct NumberCache {
    numbering: u64,
    /// `None`: not parsed yet.
    numbers: BTreeMap<usize, Vec<Option<f64>>>,
}

impl NumberCache {
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

fn milliseconds(canonical: &str) -> Option<f64> {
    unquoted(canonical).and_then(|text| moment::parse(&text)).map(|time| time as f64)
}

fn parsed(canonical: &str) -> Option<f64> {
    canonical.parse().ok()
}

/// Numbers missing from a list stay missing.
fn reparse_uncovered(batch: SeriesBatchInput<'_>, attribute: usize, read: fn(&str) -> Option<f64>, values: &mut [f64]) {
    let SeriesBatchInput { input, rows, books, .. } = batch;
    let described = books[attribute].attribute();
    let codes = &rows.columns[attribute];
    let has_numbers = matches!(described.hierarchy, Hierarchy::Ruler(_) | Hierarchy::Calendar(_) | Hierarchy::Flat);
    if !has_numbers || !codes.contains(&UNCOVERED) {
        return;
    }
    let resolved = described.companion().and_then(|_| {
        let attributes: Vec<Arc<Attribute>> = books.iter().map(|book| Arc::clone(book.attribute())).collect();
        ResolvedCells::from_raw_batch(&input.raw, &attributes)
    });
    let resolved = resolved.as_ref().and_then(|resolved| resolved.column(attribute));
    let (cells, column) = resolved.unwrap_or((&input.raw, attribute));
    // Encoding keeps record order.
    let (mut raw_row, mut text) = (0, String::new());
    for (row, coordinate) in rows.coordinates.iter().enumerate() {
        while input.raw.coordinates().get(raw_row).is_some_and(|read| read != coordinate) {
            raw_row += 1;
        }
        if codes[row] == UNCOVERED && raw_row < input.raw.rows() {
            let token = cells.token(raw_row, column);
            let is_value = described.typing.canonical(token, &mut text) == Ok(CanonicalKind::Value);
            values[row] = read(&text).filter(|_| is_value).unwrap_or(f64::NAN);
        }
    }
}

fn people_in_sets<'a>(cohorts: impl Iterator<Item = &'a CohortState>) -> u64 {
    let in_a_set = |cohort: &'a CohortState| {
        let published = cohort.sets.iter().flatten().fold(0, |all, set| all | set);
        cohort.members(published)
    };
    cohorts.flat_map(in_a_set).collect::<BTreeSet<u64>>().len() as u64
}

impl SeriesStream {
    pub(crate) fn new(terms: Arc<AllSeriesTerms>, secret: &DigestKey, keeps_state: bool) -> Self {
        let state = SeriesState::new(&terms);
        Self {
            before: state.head.counts.clone(),
            terms,
            state,
            represented: 0,
            draws: KeyedDigest::new(secret, "throng cohorts"),
            numbers: NumberCache::default(),
            keeps_state,
            exchange: None,
        }
    }

    /// `sources` are the source's partitions.
    pub(crate) fn exchange_through(&mut self, place: InputPartition, sources: Vec<InputPartition>, codec: EntryCodec) {
        self.exchange = Some(ContributionExchange { place, sources, idle: None, codec });
    }

    pub(crate) fn place(&self) -> Option<InputPartition> {
        self.exchange.as_ref().map(|exchange| exchange.place)
    }

    pub(crate) fn note_idle(&mut self, idle: IdleSources) {
        if let Some(exchange) = &mut self.exchange {
            exchange.idle = Some(idle);
        }
    }

    /// Partitions that delay buckets passed by enough subjects, with offsets.
    pub(crate) fn partitions_delaying_buckets(&self) -> BTreeMap<InputPartition, i64> {
        let waits = |exchange: &ContributionExchange| {
            self.state.head.delaying_partitions(&self.terms, &exchange.all_sources(&self.state.head))
        };
        self.exchange.as_ref().map(waits).unwrap_or_default()
    }

    pub(crate) fn has_due(&self, position: i64) -> bool {
        let head = &self.state.head;
        let is_due = |exchange: &ContributionExchange| {
            head.has_due_buckets(&self.terms, &exchange.all_sources(head), &exchange.idle_at(position))
        };
        self.exchange.as_ref().is_some_and(is_due)
    }

    /// Continues from restored state; false if of other series.
    pub(crate) fn resume(&mut self, past: Option<SeriesState>) -> bool {
        let mut state = past.unwrap_or_else(|| SeriesState::new(&self.terms));
        state.return_members_to_pool();
        let fits = state.head.identity == self.terms.terms_identity();
        if fits {
            self.state = state;
            if self.terms.cohorts.is_batch {
                self.before.clone_from(&self.state.head.counts);
            }
            self.count_represented();
        }
        fits
    }

    /// Replaces changed entries.
    pub(crate) fn apply(&mut self, changes: SeriesChanges) {
        let has_new_sets = !changes.cohorts.is_empty();
        self.state.apply(changes);
        if has_new_sets {
            self.count_represented();
        }
    }

    fn count_represented(&mut self) {
        self.represented = people_in_sets(self.state.cohorts.values());
    }

    pub(crate) fn has_published(&self) -> bool {
        self.state.head.totals().rows > 0
    }

    pub(crate) fn published(&self) -> SeriesPublished {
        let counts = self.counts(&self.state.head, self.represented, self.state.people.len() as u64);
        let is_empty = self.terms.cohorts.is_batch && counts.rows == 0 && counts.rows_before == 0;
        let too_short = is_empty.then(|| self.state.too_few_buckets(&self.terms)).flatten();
        SeriesPublished { too_short: too_short.map(|(most, needed)| TooFewBuckets { most, needed }), ..counts }
    }

    pub(crate) fn published_after(&self, changes: &SeriesChanges) -> SeriesPublished {
        let represented = if changes.cohorts.is_empty() {
            self.represented
        } else {
            let changed: BTreeMap<u32, &CohortState> =
                changes.cohorts.iter().map(|(number, cohort)| (*number, cohort)).collect();
            let kept = self.state.cohorts.iter().filter(|(number, _)| !changed.contains_key(number));
            people_in_sets(kept.map(|(_, cohort)| cohort).chain(changed.values().copied()))
        };
        let known = &self.state.people;
        let new = changes.people.iter().filter(|(subject, _)| !known.contains_key(subject)).count();
        self.counts(&changes.head, represented, (known.len() + new) as u64)
    }

    /// Sets and noisy rows may share subjects: the greater number counts.
    fn counts(&self, head: &SharedSeriesState, in_sets: u64, people_seen: u64) -> SeriesPublished {
        let counts: Vec<SeriesCounts> =
            head.counts.iter().zip(&self.before).map(|(now, before)| now.since(before)).collect();
        let of_series = counts.iter().zip(&head.epochs).map(|(counts, epochs)| SeriesRecords {
            records: counts.records,
            represented: counts.represented,
            warming_up: counts.warming_up,
            dropped: counts.dropped(),
            is_pending: epochs.records > 0,
        });
        let share = |records: &SeriesRecords| records.records_share().unwrap_or(-1.0);
        let best = of_series.reduce(|best, other| if share(&other) > share(&best) { other } else { best });
        let totals = counts.iter().fold(SeriesCounts::default(), |sum, counts| sum.sum_with(counts));
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

    /// At the end of a job, or of a stream without stored state.
    pub(crate) fn closes_all(&self, end: SourceEnd) -> bool {
        match end {
            SourceEnd::Continues => false,
            SourceEnd::Stopped => self.terms.cohorts.is_batch,
            SourceEnd::Ended => self.terms.cohorts.is_batch || !self.keeps_state,
        }
    }

    pub(crate) fn has_open_buckets(&self) -> bool {
        !self.state.open.is_empty()
    }

    /// Only an owner of cohorts publishes.
    pub(crate) fn step(
        &mut self,
        batch: SeriesBatchInput<'_>,
        batch_clock_ms: i64,
        end: SourceEnd,
        share: &SeriesStepContext<'_>,
    ) -> Result<SeriesStep, StepError> {
        let is_end = self.closes_all(end);
        let readings = self.readings(batch);
        // Later times would close buckets of later jobs.
        let tolerance_ms = self.terms.series.iter().map(|series| series.lateness_ms).min().unwrap_or(0);
        let clock_ms = Some(batch_clock_ms.saturating_add(tolerance_ms));
        let Some(exchange) = &self.exchange else {
            let (published, dropped) = self.publish(&readings, clock_ms, is_end)?;
            let dropped = dropped.into_iter().map(|(row, series)| (batch.rows.coordinates[row], series)).collect();
            return Ok(SeriesStep { published: Some(published), dropped, ..SeriesStep::default() });
        };
        let SeriesBatchInput { input, rows, .. } = batch;
        let contributions = exchange.contributions(&self.terms, (input, rows), &readings, clock_ms, share.age_ms)?;
        let due = share.repeated.map_or_else(|| self.has_due(share.position), |intent| intent.series_place.is_some());
        if !share.has_cohorts || input.contributions.is_empty() && !due {
            return Ok(SeriesStep { contributions, ..SeriesStep::default() });
        }
        let received = exchange.received(&self.terms, &self.state.head, input, share)?;
        let (idle, sources) = (received.idle.clone(), received.sources.clone());
        let readings = SeriesReadings { received: Some(received), ..SeriesReadings::default() };
        let (published, _) = self.publish(&readings, clock_ms, is_end)?;
        Ok(SeriesStep { published: Some(published), contributions, idle, sources, ..SeriesStep::default() })
    }

    fn publish(
        &self,
        readings: &SeriesReadings,
        clock_ms: Option<i64>,
        is_end: bool,
    ) -> Result<((VerifiedSeries, SeriesChanges), BTreeSet<(usize, usize)>), SeriesRefusal> {
        let Self { terms, state, draws, .. } = self;
        let draw = |number: u128| draws.digest(&number.to_be_bytes());
        let proposal = propose_series(terms, state, readings, clock_ms, is_end, &draw);
        let verified = verify_series(terms, state, readings, clock_ms, &proposal)?;
        Ok(((verified, proposal.changes), proposal.dropped))
    }

    pub(crate) fn terms(&self) -> &AllSeriesTerms {
        &self.terms
    }

    pub(crate) fn state(&self) -> &SeriesState {
        &self.state
    }

    fn readings(&mut self, batch: SeriesBatchInput<'_>) -> SeriesReadings {
        let SeriesBatchInput { rows: fresh, books, numbering, .. } = batch;
        if self.numbers.numbering != numbering {
            self.numbers = NumberCache { numbering, ..NumberCache::default() };
        }
        let terms = Arc::clone(&self.terms);
        let mut column =
            |attribute: usize, read| self.numbers.column(attribute, &fresh.columns[attribute], &books[attribute], read);
        let mut times = column(terms.cohorts.time, milliseconds);
        reparse_uncovered(batch, terms.cohorts.time, milliseconds, &mut times);
        let times = times.into_iter().map(|time| (!time.is_nan()).then_some(time as i64)).collect();
        let mut values = vec![Vec::new(); books.len()];
        for signal in terms.series.iter().flat_map(|series| &series.signals) {
            if values[signal.attribute].is_empty() {
                values[signal.attribute] = column(signal.attribute, parsed);
                reparse_uncovered(batch, signal.attribute, parsed, &mut values[signal.attribute]);
            }
        }
        let strata = self.strata(fresh, books, &terms.cohorts);
        SeriesReadings { subjects: fresh.subjects.clone(), times, values, strata, received: None }
    }

    /// From the first complete records of subjects with an unknown stratum.
    fn strata(&self, fresh: &CodeBatch, books: &[Codebook], terms: &CohortTerms) -> BTreeMap<u64, Vec<String>> {
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
