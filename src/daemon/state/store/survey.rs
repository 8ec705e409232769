//! What a state holds, in figures: for whoever has its secret, never for a page or a log.

use super::{Recovered, Store};
use crate::daemon::state::directory::FORMAT;
use crate::daemon::state::records::OffsetRange;
use crate::ledger::per_subject::Ledger;
use crate::records::schema::Schema;
use crate::telemetry::Totals;
use serde::Serialize;
use std::path::PathBuf;

/// Where the source is read on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Position {
    /// Of the topic in `source.topics`; 0 for a file.
    pub topic: u16,
    /// 0 for a file, where it is the record that is counted.
    pub partition: i32,
    /// Next offset.
    pub offset: i64,
}

/// A batch that was about to leave when the process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// Its number.
    pub batch: u64,
    /// Records that it consumes.
    pub records: u64,
    /// Records that would begin or go on waiting.
    pub held: u64,
}

/// The figures of one state. A batch that is pending is not part of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// The state directory.
    pub path: PathBuf,
    /// Format of the directory.
    pub format: u32,
    /// Identity, part of the transactional id.
    pub id: String,
    /// Batches that have left.
    pub batches: u64,
    /// Stamp of the last one, milliseconds since 1970; never falling.
    pub clock_ms: i64,
    /// Age of the state with it in milliseconds, by which support grows old.
    pub age_ms: i64,
    /// Whether a batch was about to leave when the process ended.
    pub pending: Option<Pending>,
    /// Where the source is read on.
    pub positions: Vec<Position>,
    /// What became of all records.
    pub totals: Totals,
    /// Records held: `consumed` less all others.
    pub held: u64,
    /// Of them, lines on disk; a record that is released in part waits too.
    pub waiting_lines: u64,
    /// Version of the plan in force; 0 before the first.
    pub plan: u64,
    /// Bytes in memory of what is remembered of subjects.
    pub ledger_bytes: u64,
    /// Batches whose effect is read on top of the snapshot of the ledger at a start.
    pub ledger_deltas: u64,
    /// Pairs of a person and a group that have been said inside their window.
    pub said_lines: u64,
    /// Batches and rows of the window.
    pub window_batches: u64,
    /// Rows of the planner's sample.
    pub sample_rows: u64,
    /// Profiles of people.
    pub profiles: u64,
    /// Bytes of the database on disk.
    pub disk_bytes: u64,
}

impl Store {
    /// The figures of what was found at a start.
    #[must_use]
    pub fn survey(&self, found: &Recovered, ledger: &Ledger) -> Survey {
        let progress = &found.progress;
        let positions = progress.positions.iter();
        Survey {
            path: self.path.clone(),
            format: FORMAT,
            id: self.id.clone(),
            batches: progress.sequence,
            clock_ms: progress.clock_ms,
            age_ms: progress.age_ms,
            pending: found.intent.as_ref().map(|intent| Pending {
                batch: intent.after.sequence,
                records: intent.ranges.iter().map(|range| range.to.abs_diff(range.from)).sum(),
                held: intent.held.len() as u64,
            }),
            positions: positions.map(|(&(topic, partition), &offset)| Position { topic, partition, offset }).collect(),
            totals: progress.totals,
            held: progress.totals.held().unwrap_or_default(),
            waiting_lines: found.held.len() as u64,
            plan: progress.plan_version,
            ledger_bytes: ledger.approximate_bytes() as u64,
            ledger_deltas: found.deltas,
            said_lines: ledger.said().map_or(0, |said| said.entries() as u64),
            window_batches: found.rows.len() as u64,
            sample_rows: found.sample.len() as u64,
            profiles: found.profiles.len() as u64,
            disk_bytes: self.bytes(),
        }
    }
}

impl Recovered {
    /// What does not fit together of values that can all be read, in sentences; nothing where all fits.
    #[must_use]
    pub fn contradictions(&self, schema: &Schema) -> Vec<String> {
        let progress = &self.progress;
        let mut said = Vec::new();
        let mut expect = |fits: bool, what: String| {
            if !fits {
                said.push(what);
            }
        };
        let waiting = self.held.iter().filter(|row| !row.released).count() as u64;
        match progress.totals.held() {
            None => expect(false, "more records have left than have come".to_owned()),
            Some(held) => expect(
                held == waiting,
                format!("{held} records have come and not gone, and {waiting} of those that wait have not left"),
            ),
        }
        let cells = |cells: &[String]| cells.len() == schema.attributes.len();
        let narrow = self.held.iter().chain(&self.sample).filter(|row| !cells(&row.cells)).count();
        expect(narrow == 0, format!("{narrow} kept rows have not the attributes of the schema"));
        let rising = self.sample.is_sorted_by(|a, b| a.ordinal < b.ordinal);
        expect(rising, "the rows of the planner's sample are out of order".to_owned());
        let ahead = self.sample.iter().filter(|row| row.ordinal >= progress.rows).count();
        expect(ahead == 0, format!("{ahead} rows of the planner's sample lie behind the last row that was read"));
        let mut numbers: Vec<u64> = self.held.iter().map(|row| row.ordinal).collect();
        numbers.sort_unstable();
        expect(numbers.windows(2).all(|two| two[0] != two[1]), "a row waits twice".to_owned());
        if let Some(intent) = &self.intent {
            let next = progress.sequence + 1;
            expect(
                intent.after.sequence == next,
                format!("the batch that was about to leave is number {}, not {next}", intent.after.sequence),
            );
            let begun = |range: &OffsetRange| {
                let known = progress.positions.get(&(range.topic, range.partition));
                known.is_none_or(|&position| range.from >= position) && range.to >= range.from
            };
            expect(
                intent.ranges.iter().all(begun),
                "the batch that was about to leave reads again what was read".to_owned(),
            );
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::state::records::KeptRow;
    use crate::records::raw::Coordinate;
    use std::path::Path;

    fn row(ordinal: u64, released: bool) -> KeptRow {
        KeptRow {
            ordinal,
            subject: 1,
            coordinate: Coordinate { topic: 0, partition: 0, offset: 0, element: 0 },
            waited: 0,
            released,
            parts: None,
            cells: vec!["x".to_owned()],
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let text = "name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"string\"\n";
        let schema = Schema::parse(text, "schema.toml", Path::new("")).expect("a schema");
        let mut found = Recovered::default();
        assert_eq!(found.contradictions(&schema), Vec::<String>::new());
        found.progress.totals = Totals { consumed: 3, released: 1, ..Totals::default() };
        found.progress.rows = 3;
        found.held = vec![row(1, false), row(2, false), row(0, true)];
        found.sample = vec![row(0, false), row(2, false)];
        assert_eq!(found.contradictions(&schema), Vec::<String>::new());
        found.held.push(row(2, true));
        found.sample.push(row(7, false));
        found.sample[0].cells.clear();
        found.progress.totals.released = 2;
        let said = found.contradictions(&schema);
        assert_eq!(said.len(), 4, "{said:?}");
        found.progress.totals.released = 4;
        assert!(found.contradictions(&schema)[0].contains("more records"), "{said:?}");
    }
}
