//! What a stream promises of the values of one sensitive attribute in every class (docs/methods.md §8 and §11.5).
//!
//! A class is the distinct pairs of a value and a subject that a batch shows in it: a subject
//! counts once for each value. Diversity asks beside its counts that ℓ of the values belong to ℓ different subjects, so
//! that no single person makes a class diverse.

use super::judge::{Class, Judge, Model, ModelError, Room, SensitiveDomain};
use super::representatives::represented;
use hashbrown::HashMap;

pub use super::judge::Requirement;
pub use crate::config::GroundDistance;

/// A sensitive attribute with everything that is asked of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Protection {
    /// Its position in the schema.
    pub attribute: usize,
    /// At least one.
    pub requirements: Vec<Requirement>,
    /// Subjects that one adversary may have invented.
    pub colluders: usize,
}

impl Protection {
    /// Values that must belong to as many different subjects: the largest ⌈ℓ⌉ asked for, 0 without diversity. Whoever knows
    /// what `colluders` of them have takes away as many values at most, so there must be as many more.
    pub fn representatives(&self) -> usize {
        match self.requirements.iter().map(Requirement::representatives).max().unwrap_or(0) {
            0 => 0,
            values => values + self.colluders,
        }
    }

    /// Whether classes are compared with the distribution of a plan.
    pub fn needs_reference(&self) -> bool {
        self.requirements.iter().any(Requirement::needs_reference)
    }

    /// Whether the attribute's hierarchy decides which values are near each other.
    pub fn needs_tree(&self) -> bool {
        self.requirements.iter().any(Requirement::needs_tree)
    }
}

/// The distribution that closeness compares with, frozen for the life of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    /// Digests of the values, in the order of an ordered ground distance.
    pub values: Vec<u64>,
    /// Distinct subjects of each.
    pub subjects: Vec<u64>,
    /// The attribute's hierarchy over the values, as [`Ground::Hierarchical`](super::Ground::Hierarchical) wants it; empty where nothing asks for it.
    pub tree: Vec<Vec<u32>>,
}

/// A protection, ready to judge classes.
#[derive(Clone, Debug)]
pub struct ClassJudge {
    /// Its position in the schema.
    pub attribute: usize,
    representatives: usize,
    /// Positions of the values in the reference; none where nothing is compared with one.
    positions: Option<HashMap<u64, u32>>,
    judge: Judge,
}

impl ClassJudge {
    /// Prepares `protection`; none where it compares with a distribution and there is no `reference` yet.
    ///
    /// # Errors
    /// A parameter out of range, or a tree that does not fit.
    pub fn new(protection: &Protection, reference: Option<&Reference>) -> Result<Option<Self>, ModelError> {
        let reference = match (protection.needs_reference(), reference) {
            (false, _) => None,
            (true, Some(reference)) if !reference.values.is_empty() => Some(reference),
            (true, _) => return Ok(None),
        };
        let tree = reference.map(|r| r.tree.as_slice()).unwrap_or_default();
        let model = |requirement: &Requirement| Model::Sensitive { attribute: 0, of: requirement.over(tree) };
        let models: Vec<Model> = protection.requirements.iter().map(model).collect();
        let counts = reference.map(|r| r.subjects.clone()).unwrap_or_default();
        let judge = Judge::new(&models, &[SensitiveDomain { counts, ..SensitiveDomain::default() }])?;
        let positions = reference.map(|r| r.values.iter().copied().zip(0..).collect());
        let representatives = protection.representatives();
        Ok(Some(Self { attribute: protection.attribute, representatives, positions, judge }))
    }

    /// Whether a class in which exactly `pairs` (value, subject) are shown satisfies everything that is asked. They are
    /// put in order and freed of repetition. A value that the reference does not know is at no distance: it refuses.
    pub fn accepts(&self, pairs: &mut Vec<(u64, u64)>, room: &mut Room) -> bool {
        pairs.sort_unstable();
        pairs.dedup();
        if pairs.is_empty() || !represented(pairs, self.representatives) {
            return false;
        }
        let counted = pairs.chunk_by(|a, b| a.0 == b.0).zip(0u32..).map(|(of_value, next)| {
            let number = self.positions.as_ref().map_or(Some(next), |known| known.get(&of_value[0].0).copied());
            number.map(|number| (number, of_value.len() as u32))
        });
        let Some(counted) = counted.collect::<Option<Vec<(u32, u32)>>>() else { return false };
        let records = pairs.len() as u64;
        let class = Class { records, subjects: records, population: records, people: records, values: &[counted] };
        self.judge.failing(&class, room).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(requirements: &[Requirement], reference: Option<&Reference>, pairs: &[(u64, u64)]) -> Option<bool> {
        let protection = Protection { attribute: 4, requirements: requirements.to_vec(), colluders: 0 };
        let judge = ClassJudge::new(&protection, reference).expect("in range")?;
        Some(judge.accepts(&mut pairs.to_vec(), &mut Room::default()))
    }

    #[test]
    fn subjects_count_once_for_each_value() {
        let recursive = [Requirement::Recursive { c: 2.0, l: 2 }];
        // Three have the first value, however often they show it, two the second: 3 < 2 · 2.
        let pairs = [(1, 1), (1, 2), (1, 2), (1, 3), (2, 4), (2, 5), (1, 1)];
        assert_eq!(accepts(&recursive, None, &pairs), Some(true));
        assert_eq!(accepts(&recursive, None, &pairs[..5]), Some(false));
        // One person with all three values makes nothing diverse.
        let distinct = [Requirement::Distinct { l: 3 }];
        assert_eq!(accepts(&distinct, None, &[(1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]), Some(false));
        assert_eq!(accepts(&distinct, None, &[(1, 1), (2, 1), (3, 1), (2, 2), (1, 3)]), Some(true));
    }

    #[test]
    fn closeness_needs_a_reference_that_knows_the_values() {
        let close = [Requirement::Closeness { t: 0.3, ground: GroundDistance::Equal }];
        assert_eq!(accepts(&close, None, &[(7, 1)]), None);
        assert_eq!(accepts(&close, Some(&Reference::default()), &[(7, 1)]), None);
        let halves = Reference { values: vec![7, 8], subjects: vec![50, 50], tree: vec![] };
        assert_eq!(accepts(&close, Some(&halves), &[(7, 1), (8, 2)]), Some(true));
        assert_eq!(accepts(&close, Some(&halves), &[(7, 1), (7, 2)]), Some(false));
        assert_eq!(accepts(&close, Some(&halves), &[(7, 1), (8, 2), (9, 3)]), Some(false), "nobody knows value 9");
        assert_eq!(accepts(&close, Some(&halves), &[]), Some(false), "nothing to judge");
    }
}
