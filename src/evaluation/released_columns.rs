//! Columns of a released table: cells, and the bounds that Parquet adds to them.

use crate::io::file::{FileFormat, FileSource, OutputColumn, cell_bounds};
use throng_core::values::cell_bounds::{Bound, BoundType};
use throng_core::values::moment;
use throng_core::values::raw_batch::{RawBatch, RawToken};
use throng_core::values::schema::Schema;
use throng_formats::FieldPath;

/// Guarantee: bounds add no information to the text of their cell.
pub const BOUNDS_PROMISE: &str = "the bounds of a cell follow from its text";

struct BoundColumns {
    cell: usize,
    kind: BoundType,
    /// Field of the lower bound; the upper one follows.
    lower: usize,
}

/// Fields of a released table: one per cell, then the bounds.
pub struct ReleasedColumns {
    fields: Vec<FieldPath>,
    cells: usize,
    bounds: Vec<BoundColumns>,
}

impl ReleasedColumns {
    /// Returns the columns of a group or joined output with these `attributes`.
    pub fn new(schema: &Schema, attributes: &[usize], format: FileFormat) -> Self {
        let columns = OutputColumn::of_attributes(attributes.iter().map(|&a| schema.attributes[a].as_ref()));
        let mut fields: Vec<FieldPath> = columns.iter().map(|column| FieldPath::top_level(&column.name)).collect();
        let mut bounds = Vec::new();
        for (cell, column) in columns.iter().enumerate() {
            if let (FileFormat::Parquet, Some((kind, names))) = (format, column.bounds()) {
                bounds.push(BoundColumns { cell, kind, lower: fields.len() });
                fields.extend(names.iter().map(|name| FieldPath::top_level(name)));
            }
        }
        Self { fields, cells: columns.len(), bounds }
    }

    /// Returns the fields to read.
    pub fn fields(&self) -> &[FieldPath] {
        &self.fields
    }

    /// Returns the cells without a column in the file, ascending.
    pub fn absent_cells(&self, source: &FileSource) -> Vec<usize> {
        source.absent_attributes().into_iter().filter(|field| *field < self.cells).collect()
    }

    /// Returns the first cell whose bounds differ from its text. A file without bounds has none to check.
    pub fn wrong_bounds(&self, batch: &RawBatch, row: usize) -> Option<usize> {
        let is_wrong = |of: &&BoundColumns| {
            let expected = cell_bounds(of.kind, batch.token(row, of.cell));
            (0..2).any(|end| !is_bound(expected.map(|ends| ends[end]), of.kind, batch.token(row, of.lower + end)))
        };
        self.bounds.iter().find(is_wrong).map(|of| of.cell)
    }
}

/// Programs may have rewritten the file: pandas turns integers with nulls into doubles.
fn is_bound(expected: Option<Bound>, kind: BoundType, found: RawToken<'_>) -> bool {
    match (expected, found) {
        (_, RawToken::Absent) | (None, RawToken::Null) => true,
        (Some(Bound::Real(bound)), RawToken::Number(text)) => text.parse::<f64>() == Ok(bound),
        (Some(Bound::Whole(bound)), RawToken::Number(text)) if kind == BoundType::Integer => {
            match text.parse::<i64>() {
                Ok(found) => found == bound,
                Err(_) => text.parse::<f64>() == Ok(bound as f64),
            }
        }
        (Some(Bound::Whole(bound)), RawToken::Text(text)) => {
            let millis = match kind {
                BoundType::Date => bound.checked_mul(moment::DAY),
                BoundType::Timestamp => Some(bound),
                BoundType::Integer | BoundType::Float => None,
            };
            millis.is_some() && moment::parse(text) == millis
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_rewritten_files_are_compared_by_value() {
        let whole = |text, kind: BoundType| kind.bounds(text).map(|ends| ends[1]);
        let integer = |text| whole(text, BoundType::Integer);
        let is = |expected, kind, found| is_bound(expected, kind, found);
        assert!(is(integer("45-49"), BoundType::Integer, RawToken::Number("49")));
        assert!(is(integer("45-49"), BoundType::Integer, RawToken::Number("49.0")), "pandas");
        assert!(!is(integer("45-49"), BoundType::Integer, RawToken::Number("48")));
        assert!(!is(integer("45-49"), BoundType::Integer, RawToken::Null));
        assert!(!is(integer("*"), BoundType::Integer, RawToken::Number("47")), "a suppressed cell has no bounds");
        let large = integer("9007199254740993");
        assert!(is(large, BoundType::Integer, RawToken::Number("9007199254740993")));
        assert!(!is(large, BoundType::Integer, RawToken::Number("9007199254740992")));
        let month = |kind| whole("2024-02", kind);
        assert!(is(month(BoundType::Date), BoundType::Date, RawToken::Text("2024-02-29")));
        assert!(!is(month(BoundType::Date), BoundType::Date, RawToken::Text("2024-02-28")));
        let last = RawToken::Text("2024-02-29T23:59:59.999Z");
        assert!(is(month(BoundType::Timestamp), BoundType::Timestamp, last));
        let double = whole("[65,70)", BoundType::Float);
        assert!(is(double, BoundType::Float, RawToken::Number("70.0")));
        assert!(!is(double, BoundType::Float, RawToken::Untyped("NaN")));
        assert!(is(integer("*"), BoundType::Integer, RawToken::Absent), "a file without bounds");
    }
}
