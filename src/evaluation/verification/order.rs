//! Check that each batch is sorted by bytes: order must reveal nothing.

use super::group_reader::GroupLines;
use super::line_lineage::LineLineage;
use super::violation_log::ViolationLog;
use crate::config::Config;
use crate::io::file::FileFormat;
use crate::start::record_formats::file_format;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use throng_core::values::formula::guarded;

const ORDER_RULE: &str = "lines of a batch are sorted by their bytes";

/// Least and, if two are possible, greatest spelling.
struct LineSortKey {
    least: String,
    greatest: Option<String>,
}

impl LineSortKey {
    fn from_spellings(spellings: [String; 2]) -> Self {
        let [one, other] = spellings;
        match one.cmp(&other) {
            Ordering::Less => Self { least: one, greatest: Some(other) },
            Ordering::Equal => Self { least: one, greatest: None },
            Ordering::Greater => Self { least: other, greatest: Some(one) },
        }
    }
}

/// Table rows are encoded again.
pub(super) fn check_order(
    config: &Config,
    groups: &[GroupLines],
    told: &[Vec<LineLineage>],
    findings: &mut ViolationLog,
) {
    let named =
        groups.iter().flat_map(|group| group.attributes.iter().copied().zip(group.names.iter().map(String::as_str)));
    let columns: BTreeMap<usize, &str> = named.collect();
    let mut files: BTreeMap<&Path, Vec<(usize, u64, LineSortKey)>> = BTreeMap::new();
    for (group, told) in groups.iter().zip(told) {
        let spelled = |line: usize| match group.bytes.get(line) {
            Some(bytes) => LineSortKey { least: bytes.clone(), greatest: None },
            // Parsed CSV does not distinguish empty texts from missing values.
            None => LineSortKey::from_spellings(
                ["", "\"\""].map(|nothing| encode_row(config, group, line, &columns, nothing)),
            ),
        };
        let placed = told.iter().enumerate().map(|(line, told)| (group.line_number(line), told.batch, spelled(line)));
        files.entry(&group.file).or_default().extend(placed);
    }
    for (file, mut lines) in files {
        lines.sort_unstable_by_key(|(place, ..)| *place);
        for pair in lines.windows(2) {
            let [(_, batch, before), (place, next, after)] = pair else { continue };
            if batch == next && before.least > *after.greatest.as_ref().unwrap_or(&after.least) {
                findings.add_violation(ORDER_RULE, file, *place, None, None);
            }
        }
    }
}

/// Missing values are `nothing`. Joined rows have a cell for each of `columns`.
fn encode_row(
    config: &Config,
    group: &GroupLines,
    line: usize,
    columns: &BTreeMap<usize, &str>,
    nothing: &str,
) -> String {
    let is_own = |attribute: &usize| group.line_numbers.is_some() || group.attributes.contains(attribute);
    let cells = columns.iter().filter(|(attribute, _)| is_own(attribute)).map(|(attribute, name)| {
        let own = group.attributes.iter().position(|own| own == attribute);
        (*name, own.map(|at| group.lines[line][at].as_str()))
    });
    match file_format(config.sink.format(), config.source.separator) {
        FileFormat::Csv { separator } => {
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
