//! Prediction targets.

use super::features;
use crate::facts::{AttributeFacts, is_present};
use crate::original::OriginalData;
use crate::released_lines::ReleasedGroup;
use std::collections::BTreeSet;
use throng_core::values::codebook::Code;

/// Rarer values share the last class; numbers are split at the median.
const MAX_TARGET_CLASSES: usize = 8;

/// Invalid target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum TargetError {
    #[error(
        "--target {0}: no group releases an attribute of this name, and no series with `moments` has a signal of this name: name a released one"
    )]
    NotReleased(String),
    #[error("--target {0}: no record has the value {1:?} there; name one that occurs")]
    UnknownValue(String, String),
    #[error("--target {0}: write a column, or `any(COLUMNS*) = VALUE`")]
    InvalidExpression(String),
}

/// Attribute, or combination, to predict.
#[derive(Clone, Debug)]
pub struct LearningTarget {
    name: String,
    /// Ascending.
    pub(super) attributes: Vec<usize>,
    kind: TargetKind,
}

#[derive(Clone, Debug)]
enum TargetKind {
    Value,
    /// Code of the value per attribute.
    Any(Vec<Option<Code>>),
}

impl LearningTarget {
    /// Parses a column name or `any(PATTERN) = VALUE_CELL` (`*`: any text) among attributes that `leaves` accepts.
    ///
    /// # Errors
    ///
    /// When the syntax is invalid, no attribute matches, or no record has the value.
    pub fn parse(text: &str, original: &OriginalData, leaves: impl Fn(usize) -> bool) -> Result<Self, TargetError> {
        let name = text.trim().to_owned();
        let named = |pattern: &str| -> Vec<usize> {
            let names = original.schema.attributes.iter().map(|attribute| attribute.name.as_str()).enumerate();
            names.filter(|(a, name)| leaves(*a) && matches_pattern(pattern, name)).map(|(a, _)| a).collect()
        };
        if let Some(attribute) = original.schema.position(&name) {
            if !leaves(attribute) {
                return Err(TargetError::NotReleased(name));
            }
            return Ok(Self { name, attributes: vec![attribute], kind: TargetKind::Value });
        }
        let Some(rest) = name.strip_prefix("any(") else { return Err(TargetError::NotReleased(name)) };
        let (pattern, value) =
            match rest.split_once(')').map(|(pattern, value)| (pattern, value.trim().strip_prefix('='))) {
                Some((pattern, Some(value))) => (pattern.trim().to_owned(), value.trim().to_owned()),
                _ => return Err(TargetError::InvalidExpression(name)),
            };
        let attributes = named(&pattern);
        if attributes.is_empty() {
            return Err(TargetError::NotReleased(name));
        }
        let codes: Vec<Option<Code>> = attributes.iter().map(|a| code_of_value(original, *a, &value)).collect();
        if codes.iter().all(Option::is_none) {
            return Err(TargetError::UnknownValue(name, value));
        }
        Ok(Self { name, attributes, kind: TargetKind::Any(codes) })
    }

    /// Returns the target as given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn classes(&self, original: &OriginalData, facts: &[AttributeFacts]) -> TargetClasses {
        match &self.kind {
            TargetKind::Value => {
                TargetClasses::from_value_counts(original, &facts[self.attributes[0]], self.attributes[0])
            }
            TargetKind::Any(codes) => {
                TargetClasses::Any { wanted: self.attributes.iter().copied().zip(codes.iter().copied()).collect() }
            }
        }
    }
}

/// `*` matches any text.
fn matches_pattern(pattern: &str, name: &str) -> bool {
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

/// With or without JSON quotes.
fn code_of_value(original: &OriginalData, attribute: usize, value: &str) -> Option<Code> {
    let book = &original.books[attribute];
    let quoted = serde_json::Value::from(value).to_string();
    (0..book.codes() as Code)
        .find(|code| is_present(*code) && (book.canonical(*code) == quoted || book.canonical(*code) == value))
}

pub(super) enum TargetClasses {
    /// None for a missing value.
    Values {
        attribute: usize,
        of_code: Vec<Option<u32>>,
        number: usize,
        are: &'static str,
    },
    Any {
        wanted: Vec<(usize, Option<Code>)>,
    },
}

impl TargetClasses {
    fn from_value_counts(original: &OriginalData, facts: &AttributeFacts, attribute: usize) -> Self {
        let counts = &facts.counts;
        let mut codes: Vec<Code> =
            (0..counts.len() as Code).filter(|code| is_present(*code) && counts[*code as usize] > 0).collect();
        let mut of_code = vec![None; counts.len()];
        if codes.len() > MAX_TARGET_CLASSES
            && let Some(numbers) = features::numbers_by_code(original, attribute)
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
            of_code[*code as usize] = Some(rank.min(MAX_TARGET_CLASSES - 1) as u32);
        }
        Self::Values { attribute, of_code, number: codes.len().min(MAX_TARGET_CLASSES), are: "values" }
    }

    pub(super) fn number(&self) -> usize {
        match self {
            Self::Values { number, .. } => *number,
            Self::Any { .. } => 2,
        }
    }

    pub(super) fn class_kind(&self) -> &'static str {
        match self {
            Self::Values { are, .. } => are,
            Self::Any { .. } => "has the value or not",
        }
    }

    pub(super) fn class_of_record(&self, original: &OriginalData, row: usize) -> Option<u32> {
        let code = |attribute: usize| original.batch.columns[attribute][row];
        match self {
            Self::Values { attribute, of_code, .. } => of_code[code(*attribute) as usize],
            Self::Any { wanted } => Some(u32::from(wanted.iter().any(|(a, wanted)| *wanted == Some(code(*a))))),
        }
    }

    /// Class of a line; none for a cell of several classes. With several columns, only an exact cell makes a case, as
    /// for a consumer.
    pub(super) fn class_of_line(&self, facts: &[AttributeFacts], group: &ReleasedGroup, line: usize) -> Option<u32> {
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
    use super::matches_pattern;

    #[test]
    fn target_patterns_match_column_names() {
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
            assert_eq!(matches_pattern(pattern, name), is, "{pattern} {name}");
        }
    }
}
