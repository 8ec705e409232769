//! The cells that profiles bring to records.

use super::table::Table;
use hashbrown::HashMap;
use throng_core::values::codebook::{ABSENT, Code, Codebook, NULL, UNCOVERED};
use throng_core::values::table::Batch;

/// What joining has met in a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct JoinedCells {
    /// Cells that their hierarchies miss.
    pub uncovered: u64,
    /// Records without a profile.
    pub unjoined: u64,
}

/// Sets the cells of `attributes` in `batch`: those of the profile of each record's subject, or missing ones. `waiting` rows have been
/// held: cells that nothing needs any more stay absent.
pub fn join(
    table: &Table,
    attributes: &[usize],
    batch: &mut Batch,
    books: &mut [Codebook],
    waiting: bool,
) -> JoinedCells {
    let mut met = JoinedCells::default();
    let missing = vec![NULL; attributes.len()];
    let mut known: HashMap<u64, Option<Vec<Code>>> = HashMap::new();
    for row in 0..batch.rows() {
        let codes = known.entry(batch.subjects[row]).or_insert_with_key(|person| {
            let cells = table.get(*person)?.split('\n');
            Some(attributes.iter().zip(cells).map(|(a, cell)| code_of(&mut books[*a], cell)).collect())
        });
        met.unjoined += u64::from(codes.is_none());
        for (attribute, code) in attributes.iter().zip(codes.as_ref().unwrap_or(&missing)) {
            let cell = &mut batch.columns[*attribute][row];
            if !(waiting && *cell == ABSENT) {
                *cell = *code;
                met.uncovered += u64::from(*code == UNCOVERED);
            }
        }
    }
    met
}

fn code_of(book: &mut Codebook, cell: &str) -> Code {
    if cell == "null" { NULL } else { book.encode_canonical(cell) }
}
