//! Encodes raw tokens as a typed, dictionary-encoded batch.

use crate::stream::input_batch::InputBatch;
use crate::stream::release_sink::RejectedRecord;
use crate::values::code_batch::CodeBatch;
use crate::values::codebook::{ABSENT, Codebook, NULL};
use crate::values::rejection::RejectionReason;
use crate::values::resolved_cells::ResolvedCells;
use crate::values::schema::Schema;
use crate::values::subject_digest::{SubjectDigester, coordinate_subject};
use rayon::prelude::*;

/// Encodes the rows of `input`; a row with a misfit is returned as rejected. Identifiers and the subject are not
/// encoded. `absent_as_null` turns absent cells into missing ones.
pub fn encode(
    input: &InputBatch,
    schema: &Schema,
    books: &mut [Codebook],
    subjects: Option<&mut SubjectDigester>,
    absent_as_null: bool,
) -> (CodeBatch, Vec<RejectedRecord>) {
    let rows = input.raw.rows();
    let mut failed: Vec<(u32, usize)> = Vec::new();
    let resolved = ResolvedCells::from_raw_batch(&input.raw, &schema.attributes);
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
    let mut batch = CodeBatch::new(0);
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
    // One dead letter per record, for its first faulty attribute.
    failed.sort_unstable();
    failed.dedup_by_key(|(row, _)| *row);
    let mut marks = vec![true; rows];
    let mut rejected = Vec::with_capacity(failed.len());
    for (row, attribute) in failed {
        marks[row as usize] = false;
        rejected.push(RejectedRecord {
            coordinate: batch.coordinates[row as usize],
            reason: RejectionReason::WrongType,
            attribute: Some(attribute),
        });
    }
    batch.retain_rows(&marks);
    (batch, rejected)
}
