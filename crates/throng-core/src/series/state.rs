//! Durable series state. Entries are replaced as a whole, so changes are idempotent.

use super::terms::{AllSeriesTerms, SeriesTerms};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// History of a subject and channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectChannelHistory {
    /// Buckets with a value; with moments, most rows in an epoch.
    pub values: u32,
    /// Mean over these.
    pub mean: f64,
    /// Last value.
    pub last: f64,
    /// Last bucket.
    pub bucket: i64,
}

/// Cohort membership of a subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CohortMembership {
    /// In the pool.
    #[default]
    Waiting,
    /// In the cohort of this number.
    Member(u32),
}

/// Subject state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectState {
    /// Stratum labels; empty until a record has all.
    pub stratum: Vec<String>,
    /// Membership.
    pub membership: CohortMembership,
    /// Earlier membership in an atom.
    pub is_veteran: bool,
    /// Days with data.
    pub days: u32,
    /// Last such day, in days since 1970.
    pub last_day: i64,
    /// Histories by channel.
    pub histories: Vec<SubjectChannelHistory>,
    /// Moments by series; empty before any row.
    pub moments: Vec<SubjectMoments>,
    /// Contribution to a published row with noise.
    pub is_in_noise: bool,
}

/// Rows of a subject: buckets with a value of every signal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectMoments {
    /// Latest epoch.
    pub epoch: i64,
    /// Its rows.
    pub rows: u32,
    /// Records of these rows.
    pub records: u32,
    /// Sums by signal, then by product of a pair.
    pub sums: Vec<f64>,
    /// Earlier epochs with enough rows.
    pub epochs: u32,
    /// Mean over their means.
    pub past: Vec<f64>,
}

/// Partial sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartialSum {
    /// Number.
    pub count: u32,
    /// Sum.
    pub sum: f64,
}

/// A subject's contributions to an open bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenBucket {
    /// Series index.
    pub series: u16,
    /// Bucket start.
    pub bucket: i64,
    /// Records.
    pub records: u32,
    /// Sums by signal.
    pub partials: Vec<PartialSum>,
}

/// Subjects that join contributor sets only together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CohortAtom {
    /// Subject digests, ascending.
    pub members: Vec<u64>,
}

/// Atoms formed together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CohortState {
    /// Random name in rows.
    pub token: String,
    /// Stratum labels.
    pub stratum: Vec<String>,
    /// Atoms, at most 16.
    pub atoms: Vec<CohortAtom>,
    /// Published contributor set per channel, as bits of atoms.
    pub sets: Vec<Option<u16>>,
    /// Last 16 bits of the digests of erased members. Subjects with these bits (one in 65,536) are not new members.
    pub erased: Vec<u16>,
    /// Publishes no more rows; its atoms still decide which members are new.
    pub is_retired: bool,
    /// End of its last bucket with enough members, initially of the bucket at formation.
    pub seen_ms: i64,
}

impl CohortState {
    /// Members of these atoms (bits).
    pub fn members(&self, atoms: u16) -> impl Iterator<Item = u64> + '_ {
        let chosen = self.atoms.iter().enumerate().filter(move |(index, _)| atoms & (1 << index) != 0);
        chosen.flat_map(|(_, atom)| atom.members.iter().copied())
    }

    /// Removes members; a loss retires the cohort.
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

/// Stream state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SharedSeriesState {
    /// Latest times of distinct subjects, at most `crowd`.
    pub front: Vec<(u64, i64)>,
    /// Sources of contributions; none if this instance reads records.
    pub sources: Vec<SourceFront>,
    /// End of closed buckets by series.
    pub closed_ms: Vec<i64>,
    /// Epochs by series.
    pub epochs: Vec<MomentEpochs>,
    /// Spent budget by series.
    pub noise: Vec<WeekSpent>,
    /// Subjects in rows with noise.
    pub noise_people: u64,
    /// Counts by series.
    pub counts: Vec<SeriesCounts>,
    /// [`AllSeriesTerms::terms_identity`] at creation.
    pub identity: String,
}

/// Numbers of topic and partition.
pub type SourcePartition = (u16, i32);

/// Progress of a partition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceFront {
    /// Partition.
    pub source: SourcePartition,
    /// Next offset.
    pub next: i64,
    /// Latest times of distinct subjects, at most `crowd`.
    pub front: Vec<(u64, i64)>,
}

/// Epochs of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MomentEpochs {
    /// Open epoch, if it has rows.
    pub open: Option<i64>,
    /// End of closed epochs.
    pub closed_ms: i64,
    /// Records in closed buckets of the open epoch.
    pub records: u64,
    /// Of these, records in warm-up.
    pub warming_up: u64,
}

impl Default for MomentEpochs {
    fn default() -> Self {
        Self { open: None, closed_ms: i64::MIN, records: 0, warming_up: 0 }
    }
}

impl SharedSeriesState {
    /// Sums the counts of all series.
    #[must_use]
    pub fn totals(&self) -> SeriesCounts {
        self.counts.iter().fold(SeriesCounts::default(), |sum, of_series| sum.sum_with(of_series))
    }
}

/// Counts since state creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesCounts {
    /// Records in closed buckets or, with moments, epochs.
    pub records: u64,
    /// Of these, published records.
    pub represented: u64,
    /// Of these, records in warm-up.
    pub warming_up: u64,
    /// Late records, of closed buckets.
    pub late: u64,
    /// Records ahead of the clock.
    pub early: u64,
    /// Records without event time or subject.
    pub unplaced: u64,
    /// Records beyond a limit.
    pub over_limit: u64,
    /// Published rows.
    pub rows: u64,
    /// Rows withheld for too few members or a low noisy count.
    pub too_few: u64,
    /// Dominated sums published as interval shares.
    pub binned: u64,
    /// Dominated sums withheld.
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

    /// Records in no bucket.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.late + self.early + self.unplaced + self.over_limit
    }

    /// Subtracts earlier counts.
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

/// Noise budget spent in the latest week with closed buckets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeekSpent {
    /// Week start.
    pub week: i64,
    /// Spent ρ per subject.
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
    /// Stream state.
    pub head: SharedSeriesState,
    /// Subjects by digest.
    pub people: BTreeMap<u64, SubjectState>,
    /// Open buckets by subject.
    pub open: BTreeMap<u64, Vec<OpenBucket>>,
    /// Cohorts by number.
    pub cohorts: BTreeMap<u32, CohortState>,
    /// Cells: one per subject, open bucket and signal.
    pub cells: usize,
}

impl SeriesState {
    /// Returns the most buckets of any subject and the required number; none if they suffice, no bucket has closed, or
    /// a series has noise.
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

/// Entries changed by a batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesChanges {
    /// Stream state.
    pub head: SharedSeriesState,
    /// Subjects, ascending.
    pub people: Vec<(u64, SubjectState)>,
    /// Open buckets, ascending by subject; empty: removed.
    pub open: Vec<(u64, Vec<OpenBucket>)>,
    /// Cohorts, ascending.
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

    /// Erases subjects and retires their cohorts; other members return to the pool. Returns the number erased.
    pub fn erase_subjects(&mut self, is_erased: impl Fn(u64) -> bool) -> u64 {
        let before = self.people.len();
        self.people.retain(|subject, _| !is_erased(*subject));
        self.open.retain(|subject, _| !is_erased(*subject));
        self.cells = self.open.values().map(|buckets| cells(buckets)).sum();
        self.head.front.retain(|(subject, _)| !is_erased(*subject));
        // A removed partition delays buckets until it contributes or is idle.
        self.head.sources.retain_mut(|source| {
            let had_people = !source.front.is_empty();
            source.front.retain(|(subject, _)| !is_erased(*subject));
            !had_people || !source.front.is_empty()
        });
        self.cohorts.values_mut().for_each(|cohort| cohort.remove_members(&is_erased));
        self.return_members_to_pool();
        (before - self.people.len()) as u64
    }

    /// Returns members of retired cohorts to the pool; recounts `noise_people`.
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
