//! Join of profile cells to records.

use super::profile_table::ProfileTable;
use hashbrown::HashMap;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{ABSENT, Code, Codebook, NULL, UNCOVERED};

/// Counts of one join over a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProfileJoinCounts {
    /// Cells missing in their hierarchies.
    pub uncovered: u64,
    /// Records without a profile.
    pub unjoined: u64,
}

/// Sets `attributes` from the profile of each subject, or to missing; absent cells of `waiting` rows stay.
pub fn join(
    table: &ProfileTable,
    attributes: &[usize],
    batch: &mut CodeBatch,
    books: &mut [Codebook],
    waiting: bool,
) -> ProfileJoinCounts {
    let mut met = ProfileJoinCounts::default();
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
