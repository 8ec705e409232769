//! Profiles of people, joined to the records of a batch by subject (docs/decisions/0045).
//!
//! The tables change at two moments only: with the end of a batch, together with its effect on the disk, and while no batch is about
//! to leave. What a batch sees is therefore a function of what left before it; a repeated batch sees the same.

use super::batch_error::BatchError;
use super::fields::Engine;
use super::joins::Updates;
use crate::daemon::state::records::Intent;
use crate::io::input::InputBatch;
use crate::io::profiles::{Feed, ProfilesError};
use crate::records::raw::Coordinate;
use crate::records::subject::Subjects;
use crate::telemetry::{Limit, LimitReached};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often whoever waits for profiles looks whether the daemon is to stop.
const LOOK: Duration = Duration::from_millis(100);

impl Engine {
    /// Digests people as those of the records are; none where the schema names no subject.
    #[must_use]
    pub fn subjects(&self) -> Option<Subjects> {
        self.coding.subjects.clone()
    }

    /// Profiles come from `feeds`, in the order of the joins.
    pub fn take_profiles_from(&mut self, feeds: Vec<Feed>) {
        self.joins.come_from(feeds);
    }

    /// Waits until all profiles have been read that there were at the start, and takes them over in place of what was known. Not while
    /// a batch is to be repeated: it was made with what was known. False where `stop` came first.
    ///
    /// # Errors
    /// When they cannot be read, or the state fails.
    pub fn read_profiles(&mut self, stop: &AtomicBool) -> Result<bool, BatchError> {
        if self.joins.is_whole() {
            return Ok(true);
        }
        while !self.joins.is_read(LOOK)? {
            if stop.load(Ordering::Acquire) {
                return Ok(false);
            }
        }
        while let Some(changes) = self.joins.take_over() {
            self.durable.store.settle_profiles(changes, &self.ledger)?;
        }
        Ok(true)
    }

    /// As [`read_profiles`](Self::read_profiles), of those that have been read already: for whom waiting would be too long.
    ///
    /// # Errors
    /// As there.
    pub fn has_read_profiles(&mut self) -> Result<bool, BatchError> {
        self.read_profiles(&AtomicBool::new(true))
    }

    fn take_updates(&mut self) -> Result<Updates, ProfilesError> {
        let updates = self.joins.take_updates()?;
        if updates.full {
            LimitReached { limit: Limit::Profiles }.emit(&self.telemetry);
        }
        Ok(updates)
    }

    /// Takes updates with the end of a batch that has left: they are written with its effect. A reader that has failed is told of with
    /// the next batch, which does not leave.
    pub(super) fn take_updates_with_batch(&mut self) {
        match self.take_updates() {
            Ok(updates) => self.durable.store.note_profiles(updates.changes),
            Err(error) => self.joins.fail(error),
        }
    }

    /// Takes updates while nothing else is to be done, so that their reader need not wait for a batch. Not while a batch is to be
    /// repeated.
    ///
    /// # Errors
    /// When they cannot be read, or the state fails.
    pub fn take_updates_between_batches(&mut self) -> Result<(), BatchError> {
        let updates = self.take_updates()?;
        if updates.changes.is_empty() {
            return Ok(());
        }
        Ok(self.durable.store.settle_profiles(updates.changes, &self.ledger)?)
    }

    /// Rows of a batch that get joined cells: those of the `input`, and those that were held and come along.
    pub(super) fn rows_to_join(
        &self,
        input: &InputBatch,
        of: &impl Fn(Coordinate) -> bool,
        age_ms: i64,
        all: bool,
    ) -> usize {
        if self.joins.is_empty() { 0 } else { input.raw.rows() + self.held.joining(of, age_ms, all).len() }
    }

    /// Refuses a batch whose profiles are not at hand as they must be.
    pub(super) fn check_profiles(&mut self, retry: Option<&Intent>) -> Result<(), BatchError> {
        if let Some(error) = self.joins.take_failure() {
            return Err(error.into());
        }
        match retry {
            Some(intent) if intent.profiles != self.durable.store.profiles_version() => {
                Err(self.durable.store.damaged("the profiles are not those that its last batch was made with").into())
            }
            _ => Ok(()),
        }
    }
}
