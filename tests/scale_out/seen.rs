//! Released lines as seen by readers of committed records, and the batches from their markers.

use std::collections::BTreeMap;

/// Line as seen by a reader.
#[derive(Clone, Debug)]
pub struct Seen {
    pub offset: i64,
    /// Timestamp of its batch, milliseconds.
    pub stamp: i64,
    pub text: String,
}

/// Names of the instances that committed batches, by timestamp, one entry per batch.
pub type Batches = BTreeMap<i64, Vec<String>>;
