//! Shared attributes: those that stand in several groups, at one level of their hierarchy (docs/methods.md §10.6).
//!
//! They are known by where they stand and by nothing else, so that no part of the program can be told of fewer.

use super::{Group, Node, Plan};
use std::collections::BTreeSet;

/// The attributes that are in more than one of the `groups`, ascending.
pub fn in_several<'a>(groups: impl IntoIterator<Item = &'a [usize]>) -> Vec<usize> {
    let (mut met, mut several) = (BTreeSet::new(), BTreeSet::new());
    for group in groups {
        several.extend(group.iter().copied().filter(|a| !met.insert(*a)));
    }
    several.into_iter().collect()
}

impl Group {
    /// The quasi attributes that are not `shared`, and the ladder of these.
    pub fn without(&self, shared: &[usize]) -> (Vec<usize>, Vec<Node>) {
        let own: Vec<usize> = (0..self.quasi.len()).filter(|at| !shared.contains(&self.quasi[*at])).collect();
        let node = |node: &Node| Node { levels: own.iter().map(|&at| node.levels[at]).collect(), loss: node.loss };
        (own.iter().map(|&at| self.quasi[at]).collect(), self.ladder.iter().map(node).collect())
    }
}

impl Plan {
    /// The attributes that stand in several groups, ascending.
    pub fn shared(&self) -> Vec<usize> {
        in_several(self.groups.iter().map(|group| group.quasi.as_slice()))
    }

    /// The level at which a group shows one of its quasi attributes that is shared; `None` where it has no node.
    pub fn shared_level(group: &Group, attribute: usize) -> Option<u8> {
        let at = group.quasi.iter().position(|a| *a == attribute)?;
        group.ladder.first().map(|node| node.levels[at])
    }

    /// The shared attributes, ascending, each with its level: the finest that any group shows. A group that shows another, a coarser one,
    /// shows nothing.
    pub fn shared_levels(&self) -> Vec<(usize, u8)> {
        let level = |a: usize| self.groups.iter().filter_map(|group| Self::shared_level(group, a)).min();
        self.shared().into_iter().filter_map(|a| level(a).map(|level| (a, level))).collect()
    }

    /// Whether group `number` shows anything of an attribute that it has: a static one shows nothing that is shared.
    pub fn shows(&self, number: usize, attribute: usize) -> bool {
        let of_group = Self::shared_level(&self.groups[number], attribute);
        let shared = self.shared_levels();
        shared.iter().find(|(a, _)| *a == attribute).is_none_or(|(_, level)| of_group == Some(*level))
    }

    /// What is said of a person once a window would be tied to the moment, or to whatever is shared: a static group shows `*` of it.
    /// `top` gives the highest level of an attribute.
    pub fn withhold_shared(&mut self, top: impl Fn(usize) -> u8) {
        let shared = self.shared();
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
    use crate::anonymity::plan::Pace;
    use throng_core::values::schema::Changes;

    fn group(name: &str, quasi: &[usize]) -> Group {
        let ladder = vec![Node { levels: vec![1; quasi.len()], loss: 0.5 }];
        Group {
            name: name.to_owned(),
            quasi: quasi.to_vec(),
            sensitive: vec![],
            insensitive: vec![],
            ladder,
            ranges: false,
        }
    }

    #[test]
    fn what_stands_in_several_groups_is_shared() {
        assert_eq!(in_several([&[0, 2][..], &[1, 2], &[3]]), [2]);
        assert_eq!(in_several([&[0, 1][..], &[2]]), [0; 0]);
    }

    #[test]
    fn a_group_that_does_not_change_shows_nothing_that_is_shared() {
        let pace = |attribute, changes| Pace { attribute, changes, declared: true, share: None };
        let mut plan = Plan::blank(vec![group("still", &[0, 2]), group("moving", &[1, 2]), group("alone", &[3])]);
        plan.paces = vec![pace(0, Changes::Never), pace(1, Changes::Always), pace(2, Changes::Always)];
        assert!(plan.is_static(&plan.groups[0]) && !plan.is_static(&plan.groups[1]));
        plan.withhold_shared(|_| 3);
        let levels: Vec<_> = plan.groups.iter().map(|g| g.ladder[0].levels.clone()).collect();
        assert_eq!(levels, [vec![1, 3], vec![1, 1], vec![1]]);
        assert_eq!(Plan::shared_level(&plan.groups[0], 2), Some(3));
    }
}
