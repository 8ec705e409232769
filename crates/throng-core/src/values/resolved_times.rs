//! Times relative to another cell of the record, as sums.

use std::sync::Arc;

use crate::values::date_formats::TimeOffset;
use crate::values::moment::{self, DAY};
use crate::values::raw_batch::{RawBatch, RawToken};
use crate::values::schema::Attribute;

/// Absolute times of the relative attributes of a batch.
#[derive(Debug)]
pub struct ResolvedTimes {
    cells: RawBatch,
    attributes: Vec<usize>,
}

impl ResolvedTimes {
    /// Adds the relative times of `raw` to their bases; none without relative attributes.
    ///
    /// Cells are RFC 3339, null without a base, or a text refused by every format if invalid.
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

    /// Returns batch and column of a relative attribute.
    pub fn column(&self, attribute: usize) -> Option<(&RawBatch, usize)> {
        let column = self.attributes.iter().position(|of| *of == attribute)?;
        Some((&self.cells, column))
    }
}

/// Neither a time nor a missing spelling.
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
