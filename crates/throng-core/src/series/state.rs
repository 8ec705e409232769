//! Durable state of the series. Every entry is replaced as a whole, so that applying changes twice is harmless.

use super::terms::{AllSeriesTerms, SeriesTerms};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Past values of one subject in one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectChannelHistory {
    /// Number of buckets with a value. In a series with moments: largest number of rows in an epoch.
    pub values: u32,
    /// Mean over these buckets.
    pub mean: f64,
    /// Value of the last bucket.
    pub last: f64,
    /// The last bucket.
    pub bucket: i64,
}

/// Membership of a subject in a cohort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CohortMembership {
    /// The subject waits in the pool.
    #[default]
    Waiting,
    /// The subject belongs to the cohort of this number.
    Member(u32),
}

/// State of one subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectState {
    /// Labels of the stratum; empty until a record has all of them.
    pub stratum: Vec<String>,
    /// Membership in a cohort.
    pub membership: CohortMembership,
    /// The subject has been in an atom before.
    pub is_veteran: bool,
    /// Number of days with data.
    pub days: u32,
    /// Last day with data, as days since 1970.
    pub last_day: i64,
    /// History per channel, over all series.
    pub histories: Vec<SubjectChannelHistory>,
    /// Moments per series; empty before the first row of a series with moments.
    pub moments: Vec<SubjectMoments>,
    /// A value of the subject is part of a published row with noise.
    pub is_in_noise: bool,
}

/// Rows of one subject in the current epoch and in earlier epochs. A row is a bucket with a value of every signal of
/// the series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectMoments {
    /// Start of the epoch of the latest row.
    pub epoch: i64,
    /// Number of rows in the epoch.
    pub rows: u32,
    /// Number of records of these rows.
    pub records: u32,
    /// Sums over the rows: of each signal, then of the product of each pair of signals.
    pub sums: Vec<f64>,
    /// Number of earlier epochs with enough rows.
    pub epochs: u32,
    /// Mean over the earlier epochs of the means over their rows.
    pub past: Vec<f64>,
}

/// Sum and number of the values of one subject, signal and bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartialSum {
    /// Number of values.
    pub count: u32,
    /// Sum of the values.
    pub sum: f64,
}

/// Contributions of one subject to an open bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenBucket {
    /// Position of the series.
    pub series: u16,
    /// Start of the bucket.
    pub bucket: i64,
    /// Number of the subject's records in the bucket.
    pub records: u32,
    /// Partial sum per signal.
    pub partials: Vec<PartialSum>,
}

/// Subjects that join a contributor set only together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CohortAtom {
    /// Subject digests, ascending.
    pub members: Vec<u64>,
}

/// Cohort: atoms that were formed together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CohortState {
    /// Random name of the cohort in rows.
    pub token: String,
    /// Labels of the stratum.
    pub stratum: Vec<String>,
    /// Atoms, at most 16.
    pub atoms: Vec<CohortAtom>,
    /// Locked contributor set per channel over all series, as bits of atoms; none before the first publication.
    pub sets: Vec<Option<u16>>,
    /// Last 16 bits of the digests of erased members. A subject with such a digest does not count as a new member of
    /// an atom. About one subject in 65,536 matches by chance, so the bits identify no subject.
    pub erased: Vec<u16>,
    /// Retired cohorts publish no rows. Their atoms remain for the rule of new members.
    pub is_retired: bool,
    /// End of the last bucket in which enough members were present, or of the bucket that formed the cohort.
    pub seen_ms: i64,
}

impl CohortState {
    /// Members of the atoms that are set in `atoms`.
    pub fn members(&self, atoms: u16) -> impl Iterator<Item = u64> + '_ {
        let chosen = self.atoms.iter().enumerate().filter(move |(index, _)| atoms & (1 << index) != 0);
        chosen.flat_map(|(_, atom)| atom.members.iter().copied())
    }

    /// Removes members, and retires a cohort that has lost any.
    pub fn remove_members(&mut self, is_gone: impl Fn(u64) -> bool) {
        for atom in &mut self.atoms {
            let gone = atom.members.extract_if(.., |member| is_gone(*member));
            self.erased.extend(gone.map(digest_suffix));
        }
        self.is_retired |= !self.erased.is_empty();
    }

    /// All members.
    pub fn all_members(&self) -> impl Iterator<Item = u64> + '_ {
        self.members(u16::MAX)
    }
}

/// State shared by the whole stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SharedSeriesState {
    /// Latest event times of distinct subjects, at most `crowd` entries.
    pub front: Vec<(u64, i64)>,
    /// Source partitions with received contributions; none if this instance reads the records.
    pub sources: Vec<SourceFront>,
    /// End of the closed buckets per series; the lowest number before the first.
    pub closed_ms: Vec<i64>,
    /// Epochs of the moments per series.
    pub epochs: Vec<MomentEpochs>,
    /// Spent noise budget per series.
    pub noise: Vec<WeekSpent>,
    /// Number of subjects in published rows with noise.
    pub noise_people: u64,
    /// Counts per series since the creation of the state.
    pub counts: Vec<SeriesCounts>,
    /// Settings under which the state was created, as written by [`AllSeriesTerms::terms_identity`].
    pub identity: String,
}

/// Source partition: number of its topic, and number within the topic.
pub type SourcePartition = (u16, i32);

/// Progress of the contributions of a source partition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceFront {
    /// The source partition.
    pub source: SourcePartition,
    /// Offset after its last record that has contributed.
    pub next: i64,
    /// Latest event times of distinct subjects in the partition, at most `crowd` entries.
    pub front: Vec<(u64, i64)>,
}

/// Epochs of the moments of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MomentEpochs {
    /// Start of the open epoch, if it has rows.
    pub open: Option<i64>,
    /// Epochs that start earlier are closed; the lowest number before the first.
    pub closed_ms: i64,
    /// Number of records in closed buckets of the open epoch. They are counted when the epoch closes, because no
    /// record is represented earlier.
    pub records: u64,
    /// Number of these records from subjects in their warm-up.
    pub warming_up: u64,
}

impl Default for MomentEpochs {
    fn default() -> Self {
        Self { open: None, closed_ms: i64::MIN, records: 0, warming_up: 0 }
    }
}

impl SharedSeriesState {
    /// Sums the counts of all series: a record counts once per series.
    #[must_use]
    pub fn totals(&self) -> SeriesCounts {
        self.counts.iter().fold(SeriesCounts::default(), |sum, of_series| sum.sum_with(of_series))
    }
}

/// Counts of a series since the creation of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesCounts {
    /// Records in closed buckets; in a series with moments, in closed epochs.
    pub records: u64,
    /// Of these, records with a contribution to a published row.
    pub represented: u64,
    /// Of these, records of subjects in their warm-up.
    pub warming_up: u64,
    /// Late records: their bucket was closed.
    pub late: u64,
    /// Records with an event time ahead of the clock.
    pub early: u64,
    /// Records without an event time or a subject.
    pub unplaced: u64,
    /// Records beyond the limits of subjects and open buckets.
    pub over_limit: u64,
    /// Published rows.
    pub rows: u64,
    /// Rows withheld because too few members were present, or because of a low noisy count.
    pub too_few: u64,
    /// Sums published as shares per interval, because one or two members dominate them.
    pub binned: u64,
    /// Sums withheld because one or two members dominate them and no intervals hold enough members.
    pub dominated: u64,
}

impl SeriesCounts {
    /// Adds two counts.
    #[must_use]
    pub fn sum_with(&self, other: &Self) -> Self {
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

    /// Records that were added to no bucket.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.late + self.early + self.unplaced + self.over_limit
    }

    /// Subtracts the counts of an earlier state.
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

/// Spent noise budget of the latest week. Buckets close in order, so that earlier weeks publish no more rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeekSpent {
    /// Start of the week.
    pub week: i64,
    /// ρ spent per subject.
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
    /// State shared by the whole stream.
    pub head: SharedSeriesState,
    /// Subjects by digest.
    pub people: BTreeMap<u64, SubjectState>,
    /// Open buckets by subject digest.
    pub open: BTreeMap<u64, Vec<OpenBucket>>,
    /// Cohorts by number, in the order of formation.
    pub cohorts: BTreeMap<u32, CohortState>,
    /// Number of cells of open buckets: one per subject, bucket and signal.
    pub cells: usize,
}

impl SeriesState {
    /// Largest number of buckets with values of a subject, and the number required, if no subject has enough for any
    /// series. None if a subject has enough, no bucket has closed, or a series has noise, which counts every subject.
    #[must_use]
    pub fn too_few_buckets(&self, terms: &AllSeriesTerms) -> Option<(u32, u32)> {
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

/// New values of the entries changed by a batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesChanges {
    /// State shared by the whole stream.
    pub head: SharedSeriesState,
    /// Subjects, ascending by digest.
    pub people: Vec<(u64, SubjectState)>,
    /// Open buckets, ascending by subject digest. An empty list removes the subject's open buckets.
    pub open: Vec<(u64, Vec<OpenBucket>)>,
    /// Cohorts, ascending by number.
    pub cohorts: Vec<(u32, CohortState)>,
}

/// Last 16 bits of a digest.
#[must_use]
pub fn digest_suffix(subject: u64) -> u16 {
    subject as u16
}

impl SeriesState {
    /// Creates an empty state.
    #[must_use]
    pub fn new(terms: &AllSeriesTerms) -> Self {
        let head = SharedSeriesState {
            closed_ms: vec![i64::MIN; terms.series.len()],
            epochs: vec![MomentEpochs::default(); terms.series.len()],
            noise: vec![WeekSpent::default(); terms.series.len()],
            counts: vec![SeriesCounts::default(); terms.series.len()],
            identity: terms.terms_identity(),
            ..SharedSeriesState::default()
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

    /// Erases subjects, retires their cohorts and returns the other members to the pool. Returns the number of erased
    /// subjects.
    ///
    /// The atoms lose the digests of the erased subjects. The rule of new members still holds for all other subjects.
    pub fn erase_subjects(&mut self, is_erased: impl Fn(u64) -> bool) -> u64 {
        let before = self.people.len();
        self.people.retain(|subject, _| !is_erased(*subject));
        self.open.retain(|subject, _| !is_erased(*subject));
        self.cells = self.open.values().map(|buckets| cells(buckets)).sum();
        self.head.front.retain(|(subject, _)| !is_erased(*subject));
        // A partition without remaining subjects is removed. It then delays buckets until it contributes or is idle.
        self.head.sources.retain_mut(|source| {
            let had_people = !source.front.is_empty();
            source.front.retain(|(subject, _)| !is_erased(*subject));
            !had_people || !source.front.is_empty()
        });
        self.cohorts.values_mut().for_each(|cohort| cohort.remove_members(&is_erased));
        self.return_members_to_pool();
        (before - self.people.len()) as u64
    }

    /// Returns members of retired cohorts to the pool, and recounts the subjects of rows with noise.
    pub fn return_members_to_pool(&mut self) {
        self.head.noise_people = self.people.values().filter(|person| person.is_in_noise).count() as u64;
        for participant in self.people.values_mut() {
            if let CohortMembership::Member(number) = participant.membership
                && self.cohorts.get(&number).is_none_or(|cohort| cohort.is_retired)
            {
                participant.membership = CohortMembership::Waiting;
            }
        }
    }
}

fn cells(buckets: &[OpenBucket]) -> usize {
    buckets.iter().map(|bucket| bucket.partials.len()).sum()
}
