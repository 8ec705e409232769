//! What a generated stream of wearable records is like.

use crate::generate::layout::Layout;

/// What a stream of wearable records is made of. The same settings give the same bytes on every machine.
#[derive(Clone, Debug)]
pub struct WearableSettings {
    /// The same seed gives the same records.
    pub seed: u64,
    /// Number of people, 1 to 10,000,000. Each takes about 500 bytes of memory.
    pub subjects: u32,
    /// Zipf exponent of the number of records per subject, 0 (even) to 4.
    pub skew: f64,
    /// Share of readings that are lost, 0 to 0.9, before the device's own weaknesses. At 0 every device has every
    /// sensor and every record all 25 attributes.
    pub missing: f64,
    /// From this record on (counted from 0), other subjects take over: older, living elsewhere, with newer devices.
    pub shift_at: Option<u64>,
    /// Time of the first record, in seconds since 1970.
    pub start_seconds: i64,
    /// Mean time between two records of the stream, in microseconds.
    pub interval_micros: u64,
    /// How records are written down.
    pub layout: Layout,
}

impl Default for WearableSettings {
    fn default() -> Self {
        Self {
            seed: 0,
            subjects: 10_000,
            skew: 0.6,
            missing: 0.03,
            shift_at: None,
            start_seconds: 1_767_621_600, // Monday 2026-01-05, 14:00 UTC: breakfast in the east, the end of the night in the west
            interval_micros: 100_000,
            layout: Layout::Flat,
        }
    }
}
