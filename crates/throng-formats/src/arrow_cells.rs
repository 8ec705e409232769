//! Arrow columns, as Parquet files are read, into raw cells.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Field as ArrowField, Fields, Schema};

use super::arrow_text::{supported, token};
use super::{Field, Limits, Unknown};
use throng_core::values::raw::{Coordinate, RawBatch, Token};
use throng_core::values::rejection::RejectionReason;

/// A column that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum ColumnError {
    #[error(
        "column \"{column}\" has the type {kind}, which has no textual form: cast it (a duration to seconds), or leave it out of the schema (of the columns, --columns)"
    )]
    Unsupported { column: String, kind: String },
    #[error("two columns are named \"{column}\": rename one of them")]
    Duplicate { column: String },
    #[error("column \"{column}\" is not in the schema: add it there or set unknown = \"drop\"")]
    Unknown { column: String },
    #[error(
        "none of the {columns} columns is in the schema: write the file's names in the schema (`column`, or `pointer` for a member of a struct)"
    )]
    NothingKnown { columns: usize },
    #[error("column \"{column}\" and the schema's \"{wanted}\" differ only by case: spell them alike")]
    CaseDiffers { column: String, wanted: String },
    #[error("the columns read differ from those announced: the file is damaged or was replaced while it was read")]
    Mismatch,
}

/// Finds the cells of the schema's fields in record batches of one Arrow schema.
#[derive(Clone, Debug)]
pub struct ArrowCodec {
    /// For every attribute the child indices that lead to it: a top-level column, then struct members.
    paths: Vec<Option<Vec<usize>>>,
    roots: Vec<usize>,
    limits: Limits,
    unknown_columns: u64,
    unknown: Vec<String>,
}

impl ArrowCodec {
    /// Follows every field's segments through `schema`.
    ///
    /// Cells: integers, floats, decimals and durations (in seconds) are numbers (`NaN` and infinities untyped text); texts, dates
    /// (`2024-03-01`), times and timestamps (`2024-03-01T12:00:00.5`, with `Z` when the column has a zone) are text (outside the
    /// calendar untyped: `infinity`), sixteen bytes are a UUID, and other bytes that are no text are Base64; lists, maps and whole structs are JSON. A member of a missing struct is absent.
    ///
    /// # Errors
    /// When a wanted column has no textual form or two names, when a column is unknown where that is refused, or
    /// when no field has a column.
    pub fn new(schema: &Schema, fields: &[Field], limits: Limits, unknown: Unknown) -> Result<Self, ColumnError> {
        let top = schema.fields();
        let mut paths = Vec::with_capacity(fields.len());
        for field in fields {
            paths.push(follow(top, &field.pointer)?);
        }
        let mut roots: Vec<usize> = paths.iter().flatten().map(|path| path[0]).collect();
        roots.sort_unstable();
        roots.dedup();
        for (field, path) in fields.iter().zip(&paths) {
            let near =
                |column: &&std::sync::Arc<ArrowField>| column.name().to_lowercase() == field.pointer[0].to_lowercase();
            if path.is_none()
                && top.iter().all(|column| *column.name() != field.pointer[0])
                && let Some(column) = top.iter().find(near)
            {
                let (column, wanted) = (column.name().clone(), field.pointer[0].clone());
                return Err(ColumnError::CaseDiffers { column, wanted });
            }
        }
        if roots.is_empty() && !fields.is_empty() {
            return Err(ColumnError::NothingKnown { columns: top.len() });
        }
        let stranger = (0..top.len()).find(|index| !roots.contains(index));
        if let (Some(index), Unknown::Refuse) = (stranger, unknown) {
            return Err(ColumnError::Unknown { column: top[index].name().clone() });
        }
        let unknown: Vec<String> =
            (0..top.len()).filter(|index| !roots.contains(index)).map(|index| top[index].name().clone()).collect();
        Ok(Self { unknown_columns: unknown.len() as u64, unknown, paths, roots, limits })
    }

    /// The top-level columns that hold wanted cells, ascending: what a reader should project to.
    #[must_use]
    pub fn roots(&self) -> &[usize] {
        &self.roots
    }

    /// Attributes without a column, ascending.
    #[must_use]
    pub fn absent(&self) -> Vec<usize> {
        (0..self.paths.len()).filter(|&attribute| self.paths[attribute].is_none()).collect()
    }

    /// Columns that no field wants.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// The wanted columns of `batch`, which holds exactly the columns [`roots`](Self::roots).
    ///
    /// # Errors
    /// [`ColumnError::Mismatch`] when it does not.
    pub fn rows(&self, batch: &RecordBatch) -> Result<ArrowRows, ColumnError> {
        let mut columns = Vec::with_capacity(self.paths.len());
        for path in &self.paths {
            columns.push(path.as_ref().map(|path| self.column(batch, path)).transpose()?);
        }
        Ok(ArrowRows { columns, limits: self.limits, unknown_columns: self.unknown_columns })
    }

    fn column(&self, batch: &RecordBatch, path: &[usize]) -> Result<Column, ColumnError> {
        let root = self.roots.binary_search(&path[0]).map_err(|_| ColumnError::Mismatch)?;
        let mut array = batch.columns().get(root).ok_or(ColumnError::Mismatch)?;
        let mut parents = Vec::new();
        for &member in &path[1..] {
            let parent = array.as_struct_opt().ok_or(ColumnError::Mismatch)?;
            parents.push(parent.clone());
            array = parent.columns().get(member).ok_or(ColumnError::Mismatch)?;
        }
        Ok(Column { parents, array: array.clone() })
    }
}

/// Child indices from the top to the field at `pointer`; none when it is not there.
fn follow(top: &Fields, pointer: &[String]) -> Result<Option<Vec<usize>>, ColumnError> {
    let nothing_below = Fields::empty();
    let mut level = top;
    let mut found: Option<&ArrowField> = None;
    let mut path = Vec::with_capacity(pointer.len());
    for segment in pointer {
        let mut named = level.iter().enumerate().filter(|(_, field)| field.name() == segment);
        let Some((index, field)) = named.next() else { return Ok(None) };
        if named.next().is_some() {
            return Err(ColumnError::Duplicate { column: pointer.join(".") });
        }
        path.push(index);
        found = Some(field);
        level = match field.data_type() {
            DataType::Struct(members) => members,
            _ => &nothing_below,
        };
    }
    match found {
        None => Ok(None),
        Some(field) if supported(field.data_type()) => Ok(Some(path)),
        Some(field) => Err(ColumnError::Unsupported { column: pointer.join("."), kind: field.data_type().to_string() }),
    }
}

/// One wanted column and the structs around it.
#[derive(Clone, Debug)]
struct Column {
    parents: Vec<StructArray>,
    array: ArrayRef,
}

/// The rows of one record batch.
#[derive(Clone, Debug)]
pub struct ArrowRows {
    columns: Vec<Option<Column>>,
    limits: Limits,
    unknown_columns: u64,
}

impl ArrowRows {
    /// Adds row `row` of the batch to `into`; gives the bytes of its cells.
    ///
    /// # Errors
    /// [`RejectionReason::Oversized`] when the cells together exceed the limit; `into` is then as it was.
    ///
    /// # Panics
    /// When the batch has no such row.
    pub fn decode(&self, row: usize, coordinate: Coordinate, into: &mut RawBatch) -> Result<u64, RejectionReason> {
        into.push_row(coordinate);
        let before = into.arena_bytes();
        for (attribute, column) in self.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            if let Err(rejection) = self.cell(column, row, attribute, before, into) {
                into.pop_row();
                return Err(rejection);
            }
        }
        into.unknown_cells += self.unknown_columns;
        Ok((into.arena_bytes() - before) as u64)
    }

    fn cell(
        &self,
        column: &Column,
        row: usize,
        attribute: usize,
        before: usize,
        into: &mut RawBatch,
    ) -> Result<(), RejectionReason> {
        if column.parents.iter().any(|parent| parent.is_null(row)) {
            return Ok(());
        }
        let mut scratch = String::new();
        let token = token(&column.array, row, &mut scratch);
        if let Token::Text(text) | Token::Structure(text) = token
            && into.arena_bytes() - before + text.len() > self.limits.max_record_bytes
        {
            return Err(RejectionReason::Oversized);
        }
        into.set(attribute, token);
        Ok(())
    }
}

#[cfg(test)]
#[path = "arrow_tests.rs"]
mod tests;
