//! Problems of a configuration.

/// Problem with location and remedy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{file}: {key}: {message}; {remedy}")]
pub struct ConfigProblem {
    /// Configuration file, or `environment`.
    pub file: String,
    /// Key path (`privacy.k`), variable (`THRONG__PRIVACY__K`), or line and column.
    pub key: String,
    /// Description without the value.
    pub message: String,
    /// Suggested correction.
    pub remedy: String,
}

impl ConfigProblem {
    pub(crate) fn new(
        file: impl Into<String>,
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { file: file.into(), key: key.into(), message: message.into(), remedy: remedy.into() }
    }
}

#[derive(Debug)]
pub(super) struct KeyProblem {
    pub key: String,
    pub message: String,
    pub remedy: String,
}

#[derive(Default)]
pub(super) struct ProblemCollector(pub Vec<KeyProblem>);

impl ProblemCollector {
    /// Adds a complaint unless `fulfilled`.
    pub fn require(&mut self, fulfilled: bool, key: &str, message: &str, remedy: &str) {
        if !fulfilled {
            self.0.push(KeyProblem { key: key.into(), message: message.into(), remedy: remedy.into() });
        }
    }
}

pub(super) fn is_name(name: &str) -> bool {
    (1..65).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b))
}

/// Returns the Levenshtein distance.
pub(super) fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Returns the candidate with the fewest edits, the first of equals.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates.into_iter().min_by_key(|candidate| edit_distance(name, candidate))
}

/// Deliberately unsupported value.
pub(super) struct RefusedValue {
    key: &'static str,
    value: &'static str,
    /// Reason for the refusal.
    pub message: &'static str,
    /// Suggested alternative.
    pub remedy: &'static str,
}

const REFUSED: [RefusedValue; 1] = [RefusedValue {
    key: "plan.groups",
    value: "rowwise",
    message: "groups per record are not supported: the set of attributes that stay together is itself a value without k-anonymity, and reveals which values of the record are rare (docs/internals/decisions.md)",
    remedy: "set \"price\", with a [[keep]] for attributes that are needed together",
}];

/// Returns the refusal of `value` at `key`; None if it is only unknown.
pub(super) fn find_refused(key: &str, value: &str) -> Option<&'static RefusedValue> {
    REFUSED.iter().find(|refused| refused.key == key && refused.value == value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{edit_distance, nearest};

    /// Recursive definition, in exponential time.
    fn recursive_distance(a: &[u8], b: &[u8]) -> usize {
        match (a.split_first(), b.split_first()) {
            (None, _) => b.len(),
            (_, None) => a.len(),
            (Some((x, a1)), Some((y, b1))) => (recursive_distance(a1, b1) + usize::from(x != y))
                .min(recursive_distance(a1, b) + 1)
                .min(recursive_distance(a, b1) + 1),
        }
    }

    #[test]
    fn nearest_name_is_suggested_for_typo() {
        assert_eq!(nearest("max_record", ["max_wait", "max_records", "max_bytes"]), Some("max_records"));
        assert_eq!(nearest("x", []), None);
    }

    proptest! {
        #[test]
        fn edit_distance_matches_recursive_definition(a in "[abc]{0,5}", b in "[abc]{0,5}") {
            prop_assert_eq!(edit_distance(&a, &b), recursive_distance(a.as_bytes(), b.as_bytes()));
        }
    }
}
