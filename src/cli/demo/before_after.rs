//! `throng demo --show`: records before and after.

use super::demo_series::DemoSeries;
use super::embedded_files::{DEMO_CONFIG, DEMO_SCHEMA};
use crate::cli::outcome::Failure;
use crate::cli::stop_signals::exit_on_signals;
use crate::cli::text_format;
use crate::cli::trial_run::{RecordFileFormat, SilentWatcher, TrialRun, execute_trial_run, temporary_directory};
use crate::config::{self, RecordFormat};
use crate::generate::{RecordLayout, RecordStream, WearableSettings, WearableStream};
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::Path;

const GENERATED_RECORDS: usize = 20_000;
const GENERATED_SUBJECTS: u32 = 2_000;
const SHOWN_RECORDS: usize = 3;
const COLUMN_WIDTH: usize = 34;

/// Prints generated records before and after the demo's configuration.
pub(super) fn run(page: Option<&Path>) -> Result<(), Failure> {
    let directory = temporary_directory("show")?;
    let schema = directory.path().join("wearable.toml");
    std::fs::write(&schema, DEMO_SCHEMA).context("the schema cannot be written to the temporary directory")?;
    let settings =
        WearableSettings { subjects: GENERATED_SUBJECTS, layout: RecordLayout::Flat, ..WearableSettings::default() };
    let mut stream = WearableStream::new(settings).map_err(anyhow::Error::from)?;
    let records: Vec<Vec<u8>> = (0..GENERATED_RECORDS)
        .map(|_| {
            let mut record = Vec::new();
            stream.append(&mut record);
            record
        })
        .collect();
    let input = directory.path().join("in.ndjson");
    let mut bytes = records.join(&b'\n');
    bytes.push(b'\n');
    std::fs::write(&input, bytes).context("the records cannot be written to the temporary directory")?;
    let env = [("SCHEMA__FILE", schema.display().to_string()), ("STATE__SECRET_FILE", String::new())];
    let env = env.into_iter().map(|(key, value)| (format!("THRONG__{key}"), value));
    let config = config::parse(DEMO_CONFIG, "the demo's configuration", env)?;
    let k = config.privacy.k;
    let written = RecordFileFormat { format: RecordFormat::Json, separator: ',' };
    let (name, stop) = ("the demo's configuration", exit_on_signals()?);
    let rehearsal = execute_trial_run(config, name, &input, written, true, &stop, &SilentWatcher)?;
    let after = collect_released_cells(&rehearsal)?;
    let plain = !std::io::stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let mut out = format!(
        "{} of {} generated people, in classes of at least {k}; {} of them before and after\n",
        text_format::counted(GENERATED_RECORDS as u64, "record"),
        text_format::number(u64::from(GENERATED_SUBJECTS)),
        SHOWN_RECORDS
    );
    out += "A record is released as fragments that cannot be linked; only their custodian can show them side by side, as here.\n";
    for offset in most_released_records(&after) {
        let before = serde_json::from_slice(&records[offset]).context("a generated record is not valid JSON")?;
        out += &side_by_side(&rehearsal, offset, &before, &after[&offset], plain);
    }
    let series = DemoSeries::generate_series()?;
    out += &series.curves_text();
    if let Some(page) = page {
        series.write_page(page)?;
        out += &format!("charts: {}\n", page.display());
    }
    match std::io::stdout().write_all(out.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed.context("cannot write to standard output")?),
    }
}

type ReleasedCellsByRecord = BTreeMap<usize, BTreeMap<String, Value>>;

/// From the lineage.
fn collect_released_cells(rehearsal: &TrialRun) -> anyhow::Result<ReleasedCellsByRecord> {
    let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (group, path) in &rehearsal.outputs {
        lines.insert(group, TrialRun::read_first_lines(path, usize::MAX)?.1);
    }
    let mut after = ReleasedCellsByRecord::new();
    for row in TrialRun::read_first_lines(&rehearsal.lineage(), usize::MAX)?.1 {
        let row: Value = serde_json::from_str(&row).context("the lineage is not valid JSON")?;
        let offset = row["source"][2].as_u64().and_then(|offset| usize::try_from(offset).ok());
        let line = row["line"].as_u64().and_then(|line| usize::try_from(line).ok());
        let text = row["group"].as_str().and_then(|group| lines.get(group)?.get(line?));
        if let (Some(offset), Some(text)) = (offset, text) {
            let cells: BTreeMap<String, Value> = serde_json::from_str(text).context("the output is not valid JSON")?;
            after.entry(offset).or_default().extend(cells);
        }
    }
    Ok(after)
}

fn most_released_records(after: &ReleasedCellsByRecord) -> Vec<usize> {
    let said = |cells: &BTreeMap<String, Value>| cells.values().filter(|value| **value != "*").count();
    let mut offsets: Vec<usize> = after.keys().copied().collect();
    offsets.sort_by_key(|offset| (std::cmp::Reverse(said(&after[offset])), *offset));
    offsets.truncate(SHOWN_RECORDS);
    offsets
}

fn side_by_side(
    rehearsal: &TrialRun,
    offset: usize,
    before: &Value,
    after: &BTreeMap<String, Value>,
    plain: bool,
) -> String {
    let bold = |text: String| if plain { text } else { format!("\u{1b}[1m{text}\u{1b}[0m") };
    let mut out = bold(format!("\n{:<22}{:<COLUMN_WIDTH$}{}\n", format!("record {}", offset + 1), "before", "after"));
    for attribute in &rehearsal.schema.attributes {
        let raw = attribute.segments().iter().try_fold(before, |value, key| value.get(key));
        let (raw, left) = (raw.map(display_value), after.get(&attribute.name).map(display_value));
        let changed = raw != left;
        let left = match left {
            _ if !attribute.role.is_releasable() => format!("(never: {})", attribute.role.name()),
            None => "(not released)".to_owned(),
            Some(left) => left,
        };
        let name = text_format::truncate_text(&text_format::sanitize_text(&attribute.name), 20);
        let raw = text_format::truncate_text(&raw.unwrap_or_else(|| "(absent)".to_owned()), COLUMN_WIDTH - 2);
        let row = format!("  {name:<20}{raw:<COLUMN_WIDTH$}");
        let left = text_format::truncate_text(&left, COLUMN_WIDTH);
        out += &row;
        out += &if plain || !changed { left } else { format!("\u{1b}[33m{left}\u{1b}[0m") };
        out.push('\n');
    }
    out
}

fn display_value(value: &Value) -> String {
    match value {
        Value::String(text) => text_format::sanitize_text(text),
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
}
