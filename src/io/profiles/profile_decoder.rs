//! Decoder of profiles: subject digest and canonical cells.

use super::profile_table::ProfileCells;
use crate::telemetry::RejectionReason;
use std::sync::Arc;
use throng_core::values::canonical::{CanonicalKind, CellError};
use throng_core::values::raw_batch::{RawBatch, RawToken};
use throng_core::values::schema::Attribute;
use throng_core::values::subject_digest::{NO_SUBJECT, SubjectDigester};

/// Column of the subject, before the attributes.
pub const SUBJECT_COLUMN: usize = 0;

/// Change or removal of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileRevision {
    /// Keyed digest of the subject.
    pub person: u64,
    /// New cells; `None` if removed.
    pub cells: Option<ProfileCells>,
}

/// Decoder of profile rows.
#[derive(Debug)]
pub struct ProfileDecoder {
    subjects: SubjectDigester,
    attributes: Vec<Arc<Attribute>>,
    text: String,
}

impl ProfileDecoder {
    /// Creates a decoder of cells of `attributes`.
    pub fn new(subjects: SubjectDigester, attributes: Vec<Arc<Attribute>>) -> Self {
        Self { subjects, attributes, text: String::new() }
    }

    /// Returns the number of cells in a row.
    pub fn width(&self) -> usize {
        SUBJECT_COLUMN + 1 + self.attributes.len()
    }

    /// Returns the digest of the subject in `row`.
    pub fn subject_of_row(&mut self, raw: &RawBatch, row: usize) -> Option<u64> {
        self.subjects.digest(raw.token(row, SUBJECT_COLUMN)).ok().filter(|person| *person != NO_SUBJECT)
    }

    /// Returns the reason for a missing subject.
    pub fn missing_subject_reason(&self, raw: &RawBatch, row: usize) -> RejectionReason {
        match raw.token(row, SUBJECT_COLUMN) {
            RawToken::Absent => RejectionReason::MissingField,
            _ => RejectionReason::WrongType,
        }
    }

    /// Returns the cells in `row`; absent ones become missing.
    ///
    /// # Errors
    /// The first cell of a wrong type.
    pub fn cells(&mut self, raw: &RawBatch, row: usize) -> Result<ProfileCells, CellError> {
        let mut cells = String::new();
        for (at, attribute) in self.attributes.iter().enumerate() {
            let token = raw.token(row, SUBJECT_COLUMN + 1 + at);
            let found = match token {
                RawToken::Absent | RawToken::Null => CanonicalKind::Null,
                token => attribute.typing.canonical(token, &mut self.text)?,
            };
            if at > 0 {
                cells.push('\n');
            }
            match found {
                CanonicalKind::Value => cells.push_str(&self.text),
                CanonicalKind::Absent | CanonicalKind::Null => cells.push_str("null"),
            }
        }
        debug_assert_eq!(cells.matches('\n').count() + 1, self.attributes.len().max(1), "JSON has no raw line breaks");
        Ok(cells.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use throng_core::values::digest::DigestKey;
    use throng_core::values::raw_batch::RecordPosition;
    use throng_core::values::schema::Schema;

    fn people() -> ProfileDecoder {
        let text = "name = \"t\"\n[[attribute]]\nname = \"id\"\ntype = \"integer\"\nrole = \"subject\"\n\
            [[attribute]]\nname = \"age\"\ntype = \"integer\"\nfrom = \"join:p\"\nmissing = [\"-1\"]\n\
            [[attribute]]\nname = \"note\"\ntype = \"string\"\nfrom = \"join:p\"\n";
        let schema = Schema::parse(text, "t.toml", Path::new("")).expect("a schema");
        let attributes =
            schema.attributes_of_join("p").into_iter().map(|a| Arc::clone(&schema.attributes[a])).collect();
        ProfileDecoder::new(SubjectDigester::new(Arc::clone(&schema.attributes[0]), &DigestKey([1; 32])), attributes)
    }

    fn row(cells: &[RawToken<'_>]) -> RawBatch {
        let mut raw = RawBatch::new(3);
        raw.push_row(RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 });
        for (at, cell) in cells.iter().enumerate() {
            raw.set(at, *cell);
        }
        raw
    }

    #[test]
    fn profile_cells_are_canonical_and_escape_line_breaks() {
        let mut people = people();
        let cells = people.cells(&row(&[RawToken::Number("7"), RawToken::Text("41.0"), RawToken::Text("a\nb")]), 0);
        assert_eq!(cells.expect("fits").as_ref(), "41\n\"a\\nb\"");
        let cells = people.cells(&row(&[RawToken::Number("7"), RawToken::Number("-1"), RawToken::Absent]), 0);
        assert_eq!(cells.expect("fits").as_ref(), "null\nnull");
        assert!(people.cells(&row(&[RawToken::Number("7"), RawToken::Text("canary")]), 0).is_err());
        assert!(people.cells(&row(&[RawToken::Number("7"), RawToken::Number("NaN")]), 0).is_err());
    }

    #[test]
    fn subject_spellings_give_one_digest_and_invalid_ones_none() {
        let mut people = people();
        let one = people.subject_of_row(&row(&[RawToken::Text("7")]), 0);
        assert!(one.is_some() && people.subject_of_row(&row(&[RawToken::Number("7.0")]), 0) == one);
        for nobody in [RawToken::Absent, RawToken::Null, RawToken::Text("x"), RawToken::Structure("[7]")] {
            assert_eq!(people.subject_of_row(&row(&[nobody]), 0), None);
        }
    }
}
