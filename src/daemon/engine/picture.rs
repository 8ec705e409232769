//! The privacy picture of a batch as it came: how far its records stand out before anything is done to them.

use crate::records::codebook::Codebook;
use crate::records::subject::NO_SUBJECT;
use crate::records::table::Batch;
use crate::telemetry::RiskPicture;

/// Prosecutor's risk of the records of `batch` over their raw tuples on `quasi`: 1 / subjects that share the tuple in
/// this batch. A record without a subject is alone.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub fn risk_before(batch: &Batch, quasi: &[usize], books: &[Codebook], k: usize) -> RiskPicture {
    let rows = batch.rows();
    if rows == 0 {
        return RiskPicture::default();
    }
    let mut keys = vec![0u128; rows];
    for &a in quasi {
        let digests = books[a].digests(0);
        for (key, code) in keys.iter_mut().zip(&batch.columns[a]) {
            *key = key.wrapping_add(digests[*code as usize]);
        }
    }
    let mut people: Vec<(u128, u64)> = keys.iter().copied().zip(batch.subjects.iter().copied()).collect();
    people.sort_unstable();
    let (mut sum, mut highest, mut below) = (0.0, 0.0f64, 0usize);
    for class in people.chunk_by(|a, b| a.0 == b.0) {
        let mut subjects: Vec<u64> = class.iter().map(|p| p.1).filter(|s| *s != NO_SUBJECT).collect();
        subjects.dedup();
        let risk = 1.0 / subjects.len().max(1) as f64;
        sum += risk * class.len() as f64;
        highest = highest.max(risk);
        if subjects.len() < k {
            below += class.len();
        }
    }
    RiskPicture { highest, average: sum / rows as f64, share_below_k: below as f64 / rows as f64 }
}
