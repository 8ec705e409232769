//! CSV decoder.

use std::collections::HashMap;

use super::{FieldPath, UnknownCellPolicy};
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_core::values::rejection::RejectionReason;

/// Unquoted row of fields.
#[derive(Clone, Copy, Debug)]
pub struct CsvRow<'a> {
    /// Concatenated bytes of the fields.
    pub text: &'a [u8],
    /// End of each field in `text`.
    pub ends: &'a [usize],
}

impl<'a> CsvRow<'a> {
    /// Returns the fields from left to right.
    pub fn fields(self) -> impl Iterator<Item = &'a [u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends).map(move |(start, &end)| &self.text[start..end])
    }
}

/// Unusable header, with column numbers from 1. It may be a data record, so the message contains no names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
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
    #[error("its only column contains {separator}: set that separator (`separator`, --separator)")]
    Separator { separator: &'static str },
    #[error("column {column} and the schema's \"{wanted}\" differ only by case or white space: use one spelling")]
    CaseDiffers { column: usize, wanted: String },
}

const OTHER_SEPARATORS: [(char, &str); 4] = [('\t', "a tab"), (';', "a semicolon"), ('|', "a bar"), (',', "a comma")];

/// Decodes rows under one header.
#[derive(Clone, Debug)]
pub struct CsvCodec {
    columns: Vec<Vec<usize>>,
    unknown: Vec<String>,
    absent: Vec<usize>,
}

impl CsvCodec {
    /// Maps columns to fields by [`FieldPath::flat_column_name`].
    ///
    /// # Errors
    /// Fails for a name that is repeated, not UTF-8, or differs from a field only by case or white space. Also fails
    /// for a refused unknown column, or if no field has a column.
    pub fn new(header: CsvRow<'_>, fields: &[FieldPath], unknown: UnknownCellPolicy) -> Result<Self, HeaderError> {
        let mut wanted: HashMap<String, Vec<usize>> = HashMap::new();
        for (attribute, field) in fields.iter().enumerate() {
            wanted.entry(field.flat_column_name()).or_default().push(attribute);
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
            #[expect(clippy::disallowed_methods, reason = "the minimum does not depend on the order")]
            if let Some(wanted) = wanted.keys().filter(alike).min() {
                return Err(HeaderError::CaseDiffers { column: *column, wanted: wanted.clone() });
            }
        }
        let stranger = columns.iter().position(Vec::is_empty);
        if columns.iter().all(Vec::is_empty) && !fields.is_empty() {
            if let [(_, only)] = unknown_names.as_slice()
                && let Some((_, separator)) = OTHER_SEPARATORS.iter().find(|(separator, _)| only.contains(*separator))
            {
                return Err(HeaderError::Separator { separator });
            }
            return Err(HeaderError::NothingKnown { columns: columns.len() });
        }
        if let (Some(index), UnknownCellPolicy::Refuse) = (stranger, unknown) {
            return Err(HeaderError::Unknown { column: index + 1, columns: columns.len() });
        }
        let mut absent: Vec<usize> = wanted.into_values().flatten().collect();
        absent.sort_unstable();
        let unknown = unknown_names.into_iter().map(|(_, name)| name).collect();
        Ok(Self { columns, unknown, absent })
    }

    /// Returns the names in a header.
    ///
    /// # Errors
    /// Fails if a name is not UTF-8.
    pub fn names(header: CsvRow<'_>) -> Result<Vec<String>, HeaderError> {
        let text = |(index, name): (usize, &[u8])| match std::str::from_utf8(name) {
            Ok(name) => Ok(name.to_owned()),
            Err(_) => Err(HeaderError::NotUtf8 { column: index + 1 }),
        };
        header.fields().enumerate().map(text).collect()
    }

    /// Returns the names of unused columns; print them only if the header is certainly no data record.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Returns the attributes without a column, ascending.
    #[must_use]
    pub fn absent(&self) -> &[usize] {
        &self.absent
    }

    /// Adds `row` to `into`; an empty field is an empty untyped token.
    ///
    /// # Errors
    /// Fails with [`RejectionReason::RaggedRow`] or [`RejectionReason::NotUtf8`]; `into` is then unchanged.
    pub fn decode(
        &self,
        row: CsvRow<'_>,
        coordinate: RecordPosition,
        into: &mut RawBatch,
    ) -> Result<(), RejectionReason> {
        if row.ends.len() != self.columns.len() {
            return Err(RejectionReason::RaggedRow);
        }
        into.push_row(coordinate);
        for (attributes, field) in self.columns.iter().zip(row.fields()) {
            // A character could be split across two fields.
            let Ok(text) = std::str::from_utf8(field) else {
                into.pop_row();
                return Err(RejectionReason::NotUtf8);
            };
            for &attribute in attributes {
                into.set(attribute, RawToken::Untyped(text));
            }
        }
        into.unknown_cells += self.unknown.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec_fixtures::MESSAGE_POSITION;

    struct OwnedCsvRow(Vec<u8>, Vec<usize>);

    fn row(fields: &[&str]) -> OwnedCsvRow {
        let ends = fields.iter().scan(0, |end, f| {
            *end += f.len();
            Some(*end)
        });
        OwnedCsvRow(fields.concat().into_bytes(), ends.collect())
    }

    impl OwnedCsvRow {
        fn row(&self) -> CsvRow<'_> {
            CsvRow { text: &self.0, ends: &self.1 }
        }
    }

    fn fields(names: &[&str]) -> Vec<FieldPath> {
        names.iter().map(|n| FieldPath::top_level(n)).collect()
    }

    #[test]
    fn csv_columns_match_fields_by_name() {
        let nested = FieldPath { pointer: vec!["heart".into(), "rate".into()], elements: None };
        let wanted = vec![FieldPath::top_level("zip"), nested, FieldPath::top_level("age")];
        let codec =
            CsvCodec::new(row(&["extra", "age", "heart.rate"]).row(), &wanted, UnknownCellPolicy::Drop).unwrap();
        assert_eq!(codec.absent(), [0]);
        let mut batch = RawBatch::new(3);
        codec.decode(row(&["x", "41", ""]).row(), MESSAGE_POSITION, &mut batch).unwrap();
        assert_eq!(batch.token(0, 0), RawToken::Absent);
        assert_eq!(batch.token(0, 1), RawToken::Untyped(""));
        assert_eq!(batch.token(0, 2), RawToken::Untyped("41"));
        assert_eq!(batch.unknown_cells, 1);
    }

    #[test]
    fn header_errors_contain_positions_and_no_names() {
        let wanted = fields(&["age", "zip"]);
        let duplicate =
            CsvCodec::new(row(&["age", "CANARY", "CANARY"]).row(), &wanted, UnknownCellPolicy::Drop).unwrap_err();
        assert_eq!(duplicate, HeaderError::Duplicate { first: 2, second: 3 });
        let unknown = CsvCodec::new(row(&["age", "CANARY"]).row(), &wanted, UnknownCellPolicy::Refuse).unwrap_err();
        assert_eq!(unknown, HeaderError::Unknown { column: 2, columns: 2 });
        let headless = CsvCodec::new(row(&["CANARY", "41"]).row(), &wanted, UnknownCellPolicy::Drop).unwrap_err();
        assert_eq!(headless, HeaderError::NothingKnown { columns: 2 });
        for error in [duplicate, unknown, headless] {
            assert!(!format!("{error} {error:?}").contains("CANARY"));
        }
    }

    #[test]
    fn wrong_headers_have_distinct_errors() {
        let wanted = fields(&["age", "zip"]);
        let refused = |header: &[&str]| CsvCodec::new(row(header).row(), &wanted, UnknownCellPolicy::Drop).unwrap_err();
        let near = HeaderError::CaseDiffers { column: 2, wanted: "age".into() };
        assert_eq!(refused(&["zip", "Age"]), near);
        assert_eq!(refused(&["zip", " age "]), near);
        assert_eq!(refused(&["age;zip"]), HeaderError::Separator { separator: "a semicolon" });
        assert_eq!(refused(&["age\tzip"]), HeaderError::Separator { separator: "a tab" });
        assert_eq!(refused(&["alone"]), HeaderError::NothingKnown { columns: 1 });
        let codec = CsvCodec::new(row(&["zip", "note", "age"]).row(), &wanted, UnknownCellPolicy::Drop).unwrap();
        assert_eq!(codec.unknown(), ["note"]);
    }

    #[test]
    fn ragged_or_invalid_row_adds_nothing() {
        let codec = CsvCodec::new(row(&["age", "zip"]).row(), &fields(&["age"]), UnknownCellPolicy::Drop).unwrap();
        let mut batch = RawBatch::new(1);
        assert_eq!(codec.decode(row(&["1"]).row(), MESSAGE_POSITION, &mut batch), Err(RejectionReason::RaggedRow));
        assert_eq!(
            codec.decode(row(&["1", "2", "3"]).row(), MESSAGE_POSITION, &mut batch),
            Err(RejectionReason::RaggedRow)
        );
        let torn = OwnedCsvRow("é".as_bytes().to_vec(), vec![1, 2]);
        assert_eq!(codec.decode(torn.row(), MESSAGE_POSITION, &mut batch), Err(RejectionReason::NotUtf8));
        assert_eq!((batch.rows(), batch.unknown_cells), (0, 0));
    }
}
