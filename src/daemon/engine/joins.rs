//! The profiles of all joins, and the cells that they bring to the rows of a batch.

use super::settings::JoinSettings;
use crate::daemon::state::records::ProfileChange;
use crate::io::profiles::{Feed, JoinedCells, News, ProfilesError, Table, Taken, join};
use crossbeam_channel::{RecvTimeoutError, TryRecvError};
use std::time::Duration;
use throng_core::values::codebook::Codebook;
use throng_core::values::table::Batch;

/// Profiles written at a time at a start, at most: a write takes some kilobytes of memory for each.
const WRITTEN_AT_A_TIME: usize = 2_000;
/// Updates taken at a time, of one join.
const TAKEN_AT_A_TIME: usize = 10_000;

/// One join.
struct Joined {
    settings: JoinSettings,
    table: Table,
    /// Where news come from; none before the start is done, and behind the end of a file.
    feed: Option<Feed>,
    /// All profiles that there were at the start, where they have been read and not been taken over.
    coming: Option<Coming>,
    /// They have been taken over.
    whole: bool,
}

/// Profiles that take the place of others.
struct Coming {
    table: Table,
    /// People whose profile is still another, the last ones first; none where nobody has looked.
    differ: Option<Vec<u64>>,
}

/// All joins, in the order of their names.
#[derive(Default)]
pub(super) struct Joins {
    joined: Vec<Joined>,
    /// Why nothing more is read.
    failed: Option<ProfilesError>,
}

/// Updates that have come meanwhile.
#[derive(Default)]
pub(super) struct Updates {
    /// What the state is to write of them.
    pub changes: Vec<ProfileChange>,
    /// A table had no room for another person.
    pub full: bool,
}

impl Joins {
    /// The joins of `settings`, with the profiles that the state has kept.
    pub fn new(settings: &[JoinSettings], kept: Vec<ProfileChange>) -> Self {
        let joined = |settings: &JoinSettings| Joined {
            table: Table::new(settings.max_people),
            settings: settings.clone(),
            feed: None,
            coming: None,
            whole: false,
        };
        let mut joins = Self { joined: settings.iter().map(joined).collect(), failed: None };
        for ProfileChange { join, person, cells } in kept {
            if let (Some(joined), Some(cells)) = (joins.joined.get_mut(usize::from(join)), cells) {
                joined.table.restore(person, cells);
            }
        }
        joins
    }

    /// Forgets the profiles of people, those included that have been read and not been taken over.
    pub fn forget(&mut self, is_gone: impl Fn(u64) -> bool) {
        for joined in &mut self.joined {
            joined.table.forget(&is_gone);
            if let Some(coming) = &mut joined.coming {
                coming.table.forget(&is_gone);
                coming.differ = None;
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }

    /// Profiles that are kept.
    pub fn profiles(&self) -> u64 {
        self.joined.iter().map(|joined| joined.table.len() as u64).sum()
    }

    /// Whether all profiles that there were at the start have been taken over.
    pub fn is_whole(&self) -> bool {
        self.joined.iter().all(|joined| joined.whole)
    }

    /// News come from `feeds`, one a join.
    pub fn come_from(&mut self, feeds: Vec<Feed>) {
        for (joined, feed) in self.joined.iter_mut().zip(feeds) {
            joined.feed = Some(feed);
        }
    }

    /// Sets the joined cells of `batch`: those of the profile of each record's subject, or missing ones. `waiting` rows have been held:
    /// cells that nothing needs any more stay absent.
    pub fn join(&self, batch: &mut Batch, books: &mut [Codebook], waiting: bool) -> JoinedCells {
        let mut met = JoinedCells::default();
        for Joined { settings, table, .. } in &self.joined {
            let JoinedCells { uncovered, unjoined } = join(table, &settings.attributes, batch, books, waiting);
            met.uncovered += uncovered;
            met.unjoined += unjoined;
        }
        met
    }

    /// Waits for at most `wait`, for each join, until all profiles have been read that there were at the start. True when they have.
    pub fn is_read(&mut self, wait: Duration) -> Result<bool, ProfilesError> {
        for joined in self.joined.iter_mut().filter(|joined| !joined.whole && joined.coming.is_none()) {
            let gone = || ProfilesError::Gone { join: joined.settings.name.clone() };
            match joined.feed.as_ref().ok_or_else(gone)?.news.recv_timeout(wait) {
                Ok(News::Whole(table)) => joined.coming = Some(Coming { table, differ: None }),
                Ok(News::Failed(error)) => return Err(error),
                // The whole comes first.
                Ok(News::Changed(_)) | Err(RecvTimeoutError::Timeout) => return Ok(false),
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            }
        }
        Ok(true)
    }

    /// The next changes that lead to the profiles that have been read; none when those have been taken over.
    pub fn take_over(&mut self) -> Option<Vec<ProfileChange>> {
        for (at, joined) in self.joined.iter_mut().enumerate() {
            let Some(Coming { table, differ }) = &mut joined.coming else { continue };
            // In the order of their keys on the disk.
            let differ = differ.get_or_insert_with(|| {
                let mut differ: Vec<u64> = joined.table.differing(table).collect();
                differ.sort_unstable_by(|a, b| b.cmp(a));
                differ
            });
            let next = differ.split_off(differ.len().saturating_sub(WRITTEN_AT_A_TIME)).into_iter().rev();
            let changes: Vec<ProfileChange> = next.map(|person| change(at, person, table.get(person))).collect();
            if changes.is_empty() {
                // The same people and cells, and the bound of now.
                joined.table = joined.coming.take().map(|coming| coming.table).unwrap_or_default();
                joined.whole = true;
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

    /// Updates that have come meanwhile, a bounded number of them.
    pub fn take_updates(&mut self) -> Result<Updates, ProfilesError> {
        let mut updates = Updates::default();
        for (at, joined) in self.joined.iter_mut().enumerate().filter(|(_, joined)| joined.whole) {
            let Some(feed) = &joined.feed else { continue };
            for _ in 0..TAKEN_AT_A_TIME {
                match feed.news.try_recv() {
                    Ok(News::Changed(update)) => match joined.table.set(update.person, update.cells.clone()) {
                        Taken::Changed => updates.changes.push(change(at, update.person, update.cells.as_deref())),
                        Taken::Same => {}
                        Taken::Full => updates.full = true,
                    },
                    Ok(News::Failed(error)) => return Err(error),
                    // It comes once, and has.
                    Ok(News::Whole(_)) => {}
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) if joined.settings.tails => {
                        return Err(ProfilesError::Gone { join: joined.settings.name.clone() });
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

    /// Notes that a reader has failed: the next batch does not leave.
    pub fn fail(&mut self, error: ProfilesError) {
        self.failed = Some(error);
    }

    /// Why nothing more is read, where a reader has failed.
    pub fn take_failure(&mut self) -> Option<ProfilesError> {
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
