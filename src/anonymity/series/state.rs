//! State of the series: what must survive the process. Every entry is replaced as a whole, so applying changes twice is harmless.

use super::terms::Terms;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values of one person in one channel so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Buckets with a value.
    pub values: u32,
    /// Mean over these buckets.
    pub mean: f64,
    /// Value of the last of them.
    pub last: f64,
    /// The last of them.
    pub bucket: i64,
}

/// Where a person is on the way into a cohort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Membership {
    /// In the pool.
    #[default]
    Waiting,
    /// In the cohort of this number.
    Member(u32),
}

/// One person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Participant {
    /// Labels of the stratum; empty until a record has all of them.
    pub stratum: Vec<String>,
    /// Cohort, if any.
    pub membership: Membership,
    /// The person has been in an atom before.
    pub is_veteran: bool,
    /// Days with data.
    pub days: u32,
    /// The last of them, as days since 1970.
    pub last_day: i64,
    /// By channel, over all series.
    pub histories: Vec<History>,
}

/// Sum and number of the values of one person, signal and bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    /// Number of values.
    pub count: u32,
    /// Their sum.
    pub sum: f64,
}

/// Contributions of one person to a bucket that is still open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenBucket {
    /// Position of the series.
    pub series: u16,
    /// The bucket.
    pub bucket: i64,
    /// Records of the person in it.
    pub records: u32,
    /// By signal.
    pub partials: Vec<Partial>,
}

/// People who join a contributor set together or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Atom {
    /// Subject digests, ascending.
    pub members: Vec<u64>,
}

/// A cohort: atoms that were formed together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cohort {
    /// Its name in rows, random.
    pub token: String,
    /// Labels of its stratum.
    pub stratum: Vec<String>,
    /// At most 16.
    pub atoms: Vec<Atom>,
    /// By channel over all series: the atoms of the locked contributor set as bits; none before the first publication.
    pub sets: Vec<Option<u16>>,
    /// Retired cohorts publish nothing; their atoms stay for the rule of new members.
    pub is_retired: bool,
    /// End of the last bucket in which enough members were present, or of the one at which the cohort was formed.
    pub seen_ms: i64,
}

impl Cohort {
    /// Members of the atoms that are set in `atoms`.
    pub fn members(&self, atoms: u16) -> impl Iterator<Item = u64> + '_ {
        let chosen = self.atoms.iter().enumerate().filter(move |(index, _)| atoms & (1 << index) != 0);
        chosen.flat_map(|(_, atom)| atom.members.iter().copied())
    }

    /// Removes members, and retires a cohort that has lost any.
    pub fn remove_members(&mut self, is_gone: impl Fn(u64) -> bool) {
        for atom in &mut self.atoms {
            let before = atom.members.len();
            atom.members.retain(|member| !is_gone(*member));
            self.is_retired |= atom.members.len() < before;
        }
    }

    /// All members.
    pub fn everybody(&self) -> impl Iterator<Item = u64> + '_ {
        self.members(u16::MAX)
    }
}

/// What the whole stream shares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The latest event times of different people, at most `crowd` of them.
    pub front: Vec<(u64, i64)>,
    /// By series: all buckets that end here or earlier are closed; the lowest number before the first.
    pub closed_ms: Vec<i64>,
    /// By channel over all series: the rounding step; none before the first publication.
    pub steps: Vec<Option<f64>>,
    /// Counts since the state was made.
    pub totals: Totals,
}

/// Counts of the series since the state was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Records in closed buckets, once for each series.
    pub records: u64,
    /// Of these, records of people whose contribution is part of a published row.
    pub represented: u64,
    /// Records that came after their bucket was closed.
    pub late: u64,
    /// Records whose event time is ahead of the clock.
    pub early: u64,
    /// Records without an event time or a subject.
    pub unplaced: u64,
    /// Records beyond the limit of open buckets.
    pub over_limit: u64,
    /// Rows published.
    pub rows: u64,
    /// Rows withheld because too few members were present.
    pub too_few: u64,
    /// Rows withheld because one or two members dominate the sum.
    pub dominated: u64,
}

/// State of all series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesState {
    /// What the whole stream shares.
    pub head: Head,
    /// By subject digest.
    pub people: BTreeMap<u64, Participant>,
    /// Open buckets by subject digest.
    pub open: BTreeMap<u64, Vec<OpenBucket>>,
    /// In the order in which they were formed.
    pub cohorts: BTreeMap<u32, Cohort>,
    /// Cells of open contributions: one for each person, bucket and signal.
    pub cells: usize,
}

/// New values of the entries that a batch changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesChanges {
    /// What the whole stream shares.
    pub head: Head,
    /// By subject digest, ascending.
    pub people: Vec<(u64, Participant)>,
    /// By subject digest, ascending; nobody has an empty list.
    pub open: Vec<(u64, Vec<OpenBucket>)>,
    /// By number, ascending.
    pub cohorts: Vec<(u32, Cohort)>,
}

impl SeriesState {
    /// A state in which nothing has happened.
    #[must_use]
    pub fn new(terms: &Terms) -> Self {
        let head = Head {
            closed_ms: vec![i64::MIN; terms.series.len()],
            steps: vec![None; terms.channels()],
            ..Head::default()
        };
        Self { head, ..Self::default() }
    }

    /// Replaces the changed entries.
    pub fn apply(&mut self, changes: SeriesChanges) {
        self.head = changes.head;
        self.people.extend(changes.people);
        for (subject, buckets) in changes.open {
            self.cells += cells(&buckets);
            let before =
                if buckets.is_empty() { self.open.remove(&subject) } else { self.open.insert(subject, buckets) };
            self.cells -= before.as_deref().map_or(0, cells);
        }
        self.cohorts.extend(changes.cohorts);
    }

    /// Removes people, retires their cohorts and returns the other members to the pool. Returns the number of people removed.
    ///
    /// Digests of the removed people disappear from the atoms, which keeps the rule of new members for everybody else.
    pub fn erase(&mut self, is_erased: impl Fn(u64) -> bool) -> u64 {
        let before = self.people.len();
        self.people.retain(|subject, _| !is_erased(*subject));
        self.open.retain(|subject, _| !is_erased(*subject));
        self.cells = self.open.values().map(|buckets| cells(buckets)).sum();
        self.head.front.retain(|(subject, _)| !is_erased(*subject));
        self.cohorts.values_mut().for_each(|cohort| cohort.remove_members(&is_erased));
        self.release_members();
        (before - self.people.len()) as u64
    }

    /// Returns members of retired cohorts to the pool.
    pub fn release_members(&mut self) {
        for participant in self.people.values_mut() {
            if let Membership::Member(number) = participant.membership
                && self.cohorts.get(&number).is_none_or(|cohort| cohort.is_retired)
            {
                participant.membership = Membership::Waiting;
            }
        }
    }
}

fn cells(buckets: &[OpenBucket]) -> usize {
    buckets.iter().map(|bucket| bucket.partials.len()).sum()
}
