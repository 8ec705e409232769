//! From raw cells to profiles: whose a row is, and its cells as they are kept.

use super::table::Cells;
use crate::telemetry::RejectionReason;
use std::sync::Arc;
use throng_core::values::canonical::{Canonical, CellError};
use throng_core::values::raw::{RawBatch, Token};
use throng_core::values::schema::Attribute;
use throng_core::values::subject::{NO_SUBJECT, Subjects};

/// Where in a row of profiles the person is named; the attributes follow.
pub const PERSON: usize = 0;

/// One profile has become another, or is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Whose it is, as a keyed digest.
    pub person: u64,
    /// What it says; none where it is gone.
    pub cells: Option<Cells>,
}

/// Reads the rows of profiles: person first, then the attributes.
#[derive(Debug)]
pub struct People {
    subjects: Subjects,
    attributes: Vec<Arc<Attribute>>,
    text: String,
}

impl People {
    /// People as `subjects` digests them, with cells of `attributes`.
    pub fn new(subjects: Subjects, attributes: Vec<Arc<Attribute>>) -> Self {
        Self { subjects, attributes, text: String::new() }
    }

    /// Cells of a row.
    pub fn width(&self) -> usize {
        PERSON + 1 + self.attributes.len()
    }

    /// Whose profile is in `row`; none where it names nobody, or not by a value of the subject's type.
    pub fn person(&mut self, raw: &RawBatch, row: usize) -> Option<u64> {
        self.subjects.digest(raw.token(row, PERSON)).ok().filter(|person| *person != NO_SUBJECT)
    }

    /// Why `row` names nobody.
    pub fn unnamed(&self, raw: &RawBatch, row: usize) -> RejectionReason {
        match raw.token(row, PERSON) {
            Token::Absent => RejectionReason::MissingField,
            _ => RejectionReason::WrongType,
        }
    }

    /// The cells of the profile in `row`, typed and rounded as those of records are. What is absent is missing.
    ///
    /// # Errors
    /// The first cell that its attribute's type cannot take.
    pub fn cells(&mut self, raw: &RawBatch, row: usize) -> Result<Cells, CellError> {
        let mut cells = String::new();
        for (at, attribute) in self.attributes.iter().enumerate() {
            let token = raw.token(row, PERSON + 1 + at);
            let found = match token {
                Token::Absent | Token::Null => Canonical::Null,
                token => attribute.typing.canonical(token, &mut self.text)?,
            };
            if at > 0 {
                cells.push('\n');
            }
            match found {
                Canonical::Value => cells.push_str(&self.text),
                Canonical::Absent | Canonical::Null => cells.push_str("null"),
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
    use throng_core::values::raw::Coordinate;
    use throng_core::values::schema::Schema;

    fn people() -> People {
        let text = "name = \"t\"\n[[attribute]]\nname = \"id\"\ntype = \"integer\"\nrole = \"subject\"\n\
            [[attribute]]\nname = \"age\"\ntype = \"integer\"\nfrom = \"join:p\"\nmissing = [\"-1\"]\n\
            [[attribute]]\nname = \"note\"\ntype = \"string\"\nfrom = \"join:p\"\n";
        let schema = Schema::parse(text, "t.toml", Path::new("")).expect("a schema");
        let attributes = schema.joined_by("p").into_iter().map(|a| Arc::clone(&schema.attributes[a])).collect();
        People::new(Subjects::new(Arc::clone(&schema.attributes[0]), &DigestKey([1; 32])), attributes)
    }

    fn row(cells: &[Token<'_>]) -> RawBatch {
        let mut raw = RawBatch::new(3);
        raw.push_row(Coordinate { topic: 0, partition: 0, offset: 0, element: 0 });
        for (at, cell) in cells.iter().enumerate() {
            raw.set(at, *cell);
        }
        raw
    }

    #[test]
    fn cells_are_canonical_and_a_line_break_in_a_text_is_none_between_cells() {
        let mut people = people();
        let cells = people.cells(&row(&[Token::Number("7"), Token::Text("41.0"), Token::Text("a\nb")]), 0);
        assert_eq!(cells.expect("fits").as_ref(), "41\n\"a\\nb\"");
        let cells = people.cells(&row(&[Token::Number("7"), Token::Number("-1"), Token::Absent]), 0);
        assert_eq!(cells.expect("fits").as_ref(), "null\nnull");
        assert!(people.cells(&row(&[Token::Number("7"), Token::Text("canary")]), 0).is_err());
        assert!(people.cells(&row(&[Token::Number("7"), Token::Number("NaN")]), 0).is_err());
    }

    #[test]
    fn spellings_of_a_person_are_one_and_nobody_is_none() {
        let mut people = people();
        let one = people.person(&row(&[Token::Text("7")]), 0);
        assert!(one.is_some() && people.person(&row(&[Token::Number("7.0")]), 0) == one);
        for nobody in [Token::Absent, Token::Null, Token::Text("x"), Token::Structure("[7]")] {
            assert_eq!(people.person(&row(&[nobody]), 0), None);
        }
    }
}
