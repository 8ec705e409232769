//! Arrow columns, such as those of Parquet files, as raw cells.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Field as ArrowField, Fields, Schema};

use super::arrow_text::{has_textual_form, token};
use super::{DecodeLimits, FieldPath, UnknownCellPolicy};
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_core::values::rejection::RejectionReason;

/// Column that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum ArrowColumnError {
    #[error(
        "column \"{column}\" has the type {kind}, which has no text form: cast it (a duration to seconds), or exclude it from the schema (from the columns, --columns)"
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
    #[error("column \"{column}\" and the schema's \"{wanted}\" differ only by case: use one spelling")]
    CaseDiffers { column: String, wanted: String },
    #[error("the columns read differ from those announced: the file is damaged or was replaced while it was read")]
    Mismatch,
}

/// Finds the cells of the fields in record batches of one Arrow schema.
#[derive(Clone, Debug)]
pub struct ArrowCodec {
    /// Child indices per attribute, from a top-level column.
    paths: Vec<Option<Vec<usize>>>,
    roots: Vec<usize>,
    limits: DecodeLimits,
    unknown_columns: u64,
    unknown: Vec<String>,
}

impl ArrowCodec {
    /// Resolves the fields in `schema`.
    ///
    /// - Integers, floats, decimals and durations (in seconds) are numbers; `NaN` and infinities are untyped text.
    /// - Texts, dates, times and timestamps are text, or untyped outside the calendar.
    /// - Sixteen fixed-size bytes are a UUID; other bytes are UTF-8 text or Base64.
    /// - Lists, maps and structs are JSON.
    ///
    /// # Errors
    /// Fails for a column without textual form, or a name that is ambiguous or differs from a field only by case. Also
    /// fails for a refused unknown column, or if no field has a column.
    pub fn new(
        schema: &Schema,
        fields: &[FieldPath],
        limits: DecodeLimits,
        unknown: UnknownCellPolicy,
    ) -> Result<Self, ArrowColumnError> {
        let top = schema.fields();
        let mut paths = Vec::with_capacity(fields.len());
        for field in fields {
            paths.push(resolve_column_path(top, &field.pointer)?);
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
                return Err(ArrowColumnError::CaseDiffers { column, wanted });
            }
        }
        if roots.is_empty() && !fields.is_empty() {
            return Err(ArrowColumnError::NothingKnown { columns: top.len() });
        }
        let stranger = (0..top.len()).find(|index| !roots.contains(index));
        if let (Some(index), UnknownCellPolicy::Refuse) = (stranger, unknown) {
            return Err(ArrowColumnError::Unknown { column: top[index].name().clone() });
        }
        let unknown: Vec<String> =
            (0..top.len()).filter(|index| !roots.contains(index)).map(|index| top[index].name().clone()).collect();
        Ok(Self { unknown_columns: unknown.len() as u64, unknown, paths, roots, limits })
    }

    /// Returns the top-level columns to read, ascending.
    #[must_use]
    pub fn roots(&self) -> &[usize] {
        &self.roots
    }

    /// Returns the attributes without a column, ascending.
    #[must_use]
    pub fn absent(&self) -> Vec<usize> {
        (0..self.paths.len()).filter(|&attribute| self.paths[attribute].is_none()).collect()
    }

    /// Returns the names of unused columns.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Returns the rows of `batch`, which must have exactly the columns [`roots`](Self::roots).
    ///
    /// # Errors
    /// Fails with [`ArrowColumnError::Mismatch`] for other columns.
    pub fn rows(&self, batch: &RecordBatch) -> Result<ArrowRows, ArrowColumnError> {
        let mut columns = Vec::with_capacity(self.paths.len());
        for path in &self.paths {
            columns.push(path.as_ref().map(|path| self.column(batch, path)).transpose()?);
        }
        Ok(ArrowRows { columns, limits: self.limits, unknown_columns: self.unknown_columns })
    }

    fn column(&self, batch: &RecordBatch, path: &[usize]) -> Result<SelectedArrowColumn, ArrowColumnError> {
        let root = self.roots.binary_search(&path[0]).map_err(|_| ArrowColumnError::Mismatch)?;
        let mut array = batch.columns().get(root).ok_or(ArrowColumnError::Mismatch)?;
        let mut parents = Vec::new();
        for &member in &path[1..] {
            let parent = array.as_struct_opt().ok_or(ArrowColumnError::Mismatch)?;
            parents.push(parent.clone());
            array = parent.columns().get(member).ok_or(ArrowColumnError::Mismatch)?;
        }
        Ok(SelectedArrowColumn { parents, array: array.clone() })
    }
}

fn resolve_column_path(top: &Fields, pointer: &[String]) -> Result<Option<Vec<usize>>, ArrowColumnError> {
    let nothing_below = Fields::empty();
    let mut level = top;
    let mut found: Option<&ArrowField> = None;
    let mut path = Vec::with_capacity(pointer.len());
    for segment in pointer {
        let mut named = level.iter().enumerate().filter(|(_, field)| field.name() == segment);
        let Some((index, field)) = named.next() else { return Ok(None) };
        if named.next().is_some() {
            return Err(ArrowColumnError::Duplicate { column: pointer.join(".") });
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
        Some(field) if has_textual_form(field.data_type()) => Ok(Some(path)),
        Some(field) => {
            Err(ArrowColumnError::Unsupported { column: pointer.join("."), kind: field.data_type().to_string() })
        }
    }
}

#[derive(Clone, Debug)]
struct SelectedArrowColumn {
    parents: Vec<StructArray>,
    array: ArrayRef,
}

/// Rows of one record batch.
#[derive(Clone, Debug)]
pub struct ArrowRows {
    columns: Vec<Option<SelectedArrowColumn>>,
    limits: DecodeLimits,
    unknown_columns: u64,
}

impl ArrowRows {
    /// Adds a row to `into`; returns the bytes of its cells.
    ///
    /// # Errors
    /// Fails with [`RejectionReason::Oversized`]; `into` is then unchanged.
    ///
    /// # Panics
    /// Panics if the batch has no such row.
    pub fn decode(&self, row: usize, coordinate: RecordPosition, into: &mut RawBatch) -> Result<u64, RejectionReason> {
        into.push_row(coordinate);
        let before = into.arena_bytes();
        for (attribute, column) in self.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            if let Err(rejection) = self.write_cell_token(column, row, attribute, before, into) {
                into.pop_row();
                return Err(rejection);
            }
        }
        into.unknown_cells += self.unknown_columns;
        Ok((into.arena_bytes() - before) as u64)
    }

    fn write_cell_token(
        &self,
        column: &SelectedArrowColumn,
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
        if let RawToken::Text(text) | RawToken::Structure(text) = token
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
