//! Profiles of all joins, and their cells in a batch.

use crate::daemon::engine::build::settings::JoinSettings;
use crate::daemon::state::records::ProfileChange;
use crate::io::profiles::{
    ProfileFeed, ProfileJoinCounts, ProfileMessage, ProfileReadError, ProfileSetOutcome, ProfileTable, join,
};
use crossbeam_channel::{RecvTimeoutError, TryRecvError};
use std::time::Duration;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::Codebook;

const MAX_PROFILES_PER_WRITE: usize = 2_000;
const MAX_UPDATES_PER_PASS: usize = 10_000;

struct JoinState {
    settings: JoinSettings,
    table: ProfileTable,
    /// `None` before the start is complete, and after the end of a file.
    feed: Option<ProfileFeed>,
    initial_profiles: Option<InitialProfiles>,
    in_use: bool,
}

struct InitialProfiles {
    table: ProfileTable,
    /// Subjects with a different profile, descending; `None` before the comparison.
    differ: Option<Vec<u64>>,
}

/// Joins, ordered by name.
#[derive(Default)]
pub(crate) struct ProfileJoins {
    joined: Vec<JoinState>,
    failed: Option<ProfileReadError>,
}

/// New profile updates.
#[derive(Default)]
pub(crate) struct ProfileUpdates {
    /// Changes to write.
    pub changes: Vec<ProfileChange>,
    /// A table is full.
    pub has_full_table: bool,
}

impl ProfileJoins {
    /// Creates the joins with the stored profiles.
    pub fn new(settings: &[JoinSettings], kept: Vec<ProfileChange>) -> Self {
        let joined = |settings: &JoinSettings| JoinState {
            table: ProfileTable::new(settings.max_people),
            settings: settings.clone(),
            feed: None,
            initial_profiles: None,
            in_use: false,
        };
        let mut joins = Self { joined: settings.iter().map(joined).collect(), failed: None };
        for ProfileChange { join, person, cells } in kept {
            if let (Some(joined), Some(cells)) = (joins.joined.get_mut(usize::from(join)), cells) {
                joined.table.restore(person, cells);
            }
        }
        joins
    }

    /// Removes profiles of erased subjects.
    pub fn forget(&mut self, is_gone: impl Fn(u64) -> bool) {
        for joined in &mut self.joined {
            joined.table.remove_subjects(&is_gone);
            if let Some(coming) = &mut joined.initial_profiles {
                coming.table.remove_subjects(&is_gone);
                coming.differ = None;
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }

    /// Returns the number of profiles.
    pub fn profiles(&self) -> u64 {
        self.joined.iter().map(|joined| joined.table.len() as u64).sum()
    }

    /// Returns whether all initial profiles are in use.
    pub fn is_loaded(&self) -> bool {
        self.joined.iter().all(|joined| joined.in_use)
    }

    /// Sets the feeds, one per join.
    pub fn set_feeds(&mut self, feeds: Vec<ProfileFeed>) {
        for (joined, feed) in self.joined.iter_mut().zip(feeds) {
            joined.feed = Some(feed);
        }
    }

    /// Sets the joined cells of `batch`. Absent cells of `waiting` rows stay absent.
    pub fn join(&self, batch: &mut CodeBatch, books: &mut [Codebook], waiting: bool) -> ProfileJoinCounts {
        let mut met = ProfileJoinCounts::default();
        for JoinState { settings, table, .. } in &self.joined {
            let ProfileJoinCounts { uncovered, unjoined } = join(table, &settings.attributes, batch, books, waiting);
            met.uncovered += uncovered;
            met.unjoined += unjoined;
        }
        met
    }

    /// Waits, at most `wait` per join, for the initial profiles. Returns whether all are read.
    pub fn wait_for_initial(&mut self, wait: Duration) -> Result<bool, ProfileReadError> {
        for joined in self.joined.iter_mut().filter(|joined| !joined.in_use && joined.initial_profiles.is_none()) {
            let gone = || ProfileReadError::ReaderEnded { join: joined.settings.name.clone() };
            match joined.feed.as_ref().ok_or_else(gone)?.profile_messages.recv_timeout(wait) {
                Ok(ProfileMessage::InitialTable(table)) => {
                    joined.initial_profiles = Some(InitialProfiles { table, differ: None });
                }
                Ok(ProfileMessage::Failed(error)) => return Err(error),
                Ok(ProfileMessage::Changed(_)) | Err(RecvTimeoutError::Timeout) => return Ok(false),
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            }
        }
        Ok(true)
    }

    /// Returns the next changes towards the initial profiles, or `None` at the end.
    pub fn next_changes(&mut self) -> Option<Vec<ProfileChange>> {
        for (at, joined) in self.joined.iter_mut().enumerate() {
            let Some(InitialProfiles { table, differ }) = &mut joined.initial_profiles else { continue };
            // Order of their keys on disk.
            let differ = differ.get_or_insert_with(|| {
                let mut differ: Vec<u64> = joined.table.differing(table).collect();
                differ.sort_unstable_by(|a, b| b.cmp(a));
                differ
            });
            let next = differ.split_off(differ.len().saturating_sub(MAX_PROFILES_PER_WRITE)).into_iter().rev();
            let changes: Vec<ProfileChange> = next.map(|person| change(at, person, table.get(person))).collect();
            if changes.is_empty() {
                // Same content, with the configured bound.
                joined.table = joined.initial_profiles.take().map(|coming| coming.table).unwrap_or_default();
                joined.in_use = true;
                continue;
            }
            for change in &changes {
                match &change.cells {
                    Some(cells) => joined.table.restore(change.person, cells.clone()),
                    None => drop(joined.table.set(change.person, None)),
                }
            }
            return Some(changes);
        }
        None
    }

    /// Takes a bounded number of updates.
    pub fn take_updates(&mut self) -> Result<ProfileUpdates, ProfileReadError> {
        let mut updates = ProfileUpdates::default();
        for (at, joined) in self.joined.iter_mut().enumerate().filter(|(_, joined)| joined.in_use) {
            let Some(feed) = &joined.feed else { continue };
            for _ in 0..MAX_UPDATES_PER_PASS {
                match feed.profile_messages.try_recv() {
                    Ok(ProfileMessage::Changed(update)) => {
                        match joined.table.set(update.person, update.cells.clone()) {
                            ProfileSetOutcome::Changed => {
                                updates.changes.push(change(at, update.person, update.cells.as_deref()));
                            }
                            ProfileSetOutcome::AlreadyEqual => {}
                            ProfileSetOutcome::Full => updates.has_full_table = true,
                        }
                    }
                    Ok(ProfileMessage::Failed(error)) => return Err(error),
                    Ok(ProfileMessage::InitialTable(_)) => {}
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) if joined.settings.follows_topic => {
                        return Err(ProfileReadError::ReaderEnded { join: joined.settings.name.clone() });
                    }
                    Err(TryRecvError::Disconnected) => {
                        joined.feed = None;
                        break;
                    }
                }
            }
        }
        Ok(updates)
    }

    /// Records a reader failure, which prevents the next release.
    pub fn record_failure(&mut self, error: ProfileReadError) {
        self.failed = Some(error);
    }

    /// Takes the reader failure, if any.
    pub fn take_failure(&mut self) -> Option<ProfileReadError> {
        self.failed.take()
    }
}

fn change(join: usize, person: u64, cells: Option<&str>) -> ProfileChange {
    let join = u16::try_from(join).unwrap_or(u16::MAX);
    ProfileChange { join, person, cells: cells.map(Into::into) }
}

#[cfg(test)]
#[path = "joins_tests.rs"]
mod tests;
