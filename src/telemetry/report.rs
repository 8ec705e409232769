//! Report of one committed batch, the totals over batches, and the represented share.

use serde::{Deserialize, Serialize, Serializer};

use super::labels::{CountsByLabel, Label, Stage, SuppressionReason};
use super::reason::RejectionReason;

/// Record totals since the creation of the state, across restarts.
///
/// Conservation: `consumed = released + suppressed + held + dead_lettered + dropped + moved`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordTotals {
    /// Records read from the source.
    pub consumed: u64,
    /// Records with at least one released cell other than `*`.
    pub released: u64,
    /// Records of which no cell was or will be released.
    pub suppressed: u64,
    /// Records that could not be read or did not fit the schema.
    pub dead_lettered: u64,
    /// Tombstones: null payloads, dropped with their keys.
    pub dropped: u64,
    /// Records that wait in the changelog: their partition was revoked, or the process has ended. The instance that
    /// restores them counts them as consumed.
    pub moved: u64,
}

impl RecordTotals {
    /// Counts withheld records as moved.
    pub fn count_held_as_moved(&mut self) {
        self.moved += self.held().unwrap_or_default();
    }

    /// Returns the number of withheld records by the conservation law; None if more records are accounted for than
    /// were consumed.
    pub fn held(&self) -> Option<u64> {
        let gone = self.released + self.suppressed + self.dead_lettered + self.dropped + self.moved;
        self.consumed.checked_sub(gone)
    }

    /// Adds the counts of a batch.
    pub fn add(&mut self, report: &BatchReport) {
        self.consumed += report.consumed;
        self.released += report.released;
        self.suppressed += report.suppressed.total();
        self.dead_lettered += report.dead_lettered.total();
        self.dropped += report.dropped;
    }
}

/// Re-identification risk of a set of records: for one record, 1 / subjects in its class (prosecutor model).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RiskFigures {
    /// Highest risk of any record, 0 to 1.
    pub highest: f64,
    /// Mean risk over records, 0 to 1.
    pub average: f64,
    /// Share of records in classes with fewer than k subjects, 0 to 1.
    pub share_below_k: f64,
}

/// Distinct subjects in the classes of the released lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ClassSizeFigures {
    /// Smallest class size; 0 if no line was released.
    pub smallest: u64,
    /// Mean class size over lines.
    pub average: f64,
    /// Share of lines in classes with fewer than k subjects, 0 to 1.
    pub share_below_k: f64,
}

/// Seconds spent in each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StageSeconds {
    /// Waiting for records.
    pub read: f64,
    /// From bytes to cells.
    pub decode: f64,
    /// From cells to codes.
    pub encode: f64,
    /// From codes to a proposal.
    pub treat: f64,
    /// The recount of the verifier.
    pub verify: f64,
    /// From the intent to the commit.
    pub commit: f64,
    /// Time of the model and the planner.
    pub learn: f64,
}

impl StageSeconds {
    /// Returns the seconds of one stage.
    pub fn get(&self, stage: Stage) -> f64 {
        match stage {
            Stage::Read => self.read,
            Stage::Decode => self.decode,
            Stage::Encode => self.encode,
            Stage::Treat => self.treat,
            Stage::Verify => self.verify,
            Stage::Commit => self.commit,
            Stage::Learn => self.learn,
        }
    }

    /// Adds seconds to a stage.
    pub fn add(&mut self, stage: Stage, seconds: f64) {
        *match stage {
            Stage::Read => &mut self.read,
            Stage::Decode => &mut self.decode,
            Stage::Encode => &mut self.encode,
            Stage::Treat => &mut self.treat,
            Stage::Verify => &mut self.verify,
            Stage::Commit => &mut self.commit,
            Stage::Learn => &mut self.learn,
        } += seconds;
    }

    /// Returns the seconds of all stages except the wait for records.
    pub fn processing_seconds(&self) -> f64 {
        Stage::ALL.iter().filter(|stage| **stage != Stage::Read).map(|stage| self.get(*stage)).sum()
    }
}

/// Report of a committed batch. Counts are those of this batch; sizes are those after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BatchReport {
    /// Number of the batch, from the durable state.
    pub sequence: u64,
    /// Batch clock, milliseconds since 1970.
    pub clock_ms: i64,
    /// Records treated by this batch: newly consumed and formerly withheld ones.
    pub records: u64,
    /// Payload bytes consumed.
    pub bytes_in: u64,
    /// Encoded bytes released.
    pub bytes_out: u64,
    /// Fragments released, all groups together.
    pub fragments: u64,
    /// Fragments released by group, in the order of the groups' names.
    pub fragments_by_group: Vec<u64>,
    /// Seconds by stage.
    pub seconds: StageSeconds,
    /// Seconds from the append of the batch's oldest record at the source to the commit, if the source has
    /// timestamps.
    pub append_to_commit_seconds: Option<f64>,

    /// Records read from the source.
    pub consumed: u64,
    /// Records of which a cell other than `*` was released for the first time.
    pub released: u64,
    /// Records without any release, by reason.
    pub suppressed: CountsByLabel<SuppressionReason>,
    /// Unreadable records, by reason.
    pub dead_lettered: CountsByLabel<RejectionReason>,
    /// Tombstones.
    pub dropped: u64,
    /// Records withheld after this batch, without any release so far.
    pub held: u64,
    /// Fragments not released because of the limit of lines per subject.
    pub thinned_fragments: u64,
    /// Lines with a delay that ended in this batch.
    pub delayed_lines: u64,
    /// Mean delay of these lines, in seconds.
    pub delay_seconds: f64,
    /// Lines that wait for their delay after this batch.
    pub waiting_lines: u64,
    /// Pairs of subject and group in the release log after this batch.
    pub said_lines: u64,
    /// Records for which a join has no profile of their subject. A record counts once per such join.
    pub unjoined_records: u64,
    /// Profiles stored by joins after this batch.
    pub profiles: u64,

    /// Cells of attributes that the record schema does not define.
    pub unknown_cells: u64,
    /// Cells with a value that is missing in the attribute's hierarchy.
    pub uncovered_cells: u64,
    /// Numbers replaced by another value of the batch.
    pub altered_cells: u64,

    /// Memory of the ledger.
    pub ledger_bytes: u64,
    /// Subjects, and classes that each of them supports, stored in the ledger for tenure and budgets.
    pub supporters: u64,
    /// Cells of attributes under a privacy model that were suppressed in this batch's fragments.
    pub withheld_cells: u64,
    /// Values in all dictionaries.
    pub dictionary_values: u64,
    /// Memory of the dictionaries.
    pub dictionary_bytes: u64,
    /// Memory of the window and of the planner's sample.
    pub window_bytes: u64,
    /// Records in the planner's window.
    pub window_records: u64,
    /// Values that the model of the window counts.
    pub model_nodes: u64,
    /// Pairs of co-occurring values that the model counts.
    pub model_edges: u64,
    /// Memory of the model, in bytes.
    pub model_bytes: u64,
    /// Pairs of attributes that the model no longer counts.
    pub model_left_out_pairs: u64,
    /// Largest divergence between an attribute's values and those of the active plan, in bits.
    pub drift_bits: f64,
    /// Size of the state on disk, in bytes.
    pub state_bytes: u64,
    /// Free bytes on the disk of the state.
    pub state_free_bytes: u64,
    /// Records behind the end of the source; None if the source does not report it.
    pub lag_records: Option<u64>,

    /// Risk of the batch's incoming records. On pages and in metrics: of at least a thousand records, rounded and
    /// renewed at intervals.
    pub risk_before: RiskFigures,
    /// Risk of the released fragments.
    pub risk_after: RiskFigures,
    /// Class sizes of the released fragments. On pages and in metrics the smallest is at most k, and the mean is
    /// rounded and renewed at intervals.
    pub crowd: ClassSizeFigures,
    /// Present quasi cells of the completed records: the base of the means `loss` and `exact_share`.
    pub quasi_cells: u64,
    /// Mean loss of the present cells, 0 (exact) to 1 (all suppressed).
    pub loss: f64,
    /// Share of the present cells released exactly.
    pub exact_share: f64,
}

impl BatchReport {
    /// Returns the share of the completed records without any release, 0 to 1; 0 for a batch without completed
    /// records.
    pub fn suppressed_share(&self) -> f64 {
        let settled = self.released + self.suppressed.total();
        if settled == 0 { 0.0 } else { self.suppressed.total() as f64 / settled as f64 }
    }
}

/// Share of the input that the published rows represent, since the creation of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeriesPublished {
    /// Subjects with values in a published contributor set.
    pub people: u64,
    /// Subjects that have sent a record. Shown on no page: a sender of a record that sees the number grow would learn
    /// that the subject was new.
    #[serde(skip)]
    pub people_seen: u64,
    /// Rows that earlier jobs of the state have published: their subjects count above, their records do not count
    /// below.
    #[serde(skip)]
    pub rows_before: u64,
    /// Records of the series that represents the largest share; together with the others it represents at least as
    /// many.
    #[serde(flatten)]
    pub best: SeriesRecords,
    /// Records in closed buckets of open epochs, once per series: none of them can be released yet.
    pub pending: u64,
    /// Rows published.
    pub rows: u64,
    /// Records that arrived after their bucket was closed, or that fit no bucket, once per series.
    pub late: u64,
    /// Rows withheld because too few members were present.
    pub too_few: u64,
    /// Sums published as shares of intervals because one or two members dominate them, or all have the same value.
    pub binned: u64,
    /// Of such sums, those withheld because no intervals hold enough members.
    pub dominated: u64,
    /// Reason for a job without rows: no subject has values in enough buckets. Shown on no page, as `people_seen`.
    #[serde(skip)]
    pub too_short: Option<TooFewBuckets>,
}

/// Numbers of buckets, if no subject has enough of them for a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewBuckets {
    /// Highest number of buckets with values of one subject.
    pub most: u32,
    /// Required number of buckets per subject.
    pub needed: u32,
}

/// Records of one series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeriesRecords {
    /// Records in closed buckets; for a series with moments, in closed epochs.
    pub records: u64,
    /// Of these, records of subjects in a published row of their bucket or epoch.
    pub represented: u64,
    /// Of these, records of subjects in their warm-up, which cannot be represented yet. Shown on no page, as
    /// `people_seen`.
    #[serde(skip)]
    pub warming_up: u64,
    /// Records that fit no bucket.
    #[serde(skip)]
    pub dropped: u64,
    /// Records wait for the end of an epoch.
    #[serde(skip)]
    pub is_pending: bool,
}

impl SeriesRecords {
    /// Returns the represented share of the records, including those that fit no bucket; None before the first bucket
    /// or epoch has closed.
    #[must_use]
    pub fn records_share(&self) -> Option<f64> {
        share(self.represented, self.completed_records())
    }

    /// Returns the number of records with a final outcome: part of a row, or never part of one.
    #[must_use]
    pub fn completed_records(&self) -> u64 {
        if self.records == 0 && self.is_pending { 0 } else { self.records + self.dropped }
    }

    /// Returns the counts for `release.min_represented`: without subjects in their warm-up, plus `unreadable`
    /// records. None before a record is final.
    #[must_use]
    pub fn checked_share(&self, unreadable: u64) -> Option<RecordShare> {
        RecordShare::of(self.represented, self.completed_records().saturating_sub(self.warming_up), unreadable)
    }
}

/// Number of represented records among all that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordShare {
    /// Records represented.
    pub represented: u64,
    /// All records that count, unreadable ones included.
    pub records: u64,
    /// Of these, unreadable records.
    pub unreadable: u64,
}

impl RecordShare {
    /// Creates the counts of `represented` among `readable` records, plus unreadable ones; None without readable
    /// records.
    #[must_use]
    pub fn of(represented: u64, readable: u64, unreadable: u64) -> Option<Self> {
        (readable > 0).then_some(Self { represented, records: readable + unreadable, unreadable })
    }

    /// Returns the share of all records that count.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.represented as f64 / self.records.max(1) as f64
    }

    /// Returns the share of the readable records.
    #[must_use]
    pub fn share_of_readable(&self) -> f64 {
        self.represented as f64 / (self.records - self.unreadable).max(1) as f64
    }

    /// Returns the counts in brackets if some records were unreadable; otherwise an empty text.
    #[must_use]
    pub fn note(&self) -> String {
        match self.unreadable {
            0 => String::new(),
            unreadable => format!(
                " ({} of {}; {unreadable} could not be read: see the dead letters)",
                self.represented, self.records
            ),
        }
    }
}

#[allow(clippy::ref_option, reason = "serde passes a reference to the field")]
fn as_share<S: Serializer>(counts: &Option<RecordShare>, serializer: S) -> Result<S::Ok, S::Error> {
    counts.as_ref().map(RecordShare::share).serialize(serializer)
}

/// Returns a part as a share of a whole; None for an empty whole.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Share of the input that a release represents. Unreadable records count if the source is files or standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RepresentedShare {
    /// Records with a released line; None without fragments, and before the first record.
    #[serde(serialize_with = "as_share")]
    pub by_fragments: Option<RecordShare>,
    /// Records that rows of series represent, without subjects in their warm-up; None without series.
    #[serde(serialize_with = "as_share")]
    pub by_series: Option<RecordShare>,
    /// Share required by `release.min_represented`; 0 if it is not checked.
    pub minimum: f64,
    /// Unreadable records that count in both shares; 0 if the source is a topic.
    pub unreadable: u64,
}

impl RepresentedShare {
    /// Returns the counts of the form that represents most; None before the first release or closed bucket.
    #[must_use]
    pub fn best(&self) -> Option<RecordShare> {
        let forms = [self.by_fragments, self.by_series].into_iter().flatten();
        forms.reduce(|best, other| if other.share() > best.share() { other } else { best })
    }

    /// Returns the share of the form that represents most; None before the first release or closed bucket.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        self.best().map(|best| best.share())
    }

    /// Returns the counts of the best form if its share is below the minimum.
    #[must_use]
    pub fn below_minimum(&self) -> Option<RecordShare> {
        self.best().filter(|best| best.share() < self.minimum)
    }
}

#[cfg(test)]
mod tests {
    use super::{RecordShare, RepresentedShare, SeriesRecords};

    fn of(represented: u64, readable: u64, unreadable: u64) -> RecordShare {
        RecordShare::of(represented, readable, unreadable).expect("records that could be read")
    }

    #[test]
    fn best_represented_form_is_checked() {
        let judged = |by_fragments: Option<RecordShare>, by_series| {
            RepresentedShare { by_fragments, by_series, minimum: 0.5, unreadable: 0 }
                .below_minimum()
                .map(|found| found.share())
        };
        assert_eq!(judged(None, None), None);
        assert_eq!(judged(Some(of(1, 10, 0)), None), Some(0.1));
        assert_eq!(judged(Some(of(1, 10, 0)), Some(of(9, 10, 0))), None);
        assert_eq!(judged(Some(of(5, 10, 0)), Some(of(2, 10, 0))), None);
        let accepted = RepresentedShare { by_fragments: Some(of(0, 10, 0)), ..RepresentedShare::default() };
        assert_eq!(accepted.below_minimum(), None);
        assert_eq!(serde_json::to_value(accepted).expect("JSON")["by_fragments"], 0.0);
    }

    #[test]
    fn unreadable_records_count_in_the_share() {
        let half = of(400, 400, 400);
        assert_eq!((half.share(), half.share_of_readable()), (0.5, 1.0));
        assert_eq!(half.note(), " (400 of 800; 400 could not be read: see the dead letters)");
        assert_eq!(of(3, 4, 0).note(), "");
        assert_eq!(RecordShare::of(0, 0, 400), None, "a run that could read nothing has lost everything");
    }

    #[test]
    fn late_records_lower_share_without_warm_up_subjects() {
        let series = SeriesRecords { records: 80, represented: 40, warming_up: 50, dropped: 20, is_pending: false };
        assert_eq!((series.records_share(), series.checked_share(0)), (Some(0.4), Some(of(40, 50, 0))));
        assert_eq!(series.checked_share(30), Some(of(40, 50, 30)));
        assert_eq!(SeriesRecords::default().records_share(), None);
        let first_epoch = SeriesRecords { is_pending: true, dropped: 2, ..SeriesRecords::default() };
        assert_eq!((first_epoch.records_share(), first_epoch.checked_share(7)), (None, None));
        let later_epoch = SeriesRecords { records: 8, represented: 5, ..first_epoch };
        assert_eq!(later_epoch.records_share(), Some(0.5));
        let nothing_placed = SeriesRecords { dropped: 2, ..SeriesRecords::default() };
        assert_eq!(nothing_placed.checked_share(0), Some(of(0, 2, 0)));
    }
}
