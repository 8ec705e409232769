//! Problems of a configuration: one thing that is wrong, where, and what to do about it.

/// One thing that is wrong with a configuration: where, what, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{file}: {key}: {message}; {remedy}")]
pub struct Problem {
    /// The file as it was named by the caller, or `environment`.
    pub file: String,
    /// The key path (`privacy.k`), the variable (`THRONG__PRIVACY__K`), or a line and column.
    pub key: String,
    /// What is wrong, without the value.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl Problem {
    pub(crate) fn new(
        file: impl Into<String>,
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { file: file.into(), key: key.into(), message: message.into(), remedy: remedy.into() }
    }
}

/// What is wrong with one key.
#[derive(Debug)]
pub(super) struct Complaint {
    pub key: String,
    pub message: String,
    pub remedy: String,
}

/// All that is wrong.
#[derive(Default)]
pub(super) struct Complaints(pub Vec<Complaint>);

impl Complaints {
    /// Notes a complaint, unless what it asks for is `fulfilled`.
    pub fn unless(&mut self, fulfilled: bool, key: &str, message: &str, remedy: &str) {
        if !fulfilled {
            self.0.push(Complaint { key: key.into(), message: message.into(), remedy: remedy.into() });
        }
    }
}

/// Whether groups and joins may be called so.
pub(super) fn is_name(name: &str) -> bool {
    (1..65).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b))
}

/// Edits (insert, delete, replace one character) that turn `a` into `b`: the Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
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

/// The candidate with the fewest edits from `name`, the first of equals; None without candidates.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates.into_iter().min_by_key(|candidate| distance(name, candidate))
}

/// A value of a key that is not built, on purpose.
pub(super) struct Refused {
    key: &'static str,
    value: &'static str,
    /// Why.
    pub message: &'static str,
    /// What to do instead.
    pub remedy: &'static str,
}

const REFUSED: [Refused; 1] = [Refused {
    key: "plan.groups",
    value: "rowwise",
    message: "groups of each record by itself are not released: which attributes stay together is a value without a crowd, and says which values of the record are rare (docs/decisions/0042-no-groups-of-single-records.md)",
    remedy: "set \"price\", with a [[keep]] for what is needed together",
}];

/// What is said of `value` at `key`; none where it is only unknown.
pub(super) fn refused(key: &str, value: &str) -> Option<&'static Refused> {
    REFUSED.iter().find(|refused| refused.key == key && refused.value == value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{distance, nearest};

    /// The definition, exponential.
    fn twin(a: &[u8], b: &[u8]) -> usize {
        match (a.split_first(), b.split_first()) {
            (None, _) => b.len(),
            (_, None) => a.len(),
            (Some((x, a1)), Some((y, b1))) => {
                (twin(a1, b1) + usize::from(x != y)).min(twin(a1, b) + 1).min(twin(a, b1) + 1)
            }
        }
    }

    #[test]
    fn a_slip_is_recognised() {
        assert_eq!(nearest("max_record", ["max_wait", "max_records", "max_bytes"]), Some("max_records"));
        assert_eq!(nearest("x", []), None);
    }

    proptest! {
        #[test]
        fn the_distance_is_its_definition(a in "[abc]{0,5}", b in "[abc]{0,5}") {
            prop_assert_eq!(distance(&a, &b), twin(a.as_bytes(), b.as_bytes()));
        }
    }
}
