//! What is known of a lattice, as antichains in prefix trees ([PRU] "Efficient management of predictive properties").
//!
//! A property that is inherited upward is known of x as soon as it was found at some y ≤ x; it is enough to keep the
//! minimal ones. A level of the tree is an attribute, a path from the root is a policy, and every node knows the
//! least rank below it: a policy of higher rank is no specialisation of anything. Downward is the same mirrored.

use super::policy::rank;

/// To whom a property is handed down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inheritance {
    /// To all generalizations: minimal policies are kept.
    Upward,
    /// To all specialisations: maximal policies are kept.
    Downward,
}

/// A set of pairwise incomparable policies that answers whether a policy inherits from one of them.
#[derive(Clone, Debug)]
pub struct Antichain {
    inheritance: Inheritance,
    width: usize,
    nodes: Vec<Branch>,
    free: Vec<u32>,
    len: usize,
}

#[derive(Clone, Debug, Default)]
struct Branch {
    /// Extreme rank of the policies below: the least upward, the greatest downward.
    rank: u32,
    /// Children by level, ascending.
    children: Vec<(u8, u32)>,
}

const ROOT: u32 = 0;

impl Antichain {
    /// No policies of `width` attributes.
    pub fn new(inheritance: Inheritance, width: usize) -> Self {
        let mut empty = Self { inheritance, width, nodes: Vec::new(), free: Vec::new(), len: 0 };
        empty.nodes.push(Branch { rank: empty.unknown(), children: Vec::new() });
        empty
    }

    /// Number of policies kept.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no policy is kept.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory held.
    pub fn bytes(&self) -> usize {
        let children: usize = self.nodes.iter().map(|node| node.children.capacity() * size_of::<(u8, u32)>()).sum();
        self.nodes.capacity() * size_of::<Branch>() + children + self.free.capacity() * size_of::<u32>()
    }

    /// Whether `policy` is one of those kept or inherits from one.
    pub fn covers(&self, policy: &[u8]) -> bool {
        debug_assert_eq!(policy.len(), self.width);
        self.len > 0 && self.find(ROOT, policy, 0, rank(policy))
    }

    /// Adds `policy` unless it inherits already; what inherits from it is removed. Whether it was added.
    pub fn insert(&mut self, policy: &[u8]) -> bool {
        if self.covers(policy) {
            return false;
        }
        if self.len > 0 {
            self.remove_covered(ROOT, policy, 0);
        }
        self.add(policy);
        true
    }

    /// The rank of a node that has nothing below it.
    fn unknown(&self) -> u32 {
        match self.inheritance {
            Inheritance::Upward => u32::MAX,
            Inheritance::Downward => 0,
        }
    }

    /// Whether a node with such ranks below it can hold something that a policy of `rank` inherits from.
    fn may_reach(&self, node: u32, rank: u32) -> bool {
        match self.inheritance {
            Inheritance::Upward => self.nodes[node as usize].rank <= rank,
            Inheritance::Downward => self.nodes[node as usize].rank >= rank,
        }
    }

    fn find(&self, node: u32, policy: &[u8], depth: usize, rank: u32) -> bool {
        if depth == self.width {
            return true;
        }
        let children = &self.nodes[node as usize].children;
        let level = policy[depth];
        let reaches =
            |&(_, child): &(u8, u32)| self.may_reach(child, rank) && self.find(child, policy, depth + 1, rank);
        match self.inheritance {
            Inheritance::Upward => children.iter().take_while(|&&(at, _)| at <= level).any(reaches),
            Inheritance::Downward => children.iter().rev().take_while(|&&(at, _)| at >= level).any(reaches),
        }
    }

    /// Removes what inherits from `policy`; whether `node` is empty afterwards.
    ///
    /// Ranks stay as they are: what was removed had ranks beyond the policy's, which is added below the same root, so a
    /// node's rank is at worst more generous than its children deserve.
    fn remove_covered(&mut self, node: u32, policy: &[u8], depth: usize) -> bool {
        if depth == self.width {
            self.len -= 1;
            return true;
        }
        let level = policy[depth];
        let mut children = std::mem::take(&mut self.nodes[node as usize].children);
        children.retain(|&(at, child)| {
            let inherits = match self.inheritance {
                Inheritance::Upward => at >= level,
                Inheritance::Downward => at <= level,
            };
            if inherits && self.remove_covered(child, policy, depth + 1) {
                self.free.push(child);
                return false;
            }
            true
        });
        let empty = children.is_empty();
        self.nodes[node as usize].children = children;
        empty
    }

    fn add(&mut self, policy: &[u8]) {
        let own = rank(policy);
        let mut node = ROOT;
        self.improve(node, own);
        for &level in policy {
            let children = &self.nodes[node as usize].children;
            node = match children.binary_search_by_key(&level, |&(at, _)| at) {
                Ok(at) => children[at].1,
                Err(at) => {
                    let child = self.fresh();
                    self.nodes[node as usize].children.insert(at, (level, child));
                    child
                }
            };
            self.improve(node, own);
        }
        self.len += 1;
    }

    fn improve(&mut self, node: u32, rank: u32) {
        let known = &mut self.nodes[node as usize].rank;
        *known = match self.inheritance {
            Inheritance::Upward => rank.min(*known),
            Inheritance::Downward => rank.max(*known),
        };
    }

    fn fresh(&mut self) -> u32 {
        let rank = self.unknown();
        if let Some(node) = self.free.pop() {
            let reused = &mut self.nodes[node as usize];
            reused.rank = rank;
            reused.children.clear();
            return node;
        }
        self.nodes.push(Branch { rank, children: Vec::new() });
        u32::try_from(self.nodes.len() - 1).expect("a tree that fits into memory")
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::{Policy, is_below};
    use super::*;
    use proptest::prelude::*;

    /// [PRU] Fig. 3.
    #[test]
    fn the_golden_example() {
        let mut tree = Antichain::new(Inheritance::Upward, 3);
        for element in [[1, 1, 1], [1, 3, 0], [3, 2, 0]] {
            assert!(tree.insert(&element));
        }
        assert_eq!(tree.len(), 3);
        assert!(tree.covers(&[1, 2, 2]), "answered by (1,1,1)");
        // The second child of the root is passed over by its rank alone, the first child below (1) by its level.
        let root = &tree.nodes[ROOT as usize];
        let ranks: Vec<(u8, u32)> = root.children.iter().map(|&(l, c)| (l, tree.nodes[c as usize].rank)).collect();
        assert_eq!(ranks, [(1, 3), (3, 5)]);
        assert!(!tree.covers(&[0, 3, 3]) && !tree.covers(&[2, 2, 0]) && tree.covers(&[3, 2, 0]));
    }

    #[test]
    fn what_is_covered_is_removed_and_its_room_used_again() {
        let mut tree = Antichain::new(Inheritance::Downward, 2);
        for element in [[0, 2], [1, 1], [2, 0]] {
            assert!(tree.insert(&element));
        }
        assert!(!tree.insert(&[1, 0]));
        let nodes = tree.nodes.len();
        assert!(tree.insert(&[2, 2]));
        assert_eq!((tree.len(), tree.covers(&[2, 2]), tree.nodes.len()), (1, true, nodes));
    }

    /// The definition, with a list.
    struct Twin(Inheritance, Vec<Policy>);

    impl Twin {
        fn inherits(&self, heir: &[u8], from: &[u8]) -> bool {
            match self.0 {
                Inheritance::Upward => is_below(from, heir),
                Inheritance::Downward => is_below(heir, from),
            }
        }

        fn minimal(&self) -> Vec<Policy> {
            let mut all = self.1.clone();
            all.sort();
            all.dedup();
            let covered = |x: &Policy| all.iter().any(|y| y != x && self.inherits(x, y));
            all.iter().filter(|x| !covered(x)).cloned().collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn a_tree_is_its_list(
            inserted in prop::collection::vec(prop::collection::vec(0u8..4, 4), 0..40),
            asked in prop::collection::vec(prop::collection::vec(0u8..4, 4), 20),
            upward in any::<bool>(),
        ) {
            let inheritance = if upward { Inheritance::Upward } else { Inheritance::Downward };
            let mut tree = Antichain::new(inheritance, 4);
            let mut twin = Twin(inheritance, Vec::new());
            for element in inserted {
                let news = !twin.1.iter().any(|known| twin.inherits(&element, known));
                prop_assert_eq!(tree.insert(&element), news);
                twin.1.push(element.into());
                prop_assert!(twin.minimal().iter().all(|policy| tree.covers(policy)));
                prop_assert_eq!(tree.len(), twin.minimal().len());
            }
            for policy in asked {
                let covered = twin.1.iter().any(|known| twin.inherits(&policy, known));
                prop_assert_eq!(tree.covers(&policy), covered);
            }
        }
    }
}
