//! Profiles in a file, a row each. Of two rows of one person the later holds.

use super::feed::{Feed, News, ProfilesError, Told};
use super::people::{PERSON, People};
use super::table::{Table, Taken};
use crate::io::file::{FileSource, Reading, SourcePosition};
use crate::records::raw::{Coordinate, RawBatch};
use crate::telemetry::{Limit, LimitReached, ProfileRefused, ProfilesRead, RejectionReason, Telemetry};
use std::path::PathBuf;

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

impl FileOfProfiles {
    /// Reads it.
    ///
    /// # Errors
    /// When there is no thread to read it on.
    pub fn read(self) -> Result<Feed, ProfilesError> {
        let join = self.join.clone();
        Feed::of(&join, move |told| self.whole(told))
    }

    fn whole(mut self, told: &Told) -> Result<(), ProfilesError> {
        let failed = |join: &str| {
            let join = join.to_owned();
            move |source| ProfilesError::File { join, source: Box::new(source) }
        };
        let opened = FileSource::resume(&self.path, self.reading.clone(), SourcePosition::default(), &[]);
        let mut source = opened.map_err(failed(&self.join))?;
        let absent = source.absent_attributes();
        if !absent.is_empty() {
            let columns = absent.into_iter().map(|at| self.columns[at].clone()).collect();
            return Err(ProfilesError::NoColumn { join: self.join, path: source.file().to_owned(), columns });
        }
        let mut table = Table::new(self.max_people);
        loop {
            let (mut raw, mut rejected) = (RawBatch::new(self.people.width()), Vec::new());
            let read = source.read(&mut raw, AT_A_TIME, BYTES_AT_A_TIME, &mut rejected);
            let outcome = read.map_err(failed(&self.join))?;
            for (coordinate, reason) in rejected {
                self.refuse(coordinate, reason);
            }
            for row in 0..raw.rows() {
                self.take(&raw, row, &mut table);
            }
            if told.is_over() {
                return Ok(());
            }
            if outcome.end {
                break;
            }
        }
        ProfilesRead { join: &self.join, people: table.len() as u64, done: true }.emit(&self.telemetry);
        if told.say(News::Whole(table)).is_err() {
            tracing::debug!(join = self.join, "nobody has waited for the profiles");
        }
        Ok(())
    }

    fn take(&mut self, raw: &RawBatch, row: usize, table: &mut Table) {
        let coordinate = raw.coordinates()[row];
        let Some(person) = self.people.person(raw, row) else {
            let named = raw.token(row, PERSON) != crate::records::raw::Token::Absent;
            let reason = if named { RejectionReason::WrongType } else { RejectionReason::MissingField };
            return self.refuse(coordinate, reason);
        };
        let cells = match self.people.cells(raw, row) {
            Ok(cells) => Some(cells),
            // What the person had said before holds no longer.
            Err(_) => {
                self.refuse(coordinate, RejectionReason::WrongType);
                None
            }
        };
        if table.set(person, cells) == Taken::Full {
            LimitReached { limit: Limit::Profiles }.emit(&self.telemetry);
        }
    }

    fn refuse(&self, coordinate: Coordinate, reason: RejectionReason) {
        let place = format!("record {}", coordinate.offset + 1);
        ProfileRefused { join: &self.join, place, reason }.emit(&self.telemetry);
    }
}
