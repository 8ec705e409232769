//! What an instance tells the others of a batch, with the batch's own transaction.

use super::record::{Body, Header};
use super::terms::SharedTerms;
use crate::ledger::delta::LedgerDelta;
use crate::ledger::shared::SharedDelta;
use crate::records::sealer::Sealer;
use std::sync::Arc;

/// Bytes of entries in one record, about: well below what brokers take by default.
const PART: usize = 512 * 1024;

/// Tells the other instances of a group what a batch has released.
pub struct Teller {
    /// Seals for those who have the group's secret.
    pub sealer: Sealer,
    /// Name of the group.
    pub group: String,
    /// Identity of this state.
    pub instance: String,
    /// What the releases mean.
    pub terms: SharedTerms,
    /// The wall clock, milliseconds since 1970.
    pub wall: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Records have been made by this process: the first batch says hello, whatever it releases.
    pub has_spoken: bool,
}

impl Teller {
    /// The records that go out with batch number `sequence`, which is stamped `clock_ms`; none where there is nothing to tell.
    ///
    /// What is stamped here is the present, and no later than the batch: stamps of batches never fall, and go on from where a wall
    /// clock was that has been set back since.
    #[must_use]
    pub fn records(&self, delta: &LedgerDelta, sequence: u64, clock_ms: i64) -> Vec<Vec<u8>> {
        let stamp_ms = clock_ms.min((self.wall)());
        let mut parts = SharedDelta::parts(delta, stamp_ms, PART);
        if parts.is_empty() && !self.has_spoken {
            parts.push(SharedDelta { stamp_ms, ..SharedDelta::default() });
        }
        let terms = self.terms.now();
        let seal = |(part, delta): (u16, SharedDelta)| {
            let header = Header { instance: self.instance.clone(), sequence, part };
            Body { terms, delta }.seal(&header, &self.group, &self.sealer)
        };
        (0..).zip(parts).map(seal).collect()
    }
}
