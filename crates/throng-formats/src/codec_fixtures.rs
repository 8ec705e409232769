use super::{FieldPath, RecordDecoder};
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_core::values::rejection::RejectionReason;

pub const MESSAGE_POSITION: RecordPosition = RecordPosition { topic: 1, partition: 4, offset: 17, element: 0 };

pub fn element(number: u32) -> RecordPosition {
    RecordPosition { element: number, ..MESSAGE_POSITION }
}

/// `*` matches each element.
pub fn test_field(pointer: &str) -> FieldPath {
    let mut pointer: Vec<String> = pointer.split('/').skip(1).map(str::to_owned).collect();
    let elements = pointer.iter().position(|segment| segment == "*");
    if let Some(array) = elements {
        pointer.remove(array);
    }
    FieldPath { pointer, elements }
}

/// Numbers the fields from 0.
pub fn numbered_test_fields(pointers: &[&str]) -> Vec<(usize, FieldPath)> {
    pointers.iter().map(|pointer| test_field(pointer)).enumerate().collect()
}

pub fn row_tokens(batch: &RawBatch, row: usize) -> Vec<RawToken<'_>> {
    (0..batch.width()).map(|attribute| batch.token(row, attribute)).collect()
}

/// Rows of one message, and its refused elements.
pub type DecodedMessage = (RawBatch, Vec<(RecordPosition, RejectionReason)>);

pub fn decode_test_message(
    codec: &dyn RecordDecoder,
    width: usize,
    payload: &[u8],
) -> Result<DecodedMessage, RejectionReason> {
    let mut batch = RawBatch::new(width);
    let outcome = codec.decode(payload, MESSAGE_POSITION, &mut batch);
    let refused = batch.take_refused();
    if outcome.is_err() {
        assert_eq!((batch.rows(), refused.len(), batch.unknown_cells), (0, 0, 0), "a refused message left something");
    }
    outcome.map(|()| (batch, refused))
}

/// Returns the rows and the number of unknown values.
pub fn row(codec: &dyn RecordDecoder, width: usize, payload: &[u8]) -> Result<(RawBatch, u64), RejectionReason> {
    decode_test_message(codec, width, payload).map(|(batch, _)| {
        let unknown = batch.unknown_cells;
        (batch, unknown)
    })
}
