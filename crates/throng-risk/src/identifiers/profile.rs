use throng_core::values::identifier_shapes::{self, IdentifierShape};

/// Counts by which a column is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ColumnProfile {
    /// Number of cells, including missing ones.
    pub rows: u64,
    /// Distinct values; a missing value counts as one.
    pub distinct: u64,
    /// Distinct values without missing ones.
    pub values: u64,
    /// Cells without a value.
    pub missing: u64,
    /// Shannon entropy of the value distribution, in nats, 0 to ln `distinct`.
    pub entropy: f64,
    /// Divergence from the uniform distribution over the same values, in nats.
    pub relative_entropy: f64,
    /// Most frequent identifier shape, with its share of distinct values in (0, 1].
    pub shape: Option<(IdentifierShape, f64)>,
    /// Relation to the subjects, if the table has them.
    pub people: Option<SubjectRelation>,
}

/// Relation of the non-missing cells to subjects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubjectRelation {
    /// Subjects in the table.
    pub all: u64,
    /// Subjects with at least one value.
    pub subjects: u64,
    /// Distinct values.
    pub values: u64,
    /// Distinct pairs of subject and value.
    pub pairs: u64,
}

impl ColumnProfile {
    /// Counts a column of codes `0..cardinality`.
    ///
    /// # Panics
    /// Panics if a code is not below `cardinality`.
    pub fn of_codes(codes: &[u32], cardinality: usize, missing: impl Fn(u32) -> bool) -> Self {
        let mut counts = vec![0_u64; cardinality];
        for &code in codes {
            counts[code as usize] += 1;
        }
        Self::of_counts(&counts, missing)
    }

    /// Creates the profile from the rows per code.
    pub fn of_counts(counts: &[u64], missing: impl Fn(u32) -> bool) -> Self {
        let rows = counts.iter().sum();
        let counted = (0..).zip(counts).filter(|&(_, n)| *n > 0);
        let (without, with): (Vec<_>, Vec<_>) = counted.partition(|&(code, _)| missing(code));
        let (missing, values) = (without.iter().map(|(_, n)| **n).sum(), with.len() as u64);
        let occurring: Vec<u64> = counts.iter().copied().filter(|n| *n > 0).collect();
        let entropy = entropy(&occurring, rows);
        let relative = if occurring.is_empty() { 0.0 } else { (occurring.len() as f64).ln() - entropy };
        Self {
            rows,
            distinct: occurring.len() as u64,
            values,
            missing,
            entropy,
            // Both terms are sums of rounded logarithms.
            relative_entropy: relative.max(0.0),
            ..Self::default()
        }
    }

    /// Adds the shape of the values.
    #[must_use]
    pub fn with_texts<'a>(mut self, texts: impl Iterator<Item = &'a str>) -> Self {
        self.shape = identifier_shapes::most_frequent_shape(texts);
        self
    }

    /// Adds the relation to subjects, given per row.
    #[must_use]
    pub fn with_subject_relation(mut self, codes: &[u32], subjects: &[u32], missing: impl Fn(u32) -> bool) -> Self {
        let there = codes.iter().zip(subjects).filter(|(code, _)| !missing(**code));
        let mut pairs: Vec<u64> = there.map(|(&code, &subject)| u64::from(code) << 32 | u64::from(subject)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let distinct = |mut people: Vec<u32>| {
            people.sort_unstable();
            people.dedup();
            people.len() as u64
        };
        let all = distinct(subjects.to_vec());
        let with_value = distinct(pairs.iter().map(|pair| *pair as u32).collect());
        let values = pairs.chunk_by(|a, b| a >> 32 == b >> 32).count();
        self.people =
            Some(SubjectRelation { all, subjects: with_value, values: values as u64, pairs: pairs.len() as u64 });
        self
    }

    /// Returns distinct values per row, in (0, 1]; 0 without rows.
    pub fn cardinality(&self) -> f64 {
        if self.rows == 0 { 0.0 } else { self.distinct as f64 / self.rows as f64 }
    }
}

/// Returns −Σ p ln p of counts that sum to `total`.
fn entropy(counts: &[u64], total: u64) -> f64 {
    // ln n − (1/n) Σ c ln c is exactly zero for a constant column.
    if counts.len() < 2 {
        return 0.0;
    }
    let total = total as f64;
    let sum: f64 = counts.iter().map(|&count| count as f64 * (count as f64).ln()).sum();
    (total.ln() - sum / total).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn entropies_equal_manual_calculation() {
        // Half, a quarter, a quarter: 1.5 bits.
        let profile = ColumnProfile::of_codes(&[0, 0, 1, 2], 3, |code| code == 1);
        assert_eq!((profile.rows, profile.distinct, profile.missing), (4, 3, 1));
        assert!(close(profile.entropy, 1.5 * 2_f64.ln()));
        assert!(close(profile.relative_entropy, 3_f64.ln() - 1.5 * 2_f64.ln()));
        assert_eq!(profile.cardinality(), 0.75);
        let constant = ColumnProfile::of_codes(&[0; 9], 1, |_| false);
        assert_eq!((constant.entropy, constant.relative_entropy), (0.0, 0.0));
        let empty = ColumnProfile::of_codes(&[], 0, |_| false);
        assert_eq!((empty.cardinality(), empty.entropy, empty.relative_entropy), (0.0, 0.0, 0.0));
    }

    #[test]
    fn subject_relation_ignores_missing_values() {
        let profile = ColumnProfile::of_codes(&[], 0, |_| false);
        let people = profile.with_subject_relation(&[7, 7, 8, 9, 0], &[1, 1, 2, 2, 3], |code| code == 0).people;
        assert_eq!(people, Some(SubjectRelation { all: 3, subjects: 2, values: 3, pairs: 3 }));
    }

    proptest! {
        #[test]
        fn profile_equals_the_formulas(codes in proptest::collection::vec(0_u32..6, 0..60), gone in 0_u32..6) {
            let profile = ColumnProfile::of_codes(&codes, 6, |code| code == gone);
            let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
            for &code in &codes {
                *counts.entry(code).or_default() += 1.0;
            }
            let n = codes.len() as f64;
            let entropy: f64 = counts.values().map(|c| -(c / n) * (c / n).ln()).sum();
            let uniform = 1.0 / counts.len() as f64;
            let relative: f64 = counts.values().map(|c| (c / n) * ((c / n) / uniform).ln()).sum();
            prop_assert!(close(profile.entropy, entropy), "{} {entropy}", profile.entropy);
            prop_assert!(close(profile.relative_entropy, relative), "{} {relative}", profile.relative_entropy);
            prop_assert_eq!(profile.distinct, counts.len() as u64);
            prop_assert_eq!(profile.missing, codes.iter().filter(|c| **c == gone).count() as u64);
        }
    }
}
