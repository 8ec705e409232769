//! When a batch is closed: limits that the reader goes by.

use crate::config::Config;
use std::time::Duration;

/// When a batch is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Records from which on a batch is closed.
    pub max_records: u64,
    /// Bytes of payload from which on a batch is closed.
    pub max_bytes: u64,
    /// Age from which on a batch of enough subjects is closed.
    pub max_wait: Duration,
    /// Age at which any batch is closed.
    pub max_age: Duration,
    /// Distinct subjects below which `max_wait` does not close a batch.
    pub min_subjects: usize,
}

impl Limits {
    /// As configured.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            max_records: config.batch.max_records as u64,
            max_bytes: config.batch.max_bytes,
            max_wait: config.batch.max_wait,
            max_age: config.batch.max_age,
            min_subjects: config.privacy.crowd(),
        }
    }
}
