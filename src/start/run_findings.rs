//! Statistics of a run, and findings about data lost without an error. Never a value.

use crate::telemetry::RejectionReason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use throng_core::stream::input_batch::LongRows;
use throng_core::stream::release_sink::RejectedRecord;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{ABSENT, NULL};
use throng_core::values::schema::{Attribute, AttributeOrigin, AttributePlace, Schema};
use throng_core::values::subject_digest::NO_SUBJECT;

/// Statistics that show a mismatch of schema and data; part of the state, so that restarts do not change the findings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStatistics {
    records: u64,
    #[serde(skip)]
    here: u64,
    /// Earlier records are not counted and may have had other values.
    in_part: bool,
    monitored: u64,
    /// Attributes with a value in any record.
    present: Vec<bool>,
    /// Records with a cell of the wrong type, per attribute.
    wrong_type: Vec<u64>,
    nameless: u64,
    /// Distinct subjects until `enough`.
    people: BTreeSet<u64>,
    enough: bool,
    needed: usize,
    long_rows: Option<LongRows>,
}

impl RunStatistics {
    /// Creates empty statistics; `needed` distinct subjects are enough.
    pub fn new(attributes: usize, needed: usize) -> Self {
        Self {
            records: 0,
            here: 0,
            in_part: false,
            monitored: 0,
            present: vec![false; attributes],
            wrong_type: vec![0; attributes],
            nameless: 0,
            people: BTreeSet::new(),
            enough: needed == 0,
            needed,
            long_rows: None,
        }
    }

    /// Continues earlier statistics. Without them, the `consumed` records are marked as not counted.
    #[must_use]
    pub fn continue_from(self, known: Option<Self>, consumed: u64) -> Self {
        match known.filter(|known| known.present.len() == self.present.len()) {
            Some(known) => {
                let enough = known.enough || known.people.len() >= self.needed;
                Self { enough, needed: self.needed, here: 0, ..known }
            }
            None => Self { in_part: consumed > 0, ..self },
        }
    }

    /// Adds the rows of a batch and its rejected records.
    pub fn add(&mut self, rows: &CodeBatch, rejected: &[RejectedRecord], long_rows: Option<LongRows>) {
        let before = self.records;
        self.records += rows.rows() as u64;
        for (present, column) in self.present.iter_mut().zip(&rows.columns) {
            *present = *present || column.iter().any(|code| !matches!(*code, ABSENT | NULL));
        }
        for rejected in rejected.iter().filter(|r| r.reason == RejectionReason::WrongType) {
            self.records += 1;
            if let Some(attribute) = rejected.attribute {
                self.wrong_type[attribute] += 1;
                self.present[attribute] = true;
            }
        }
        self.nameless += rows.subjects.iter().filter(|subject| **subject == NO_SUBJECT).count() as u64;
        for &subject in rows.subjects.iter().filter(|subject| **subject != NO_SUBJECT) {
            if self.enough {
                break;
            }
            self.people.insert(subject);
            self.enough = self.people.len() >= self.needed;
        }
        if self.enough {
            self.people.clear();
        }
        self.here += self.records - before;
        self.long_rows = LongRows::and(self.long_rows, long_rows);
    }

    /// Removes erased subjects; returns true if any was stored.
    pub fn forget(&mut self, is_gone: impl Fn(u64) -> bool) -> bool {
        let before = self.people.len();
        self.people.retain(|person| !is_gone(*person));
        self.people.len() < before
    }

    /// Adds records that are only measured.
    pub fn monitor(&mut self, records: u64) {
        self.monitored += records;
    }

    /// Records that are only measured.
    pub fn monitored(&self) -> u64 {
        self.monitored
    }

    /// Records decoded by this process.
    pub fn decoded_here(&self) -> u64 {
        self.here
    }

    /// Decoded records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the releasable attributes, and the subject, without a value.
    pub fn attributes_without_values(&self, schema: &Schema) -> Vec<usize> {
        let empty = |a: &usize| match schema.subject {
            Some(subject) if subject == *a => self.nameless + self.wrong_type[*a] == self.records,
            _ => schema.attributes[*a].role.is_releasable() && !self.present[*a],
        };
        if self.records == 0 || self.in_part {
            Vec::new()
        } else {
            (0..schema.attributes.len()).filter(empty).collect()
        }
    }

    /// Returns the findings, the most severe first.
    pub fn findings(&self, schema: &Schema) -> Vec<RunFinding> {
        let mut found = Vec::new();
        let of = |a: usize| LocatedAttribute::of(&schema.attributes[a]);
        let unmet = self.attributes_without_values(schema);
        if let Some(subject) = schema.subject {
            if unmet.contains(&subject) && self.wrong_type[subject] == 0 {
                found.push(RunFinding::NoRecordHasSubject { subject: of(subject), records: self.records });
            } else if self.nameless > 0 {
                let (nameless, records) = (self.nameless, self.records);
                found.push(RunFinding::SubjectsMissing { subject: of(subject), nameless, records });
            }
        }
        if self.records > 0 && !self.enough && !self.in_part {
            found.push(RunFinding::InsufficientSubjects { people: self.people.len(), needed: self.needed });
        }
        for a in unmet.into_iter().filter(|a| schema.subject != Some(*a)) {
            found.push(RunFinding::NoValues { attribute: of(a), records: self.records });
        }
        for (a, &unreadable) in self.wrong_type.iter().enumerate().filter(|(_, n)| **n > 0) {
            let kind = schema.attributes[a].kind().name();
            found.push(RunFinding::WrongType { attribute: of(a), kind, unreadable, records: self.records });
        }
        found.extend(self.long_rows.map(|long| RunFinding::LongRows { long }));
        found
    }
}

/// Attribute with the location of its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedAttribute {
    name: String,
    place: String,
}

impl LocatedAttribute {
    fn of(attribute: &Attribute) -> Self {
        let place = match &attribute.place {
            // The attribute is a whole message part.
            _ if !attribute.from.has_fields() => format!("from = {:?}", attribute.from.name()),
            AttributePlace::Pointer(pointer) if attribute.from == AttributeOrigin::Key => {
                format!("pointer {pointer:?} of the key")
            }
            AttributePlace::Column(column) if attribute.from == AttributeOrigin::Key => {
                format!("column {column:?} of the key")
            }
            AttributePlace::Column(column) => format!("column {column:?}"),
            AttributePlace::Pointer(pointer) => format!("pointer {pointer:?}"),
        };
        Self { name: attribute.name.clone(), place }
    }
}

/// Finding at the end of a run, with its remedy.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunFinding {
    #[error(
        "none of {records} records has a subject: attribute {:?} has no value at {} (correct the place in the schema; a record without a subject does not count for any class)",
        subject.name, subject.place
    )]
    NoRecordHasSubject { subject: LocatedAttribute, records: u64 },
    #[error(
        "{nameless} of {records} records have no subject (attribute {:?}, {}): they do not count for any class",
        subject.name, subject.place
    )]
    SubjectsMissing { subject: LocatedAttribute, nameless: u64, records: u64 },
    #[error(
        "only {people} people were found and a class needs {needed}: nothing can be released (lower privacy.k, or give more data)"
    )]
    InsufficientSubjects { people: usize, needed: usize },
    #[error(
        "attribute {:?} had no value in any of {records} records: nothing was found at {} (correct the place in the schema, or remove the attribute from it)",
        attribute.name, attribute.place
    )]
    NoValues { attribute: LocatedAttribute, records: u64 },
    #[error(
        "attribute {:?}: {unreadable} of {records} records could not be read as {kind} and became dead letters (correct the attribute's type, format or decimal separator in the schema, or the data)",
        attribute.name
    )]
    WrongType { attribute: LocatedAttribute, kind: &'static str, unreadable: u64, records: u64 },
    #[error("join {join:?}: {records} of {all} records have no profile, and their joined cells are missing")]
    WithoutProfile { join: String, records: u64, all: u64 },
    #[error(
        "attribute {attribute:?}: {cells} cell(s) have values that its hierarchy does not cover, and are released as \"*\""
    )]
    Uncovered { attribute: String, cells: u64 },
    #[error(
        "{} record(s) span {} lines, the first is record {}: a quote is likely to be open there, and the lines up to the next quote are one cell (close it, or double the quotes inside a cell)",
        long.rows, long.lines, long.first + 1
    )]
    LongRows { long: LongRows },
}

impl RunFinding {
    /// Lines probably read as part of another record.
    pub fn swallowed_lines(&self) -> u64 {
        if let Self::LongRows { long } = self { long.lines.saturating_sub(long.rows) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use throng_core::values::raw_batch::RecordPosition;

    const SCHEMA: &str = r#"
name = "visits"
[[attribute]]
name = "person"
type = "string"
role = "subject"
[[attribute]]
name = "day"
pointer = "/when/day"
type = "date"
[[attribute]]
name = "ward"
type = "string"
"#;

    fn schema() -> Schema {
        Schema::parse(SCHEMA, "visits.toml", Path::new("")).expect("a schema")
    }

    fn rows(days: &[u32], wards: &[u32], subjects: &[u64]) -> CodeBatch {
        let mut batch = CodeBatch::new(0);
        batch.columns = vec![vec![ABSENT; days.len()], days.to_vec(), wards.to_vec()];
        batch.subjects = subjects.to_vec();
        batch.coordinates = (0..)
            .map(|offset| RecordPosition { topic: 0, partition: 0, offset, element: 0 })
            .take(days.len())
            .collect();
        batch
    }

    fn told(met: &RunStatistics) -> Vec<String> {
        met.findings(&schema()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn matching_stream_has_no_findings() {
        let mut met = RunStatistics::new(3, 2);
        assert!(told(&met).is_empty(), "an empty one neither");
        met.add(&rows(&[7, 8], &[7, 7], &[1, 2]), &[], None);
        assert!(told(&met).is_empty());
    }

    #[test]
    fn missing_values_are_reported_with_attribute_and_place() {
        let mut met = RunStatistics::new(3, 2);
        met.add(&rows(&[ABSENT, NULL], &[7, 7], &[NO_SUBJECT, NO_SUBJECT]), &[], None);
        let told = told(&met);
        assert!(told[0].contains("none of 2 records has a subject") && told[0].contains("\"person\""), "{told:?}");
        assert!(told[1].contains("only 0 people") && told[1].contains("needs 2"), "{told:?}");
        assert!(told[2].contains("\"day\" had no value in any of 2") && told[2].contains("/when/day"), "{told:?}");
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn unreadable_cells_are_counted() {
        let mut met = RunStatistics::new(3, 2);
        let coordinate = RecordPosition { topic: 0, partition: 0, offset: 2, element: 0 };
        let rejected = RejectedRecord { coordinate, reason: RejectionReason::WrongType, attribute: Some(1) };
        let long = LongRows { first: 600, lines: 401, rows: 1 };
        met.add(&rows(&[], &[], &[]), &[rejected.clone(), rejected], Some(long));
        let told = told(&met);
        assert!(told.iter().any(|t| t.contains("2 of 2 records could not be read as date")), "{told:?}");
        assert!(told.iter().any(|t| t.contains("span 401 lines, the first is record 601")), "{told:?}");
    }
}
