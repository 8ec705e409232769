//! String prefixes.

use super::{HierarchyFlaw, ValueCover};
use crate::values::json::{quoted, unquoted};

/// Masked prefixes of Unicode scalar values: `60617` → `6061*` → `606**`.
///
/// Values with the text of another cell are not covered: masked ones (`606**`), and `60*17` with three kept characters.
#[derive(Clone, Debug)]
pub struct Prefix {
    keep: Vec<usize>,
    length: Option<usize>,
}

impl Prefix {
    /// Creates the hierarchy from numbers of kept characters.
    ///
    /// # Errors
    /// Fails if the numbers do not fall, or are not from 1 to length − 1.
    pub fn build(keep: Vec<usize>, length: Option<usize>) -> Result<Self, Vec<HierarchyFlaw>> {
        let mut flaws = Vec::new();
        if keep.is_empty() {
            flaws.push(HierarchyFlaw::new("keep", "no levels: list the characters kept on at least one"));
        }
        if keep.windows(2).any(|pair| pair[0] <= pair[1]) {
            flaws.push(HierarchyFlaw::new("keep", "the numbers do not decrease: sort them from fine to coarse"));
        }
        if keep.contains(&0) {
            flaws.push(HierarchyFlaw::new("keep", "0 keeps no characters, like the root: remove it"));
        }
        if keep.iter().any(|&kept| length.is_some_and(|length| kept >= length)) {
            flaws.push(HierarchyFlaw::new("keep", "a number is not below length: nothing would be masked"));
        }
        if flaws.is_empty() { Ok(Self { keep, length }) } else { Err(flaws) }
    }

    pub(super) fn inner_levels(&self) -> usize {
        self.keep.len()
    }

    pub(super) fn label(&self, index: usize) -> String {
        match self.length {
            Some(length) => format!("{} of {length} characters", self.keep[index]),
            None => format!("first {} characters", self.keep[index]),
        }
    }

    pub(super) fn covers(&self, canonical: &str) -> Option<Vec<ValueCover>> {
        let value = unquoted(canonical)?;
        let characters: Vec<char> = value.chars().collect();
        let length = characters.len();
        if self.length.is_some_and(|expected| expected != length) {
            return None;
        }
        // The value, or its masked text, looks like a masked value.
        let ambiguous = |&kept: &usize| {
            kept < length && (characters[kept - 1] == '*' || characters[kept..].iter().all(|&c| c == '*'))
        };
        if self.keep.iter().any(ambiguous) {
            return None;
        }
        let cover = |&kept: &usize| {
            if kept >= length {
                return ValueCover::Value;
            }
            let mut text: String = characters[..kept].iter().collect();
            text.extend(std::iter::repeat_n('*', length - kept));
            ValueCover::Set { text: quoted(&text), set: format!("prefix {kept} {length} {text}"), loss: None }
        };
        Some(self.keep.iter().map(cover).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(prefix: &Prefix, value: &str) -> Vec<String> {
        super::super::texts(prefix.covers(&quoted(value)))
    }

    #[test]
    fn prefix_masks_remaining_characters() {
        let zip = Prefix::build(vec![4, 3, 2], Some(5)).unwrap();
        assert_eq!(texts(&zip, "60617"), ["6061*", "606**", "60***"]);
        let open = Prefix::build(vec![3, 1], None).unwrap();
        assert_eq!(texts(&open, "äbcd"), ["äbc*", "ä***"]);
        assert_eq!(texts(&open, "ab"), ["VALUE", "a*"]);
        for (prefix, value) in [(&zip, "606**"), (&zip, "60*17"), (&zip, "6061"), (&open, "a*")] {
            assert_eq!(prefix.covers(&quoted(value)), None, "{value}");
        }
    }

    #[test]
    fn prefix_lengths_that_do_not_nest_are_refused() {
        assert!(Prefix::build(vec![2, 3], None).is_err());
        assert!(Prefix::build(vec![3, 0], None).is_err());
        assert!(Prefix::build(vec![5], Some(5)).is_err());
        assert!(Prefix::build(Vec::new(), None).is_err());
    }
}
