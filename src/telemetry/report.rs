//! What one committed batch reports, and the totals that it adds to.

use serde::{Deserialize, Serialize, Serializer};

use super::labels::{Counts, Label, Stage, SuppressionReason};
use super::reason::RejectionReason;

/// Records since the beginning of the state, across restarts.
///
/// Conservation: `consumed = released + suppressed + held + dead_lettered + dropped + moved`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Records read from the source.
    pub consumed: u64,
    /// At least one cell other than `*` has left.
    pub released: u64,
    /// Nothing of them has left or will leave.
    pub suppressed: u64,
    /// They could not be read or did not fit the schema.
    pub dead_lettered: u64,
    /// Tombstones: null payloads, dropped with their keys.
    pub dropped: u64,
    /// They wait in the changelog: their partition has gone, or the process has ended. Whoever restores them counts them as consumed.
    pub moved: u64,
}

impl Totals {
    /// Counts what is held as moved.
    pub fn let_go(&mut self) {
        self.moved += self.held().unwrap_or_default();
    }

    /// Records that have come and not gone: what conservation says is held. None when more has gone than come.
    pub fn held(&self) -> Option<u64> {
        let gone = self.released + self.suppressed + self.dead_lettered + self.dropped + self.moved;
        self.consumed.checked_sub(gone)
    }

    /// Adds what a batch has done.
    pub fn add(&mut self, report: &BatchReport) {
        self.consumed += report.consumed;
        self.released += report.released;
        self.suppressed += report.suppressed.total();
        self.dead_lettered += report.dead_lettered.total();
        self.dropped += report.dropped;
    }
}

/// Re-identification risk of a set of records: of a record it is 1 / subjects in its class (prosecutor's model).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RiskPicture {
    /// The highest of any record, 0 to 1.
    pub highest: f64,
    /// The mean over records, 0 to 1.
    pub average: f64,
    /// Share of records whose class has fewer than k subjects, 0 to 1.
    pub share_below_k: f64,
}

/// Distinct subjects in the classes of the lines that left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CrowdPicture {
    /// The smallest of any class; 0 when nothing left.
    pub smallest: u64,
    /// The mean over lines.
    pub average: f64,
    /// Share of lines whose class has fewer than k, 0 to 1.
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
    /// The recount.
    pub verify: f64,
    /// From the intent to the commit.
    pub commit: f64,
    /// What the model and the planner take.
    pub learn: f64,
}

impl StageSeconds {
    /// Seconds of one stage.
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

    /// Seconds of all stages but the wait for records.
    pub fn work(&self) -> f64 {
        Stage::ALL.iter().filter(|stage| **stage != Stage::Read).map(|stage| self.get(*stage)).sum()
    }
}

/// What a committed batch did. Counts are those of this batch; sizes are those after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BatchReport {
    /// The batch's number, from the durable state.
    pub sequence: u64,
    /// The batch clock, milliseconds since 1970.
    pub clock_ms: i64,
    /// Records that this batch has treated: newly consumed and formerly held.
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
    /// From the append of the batch's oldest record at the source to the commit, where the source has timestamps.
    pub append_to_commit_seconds: Option<f64>,

    /// Records read from the source.
    pub consumed: u64,
    /// Records of which at least one cell other than `*` left for the first time.
    pub released: u64,
    /// Records of which nothing leaves, by reason.
    pub suppressed: Counts<SuppressionReason>,
    /// Records that could not be read, by reason.
    pub dead_lettered: Counts<RejectionReason>,
    /// Tombstones.
    pub dropped: u64,
    /// Records held after this batch: nothing of them has left yet.
    pub held: u64,
    /// Fragments that did not leave because other lines of their subject stand for them.
    pub thinned_fragments: u64,
    /// Lines that waited for their delay and were settled by this batch, and how long they had waited in the mean.
    pub delayed_lines: u64,
    /// Mean of what those lines have waited.
    pub delay_seconds: f64,
    /// Lines that wait for their delay after this batch, and those remembered as said.
    pub waiting_lines: u64,
    /// Lines remembered as said after this batch.
    pub said_lines: u64,
    /// Records to which a join brought nothing: it has no profile of their subject. A record of two such joins counts twice.
    pub unjoined_records: u64,
    /// Profiles that joins keep after this batch.
    pub profiles: u64,

    /// Cells of attributes that the record schema does not know.
    pub unknown_cells: u64,
    /// Cells whose value the attribute's hierarchy misses.
    pub uncovered_cells: u64,
    /// Numbers that another one of the batch has taken the place of.
    pub altered_cells: u64,

    /// Memory of the ledger.
    pub ledger_bytes: u64,
    /// People, and classes that each of them supports, that the ledger remembers for tenure and budgets.
    pub supporters: u64,
    /// Cells of attributes under a privacy model that left suppressed in this batch's fragments.
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
    /// Pairs of values seen together that it counts.
    pub model_edges: u64,
    /// Its memory, bytes.
    pub model_bytes: u64,
    /// Pairs of attributes that it no longer counts.
    pub model_left_out_pairs: u64,
    /// Largest divergence of an attribute's values from those that the plan in force was made for.
    pub drift_bits: f64,
    /// State on disk, bytes.
    pub state_bytes: u64,
    /// Bytes that are free on its disk.
    pub state_free_bytes: u64,
    /// Records behind the end of the source; None where the source cannot say.
    pub lag_records: Option<u64>,

    /// Risk of the batch's records as they came. On pages and in metrics: of at least a thousand records, rounded and held.
    pub risk_before: RiskPicture,
    /// Risk of the fragments as they left.
    pub risk_after: RiskPicture,
    /// Crowds of the fragments as they left. On pages and in metrics no smallest crowd above k, and a mean that is rounded and held.
    pub crowd: CrowdPicture,
    /// Present quasi cells of the records that were settled: what `loss` and `exact_share` are means over.
    pub quasi_cells: u64,
    /// Mean loss of the present cells, 0 (exact) to 1 (all suppressed).
    pub loss: f64,
    /// Share of the present cells that left exactly.
    pub exact_share: f64,
}

impl BatchReport {
    /// Share of the settled records of which nothing was released, 0 to 1; 0 for a batch that settled none.
    pub fn suppressed_share(&self) -> f64 {
        let settled = self.released + self.suppressed.total();
        if settled == 0 { 0.0 } else { self.suppressed.total() as f64 / settled as f64 }
    }
}

/// How much of the input the published rows represent, since the state was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeriesPublished {
    /// People whose values are in a contributor set that has been published.
    pub people: u64,
    /// People who have sent a record. On no page: who sends a record and sees the number grow knows that the name was new.
    #[serde(skip)]
    pub people_seen: u64,
    /// Rows that earlier jobs of the state have published: their people count above, their records do not count below.
    #[serde(skip)]
    pub rows_before: u64,
    /// Records of the series that represents the largest share: with those of others it represents at least as many.
    #[serde(flatten)]
    pub best: SeriesRecords,
    /// Records in closed buckets of epochs that are open, once for each series: nothing of them can have left yet.
    pub pending: u64,
    /// Rows published.
    pub rows: u64,
    /// Records that came after their bucket was closed, or that no bucket could take, once for each series.
    pub late: u64,
    /// Rows withheld because too few members were present.
    pub too_few: u64,
    /// Sums published as shares of intervals because one or two members dominate them, or all have one value.
    pub binned: u64,
    /// Of such sums, those withheld because no intervals hold enough members.
    pub dominated: u64,
    /// Why a job has no rows, where nobody has values in enough buckets. On no page, as `people_seen`.
    #[serde(skip)]
    pub too_short: Option<TooFewBuckets>,
}

/// Buckets of people, where nobody has enough of them to be shown in a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewBuckets {
    /// Buckets with values of the person with most.
    pub most: u32,
    /// Buckets that each person needs.
    pub needed: u32,
}

/// Records of one series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeriesRecords {
    /// Records in closed buckets, of a series with moments in closed epochs.
    pub records: u64,
    /// Of these, records of people who are in a published row of their bucket or epoch.
    pub represented: u64,
    /// Of these, records of people in their warm-up, who cannot be represented yet. On no page, as `people_seen`.
    #[serde(skip)]
    pub warming_up: u64,
    /// Records that no bucket took.
    #[serde(skip)]
    pub dropped: u64,
    /// Records wait for the end of an epoch.
    #[serde(skip)]
    pub is_pending: bool,
}

impl SeriesRecords {
    /// Share of the records that the rows represent, those that no bucket took included; none before the first bucket or epoch has closed.
    #[must_use]
    pub fn records_share(&self) -> Option<f64> {
        share(self.represented, self.settled())
    }

    /// Records that are part of a row, or never will be.
    #[must_use]
    pub fn settled(&self) -> u64 {
        if self.records == 0 && self.is_pending { 0 } else { self.records + self.dropped }
    }

    /// The same counts without people in their warm-up, as `release.min_represented` judges them, with `unreadable` records beside; none
    /// before a record is judged.
    #[must_use]
    pub fn judged(&self, unreadable: u64) -> Option<RecordShare> {
        RecordShare::of(self.represented, self.settled().saturating_sub(self.warming_up), unreadable)
    }
}

/// Records that a release represents, of all that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordShare {
    /// Records represented.
    pub represented: u64,
    /// All records that count, unreadable ones included.
    pub records: u64,
    /// Of these, records that could not be read.
    pub unreadable: u64,
}

impl RecordShare {
    /// Counts of `represented` of `readable` records, and of unreadable ones; none where no record could be read.
    #[must_use]
    pub fn of(represented: u64, readable: u64, unreadable: u64) -> Option<Self> {
        (readable > 0).then_some(Self { represented, records: readable + unreadable, unreadable })
    }

    /// Share of all records that count.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.represented as f64 / self.records.max(1) as f64
    }

    /// Share of the records that could be read.
    #[must_use]
    pub fn share_of_readable(&self) -> f64 {
        self.represented as f64 / (self.records - self.unreadable).max(1) as f64
    }

    /// The counts in brackets, where some records could not be read; else nothing.
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

/// Writes counts as their share.
#[allow(clippy::ref_option, reason = "serde passes a reference to the field")]
fn as_share<S: Serializer>(counts: &Option<RecordShare>, serializer: S) -> Result<S::Ok, S::Error> {
    counts.as_ref().map(RecordShare::share).serialize(serializer)
}

/// A part of a whole; none of nothing.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Share of the input that a release represents. Records that could not be read count where the source is files or standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Represented {
    /// Records of which a line of their own was released; none without fragments, and before the first record.
    #[serde(serialize_with = "as_share")]
    pub by_fragments: Option<RecordShare>,
    /// Records that rows of series represent, without people in their warm-up; none without series.
    #[serde(serialize_with = "as_share")]
    pub by_series: Option<RecordShare>,
    /// Share that `release.min_represented` asks for; 0 where nothing is judged.
    pub minimum: f64,
    /// Records that could not be read and count in both shares; 0 where the source is a topic.
    pub unreadable: u64,
}

impl Represented {
    /// Counts of the form that represents most; none where nothing was released or closed yet.
    #[must_use]
    pub fn best(&self) -> Option<RecordShare> {
        let forms = [self.by_fragments, self.by_series].into_iter().flatten();
        forms.reduce(|best, other| if other.share() > best.share() { other } else { best })
    }

    /// Share that the form represents that represents most; none where nothing was released or closed yet.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        self.best().map(|best| best.share())
    }

    /// The counts of the best form where its share lies below the minimum.
    #[must_use]
    pub fn too_little(&self) -> Option<RecordShare> {
        self.best().filter(|best| best.share() < self.minimum)
    }
}

#[cfg(test)]
mod tests {
    use super::{RecordShare, Represented, SeriesRecords};

    fn of(represented: u64, readable: u64, unreadable: u64) -> RecordShare {
        RecordShare::of(represented, readable, unreadable).expect("records that could be read")
    }

    #[test]
    fn the_form_that_represents_most_is_judged() {
        let judged = |by_fragments: Option<RecordShare>, by_series| {
            Represented { by_fragments, by_series, minimum: 0.5, unreadable: 0 }.too_little().map(|found| found.share())
        };
        assert_eq!(judged(None, None), None);
        assert_eq!(judged(Some(of(1, 10, 0)), None), Some(0.1));
        assert_eq!(judged(Some(of(1, 10, 0)), Some(of(9, 10, 0))), None);
        assert_eq!(judged(Some(of(5, 10, 0)), Some(of(2, 10, 0))), None);
        let accepted = Represented { by_fragments: Some(of(0, 10, 0)), ..Represented::default() };
        assert_eq!(accepted.too_little(), None);
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
    fn late_records_lower_the_share_and_people_in_their_warm_up_are_not_judged() {
        let series = SeriesRecords { records: 80, represented: 40, warming_up: 50, dropped: 20, is_pending: false };
        assert_eq!((series.records_share(), series.judged(0)), (Some(0.4), Some(of(40, 50, 0))));
        assert_eq!(series.judged(30), Some(of(40, 50, 30)));
        assert_eq!(SeriesRecords::default().records_share(), None);
        let first_epoch = SeriesRecords { is_pending: true, dropped: 2, ..SeriesRecords::default() };
        assert_eq!((first_epoch.records_share(), first_epoch.judged(7)), (None, None));
        let later_epoch = SeriesRecords { records: 8, represented: 5, ..first_epoch };
        assert_eq!(later_epoch.records_share(), Some(0.5));
        let nothing_placed = SeriesRecords { dropped: 2, ..SeriesRecords::default() };
        assert_eq!(nothing_placed.judged(0), Some(of(0, 2, 0)));
    }
}
