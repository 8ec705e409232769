//! Series over several instances: what a batch contributes leaves for the instance that has the cohorts, and arrives there
//! (`docs/exactly-once.md`).

use crate::anonymity::series::{Head, Readings, Received, Terms, sum_up};
use crate::daemon::state::entries::{EntryCodec, UnreadableEntry};
use crate::daemon::state::records::Intent;
use crate::io::input::{InputBatch, Place};
use crate::release::series::SeriesRefusal;
use crate::release::series_sums::verify_sums;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};
use throng_core::values::table::Batch;

/// Bytes of one message of contributions: brokers take a megabyte as they come.
const MAX_MESSAGE: usize = 500_000;

/// Sums of a person who was erased are left out that were sent before, or within this time after: clocks of instances differ.
const ERASED_FOR_MS: i64 = 300_000;

/// How long a partition counts as idle that was found so.
const IDLE_FOR: Duration = Duration::from_secs(5);

/// The topic of contributions, which one instance of a group reads.
pub(super) struct Exchange {
    /// Its partition. Whoever has it has the cohorts.
    pub place: Place,
    /// Partitions of the source.
    pub sources: Vec<Place>,
    /// Those without an unread record.
    pub idle: Option<IdleSources>,
    pub codec: EntryCodec,
}

/// Source partitions without an unread record, each with the offset behind its last record that has contributed.
#[derive(Clone, Debug)]
pub struct IdleSources {
    /// When the brokers were asked.
    pub asked: Instant,
    /// Those that are idle.
    pub now: BTreeMap<Place, i64>,
    /// Those that are idle once contributions have been taken in up to this offset.
    pub later: BTreeMap<Place, i64>,
    /// That offset.
    pub read_to: i64,
}

impl Exchange {
    /// Partitions without an unread record, where contributions have been taken in up to `position`. What was found long ago counts no
    /// more: records may have come that nobody reads.
    pub fn idle_at(&self, position: i64) -> BTreeMap<Place, i64> {
        let Some(idle) = self.idle.as_ref().filter(|idle| idle.asked.elapsed() < IDLE_FOR) else {
            return BTreeMap::new();
        };
        let later = idle.later.iter().filter(|_| position >= idle.read_to);
        idle.now.iter().chain(later).map(|(place, next)| (*place, *next)).collect()
    }

    /// All partitions: a new one may have contributed that was not there at the start.
    pub fn all_sources(&self, head: &Head) -> Vec<Place> {
        let known: BTreeSet<Place> =
            head.sources.iter().map(|source| source.source).chain(self.sources.iter().copied()).collect();
        known.into_iter().collect()
    }

    /// What the records of a batch contribute, by source partition, sealed.
    pub(super) fn contributions(
        &self,
        terms: &Terms,
        (input, rows): (&InputBatch, &Batch),
        readings: &Readings,
        clock_ms: Option<i64>,
        age_ms: i64,
    ) -> Result<Vec<Vec<u8>>, SeriesRefusal> {
        let Self { codec, place, .. } = self;
        let sources: Vec<Place> = rows.coordinates.iter().map(|at| at.place()).collect();
        let mut sums = sum_up(terms, readings, &sources, clock_ms);
        verify_sums(terms, readings, &sources, clock_ms, sums.values())
            .map_err(|claim| SeriesRefusal { series: String::new(), claim })?;
        for (source, range) in input.ranges.iter().filter(|(source, _)| *source != place) {
            let of_source = sums.entry(*source).or_default();
            (of_source.source, of_source.next, of_source.sent_ms) = (*source, Some(range.1), age_ms);
        }
        let identity = terms.identity();
        let parts = sums.into_values().flat_map(|of_source| of_source.divided(MAX_MESSAGE));
        Ok(parts.map(|part| codec.seal_contributions(&identity, &part)).collect())
    }

    /// Contributions that have arrived with a batch, without those of erased people. What cannot be read is none of ours.
    pub(super) fn received(
        &self,
        terms: &Terms,
        head: &Head,
        input: &InputBatch,
        share: &Share<'_>,
    ) -> Result<Received, OtherSeries> {
        let identity = terms.identity();
        let (mut contributions, mut unreadable) = (Vec::new(), 0);
        for (_, sealed) in &input.contributions {
            match self.codec.open_contributions(sealed) {
                Ok((of_series, _)) if of_series != identity => return Err(OtherSeries),
                Ok((_, of_source)) if terms.fits(&of_source) => contributions.push(of_source),
                Ok(_) | Err(UnreadableEntry) => unreadable += 1,
            }
        }
        if unreadable > 0 {
            tracing::error!(
                messages = unreadable,
                "contributions to series cannot be read and are left out: another secret (state.secret_file) or version of throng has written them, or somebody else; instances of a group need one secret"
            );
        }
        for of_source in &mut contributions {
            let is_late = |(erased_ms, _): &&(i64, BTreeSet<u64>)| of_source.sent_ms < erased_ms + ERASED_FOR_MS;
            let erased: Vec<&BTreeSet<u64>> = share.erased.iter().filter(is_late).map(|(_, people)| people).collect();
            of_source.people.retain(|person| !erased.iter().any(|people| people.contains(&person.subject)));
            of_source.front.retain(|(person, _)| !erased.iter().any(|people| people.contains(person)));
        }
        let (idle, sources) = share.repeated.map_or_else(
            || (self.idle_at(share.position), self.all_sources(head)),
            |intent| (intent.idle.iter().copied().collect(), intent.sources.clone()),
        );
        Ok(Received { contributions, sources, idle })
    }
}

/// Contributions of other series than ours.
#[derive(Debug, thiserror::Error)]
#[error(
    "contributions are of other [[series]] than those of this configuration: instances of a group need the same ones"
)]
pub(super) struct OtherSeries;

/// What an instance brings to a step.
pub(super) struct Share<'a> {
    /// It has the cohorts.
    pub has_cohorts: bool,
    /// Age of the state.
    pub age_ms: i64,
    /// Contributions have been taken in up to here.
    pub position: i64,
    /// The attempt before, when there was one.
    pub repeated: Option<&'a Intent>,
    /// People who were erased lately, each set with the age of the state then.
    pub erased: &'a VecDeque<(i64, BTreeSet<u64>)>,
}
