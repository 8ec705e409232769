//! A proposal as commented TOML, in the form of a record schema.

use super::dates::first_year;
use super::numbers::plain;
use super::proposal::{Ladder, Proposal, Proposed, Round, Spelled};
use std::fmt::Write as _;
use throng_core::values::schema::{Origin, Place};

/// Characters of a line, about.
const WIDE: usize = 120;

/// The schema as a file holds it.
pub(super) fn write(proposal: &Proposal) -> String {
    let mut out = String::new();
    for line in &proposal.head {
        comment(&mut out, line);
    }
    let _written = writeln!(out, "name = {}", quoted(&proposal.name));
    for attribute in &proposal.attributes {
        out.push('\n');
        write_attribute(&mut out, attribute);
    }
    out
}

fn write_attribute(out: &mut String, attribute: &Proposed) {
    for line in &attribute.evidence {
        comment(out, line);
    }
    out.push_str("[[attribute]]\n");
    let mut key = |name: &str, value: &str| {
        out.push_str(name);
        out.push_str(" = ");
        out.push_str(value);
        out.push('\n');
    };
    key("name", &quoted(&attribute.name));
    if attribute.from != Origin::Value {
        key("from", &quoted(&attribute.from.name()));
    }
    match &attribute.place {
        Place::Column(column) if *column == attribute.name => {}
        Place::Column(column) => key("column", &quoted(column)),
        Place::Pointer(pointer) => key("pointer", &quoted(pointer)),
    }
    key("type", &quoted(attribute.reading.kind.name()));
    match &attribute.reading.dates {
        Spelled::Iso => {}
        Spelled::Formats(formats) => match formats.as_slice() {
            [only] => key("format", &quoted(only)),
            several => key("format", &list(several.iter().map(|format| quoted(format)))),
        },
        Spelled::Epoch(epoch) => key("epoch", &quoted(epoch)),
    }
    if attribute.reading.dates.has_short_years() {
        key("first_year", &first_year().to_string());
    }
    if attribute.reading.decimal_comma {
        key("decimal", "\",\"");
    }
    if let Some(missing) = &attribute.missing {
        key("missing", &list(missing.iter().map(|text| quoted(text))));
    }
    match attribute.round {
        None => {}
        Some(Round::Step(step)) => key("round", &plain(step)),
        Some(Round::Unit(unit)) => key("round", &quoted(unit.name())),
    }
    key("role", &quoted(attribute.role.name()));
    if let Some(changes) = attribute.changes {
        key("changes", &quoted(changes.name()));
    }
    if let Some(ladder) = &attribute.ladder {
        write_ladder(out, ladder);
    }
}

fn write_ladder(out: &mut String, ladder: &Ladder) {
    let mut text = String::new();
    let mut key = |name: &str, value: &str| {
        let _written = writeln!(text, "{name} = {value}");
    };
    let numbers = |numbers: &[f64]| list(numbers.iter().map(|number| plain(*number)));
    match ladder {
        Ladder::Flat => return,
        Ladder::Tree(rows) => {
            key("kind", "\"tree\"");
            write_tree(&mut text, rows);
        }
        Ladder::Widths { min, max, origin, widths } => {
            key("kind", "\"intervals\"");
            key("min", &plain(*min));
            key("max", &plain(*max));
            if *origin != 0.0 {
                key("origin", &plain(*origin));
            }
            key("widths", &numbers(widths));
        }
        Ladder::Bounds { min, max, levels } => {
            key("kind", "\"bounds\"");
            key("min", &plain(*min));
            key("max", &plain(*max));
            key("levels", &list(levels.iter().map(|cuts| numbers(cuts))));
        }
        Ladder::Prefix(keep) => {
            key("kind", "\"prefix\"");
            key("keep", &list(keep.iter().map(ToString::to_string)));
        }
        Ladder::Calendar { levels, domain } => {
            key("kind", "\"truncate\"");
            key("levels", &list(levels.iter().map(|unit| quoted(unit.name()))));
            if let Some((min, max)) = domain {
                key("min", &quoted(min));
                key("max", &quoted(max));
            }
        }
        Ladder::Grid(cells) => {
            key("kind", "\"grid\"");
            key("cells", &numbers(cells));
        }
    }
    if ladder.is_closed() {
        // Behind the kind: a tree goes on with tables of its own.
        text = text.replacen('\n', "\nuncovered = \"suppress\"\n", 1);
    }
    out.push_str("[attribute.hierarchy]\n");
    out.push_str(&text);
}

/// Rows as tables of groups, the coarsest outside. All rows are equally long.
fn write_tree(out: &mut String, rows: &[Vec<String>]) {
    let depth = rows.first().map_or(1, Vec::len);
    if depth == 1 {
        out.push_str(&array("tree", rows.iter().map(|row| quoted(&row[0]))));
        return;
    }
    let mut tables: Vec<(&[String], Vec<(&String, Vec<&String>)>)> = Vec::new();
    for row in rows {
        let above = &row[2..];
        let at = tables.iter().position(|(path, _)| *path == above).unwrap_or_else(|| {
            tables.push((above, Vec::new()));
            tables.len() - 1
        });
        let groups = &mut tables[at].1;
        match groups.iter_mut().find(|(group, _)| **group == row[1]) {
            Some((_, leaves)) => leaves.push(&row[0]),
            None => groups.push((&row[1], vec![&row[0]])),
        }
    }
    for (above, groups) in tables {
        let path: String = above.iter().rev().map(|group| format!(".{}", quoted(group))).collect();
        let _written = writeln!(out, "[attribute.hierarchy.tree{path}]");
        for (group, leaves) in groups {
            out.push_str(&array(&quoted(group), leaves.into_iter().map(|leaf| quoted(leaf))));
        }
    }
}

/// `key = [ … ]`, over several lines where it is long.
fn array(key: &str, items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    let line = format!("{key} = [{}]\n", items.join(", "));
    if line.chars().count() <= WIDE {
        return line;
    }
    let mut out = format!("{key} = [\n");
    let mut row = String::from("   ");
    for item in items {
        if row.len() > 3 && row.chars().count() + item.chars().count() + 2 > WIDE {
            out.push_str(&row);
            out.push('\n');
            row = String::from("   ");
        }
        let _written = write!(row, " {item},");
    }
    out.push_str(&row);
    out.push_str("\n]\n");
    out
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// A TOML basic string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _written = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A comment, wrapped. What could end it or steer a terminal is left out.
fn comment(out: &mut String, text: &str) {
    let mut row = String::from("#");
    for word in text.split(' ') {
        let word: String = word.chars().filter(|c| !c.is_control()).collect();
        if row.len() > 1 && row.chars().count() + 1 + word.chars().count() > WIDE {
            out.push_str(&row);
            out.push('\n');
            row = String::from("#");
        }
        row.push(' ');
        row.push_str(&word);
    }
    out.push_str(row.trim_end());
    out.push('\n');
}
