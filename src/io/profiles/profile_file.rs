//! Profiles in a file; the last row of a subject wins.

use super::profile_decoder::ProfileDecoder;
use super::profile_feed::{ProfileFeed, ProfileMessage, ProfileReadError, spawn_profile_reader};
use super::profile_table::{ProfileSetOutcome, ProfileTable};
use crate::io::file::{FileReadSettings, FileSource};
use crate::telemetry::{Limit, LimitReached, ProfileRefused, ProfilesRead, RejectionReason, Telemetry};
use std::path::PathBuf;
use throng_core::values::raw_batch::{RawBatch, RecordPosition};

const PROFILE_ROWS_PER_READ: usize = 10_000;
const PROFILE_BYTES_PER_READ: u64 = 64 << 20;

/// File of profiles.
pub struct ProfileFile {
    /// Name of the join.
    pub join: String,
    /// Path of the file.
    pub path: PathBuf,
    /// Read settings of subject and attributes.
    pub reading: FileReadSettings,
    /// Names of these columns, for messages.
    pub columns: Vec<String>,
    /// Decoder of the rows.
    pub people: ProfileDecoder,
    /// Maximum number of subjects.
    pub max_people: usize,
    /// Receiver of refusals and progress.
    pub telemetry: Telemetry,
}

/// Content of a profile file.
pub struct ProfileFileContent {
    /// Profiles read.
    pub table: ProfileTable,
    /// Number of unreadable rows.
    pub refused: u64,
    /// Number of the first such row, from 1, and reason.
    pub first: Option<(i64, RejectionReason)>,
    /// True for too many subjects.
    pub full: bool,
}

impl ProfileFile {
    /// Reads the file on a separate thread.
    pub fn read(self) -> Result<ProfileFeed, ProfileReadError> {
        let join = self.join.clone();
        spawn_profile_reader(&join, move |told| {
            let (name, telemetry) = (self.join.clone(), self.telemetry.clone());
            let Some(ProfileFileContent { table, .. }) = self.read_rows(&|| told.is_feed_closed())? else {
                return Ok(());
            };
            ProfilesRead { join: &name, people: table.len() as u64, done: true }.emit(&telemetry);
            if told.send_message(ProfileMessage::InitialTable(table)).is_err() {
                tracing::debug!(join = name, "profiles read after their feed was closed");
            }
            Ok(())
        })
    }

    /// Reads the file on the current thread.
    pub fn read_content(self) -> Result<ProfileFileContent, ProfileReadError> {
        let gone = ProfileReadError::ReaderEnded { join: self.join.clone() };
        self.read_rows(&|| false)?.ok_or(gone)
    }

    /// `None` once `is_over`.
    fn read_rows(mut self, is_over: &dyn Fn() -> bool) -> Result<Option<ProfileFileContent>, ProfileReadError> {
        let failed = |join: &str| {
            let join = join.to_owned();
            move |source| ProfileReadError::File { join, source: Box::new(source) }
        };
        let opened = FileSource::reading(&self.path, self.reading.clone());
        let mut source = opened.map_err(failed(&self.join))?;
        let absent = source.absent_attributes();
        if !absent.is_empty() {
            let columns = absent.into_iter().map(|at| self.columns[at].clone()).collect();
            return Err(ProfileReadError::NoColumn { join: self.join, path: source.file().to_owned(), columns });
        }
        let mut found =
            ProfileFileContent { table: ProfileTable::new(self.max_people), refused: 0, first: None, full: false };
        loop {
            let (mut raw, mut rejected) = (RawBatch::new(self.people.width()), Vec::new());
            let read = source.read(&mut raw, PROFILE_ROWS_PER_READ, PROFILE_BYTES_PER_READ, &mut rejected);
            let outcome = read.map_err(failed(&self.join))?;
            for (coordinate, reason) in rejected {
                self.refuse(coordinate, reason, false, &mut found);
            }
            for row in 0..raw.rows() {
                self.add_profile_row(&raw, row, &mut found);
            }
            if is_over() {
                return Ok(None);
            }
            if outcome.end {
                return Ok(Some(found));
            }
        }
    }

    fn add_profile_row(&mut self, raw: &RawBatch, row: usize, found: &mut ProfileFileContent) {
        let coordinate = raw.coordinates()[row];
        let Some(person) = self.people.subject_of_row(raw, row) else {
            return self.refuse(coordinate, self.people.missing_subject_reason(raw, row), false, found);
        };
        let cells = match self.people.cells(raw, row) {
            Ok(cells) => Some(cells),
            Err(_) => {
                self.refuse(coordinate, RejectionReason::WrongType, true, found);
                None
            }
        };
        if found.table.set(person, cells) == ProfileSetOutcome::Full {
            found.full = true;
            LimitReached { limit: Limit::Profiles }.emit(&self.telemetry);
        }
    }

    fn refuse(&self, coordinate: RecordPosition, reason: RejectionReason, named: bool, found: &mut ProfileFileContent) {
        let number = coordinate.offset + 1;
        found.refused += 1;
        found.first = found.first.filter(|(first, _)| *first <= number).or(Some((number, reason)));
        let place = format!("record {number}");
        ProfileRefused { join: &self.join, place, reason, named }.emit(&self.telemetry);
    }
}
