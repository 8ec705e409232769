//! Times that count from another time of their record: an offset from the start of a series, a time of day on its date.
//!
//! A device that writes a series says once when it began, and of each sample how much later it was. Neither is a time by
//! itself; their sum is one, and nothing else of the two is looked at downstream.

use std::sync::Arc;

use crate::values::dates::Span;
use crate::values::moment::{self, DAY};
use crate::values::raw::{RawBatch, Token};
use crate::values::schema::Attribute;

/// The cells of a batch that count from others of their record, as times by themselves.
#[derive(Debug)]
pub struct Resolved {
    cells: RawBatch,
    /// The attribute of each column.
    attributes: Vec<usize>,
}

impl Resolved {
    /// Adds up what the records of `raw` say, whose columns are those of `attributes`; none where no attribute counts from another.
    ///
    /// A sum is a text of RFC 3339. Without a base there is no time: the cell is null. Where the cell says no span, or the base is no
    /// time, it becomes a text that no time is spelled like.
    pub fn of(raw: &RawBatch, attributes: &[Arc<Attribute>]) -> Option<Self> {
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
                cells.set(column, sum(raw, row, attribute, attributes, &mut text));
            }
        }
        Some(Self { cells, attributes: columns })
    }

    /// Where the cells of `attribute` are: a batch, and the column in it. None for an attribute that counts from no other.
    pub fn column(&self, attribute: usize) -> Option<(&RawBatch, usize)> {
        let column = self.attributes.iter().position(|of| *of == attribute)?;
        Some((&self.cells, column))
    }
}

/// What no time is spelled like, nor a missing one.
const NO_TIME: Token<'_> = Token::Text("\0");

/// The time that a cell says with its base.
fn sum<'a>(
    raw: &'a RawBatch,
    row: usize,
    attribute: usize,
    attributes: &[Arc<Attribute>],
    text: &'a mut String,
) -> Token<'a> {
    let (own, described) = (raw.token(row, attribute), &attributes[attribute]);
    let Some(base) = &described.base else { return own };
    let (Token::Text(said) | Token::Number(said) | Token::Untyped(said)) = own else { return own };
    if described.typing.is_missing(said, matches!(own, Token::Untyped(_))) {
        return Token::Null;
    }
    let Some(span) = base.span.read(said.trim_ascii()) else { return NO_TIME };
    let Some(at) = attributes.iter().position(|other| other.name == base.attribute) else { return NO_TIME };
    let from = raw.token(row, at);
    let began = match from {
        Token::Absent | Token::Null => return Token::Null,
        Token::Text(said) | Token::Number(said) | Token::Untyped(said) => {
            let typing = &attributes[at].typing;
            if typing.is_missing(said, matches!(from, Token::Untyped(_))) {
                return Token::Null;
            }
            typing.moment(said.trim_ascii())
        }
        Token::Bool(_) | Token::Structure(_) => None,
    };
    let began = began.map(|millis| match base.span {
        Span::Number(_) => millis,
        Span::Clock(_) => millis - millis.rem_euclid(DAY),
    });
    let Some(moment) = began.and_then(|millis| moment::in_range(millis.checked_add(span)?)) else { return NO_TIME };
    text.clear();
    moment::push_rfc3339(text, moment);
    Token::Text(text)
}

#[cfg(test)]
#[path = "based_tests.rs"]
mod tests;
