//! What is held, as the rest of the daemon asks about it.

use super::fields::Engine;
use crate::daemon::engine::clock::Moment;
use crate::records::raw::Coordinate;
use std::collections::BTreeSet;

impl Engine {
    /// Records that are held: nothing of them has left yet.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.unreleased()
    }

    /// Whether anything that is held waits for nothing but a batch.
    #[must_use]
    pub fn has_due(&self, now: impl Into<Moment>) -> bool {
        let age_ms = now.into().age_ms.max(self.durable.progress.age_ms);
        self.held.waits.iter().any(|wait| wait.is_due(age_ms))
    }

    /// Lines that wait for their delay, or for a better class of their own.
    #[must_use]
    pub fn waiting_lines(&self) -> usize {
        self.held.lines()
    }

    /// Whether held records came from one of these partitions.
    #[must_use]
    pub fn holds_from(&self, of: &impl Fn(Coordinate) -> bool) -> bool {
        self.held.batch.coordinates.iter().any(|c| of(*c))
    }

    /// Coordinates of the held records with these ordinals.
    #[must_use]
    pub fn held_places(&self, ordinals: &[u64]) -> BTreeSet<Coordinate> {
        let ordinals: BTreeSet<u64> = ordinals.iter().copied().collect();
        let held = self.held.ordinals.iter().zip(&self.held.batch.coordinates);
        held.filter(|(ordinal, _)| ordinals.contains(ordinal)).map(|(_, place)| *place).collect()
    }
}
