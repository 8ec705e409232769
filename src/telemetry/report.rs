//! Report of a committed batch, totals, and the represented share.

use serde::{Deserialize, Serialize, Serializer};

use super::labels::{CountsByLabel, Label, Stage, SuppressionReason};
use super::reason::RejectionReason;

/// Record totals since the creation of the state.
///
/// Conservation: `consumed = released + suppressed + held + dead_lettered + dropped + moved`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordTotals {
    /// Records read.
    pub consumed: u64,
    /// Records with a released cell other than `*`.
    pub released: u64,
    /// Records of which no cell will be released.
    pub suppressed: u64,
    /// Records that could not be read or did not fit the schema.
    pub dead_lettered: u64,
    /// Null payloads, records that the schema does not select (`only`), and withheld records of erased subjects.
    pub dropped: u64,
    /// Records that wait in the changelog of a revoked partition or an ended process. The restoring instance counts
    /// them as consumed.
    pub moved: u64,
}

impl RecordTotals {
    /// Counts withheld records as moved.
    pub fn count_held_as_moved(&mut self) {
        self.moved += self.held().unwrap_or_default();
    }

    /// Returns the withheld records by the conservation law; None if it is violated.
    pub fn held(&self) -> Option<u64> {
        let gone = self.released + self.suppressed + self.dead_lettered + self.dropped + self.moved;
        self.consumed.checked_sub(gone)
    }

    /// Adds a batch.
    pub fn add(&mut self, report: &BatchReport) {
        self.consumed += report.consumed;
        self.released += report.released;
        self.suppressed += report.suppressed.total();
        self.dead_lettered += report.dead_lettered.total();
        self.dropped += report.dropped;
    }
}

/// Re-identification risk: 1 / subjects in the class of a record (prosecutor model).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RiskFigures {
    /// Highest risk, 0 to 1.
    pub highest: f64,
    /// Mean risk, 0 to 1.
    pub average: f64,
    /// Share of records in classes below k, 0 to 1.
    pub share_below_k: f64,
}

/// Distinct subjects in the classes of released lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ClassSizeFigures {
    /// Smallest class; 0 without lines.
    pub smallest: u64,
    /// Mean over lines.
    pub average: f64,
    /// Share of lines in classes below k, 0 to 1.
    pub share_below_k: f64,
}

/// Seconds by stage.
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
    /// Recount of the verifier.
    pub verify: f64,
    /// From the intent to the commit.
    pub commit: f64,
    /// Model and planner.
    pub learn: f64,
}

impl StageSeconds {
    /// Returns one stage.
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

    /// Adds to a stage.
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

    /// Returns the seconds of all stages except `read`.
    pub fn processing_seconds(&self) -> f64 {
        Stage::ALL.iter().filter(|stage| **stage != Stage::Read).map(|stage| self.get(*stage)).sum()
    }
}

/// Report of a committed batch: its counts, and the sizes after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BatchReport {
    /// Number of the batch in the state.
    pub sequence: u64,
    /// Batch clock, milliseconds since 1970.
    pub clock_ms: i64,
    /// Records treated: newly consumed and formerly withheld.
    pub records: u64,
    /// Payload bytes read.
    pub bytes_in: u64,
    /// Encoded bytes released.
    pub bytes_out: u64,
    /// Fragments released.
    pub fragments: u64,
    /// Fragments by group.
    pub fragments_by_group: Vec<u64>,
    /// Seconds by stage.
    pub seconds: StageSeconds,
    /// Seconds from the append of the oldest record to the commit, if the source has timestamps.
    pub append_to_commit_seconds: Option<f64>,

    /// Records read.
    pub consumed: u64,
    /// Records released for the first time, with a cell other than `*`.
    pub released: u64,
    /// Records without any release, by reason.
    pub suppressed: CountsByLabel<SuppressionReason>,
    /// Unreadable records, by reason.
    pub dead_lettered: CountsByLabel<RejectionReason>,
    /// Null payloads and records that the schema does not select.
    pub dropped: u64,
    /// Withheld records without any release so far.
    pub held: u64,
    /// Fragments not released because of the lines per subject.
    pub thinned_fragments: u64,
    /// Lines with an ended delay.
    pub delayed_lines: u64,
    /// Mean delay of these lines, in seconds.
    pub delay_seconds: f64,
    /// Lines that wait for their delay.
    pub waiting_lines: u64,
    /// Pairs of subject and group in the release log.
    pub said_lines: u64,
    /// Records without a profile, once per join.
    pub unjoined_records: u64,
    /// Stored profiles.
    pub profiles: u64,

    /// Cells of attributes outside the record schema.
    pub unknown_cells: u64,
    /// Cells with a value outside the hierarchy.
    pub uncovered_cells: u64,
    /// Numbers replaced by another value.
    pub altered_cells: u64,

    /// Bytes of the ledger.
    pub ledger_bytes: u64,
    /// Subjects, and classes that each supports, in the ledger.
    pub supporters: u64,
    /// Cells suppressed for a privacy model.
    pub withheld_cells: u64,
    /// Values in all dictionaries.
    pub dictionary_values: u64,
    /// Bytes of the dictionaries.
    pub dictionary_bytes: u64,
    /// Bytes of window and sample.
    pub window_bytes: u64,
    /// Records in the window.
    pub window_records: u64,
    /// Values in the model of the window.
    pub model_nodes: u64,
    /// Pairs of co-occurring values in the model.
    pub model_edges: u64,
    /// Bytes of the model.
    pub model_bytes: u64,
    /// Attribute pairs that the model no longer counts.
    pub model_left_out_pairs: u64,
    /// Largest divergence of an attribute from the active plan, in bits.
    pub drift_bits: f64,
    /// Bytes of the state on disk.
    pub state_bytes: u64,
    /// Free bytes on its disk.
    pub state_free_bytes: u64,
    /// Records behind the end of the source, if reported.
    pub lag_records: Option<u64>,

    /// Risk of the incoming records; displayed rounded, over at least a thousand records.
    pub risk_before: RiskFigures,
    /// Risk of the fragments.
    pub risk_after: RiskFigures,
    /// Class sizes of the fragments; displayed with a smallest of at most k and a rounded mean.
    pub crowd: ClassSizeFigures,
    /// Present quasi cells of completed records: the base of `loss` and `exact_share`.
    pub quasi_cells: u64,
    /// Mean loss of these cells, 0 (exact) to 1 (suppressed).
    pub loss: f64,
    /// Share of them released exactly.
    pub exact_share: f64,
}

impl BatchReport {
    /// Returns the share of completed records without any release; 0 without completed records.
    pub fn suppressed_share(&self) -> f64 {
        let settled = self.released + self.suppressed.total();
        if settled == 0 { 0.0 } else { self.suppressed.total() as f64 / settled as f64 }
    }
}

/// Share of the input that published rows represent, since the creation of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeriesPublished {
    /// Subjects in a published contributor set.
    pub people: u64,
    /// Subjects that have sent a record. Never displayed: its growth would reveal a new subject.
    #[serde(skip)]
    pub people_seen: u64,
    /// Rows of earlier jobs: their subjects count here, their records do not.
    #[serde(skip)]
    pub rows_before: u64,
    /// Records of the series that represents the largest share.
    #[serde(flatten)]
    pub best: SeriesRecords,
    /// Records in closed buckets of open epochs, once per series.
    pub pending: u64,
    /// Rows published.
    pub rows: u64,
    /// Records after the close of their bucket, or without a bucket, once per series.
    pub late: u64,
    /// Rows withheld for too few members.
    pub too_few: u64,
    /// Sums published as interval shares: one or two members dominate them, or all values are equal.
    pub binned: u64,
    /// Dominated sums withheld: no intervals hold enough members.
    pub dominated: u64,
    /// Reason for a job without rows. Never displayed, as `people_seen`.
    #[serde(skip)]
    pub too_short: Option<TooFewBuckets>,
}

/// Bucket numbers, if no subject has enough buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewBuckets {
    /// Most buckets with values of one subject.
    pub most: u32,
    /// Required buckets per subject.
    pub needed: u32,
}

/// Records of one series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeriesRecords {
    /// Records in closed buckets, or epochs for moments.
    pub records: u64,
    /// Of these, records of subjects in a published row.
    pub represented: u64,
    /// Of these, records in a warm-up. Never displayed, as `people_seen`.
    #[serde(skip)]
    pub warming_up: u64,
    /// Records without a bucket.
    #[serde(skip)]
    pub dropped: u64,
    /// Records wait for the end of an epoch.
    #[serde(skip)]
    pub is_pending: bool,
}

impl SeriesRecords {
    /// Returns the represented share, including records without a bucket; None before the first close.
    #[must_use]
    pub fn records_share(&self) -> Option<f64> {
        share(self.represented, self.completed_records())
    }

    /// Returns the records with a final outcome.
    #[must_use]
    pub fn completed_records(&self) -> u64 {
        if self.records == 0 && self.is_pending { 0 } else { self.records + self.dropped }
    }

    /// Returns the counts for `release.min_represented`: without warm-ups, plus `unreadable`. None before a record is
    /// final.
    #[must_use]
    pub fn checked_share(&self, unreadable: u64) -> Option<RecordShare> {
        RecordShare::of(self.represented, self.completed_records().saturating_sub(self.warming_up), unreadable)
    }
}

/// Represented records among all that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordShare {
    /// Records represented.
    pub represented: u64,
    /// All that count, unreadable ones included.
    pub records: u64,
    /// Of these, unreadable.
    pub unreadable: u64,
}

impl RecordShare {
    /// Creates the counts; None without readable records.
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

    /// Returns the counts in brackets if some records were unreadable, else "".
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

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Share of the input that a release represents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RepresentedShare {
    /// Records with a released line; None without fragments or records.
    #[serde(serialize_with = "as_share")]
    pub by_fragments: Option<RecordShare>,
    /// Records in rows of series, without warm-ups; None without series.
    #[serde(serialize_with = "as_share")]
    pub by_series: Option<RecordShare>,
    /// `release.min_represented`; 0 if not checked.
    pub minimum: f64,
    /// Unreadable records in both shares; 0 for topics.
    pub unreadable: u64,
}

impl RepresentedShare {
    /// Returns the counts of the form that represents most; None before a release.
    #[must_use]
    pub fn best(&self) -> Option<RecordShare> {
        let forms = [self.by_fragments, self.by_series].into_iter().flatten();
        forms.reduce(|best, other| if other.share() > best.share() { other } else { best })
    }

    /// Returns the share of [`best`](Self::best).
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        self.best().map(|best| best.share())
    }

    /// Returns the counts of the best form if below the minimum.
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
