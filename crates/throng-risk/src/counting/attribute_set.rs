//! Set of attribute numbers.

use std::cmp::Ordering;

/// Exclusive bound of attribute numbers.
pub const MAX_ATTRIBUTES: usize = 1024;

/// Bitmap of attribute numbers below [`MAX_ATTRIBUTES`].
///
/// Ordered by size, then lexicographically: {0}, {5}, {0, 5}, {1, 2}.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct AttributeSet {
    /// No trailing zero words: derived equality compares sets.
    words: Vec<u64>,
}

impl AttributeSet {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates {0, …, count − 1}.
    pub fn first(count: usize) -> Self {
        (0..count).collect()
    }

    /// Adds an attribute.
    ///
    /// # Panics
    /// If it is not below [`MAX_ATTRIBUTES`].
    pub fn insert(&mut self, attribute: usize) {
        assert!(
            attribute < MAX_ATTRIBUTES,
            "attribute {attribute} exceeds the limit of {MAX_ATTRIBUTES} attributes per set"
        );
        let word = attribute / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (attribute % 64);
    }

    /// Removes an attribute.
    pub fn remove(&mut self, attribute: usize) {
        if let Some(word) = self.words.get_mut(attribute / 64) {
            *word &= !(1 << (attribute % 64));
        }
        self.trim();
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }

    /// Returns the set plus an attribute.
    #[must_use]
    pub fn with(&self, attribute: usize) -> Self {
        let mut set = self.clone();
        set.insert(attribute);
        set
    }

    /// Returns the set without an attribute.
    #[must_use]
    pub fn without(&self, attribute: usize) -> Self {
        let mut set = self.clone();
        set.remove(attribute);
        set
    }

    /// Tests membership.
    pub fn contains(&self, attribute: usize) -> bool {
        self.words.get(attribute / 64).is_some_and(|word| word >> (attribute % 64) & 1 == 1)
    }

    /// Number of attributes.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Returns true without attributes.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns true if `of` contains all attributes.
    pub fn is_subset(&self, of: &Self) -> bool {
        self.words.len() <= of.words.len() && self.words.iter().zip(&of.words).all(|(own, theirs)| own & !theirs == 0)
    }

    /// Returns the union.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let (long, short) = if self.words.len() < other.words.len() { (other, self) } else { (self, other) };
        let mut words = long.words.clone();
        words.iter_mut().zip(&short.words).for_each(|(word, more)| *word |= more);
        Self { words }
    }

    /// Returns the attributes not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut set = self.clone();
        set.words.iter_mut().zip(&other.words).for_each(|(word, less)| *word &= !less);
        set.trim();
        set
    }

    /// Attributes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let rest = |word: &u64| Some(word & (word - 1)).filter(|w| *w != 0);
            std::iter::successors(Some(word).filter(|w| *w != 0), rest)
                .map(move |word| at * 64 + word.trailing_zeros() as usize)
        })
    }

    /// Largest attribute.
    pub fn last(&self) -> Option<usize> {
        self.words.last().map(|word| self.words.len() * 64 - 1 - word.leading_zeros() as usize)
    }
}

impl FromIterator<usize> for AttributeSet {
    fn from_iter<I: IntoIterator<Item = usize>>(attributes: I) -> Self {
        let mut set = Self::new();
        attributes.into_iter().for_each(|attribute| set.insert(attribute));
        set
    }
}

impl Ord for AttributeSet {
    fn cmp(&self, other: &Self) -> Ordering {
        self.len().cmp(&other.len()).then_with(|| self.iter().cmp(other.iter()))
    }
}

impl PartialOrd for AttributeSet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Debug for AttributeSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn numbers() -> impl Strategy<Value = BTreeSet<usize>> {
        proptest::collection::btree_set(prop_oneof![0_usize..10, 0_usize..MAX_ATTRIBUTES], 0..12)
    }

    proptest! {
        #[test]
        fn attribute_set_operations_match_btree_set(a in numbers(), b in numbers(), one in 0_usize..MAX_ATTRIBUTES) {
            let (x, y): (AttributeSet, AttributeSet) = (a.iter().copied().collect(), b.iter().copied().collect());
            let back = |set: &AttributeSet| set.iter().collect::<BTreeSet<_>>();
            prop_assert_eq!(back(&x), a.clone());
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.is_empty(), a.is_empty());
            prop_assert_eq!(x.last(), a.last().copied());
            prop_assert_eq!(x.contains(one), a.contains(&one));
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
            prop_assert_eq!(back(&x.union(&y)), &a | &b);
            prop_assert_eq!(back(&x.difference(&y)), &a - &b);
            prop_assert_eq!(x == y, a == b);
            let order = |s: &BTreeSet<usize>| (s.len(), s.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(x.cmp(&y), order(&a).cmp(&order(&b)));
            prop_assert_eq!(x.with(one).without(one) == x, !a.contains(&one));
        }
    }

    #[test]
    fn attribute_set_equality_ignores_removed_attributes() {
        let far = AttributeSet::from_iter([3, 900]).without(900);
        assert_eq!(far, AttributeSet::from_iter([3]));
        assert!(far.difference(&far).is_empty());
    }
}
