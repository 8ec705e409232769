//! State of the series: what must survive the process. Every entry is replaced as a whole, so applying changes twice is harmless.

use super::terms::{SeriesTerms, Terms};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values of one person in one channel so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Buckets with a value; of a series with moments the rows of the epoch with most.
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
    /// By series; empty before the first row of a series with moments.
    pub moments: Vec<PersonMoments>,
    /// A value of the person is part of a published row with noise.
    pub is_in_noise: bool,
}

/// Rows of one person in one epoch, and in the epochs before. A row is a bucket with a value of every signal of the series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PersonMoments {
    /// Start of the epoch of the latest row.
    pub epoch: i64,
    /// Rows in it.
    pub rows: u32,
    /// Records of these rows.
    pub records: u32,
    /// Sums over them: of each signal, then of the product of each pair of signals.
    pub sums: Vec<f64>,
    /// Earlier epochs with enough rows.
    pub epochs: u32,
    /// Mean over these epochs of the means over their rows.
    pub past: Vec<f64>,
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
    /// Last 16 bits of the digests of erased members: a person with such a digest counts as no new member of an atom. About one person in
    /// 65,536 has them by chance, and nobody is named by them.
    pub erased: Vec<u16>,
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
            let gone = atom.members.extract_if(.., |member| is_gone(*member));
            self.erased.extend(gone.map(digest_end));
        }
        self.is_retired |= !self.erased.is_empty();
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
    /// Source partitions whose contributions have arrived; none where the records are taken in here.
    pub sources: Vec<SourceFront>,
    /// By series: all buckets that end here or earlier are closed; the lowest number before the first.
    pub closed_ms: Vec<i64>,
    /// By series: epochs of its moments.
    pub epochs: Vec<Epochs>,
    /// By series: budget of noise that is spent.
    pub noise: Vec<WeekSpent>,
    /// People of published rows with noise.
    pub noise_people: u64,
    /// By series: counts since the state was made.
    pub counts: Vec<Totals>,
    /// The terms under which the state was made, as [`Terms::identity`] writes them.
    pub identity: String,
}

/// A source partition: the number of its topic, and its own.
pub type SourcePartition = (u16, i32);

/// How far the contributions of a source partition have come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceFront {
    /// The partition.
    pub source: SourcePartition,
    /// The offset behind its last record that has contributed.
    pub next: i64,
    /// The latest event times of different people in it, at most `crowd` of them.
    pub front: Vec<(u64, i64)>,
}

/// Epochs of the moments of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epochs {
    /// Start of the epoch with rows that is not closed.
    pub open: Option<i64>,
    /// Epochs that start before are closed; the lowest number before the first.
    pub closed_ms: i64,
    /// Records in closed buckets of the open epoch. They count once it closes: before, none of them can be represented.
    pub records: u64,
    /// Of these, records of people in their warm-up.
    pub warming_up: u64,
}

impl Default for Epochs {
    fn default() -> Self {
        Self { open: None, closed_ms: i64::MIN, records: 0, warming_up: 0 }
    }
}

impl Head {
    /// Counts of all series together: a record counts once for each series.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.counts.iter().fold(Totals::default(), |sum, of_series| sum.plus(of_series))
    }
}

/// Counts of a series since the state was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Records in closed buckets, of a series with moments in closed epochs.
    pub records: u64,
    /// Of these, records whose contribution is part of a published row.
    pub represented: u64,
    /// Of these, records of people in their warm-up.
    pub warming_up: u64,
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
    /// Rows withheld because too few members were present, or for a noisy count that is too small.
    pub too_few: u64,
    /// Sums that were published as shares of intervals because one or two members dominate them.
    pub binned: u64,
    /// Sums that were withheld because one or two members dominate them, and no intervals hold enough members.
    pub dominated: u64,
}

impl Totals {
    /// Counts of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            records: self.records + other.records,
            represented: self.represented + other.represented,
            warming_up: self.warming_up + other.warming_up,
            late: self.late + other.late,
            early: self.early + other.early,
            unplaced: self.unplaced + other.unplaced,
            over_limit: self.over_limit + other.over_limit,
            rows: self.rows + other.rows,
            too_few: self.too_few + other.too_few,
            binned: self.binned + other.binned,
            dominated: self.dominated + other.dominated,
        }
    }

    /// Records that no bucket took.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.late + self.early + self.unplaced + self.over_limit
    }

    /// Counts less those of an earlier state.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            records: self.records - earlier.records,
            represented: self.represented - earlier.represented,
            warming_up: self.warming_up - earlier.warming_up,
            late: self.late - earlier.late,
            early: self.early - earlier.early,
            unplaced: self.unplaced - earlier.unplaced,
            over_limit: self.over_limit - earlier.over_limit,
            rows: self.rows - earlier.rows,
            too_few: self.too_few - earlier.too_few,
            binned: self.binned - earlier.binned,
            dominated: self.dominated - earlier.dominated,
        }
    }
}

/// Budget of noise spent of the latest week. Buckets close in order, so earlier weeks publish nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeekSpent {
    /// Start of the week.
    pub week: i64,
    /// ρ spent for each person.
    pub rho: f64,
}

impl Default for WeekSpent {
    fn default() -> Self {
        Self { week: i64::MIN, rho: 0.0 }
    }
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

impl SeriesState {
    /// Buckets with values of the person with most, and those that each person needs, where nobody has enough for any series. None where
    /// somebody has, where no bucket has closed, and where a series with noise shows everybody.
    #[must_use]
    pub fn too_few_buckets(&self, terms: &Terms) -> Option<(u32, u32)> {
        let most_of = |number: usize, series: &SeriesTerms| {
            let channels = terms.first_channel(number)..terms.first_channel(number) + series.channels();
            let histories = self.people.values().filter_map(|person| person.histories.get(channels.clone()));
            histories.flatten().map(|history| history.values).max().unwrap_or(0)
        };
        let of_series = terms.series.iter().enumerate().map(|(number, series)| (most_of(number, series), series));
        let is_enough = |(most, series): &(u32, &SeriesTerms)| series.noise.is_some() || *most >= series.min_values;
        let of_series: Vec<(u32, &SeriesTerms)> = of_series.collect();
        if of_series.iter().any(is_enough) {
            return None;
        }
        let needed = of_series.iter().map(|(_, series)| series.min_values).min()?;
        of_series.iter().map(|(most, _)| *most).max().filter(|most| *most > 0).map(|most| (most, needed))
    }
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

/// Last 16 bits of a digest.
#[must_use]
pub fn digest_end(subject: u64) -> u16 {
    subject as u16
}

impl SeriesState {
    /// A state in which nothing has happened.
    #[must_use]
    pub fn new(terms: &Terms) -> Self {
        let head = Head {
            closed_ms: vec![i64::MIN; terms.series.len()],
            epochs: vec![Epochs::default(); terms.series.len()],
            noise: vec![WeekSpent::default(); terms.series.len()],
            counts: vec![Totals::default(); terms.series.len()],
            identity: terms.identity(),
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
        // A partition of which nobody is left is one that is not known, and delays buckets until it contributes or is idle.
        self.head.sources.retain_mut(|source| {
            let had_people = !source.front.is_empty();
            source.front.retain(|(subject, _)| !is_erased(*subject));
            !had_people || !source.front.is_empty()
        });
        self.cohorts.values_mut().for_each(|cohort| cohort.remove_members(&is_erased));
        self.release_members();
        (before - self.people.len()) as u64
    }

    /// Returns members of retired cohorts to the pool, and counts the people of rows with noise again.
    pub fn release_members(&mut self) {
        self.head.noise_people = self.people.values().filter(|person| person.is_in_noise).count() as u64;
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
