//! What a run has met of each attribute, and what an operator must be told of it: data that were lost without an error.
//!
//! Attributes, counts and places; never a value.

use crate::io::file::LongRows;
use crate::release::sink::Rejected;
use crate::telemetry::RejectionReason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use throng_core::values::codebook::{ABSENT, NULL};
use throng_core::values::schema::{Attribute, Origin, Place, Schema};
use throng_core::values::subject::NO_SUBJECT;
use throng_core::values::table::Batch;

/// What the records of a stream had, as far as it tells whether schema and data fit together. It is part of the state: what is
/// told at the end does not hang on where a process began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Met {
    /// Records that were decoded.
    records: u64,
    /// Those of this process.
    #[serde(skip)]
    here: u64,
    /// Records came before that nobody has noted: what none of the others had, some of these may have had.
    in_part: bool,
    /// Records of which only the risk was measured.
    monitored: u64,
    /// By attribute: whether any record had a value of it.
    present: Vec<bool>,
    /// By attribute: records whose cell was not of its type.
    wrong_type: Vec<u64>,
    /// Records that name nobody, where the schema has a subject.
    nameless: u64,
    /// Distinct subjects, as long as they are too few.
    people: BTreeSet<u64>,
    /// A crowd of them has been met.
    enough: bool,
    needed: usize,
    long_rows: Option<LongRows>,
}

impl Met {
    /// Nothing met yet of `attributes`; a crowd needs `needed` people.
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

    /// Goes on where the process before ended. `consumed` records have come in all; of those that `known` does not know of
    /// nothing is said.
    #[must_use]
    pub fn resume(self, known: Option<Self>, consumed: u64) -> Self {
        match known.filter(|known| known.present.len() == self.present.len()) {
            Some(known) => {
                let enough = known.enough || known.people.len() >= self.needed;
                Self { enough, needed: self.needed, here: 0, ..known }
            }
            None => Self { in_part: consumed > 0, ..self },
        }
    }

    /// Adds the encoded rows of a batch and the records of it that could not be encoded.
    pub fn add(&mut self, rows: &Batch, rejected: &[Rejected], long_rows: Option<LongRows>) {
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

    /// Forgets people of whom too few were met so far; true where it knew one.
    pub fn forget(&mut self, is_gone: impl Fn(u64) -> bool) -> bool {
        let before = self.people.len();
        self.people.retain(|person| !is_gone(*person));
        self.people.len() < before
    }

    /// Notes records of which only the risk was measured.
    pub fn monitor(&mut self, records: u64) {
        self.monitored += records;
    }

    /// Records of which only the risk was measured.
    pub fn monitored(&self) -> u64 {
        self.monitored
    }

    /// Records that this process has decoded.
    pub fn here(&self) -> u64 {
        self.here
    }

    /// Records that were decoded.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Attributes that may leave and had no value in any record, and the subject where nobody was named.
    pub fn unmet(&self, schema: &Schema) -> Vec<usize> {
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

    /// What there is to tell, the worst first.
    pub fn findings(&self, schema: &Schema) -> Vec<Finding> {
        let mut found = Vec::new();
        let of = |a: usize| Named::of(&schema.attributes[a]);
        let unmet = self.unmet(schema);
        if let Some(subject) = schema.subject {
            if unmet.contains(&subject) && self.wrong_type[subject] == 0 {
                found.push(Finding::NobodyNamed { subject: of(subject), records: self.records });
            } else if self.nameless > 0 {
                let (nameless, records) = (self.nameless, self.records);
                found.push(Finding::SomeNameless { subject: of(subject), nameless, records });
            }
        }
        if self.records > 0 && !self.enough && !self.in_part {
            found.push(Finding::FewPeople { people: self.people.len(), needed: self.needed });
        }
        for a in unmet.into_iter().filter(|a| schema.subject != Some(*a)) {
            found.push(Finding::NeverMet { attribute: of(a), records: self.records });
        }
        for (a, &unreadable) in self.wrong_type.iter().enumerate().filter(|(_, n)| **n > 0) {
            let kind = schema.attributes[a].kind().name();
            found.push(Finding::WrongType { attribute: of(a), kind, unreadable, records: self.records });
        }
        found.extend(self.long_rows.map(|long| Finding::LongRows { long }));
        found
    }
}

/// An attribute and where its cells are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    name: String,
    place: String,
}

impl Named {
    fn of(attribute: &Attribute) -> Self {
        let place = match &attribute.place {
            // It is taken as a whole.
            _ if !attribute.from.has_fields() => format!("from = {:?}", attribute.from.name()),
            Place::Pointer(pointer) if attribute.from == Origin::Key => format!("pointer {pointer:?} of the key"),
            Place::Column(column) if attribute.from == Origin::Key => format!("column {column:?} of the key"),
            Place::Column(column) => format!("column {column:?}"),
            Place::Pointer(pointer) => format!("pointer {pointer:?}"),
        };
        Self { name: attribute.name.clone(), place }
    }
}

/// Something that an operator must know at the end of a run, in words, with its remedy.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    #[error(
        "none of {records} records names its subject: attribute {:?} has no value at {} (correct the place in the schema; a record that names nobody supports nobody)",
        subject.name, subject.place
    )]
    NobodyNamed { subject: Named, records: u64 },
    #[error(
        "{nameless} of {records} records do not name their subject (attribute {:?}, {}): they support nobody",
        subject.name, subject.place
    )]
    SomeNameless { subject: Named, nameless: u64, records: u64 },
    #[error(
        "only {people} people were met and a crowd needs {needed}: nothing can leave (lower privacy.k, or give more data)"
    )]
    FewPeople { people: usize, needed: usize },
    #[error(
        "attribute {:?} had no value in any of {records} records: nothing was found at {} (correct the place in the schema, or take the attribute out of it)",
        attribute.name, attribute.place
    )]
    NeverMet { attribute: Named, records: u64 },
    #[error(
        "attribute {:?}: {unreadable} of {records} records could not be read as {kind} and became dead letters (correct the attribute's type, format or decimal separator in the schema, or the data)",
        attribute.name
    )]
    WrongType { attribute: Named, kind: &'static str, unreadable: u64, records: u64 },
    #[error("join {join:?}: {records} of {all} records have no profile, and their cells of it are missing")]
    Unjoined { join: String, records: u64, all: u64 },
    #[error(
        "attribute {attribute:?}: {cells} cell(s) have values that its hierarchy does not cover, and leave as \"*\""
    )]
    Uncovered { attribute: String, cells: u64 },
    #[error(
        "{} record(s) span {} lines, the first is record {}: a quote is likely to be open there, and the lines up to the next quote are one cell (close it, or double the quotes inside a cell)",
        long.rows, long.lines, long.first + 1
    )]
    LongRows { long: LongRows },
}

impl Finding {
    /// Lines that are likely to be records of their own, and were read as part of another one.
    pub fn swallowed_lines(&self) -> u64 {
        if let Self::LongRows { long } = self { long.lines.saturating_sub(long.rows) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use throng_core::values::raw::Coordinate;

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

    fn rows(days: &[u32], wards: &[u32], subjects: &[u64]) -> Batch {
        let mut batch = Batch::new(0);
        batch.columns = vec![vec![ABSENT; days.len()], days.to_vec(), wards.to_vec()];
        batch.subjects = subjects.to_vec();
        batch.coordinates =
            (0..).map(|offset| Coordinate { topic: 0, partition: 0, offset, element: 0 }).take(days.len()).collect();
        batch
    }

    fn told(met: &Met) -> Vec<String> {
        met.findings(&schema()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_stream_that_fits_its_schema_has_nothing_to_tell() {
        let mut met = Met::new(3, 2);
        assert!(told(&met).is_empty(), "an empty one neither");
        met.add(&rows(&[7, 8], &[7, 7], &[1, 2]), &[], None);
        assert!(told(&met).is_empty());
    }

    #[test]
    fn what_never_came_is_told_by_attribute_and_place() {
        let mut met = Met::new(3, 2);
        met.add(&rows(&[ABSENT, NULL], &[7, 7], &[NO_SUBJECT, NO_SUBJECT]), &[], None);
        let told = told(&met);
        assert!(told[0].contains("none of 2 records names its subject") && told[0].contains("\"person\""), "{told:?}");
        assert!(told[1].contains("only 0 people") && told[1].contains("needs 2"), "{told:?}");
        assert!(told[2].contains("\"day\" had no value in any of 2") && told[2].contains("/when/day"), "{told:?}");
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn what_could_not_be_read_is_counted() {
        let mut met = Met::new(3, 2);
        let coordinate = Coordinate { topic: 0, partition: 0, offset: 2, element: 0 };
        let rejected = Rejected { coordinate, reason: RejectionReason::WrongType, attribute: Some(1) };
        let long = LongRows { first: 600, lines: 401, rows: 1 };
        met.add(&rows(&[], &[], &[]), &[rejected.clone(), rejected], Some(long));
        let told = told(&met);
        assert!(told.iter().any(|t| t.contains("2 of 2 records could not be read as date")), "{told:?}");
        assert!(told.iter().any(|t| t.contains("span 401 lines, the first is record 601")), "{told:?}");
    }
}
