//! What a cell turned out to be, for codecs that write its text into a buffer.

use crate::records::raw::Token;

/// What kind of cell a text in a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Number,
    Text,
    Structure,
}

impl Kind {
    /// The cell whose text is `text`.
    pub fn token(self, text: &str) -> Token<'_> {
        match self {
            Self::Null => Token::Null,
            Self::Bool(value) => Token::Bool(value),
            Self::Number => Token::Number(text),
            Self::Text => Token::Text(text),
            Self::Structure => Token::Structure(text),
        }
    }
}

/// Appends a number by `push`. What is no number stays a word, which no numeric attribute takes.
pub(super) fn push_float(out: &mut String, value: f64, push: impl Fn(&mut String, f64)) -> Kind {
    if value.is_finite() {
        push(out, if value == 0.0 { 0.0 } else { value });
        Kind::Number
    } else {
        out.push_str(if value.is_nan() { "NaN" } else { "infinite" });
        Kind::Text
    }
}

/// Appends a number that was a float: as many digits as tell it from its neighbours, which are fewer than a double's.
pub(super) fn push_single(out: &mut String, value: f64) {
    use std::fmt::Write as _;
    #[allow(clippy::cast_possible_truncation, reason = "it was a float")]
    let written = write!(out, "{}", value as f32);
    // Writing to a String cannot fail.
    debug_assert!(written.is_ok());
}
