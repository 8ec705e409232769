//! The disk of a state, as it is watched.

use super::Store;
use crate::daemon::state::disk;
use crate::telemetry::Telemetry;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl Store {
    /// From here on a disk that does not answer makes the daemon not ready, and `stop` shortens the wait for it.
    pub fn watch(&mut self, telemetry: &Telemetry, stop: &Arc<AtomicBool>) {
        self.keeper.watch(telemetry, stop);
    }

    /// Bytes that are free on the disk of the state; 0 where the system does not tell.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        disk::free_bytes(&self.path).unwrap_or_default()
    }

    /// Bytes on disk; 0 where the disk does not say at once. That is a gauge, and no error of the release.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.keeper.glance(|d| d.db.size_on_disk().unwrap_or_default()).unwrap_or_default()
    }
}
