//! What pages and metrics show of figures that a single raw value, pair or person can change: rounded by a draw that
//! nobody can foresee, and held.
//!
//! A size that grows by one when a guessed value is new is an oracle for whoever may send a record (docs/threats.md, 28).
//! Counts of what became of records are not among these figures: a record's own fate tells no more than the release does.

use std::collections::BTreeMap;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::labels::Limit;
use super::report::{BatchReport, CrowdPicture, RiskPicture, StageSeconds};
use super::{Label, Stage};

/// Figures are new with a plan, and otherwise after so many seconds.
const HOLD_SECONDS: u64 = 600;
/// Counts are in steps of at least this, and of two significant digits.
const LEAST_COUNT: u64 = 1_000;
/// The same for bytes.
const LEAST_BYTES: u64 = 1 << 20;
/// Records that a risk picture is of, at least: it spans as many batches as that takes.
const PICTURE_RECORDS: u64 = 1_000;
/// Lines that a mean delay is of, at least, and up to as many more, as is drawn: a line's own delay is a secret.
const DELAYED_LINES: u64 = 1_000;
/// Steps of the risk before, of the risk after, and of the drift in bits.
const BEFORE: f64 = 0.05;
const AFTER: f64 = 0.01;
const DRIFT: f64 = 0.05;
/// Least steps of the mean crowd of a line.
const CROWD: f64 = 10.0;

/// Draws that follow from a key: with it they can be repeated, without it nobody can foresee them.
#[derive(Clone, Copy, Default)]
pub struct Draws([u8; 32]);

impl Draws {
    /// Draws from a key of this state.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(*key)
    }

    /// In [0, 1), for the `number`th time that `figure` is shown.
    pub fn draw(&self, figure: &str, number: u64) -> f64 {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of every length");
        mac.update(b"throng pages");
        mac.update(&number.to_be_bytes());
        mac.update(figure.as_bytes());
        let bytes = mac.finalize().into_bytes();
        let bits = bytes.iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// `value` in steps of two significant digits, at least of `least`; which of the two nearest is drawn, so that no value lies
/// at a known edge.
pub fn about(value: u64, least: u64, draw: f64) -> u64 {
    let digits = value.checked_ilog10().unwrap_or(0);
    let step = 10_u64.pow(digits.saturating_sub(1)).max(least);
    let over = (value % step) as f64 >= (1.0 - draw) * step as f64;
    (value / step + u64::from(over)) * step
}

/// `value` in steps of `step`, like [`about`].
pub fn in_steps(value: f64, step: f64, draw: f64) -> f64 {
    // A multiple of the step stays what it is, whatever the rounding of the division.
    let steps = (value / step * 1e6).round() / 1e6;
    let shown = (steps + draw).floor() * step;
    (shown * 1e6).round() / 1e6
}

/// Sums over the records since a picture was shown.
#[derive(Clone, Copy, Default)]
struct Sums {
    records: u64,
    average: f64,
    below_k: f64,
}

impl Sums {
    fn add(&mut self, records: u64, picture: RiskPicture) {
        self.records += records;
        self.average += picture.average * records as f64;
        self.below_k += picture.share_below_k * records as f64;
    }

    fn means(self) -> (f64, f64) {
        (self.average / self.records as f64, self.below_k / self.records as f64)
    }
}

/// A sum that grows with every batch, shown in rounded parts. What a part lacks or has too much comes with the next one.
#[derive(Clone, Copy, Default)]
struct Growing {
    grown: u64,
    shown: u64,
}

impl Growing {
    /// What is to be shown next, in steps of `least` at least.
    fn part(&mut self, least: u64, draw: f64) -> u64 {
        let part = about(self.grown.saturating_sub(self.shown), least, draw);
        self.shown += part;
        part
    }
}

/// Lines that have waited since a mean was shown, and their delays in all.
#[derive(Clone, Copy, Default)]
struct Delays {
    lines: u64,
    seconds: f64,
}

/// The figures as they are shown, and what they will be made of.
#[derive(Default)]
pub(super) struct Coarse {
    pub draws: Draws,
    /// Version of the plan in force.
    pub plan: u64,
    /// What is shown, for which plan, since when; none before the first batch.
    shown: Option<(BatchReport, u64, u64)>,
    /// How often figures were renewed for the plan in force.
    renewed: u64,
    before: Sums,
    after: Sums,
    /// Crowds of the lines that `after` is of, in all, and the mean crowd that is shown.
    crowds: f64,
    mean_crowd: f64,
    pictures: (RiskPicture, RiskPicture),
    /// A picture is to be renewed, as soon as it is of enough records.
    due: (bool, bool),
    altered: u64,
    bytes_in: Growing,
    thinned: Growing,
    unjoined: Growing,
    delays: Delays,
    /// When a limit that values reach was last counted.
    limits: BTreeMap<usize, u64>,
}

impl Coarse {
    /// `report` as pages and metrics may show it at `second`.
    pub fn show(&mut self, second: u64, k: usize, report: &BatchReport) -> BatchReport {
        let came = report.consumed.saturating_sub(report.dropped + report.dead_lettered.total());
        self.before.add(came, report.risk_before);
        self.after.add(report.fragments, report.risk_after);
        self.crowds += report.crowd.average * report.fragments as f64;
        self.altered += report.altered_cells;
        let due = self
            .shown
            .as_ref()
            .is_none_or(|(_, plan, since)| *plan != self.plan || second.saturating_sub(*since) >= HOLD_SECONDS);
        self.bytes_in.grown += report.bytes_in;
        self.thinned.grown += report.thinned_fragments;
        self.unjoined.grown += report.unjoined_records;
        self.delays.lines += report.delayed_lines;
        self.delays.seconds += report.delay_seconds * report.delayed_lines as f64;
        let (mut altered, mut bytes_in, mut thinned, mut unjoined) = (0, 0, 0, 0);
        let mut delays = Delays::default();
        if due {
            let same_plan = self.shown.as_ref().is_some_and(|(_, plan, _)| *plan == self.plan);
            self.renewed = if same_plan { self.renewed + 1 } else { 0 };
            altered = self.altered / LEAST_COUNT * LEAST_COUNT;
            self.altered -= altered;
            bytes_in = self.bytes_in.part(LEAST_BYTES, self.draw("bytes in"));
            thinned = self.thinned.part(LEAST_COUNT, self.draw("thinned fragments"));
            unjoined = self.unjoined.part(LEAST_COUNT, self.draw("unjoined records"));
            delays = self.delays();
            self.shown = Some((self.sizes(report), self.plan, second));
        }
        self.due = (self.due.0 || due, self.due.1 || due);
        if self.due.0 && self.before.records >= PICTURE_RECORDS {
            self.pictures.0 = self.before();
            self.due.0 = false;
        }
        if self.due.1 && self.after.records >= PICTURE_RECORDS {
            self.mean_crowd = self.crowd();
            self.pictures.1.average = self.after();
            self.due.1 = false;
        }
        let sizes = self.shown.as_ref().map_or_else(BatchReport::default, |(sizes, _, _)| sizes.clone());
        BatchReport {
            risk_before: self.pictures.0,
            risk_after: RiskPicture {
                // No class is smaller than k: what lies below the bound is one crowd's own size.
                highest: if report.fragments == 0 { 0.0 } else { report.risk_after.highest.max(1.0 / k.max(1) as f64) },
                average: self.pictures.1.average,
                share_below_k: report.risk_after.share_below_k,
            },
            altered_cells: altered,
            bytes_in,
            thinned_fragments: thinned,
            unjoined_records: unjoined,
            delayed_lines: delays.lines,
            delay_seconds: delays.seconds,
            seconds: tenths_of_milliseconds(&report.seconds),
            ledger_bytes: sizes.ledger_bytes,
            supporters: sizes.supporters,
            waiting_lines: sizes.waiting_lines,
            said_lines: sizes.said_lines,
            profiles: sizes.profiles,
            crowd: CrowdPicture {
                // No class is smaller than k: what lies above is one crowd's own size.
                smallest: report.crowd.smallest.min(k as u64),
                average: self.mean_crowd,
                share_below_k: report.crowd.share_below_k,
            },
            window_records: sizes.window_records,
            dictionary_values: sizes.dictionary_values,
            dictionary_bytes: sizes.dictionary_bytes,
            window_bytes: sizes.window_bytes,
            model_nodes: sizes.model_nodes,
            model_edges: sizes.model_edges,
            model_bytes: sizes.model_bytes,
            model_left_out_pairs: sizes.model_left_out_pairs,
            drift_bits: sizes.drift_bits,
            state_bytes: sizes.state_bytes,
            state_free_bytes: sizes.state_free_bytes,
            ..report.clone()
        }
    }

    /// A number of things or bytes, rounded.
    pub fn count(&self, figure: &'static str, value: u64) -> u64 {
        about(value, LEAST_COUNT, self.draw(figure))
    }

    pub fn bytes(&self, figure: &'static str, value: u64) -> u64 {
        about(value, LEAST_BYTES, self.draw(figure))
    }

    fn draw(&self, figure: &str) -> f64 {
        self.draws.draw(figure, self.plan << 20 | self.renewed)
    }

    fn sizes(&self, report: &BatchReport) -> BatchReport {
        BatchReport {
            ledger_bytes: self.bytes("ledger bytes", report.ledger_bytes),
            supporters: self.count("supporters", report.supporters),
            waiting_lines: self.count("waiting lines", report.waiting_lines),
            said_lines: self.count("said lines", report.said_lines),
            profiles: self.count("profiles", report.profiles),
            // Under a limit of memory the window is as long as its different values allow.
            window_records: self.count("window records", report.window_records),
            dictionary_values: self.count("dictionary values", report.dictionary_values),
            dictionary_bytes: self.bytes("dictionary bytes", report.dictionary_bytes),
            window_bytes: self.bytes("window bytes", report.window_bytes),
            model_nodes: self.count("model nodes", report.model_nodes),
            model_edges: self.count("model edges", report.model_edges),
            model_bytes: self.bytes("model bytes", report.model_bytes),
            // Pairs of attributes, not of values; one is left out where the whole model is full.
            model_left_out_pairs: report.model_left_out_pairs,
            drift_bits: in_steps(report.drift_bits, DRIFT, self.draw("drift")),
            state_bytes: self.bytes("state bytes", report.state_bytes),
            state_free_bytes: self.bytes("state free bytes", report.state_free_bytes),
            ..BatchReport::default()
        }
    }

    /// The mean crowd of the lines that the picture of what left will be of, in steps of its leading digit. Everybody sees
    /// the lines of a batch; how many people are behind them is not for everybody.
    fn crowd(&mut self) -> f64 {
        let mean = std::mem::take(&mut self.crowds) / self.after.records as f64;
        let step = CROWD.max(10_f64.powf(mean.max(1.0).log10().floor()));
        in_steps(mean, step, self.draw("crowd"))
    }

    /// The picture of the records that have come since the last one. The worst of them is not shown: where some stand out
    /// at all, one may stand alone.
    fn before(&mut self) -> RiskPicture {
        let (average, below) = std::mem::take(&mut self.before).means();
        let average = in_steps(average, BEFORE, self.draw("risk before"));
        let share_below_k = in_steps(below, BEFORE, self.draw("below k before"));
        RiskPicture { highest: if share_below_k > 0.0 { 1.0 } else { average }, average, share_below_k }
    }

    /// Lines that have waited, rounded, and their mean delay; none before there are enough of them.
    fn delays(&mut self) -> Delays {
        let enough = DELAYED_LINES as f64 * (1.0 + self.draw("enough delayed lines"));
        if (self.delays.lines as f64) < enough {
            return Delays::default();
        }
        let Delays { lines, seconds } = std::mem::take(&mut self.delays);
        let mean = seconds / lines as f64;
        // Half of the leading digit: one line more or less is below a hundredth of it.
        let step = 10_f64.powf(mean.max(1e-3).log10().floor()) / 2.0;
        Delays { lines: self.count("delayed lines", lines), seconds: in_steps(mean, step, self.draw("mean delay")) }
    }

    fn after(&mut self) -> f64 {
        let (average, _) = std::mem::take(&mut self.after).means();
        in_steps(average, AFTER, self.draw("risk after"))
    }

    /// Whether a limit that was reached is to be counted: one that a single value can reach, only once in a while.
    pub fn may_count(&mut self, second: u64, limit: Limit) -> bool {
        let of_values = matches!(limit, Limit::DictionaryValues | Limit::Memory | Limit::ModelEdges | Limit::Profiles);
        if !of_values {
            return true;
        }
        match self.limits.get(&limit.index()) {
            Some(last) if second.saturating_sub(*last) < HOLD_SECONDS => false,
            _ => {
                self.limits.insert(limit.index(), second);
                true
            }
        }
    }
}

/// Noting a new value takes less than a microsecond.
fn tenths_of_milliseconds(seconds: &StageSeconds) -> StageSeconds {
    let mut rounded = StageSeconds::default();
    for stage in Stage::ALL {
        rounded.add(*stage, (seconds.get(*stage) * 1e4).round() / 1e4);
    }
    rounded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_shown_is_near_and_says_little(value in 0_u64..5_000_000, draw in 0.0_f64..1.0) {
            let shown = about(value, 1_000, draw);
            let step = 10_u64.pow(value.checked_ilog10().unwrap_or(0).saturating_sub(1)).max(1_000);
            prop_assert!(shown.abs_diff(value) < step && shown.is_multiple_of(step), "{} as {}", value, shown);
        }

        #[test]
        fn steps_keep_what_lies_on_them(steps in 0_u32..40, draw in 0.0_f64..0.999_99) {
            let value = f64::from(steps) * 0.05;
            prop_assert!((in_steps(value, 0.05, draw) - value).abs() < 1e-9);
            let between = in_steps(value + 0.02, 0.05, draw);
            prop_assert!((between - value).abs() < 1e-9 || (between - value - 0.05).abs() < 1e-9);
        }
    }

    /// Of a thousand pages, about one tells a value from the next: the yield that docs/threats.md names.
    #[test]
    fn one_more_changes_one_page_in_a_thousand() {
        let draws = Draws::new(&[7; 32]);
        let differ = |value: u64, pages: u64| {
            let shows = |value: u64, page: u64| about(value, LEAST_COUNT, draws.draw("dictionary values", page));
            (0..pages).filter(|page| shows(value, *page) != shows(value + 1, *page)).count()
        };
        for value in [3, 999, 12_345] {
            let told = differ(value, 20_000);
            assert!((5..=45).contains(&told), "{told} of 20,000 pages tell {value} from the next");
        }
        assert!(differ(1_234_567, 20_000) <= 3);
    }

    fn report(dictionary_values: u64, average: f64) -> BatchReport {
        let risk_before = RiskPicture { highest: 1.0, average, share_below_k: average };
        BatchReport { consumed: 600, fragments: 600, dictionary_values, risk_before, ..BatchReport::default() }
    }

    #[test]
    fn figures_are_held_until_the_next_plan_or_for_their_time() {
        let mut coarse = Coarse { plan: 1, ..Coarse::default() };
        let mut shown = |second, plan, values| {
            coarse.plan = plan;
            coarse.show(second, 5, &report(values, 0.5)).dictionary_values
        };
        assert_eq!(shown(0, 1, 5_000), 5_000);
        assert_eq!(shown(599, 1, 9_000), 5_000, "held");
        assert_eq!(shown(600, 1, 9_000), 9_000, "its time is over");
        assert_eq!(shown(601, 2, 30_000), 30_000, "another plan");
        assert_eq!(shown(602, 2, 40_000), 30_000, "held");
    }

    /// Under a limit of memory the length of the window says how many different values there were.
    #[test]
    fn the_length_of_the_window_is_rounded_and_held() {
        let mut coarse = Coarse { plan: 1, ..Coarse::default() };
        let mut shown = |second, window_records| {
            coarse.show(second, 5, &BatchReport { window_records, ..BatchReport::default() }).window_records
        };
        let first = shown(0, 123_457);
        assert!(first != 123_457 && (110_000..=137_000).contains(&first), "{first}");
        assert_eq!(shown(599, 123_458), first, "held");
        assert_ne!(shown(600, 190_000), first, "its time is over");
    }

    #[test]
    fn what_grows_is_shown_in_parts_and_nothing_is_lost() {
        let mut coarse = Coarse { draws: Draws::new(&[5; 32]), ..Coarse::default() };
        let batch = BatchReport { bytes_in: 700_001, thinned_fragments: 77, ..BatchReport::default() };
        let (mut bytes, mut thinned) = (0, 0);
        for second in 0..20_000 {
            let shown = coarse.show(second, 5, &batch);
            assert!(shown.bytes_in == 0 || shown.bytes_in >= LEAST_BYTES);
            assert!(shown.thinned_fragments.is_multiple_of(LEAST_COUNT));
            assert!(second.is_multiple_of(HOLD_SECONDS) || shown.bytes_in + shown.thinned_fragments == 0, "held");
            bytes += shown.bytes_in;
            thinned += shown.thinned_fragments;
        }
        // Since the last renewal some 200 batches have come; a part is rounded to two digits.
        assert!((19_600..=20_100).contains(&(bytes / 700_001)), "{bytes}");
        assert!((19_600..=20_100).contains(&(thinned / 77)), "{thinned}");
    }

    #[test]
    fn a_delay_is_a_mean_of_many_lines_or_not_shown() {
        let mut coarse = Coarse { draws: Draws::new(&[5; 32]), ..Coarse::default() };
        let waited =
            |delayed_lines, delay_seconds| BatchReport { delayed_lines, delay_seconds, ..BatchReport::default() };
        let mut shown = |second, report: &BatchReport| {
            let shown = coarse.show(second, 5, report);
            (shown.delayed_lines, shown.delay_seconds)
        };
        assert_eq!(shown(0, &waited(3, 17.123)), (0, 0.0), "three lines");
        assert_eq!(shown(600, &waited(900, 17.123)), (0, 0.0), "903 lines");
        assert_eq!(shown(601, &waited(5_000, 1_723.4)), (0, 0.0), "held");
        let (lines, mean) = shown(1_200, &waited(1, 3_000.0));
        assert!([5_000, 6_000].contains(&lines), "{lines}");
        assert!([1_000.0, 1_500.0].contains(&mean), "{mean}");
        assert_eq!(shown(1_201, &waited(1, 3_000.0)), (0, 0.0), "held");
    }

    /// What a line's own delay changes of the mean that is shown: the yield that docs/threats.md names.
    #[test]
    fn one_delay_changes_one_mean_in_a_hundred_at_most() {
        let mean = |number: u64, own: f64| {
            let mut coarse = Coarse { draws: Draws::new(&[5; 32]), plan: number, ..Coarse::default() };
            let seconds = 1_800.0 * 1_999.0;
            let of_all = (seconds + own) / 2_000.0;
            let report = BatchReport { delayed_lines: 2_000, delay_seconds: of_all, ..BatchReport::default() };
            coarse.show(0, 5, &report).delay_seconds
        };
        let told = (0..20_000).filter(|number| (mean(*number, 0.0) - mean(*number, 3_600.0)).abs() > 1e-9).count();
        assert!((20..=200).contains(&told), "{told} of 20,000");
    }

    #[test]
    fn a_picture_is_of_many_records() {
        let mut coarse = Coarse::default();
        assert_eq!(coarse.show(0, 5, &report(1, 0.5)).risk_before, RiskPicture::default(), "600 records");
        let picture = coarse.show(1, 5, &report(1, 0.3)).risk_before;
        assert!((picture.average - 0.4).abs() < 1e-9, "1,200 records: {picture:?}");
        assert_eq!(coarse.show(2, 5, &report(1, 0.9)).risk_before, picture, "held");
        let after = coarse.show(3, 5, &report(1, 0.9)).risk_after;
        assert!((after.highest - 0.2).abs() < 1e-9, "the bound, whatever the crowd: {after:?}");
    }

    /// One person more in the only class of a small batch: threat 28.
    #[test]
    fn how_many_people_are_in_a_crowd_is_not_shown() {
        let shown = |more: u64| {
            let mut coarse = Coarse { draws: Draws::new(&[5; 32]), ..Coarse::default() };
            let mut show = |second, fragments, subjects: u64| {
                let crowd = CrowdPicture { smallest: subjects, average: subjects as f64, share_below_k: 0.0 };
                coarse.show(second, 3, &BatchReport { fragments, crowd, ..BatchReport::default() }).crowd
            };
            [show(0, 2_000, 44), show(1, 10, 4 + more), show(2, 2_000, 44)]
        };
        assert_eq!(shown(0), shown(1));
        assert!(shown(0).iter().all(|crowd| crowd.smallest == 3 && [40.0, 50.0].contains(&crowd.average)));
    }

    #[test]
    fn a_limit_of_values_is_counted_once_in_a_while() {
        let mut coarse = Coarse::default();
        let mut counted = |second, limit| coarse.may_count(second, limit);
        assert!(
            counted(5, Limit::DictionaryValues) && !counted(6, Limit::DictionaryValues) && counted(6, Limit::Memory)
        );
        assert!(counted(605, Limit::DictionaryValues));
        assert!(counted(6, Limit::WaitingLines) && counted(6, Limit::WaitingLines));
    }
}
