//! The series of `throng demo --show`: one generated person before, everybody after.

use super::shipped::{CONFIG, SCHEMA};
use crate::cli::outcome::Failure;
use crate::cli::page::{card, fact, report};
use crate::cli::rehearsal::{Written, rehearse, temporary_directory};
use crate::cli::stopping::end_on_signals;
use crate::cli::text;
use crate::config::{self, Format};
use crate::generate::{Layout, RecordStream, Wearable, WearableSettings};
use crate::html::series_chart::SeriesCharts;
use anyhow::Context;
use chrono::Utc;
use maud::html;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use throng_core::values::moment;

/// People, their records, and the days over which these are spread.
const PEOPLE: u32 = 120;
const RECORDS: usize = 60_000;
const DAYS: u64 = 14;
/// The series and the signal that the terminal shows: a daily curve.
const CURVE: &str = "curve";
const SHOWN: &str = "heart_rate";
/// Half an hour into Monday 2026-01-05: records end half an hour before the last week does, so that no week is partial.
const START_SECONDS: i64 = 1_767_573_000;
const HOURS: usize = 24;
const HOUR_MS: i64 = 3_600_000;
const WEEK_MS: i64 = 7 * 24 * HOUR_MS;

/// One generated record as the chart needs it.
struct Reading {
    time_ms: i64,
    cells: Value,
}

/// Series of generated people, with one of them beside.
pub(super) struct ShownSeries {
    charts: SeriesCharts,
    people: u64,
    people_seen: u64,
    records_share: f64,
    /// Values of one person by hour of the day.
    person: BTreeMap<i64, f64>,
}

impl ShownSeries {
    /// Generates records, runs the series of the demo's configuration over them, and chooses a person.
    pub(super) fn make() -> Result<Self, Failure> {
        let directory = temporary_directory("series")?;
        let (schema, input) = (directory.path().join("wearable.toml"), directory.path().join("in.ndjson"));
        std::fs::write(&schema, SCHEMA).context("the schema cannot be written to the temporary directory")?;
        let records = records()?;
        let mut bytes = records.join(&b'\n');
        bytes.push(b'\n');
        std::fs::write(&input, bytes).context("the records cannot be written to the temporary directory")?;
        let env = [
            ("SCHEMA__FILE", schema.display().to_string()),
            ("STATE__SECRET_FILE", String::new()),
            ("RELEASE__FRAGMENTS", "false".to_owned()),
        ];
        let env = env.into_iter().map(|(key, value)| (format!("THRONG__{key}"), value));
        let config = config::parse(CONFIG, "the demo's configuration", env)?;
        let written = Written { format: Format::Json, separator: ',' };
        let rehearsal = rehearse(config, "the demo's configuration", &input, written, false, &end_on_signals()?)?;
        let published = rehearsal.telemetry.status().series.unwrap_or_default();
        let mut charts = rehearsal.telemetry.series_charts();
        let readings = readings_of_one(&records)?;
        add_person(&mut charts, &readings);
        let window = charts.window_ms(CURVE, SHOWN).unwrap_or(0);
        Ok(Self {
            person: by_hour(&readings, SHOWN, window),
            charts,
            people: published.people,
            people_seen: published.people_seen,
            records_share: published.best.records_share().unwrap_or(0.0),
        })
    }

    /// Two daily curves as lines of blocks.
    pub(super) fn in_words(&self) -> String {
        let everybody = self.charts.everybody(CURVE, SHOWN);
        let all = || self.person.values().chain(everybody.values()).copied();
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        let line = |name: &str, values: &BTreeMap<i64, f64>| {
            let (least, most) = values
                .values()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(*value), most.max(*value)));
            format!("  {name:<36}{}  {least:.0} to {most:.0}\n", blocks(values, (low, high)))
        };
        format!(
            "\nStatistics of cohorts represent {} of {} people and {} of their records: {SHOWN} by hour of the day, last week\n{:38}0     6     12    18\n{}{}",
            text::number(self.people),
            text::number(self.people_seen),
            text::percent(self.records_share),
            "",
            line("one person before (never leaves)", &self.person),
            line("published mean of all cohorts", &everybody)
        )
    }

    /// The charts as a page.
    pub(super) fn write_page(&self, file: &Path) -> Result<(), Failure> {
        let facts = html! {
            (fact(text::number(u64::from(PEOPLE)), "generated people")) (fact(text::number(RECORDS as u64), "records"))
            (fact(DAYS, "days")) (fact(text::percent(self.records_share), "of the records represented"))
        };
        let about = "What leaves is the mean and the spread of cohorts, for each day and for each hour of the day of a week. \
                     The values of one person, which no release shows, are drawn beside it.";
        let part = card("Before and after", about, self.charts.cards());
        let page = report("demo", "series of generated people", &facts, Utc::now(), &html! {}, &[part]);
        std::fs::write(file, page).with_context(|| format!("{} cannot be written", file.display()))?;
        Ok(())
    }
}

fn records() -> Result<Vec<Vec<u8>>, Failure> {
    let interval_micros = (DAYS * 24 - 1) * 3_600_000_000 / RECORDS as u64;
    let settings = WearableSettings {
        subjects: PEOPLE,
        interval_micros,
        start_seconds: START_SECONDS,
        layout: Layout::Flat,
        ..WearableSettings::default()
    };
    let mut stream = Wearable::new(settings).map_err(anyhow::Error::from)?;
    let record = |_| {
        let mut record = Vec::new();
        stream.append(&mut record);
        record
    };
    Ok((0..RECORDS).map(record).collect())
}

/// The records of the person who has most.
fn readings_of_one(records: &[Vec<u8>]) -> anyhow::Result<Vec<Reading>> {
    let mut people: BTreeMap<String, Vec<Reading>> = BTreeMap::new();
    for record in records {
        let cells: Value = serde_json::from_slice(record).context("a generated record is no JSON")?;
        let time_ms = cells["timestamp"].as_str().and_then(moment::parse);
        if let (Some(person), Some(time_ms)) = (cells["user_id"].as_str(), time_ms) {
            people.entry(person.to_owned()).or_default().push(Reading { time_ms, cells });
        }
    }
    Ok(people.into_values().max_by_key(Vec::len).unwrap_or_default())
}

/// Means of a signal by hour of the day, over the week that starts at `window_ms`.
fn by_hour(readings: &[Reading], signal: &str, window_ms: i64) -> BTreeMap<i64, f64> {
    let of_week = readings.iter().filter(|reading| (window_ms..window_ms + WEEK_MS).contains(&reading.time_ms));
    means(
        of_week.filter_map(|reading| Some((reading.time_ms / HOUR_MS % HOURS as i64, reading.cells[signal].as_f64()?))),
    )
}

/// Means by place.
fn means(values: impl Iterator<Item = (i64, f64)>) -> BTreeMap<i64, f64> {
    let mut sums: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (place, value) in values {
        let (sum, count) = sums.entry(place).or_default();
        *sum += value;
        *count += 1.0;
    }
    sums.into_iter().map(|(place, (sum, count))| (place, sum / count)).collect()
}

/// Draws the person into every chart.
fn add_person(charts: &mut SeriesCharts, readings: &[Reading]) {
    for (series, signal) in charts.names() {
        let values = match charts.window_ms(&series, &signal) {
            Some(window) if series == CURVE => by_hour(readings, &signal, window),
            _ => means(readings.iter().filter_map(|reading| {
                let day = reading.time_ms - reading.time_ms.rem_euclid(24 * HOUR_MS);
                Some((day, reading.cells[signal.as_str()].as_f64()?))
            })),
        };
        charts.add_person(&series, &signal, &values);
    }
}

/// A block for each hour, higher for higher values; a blank where there is none.
fn blocks(values: &BTreeMap<i64, f64>, (low, high): (f64, f64)) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let block =
        |value: &f64| BLOCKS[(((value - low) / (high - low).max(f64::MIN_POSITIVE) * 7.0).round() as usize).min(7)];
    (0..HOURS as i64).map(|hour| values.get(&hour).map_or(' ', block)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_rise_with_the_values() {
        let values = BTreeMap::from([(0, 60.0), (1, 80.0), (23, 100.0)]);
        let drawn: Vec<char> = blocks(&values, (60.0, 100.0)).chars().collect();
        assert_eq!((drawn[0], drawn[1], drawn[2], drawn[23], drawn.len()), ('▁', '▅', ' ', '█', 24));
    }

    #[test]
    fn the_week_of_the_chart_is_averaged_by_hour() {
        let reading = |time_ms, value: f64| Reading { time_ms, cells: serde_json::json!({ "heart_rate": value }) };
        let readings = [
            reading(5 * HOUR_MS, 60.0),
            reading(29 * HOUR_MS, 70.0),
            reading(6 * HOUR_MS, 90.0),
            reading(WEEK_MS + 6 * HOUR_MS, 190.0),
        ];
        assert_eq!(by_hour(&readings, "heart_rate", 0), BTreeMap::from([(5, 65.0), (6, 90.0)]));
    }
}
