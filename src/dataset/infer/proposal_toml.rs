//! Writes a proposal as commented TOML.

use super::date_detection::first_year;
use super::number_intervals::format_plain;
use super::schema_proposal::{DateSpelling, ProposedAttribute, ProposedHierarchy, ProposedRounding, SchemaProposal};
use std::fmt::Write as _;
use throng_core::values::schema::{AttributeOrigin, AttributePlace};

const MAX_LINE_WIDTH: usize = 120;

pub(super) fn write_proposal(proposal: &SchemaProposal) -> String {
    let mut out = String::new();
    for line in &proposal.head {
        write_comment(&mut out, line);
    }
    let _written = writeln!(out, "name = {}", toml_string(&proposal.name));
    for attribute in &proposal.attributes {
        out.push('\n');
        write_attribute(&mut out, attribute);
    }
    out
}

fn write_attribute(out: &mut String, attribute: &ProposedAttribute) {
    for line in &attribute.evidence {
        write_comment(out, line);
    }
    out.push_str("[[attribute]]\n");
    let mut key = |name: &str, value: &str| {
        out.push_str(name);
        out.push_str(" = ");
        out.push_str(value);
        out.push('\n');
    };
    key("name", &toml_string(&attribute.name));
    if attribute.from != AttributeOrigin::Value {
        key("from", &toml_string(&attribute.from.name()));
    }
    match &attribute.place {
        AttributePlace::Column(column) if *column == attribute.name => {}
        AttributePlace::Column(column) => key("column", &toml_string(column)),
        AttributePlace::Pointer(pointer) => key("pointer", &toml_string(pointer)),
    }
    key("type", &toml_string(attribute.reading.kind.name()));
    match &attribute.reading.dates {
        DateSpelling::Iso => {}
        DateSpelling::Formats(formats) => match formats.as_slice() {
            [only] => key("format", &toml_string(only)),
            several => key("format", &inline_list(several.iter().map(|format| toml_string(format)))),
        },
        DateSpelling::Epoch(epoch) => key("epoch", &toml_string(epoch)),
    }
    if attribute.reading.dates.has_short_years() {
        key("first_year", &first_year().to_string());
    }
    if attribute.reading.decimal_comma {
        key("decimal", "\",\"");
    }
    if let Some(missing) = &attribute.missing {
        key("missing", &inline_list(missing.iter().map(|text| toml_string(text))));
    }
    match attribute.round {
        None => {}
        Some(ProposedRounding::Step(step)) => key("round", &format_plain(step)),
        Some(ProposedRounding::Unit(unit)) => key("round", &toml_string(unit.name())),
    }
    key("role", &toml_string(attribute.role.name()));
    if let Some(changes) = attribute.changes {
        key("changes", &toml_string(changes.name()));
    }
    if let Some(ladder) = &attribute.ladder {
        write_hierarchy(out, ladder);
    }
}

fn write_hierarchy(out: &mut String, ladder: &ProposedHierarchy) {
    let mut text = String::new();
    let mut key = |name: &str, value: &str| {
        let _written = writeln!(text, "{name} = {value}");
    };
    let numbers = |numbers: &[f64]| inline_list(numbers.iter().map(|number| format_plain(*number)));
    match ladder {
        ProposedHierarchy::Flat => return,
        ProposedHierarchy::Tree(rows) => {
            key("kind", "\"tree\"");
            write_tree(&mut text, rows);
        }
        ProposedHierarchy::Widths { min, max, origin, widths } => {
            key("kind", "\"intervals\"");
            key("min", &format_plain(*min));
            key("max", &format_plain(*max));
            if *origin != 0.0 {
                key("origin", &format_plain(*origin));
            }
            key("widths", &numbers(widths));
        }
        ProposedHierarchy::Bounds { min, max, levels } => {
            key("kind", "\"bounds\"");
            key("min", &format_plain(*min));
            key("max", &format_plain(*max));
            key("levels", &inline_list(levels.iter().map(|cuts| numbers(cuts))));
        }
        ProposedHierarchy::Prefix(keep) => {
            key("kind", "\"prefix\"");
            key("keep", &inline_list(keep.iter().map(ToString::to_string)));
        }
        ProposedHierarchy::Calendar { levels, domain } => {
            key("kind", "\"truncate\"");
            key("levels", &inline_list(levels.iter().map(|unit| toml_string(unit.name()))));
            if let Some((min, max)) = domain {
                key("min", &toml_string(min));
                key("max", &toml_string(max));
            }
        }
        ProposedHierarchy::Grid(cells) => {
            key("kind", "\"grid\"");
            key("cells", &numbers(cells));
        }
    }
    if ladder.may_miss_values() {
        // After the kind: a tree continues with further tables.
        text = text.replacen('\n', "\nuncovered = \"suppress\"\n", 1);
    }
    out.push_str("[attribute.hierarchy]\n");
    out.push_str(&text);
}

/// Rows have equal lengths; the coarsest group is outermost.
fn write_tree(out: &mut String, rows: &[Vec<String>]) {
    let depth = rows.first().map_or(1, Vec::len);
    if depth == 1 {
        out.push_str(&wrapped_array("tree", rows.iter().map(|row| toml_string(&row[0]))));
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
        let path: String = above.iter().rev().map(|group| format!(".{}", toml_string(group))).collect();
        let _written = writeln!(out, "[attribute.hierarchy.tree{path}]");
        for (group, leaves) in groups {
            out.push_str(&wrapped_array(&toml_string(group), leaves.into_iter().map(|leaf| toml_string(leaf))));
        }
    }
}

/// Several lines if long.
fn wrapped_array(key: &str, items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    let line = format!("{key} = [{}]\n", items.join(", "));
    if line.chars().count() <= MAX_LINE_WIDTH {
        return line;
    }
    let mut out = format!("{key} = [\n");
    let mut row = String::from("   ");
    for item in items {
        if row.len() > 3 && row.chars().count() + item.chars().count() + 2 > MAX_LINE_WIDTH {
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

fn inline_list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

pub(super) fn toml_string(text: &str) -> String {
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

/// Control characters could end the comment or control a terminal.
fn write_comment(out: &mut String, text: &str) {
    let mut row = String::from("#");
    for word in text.split(' ') {
        let word: String = word.chars().filter(|c| !c.is_control()).collect();
        if row.len() > 1 && row.chars().count() + 1 + word.chars().count() > MAX_LINE_WIDTH {
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
