//! `throng demo --show`: records before and after, side by side.

use super::series::ShownSeries;
use super::shipped::{CONFIG, SCHEMA};
use crate::cli::outcome::Failure;
use crate::cli::rehearsal::{Rehearsal, Written, rehearse, temporary_directory};
use crate::cli::stopping::end_on_signals;
use crate::cli::text;
use crate::config::{self, Format};
use crate::generate::{Layout, RecordStream, Wearable, WearableSettings};
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Records generated, and people in them.
const RECORDS: usize = 20_000;
const PEOPLE: u32 = 2_000;
/// Records that are shown.
const SHOWN: usize = 3;
/// Characters of a column.
const WIDE: usize = 34;

/// Generates records, runs the demo's configuration over them and prints some of them before and after.
pub(super) fn run(page: Option<&Path>) -> Result<(), Failure> {
    let directory = temporary_directory("show")?;
    let schema = directory.path().join("wearable.toml");
    std::fs::write(&schema, SCHEMA).context("the schema cannot be written to the temporary directory")?;
    let settings = WearableSettings { subjects: PEOPLE, layout: Layout::Flat, ..WearableSettings::default() };
    let mut stream = Wearable::new(settings).map_err(anyhow::Error::from)?;
    let records: Vec<Vec<u8>> = (0..RECORDS)
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
    let config = config::parse(CONFIG, "the demo's configuration", env)?;
    let k = config.privacy.k;
    let written = Written { format: Format::Json, separator: ',' };
    let rehearsal = rehearse(config, "the demo's configuration", &input, written, true, &end_on_signals()?)?;
    let after = after(&rehearsal)?;
    let plain = !std::io::stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let mut out = format!(
        "{} of {} people, invented, in crowds of at least {k}; {} of them before and after\n",
        text::counted(RECORDS as u64, "record"),
        text::number(u64::from(PEOPLE)),
        SHOWN
    );
    out += "A record leaves in fragments that nothing ties together; only their custodian can lay them side by side, as here.\n";
    for offset in chosen(&after) {
        let before = serde_json::from_slice(&records[offset]).context("a generated record is no JSON")?;
        out += &side_by_side(&rehearsal, offset, &before, &after[&offset], plain);
    }
    let series = ShownSeries::make()?;
    out += &series.in_words();
    if let Some(page) = page {
        series.write_page(page)?;
        out += &format!("charts: {}\n", page.display());
    }
    match std::io::stdout().write_all(out.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed.context("cannot print")?),
    }
}

/// By record, the cells of it that left.
type After = BTreeMap<usize, BTreeMap<String, Value>>;

/// What left of each record, by the lineage.
fn after(rehearsal: &Rehearsal) -> anyhow::Result<After> {
    let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (group, path) in &rehearsal.outputs {
        lines.insert(group, Rehearsal::lines(path, usize::MAX)?.1);
    }
    let mut after = After::new();
    for row in Rehearsal::lines(&rehearsal.lineage(), usize::MAX)?.1 {
        let row: Value = serde_json::from_str(&row).context("the lineage is no JSON")?;
        let offset = row["source"][2].as_u64().and_then(|offset| usize::try_from(offset).ok());
        let line = row["line"].as_u64().and_then(|line| usize::try_from(line).ok());
        let text = row["group"].as_str().and_then(|group| lines.get(group)?.get(line?));
        if let (Some(offset), Some(text)) = (offset, text) {
            let cells: BTreeMap<String, Value> = serde_json::from_str(text).context("the output is no JSON")?;
            after.entry(offset).or_default().extend(cells);
        }
    }
    Ok(after)
}

/// The records of which most has left.
fn chosen(after: &After) -> Vec<usize> {
    let said = |cells: &BTreeMap<String, Value>| cells.values().filter(|value| **value != "*").count();
    let mut offsets: Vec<usize> = after.keys().copied().collect();
    offsets.sort_by_key(|offset| (std::cmp::Reverse(said(&after[offset])), *offset));
    offsets.truncate(SHOWN);
    offsets
}

fn side_by_side(
    rehearsal: &Rehearsal,
    offset: usize,
    before: &Value,
    after: &BTreeMap<String, Value>,
    plain: bool,
) -> String {
    let bold = |text: String| if plain { text } else { format!("\u{1b}[1m{text}\u{1b}[0m") };
    let mut out = bold(format!("\n{:<22}{:<WIDE$}{}\n", format!("record {}", offset + 1), "before", "after"));
    for attribute in &rehearsal.schema.attributes {
        let raw = attribute.segments().iter().try_fold(before, |value, key| value.get(key));
        let (raw, left) = (raw.map(spelled), after.get(&attribute.name).map(spelled));
        let changed = raw != left;
        let left = match left {
            _ if !attribute.role.is_releasable() => format!("(never: {})", attribute.role.name()),
            None => "(not in this line's crowd)".to_owned(),
            Some(left) => left,
        };
        let name = text::short(&text::clean(&attribute.name), 20);
        let raw = text::short(&raw.unwrap_or_else(|| "(absent)".to_owned()), WIDE - 2);
        let row = format!("  {name:<20}{raw:<WIDE$}");
        let left = text::short(&left, WIDE);
        out += &row;
        out += &if plain || !changed { left } else { format!("\u{1b}[33m{left}\u{1b}[0m") };
        out.push('\n');
    }
    out
}

fn spelled(value: &Value) -> String {
    match value {
        Value::String(text) => text::clean(text),
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
}
