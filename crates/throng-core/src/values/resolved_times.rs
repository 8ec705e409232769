//! Relative times: an offset from the start of a series, or a time of day on a date of the same record.
//!
//! A device may send the start of a series once and an offset per sample. Only the sum is a point in time, and only
//! the sum is used downstream.

use std::sync::Arc;

use crate::values::date_formats::TimeOffset;
use crate::values::moment::{self, DAY};
use crate::values::raw_batch::{RawBatch, RawToken};
use crate::values::schema::Attribute;

/// Cells of a batch with relative times, converted to absolute times.
#[derive(Debug)]
pub struct ResolvedTimes {
    cells: RawBatch,
    attributes: Vec<usize>,
}

impl ResolvedTimes {
    /// Adds the cells of `raw` to their base, with columns in the order of `attributes`; none if no attribute has a
    /// base.
    ///
    /// A sum is an RFC 3339 text. The cell is null if the base is missing. It becomes a text that no date format
    /// accepts if the offset or the base is invalid.
    pub fn from_raw_batch(raw: &RawBatch, attributes: &[Arc<Attribute>]) -> Option<Self> {
        let based = |(at, attribute): (usize, &Arc<Attribute>)| attribute.base.is_some().then_some(at);
        let columns: Vec<usize> = attributes.iter().enumerate().filter_map(based).collect();
        if columns.is_empty() {
            return None;
        }
        let mut cells = RawBatch::new(columns.len());
        let mut text = String::new();
        for row in 0..raw.rows() {
            cells.push_row(raw.coordinates()[row]);
            for (column, &attribute) in columns.iter().enumerate() {
                cells.set(column, absolute_time(raw, row, attribute, attributes, &mut text));
            }
        }
        Some(Self { cells, attributes: columns })
    }

    /// Returns the batch and the column of `attribute`; none if the attribute has no base.
    pub fn column(&self, attribute: usize) -> Option<(&RawBatch, usize)> {
        let column = self.attributes.iter().position(|of| *of == attribute)?;
        Some((&self.cells, column))
    }
}

/// Text that is neither a time nor a spelling of a missing value.
const NO_TIME: RawToken<'_> = RawToken::Text("\0");

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
    let Some(span) = base.span.read(said.trim_ascii()) else { return NO_TIME };
    let Some(at) = attributes.iter().position(|other| other.name == base.attribute) else { return NO_TIME };
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
    let Some(moment) = began.and_then(|millis| moment::in_range(millis.checked_add(span)?)) else { return NO_TIME };
    text.clear();
    moment::push_rfc3339(text, moment);
    RawToken::Text(text)
}

#[cfg(test)]
#[path = "based_tests.rs"]
mod tests;
