//! From raw tokens to codes: the typed, rounded, dictionary-encoded batch.

use crate::io::input::InputBatch;
use crate::release::sink::Rejected;
use crate::telemetry::RejectionReason;
use rayon::prelude::*;
use throng_core::values::based::Resolved;
use throng_core::values::codebook::{ABSENT, Codebook, NULL};
use throng_core::values::schema::Schema;
use throng_core::values::subject::{Subjects, coordinate_subject};
use throng_core::values::table::Batch;

/// Encodes the rows of `input`; rows with a cell that its type cannot take are left out and returned as rejected.
/// Identifiers and the subject are not encoded: nothing downstream ever sees them.
///
/// With `absent_as_null` an absent cell is a missing one: for outputs that cannot tell them apart.
pub fn encode(
    input: &InputBatch,
    schema: &Schema,
    books: &mut [Codebook],
    subjects: Option<&mut Subjects>,
    absent_as_null: bool,
) -> (Batch, Vec<Rejected>) {
    let rows = input.raw.rows();
    let mut failed: Vec<(u32, usize)> = Vec::new();
    let resolved = Resolved::of(&input.raw, &schema.attributes);
    let columns: Vec<(Vec<u32>, Vec<u32>)> = books
        .par_iter_mut()
        .enumerate()
        .map(|(attribute, book)| {
            if !schema.attributes[attribute].role.is_releasable() {
                return (vec![ABSENT; rows], Vec::new());
            }
            let (mut codes, mut failures) = (Vec::with_capacity(rows), Vec::new());
            let column = resolved.as_ref().and_then(|resolved| resolved.column(attribute));
            let (cells, column) = column.unwrap_or((&input.raw, attribute));
            book.encode_column(cells, column, &mut codes, &mut failures);
            if absent_as_null {
                for code in &mut codes {
                    if *code == ABSENT {
                        *code = NULL;
                    }
                }
            }
            (codes, failures.into_iter().map(|(row, _)| row).collect())
        })
        .collect();
    let mut batch = Batch::new(0);
    for (attribute, (codes, failures)) in columns.into_iter().enumerate() {
        failed.extend(failures.into_iter().map(|row| (row, attribute)));
        batch.columns.push(codes);
    }
    batch.coordinates = input.raw.coordinates().to_vec();
    match (subjects, schema.subject) {
        (Some(subjects), Some(attribute)) => {
            let mut failures = Vec::new();
            subjects.digest_column(&input.raw, attribute, &mut batch.subjects, &mut failures);
            failed.extend(failures.into_iter().map(|(row, _)| (row, attribute)));
        }
        _ => batch.subjects = batch.coordinates.iter().map(|c| coordinate_subject(*c)).collect(),
    }
    if failed.is_empty() {
        return (batch, Vec::new());
    }
    // One dead letter a record, for the first attribute at fault.
    failed.sort_unstable();
    failed.dedup_by_key(|(row, _)| *row);
    let mut marks = vec![true; rows];
    let mut rejected = Vec::with_capacity(failed.len());
    for (row, attribute) in failed {
        marks[row as usize] = false;
        rejected.push(Rejected {
            coordinate: batch.coordinates[row as usize],
            reason: RejectionReason::WrongType,
            attribute: Some(attribute),
        });
    }
    batch.retain_rows(&marks);
    (batch, rejected)
}
