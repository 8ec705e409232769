//! `[batch]`: when a micro-batch is closed.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity;

/// When a micro-batch is closed: by records, by bytes or by time, whichever comes first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Batch {
    /// A batch of this many records is closed. Larger batches lose less information and wait longer. Without it a file is one batch as
    /// far as memory goes (`batch.max_bytes`, `process.memory_limit`): whoever reads the output sees it whole.
    #[schemars(example = 10_000, extend("minimum" = 1))]
    pub max_records: usize,
    /// A batch of this many payload bytes is closed (without it, where a file is one batch, one of 2GiB, or a sixteenth of the memory where that is less); what encloses the elements of an array counts for each of them. At least `source.max_record_bytes`, at most 2GiB.
    #[serde(with = "quantity::size")]
    #[schemars(with = "quantity::Size", example = &"64MiB", extend("maximum" = 2_147_483_648_u32))]
    pub max_bytes: u64,
    /// A batch this old is closed, if it has as many subjects as `privacy.k` and `privacy.colluders` together.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"1s")]
    pub max_wait: Duration,
    /// A batch that is still below that at this age is settled: its records are suppressed with reason `quiet`.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"5m")]
    pub max_age: Duration,
    /// The files of a job are one batch, as far as memory goes: `max_records` is not given.
    #[serde(skip)]
    #[schemars(skip)]
    pub is_whole: bool,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            max_records: 10_000,
            max_bytes: 64 << 20,
            max_wait: Duration::from_secs(1),
            max_age: Duration::from_mins(5),
            is_whole: false,
        }
    }
}
