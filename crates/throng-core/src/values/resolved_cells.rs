//! Cells that depend on another cell of the record: times relative to a base, and numbers with their unit.

use std::sync::Arc;

use crate::values::canonical::{CanonicalKind, ValueTyping};
use crate::values::date_formats::TimeOffset;
use crate::values::moment::{self, DAY};
use crate::values::raw_batch::{RawBatch, RawToken};
use crate::values::schema::{Attribute, UnitSource};
use crate::values::units::Conversion;

/// Absolute times and converted numbers of the dependent attributes of a batch.
#[derive(Debug)]
pub struct ResolvedCells {
    cells: RawBatch,
    attributes: Vec<usize>,
}

impl ResolvedCells {
    /// Adds the relative times of `raw` to their bases, and converts numbers from the units in `raw`; `None` without
    /// such attributes.
    ///
    /// Cells are RFC 3339 or numbers, null without a base or unit, or a text refused by every type if invalid.
    pub fn from_raw_batch(raw: &RawBatch, attributes: &[Arc<Attribute>]) -> Option<Self> {
        let depends = |(at, attribute): (usize, &Arc<Attribute>)| attribute.companion().is_some().then_some(at);
        let columns: Vec<usize> = attributes.iter().enumerate().filter_map(depends).collect();
        if columns.is_empty() {
            return None;
        }
        let mut numbers: Vec<Option<UnitReader<'_>>> =
            columns.iter().map(|&attribute| UnitReader::of(attribute, attributes)).collect();
        let mut cells = RawBatch::new(columns.len());
        let mut text = String::new();
        for row in 0..raw.rows() {
            cells.push_row(raw.coordinates()[row]);
            for (column, &attribute) in columns.iter().enumerate() {
                let cell = match &mut numbers[column] {
                    Some(reader) => reader.converted(raw, row, &mut text),
                    None => absolute_time(raw, row, attribute, attributes, &mut text),
                };
                cells.set(column, cell);
            }
        }
        Some(Self { cells, attributes: columns })
    }

    /// Returns batch and column of a dependent attribute.
    pub fn column(&self, attribute: usize) -> Option<(&RawBatch, usize)> {
        let column = self.attributes.iter().position(|of| *of == attribute)?;
        Some((&self.cells, column))
    }
}

/// Neither a time, a number, nor a missing spelling.
const INVALID: RawToken<'_> = RawToken::Text("\0");

/// Converts the numbers of one attribute.
struct UnitReader<'a> {
    attribute: usize,
    /// Position of the attribute with the units, and its description.
    units: (usize, &'a Attribute),
    wanted: &'a UnitSource,
    /// Unit of the previous record.
    unit: String,
    /// Typing of numbers in `unit`; `None` if it cannot be converted.
    typing: Option<ValueTyping>,
}

impl<'a> UnitReader<'a> {
    fn of(attribute: usize, attributes: &'a [Arc<Attribute>]) -> Option<Self> {
        let wanted = attributes[attribute].units.as_ref()?;
        let position = attributes.iter().position(|other| other.name == wanted.attribute)?;
        let units = (position, &*attributes[position]);
        Some(Self { attribute, units, wanted, unit: String::new(), typing: wanted.typing_of("") })
    }

    fn converted<'t>(&mut self, raw: &'t RawBatch, row: usize, text: &'t mut String) -> RawToken<'t> {
        let (own, unit) = (raw.token(row, self.attribute), raw.token(row, self.units.0));
        if matches!(own, RawToken::Absent | RawToken::Null) {
            return own;
        }
        if let RawToken::Text(said) | RawToken::Number(said) | RawToken::Untyped(said) = own
            && self.wanted.raw.is_missing(said, matches!(own, RawToken::Untyped(_)))
        {
            return RawToken::Null;
        }
        let name = match unit {
            RawToken::Absent | RawToken::Null => return RawToken::Null,
            RawToken::Text(name) | RawToken::Number(name) | RawToken::Untyped(name) => name.trim_ascii(),
            RawToken::Bool(_) | RawToken::Structure(_) => return INVALID,
        };
        if self.units.1.typing.is_missing(name, matches!(unit, RawToken::Untyped(_))) {
            return RawToken::Null;
        }
        if self.unit != name {
            self.unit.clear();
            self.unit.push_str(name);
            self.typing = self.wanted.typing_of(name);
        }
        let Some(typing) = &self.typing else { return INVALID };
        match typing.canonical(own, text) {
            Ok(CanonicalKind::Value) => {
                if typing.conversion != Some(Conversion::IDENTITY) {
                    round_to_significant_digits(text);
                }
                RawToken::Number(text)
            }
            Ok(CanonicalKind::Absent | CanonicalKind::Null) => RawToken::Null,
            Err(_) => INVALID,
        }
    }
}

fn absolute_time<'a>(
    raw: &'a RawBatch,
    row: usize,
    attribute: usize,
    attributes: &[Arc<Attribute>],
    text: &'a mut String,
) -> RawToken<'a> {
    let (own, described) = (raw.token(row, attribute), &attributes[attribute]);
    let Some(base) = &described.base else { return own };
    let (RawToken::Text(said) | RawToken::Number(said) | RawToken::Untyped(said)) = own else { return own };
    if described.typing.is_missing(said, matches!(own, RawToken::Untyped(_))) {
        return RawToken::Null;
    }
    let Some(span) = base.span.read(said.trim_ascii()) else { return INVALID };
    let Some(at) = attributes.iter().position(|other| other.name == base.attribute) else { return INVALID };
    let from = raw.token(row, at);
    let began = match from {
        RawToken::Absent | RawToken::Null => return RawToken::Null,
        RawToken::Text(said) | RawToken::Number(said) | RawToken::Untyped(said) => {
            let typing = &attributes[at].typing;
            if typing.is_missing(said, matches!(from, RawToken::Untyped(_))) {
                return RawToken::Null;
            }
            typing.parse_moment(said.trim_ascii())
        }
        RawToken::Bool(_) | RawToken::Structure(_) => None,
    };
    let began = began.map(|millis| match base.span {
        TimeOffset::Number(_) => millis,
        TimeOffset::Clock(_) => millis - millis.rem_euclid(DAY),
    });
    let Some(moment) = began.and_then(|millis| moment::in_range(millis.checked_add(span)?)) else { return INVALID };
    text.clear();
    moment::push_rfc3339(text, moment);
    RawToken::Text(text)
}

/// Rounding errors of a conversion would tell its unit and split classes.
fn round_to_significant_digits(text: &mut String) {
    if let Ok(number) = text.parse::<f64>()
        && let Ok(rounded) = format!("{number:.11e}").parse::<f64>()
    {
        text.clear();
        text.push_str(&rounded.to_string());
    }
}

#[cfg(test)]
#[path = "resolved_cells_tests.rs"]
mod tests;
