//! Fields and messages for the tests of the codecs.

use super::{Decoder, Field};
use throng_core::values::raw::{Coordinate, RawBatch, Token};
use throng_core::values::rejection::RejectionReason;

/// The place of every message.
pub const AT: Coordinate = Coordinate { topic: 1, partition: 4, offset: 17, element: 0 };

/// The place of one of its elements.
pub fn element(number: u32) -> Coordinate {
    Coordinate { element: number, ..AT }
}

/// A field by its pointer, in which `*` stands for each element.
pub fn field(pointer: &str) -> Field {
    let mut pointer: Vec<String> = pointer.split('/').skip(1).map(str::to_owned).collect();
    let elements = pointer.iter().position(|segment| segment == "*");
    if let Some(array) = elements {
        pointer.remove(array);
    }
    Field { pointer, elements }
}

/// Fields by their pointers, numbered from 0.
pub fn fields(pointers: &[&str]) -> Vec<(usize, Field)> {
    pointers.iter().map(|pointer| field(pointer)).enumerate().collect()
}

pub fn cells(batch: &RawBatch, row: usize) -> Vec<Token<'_>> {
    (0..batch.width()).map(|attribute| batch.token(row, attribute)).collect()
}

/// The rows of one message, and its elements that are refused. A message that is refused leaves nothing.
pub type Read = (RawBatch, Vec<(Coordinate, RejectionReason)>);

pub fn read(codec: &dyn Decoder, width: usize, payload: &[u8]) -> Result<Read, RejectionReason> {
    let mut batch = RawBatch::new(width);
    let outcome = codec.decode(payload, AT, &mut batch);
    let refused = batch.take_refused();
    if outcome.is_err() {
        assert_eq!((batch.rows(), refused.len(), batch.unknown_cells), (0, 0, 0), "a refused message left something");
    }
    outcome.map(|()| (batch, refused))
}

/// The row of one message, and how many of its values no field leads to.
pub fn row(codec: &dyn Decoder, width: usize, payload: &[u8]) -> Result<(RawBatch, u64), RejectionReason> {
    read(codec, width, payload).map(|(batch, _)| {
        let unknown = batch.unknown_cells;
        (batch, unknown)
    })
}
