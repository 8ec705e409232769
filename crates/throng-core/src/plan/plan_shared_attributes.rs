//! Attributes shared by groups (docs/internals/methods.md §10.6).

use super::{LadderNode, Plan, PlanGroup};
use std::collections::BTreeSet;

/// Attributes in several `groups`, ascending.
pub fn find_shared_attributes<'a>(groups: impl IntoIterator<Item = &'a [usize]>) -> Vec<usize> {
    let (mut met, mut several) = (BTreeSet::new(), BTreeSet::new());
    for group in groups {
        several.extend(group.iter().copied().filter(|a| !met.insert(*a)));
    }
    several.into_iter().collect()
}

impl PlanGroup {
    /// Quasi attributes and ladder without `shared`.
    pub fn without_shared_attributes(&self, shared: &[usize]) -> (Vec<usize>, Vec<LadderNode>) {
        let own: Vec<usize> = (0..self.quasi.len()).filter(|at| !shared.contains(&self.quasi[*at])).collect();
        let node =
            |node: &LadderNode| LadderNode { levels: own.iter().map(|&at| node.levels[at]).collect(), loss: node.loss };
        (own.iter().map(|&at| self.quasi[at]).collect(), self.ladder.iter().map(node).collect())
    }
}

impl Plan {
    /// Attributes in several groups, ascending.
    pub fn attributes_in_several_groups(&self) -> Vec<usize> {
        find_shared_attributes(self.groups.iter().map(|group| group.quasi.as_slice()))
    }

    /// Level of a shared attribute in a group; `None` without a node.
    pub fn shared_level(group: &PlanGroup, attribute: usize) -> Option<u8> {
        let at = group.quasi.iter().position(|a| *a == attribute)?;
        group.ladder.first().map(|node| node.levels[at])
    }

    /// Shared attributes, ascending, with their finest level. Coarser groups do not show them.
    pub fn shared_levels(&self) -> Vec<(usize, u8)> {
        let level = |a: usize| self.groups.iter().filter_map(|group| Self::shared_level(group, a)).min();
        self.attributes_in_several_groups().into_iter().filter_map(|a| level(a).map(|level| (a, level))).collect()
    }

    /// Returns true unless the attribute is shared and this group coarser.
    pub fn shows_attribute(&self, number: usize, attribute: usize) -> bool {
        let of_group = Self::shared_level(&self.groups[number], attribute);
        let shared = self.shared_levels();
        shared.iter().find(|(a, _)| *a == attribute).is_none_or(|(_, level)| of_group == Some(*level))
    }

    /// Suppresses shared attributes in static groups, which would link their window to a moment. `top` is the highest
    /// level.
    pub fn suppress_shared_in_static_groups(&mut self, top: impl Fn(usize) -> u8) {
        let shared = self.attributes_in_several_groups();
        let still: Vec<bool> = self.groups.iter().map(|group| self.is_static(group)).collect();
        for (group, _) in self.groups.iter_mut().zip(still).filter(|(_, still)| *still) {
            for (at, &attribute) in group.quasi.iter().enumerate().filter(|(_, a)| shared.contains(a)) {
                group.ladder.iter_mut().for_each(|node| node.levels[at] = top(attribute));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::AttributeChangeRate;
    use crate::values::schema::ChangeFrequency;

    fn group(name: &str, quasi: &[usize]) -> PlanGroup {
        let ladder = vec![LadderNode { levels: vec![1; quasi.len()], loss: 0.5 }];
        PlanGroup {
            name: name.to_owned(),
            quasi: quasi.to_vec(),
            sensitive: vec![],
            insensitive: vec![],
            ladder,
            ranges: false,
        }
    }

    #[test]
    fn shared_attributes_are_those_in_several_groups() {
        assert_eq!(find_shared_attributes([&[0, 2][..], &[1, 2], &[3]]), [2]);
        assert_eq!(find_shared_attributes([&[0, 1][..], &[2]]), [0; 0]);
    }

    #[test]
    fn static_group_suppresses_shared_attributes() {
        let pace = |attribute, changes| AttributeChangeRate { attribute, changes, declared: true, share: None };
        let mut plan = Plan::inactive(vec![group("still", &[0, 2]), group("moving", &[1, 2]), group("alone", &[3])]);
        plan.paces =
            vec![pace(0, ChangeFrequency::Never), pace(1, ChangeFrequency::Always), pace(2, ChangeFrequency::Always)];
        assert!(plan.is_static(&plan.groups[0]) && !plan.is_static(&plan.groups[1]));
        plan.suppress_shared_in_static_groups(|_| 3);
        let levels: Vec<_> = plan.groups.iter().map(|g| g.ladder[0].levels.clone()).collect();
        assert_eq!(levels, [vec![1, 3], vec![1, 1], vec![1]]);
        assert_eq!(Plan::shared_level(&plan.groups[0], 2), Some(3));
    }
}
