//! Exchange of series contributions (`docs/internals/exactly-once.md`); one instance owns the cohorts.

use crate::daemon::state::entries::{EntryCodec, UnreadableEntry};
use crate::daemon::state::records::BatchIntent;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};
use throng_core::release::series::SeriesRefusal;
use throng_core::release::series_sums::verify_sums;
use throng_core::series::{
    AllSeriesTerms, ReceivedContributions, SeriesReadings, SharedSeriesState, sum_contributions,
};
use throng_core::stream::input_batch::{InputBatch, InputPartition};
use throng_core::values::code_batch::CodeBatch;

/// Brokers accept one megabyte by default.
const MAX_MESSAGE: usize = 500_000;

/// Margin for erased subjects, because instance clocks differ.
const ERASED_SUM_MARGIN_MS: i64 = 300_000;

const IDLE_VALIDITY: Duration = Duration::from_secs(5);

pub(crate) struct ContributionExchange {
    /// Partition whose owner has the cohorts.
    pub place: InputPartition,
    pub sources: Vec<InputPartition>,
    pub idle: Option<IdleSources>,
    pub codec: EntryCodec,
}

/// Source partitions without an unread record, with the offset after their last contribution.
#[derive(Clone, Debug)]
pub struct IdleSources {
    /// Query time.
    pub asked: Instant,
    /// Idle partitions.
    pub now: BTreeMap<InputPartition, i64>,
    /// Idle once contributions up to `read_to` are received.
    pub later: BTreeMap<InputPartition, i64>,
    /// Offset that `later` refers to.
    pub read_to: i64,
}

impl ContributionExchange {
    /// Returns idle partitions at `position`. Old results are ignored.
    pub fn idle_at(&self, position: i64) -> BTreeMap<InputPartition, i64> {
        let Some(idle) = self.idle.as_ref().filter(|idle| idle.asked.elapsed() < IDLE_VALIDITY) else {
            return BTreeMap::new();
        };
        let later = idle.later.iter().filter(|_| position >= idle.read_to);
        idle.now.iter().chain(later).map(|(place, next)| (*place, *next)).collect()
    }

    /// Returns all partitions, including new ones.
    pub fn all_sources(&self, head: &SharedSeriesState) -> Vec<InputPartition> {
        let known: BTreeSet<InputPartition> =
            head.sources.iter().map(|source| source.source).chain(self.sources.iter().copied()).collect();
        known.into_iter().collect()
    }

    pub(crate) fn contributions(
        &self,
        terms: &AllSeriesTerms,
        (input, rows): (&InputBatch, &CodeBatch),
        readings: &SeriesReadings,
        clock_ms: Option<i64>,
        age_ms: i64,
    ) -> Result<Vec<Vec<u8>>, SeriesRefusal> {
        let Self { codec, place, .. } = self;
        let sources: Vec<InputPartition> = rows.coordinates.iter().map(|at| at.topic_partition()).collect();
        let mut sums = sum_contributions(terms, readings, &sources, clock_ms);
        verify_sums(terms, readings, &sources, clock_ms, sums.values())
            .map_err(|claim| SeriesRefusal { series: String::new(), claim })?;
        for (source, range) in input.ranges.iter().filter(|(source, _)| *source != place) {
            let of_source = sums.entry(*source).or_default();
            (of_source.source, of_source.next, of_source.sent_ms) = (*source, Some(range.1), age_ms);
        }
        let identity = terms.terms_identity();
        let parts = sums.into_values().flat_map(|of_source| of_source.split_by_size(MAX_MESSAGE));
        Ok(parts.map(|part| codec.seal_contributions(&identity, &part)).collect())
    }

    /// Unreadable contributions are skipped.
    pub(crate) fn received(
        &self,
        terms: &AllSeriesTerms,
        head: &SharedSeriesState,
        input: &InputBatch,
        share: &SeriesStepContext<'_>,
    ) -> Result<ReceivedContributions, SeriesMismatch> {
        let identity = terms.terms_identity();
        let (mut contributions, mut unreadable) = (Vec::new(), 0);
        for (_, sealed) in &input.contributions {
            match self.codec.open_contributions(sealed) {
                Ok((of_series, _)) if of_series != identity => return Err(SeriesMismatch),
                Ok((_, of_source)) if terms.covers_contributions(&of_source) => contributions.push(of_source),
                Ok(_) | Err(UnreadableEntry) => unreadable += 1,
            }
        }
        if unreadable > 0 {
            tracing::error!(
                messages = unreadable,
                "skipping unreadable contributions to series: they were written with another secret, by another version of throng or by another program (give all instances of a group the same state.secret_file)"
            );
        }
        for of_source in &mut contributions {
            let is_late = |(erased_ms, _): &&(i64, BTreeSet<u64>)| of_source.sent_ms < erased_ms + ERASED_SUM_MARGIN_MS;
            let erased: Vec<&BTreeSet<u64>> = share.erased.iter().filter(is_late).map(|(_, people)| people).collect();
            of_source.people.retain(|person| !erased.iter().any(|people| people.contains(&person.subject)));
            of_source.front.retain(|(person, _)| !erased.iter().any(|people| people.contains(person)));
        }
        let (idle, sources) = share.repeated.map_or_else(
            || (self.idle_at(share.position), self.all_sources(head)),
            |intent| (intent.idle.iter().copied().collect(), intent.sources.clone()),
        );
        Ok(ReceivedContributions { contributions, sources, idle })
    }
}

/// Contributions to other series than the configured ones.
#[derive(Debug, thiserror::Error)]
#[error(
    "contributions belong to other [[series]] than those of this configuration (give all instances of a group the same series)"
)]
pub(crate) struct SeriesMismatch;

pub(crate) struct SeriesStepContext<'a> {
    /// Owner of the cohorts.
    pub has_cohorts: bool,
    /// State age.
    pub age_ms: i64,
    /// Offset of received contributions.
    pub position: i64,
    /// Previous attempt.
    pub repeated: Option<&'a BatchIntent>,
    /// Recently erased subjects, by state age.
    pub erased: &'a VecDeque<(i64, BTreeSet<u64>)>,
}
