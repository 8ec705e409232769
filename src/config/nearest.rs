//! The name that was probably meant.

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
