//! What an engine has of the ledger that instances share, and what it takes in at once.

use super::clock::Moment;
use crate::io::shared_ledger::{Feed, Heard, Places, SharedTerms};
use crate::ledger::delta::LedgerDelta;
use crate::ledger::shared::{OwnTime, Present, own_time};
use crate::telemetry::{ForeignIgnored, ForeignReason, SharedLedgerHeard, Telemetry};

/// The shared ledger, as an engine takes part in it.
#[derive(Default)]
pub(super) struct Sharing(pub Option<Shared>);

/// What an engine that takes part has of it.
pub(super) struct Shared {
    /// What is heard.
    pub feed: Feed,
    /// What the releases must mean.
    pub terms: SharedTerms,
    /// How far clocks may be apart.
    pub skew_ms: i64,
    /// How long the highest that the clock has been is kept, at least.
    pub period_ms: i64,
    /// The first batch need not wait any more.
    pub is_ready: bool,
    /// The shard of the ledger that is cleared of what is past with the next delta: an instance that releases nothing itself clears
    /// none otherwise.
    pub next_shard: usize,
}

/// What is taken in at once.
#[derive(Default)]
pub(super) struct Taken {
    /// With their times here.
    pub deltas: Vec<LedgerDelta>,
    /// How far the topic has been read with them.
    pub places: Option<Places>,
    /// Bytes of their records.
    pub bytes: u64,
}

impl Taken {
    /// What has been heard, with the time that it has here; nothing of it where that cannot be told, or is past.
    pub fn take(&mut self, heard: Heard, now: Present, skew_ms: i64, erased_ms: i64, telemetry: &Telemetry) {
        let Heard { delta, instance, bytes, places } = heard;
        self.places = Some(places);
        self.bytes += bytes;
        let ignored = |reason| ForeignIgnored { instance: &instance, reason }.emit(telemetry);
        if erased_ms > 0 && delta.stamp_ms <= erased_ms.saturating_add(skew_ms) {
            return ignored(ForeignReason::Erased);
        }
        match own_time(now, delta.stamp_ms, skew_ms) {
            OwnTime::At(time) => {
                SharedLedgerHeard { bytes }.emit(telemetry);
                self.deltas.push(delta.at(time));
            }
            OwnTime::Before => {}
            OwnTime::Future => ignored(ForeignReason::Clock),
        }
    }
}

impl From<Moment> for Present {
    fn from(now: Moment) -> Self {
        Self { wall_ms: now.clock_ms, age_ms: now.age_ms }
    }
}
