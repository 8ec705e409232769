//! Profiles in a file, a row each. Of two rows of one person the later holds; a row that does not decode is nobody's.

use super::feed::{Feed, News, ProfilesError, reading};
use super::people::People;
use super::table::{Table, Taken};
use crate::io::file::{FileSource, Reading};
use crate::telemetry::{Limit, LimitReached, ProfileRefused, ProfilesRead, RejectionReason, Telemetry};
use std::path::PathBuf;
use throng_core::values::raw::{Coordinate, RawBatch};

/// Rows decoded at a time, and bytes of them.
const AT_A_TIME: usize = 10_000;
const BYTES_AT_A_TIME: u64 = 64 << 20;

/// A file of profiles.
pub struct FileOfProfiles {
    /// Its join.
    pub join: String,
    /// Where it is.
    pub path: PathBuf,
    /// How it is read; its fields are the person and the attributes.
    pub reading: Reading,
    /// Names of these columns, for messages.
    pub columns: Vec<String>,
    /// Whose the rows are.
    pub people: People,
    /// How many at most.
    pub max_people: usize,
    /// Is told what is refused.
    pub telemetry: Telemetry,
}

/// What a file of profiles has.
pub struct WholeFile {
    /// The profiles.
    pub table: Table,
    /// Rows that cannot be read.
    pub refused: u64,
    /// The first of them, counted from 1, and why.
    pub first: Option<(i64, RejectionReason)>,
    /// There were more people than may be kept.
    pub full: bool,
}

impl FileOfProfiles {
    /// Reads it on a thread of its own.
    pub fn read(self) -> Result<Feed, ProfilesError> {
        let join = self.join.clone();
        reading(&join, move |told| {
            let (name, telemetry) = (self.join.clone(), self.telemetry.clone());
            let Some(WholeFile { table, .. }) = self.rows(&|| told.is_over())? else { return Ok(()) };
            ProfilesRead { join: &name, people: table.len() as u64, done: true }.emit(&telemetry);
            if told.say(News::Whole(table)).is_err() {
                tracing::debug!(join = name, "nobody has waited for the profiles");
            }
            Ok(())
        })
    }

    /// Reads it here and now.
    pub fn whole(self) -> Result<WholeFile, ProfilesError> {
        let gone = ProfilesError::Gone { join: self.join.clone() };
        self.rows(&|| false)?.ok_or(gone)
    }

    /// What it has; none where it `is_over` before.
    fn rows(mut self, is_over: &dyn Fn() -> bool) -> Result<Option<WholeFile>, ProfilesError> {
        let failed = |join: &str| {
            let join = join.to_owned();
            move |source| ProfilesError::File { join, source: Box::new(source) }
        };
        let opened = FileSource::reading(&self.path, self.reading.clone());
        let mut source = opened.map_err(failed(&self.join))?;
        let absent = source.absent_attributes();
        if !absent.is_empty() {
            let columns = absent.into_iter().map(|at| self.columns[at].clone()).collect();
            return Err(ProfilesError::NoColumn { join: self.join, path: source.file().to_owned(), columns });
        }
        let mut found = WholeFile { table: Table::new(self.max_people), refused: 0, first: None, full: false };
        loop {
            let (mut raw, mut rejected) = (RawBatch::new(self.people.width()), Vec::new());
            let read = source.read(&mut raw, AT_A_TIME, BYTES_AT_A_TIME, &mut rejected);
            let outcome = read.map_err(failed(&self.join))?;
            for (coordinate, reason) in rejected {
                self.refuse(coordinate, reason, false, &mut found);
            }
            for row in 0..raw.rows() {
                self.take(&raw, row, &mut found);
            }
            if is_over() {
                return Ok(None);
            }
            if outcome.end {
                return Ok(Some(found));
            }
        }
    }

    fn take(&mut self, raw: &RawBatch, row: usize, found: &mut WholeFile) {
        let coordinate = raw.coordinates()[row];
        let Some(person) = self.people.person(raw, row) else {
            return self.refuse(coordinate, self.people.unnamed(raw, row), false, found);
        };
        let cells = match self.people.cells(raw, row) {
            Ok(cells) => Some(cells),
            // What the person had said before holds no longer.
            Err(_) => {
                self.refuse(coordinate, RejectionReason::WrongType, true, found);
                None
            }
        };
        if found.table.set(person, cells) == Taken::Full {
            found.full = true;
            LimitReached { limit: Limit::Profiles }.emit(&self.telemetry);
        }
    }

    fn refuse(&self, coordinate: Coordinate, reason: RejectionReason, named: bool, found: &mut WholeFile) {
        let number = coordinate.offset + 1;
        found.refused += 1;
        found.first = found.first.filter(|(first, _)| *first <= number).or(Some((number, reason)));
        let place = format!("record {number}");
        ProfileRefused { join: &self.join, place, reason, named }.emit(&self.telemetry);
    }
}
