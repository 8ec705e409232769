//! Order of the lines of a batch: by their bytes, so that it carries no information beyond the cells.

use super::finding::Findings;
use super::lines::Group;
use super::told::Told;
use crate::config::Config;
use crate::io::file::Format;
use crate::start::reading::file_format;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use throng_core::values::formula::guarded;

const SORTED: &str = "lines of a batch are sorted by their bytes";

/// A line as it is sorted by: the least of its spellings, and the greatest where there are several.
struct Sorted {
    least: String,
    greatest: Option<String>,
}

impl Sorted {
    fn of(spellings: [String; 2]) -> Self {
        let [one, other] = spellings;
        match one.cmp(&other) {
            Ordering::Less => Self { least: one, greatest: Some(other) },
            Ordering::Equal => Self { least: one, greatest: None },
            Ordering::Greater => Self { least: other, greatest: Some(one) },
        }
    }
}

/// Checks that the lines of each batch are sorted by their bytes, joined rows over all groups. Rows of a table are encoded again from their
/// cells.
pub(super) fn sorted(config: &Config, groups: &[Group], told: &[Vec<Told>], findings: &mut Findings) {
    let named =
        groups.iter().flat_map(|group| group.attributes.iter().copied().zip(group.names.iter().map(String::as_str)));
    let columns: BTreeMap<usize, &str> = named.collect();
    let mut files: BTreeMap<&Path, Vec<(usize, u64, Sorted)>> = BTreeMap::new();
    for (group, told) in groups.iter().zip(told) {
        let spelled = |line: usize| match group.bytes.get(line) {
            Some(bytes) => Sorted { least: bytes.clone(), greatest: None },
            // CSV does not tell an empty text, which is quoted, from nothing once it has been read.
            None => Sorted::of(["", "\"\""].map(|nothing| row(config, group, line, &columns, nothing))),
        };
        let placed = told.iter().enumerate().map(|(line, told)| (group.place(line), told.batch, spelled(line)));
        files.entry(&group.file).or_default().extend(placed);
    }
    for (file, mut lines) in files {
        lines.sort_unstable_by_key(|(place, ..)| *place);
        for pair in lines.windows(2) {
            let [(_, batch, before), (place, next, after)] = pair else { continue };
            if batch == next && before.least > *after.greatest.as_ref().unwrap_or(&after.least) {
                findings.note(SORTED, file, *place, None, None);
            }
        }
    }
}

/// A row of a table as a line: separated values, of which `nothing` stands for missing ones, or of Parquet an object. Joined rows have a cell for
/// each of `columns`.
fn row(config: &Config, group: &Group, line: usize, columns: &BTreeMap<usize, &str>, nothing: &str) -> String {
    let is_own = |attribute: &usize| group.places.is_some() || group.attributes.contains(attribute);
    let cells = columns.iter().filter(|(attribute, _)| is_own(attribute)).map(|(attribute, name)| {
        let own = group.attributes.iter().position(|own| own == attribute);
        (*name, own.map(|at| group.lines[line][at].as_str()))
    });
    match file_format(config.sink.format(), config.source.separator) {
        Format::Csv { separator } => {
            let cells = cells.map(|(_, cell)| match cell.map(|cell| (cell, serde_json::from_str::<String>(cell))) {
                Some((_, Ok(text))) => format!("\"{}\"", guarded(&text).replace('"', "\"\"")),
                Some(("null", _)) => nothing.to_owned(),
                Some((cell, Err(_))) => cell.to_owned(),
                None => String::new(),
            });
            cells.collect::<Vec<_>>().join(&char::from(separator).to_string())
        }
        _ => {
            let cells =
                cells.map(|(name, cell)| format!("{}:{}", serde_json::Value::from(name), cell.unwrap_or("null")));
            format!("{{{}}}", cells.collect::<Vec<_>>().join(","))
        }
    }
}
