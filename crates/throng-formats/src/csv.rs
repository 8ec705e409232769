//! CSV: a header row that maps columns to attributes, and rows of untyped fields.

use std::collections::HashMap;

use super::{Field, Unknown};
use throng_core::values::raw::{Coordinate, RawBatch, Token};
use throng_core::values::rejection::RejectionReason;

/// One row, unquoted: the bytes of its fields one after the other, and where each ends.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The bytes of all fields.
    pub text: &'a [u8],
    /// Where each field ends in `text`.
    pub ends: &'a [usize],
}

impl<'a> Row<'a> {
    /// The fields from left to right.
    pub fn fields(self) -> impl Iterator<Item = &'a [u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends).map(move |(start, &end)| &self.text[start..end])
    }
}

/// A header that cannot be used. Columns are named by their place, counted from 1: in a file without a header the
/// first row is a record, and its values must not be repeated here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum HeaderError {
    #[error("the header of column {column} is not UTF-8: save the file as UTF-8")]
    NotUtf8 { column: usize },
    #[error("columns {first} and {second} have the same header: rename one of them")]
    Duplicate { first: usize, second: usize },
    #[error("column {column} of {columns} is not in the schema: add it there or set unknown = \"drop\"")]
    Unknown { column: usize, columns: usize },
    #[error(
        "none of the {columns} columns is in the schema: check that the first row is a header, and that the schema names its columns"
    )]
    NothingKnown { columns: usize },
    #[error("its one column holds {separator}: name that separator (`separator`, --separator)")]
    Separator { separator: &'static str },
    #[error("column {column} and the schema's \"{wanted}\" differ only by case or white space: spell them alike")]
    CaseDiffers { column: usize, wanted: String },
}

/// What separates the fields of other files.
const SEPARATORS: [(char, &str); 4] = [('\t', "a tab"), (';', "a semicolon"), ('|', "a bar"), (',', "a comma")];

/// Decodes the rows under one header.
#[derive(Clone, Debug)]
pub struct CsvCodec {
    /// The attributes of each column of the file.
    columns: Vec<Vec<usize>>,
    unknown: Vec<String>,
    absent: Vec<usize>,
}

impl CsvCodec {
    /// Maps the columns of `header` to the fields of the same name (see [`Field::column`]).
    ///
    /// A field without a column is absent in every record; [`absent`](Self::absent) lists those.
    ///
    /// # Errors
    /// When a header repeats, is not text, is unknown where that is refused, or when no field has a column.
    pub fn new(header: Row<'_>, fields: &[Field], unknown: Unknown) -> Result<Self, HeaderError> {
        let mut wanted: HashMap<String, Vec<usize>> = HashMap::new();
        for (attribute, field) in fields.iter().enumerate() {
            wanted.entry(field.column()).or_default().push(attribute);
        }
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let mut columns: Vec<Vec<usize>> = Vec::with_capacity(header.ends.len());
        let mut unknown_names: Vec<(usize, String)> = Vec::new();
        for (index, name) in header.fields().enumerate() {
            let name = std::str::from_utf8(name).map_err(|_| HeaderError::NotUtf8 { column: index + 1 })?;
            if let Some(first) = seen.insert(name, index) {
                return Err(HeaderError::Duplicate { first: first + 1, second: index + 1 });
            }
            columns.push(wanted.remove(name).unwrap_or_default());
            if columns[index].is_empty() {
                unknown_names.push((index + 1, name.to_owned()));
            }
        }
        for (column, name) in &unknown_names {
            let alike = |wanted: &&String| wanted.trim().to_lowercase() == name.trim().to_lowercase();
            #[expect(clippy::disallowed_methods, reason = "the least of them: no order is relied on")]
            if let Some(wanted) = wanted.keys().filter(alike).min() {
                return Err(HeaderError::CaseDiffers { column: *column, wanted: wanted.clone() });
            }
        }
        let stranger = columns.iter().position(Vec::is_empty);
        if columns.iter().all(Vec::is_empty) && !fields.is_empty() {
            if let [(_, only)] = unknown_names.as_slice()
                && let Some((_, separator)) = SEPARATORS.iter().find(|(separator, _)| only.contains(*separator))
            {
                return Err(HeaderError::Separator { separator });
            }
            return Err(HeaderError::NothingKnown { columns: columns.len() });
        }
        if let (Some(index), Unknown::Refuse) = (stranger, unknown) {
            return Err(HeaderError::Unknown { column: index + 1, columns: columns.len() });
        }
        let mut absent: Vec<usize> = wanted.into_values().flatten().collect();
        absent.sort_unstable();
        let unknown = unknown_names.into_iter().map(|(_, name)| name).collect();
        Ok(Self { columns, unknown, absent })
    }

    /// The names in a header row, from left to right.
    ///
    /// # Errors
    /// When one is not text. Repeated ones are [`new`](Self::new)'s business.
    pub fn names(header: Row<'_>) -> Result<Vec<String>, HeaderError> {
        let text = |(index, name): (usize, &[u8])| match std::str::from_utf8(name) {
            Ok(name) => Ok(name.to_owned()),
            Err(_) => Err(HeaderError::NotUtf8 { column: index + 1 }),
        };
        header.fields().enumerate().map(text).collect()
    }

    /// Names of the columns that no field wants. A header may be a record in truth: print them only where it is sure to be one.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Attributes without a column, ascending.
    #[must_use]
    pub fn absent(&self) -> &[usize] {
        &self.absent
    }

    /// Adds `row` to `into`; an empty field is an empty untyped token.
    ///
    /// # Errors
    /// [`RejectionReason::RaggedRow`] or [`RejectionReason::NotUtf8`]; `into` is then as it was.
    pub fn decode(&self, row: Row<'_>, coordinate: Coordinate, into: &mut RawBatch) -> Result<(), RejectionReason> {
        if row.ends.len() != self.columns.len() {
            return Err(RejectionReason::RaggedRow);
        }
        into.push_row(coordinate);
        for (attributes, field) in self.columns.iter().zip(row.fields()) {
            // Judged field by field: two halves of a character on both sides of a separator are not one.
            let Ok(text) = std::str::from_utf8(field) else {
                into.pop_row();
                return Err(RejectionReason::NotUtf8);
            };
            for &attribute in attributes {
                into.set(attribute, Token::Untyped(text));
            }
        }
        into.unknown_cells += self.unknown.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::AT;

    struct Owned(Vec<u8>, Vec<usize>);

    fn row(fields: &[&str]) -> Owned {
        let ends = fields.iter().scan(0, |end, f| {
            *end += f.len();
            Some(*end)
        });
        Owned(fields.concat().into_bytes(), ends.collect())
    }

    impl Owned {
        fn row(&self) -> Row<'_> {
            Row { text: &self.0, ends: &self.1 }
        }
    }

    fn fields(names: &[&str]) -> Vec<Field> {
        names.iter().map(|n| Field::flat(n)).collect()
    }

    #[test]
    fn columns_are_found_by_name_in_any_order() {
        let nested = Field { pointer: vec!["heart".into(), "rate".into()], elements: None };
        let wanted = vec![Field::flat("zip"), nested, Field::flat("age")];
        let codec = CsvCodec::new(row(&["extra", "age", "heart.rate"]).row(), &wanted, Unknown::Drop).unwrap();
        assert_eq!(codec.absent(), [0]);
        let mut batch = RawBatch::new(3);
        codec.decode(row(&["x", "41", ""]).row(), AT, &mut batch).unwrap();
        assert_eq!(batch.token(0, 0), Token::Absent);
        assert_eq!(batch.token(0, 1), Token::Untyped(""));
        assert_eq!(batch.token(0, 2), Token::Untyped("41"));
        assert_eq!(batch.unknown_cells, 1);
    }

    #[test]
    fn headers_are_refused_by_place_and_never_by_name() {
        let wanted = fields(&["age", "zip"]);
        let duplicate = CsvCodec::new(row(&["age", "CANARY", "CANARY"]).row(), &wanted, Unknown::Drop).unwrap_err();
        assert_eq!(duplicate, HeaderError::Duplicate { first: 2, second: 3 });
        let unknown = CsvCodec::new(row(&["age", "CANARY"]).row(), &wanted, Unknown::Refuse).unwrap_err();
        assert_eq!(unknown, HeaderError::Unknown { column: 2, columns: 2 });
        let headless = CsvCodec::new(row(&["CANARY", "41"]).row(), &wanted, Unknown::Drop).unwrap_err();
        assert_eq!(headless, HeaderError::NothingKnown { columns: 2 });
        for error in [duplicate, unknown, headless] {
            assert!(!format!("{error} {error:?}").contains("CANARY"));
        }
    }

    #[test]
    fn wrong_headers_are_told_apart() {
        let wanted = fields(&["age", "zip"]);
        let refused = |header: &[&str]| CsvCodec::new(row(header).row(), &wanted, Unknown::Drop).unwrap_err();
        let near = HeaderError::CaseDiffers { column: 2, wanted: "age".into() };
        assert_eq!(refused(&["zip", "Age"]), near);
        assert_eq!(refused(&["zip", " age "]), near);
        assert_eq!(refused(&["age;zip"]), HeaderError::Separator { separator: "a semicolon" });
        assert_eq!(refused(&["age\tzip"]), HeaderError::Separator { separator: "a tab" });
        assert_eq!(refused(&["alone"]), HeaderError::NothingKnown { columns: 1 });
        let codec = CsvCodec::new(row(&["zip", "note", "age"]).row(), &wanted, Unknown::Drop).unwrap();
        assert_eq!(codec.unknown(), ["note"]);
    }

    #[test]
    fn ragged_and_undecodable_rows_leave_nothing() {
        let codec = CsvCodec::new(row(&["age", "zip"]).row(), &fields(&["age"]), Unknown::Drop).unwrap();
        let mut batch = RawBatch::new(1);
        assert_eq!(codec.decode(row(&["1"]).row(), AT, &mut batch), Err(RejectionReason::RaggedRow));
        assert_eq!(codec.decode(row(&["1", "2", "3"]).row(), AT, &mut batch), Err(RejectionReason::RaggedRow));
        // "é" torn apart by the separator is valid as a whole and not as two fields.
        let torn = Owned("é".as_bytes().to_vec(), vec![1, 2]);
        assert_eq!(codec.decode(torn.row(), AT, &mut batch), Err(RejectionReason::NotUtf8));
        assert_eq!((batch.rows(), batch.unknown_cells), (0, 0));
    }
}
