//! Targets: a column, or whether any of several columns has a value.

use super::features;
use crate::evaluation::facts::{AttributeFacts, is_present};
use crate::evaluation::original::Original;
use crate::evaluation::released::ReleasedGroup;
use std::collections::BTreeSet;
use throng_core::values::codebook::Code;

/// Values of a target that are told apart; the rarer ones are one class. Numbers with more are above their median or not.
const MOST_CLASSES: usize = 8;

/// A target that cannot be learned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum TargetError {
    #[error(
        "--target {0}: no attribute of this name leaves in a group, and no series with `moments` has a signal of this name: name one that does"
    )]
    NothingLeaves(String),
    #[error("--target {0}: no record has the value {1:?} there; name one that occurs")]
    NoSuchValue(String, String),
    #[error("--target {0}: write a column, or `any(COLUMNS*) = VALUE`")]
    Unreadable(String),
}

/// An attribute to be learned.
#[derive(Clone, Debug)]
pub struct Target {
    name: String,
    /// Its attributes, ascending.
    pub(super) attributes: Vec<usize>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The value of the only attribute.
    Value,
    /// Whether one of the attributes has the value: by attribute, its code.
    Any(Vec<Option<Code>>),
}

impl Target {
    /// Reads `text`: the name of a column, or `any(PATTERN) = VALUE`, where a `*` in the pattern stands for any text. Attributes for which
    /// `leaves` is false are no target.
    ///
    /// # Errors
    /// When it names no attribute that leaves, or a value that no record has.
    pub fn parse(text: &str, original: &Original, leaves: impl Fn(usize) -> bool) -> Result<Self, TargetError> {
        let name = text.trim().to_owned();
        let named = |pattern: &str| -> Vec<usize> {
            let names = original.schema.attributes.iter().map(|attribute| attribute.name.as_str()).enumerate();
            names.filter(|(a, name)| leaves(*a) && fits(pattern, name)).map(|(a, _)| a).collect()
        };
        if let Some(attribute) = original.schema.position(&name) {
            if !leaves(attribute) {
                return Err(TargetError::NothingLeaves(name));
            }
            return Ok(Self { name, attributes: vec![attribute], kind: Kind::Value });
        }
        let Some(rest) = name.strip_prefix("any(") else { return Err(TargetError::NothingLeaves(name)) };
        let (pattern, value) =
            match rest.split_once(')').map(|(pattern, value)| (pattern, value.trim().strip_prefix('='))) {
                Some((pattern, Some(value))) => (pattern.trim().to_owned(), value.trim().to_owned()),
                _ => return Err(TargetError::Unreadable(name)),
            };
        let attributes = named(&pattern);
        if attributes.is_empty() {
            return Err(TargetError::NothingLeaves(name));
        }
        let codes: Vec<Option<Code>> = attributes.iter().map(|a| code_of(original, *a, &value)).collect();
        if codes.iter().all(Option::is_none) {
            return Err(TargetError::NoSuchValue(name, value));
        }
        Ok(Self { name, attributes, kind: Kind::Any(codes) })
    }

    /// The target as it was asked for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The classes of the target.
    pub(super) fn classes(&self, original: &Original, facts: &[AttributeFacts]) -> Classes {
        match &self.kind {
            Kind::Value => Classes::of_values(original, &facts[self.attributes[0]], self.attributes[0]),
            Kind::Any(codes) => {
                Classes::Any { wanted: self.attributes.iter().copied().zip(codes.iter().copied()).collect() }
            }
        }
    }
}

/// Whether `name` fits a pattern, in which `*` stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(end)
}

/// The code of a value of an attribute, in its plain spelling.
fn code_of(original: &Original, attribute: usize, value: &str) -> Option<Code> {
    let book = &original.books[attribute];
    let quoted = serde_json::Value::from(value).to_string();
    (0..book.codes() as Code)
        .find(|code| is_present(*code) && (book.canonical(*code) == quoted || book.canonical(*code) == value))
}

/// The classes of a target.
pub(super) enum Classes {
    /// By code of the attribute; none for a missing value.
    Values { attribute: usize, of_code: Vec<Option<u32>>, number: usize, are: &'static str },
    /// Whether one of the attributes has its code.
    Any { wanted: Vec<(usize, Option<Code>)> },
}

impl Classes {
    fn of_values(original: &Original, facts: &AttributeFacts, attribute: usize) -> Self {
        let counts = &facts.counts;
        let mut codes: Vec<Code> =
            (0..counts.len() as Code).filter(|code| is_present(*code) && counts[*code as usize] > 0).collect();
        let mut of_code = vec![None; counts.len()];
        if codes.len() > MOST_CLASSES
            && let Some(numbers) = features::numbers(original, attribute)
        {
            let mut all: Vec<f64> = original.batch.columns[attribute]
                .iter()
                .filter_map(|code| numbers.get(*code as usize).copied().flatten())
                .collect();
            all.sort_by(f64::total_cmp);
            let median = all.get(all.len() / 2).copied().unwrap_or(0.0);
            for code in codes {
                of_code[code as usize] = numbers[code as usize].map(|number| u32::from(number >= median));
            }
            return Self::Values { attribute, of_code, number: 2, are: "above the median" };
        }
        codes.sort_by_key(|code| (std::cmp::Reverse(counts[*code as usize]), *code));
        for (rank, code) in codes.iter().enumerate() {
            of_code[*code as usize] = Some(rank.min(MOST_CLASSES - 1) as u32);
        }
        Self::Values { attribute, of_code, number: codes.len().min(MOST_CLASSES), are: "values" }
    }

    pub(super) fn number(&self) -> usize {
        match self {
            Self::Values { number, .. } => *number,
            Self::Any { .. } => 2,
        }
    }

    /// How the target was made classes.
    pub(super) fn are(&self) -> &'static str {
        match self {
            Self::Values { are, .. } => are,
            Self::Any { .. } => "has the value or not",
        }
    }

    /// The class of a record.
    pub(super) fn of_row(&self, original: &Original, row: usize) -> Option<u32> {
        let code = |attribute: usize| original.batch.columns[attribute][row];
        match self {
            Self::Values { attribute, of_code, .. } => of_code[code(*attribute) as usize],
            Self::Any { wanted } => Some(u32::from(wanted.iter().any(|(a, wanted)| *wanted == Some(code(*a))))),
        }
    }

    /// The class of a line. A cell that stands for several classes has none; of several columns, one that shows the value alone is a case, and
    /// a line without such a cell is none, as whoever reads the lines has to take it.
    pub(super) fn of_line(&self, facts: &[AttributeFacts], group: &ReleasedGroup, line: usize) -> Option<u32> {
        let codes =
            |attribute: usize| group.column(attribute).map(|cells| facts[attribute].get(cells[line]).codes.as_slice());
        match self {
            Self::Values { attribute, of_code, .. } => {
                let classes: BTreeSet<Option<u32>> =
                    codes(*attribute)?.iter().map(|code| of_code.get(*code as usize).copied().flatten()).collect();
                if classes.len() == 1 { classes.first().copied().flatten() } else { None }
            }
            Self::Any { wanted } => {
                let shows =
                    |(a, wanted): &(usize, Option<Code>)| wanted.is_some_and(|wanted| codes(*a) == Some(&[wanted]));
                Some(u32::from(wanted.iter().any(shows)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_name_columns() {
        for (pattern, name, is) in [
            ("disease_*", "disease_0", true),
            ("disease_*", "my_disease_0", false),
            ("*", "age", true),
            ("age", "age", true),
            ("age", "ages", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("*_0", "snp_0", true),
            ("aa*aa", "aaa", false),
        ] {
            assert_eq!(fits(pattern, name), is, "{pattern} {name}");
        }
    }
}
