//! Checks of a state.

use super::value_kinds::CHECK_VALUE_KIND;
use super::{RecoveredState, StateStore};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::OffsetRange;
use serde::Serialize;
use std::collections::BTreeMap;
use throng_core::values::schema::Schema;

/// Numbers of values of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KindExamination {
    /// All values.
    pub values: u64,
    /// Bytes of keys and sealed values.
    pub bytes: u64,
    /// Values that do not open.
    pub sealed_otherwise: u64,
    /// Values that do not decode.
    pub unreadable: u64,
}

impl StateStore {
    /// Opens and decodes every value; calls `passed` with its bytes.
    pub fn examine(&self, mut passed: impl FnMut(u64)) -> Result<BTreeMap<&'static str, KindExamination>, StateError> {
        let mut found: BTreeMap<&'static str, KindExamination> = BTreeMap::new();
        self.visit_values(|kind, key, sealed| {
            if kind.name == CHECK_VALUE_KIND {
                return Ok(());
            }
            let bytes = (key.len() + sealed.len()) as u64;
            passed(bytes);
            let counted = found.entry(kind.name).or_default();
            counted.values += 1;
            counted.bytes += bytes;
            match self.sealer.open(key, sealed) {
                None => counted.sealed_otherwise += 1,
                Some(plain) if !(kind.reads)(&plain) => counted.unreadable += 1,
                Some(_) => {}
            }
            Ok(())
        })?;
        Ok(found)
    }
}

impl RecoveredState {
    /// Returns one sentence per inconsistency between readable values.
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
            None => expect(false, "the outcomes have more records than were consumed".to_owned()),
            Some(held) => expect(
                held == waiting,
                format!("{held} records are held according to the totals, but {waiting} held records are stored"),
            ),
        }
        let cells = |cells: &[String]| cells.len() == schema.attributes.len();
        let narrow = self.held.iter().chain(&self.sample).filter(|row| !cells(&row.cells)).count();
        expect(narrow == 0, format!("{narrow} stored rows do not have the attributes of the schema"));
        let rising = self.sample.is_sorted_by(|a, b| a.ordinal < b.ordinal);
        expect(rising, "the rows of the planner's sample are out of order".to_owned());
        let ahead = self.sample.iter().filter(|row| row.ordinal >= progress.rows).count();
        expect(ahead == 0, format!("{ahead} rows of the planner's sample are beyond the last row that was read"));
        let mut numbers: Vec<u64> = self.held.iter().map(|row| row.ordinal).collect();
        numbers.sort_unstable();
        expect(numbers.windows(2).all(|two| two[0] != two[1]), "a row is held twice".to_owned());
        if let Some(intent) = &self.intent {
            let next = progress.sequence + 1;
            expect(
                intent.after.sequence == next,
                format!("the pending batch has number {}, not {next}", intent.after.sequence),
            );
            let begun = |range: &OffsetRange| {
                let known = progress.positions.get(&(range.topic, range.partition));
                known.is_none_or(|&position| range.from >= position) && range.to >= range.from
            };
            expect(
                intent.ranges.iter().all(begun),
                "the pending batch reads records that were already processed".to_owned(),
            );
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::state::records::{StoredRow, StreamProgress};
    use crate::daemon::state::store::PROGRESS;
    use crate::daemon::state::store::state_binding::STREAM;
    use crate::daemon::state::store::value_kinds::UNKNOWN_KIND;
    use crate::telemetry::RecordTotals;
    use std::path::Path;
    use throng_core::ledger::subject_ledger::SubjectLedger;
    use throng_core::values::raw_batch::RecordPosition;

    const SECRET: &[u8] = b"a secret of a test";

    #[test]
    fn examination_counts_damaged_values_by_kind() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state");
        let missing = StateStore::open_existing(&path, Some(SECRET)).err().expect("no state");
        assert!(matches!(missing, StateError::Missing(_)), "{missing}");
        assert!(!path.exists(), "nothing was made");
        let mut ledger = SubjectLedger::default();
        let (mut store, ..) = StateStore::open(&path, Some(SECRET), &mut ledger).expect("a state");
        store.bind_stream("a stream").and_then(|()| store.write_progress(&StreamProgress::default())).expect("writes");
        let sound = store.examine(|_| ()).expect("a look");
        assert!(
            sound.values().all(|kind| kind.values == 1 && kind.sealed_otherwise + kind.unreadable == 0),
            "{sound:?}"
        );
        assert_eq!(sound.keys().copied().collect::<Vec<_>>(), ["progress", "stream"]);
        let (unread, strange) = (store.sealer.seal(PROGRESS, b""), store.sealer.seal(b"strange", b"x"));
        // A process of another test may hold the lock for a moment.
        let damaged = store.database_handle.read(move |d| {
            let stream = d.tree.get(STREAM)?.expect("a value");
            d.tree.insert("held/00000001", stream)?;
            d.tree.insert(PROGRESS, unread)?;
            d.tree.insert("strange", strange)
        });
        damaged.expect("writes");
        let mut bytes = 0;
        let found = store.examine(|passed| bytes += passed).expect("a look");
        assert_eq!((found["held"].sealed_otherwise, found["held"].unreadable), (1, 0), "moved to another key");
        assert_eq!((found["progress"].sealed_otherwise, found["progress"].unreadable), (0, 1), "cut short");
        assert_eq!(found[UNKNOWN_KIND].unreadable, 1);
        assert_eq!(bytes, found.values().map(|kind| kind.bytes).sum::<u64>());
    }

    fn row(ordinal: u64, released: bool) -> StoredRow {
        StoredRow {
            ordinal,
            subject: 1,
            coordinate: RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 },
            waited: 0,
            released,
            parts: None,
            cells: vec!["x".to_owned()],
        }
    }

    #[test]
    fn contradicting_values_are_described() {
        let text = "name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"string\"\n";
        let schema = Schema::parse(text, "schema.toml", Path::new("")).expect("a schema");
        let mut found = RecoveredState::default();
        assert_eq!(found.contradictions(&schema), Vec::<String>::new());
        found.progress.totals = RecordTotals { consumed: 3, released: 1, ..RecordTotals::default() };
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
