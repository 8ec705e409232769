//! Input and output types of the decoders: fields, limits and the [`RecordDecoder`] trait.

use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_core::values::rejection::RejectionReason;
use throng_core::values::schema::Attribute;

/// Location of one attribute in a record.
///
/// JSON and Parquet follow the segments downward: `["heart", "rate"]` is the JSON pointer `/heart/rate`, and a
/// segment such as `0` selects an array element. In CSV, the segments joined by `.` are the column name. By default,
/// the position of a field in the list given to a codec is the attribute's column in the batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldPath {
    /// Segments from the top of the record downward; empty if the field is the whole record.
    pub pointer: Vec<String>,
    /// Number of leading segments that lead to an array, for a field in each of its elements. The other segments
    /// start at the element. All such fields of a record must use the same array.
    pub elements: Option<usize>,
}

impl FieldPath {
    /// Returns a field at the top level of a record.
    #[must_use]
    pub fn top_level(name: &str) -> Self {
        Self { pointer: vec![name.to_owned()], elements: None }
    }

    /// Returns the field at a path of segments.
    #[must_use]
    pub fn from_segments(pointer: Vec<String>) -> Self {
        Self { pointer, elements: None }
    }

    /// Returns the field of an attribute in a nested record.
    #[must_use]
    pub fn for_attribute_path(attribute: &Attribute) -> Self {
        let (mut pointer, elements) = (attribute.segments(), attribute.elements);
        if let Some(array) = elements {
            // This segment is the wildcard for every element.
            pointer.remove(array);
        }
        Self { pointer, elements }
    }

    /// Returns the name of the column that holds this field in a flat file.
    #[must_use]
    pub fn flat_column_name(&self) -> String {
        self.pointer.join(".")
    }
}

/// Size limits of a record; larger records are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Largest record in bytes, without its line break.
    pub max_record_bytes: usize,
    /// Deepest nesting of JSON objects and arrays; the message itself is depth 1.
    pub max_depth: usize,
    /// Maximum number of records in the array of one message.
    pub max_elements: usize,
    /// Maximum bytes of the cells shared by all elements, counted once per element after the first.
    pub max_repeated_bytes: u64,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self { max_record_bytes: 1 << 20, max_depth: 32, max_elements: 10_000, max_repeated_bytes: 64 << 20 }
    }
}

impl DecodeLimits {
    /// Returns the limits for files that are read whole: the number of elements is unlimited, because the caller
    /// applies its own bounds.
    #[must_use]
    pub fn for_whole_files() -> Self {
        Self { max_elements: usize::MAX, max_repeated_bytes: u64::MAX, ..Self::default() }
    }
}

/// Handling of cells that the schema does not define.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownCellPolicy {
    /// Drops them and counts them in [`RawBatch::unknown_cells`].
    #[default]
    Drop,
    /// JSON: refuses the record. CSV and Parquet: refuses the file when it is opened.
    Refuse,
}

/// Fields of some of a batch's attributes, each with its attribute number.
pub type NumberedFields = [(usize, FieldPath)];

/// Decodes one record at a time, in the form of a Kafka message.
pub trait RecordDecoder: std::fmt::Debug + Send + Sync {
    /// Fills the last row of `into` with the cells of the record in `payload`. If the fields select array elements as
    /// records, the row becomes [one row per element](RawBatch::explode), and no more cells can be set.
    ///
    /// # Errors
    /// Returns the rejection reason. The rows and the count of unknown cells are then undefined.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason>;

    /// Adds the record in `payload` to `into`, as one row or as one row per element.
    ///
    /// # Errors
    /// Returns the rejection reason. `into` then has its previous rows and its previous count of unknown cells.
    fn decode(&self, payload: &[u8], coordinate: RecordPosition, into: &mut RawBatch) -> Result<(), RejectionReason> {
        push_decoded_row(coordinate, into, |into| self.fill(payload, into))
    }
}

/// Adds a row to `into` and fills it with `fill`; removes the row if `fill` fails.
///
/// # Errors
/// Returns the error of `fill`. `into` then has its previous rows and its previous count of unknown cells.
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
