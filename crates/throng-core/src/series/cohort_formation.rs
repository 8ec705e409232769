//! Formation and retirement of cohorts (docs/internals/methods.md §13).
//!
//! Every atom has at least `crowd` members that were in no earlier atom. Every combination of contributor sets
//! therefore has at least `crowd` non-zero entries.

use super::batch_step::SeriesBatchStep;
use super::grouping::group_similar;
use super::state::{CohortAtom, CohortMembership, CohortState, SubjectState, digest_suffix};
use super::terms::{DAY_MS, SeriesTerms};
use std::collections::{BTreeMap, BTreeSet};

/// Days after the warm-up until a subject accepts a cohort of two crowds, and of one.
const WAITING_DAYS: (u32, u32) = (7, 14);
/// Limit of atoms per cohort (16-bit sets).
const MAX_ATOMS: usize = 16;

struct CohortCandidate {
    subject: u64,
    is_veteran: bool,
    days: u32,
    /// First bucket in a job over files; 0 in a stream.
    start: i64,
    has_enough_by_channel: Vec<bool>,
    /// Share of buckets or days with a value.
    features: Vec<f32>,
    draw: u128,
}

impl SeriesBatchStep<'_> {
    pub(super) fn form_cohorts(&mut self, now_ms: i64) {
        self.load_cohorts();
        let mut pools: BTreeMap<Vec<String>, Vec<CohortCandidate>> = BTreeMap::new();
        // Returning erased subjects are not new.
        let erased: BTreeSet<u16> = self.cohorts.values().flat_map(|cohort| cohort.erased.iter().copied()).collect();
        for subject in self.all_subjects() {
            if let Some((stratum, candidate)) = self.cohort_candidate(subject, &erased, now_ms) {
                pools.entry(stratum).or_default().push(candidate);
            }
        }
        for (stratum, pool) in pools {
            for atoms in self.divide_pool(pool) {
                self.add_cohort(stratum.clone(), atoms, now_ms);
            }
        }
    }

    /// None for members and for subjects with too little or no recent data.
    fn cohort_candidate(
        &self,
        subject: u64,
        erased: &BTreeSet<u16>,
        now_ms: i64,
    ) -> Option<(Vec<String>, CohortCandidate)> {
        let terms = &self.terms.cohorts;
        let person = self.person(subject)?;
        let is_ready = person.membership == CohortMembership::Waiting
            && person.has_stratum(terms.strata.len())
            && (terms.is_batch || is_recent(person, terms.warm_up_days, now_ms));
        let worn = if is_ready { self.channels_with_enough_values(subject, person) } else { Vec::new() };
        if !worn.contains(&true) {
            return None;
        }
        let known = self.previews.get(&subject);
        let start = known.and_then(|known| known.channels.iter().filter(|c| c.values > 0).map(|c| c.bucket).min());
        let features = match known {
            Some(known) => known.presence.clone(),
            None => {
                let days = person.days.max(1) as f32;
                person.histories.iter().map(|history| (history.values as f32 / days).min(1.0)).collect()
            }
        };
        let (start, draw) = (start.unwrap_or(0), (self.draw)(u128::from(subject)));
        let (is_veteran, days) = (person.is_veteran || erased.contains(&digest_suffix(subject)), person.days);
        let candidate =
            CohortCandidate { subject, is_veteran, days, start, has_enough_by_channel: worn, features, draw };
        Some((person.stratum.clone(), candidate))
    }

    fn channels_with_enough_values(&self, subject: u64, person: &SubjectState) -> Vec<bool> {
        let mut worn = Vec::with_capacity(self.terms.channels());
        for series in &self.terms.series {
            for _ in 0..series.channels() {
                worn.push(self.has_enough_values(subject, person, worn.len(), series));
            }
        }
        worn
    }

    pub(super) fn has_enough_values(
        &self,
        subject: u64,
        person: &SubjectState,
        channel: usize,
        series: &SeriesTerms,
    ) -> bool {
        let past = person.histories.get(channel).map_or(0, |history| history.values);
        // Histories get values of the job when their bucket closes.
        let values = self.previews.get(&subject).map_or(past, |known| {
            let known = &known.channels[channel];
            // Rows count per epoch, and no epoch spans two jobs.
            let is_of_epoch = series.moments.is_some();
            if is_of_epoch {
                known.earlier_values.max(known.values)
            } else {
                known.earlier_values.saturating_add(known.values)
            }
        });
        values >= series.min_values
    }

    /// Divides a pool into cohorts of atoms; empty if too small. Groups by times of values, never by values.
    fn divide_pool(&self, mut pool: Vec<CohortCandidate>) -> Vec<Vec<CohortAtom>> {
        let terms = &self.terms.cohorts;
        sort_by_similarity(&mut pool);
        let (veterans, fresh): (Vec<CohortCandidate>, Vec<CohortCandidate>) =
            pool.into_iter().partition(|person| person.is_veteran);
        let waited = fresh.iter().map(|person| person.days.saturating_sub(terms.warm_up_days)).max().unwrap_or(0);
        let size = match waited {
            _ if terms.is_batch => terms.size.min(fresh.len()),
            days if days >= WAITING_DAYS.1 => terms.size.min(fresh.len().max(terms.crowd)),
            days if days >= WAITING_DAYS.0 => terms.size.min(fresh.len().max(2 * terms.crowd)),
            _ => terms.size,
        };
        if size < terms.crowd {
            return Vec::new();
        }
        let features: Vec<&[f32]> = fresh.iter().map(|person| person.features.as_slice()).collect();
        let mut cohorts: Vec<Vec<Vec<u64>>> = Vec::new();
        for cohort in group_similar(&features, size) {
            let features: Vec<&[f32]> = cohort.iter().map(|person| features[*person]).collect();
            let smallest = (cohort.len() / MAX_ATOMS + 1).max(terms.crowd);
            let atoms = group_similar(&features, smallest).into_iter();
            let members = |atom: Vec<usize>| atom.into_iter().map(|at| fresh[cohort[at]].subject).collect();
            cohorts.push(atoms.map(members).collect());
        }
        let places: Vec<(usize, usize)> =
            cohorts.iter().enumerate().flat_map(|(at, cohort)| (0..cohort.len()).map(move |atom| (at, atom))).collect();
        for (person, &(cohort, atom)) in veterans.iter().zip(places.iter().cycle()) {
            cohorts[cohort][atom].push(person.subject);
        }
        let atom = |mut members: Vec<u64>| {
            members.sort_unstable();
            CohortAtom { members }
        };
        cohorts.into_iter().map(|cohort| cohort.into_iter().map(atom).collect()).collect()
    }

    fn add_cohort(&mut self, stratum: Vec<String>, atoms: Vec<CohortAtom>, now_ms: i64) {
        self.load_cohorts();
        let number = self.cohorts.last_key_value().map_or(0, |(last, _)| last + 1);
        for subject in atoms.iter().flat_map(|atom| &atom.members) {
            let person = self.person_mut(*subject);
            person.membership = CohortMembership::Member(number);
            person.is_veteran = true;
        }
        let token = (self.draw)(u128::from(number) | 1 << 100);
        let token = format!("{:016x}", token as u64);
        let sets = vec![None; self.terms.channels()];
        let cohort =
            CohortState { token, stratum, atoms, sets, erased: Vec::new(), is_retired: false, seen_ms: now_ms };
        self.cohorts.insert(number, cohort);
        self.changed_cohorts.insert(number);
    }

    /// Retires cohorts with too few present members for too long.
    pub(super) fn retire_idle_cohorts(&mut self, now_ms: i64) {
        if self.terms.cohorts.is_batch {
            return;
        }
        let idle = self.terms.cohorts.idle_ms;
        let mut gone = BTreeSet::new();
        for (number, cohort) in &mut self.cohorts {
            if !cohort.is_retired && now_ms - cohort.seen_ms > idle {
                cohort.is_retired = true;
                self.changed_cohorts.insert(*number);
                gone.extend(cohort.all_members());
            }
        }
        for subject in gone {
            self.person_mut(subject).membership = CohortMembership::Waiting;
        }
    }

    pub(super) fn load_cohorts(&mut self) {
        if self.cohorts.is_empty() {
            self.cohorts.clone_from(&self.state.cohorts);
        }
    }
}

fn is_recent(person: &SubjectState, warm_up_days: u32, now_ms: i64) -> bool {
    let grace_days = i64::from(warm_up_days.max(1)) + 1;
    person.days >= warm_up_days.max(1) && (person.last_day + grace_days) * DAY_MS >= now_ms
}

/// Sorts by start, channels and random number. Channels of about half of the subjects come first.
fn sort_by_similarity(pool: &mut [CohortCandidate]) {
    let Some(channels) = pool.first().map(|person| person.has_enough_by_channel.len()) else { return };
    let half = pool.len() as f64 / 2.0;
    let distance = |channel: &usize| {
        let wearers = pool.iter().filter(|person| person.has_enough_by_channel[*channel]).count() as f64;
        (wearers - half).abs()
    };
    let mut order: Vec<(usize, f64)> = (0..channels).map(|channel| (channel, distance(&channel))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let pattern = |person: &CohortCandidate| {
        order.iter().map(|(channel, _)| person.has_enough_by_channel[*channel]).collect::<Vec<bool>>()
    };
    pool.sort_by_cached_key(|person| (person.start, pattern(person), person.draw));
}
