//! Series of `throng demo --show`.

use super::embedded_files::{DEMO_CONFIG, DEMO_SCHEMA};
use crate::cli::outcome::Failure;
use crate::cli::page_components::{card, fact_badge, report_document};
use crate::cli::stop_signals::exit_on_signals;
use crate::cli::text_format;
use crate::cli::trial_run::{RecordFileFormat, SilentWatcher, execute_trial_run, temporary_directory};
use crate::config::{self, RecordFormat};
use crate::generate::{RecordLayout, RecordStream, WearableSettings, WearableStream};
use crate::html::series_chart::SeriesCharts;
use anyhow::Context;
use chrono::Utc;
use maud::html;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use throng_core::values::moment;

/// Subjects, records, and days.
const SERIES_SUBJECTS: u32 = 120;
const SERIES_RECORDS: usize = 60_000;
const SERIES_DAYS: u64 = 14;
/// Series and signal on the terminal.
const SHOWN_SERIES: &str = "curve";
const SHOWN_SIGNAL: &str = "heart_rate";
/// Half an hour into Monday 2026-01-05; the records end half an hour before a Monday, so no week is partial.
const START_SECONDS: i64 = 1_767_573_000;
const HOURS_PER_DAY: usize = 24;
const HOUR_MS: i64 = 3_600_000;
const WEEK_MS: i64 = 7 * 24 * HOUR_MS;

struct ChartReading {
    time_ms: i64,
    cells: Value,
}

/// Series, with one subject for comparison.
pub(super) struct DemoSeries {
    charts: SeriesCharts,
    people: u64,
    people_seen: u64,
    records_share: f64,
    /// Means of one subject by hour.
    person: BTreeMap<i64, f64>,
}

impl DemoSeries {
    /// Generates records and runs the demo's series.
    pub(super) fn generate_series() -> Result<Self, Failure> {
        let directory = temporary_directory("series")?;
        let (schema, input) = (directory.path().join("wearable.toml"), directory.path().join("in.ndjson"));
        std::fs::write(&schema, DEMO_SCHEMA).context("the schema cannot be written to the temporary directory")?;
        let records = generate_series_records()?;
        let mut bytes = records.join(&b'\n');
        bytes.push(b'\n');
        std::fs::write(&input, bytes).context("the records cannot be written to the temporary directory")?;
        let env = [
            ("SCHEMA__FILE", schema.display().to_string()),
            ("STATE__SECRET_FILE", String::new()),
            ("RELEASE__FRAGMENTS", "false".to_owned()),
        ];
        let env = env.into_iter().map(|(key, value)| (format!("THRONG__{key}"), value));
        let config = config::parse(DEMO_CONFIG, "the demo's configuration", env)?;
        let written = RecordFileFormat { format: RecordFormat::Json, separator: ',' };
        let (name, stop) = ("the demo's configuration", exit_on_signals()?);
        let rehearsal = execute_trial_run(config, name, &input, written, false, &stop, &SilentWatcher)?;
        let published = rehearsal.telemetry.status().series.unwrap_or_default();
        let mut charts = rehearsal.telemetry.series_charts();
        let readings = readings_of_largest_subject(&records)?;
        add_person(&mut charts, &readings);
        let window = charts.window_ms(SHOWN_SERIES, SHOWN_SIGNAL).unwrap_or(0);
        Ok(Self {
            person: hourly_means(&readings, SHOWN_SIGNAL, window),
            charts,
            people: published.people,
            people_seen: published.people_seen,
            records_share: published.best.records_share().unwrap_or(0.0),
        })
    }

    /// Two daily curves of block characters.
    pub(super) fn curves_text(&self) -> String {
        let everybody = self.charts.everybody(SHOWN_SERIES, SHOWN_SIGNAL);
        let all = || self.person.values().chain(everybody.values()).copied();
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        let line = |name: &str, values: &BTreeMap<i64, f64>| {
            let (least, most) = values
                .values()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(*value), most.max(*value)));
            format!("  {name:<36}{}  {least:.0} to {most:.0}\n", block_curve(values, (low, high)))
        };
        format!(
            "\nStatistics of cohorts represent {} of {} people and {} of their records: {SHOWN_SIGNAL} by hour of the day, last week\n{:38}0     6     12    18\n{}{}",
            text_format::number(self.people),
            text_format::number(self.people_seen),
            text_format::percent(self.records_share),
            "",
            line("one person before (never released)", &self.person),
            line("published mean of all cohorts", &everybody)
        )
    }

    pub(super) fn write_page(&self, file: &Path) -> Result<(), Failure> {
        let facts = html! {
            (fact_badge(text_format::number(u64::from(SERIES_SUBJECTS)), "generated people")) (fact_badge(text_format::number(SERIES_RECORDS as u64), "records"))
            (fact_badge(SERIES_DAYS, "days")) (fact_badge(text_format::percent(self.records_share), "of the records represented"))
        };
        let about = "The release contains the mean and the spread of cohorts, for each day and for each hour of the day of a \
                     week. The values of one person, which are never released, are drawn for comparison.";
        let part = card("Before and after", about, self.charts.cards());
        let page = report_document("demo", "series of generated people", &facts, Utc::now(), &html! {}, &[part]);
        std::fs::write(file, page).with_context(|| format!("{} cannot be written", file.display()))?;
        Ok(())
    }
}

fn generate_series_records() -> Result<Vec<Vec<u8>>, Failure> {
    let interval_micros = (SERIES_DAYS * 24 - 1) * 3_600_000_000 / SERIES_RECORDS as u64;
    let settings = WearableSettings {
        subjects: SERIES_SUBJECTS,
        interval_micros,
        start_seconds: START_SECONDS,
        layout: RecordLayout::Flat,
        ..WearableSettings::default()
    };
    let mut stream = WearableStream::new(settings).map_err(anyhow::Error::from)?;
    let record = |_| {
        let mut record = Vec::new();
        stream.append(&mut record);
        record
    };
    Ok((0..SERIES_RECORDS).map(record).collect())
}

fn readings_of_largest_subject(records: &[Vec<u8>]) -> anyhow::Result<Vec<ChartReading>> {
    let mut people: BTreeMap<String, Vec<ChartReading>> = BTreeMap::new();
    for record in records {
        let cells: Value = serde_json::from_slice(record).context("a generated record is not valid JSON")?;
        let time_ms = cells["timestamp"].as_str().and_then(moment::parse);
        if let (Some(person), Some(time_ms)) = (cells["user_id"].as_str(), time_ms) {
            people.entry(person.to_owned()).or_default().push(ChartReading { time_ms, cells });
        }
    }
    Ok(people.into_values().max_by_key(Vec::len).unwrap_or_default())
}

/// Over the week from `window_ms`.
fn hourly_means(readings: &[ChartReading], signal: &str, window_ms: i64) -> BTreeMap<i64, f64> {
    let of_week = readings.iter().filter(|reading| (window_ms..window_ms + WEEK_MS).contains(&reading.time_ms));
    means_by_key(of_week.filter_map(|reading| {
        Some((reading.time_ms / HOUR_MS % HOURS_PER_DAY as i64, reading.cells[signal].as_f64()?))
    }))
}

fn means_by_key(values: impl Iterator<Item = (i64, f64)>) -> BTreeMap<i64, f64> {
    let mut sums: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (place, value) in values {
        let (sum, count) = sums.entry(place).or_default();
        *sum += value;
        *count += 1.0;
    }
    sums.into_iter().map(|(place, (sum, count))| (place, sum / count)).collect()
}

fn add_person(charts: &mut SeriesCharts, readings: &[ChartReading]) {
    for (series, signal) in charts.names() {
        let values = match charts.window_ms(&series, &signal) {
            Some(window) if series == SHOWN_SERIES => hourly_means(readings, &signal, window),
            _ => means_by_key(readings.iter().filter_map(|reading| {
                let day = reading.time_ms - reading.time_ms.rem_euclid(24 * HOUR_MS);
                Some((day, reading.cells[signal.as_str()].as_f64()?))
            })),
        };
        charts.add_subject_values(&series, &signal, &values);
    }
}

/// Blank for a missing value.
fn block_curve(values: &BTreeMap<i64, f64>, (low, high): (f64, f64)) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let block =
        |value: &f64| BLOCKS[(((value - low) / (high - low).max(f64::MIN_POSITIVE) * 7.0).round() as usize).min(7)];
    (0..HOURS_PER_DAY as i64).map(|hour| values.get(&hour).map_or(' ', block)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_curve_follows_values() {
        let values = BTreeMap::from([(0, 60.0), (1, 80.0), (23, 100.0)]);
        let drawn: Vec<char> = block_curve(&values, (60.0, 100.0)).chars().collect();
        assert_eq!((drawn[0], drawn[1], drawn[2], drawn[23], drawn.len()), ('▁', '▅', ' ', '█', 24));
    }

    #[test]
    fn hourly_means_cover_only_the_week_of_the_chart() {
        let reading = |time_ms, value: f64| ChartReading { time_ms, cells: serde_json::json!({ "heart_rate": value }) };
        let readings = [
            reading(5 * HOUR_MS, 60.0),
            reading(29 * HOUR_MS, 70.0),
            reading(6 * HOUR_MS, 90.0),
            reading(WEEK_MS + 6 * HOUR_MS, 190.0),
        ];
        assert_eq!(hourly_means(&readings, "heart_rate", 0), BTreeMap::from([(5, 65.0), (6, 90.0)]));
    }
}
