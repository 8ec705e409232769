//! Admission, the draw of cohorts, and retirement (docs/methods.md §13).
//!
//! At least `crowd` members of every atom have never been in an atom before. So every combination of contributor sets has at least
//! `crowd` non-zero entries: order the atoms by their numbers and look at the new members of the last one of the combination.

use super::grouping::alike;
use super::state::{Atom, Cohort, Membership, Participant, digest_end};
use super::step::Step;
use super::terms::{DAY_MS, SeriesTerms};
use std::collections::{BTreeMap, BTreeSet};

/// Days with data after the warm-up from which a person waits for no more than two crowds, and from which for one.
const PATIENCE_DAYS: (u32, u32) = (7, 14);
/// Atoms of a cohort at most: their sets are 16 bits.
const MAX_ATOMS: usize = 16;

/// A person who may join a cohort.
struct Candidate {
    subject: u64,
    is_veteran: bool,
    /// Days with data.
    days: u32,
    /// Start of the first open window, where all records are known beforehand.
    start: i64,
    /// By channel: the person has enough values of it.
    worn: Vec<bool>,
    /// When the person wore what, as numbers from 0 to 1.
    features: Vec<f32>,
    /// Random under the secret.
    draw: u128,
}

impl Step<'_> {
    /// Forms cohorts of the people in the pool as of `now_ms`.
    pub(super) fn form_cohorts(&mut self, now_ms: i64) {
        self.load_cohorts();
        let mut pools: BTreeMap<Vec<String>, Vec<Candidate>> = BTreeMap::new();
        // Somebody erased who has come back is no new member.
        let erased: BTreeSet<u16> = self.cohorts.values().flat_map(|cohort| cohort.erased.iter().copied()).collect();
        for subject in self.everybody() {
            if let Some((stratum, candidate)) = self.candidate(subject, &erased, now_ms) {
                pools.entry(stratum).or_default().push(candidate);
            }
        }
        for (stratum, pool) in pools {
            for atoms in self.drawn(pool) {
                self.add_cohort(stratum.clone(), atoms, now_ms);
            }
        }
    }

    /// The person as a candidate; none who is a member, has too little data, or has not been seen of late.
    fn candidate(&self, subject: u64, erased: &BTreeSet<u16>, now_ms: i64) -> Option<(Vec<String>, Candidate)> {
        let terms = &self.terms.cohorts;
        let person = self.person(subject)?;
        let is_ready = person.membership == Membership::Waiting
            && person.has_stratum(terms.strata.len())
            && (terms.is_batch || is_recent(person, terms.warm_up_days, now_ms));
        let worn = if is_ready { self.worn(subject, person) } else { Vec::new() };
        if !worn.contains(&true) {
            return None;
        }
        let known = self.foreknown.get(&subject);
        let start = known.and_then(|known| known.channels.iter().filter(|c| c.values > 0).map(|c| c.bucket).min());
        let features = match known {
            Some(known) => known.presence.clone(),
            // How much of their days each signal has been worn.
            None => {
                let days = person.days.max(1) as f32;
                person.histories.iter().map(|history| (history.values as f32 / days).min(1.0)).collect()
            }
        };
        let (start, draw) = (start.unwrap_or(0), (self.draw)(u128::from(subject)));
        let (is_veteran, days) = (person.is_veteran || erased.contains(&digest_end(subject)), person.days);
        let candidate = Candidate { subject, is_veteran, days, start, worn, features, draw };
        Some((person.stratum.clone(), candidate))
    }

    /// By channel, whether the person has enough values of it.
    fn worn(&self, subject: u64, person: &Participant) -> Vec<bool> {
        let mut worn = Vec::with_capacity(self.terms.channels());
        for series in &self.terms.series {
            for _ in 0..series.channels() {
                worn.push(self.has_worn(subject, person, worn.len(), series));
            }
        }
        worn
    }

    /// Whether the person has enough values of a channel of the series.
    pub(super) fn has_worn(&self, subject: u64, person: &Participant, channel: usize, series: &SeriesTerms) -> bool {
        let past = person.histories.get(channel).map_or(0, |history| history.values);
        // Values of the job are part of the history once their bucket is closed.
        let values = self.foreknown.get(&subject).map_or(past, |known| {
            let known = &known.channels[channel];
            // Rows of moments count by epoch, and no epoch is of two jobs.
            let is_of_epoch = series.moments.is_some();
            if is_of_epoch { known.past.max(known.values) } else { known.past.saturating_add(known.values) }
        });
        values >= series.min_values
    }

    /// Divides a pool into cohorts, each a list of atoms; nobody where the pool is too small.
    ///
    /// People who wear the same signals at the same times come together; among equals the secret decides. No value has a part in it.
    fn drawn(&self, mut pool: Vec<Candidate>) -> Vec<Vec<Atom>> {
        let terms = &self.terms.cohorts;
        sort_alike(&mut pool);
        let (veterans, fresh): (Vec<Candidate>, Vec<Candidate>) =
            pool.into_iter().partition(|person| person.is_veteran);
        // A job over files has nobody to wait for, and a stream does not let people wait for ever.
        let waited = fresh.iter().map(|person| person.days.saturating_sub(terms.warm_up_days)).max().unwrap_or(0);
        let size = match waited {
            _ if terms.is_batch => terms.size.min(fresh.len()),
            days if days >= PATIENCE_DAYS.1 => terms.size.min(fresh.len().max(terms.crowd)),
            days if days >= PATIENCE_DAYS.0 => terms.size.min(fresh.len().max(2 * terms.crowd)),
            _ => terms.size,
        };
        if size < terms.crowd {
            return Vec::new();
        }
        let features: Vec<&[f32]> = fresh.iter().map(|person| person.features.as_slice()).collect();
        let mut cohorts: Vec<Vec<Vec<u64>>> = Vec::new();
        for cohort in alike(&features, size) {
            let features: Vec<&[f32]> = cohort.iter().map(|person| features[*person]).collect();
            let smallest = (cohort.len() / MAX_ATOMS + 1).max(terms.crowd);
            let atoms = alike(&features, smallest).into_iter();
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
            Atom { members }
        };
        cohorts.into_iter().map(|cohort| cohort.into_iter().map(atom).collect()).collect()
    }

    fn add_cohort(&mut self, stratum: Vec<String>, atoms: Vec<Atom>, now_ms: i64) {
        self.load_cohorts();
        let number = self.cohorts.last_key_value().map_or(0, |(last, _)| last + 1);
        for subject in atoms.iter().flat_map(|atom| &atom.members) {
            let person = self.person_mut(*subject);
            person.membership = Membership::Member(number);
            person.is_veteran = true;
        }
        let token = (self.draw)(u128::from(number) | 1 << 100);
        let token = format!("{:016x}", token as u64);
        let sets = vec![None; self.terms.channels()];
        let cohort = Cohort { token, stratum, atoms, sets, erased: Vec::new(), is_retired: false, seen_ms: now_ms };
        self.cohorts.insert(number, cohort);
        self.changed_cohorts.insert(number);
    }

    /// Retires cohorts in which fewer than `crowd` members have been seen for too long; the others return to the pool.
    pub(super) fn retire_idle(&mut self, now_ms: i64) {
        if self.terms.cohorts.is_batch {
            return;
        }
        let idle = self.terms.cohorts.idle_ms;
        let mut gone = BTreeSet::new();
        for (number, cohort) in &mut self.cohorts {
            if !cohort.is_retired && now_ms - cohort.seen_ms > idle {
                cohort.is_retired = true;
                self.changed_cohorts.insert(*number);
                gone.extend(cohort.everybody());
            }
        }
        for subject in gone {
            self.person_mut(subject).membership = Membership::Waiting;
        }
    }

    /// Copies the cohorts of the state, where that has not been done.
    pub(super) fn load_cohorts(&mut self) {
        if self.cohorts.is_empty() {
            self.cohorts.clone_from(&self.state.cohorts);
        }
    }
}

/// Whether a person has enough days with data, the last of them within the warm-up before `now_ms`.
fn is_recent(person: &Participant, warm_up_days: u32, now_ms: i64) -> bool {
    let grace_days = i64::from(warm_up_days.max(1)) + 1;
    person.days >= warm_up_days.max(1) && (person.last_day + grace_days) * DAY_MS >= now_ms
}

/// Sorts people so that those who began together are neighbours, then those with the same channels, then by the draw. Channels that
/// half of the people have divide first.
fn sort_alike(pool: &mut [Candidate]) {
    let Some(channels) = pool.first().map(|person| person.worn.len()) else { return };
    let half = pool.len() as f64 / 2.0;
    let distance = |channel: &usize| {
        let wearers = pool.iter().filter(|person| person.worn[*channel]).count() as f64;
        (wearers - half).abs()
    };
    let mut order: Vec<(usize, f64)> = (0..channels).map(|channel| (channel, distance(&channel))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let pattern = |person: &Candidate| order.iter().map(|(channel, _)| person.worn[*channel]).collect::<Vec<bool>>();
    pool.sort_by_cached_key(|person| (person.start, pattern(person), person.draw));
}
