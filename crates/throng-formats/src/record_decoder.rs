//! [`RecordDecoder`] with its fields and limits.

use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_core::values::rejection::RejectionReason;
use throng_core::values::schema::Attribute;

/// Location of one attribute in a record.
///
/// In JSON and Parquet, `["heart", "rate"]` is the JSON pointer `/heart/rate`, and `0` selects an array element. In
/// CSV, `.` joins the segments to the column name. In a list of fields, the position is the attribute's column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldPath {
    /// Segments from the top of the record; empty for the whole record.
    pub pointer: Vec<String>,
    /// Number of leading segments to an array, for a field in each element. All such fields use the same array.
    pub elements: Option<usize>,
}

impl FieldPath {
    /// Returns a top-level field.
    #[must_use]
    pub fn top_level(name: &str) -> Self {
        Self { pointer: vec![name.to_owned()], elements: None }
    }

    /// Returns the field at a path.
    #[must_use]
    pub fn from_segments(pointer: Vec<String>) -> Self {
        Self { pointer, elements: None }
    }

    /// Returns the field of an attribute in a nested record.
    #[must_use]
    pub fn for_attribute_path(attribute: &Attribute) -> Self {
        let (mut pointer, elements) = (attribute.segments(), attribute.elements);
        if let Some(array) = elements {
            // Wildcard for every element.
            pointer.remove(array);
        }
        Self { pointer, elements }
    }

    /// Returns the column name of this field in a flat file.
    #[must_use]
    pub fn flat_column_name(&self) -> String {
        self.pointer.join(".")
    }
}

/// Size limits of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Largest record in bytes, without its line break.
    pub max_record_bytes: usize,
    /// Deepest nesting; the message has depth 1.
    pub max_depth: usize,
    /// Maximum number of records per message.
    pub max_elements: usize,
    /// Maximum bytes of repeated cells of all elements.
    pub max_repeated_bytes: u64,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self { max_record_bytes: 1 << 20, max_depth: 32, max_elements: 10_000, max_repeated_bytes: 64 << 20 }
    }
}

impl DecodeLimits {
    /// Returns the limits for whole files, with any number of elements.
    #[must_use]
    pub fn for_whole_files() -> Self {
        Self { max_elements: usize::MAX, max_repeated_bytes: u64::MAX, ..Self::default() }
    }
}

/// Handling of cells outside the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownCellPolicy {
    /// Drops them and counts them in [`RawBatch::unknown_cells`].
    #[default]
    Drop,
    /// Refuses a JSON record, or a CSV or Parquet file when it is opened.
    Refuse,
}

/// Fields with their attribute numbers.
pub type NumberedFields = [(usize, FieldPath)];

/// Decodes one record at a time.
pub trait RecordDecoder: std::fmt::Debug + Send + Sync {
    /// Fills the last row of `into`, or splits it into [one row per element](RawBatch::explode).
    ///
    /// # Errors
    /// Returns the rejection reason; `into` is then undefined.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason>;

    /// Adds the record to `into`, as one row or one per element.
    ///
    /// # Errors
    /// Returns the rejection reason; `into` is then unchanged.
    fn decode(&self, payload: &[u8], coordinate: RecordPosition, into: &mut RawBatch) -> Result<(), RejectionReason> {
        push_decoded_row(coordinate, into, |into| self.fill(payload, into))
    }
}

/// Adds a row to `into` with `fill`.
///
/// # Errors
/// Returns the error of `fill`; `into` is then unchanged.
pub fn push_decoded_row<E>(
    coordinate: RecordPosition,
    into: &mut RawBatch,
    fill: impl FnOnce(&mut RawBatch) -> Result<(), E>,
) -> Result<(), E> {
    let before = into.mark();
    into.push_row(coordinate);
    let outcome = fill(into);
    if outcome.is_err() {
        into.truncate_to(before);
    }
    outcome
}
