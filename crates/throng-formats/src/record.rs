//! What a decoder is told of a record, and what it gives.

use throng_core::values::raw::{Coordinate, RawBatch};
use throng_core::values::rejection::RejectionReason;
use throng_core::values::schema::Attribute;

/// Where one attribute is found in a record.
///
/// JSON and Parquet follow the segments downward (`["heart", "rate"]` is the JSON pointer `/heart/rate`; a segment
/// such as `0` picks an element of an array). In CSV the segments joined by `.` are the name of a column.
/// The position of a field in the list given to a codec is the attribute's column in the batch, unless the codec is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// The segments from the top of the record downward; none where the field is the whole.
    pub pointer: Vec<String>,
    /// Where it is found in each element of an array: so many segments lead to the array, the others go on in the element. All such
    /// fields of a record name one array.
    pub elements: Option<usize>,
}

impl Field {
    /// A field at the top level of a record.
    #[must_use]
    pub fn flat(name: &str) -> Self {
        Self { pointer: vec![name.to_owned()], elements: None }
    }

    /// A field to which these segments lead.
    #[must_use]
    pub fn at(pointer: Vec<String>) -> Self {
        Self { pointer, elements: None }
    }

    /// The field of an attribute in a nested record.
    #[must_use]
    pub fn of(attribute: &Attribute) -> Self {
        let (mut pointer, elements) = (attribute.segments(), attribute.elements);
        if let Some(array) = elements {
            // The segment that stands for every element.
            pointer.remove(array);
        }
        Self { pointer, elements }
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
    /// Deepest nesting of JSON objects and arrays; the message itself is depth 1.
    pub max_depth: usize,
    /// Elements of the array whose elements are records, in one message.
    pub max_elements: usize,
    /// Bytes of the cells that all of its elements have, once for each of them but the first.
    pub max_repeated_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_record_bytes: 1 << 20, max_depth: 32, max_elements: 10_000, max_repeated_bytes: 64 << 20 }
    }
}

impl Limits {
    /// Those of files that are read whole: a record has as many elements as its bytes allow, and who reads has bounds of his own.
    #[must_use]
    pub fn of_whole_files() -> Self {
        Self { max_elements: usize::MAX, max_repeated_bytes: u64::MAX, ..Self::default() }
    }
}

/// What becomes of cells that the schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// Left out and counted in [`RawBatch::unknown_cells`](throng_core::values::raw::RawBatch::unknown_cells).
    #[default]
    Drop,
    /// JSON: the record is refused. CSV and Parquet: the file is refused when it is opened.
    Refuse,
}

/// Fields of some of a batch's attributes, each with the number of its attribute.
pub type Fields = [(usize, Field)];

/// Decodes one record at a time, as a topic holds them.
pub trait Decoder: std::fmt::Debug + Send + Sync {
    /// Sets the cells of the row of `into` that was opened last to those of the record in `payload`. Where the fields say that its
    /// elements are records, the row becomes [one for each](RawBatch::explode), and nothing can be set any more.
    ///
    /// # Errors
    /// The rejection; the rows and the count of unknown cells are then in between.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason>;

    /// Adds the record in `payload` as one row of `into`, or as one for each of its elements.
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
    let before = into.mark();
    into.push_row(coordinate);
    let outcome = fill(into);
    if outcome.is_err() {
        into.return_to(before);
    }
    outcome
}
