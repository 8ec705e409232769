//! Released lines as seen by readers of committed records, and the batches from their markers.

use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Seen {
    pub offset: i64,
    pub stamp: i64,
    pub text: String,
}

pub type Batches = BTreeMap<i64, Vec<String>>;
