//! Charts of published series: mean with band, cohorts as thin lines.

use chrono::DateTime;
use maud::{Markup, html};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use throng_core::series::PublishedMean;

/// Maximum charts, lines and points, in total 3 MB. Further charts and lines are ignored, the oldest points dropped.
const MAX_CHARTS: usize = 24;
const MAX_COHORT_LINES: usize = 32;
const MAX_LINE_POINTS: usize = 120;

/// Size and margins in drawing units.
const CHART_SIZE: (f64, f64) = (360.0, 150.0);
const LEFT_MARGIN: f64 = 46.0;
const RIGHT_MARGIN: f64 = 8.0;
const TOP_MARGIN: f64 = 8.0;
const BOTTOM_MARGIN: f64 = 22.0;
const DAY_MS: i64 = 86_400_000;
/// A larger distance interrupts a line.
const MAX_STEPS_BETWEEN_POINTS: f64 = 1.5;

/// Mean and standard deviation.
type ChartPoint = (f64, f64);
/// Milliseconds, or the position in the cycle.
type ChartLine = BTreeMap<i64, ChartPoint>;

#[derive(Clone, Debug, Default, PartialEq)]
struct SignalChart {
    unit: Option<String>,
    step: i64,
    /// Positions in the cycle; 0 without one.
    slots: usize,
    /// Window of the cycle.
    window_ms: i64,
    bounds: (f64, f64),
    overall_line: ChartLine,
    parts: BTreeMap<String, ChartLine>,
    /// Values of one subject, never released.
    single_subject: ChartLine,
}

/// Charts of the latest windows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesCharts {
    charts: BTreeMap<(String, String), SignalChart>,
    /// Sentences on series without a chart.
    notes: BTreeMap<String, String>,
}

impl SignalChart {
    /// Only the latest window of a cycle is drawn.
    fn add(&mut self, published: &PublishedMean<'_>) {
        if published.slot.is_some() && published.window_ms != self.window_ms {
            if published.window_ms < self.window_ms && !self.overall_line.is_empty() {
                return;
            }
            self.overall_line.clear();
            self.parts.clear();
        }
        self.window_ms = published.window_ms;
        let place = published.slot.map_or(published.window_ms, |(slot, _)| slot as i64);
        let line = match &published.part {
            None => &mut self.overall_line,
            Some(name) if self.parts.len() < MAX_COHORT_LINES || self.parts.contains_key(name) => {
                self.parts.entry(name.clone()).or_default()
            }
            Some(_) => return,
        };
        line.insert(place, (published.mean, published.sd));
        if line.len() > MAX_LINE_POINTS {
            line.pop_first();
        }
    }

    /// Removes points and cohorts before the axis.
    fn drop_ended_cohorts(&mut self) {
        let Some((&first, _)) = self.overall_line.first_key_value() else { return };
        self.parts.values_mut().for_each(|line| line.retain(|place, _| *place >= first));
        self.parts.retain(|_, line| !line.is_empty());
    }

    /// Mean ± one standard deviation, within the possible values.
    fn band(&self, (mean, sd): ChartPoint) -> [f64; 2] {
        let (low, high) = self.bounds;
        [(mean - sd).max(low.min(mean)), (mean + sd).min(high.max(mean))]
    }

    fn lines(&self) -> impl Iterator<Item = &ChartLine> {
        self.parts.values().chain([&self.overall_line, &self.single_subject])
    }

    fn span(&self) -> (i64, i64) {
        if self.slots > 0 {
            return (0, self.slots as i64 - 1);
        }
        let places = || self.lines().flat_map(|line| line.keys().copied());
        let first = places().min().unwrap_or(0);
        (first, places().max().unwrap_or(0).max(first + 1))
    }

    fn range(&self) -> (f64, f64) {
        let band = self.overall_line.values().flat_map(|point| self.band(*point));
        let lines =
            self.parts.values().chain([&self.single_subject]).flat_map(|line| line.values().map(|(mean, _)| *mean));
        let values: Vec<f64> = band.chain(lines).filter(|value| value.is_finite()).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match (low.is_finite() && high.is_finite(), high > low) {
            (false, _) => (0.0, 1.0),
            (true, true) => (low, high),
            (true, false) => (low - 1.0, low + 1.0),
        }
    }
}

/// Maps positions and values to coordinates.
struct ChartScale {
    places: (i64, i64),
    values: (f64, f64),
    ticks: Vec<f64>,
}

impl ChartScale {
    fn of(chart: &SignalChart) -> Self {
        let (low, high) = chart.range();
        let step = tick_step((high - low) / 3.0);
        let values = ((low / step).floor() * step, (high / step).ceil() * step);
        let count = ((values.1 - values.0) / step).round() as usize;
        let ticks = (0..=count).map(|at| values.0 + at as f64 * step).collect();
        Self { places: chart.span(), values, ticks }
    }

    fn x(&self, place: i64) -> f64 {
        let (first, last) = self.places;
        LEFT_MARGIN
            + (place - first) as f64 / (last - first).max(1) as f64 * (CHART_SIZE.0 - LEFT_MARGIN - RIGHT_MARGIN)
    }

    fn y(&self, value: f64) -> f64 {
        let (low, high) = self.values;
        CHART_SIZE.1 - BOTTOM_MARGIN - (value - low) / (high - low) * (CHART_SIZE.1 - TOP_MARGIN - BOTTOM_MARGIN)
    }

    /// Interrupted at missing windows.
    fn path(&self, line: &ChartLine, step: i64) -> String {
        let mut path = String::new();
        let mut before: Option<i64> = None;
        for (&place, (mean, _)) in line {
            let goes_on =
                before.is_some_and(|before| (place - before) as f64 <= MAX_STEPS_BETWEEN_POINTS * step as f64);
            // Round line ends make a single point visible.
            let (x, y) = (self.x(place), self.y(*mean));
            path += &if goes_on { format!("L{x:.1} {y:.1}") } else { format!("M{x:.1} {y:.1}h0") };
            before = Some(place);
        }
        path
    }

    /// One standard deviation around the mean, in pieces.
    fn band(&self, chart: &SignalChart) -> String {
        let points: Vec<(i64, [f64; 2])> =
            chart.overall_line.iter().map(|(place, point)| (*place, chart.band(*point))).collect();
        let pieces = points.chunk_by(|(a, _), (b, _)| (b - a) as f64 <= MAX_STEPS_BETWEEN_POINTS * chart.step as f64);
        let piece = |piece: &[(i64, [f64; 2])]| {
            let at =
                |(place, ends): &(i64, [f64; 2]), end: usize| format!("{:.1} {:.1}", self.x(*place), self.y(ends[end]));
            let there = piece.iter().map(|point| at(point, 1));
            let back = piece.iter().rev().map(|point| at(point, 0));
            format!("M{}Z", there.chain(back).collect::<Vec<_>>().join("L"))
        };
        pieces.filter(|points| points.len() > 1).map(piece).collect()
    }
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn tick_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= least).unwrap_or(power)
}

fn tick_label(value: f64, step: f64) -> String {
    let units = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
    let unit = units.into_iter().find(|(_, size)| value.abs() >= 10.0 * size && value.abs() < 1e16);
    if let Some((name, size)) = unit {
        return format!("{}{name}", tick_label(value / size, step / size));
    }
    if value.abs() >= 1e16 {
        return format!("{value:e}");
    }
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.digits$}");
    if text.trim_start_matches(['-', '0', '.']).is_empty() { "0".to_owned() } else { text }
}

fn place_labels(chart: &SignalChart) -> Vec<(i64, String)> {
    let (first, last) = chart.span();
    match chart.slots {
        24 => (0..24).step_by(6).map(|hour| (hour, format!("{hour:02}:00"))).collect(),
        7 => (0..).zip(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]).map(|(at, day)| (at, day.into())).collect(),
        _ => {
            let form = if last - first >= 2 * DAY_MS { "%b %-d" } else { "%b %-d %H:%M" };
            let count = if chart.lines().map(BTreeMap::len).max().unwrap_or(0) < 2 { 0 } else { 4 };
            let place = |at: i64| {
                let exact = first + (last - first) * at / count.max(1);
                first + (exact - first + chart.step / 2) / chart.step.max(1) * chart.step.max(1)
            };
            (0..=count)
                .filter_map(|at| {
                    let moment = DateTime::from_timestamp_millis(place(at))?;
                    Some((place(at), moment.format(form).to_string()))
                })
                .collect()
        }
    }
}

impl SeriesCharts {
    /// Adds a published mean.
    pub fn add(&mut self, published: &PublishedMean<'_>) {
        let key = (published.series.to_owned(), published.signal.to_owned());
        if self.charts.len() >= MAX_CHARTS && !self.charts.contains_key(&key) {
            return;
        }
        let chart = self.charts.entry(key).or_default();
        chart.unit = published.unit.map(str::to_owned);
        chart.bounds = published.range;
        chart.slots = published.slot.map_or(0, |(_, slots)| slots);
        chart.step = if chart.slots > 0 { 1 } else { published.every_ms };
        chart.add(published);
    }

    /// Adds the sentence of a series without means.
    pub fn add_sentence(&mut self, series: &str, sentence: String) {
        if self.notes.len() < MAX_CHARTS {
            self.notes.insert(series.to_owned(), sentence);
        }
    }

    /// Adds values of one subject to an existing chart, by start of the window or position in the cycle.
    pub fn add_subject_values(&mut self, series: &str, signal: &str, values: &BTreeMap<i64, f64>) {
        if let Some(chart) = self.charts.get_mut(&(series.to_owned(), signal.to_owned())) {
            let (first, last) = chart.span();
            let drawn = values.range(first..=last);
            chart.single_subject = drawn.map(|(place, value)| (*place, (*value, 0.0))).collect();
        }
    }

    /// Returns the means of all subjects, by start of the window or position in the cycle.
    #[must_use]
    pub fn everybody(&self, series: &str, signal: &str) -> BTreeMap<i64, f64> {
        let chart = self.charts.get(&(series.to_owned(), signal.to_owned()));
        chart.map_or_else(BTreeMap::new, |chart| {
            chart.overall_line.iter().map(|(place, (mean, _))| (*place, *mean)).collect()
        })
    }

    /// Returns series and signal of every chart.
    #[must_use]
    pub fn names(&self) -> Vec<(String, String)> {
        self.charts.keys().cloned().collect()
    }

    /// Returns the start of a cycle's window, milliseconds since 1970.
    #[must_use]
    pub fn window_ms(&self, series: &str, signal: &str) -> Option<i64> {
        self.charts.get(&(series.to_owned(), signal.to_owned())).map(|chart| chart.window_ms)
    }

    /// Returns `true` without means and sentences.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.charts.is_empty() && self.notes.is_empty()
    }

    /// Returns headings and drawings by series and signal, then sentences.
    #[must_use]
    pub fn drawn(&self) -> Vec<(String, Markup)> {
        let charts = self.charts.iter().map(|((series, signal), chart)| {
            let unit = chart.unit.as_ref().map_or(String::new(), |unit| format!(" ({unit})"));
            (format!("{signal}{unit}, {series}"), drawn(chart, signal))
        });
        let notes = self.notes.iter().map(|(series, sentence)| (series.clone(), html! { p { (sentence) } }));
        charts.chain(notes).collect()
    }

    /// Returns the charts for a script.
    #[must_use]
    pub fn as_value(&self) -> Value {
        let chart = |(title, drawing): (String, Markup)| json!({ "title": title, "drawing": drawing.into_string() });
        self.drawn().into_iter().map(chart).collect()
    }

    /// Returns one card per chart, with a legend.
    #[must_use]
    pub fn cards(&self) -> Markup {
        let has_person = self.charts.values().any(|chart| !chart.single_subject.is_empty());
        html! {
            @if !self.charts.is_empty() { (legend(has_person)) }
            div.row.three { @for (title, drawing) in self.drawn() { div.card { h3 { (title) } (drawing) } } }
        }
    }
}

/// Returns the legend.
#[must_use]
pub fn legend(has_person: bool) -> Markup {
    html! {
        p.legend {
            span { i.key.cool {} "mean of all published cohorts" }
            span { i.key.coolpale {} "cohorts; the band is one standard deviation between people" }
            @if has_person { span { i.key.warm {} "original values of one person, never released" } }
        }
    }
}

fn drawn(chart: &SignalChart, signal: &str) -> Markup {
    let mut chart = chart.clone();
    chart.drop_ended_cohorts();
    let scale = ChartScale::of(&chart);
    let step = scale.ticks.get(1).zip(scale.ticks.first()).map_or(1.0, |(second, first)| second - first);
    let (width, height) = CHART_SIZE;
    let x = |place: i64| format!("{:.1}", scale.x(place));
    html! {
        svg.series viewBox={ "0 0 " (width) " " (height) } role="img" aria-label={ "published means of " (signal) } {
            @for tick in &scale.ticks {
                line.grid x1=(LEFT_MARGIN) x2=(width - RIGHT_MARGIN) y1=(format!("{:.1}", scale.y(*tick))) y2=(format!("{:.1}", scale.y(*tick))) {}
                text.soft.end x=(LEFT_MARGIN - 6.0) y=(format!("{:.1}", scale.y(*tick) + 4.0)) { (tick_label(*tick, step)) }
            }
            @for (place, label) in place_labels(&chart) {
                @let end = if place == scale.places.0 { "start" } else if place == scale.places.1 { "end" } else { "mid" };
                text.soft.(end) x=(x(place)) y=(height - 5.0) { (label) }
            }
            path.band d=(scale.band(&chart)) {}
            @for line in chart.parts.values() { path.part d=(scale.path(line, chart.step)) {} }
            path.everybody d=(scale.path(&chart.overall_line, chart.step)) {}
            @if !chart.single_subject.is_empty() { path.person d=(scale.path(&chart.single_subject, chart.step)) {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(part: Option<&str>, window_ms: i64, slot: Option<(usize, usize)>, mean: f64) -> PublishedMean<'static> {
        let part = part.map(str::to_owned);
        let every_ms = DAY_MS;
        PublishedMean {
            series: "daily",
            signal: "steps",
            unit: None,
            part,
            window_ms,
            every_ms,
            slot,
            mean,
            sd: 1.0,
            range: (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    fn picture(charts: &SeriesCharts) -> String {
        charts.drawn().into_iter().map(|(_, drawing)| drawing.into_string()).collect()
    }

    #[test]
    fn missing_window_interrupts_line_and_band() {
        let mut charts = SeriesCharts::default();
        for day in [0, 1, 2, 5, 6] {
            charts.add(&mean(None, day * DAY_MS, None, day as f64));
        }
        let picture = picture(&charts);
        let everybody = picture.split("class=\"everybody\" d=\"").nth(1).and_then(|rest| rest.split('"').next());
        assert_eq!(everybody.map(|path| (path.matches('M').count(), path.matches('L').count())), Some((2, 3)));
        let band = picture.split("class=\"band\" d=\"").nth(1).and_then(|rest| rest.split('"').next());
        assert_eq!(band.map(|path| path.matches('Z').count()), Some(2));
    }

    #[test]
    fn cycle_chart_shows_latest_window() {
        let mut charts = SeriesCharts::default();
        charts.add(&mean(None, 7 * DAY_MS, Some((3, 24)), 5.0));
        charts.add(&mean(None, 0, Some((4, 24)), 9.0));
        charts.add(&mean(None, 14 * DAY_MS, Some((5, 24)), 7.0));
        let chart = charts.charts.values().next().expect("one chart");
        assert_eq!(chart.overall_line.keys().copied().collect::<Vec<_>>(), [5]);
        assert!(picture(&charts).contains("18:00"));
    }

    #[test]
    fn series_without_means_shows_sentence() {
        let mut charts = SeriesCharts::default();
        assert!(charts.is_empty());
        charts.add_sentence("model", "covariances <leave>".to_owned());
        assert!(!charts.is_empty());
        let cards = charts.cards().into_string();
        assert!(
            cards.contains("covariances &lt;leave&gt;") && !cards.contains("svg") && !cards.contains("legend"),
            "{cards}"
        );
    }

    #[test]
    fn charts_lines_and_points_are_limited() {
        let mut charts = SeriesCharts::default();
        for day in 0..3 * MAX_LINE_POINTS as i64 {
            charts.add(&mean(None, day * DAY_MS, None, 1.0));
            charts.add(&mean(Some(&format!("cohort {day}")), day * DAY_MS, None, 1.0));
        }
        for signal in 0..2 * MAX_CHARTS {
            let name = format!("signal {signal}");
            charts.add(&PublishedMean { signal: &name, ..mean(None, 0, None, 1.0) });
        }
        assert_eq!(charts.charts.len(), MAX_CHARTS);
        let chart = &charts.charts[&("daily".to_owned(), "steps".to_owned())];
        assert_eq!((chart.overall_line.len(), chart.parts.len()), (MAX_LINE_POINTS, MAX_COHORT_LINES));
    }

    #[test]
    fn names_are_escaped_and_extreme_values_drawn() {
        let mut charts = SeriesCharts::default();
        charts.add(&PublishedMean { signal: "<b>", ..mean(None, 0, None, 1e300) });
        charts.add(&PublishedMean { signal: "<b>", ..mean(Some("x"), DAY_MS, None, -3.5) });
        charts.add(&PublishedMean { signal: "flat", sd: 0.0, ..mean(None, 0, None, 60.0) });
        let picture = picture(&charts);
        assert!(picture.contains("&lt;b&gt;") && !picture.contains("<b>") && !picture.contains("NaN"), "{picture}");
    }

    #[test]
    fn tick_labels_are_rounded() {
        assert_eq!([0.3, 1.0, 3.0, 70.0].map(tick_step), [0.5, 1.0, 5.0, 100.0]);
        assert_eq!(tick_label(0.1 + 0.2, 0.1), "0.3");
        assert_eq!(tick_label(12_000.0, 2000.0), "12k");
        assert_eq!((tick_label(27e6, 1e6), tick_label(-3e9, 1e9)), ("27M".to_owned(), "-3000M".to_owned()));
        assert_eq!((tick_label(2e79, 1e79), tick_label(9_999.0, 1.0)), ("2e79".to_owned(), "9999".to_owned()));
        assert_eq!(tick_label(-0.0, 1.0), "0");
    }
}
