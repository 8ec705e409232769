//! What a decoder is told of a record, and what it gives.

use crate::records::raw::{Coordinate, RawBatch};
use crate::telemetry::RejectionReason;

/// Where one attribute is found in a record.
///
/// JSON and Parquet follow the segments downward (`["heart", "rate"]` is the JSON pointer `/heart/rate`; a segment
/// such as `0` picks an element of an array). In CSV the segments joined by `.` are the name of a column.
/// The position of a field in the list given to a codec is the attribute's column in the batch, unless the codec is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// The segments from the top of the record downward; none where the field is the whole.
    pub pointer: Vec<String>,
}

impl Field {
    /// A field at the top level of a record.
    #[must_use]
    pub fn flat(name: &str) -> Self {
        Self { pointer: vec![name.to_owned()] }
    }

    /// The name of the column that holds this field in a flat file.
    #[must_use]
    pub fn column(&self) -> String {
        self.pointer.join(".")
    }
}

/// What a record may cost before it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest record in bytes, without its line break.
    pub max_record_bytes: usize,
    /// Deepest nesting of JSON objects and arrays; the record itself is depth 1.
    pub max_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_record_bytes: 1 << 20, max_depth: 32 }
    }
}

/// What becomes of cells that the schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// Left out and counted in [`RawBatch::unknown_cells`](crate::records::raw::RawBatch::unknown_cells).
    #[default]
    Drop,
    /// JSON: the record is refused. CSV and Parquet: the file is refused when it is opened.
    Refuse,
}

/// Fields of some of a batch's attributes, each with the number of its attribute.
pub type Fields = [(usize, Field)];

/// Decodes one record at a time, as a topic holds them.
pub trait Decoder: std::fmt::Debug + Send + Sync {
    /// Sets the cells of the row of `into` that was opened last to those of the record in `payload`.
    ///
    /// # Errors
    /// The rejection; the row and the count of unknown cells are then in between.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason>;

    /// Adds the record in `payload` as one row of `into`.
    ///
    /// # Errors
    /// The rejection; `into` then has the rows and the count of unknown cells that it had before.
    fn decode(&self, payload: &[u8], coordinate: Coordinate, into: &mut RawBatch) -> Result<(), RejectionReason> {
        added(coordinate, into, |into| self.fill(payload, into))
    }
}

/// Adds a row to `into` and has it filled; takes it back where that fails.
///
/// # Errors
/// What `fill` says; `into` then has the rows and the count of unknown cells that it had before.
pub fn added<E>(
    coordinate: Coordinate,
    into: &mut RawBatch,
    fill: impl FnOnce(&mut RawBatch) -> Result<(), E>,
) -> Result<(), E> {
    let unknown_before = into.unknown_cells;
    into.push_row(coordinate);
    let outcome = fill(into);
    if outcome.is_err() {
        into.pop_row();
        into.unknown_cells = unknown_before;
    }
    outcome
}
