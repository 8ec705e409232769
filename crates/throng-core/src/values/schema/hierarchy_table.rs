//! The `hierarchy` table of an attribute.

use std::path::Path;

use crate::values::canonical::{AttributeType, CanonicalKind, Rounding, ValueTyping};
use crate::values::hierarchy::{Calendar, Grid, Hierarchy, HierarchyFlaw, HierarchyRow, ListedTree, Prefix, Ruler};
use crate::values::moment;
use crate::values::raw_batch::RawToken;
use crate::values::table_reader::TableReader;

pub(super) fn read_hierarchy(keys: &mut TableReader<'_>, typing: &ValueTyping, folder: &Path) -> Option<Hierarchy> {
    let kind: String = keys.required("kind")?;
    let numeric = matches!(typing.kind, AttributeType::Integer | AttributeType::Float);
    let fits = match kind.as_str() {
        "file" | "tree" => typing.kind != AttributeType::Coordinates,
        "intervals" | "bounds" => numeric,
        "prefix" => typing.kind == AttributeType::String,
        "truncate" => matches!(typing.kind, AttributeType::Date | AttributeType::Timestamp),
        "grid" => typing.kind == AttributeType::Coordinates,
        _ => {
            keys.problem("kind", "not one of file, intervals, bounds, prefix, truncate, grid, tree");
            return None;
        }
    };
    if !fits {
        keys.problem(
            "kind",
            format!(
                "an attribute of type {} cannot have a \"{kind}\" hierarchy: change one of them",
                typing.kind.name()
            ),
        );
    }
    let integer = typing.kind == AttributeType::Integer;
    let built = match kind.as_str() {
        "file" => return read_file_hierarchy(keys, typing, folder),
        "tree" => {
            let Some(tree) = keys.take_value("tree") else {
                keys.problem("tree", "this key is missing: add the tree");
                return None;
            };
            let (mut rows, mut flaws) = (Vec::new(), Vec::new());
            tree_rows(&tree, "tree", &mut Vec::new(), &mut rows, &mut flaws);
            if flaws.is_empty() { build_tree(&rows, typing) } else { Err(flaws) }
        }
        "intervals" => {
            let domain = keys.required("min").zip(keys.required("max"));
            let origin: f64 = keys.optional("origin").unwrap_or(0.0);
            let widths: Vec<f64> = keys.required("widths")?;
            Ruler::from_widths(integer, typing.rounding, domain?, origin, &widths).map(Hierarchy::Ruler)
        }
        "bounds" => {
            let domain = keys.required("min").zip(keys.required("max"));
            let levels: Vec<Vec<f64>> = keys.required("levels")?;
            Ruler::from_bounds(integer, typing.rounding, domain?, &levels).map(Hierarchy::Ruler)
        }
        "prefix" => {
            let length = keys.optional("length");
            Prefix::build(keys.required("keep")?, length).map(Hierarchy::Prefix)
        }
        "truncate" => {
            let (min, max) = (moment_key(keys, "min"), moment_key(keys, "max"));
            let levels = keys.required("levels")?;
            if min.is_some() != max.is_some() {
                keys.problem("min", "min and max must be set together: add the other one");
            }
            let domain = min.flatten().zip(max.flatten());
            let rounded = if let Rounding::Unit(unit) = typing.rounding { Some(unit) } else { None };
            Calendar::build(typing.kind == AttributeType::Date, rounded, levels, domain).map(Hierarchy::Calendar)
        }
        _ => Grid::build(typing.rounding, &keys.required::<Vec<f64>>("cells")?).map(Hierarchy::Grid),
    };
    match built {
        Ok(hierarchy) => Some(hierarchy),
        Err(flaws) => {
            for flaw in flaws {
                keys.problem(&flaw.place, flaw.message);
            }
            None
        }
    }
}

/// The inner option is none for an invalid value.
fn moment_key(keys: &mut TableReader<'_>, key: &'static str) -> Option<Option<i64>> {
    let value = keys.take_value(key)?;
    let text = match &value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Datetime(moment) => moment.to_string(),
        _ => String::new(),
    };
    let read = moment::parse(&text);
    if read.is_none() {
        keys.problem(key, "not a date or time such as \"2021-05-24\"");
    }
    Some(read)
}

fn build_tree(rows: &[HierarchyRow], typing: &ValueTyping) -> Result<Hierarchy, Vec<HierarchyFlaw>> {
    let typing = typing.without_conversion();
    let canonical = |text: &str| {
        let mut out = String::new();
        match typing.canonical(RawToken::Untyped(text), &mut out) {
            Ok(CanonicalKind::Value) => Ok(out),
            Ok(_) => Err("a spelling of a missing value, which a hierarchy cannot contain".to_owned()),
            Err(_) => Err(format!("not of type {}", typing.kind.name())),
        }
    };
    ListedTree::build(rows, canonical).map(Hierarchy::Tree)
}

fn read_file_hierarchy(keys: &mut TableReader<'_>, typing: &ValueTyping, folder: &Path) -> Option<Hierarchy> {
    let separator: String = keys.optional("separator").unwrap_or_else(|| ";".into());
    let path: String = keys.required("path")?;
    let &[separator] = separator.as_bytes() else {
        keys.problem("separator", "not one ASCII character");
        return None;
    };
    let path = folder.join(path);
    let file = path.display().to_string();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            keys.problem("path", format!("{file} cannot be read ({error}): check the path"));
            return None;
        }
    };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.trim_start_matches('\u{feff}').as_bytes());
    let mut rows = Vec::new();
    for record in reader.records() {
        match record {
            Ok(record) => {
                let line = record.position().map_or(0, csv::Position::line);
                let labels = record.iter().map(str::to_owned).collect();
                rows.push(HierarchyRow { place: format!("row {line}"), labels });
            }
            Err(error) => keys.problem_in(&file, "rows", format!("not a table ({error}): correct it")),
        }
    }
    match build_tree(&rows, typing) {
        Ok(hierarchy) => Some(hierarchy),
        Err(flaws) => {
            for flaw in flaws {
                keys.problem_in(&file, &flaw.place, flaw.message);
            }
            None
        }
    }
}

/// Labels are from value to root.
fn tree_rows(
    node: &toml::Value,
    place: &str,
    above: &mut Vec<String>,
    rows: &mut Vec<HierarchyRow>,
    flaws: &mut Vec<HierarchyFlaw>,
) {
    match node {
        toml::Value::Table(table) => {
            for (label, inner) in table {
                above.push(label.clone());
                tree_rows(inner, &format!("{place}.\"{label}\""), above, rows, flaws);
                above.pop();
            }
        }
        toml::Value::Array(list) => {
            for (index, leaf) in list.iter().enumerate() {
                let place = format!("{place}[{index}]");
                let text = match leaf {
                    toml::Value::String(text) => text.clone(),
                    toml::Value::Integer(number) => number.to_string(),
                    toml::Value::Float(number) => number.to_string(),
                    toml::Value::Boolean(truth) => truth.to_string(),
                    _ => {
                        flaws.push(HierarchyFlaw::new(
                            place,
                            "not a value: write groups as tables and values in arrays",
                        ));
                        continue;
                    }
                };
                let mut labels = vec![text];
                labels.extend(above.iter().rev().cloned());
                labels.push("*".into());
                rows.push(HierarchyRow { place, labels });
            }
        }
        _ => flaws.push(HierarchyFlaw::new(place, "neither a table of groups nor an array of values")),
    }
}
