//! Displayed figures that one raw value, pair or subject can change: rounded in an unpredictable direction and kept for
//! some time.
//!
//! Otherwise a sender could test a guessed value by a size that grows (docs/internals/threats.md, 28). Counts of record
//! outcomes reveal no more than the release and stay exact.

use std::collections::BTreeMap;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::labels::Limit;
use super::report::{BatchReport, ClassSizeFigures, RiskFigures, StageSeconds};
use super::{Label, Stage};

/// A new plan renews figures earlier.
const RENEWAL_SECONDS: u64 = 600;
/// Counts have two significant digits.
const MIN_COUNT_STEP: u64 = 1_000;
const MIN_BYTE_STEP: u64 = 1 << 20;
/// A risk figure covers as many batches as necessary.
const MIN_RISK_RECORDS: u64 = 1_000;
/// A random number up to twice this is required, because a line's delay is secret.
const MIN_DELAYED_LINES: u64 = 1_000;
/// Steps of the risk before, the risk after, and the drift in bits.
const RISK_BEFORE_STEP: f64 = 0.05;
const RISK_AFTER_STEP: f64 = 0.01;
const DRIFT_STEP: f64 = 0.05;
const MIN_CLASS_SIZE_STEP: f64 = 10.0;

/// Pseudorandom draws: repeatable with the key, unpredictable without it.
#[derive(Clone, Copy, Default)]
pub struct RoundingDraws([u8; 32]);

impl RoundingDraws {
    /// Creates draws from a key.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(*key)
    }

    /// Returns a draw in [0, 1) for the `number`th display of `figure`.
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

/// Rounds to two significant digits and a step of at least `least`. `draw` selects the multiple, so that no boundary is
/// known.
pub fn round_count(value: u64, least: u64, draw: f64) -> u64 {
    let digits = value.checked_ilog10().unwrap_or(0);
    let step = 10_u64.pow(digits.saturating_sub(1)).max(least);
    let over = (value % step) as f64 >= (1.0 - draw) * step as f64;
    (value / step + u64::from(over)) * step
}

/// Rounds to a multiple of `step`, like [`round_count`].
pub fn round_to_step(value: f64, step: f64, draw: f64) -> f64 {
    // Corrects the rounding error of the division.
    let steps = (value / step * 1e6).round() / 1e6;
    let shown = (steps + draw).floor() * step;
    (shown * 1e6).round() / 1e6
}

#[derive(Clone, Copy, Default)]
struct RiskSums {
    records: u64,
    average: f64,
    below_k: f64,
}

impl RiskSums {
    fn add(&mut self, records: u64, picture: RiskFigures) {
        self.records += records;
        self.average += picture.average * records as f64;
        self.below_k += picture.share_below_k * records as f64;
    }

    fn means(self) -> (f64, f64) {
        (self.average / self.records as f64, self.below_k / self.records as f64)
    }
}

/// Counter shown in rounded increments; each corrects the error of the previous ones.
#[derive(Clone, Copy, Default)]
struct RoundedCounter {
    grown: u64,
    shown: u64,
}

impl RoundedCounter {
    fn next_increment(&mut self, least: u64, draw: f64) -> u64 {
        let part = round_count(self.grown.saturating_sub(self.shown), least, draw);
        self.shown += part;
        part
    }
}

/// Lines and delays since the last displayed mean.
#[derive(Clone, Copy, Default)]
struct DelayTotals {
    lines: u64,
    seconds: f64,
}

/// Displayed figures and data for their renewal.
#[derive(Default)]
pub(super) struct FigureRounding {
    pub draws: RoundingDraws,
    /// Active plan.
    pub plan: u64,
    /// Figures, plan, and second of renewal.
    shown: Option<(BatchReport, u64, u64)>,
    /// Renewals under the active plan.
    renewed: u64,
    before: RiskSums,
    after: RiskSums,
    /// Sum of class sizes, and the displayed mean.
    crowds: f64,
    mean_crowd: f64,
    pictures: (RiskFigures, RiskFigures),
    /// Due risk figures (before, after).
    due: (bool, bool),
    altered: u64,
    bytes_in: RoundedCounter,
    thinned: RoundedCounter,
    unjoined: RoundedCounter,
    delays: DelayTotals,
    /// Second in which each value-dependent limit was last counted.
    limits: BTreeMap<usize, u64>,
}

impl FigureRounding {
    /// Returns `report` as it may be displayed at `second`.
    pub fn displayed_report(&mut self, second: u64, k: usize, report: &BatchReport) -> BatchReport {
        let came = report.consumed.saturating_sub(report.dropped + report.dead_lettered.total());
        self.before.add(came, report.risk_before);
        self.after.add(report.fragments, report.risk_after);
        self.crowds += report.crowd.average * report.fragments as f64;
        self.altered += report.altered_cells;
        let due = self
            .shown
            .as_ref()
            .is_none_or(|(_, plan, since)| *plan != self.plan || second.saturating_sub(*since) >= RENEWAL_SECONDS);
        self.bytes_in.grown += report.bytes_in;
        self.thinned.grown += report.thinned_fragments;
        self.unjoined.grown += report.unjoined_records;
        self.delays.lines += report.delayed_lines;
        self.delays.seconds += report.delay_seconds * report.delayed_lines as f64;
        let (mut altered, mut bytes_in, mut thinned, mut unjoined) = (0, 0, 0, 0);
        let mut delays = DelayTotals::default();
        if due {
            let same_plan = self.shown.as_ref().is_some_and(|(_, plan, _)| *plan == self.plan);
            self.renewed = if same_plan { self.renewed + 1 } else { 0 };
            altered = self.altered / MIN_COUNT_STEP * MIN_COUNT_STEP;
            self.altered -= altered;
            bytes_in = self.bytes_in.next_increment(MIN_BYTE_STEP, self.draw("bytes in"));
            thinned = self.thinned.next_increment(MIN_COUNT_STEP, self.draw("thinned fragments"));
            unjoined = self.unjoined.next_increment(MIN_COUNT_STEP, self.draw("unjoined records"));
            delays = self.renew_delays();
            self.shown = Some((self.rounded_sizes(report), self.plan, second));
        }
        self.due = (self.due.0 || due, self.due.1 || due);
        if self.due.0 && self.before.records >= MIN_RISK_RECORDS {
            self.pictures.0 = self.renew_risk_before();
            self.due.0 = false;
        }
        if self.due.1 && self.after.records >= MIN_RISK_RECORDS {
            self.mean_crowd = self.renew_class_size();
            self.pictures.1.average = self.renew_risk_after();
            self.due.1 = false;
        }
        let sizes = self.shown.as_ref().map_or_else(BatchReport::default, |(sizes, _, _)| sizes.clone());
        BatchReport {
            risk_before: self.pictures.0,
            risk_after: RiskFigures {
                // A risk below the bound would reveal a class size.
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
            seconds: round_stage_seconds(&report.seconds),
            ledger_bytes: sizes.ledger_bytes,
            supporters: sizes.supporters,
            waiting_lines: sizes.waiting_lines,
            said_lines: sizes.said_lines,
            profiles: sizes.profiles,
            crowd: ClassSizeFigures {
                // A minimum above k would reveal a class size.
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

    /// Rounds a count.
    pub fn rounded_count(&self, figure: &'static str, value: u64) -> u64 {
        round_count(value, MIN_COUNT_STEP, self.draw(figure))
    }

    pub fn rounded_bytes(&self, figure: &'static str, value: u64) -> u64 {
        round_count(value, MIN_BYTE_STEP, self.draw(figure))
    }

    fn draw(&self, figure: &str) -> f64 {
        self.draws.draw(figure, self.plan << 20 | self.renewed)
    }

    fn rounded_sizes(&self, report: &BatchReport) -> BatchReport {
        BatchReport {
            ledger_bytes: self.rounded_bytes("ledger bytes", report.ledger_bytes),
            supporters: self.rounded_count("supporters", report.supporters),
            waiting_lines: self.rounded_count("waiting lines", report.waiting_lines),
            said_lines: self.rounded_count("said lines", report.said_lines),
            profiles: self.rounded_count("profiles", report.profiles),
            // The window length depends on the number of distinct values.
            window_records: self.rounded_count("window records", report.window_records),
            dictionary_values: self.rounded_count("dictionary values", report.dictionary_values),
            dictionary_bytes: self.rounded_bytes("dictionary bytes", report.dictionary_bytes),
            window_bytes: self.rounded_bytes("window bytes", report.window_bytes),
            model_nodes: self.rounded_count("model nodes", report.model_nodes),
            model_edges: self.rounded_count("model edges", report.model_edges),
            model_bytes: self.rounded_bytes("model bytes", report.model_bytes),
            // Counts attribute pairs, not values.
            model_left_out_pairs: report.model_left_out_pairs,
            drift_bits: round_to_step(report.drift_bits, DRIFT_STEP, self.draw("drift")),
            state_bytes: self.rounded_bytes("state bytes", report.state_bytes),
            state_free_bytes: self.rounded_bytes("state free bytes", report.state_free_bytes),
            ..BatchReport::default()
        }
    }

    /// Rounds the mean to its leading digit: the subjects behind a line are not public.
    fn renew_class_size(&mut self) -> f64 {
        let mean = std::mem::take(&mut self.crowds) / self.after.records as f64;
        let step = MIN_CLASS_SIZE_STEP.max(10_f64.powf(mean.max(1.0).log10().floor()));
        round_to_step(mean, step, self.draw("crowd"))
    }

    /// The highest risk is not exact below k: it could reveal a unique record.
    fn renew_risk_before(&mut self) -> RiskFigures {
        let (average, below) = std::mem::take(&mut self.before).means();
        let average = round_to_step(average, RISK_BEFORE_STEP, self.draw("risk before"));
        let share_below_k = round_to_step(below, RISK_BEFORE_STEP, self.draw("below k before"));
        RiskFigures { highest: if share_below_k > 0.0 { 1.0 } else { average }, average, share_below_k }
    }

    /// Returns zeros until there are enough lines.
    fn renew_delays(&mut self) -> DelayTotals {
        let enough = MIN_DELAYED_LINES as f64 * (1.0 + self.draw("enough delayed lines"));
        if (self.delays.lines as f64) < enough {
            return DelayTotals::default();
        }
        let DelayTotals { lines, seconds } = std::mem::take(&mut self.delays);
        let mean = seconds / lines as f64;
        // One line changes the mean by less than a hundredth of this step.
        let step = 10_f64.powf(mean.max(1e-3).log10().floor()) / 2.0;
        DelayTotals {
            lines: self.rounded_count("delayed lines", lines),
            seconds: round_to_step(mean, step, self.draw("mean delay")),
        }
    }

    fn renew_risk_after(&mut self) -> f64 {
        let (average, _) = std::mem::take(&mut self.after).means();
        round_to_step(average, RISK_AFTER_STEP, self.draw("risk after"))
    }

    /// Returns true if a reached limit is counted; at most once per [`RENEWAL_SECONDS`] if a single value can reach it.
    pub fn is_limit_counted(&mut self, second: u64, limit: Limit) -> bool {
        let of_values = matches!(limit, Limit::DictionaryValues | Limit::Memory | Limit::ModelEdges | Limit::Profiles);
        if !of_values {
            return true;
        }
        match self.limits.get(&limit.index()) {
            Some(last) if second.saturating_sub(*last) < RENEWAL_SECONDS => false,
            _ => {
                self.limits.insert(limit.index(), second);
                true
            }
        }
    }
}

/// 0.1 ms hides the storing of a new value, which takes less than a microsecond.
fn round_stage_seconds(seconds: &StageSeconds) -> StageSeconds {
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
        fn rounded_count_is_close_multiple_of_step(value in 0_u64..5_000_000, draw in 0.0_f64..1.0) {
            let shown = round_count(value, 1_000, draw);
            let step = 10_u64.pow(value.checked_ilog10().unwrap_or(0).saturating_sub(1)).max(1_000);
            prop_assert!(shown.abs_diff(value) < step && shown.is_multiple_of(step), "{} as {}", value, shown);
        }

        #[test]
        fn multiples_of_step_stay_unchanged(steps in 0_u32..40, draw in 0.0_f64..0.999_99) {
            let value = f64::from(steps) * 0.05;
            prop_assert!((round_to_step(value, 0.05, draw) - value).abs() < 1e-9);
            let between = round_to_step(value + 0.02, 0.05, draw);
            prop_assert!((between - value).abs() < 1e-9 || (between - value - 0.05).abs() < 1e-9);
        }
    }

    /// The rate given in docs/internals/threats.md: about one page in a thousand.
    #[test]
    fn count_increment_rarely_changes_displayed_value() {
        let draws = RoundingDraws::new(&[7; 32]);
        let differ = |value: u64, pages: u64| {
            let shows =
                |value: u64, page: u64| round_count(value, MIN_COUNT_STEP, draws.draw("dictionary values", page));
            (0..pages).filter(|page| shows(value, *page) != shows(value + 1, *page)).count()
        };
        for value in [3, 999, 12_345] {
            let told = differ(value, 20_000);
            assert!((5..=45).contains(&told), "{told} of 20,000 pages tell {value} from the next");
        }
        assert!(differ(1_234_567, 20_000) <= 3);
    }

    fn report(dictionary_values: u64, average: f64) -> BatchReport {
        let risk_before = RiskFigures { highest: 1.0, average, share_below_k: average };
        BatchReport { consumed: 600, fragments: 600, dictionary_values, risk_before, ..BatchReport::default() }
    }

    #[test]
    fn figures_renew_after_interval_or_new_plan() {
        let mut coarse = FigureRounding { plan: 1, ..FigureRounding::default() };
        let mut shown = |second, plan, values| {
            coarse.plan = plan;
            coarse.displayed_report(second, 5, &report(values, 0.5)).dictionary_values
        };
        assert_eq!(shown(0, 1, 5_000), 5_000);
        assert_eq!(shown(599, 1, 9_000), 5_000, "held");
        assert_eq!(shown(600, 1, 9_000), 9_000, "its time is over");
        assert_eq!(shown(601, 2, 30_000), 30_000, "another plan");
        assert_eq!(shown(602, 2, 40_000), 30_000, "held");
    }

    /// The window length reveals the number of distinct values.
    #[test]
    fn window_length_is_rounded_and_renewed_later() {
        let mut coarse = FigureRounding { plan: 1, ..FigureRounding::default() };
        let mut shown = |second, window_records| {
            coarse.displayed_report(second, 5, &BatchReport { window_records, ..BatchReport::default() }).window_records
        };
        let first = shown(0, 123_457);
        assert!(first != 123_457 && (110_000..=137_000).contains(&first), "{first}");
        assert_eq!(shown(599, 123_458), first, "held");
        assert_ne!(shown(600, 190_000), first, "its time is over");
    }

    #[test]
    fn rounded_increments_sum_to_total() {
        let mut coarse = FigureRounding { draws: RoundingDraws::new(&[5; 32]), ..FigureRounding::default() };
        let batch = BatchReport { bytes_in: 700_001, thinned_fragments: 77, ..BatchReport::default() };
        let (mut bytes, mut thinned) = (0, 0);
        for second in 0..20_000 {
            let shown = coarse.displayed_report(second, 5, &batch);
            assert!(shown.bytes_in == 0 || shown.bytes_in >= MIN_BYTE_STEP);
            assert!(shown.thinned_fragments.is_multiple_of(MIN_COUNT_STEP));
            assert!(second.is_multiple_of(RENEWAL_SECONDS) || shown.bytes_in + shown.thinned_fragments == 0, "held");
            bytes += shown.bytes_in;
            thinned += shown.thinned_fragments;
        }
        // About 200 batches since the last renewal, rounded to two digits.
        assert!((19_600..=20_100).contains(&(bytes / 700_001)), "{bytes}");
        assert!((19_600..=20_100).contains(&(thinned / 77)), "{thinned}");
    }

    #[test]
    fn mean_delay_needs_enough_lines() {
        let mut coarse = FigureRounding { draws: RoundingDraws::new(&[5; 32]), ..FigureRounding::default() };
        let waited =
            |delayed_lines, delay_seconds| BatchReport { delayed_lines, delay_seconds, ..BatchReport::default() };
        let mut shown = |second, report: &BatchReport| {
            let shown = coarse.displayed_report(second, 5, report);
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

    /// The rate given in docs/internals/threats.md.
    #[test]
    fn single_delay_rarely_changes_displayed_mean() {
        let mean = |number: u64, own: f64| {
            let mut coarse =
                FigureRounding { draws: RoundingDraws::new(&[5; 32]), plan: number, ..FigureRounding::default() };
            let seconds = 1_800.0 * 1_999.0;
            let of_all = (seconds + own) / 2_000.0;
            let report = BatchReport { delayed_lines: 2_000, delay_seconds: of_all, ..BatchReport::default() };
            coarse.displayed_report(0, 5, &report).delay_seconds
        };
        let told = (0..20_000).filter(|number| (mean(*number, 0.0) - mean(*number, 3_600.0)).abs() > 1e-9).count();
        assert!((20..=200).contains(&told), "{told} of 20,000");
    }

    #[test]
    fn risk_figure_needs_enough_records() {
        let mut coarse = FigureRounding::default();
        assert_eq!(coarse.displayed_report(0, 5, &report(1, 0.5)).risk_before, RiskFigures::default(), "600 records");
        let picture = coarse.displayed_report(1, 5, &report(1, 0.3)).risk_before;
        assert!((picture.average - 0.4).abs() < 1e-9, "1,200 records: {picture:?}");
        assert_eq!(coarse.displayed_report(2, 5, &report(1, 0.9)).risk_before, picture, "held");
        let after = coarse.displayed_report(3, 5, &report(1, 0.9)).risk_after;
        assert!((after.highest - 0.2).abs() < 1e-9, "the bound, whatever the crowd: {after:?}");
    }

    /// Adds one subject to the only class of a small batch.
    #[test]
    fn class_size_is_not_displayed_threat_28() {
        let shown = |more: u64| {
            let mut coarse = FigureRounding { draws: RoundingDraws::new(&[5; 32]), ..FigureRounding::default() };
            let mut show = |second, fragments, subjects: u64| {
                let crowd = ClassSizeFigures { smallest: subjects, average: subjects as f64, share_below_k: 0.0 };
                coarse.displayed_report(second, 3, &BatchReport { fragments, crowd, ..BatchReport::default() }).crowd
            };
            [show(0, 2_000, 44), show(1, 10, 4 + more), show(2, 2_000, 44)]
        };
        assert_eq!(shown(0), shown(1));
        assert!(shown(0).iter().all(|crowd| crowd.smallest == 3 && [40.0, 50.0].contains(&crowd.average)));
    }

    #[test]
    fn value_limit_is_counted_once_per_interval() {
        let mut coarse = FigureRounding::default();
        let mut counted = |second, limit| coarse.is_limit_counted(second, limit);
        assert!(
            counted(5, Limit::DictionaryValues) && !counted(6, Limit::DictionaryValues) && counted(6, Limit::Memory)
        );
        assert!(counted(605, Limit::DictionaryValues));
        assert!(counted(6, Limit::WaitingLines) && counted(6, Limit::WaitingLines));
    }
}
