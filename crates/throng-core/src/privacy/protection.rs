//! Requirements for a sensitive attribute in a stream (docs/internals/methods.md §8 and §11.5).
//!
//! Diversity requires ℓ values of ℓ different subjects.

use super::model_judge::{ClassModelError, ClassPrivacyModel, JudgeScratch, JudgedClass, ModelJudge, SensitiveDomain};
use super::representatives::has_distinct_representatives;
use hashbrown::HashMap;

pub use super::closeness::GroundDistance;
pub use super::model_judge::ValueRequirement;

/// Sensitive attribute and requirements.
#[derive(Clone, Debug, PartialEq)]
pub struct SensitiveProtection {
    /// Schema position.
    pub attribute: usize,
    /// Requirements, at least one.
    pub requirements: Vec<ValueRequirement>,
    /// Subjects that one attacker may have invented.
    pub colluders: usize,
}

impl SensitiveProtection {
    /// Values required of different subjects: the largest ⌈ℓ⌉ plus `colluders`, or 0. Known subjects exclude at most as
    /// many values.
    pub fn min_representatives(&self) -> usize {
        match self.requirements.iter().map(ValueRequirement::required_representatives).max().unwrap_or(0) {
            0 => 0,
            values => values + self.colluders,
        }
    }

    /// Returns true if any requirement is closeness.
    pub fn needs_reference(&self) -> bool {
        self.requirements.iter().any(ValueRequirement::needs_reference)
    }

    /// Returns true for a hierarchical ground distance.
    pub fn needs_tree(&self) -> bool {
        self.requirements.iter().any(ValueRequirement::needs_tree)
    }
}

/// Closeness distribution, fixed per plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClosenessReference {
    /// Value digests, in distance order.
    pub values: Vec<u64>,
    /// Subjects by value.
    pub subjects: Vec<u64>,
    /// Tree for [`GroundDistance::Hierarchical`], or empty.
    pub tree: Vec<Vec<u32>>,
}

/// Protection prepared to judge classes.
#[derive(Clone, Debug)]
pub struct ProtectionJudge {
    /// Schema position.
    pub attribute: usize,
    min_represented_values: usize,
    /// Value positions in the reference.
    positions: Option<HashMap<u64, u32>>,
    judge: ModelJudge,
}

impl ProtectionJudge {
    /// Prepares `protection`; none if its `reference` is missing.
    ///
    /// # Errors
    /// Parameter out of range, or invalid tree.
    pub fn new(
        protection: &SensitiveProtection,
        reference: Option<&ClosenessReference>,
    ) -> Result<Option<Self>, ClassModelError> {
        let reference = match (protection.needs_reference(), reference) {
            (false, _) => None,
            (true, Some(reference)) if !reference.values.is_empty() => Some(reference),
            (true, _) => return Ok(None),
        };
        let tree = reference.map(|r| r.tree.as_slice()).unwrap_or_default();
        let model = |requirement: &ValueRequirement| ClassPrivacyModel::Sensitive {
            attribute: 0,
            of: requirement.with_ground_metric(tree),
        };
        let models: Vec<ClassPrivacyModel> = protection.requirements.iter().map(model).collect();
        let counts = reference.map(|r| r.subjects.clone()).unwrap_or_default();
        let judge = ModelJudge::new(&models, &[SensitiveDomain { counts, ..SensitiveDomain::default() }])?;
        let positions = reference.map(|r| r.values.iter().copied().zip(0..).collect());
        let representatives = protection.min_representatives();
        Ok(Some(Self { attribute: protection.attribute, min_represented_values: representatives, positions, judge }))
    }

    /// Returns true if (value, subject) pairs satisfy all requirements. Sorts and deduplicates them; refuses unknown
    /// values.
    pub fn accepts(&self, pairs: &mut Vec<(u64, u64)>, room: &mut JudgeScratch) -> bool {
        pairs.sort_unstable();
        pairs.dedup();
        if pairs.is_empty() || !has_distinct_representatives(pairs, self.min_represented_values) {
            return false;
        }
        let counted = pairs.chunk_by(|a, b| a.0 == b.0).zip(0u32..).map(|(of_value, next)| {
            let number = self.positions.as_ref().map_or(Some(next), |known| known.get(&of_value[0].0).copied());
            number.map(|number| (number, of_value.len() as u32))
        });
        let Some(counted) = counted.collect::<Option<Vec<(u32, u32)>>>() else { return false };
        let records = pairs.len() as u64;
        let class = JudgedClass {
            records,
            subjects: records,
            population: records,
            population_subjects: records,
            values: &[counted],
        };
        self.judge.lost_records(&class, room).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(
        requirements: &[ValueRequirement],
        reference: Option<&ClosenessReference>,
        pairs: &[(u64, u64)],
    ) -> Option<bool> {
        let protection = SensitiveProtection { attribute: 4, requirements: requirements.to_vec(), colluders: 0 };
        let judge = ProtectionJudge::new(&protection, reference).expect("in range")?;
        Some(judge.accepts(&mut pairs.to_vec(), &mut JudgeScratch::default()))
    }

    #[test]
    fn protection_counts_a_subject_once_per_value() {
        let recursive = [ValueRequirement::Recursive { c: 2.0, l: 2 }];
        // 3 and 2 subjects: 3 < 2 · 2.
        let pairs = [(1, 1), (1, 2), (1, 2), (1, 3), (2, 4), (2, 5), (1, 1)];
        assert_eq!(accepts(&recursive, None, &pairs), Some(true));
        assert_eq!(accepts(&recursive, None, &pairs[..5]), Some(false));
        let distinct = [ValueRequirement::Distinct { l: 3 }];
        assert_eq!(accepts(&distinct, None, &[(1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]), Some(false));
        assert_eq!(accepts(&distinct, None, &[(1, 1), (2, 1), (3, 1), (2, 2), (1, 3)]), Some(true));
    }

    #[test]
    fn closeness_without_reference_or_with_unknown_value_is_refused() {
        let close = [ValueRequirement::Closeness { t: 0.3, ground: GroundDistance::Equal }];
        assert_eq!(accepts(&close, None, &[(7, 1)]), None);
        assert_eq!(accepts(&close, Some(&ClosenessReference::default()), &[(7, 1)]), None);
        let halves = ClosenessReference { values: vec![7, 8], subjects: vec![50, 50], tree: vec![] };
        assert_eq!(accepts(&close, Some(&halves), &[(7, 1), (8, 2)]), Some(true));
        assert_eq!(accepts(&close, Some(&halves), &[(7, 1), (7, 2)]), Some(false));
        assert_eq!(accepts(&close, Some(&halves), &[(7, 1), (8, 2), (9, 3)]), Some(false), "nobody knows value 9");
        assert_eq!(accepts(&close, Some(&halves), &[]), Some(false), "nothing to judge");
    }
}
