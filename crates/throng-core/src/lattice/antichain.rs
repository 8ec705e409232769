//! Antichains in prefix trees (\[PRU] "Efficient management of predictive properties").
//!
//! Tree levels are attributes and paths are policies.

use super::policy::policy_rank;

/// Direction of inheritance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InheritanceDirection {
    /// To generalizations: keeps minimal policies.
    Upward,
    /// To specializations: keeps maximal policies.
    Downward,
}

/// Incomparable policies with an inherited property.
#[derive(Clone, Debug)]
pub struct Antichain {
    inheritance: InheritanceDirection,
    width: usize,
    nodes: Vec<AntichainNode>,
    free: Vec<u32>,
    len: usize,
}

#[derive(Clone, Debug, Default)]
struct AntichainNode {
    /// Extreme rank below: the least upward, the greatest downward.
    rank: u32,
    /// By level, ascending.
    children: Vec<(u8, u32)>,
}

const ROOT: u32 = 0;

impl Antichain {
    /// Creates an empty set for `width` attributes.
    pub fn new(inheritance: InheritanceDirection, width: usize) -> Self {
        let mut empty = Self { inheritance, width, nodes: Vec::new(), free: Vec::new(), len: 0 };
        empty.nodes.push(AntichainNode { rank: empty.empty_node_rank(), children: Vec::new() });
        empty
    }

    /// Number of policies.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true without policies.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        let children: usize = self.nodes.iter().map(|node| node.children.capacity() * size_of::<(u8, u32)>()).sum();
        self.nodes.capacity() * size_of::<AntichainNode>() + children + self.free.capacity() * size_of::<u32>()
    }

    /// Returns true if `policy` inherits.
    pub fn covers(&self, policy: &[u8]) -> bool {
        debug_assert_eq!(policy.len(), self.width);
        self.len > 0 && self.inherits_from_subtree(ROOT, policy, 0, policy_rank(policy))
    }

    /// Adds `policy` unless it inherits, and removes its heirs; returns true if added.
    pub fn insert(&mut self, policy: &[u8]) -> bool {
        if self.covers(policy) {
            return false;
        }
        if self.len > 0 {
            self.remove_covered(ROOT, policy, 0);
        }
        self.insert_path(policy);
        true
    }

    fn empty_node_rank(&self) -> u32 {
        match self.inheritance {
            InheritanceDirection::Upward => u32::MAX,
            InheritanceDirection::Downward => 0,
        }
    }

    fn may_reach(&self, node: u32, rank: u32) -> bool {
        match self.inheritance {
            InheritanceDirection::Upward => self.nodes[node as usize].rank <= rank,
            InheritanceDirection::Downward => self.nodes[node as usize].rank >= rank,
        }
    }

    fn inherits_from_subtree(&self, node: u32, policy: &[u8], depth: usize, rank: u32) -> bool {
        if depth == self.width {
            return true;
        }
        let children = &self.nodes[node as usize].children;
        let level = policy[depth];
        let reaches = |&(_, child): &(u8, u32)| {
            self.may_reach(child, rank) && self.inherits_from_subtree(child, policy, depth + 1, rank)
        };
        match self.inheritance {
            InheritanceDirection::Upward => children.iter().take_while(|&&(at, _)| at <= level).any(reaches),
            InheritanceDirection::Downward => children.iter().rev().take_while(|&&(at, _)| at >= level).any(reaches),
        }
    }

    /// Returns true if `node` is then empty. Stale ranks only cost extra visits.
    fn remove_covered(&mut self, node: u32, policy: &[u8], depth: usize) -> bool {
        if depth == self.width {
            self.len -= 1;
            return true;
        }
        let level = policy[depth];
        let mut children = std::mem::take(&mut self.nodes[node as usize].children);
        children.retain(|&(at, child)| {
            let inherits = match self.inheritance {
                InheritanceDirection::Upward => at >= level,
                InheritanceDirection::Downward => at <= level,
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

    fn insert_path(&mut self, policy: &[u8]) {
        let own = policy_rank(policy);
        let mut node = ROOT;
        self.update_rank(node, own);
        for &level in policy {
            let children = &self.nodes[node as usize].children;
            node = match children.binary_search_by_key(&level, |&(at, _)| at) {
                Ok(at) => children[at].1,
                Err(at) => {
                    let child = self.allocate_node();
                    self.nodes[node as usize].children.insert(at, (level, child));
                    child
                }
            };
            self.update_rank(node, own);
        }
        self.len += 1;
    }

    fn update_rank(&mut self, node: u32, rank: u32) {
        let known = &mut self.nodes[node as usize].rank;
        *known = match self.inheritance {
            InheritanceDirection::Upward => rank.min(*known),
            InheritanceDirection::Downward => rank.max(*known),
        };
    }

    fn allocate_node(&mut self) -> u32 {
        let rank = self.empty_node_rank();
        if let Some(node) = self.free.pop() {
            let reused = &mut self.nodes[node as usize];
            reused.rank = rank;
            reused.children.clear();
            return node;
        }
        self.nodes.push(AntichainNode { rank, children: Vec::new() });
        u32::try_from(self.nodes.len() - 1).expect("a tree that fits into memory")
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::{LatticePolicy, is_same_or_specialization};
    use super::*;
    use proptest::prelude::*;

    /// \[PRU] Fig. 3.
    #[test]
    fn antichain_of_published_example_answers_membership() {
        let mut tree = Antichain::new(InheritanceDirection::Upward, 3);
        for element in [[1, 1, 1], [1, 3, 0], [3, 2, 0]] {
            assert!(tree.insert(&element));
        }
        assert_eq!(tree.len(), 3);
        assert!(tree.covers(&[1, 2, 2]), "answered by (1,1,1)");
        // Rank excludes the second child of the root, level the first child below (1).
        let root = &tree.nodes[ROOT as usize];
        let ranks: Vec<(u8, u32)> = root.children.iter().map(|&(l, c)| (l, tree.nodes[c as usize].rank)).collect();
        assert_eq!(ranks, [(1, 3), (3, 5)]);
        assert!(!tree.covers(&[0, 3, 3]) && !tree.covers(&[2, 2, 0]) && tree.covers(&[3, 2, 0]));
    }

    #[test]
    fn antichain_insert_of_covering_policy_reuses_removed_nodes() {
        let mut tree = Antichain::new(InheritanceDirection::Downward, 2);
        for element in [[0, 2], [1, 1], [2, 0]] {
            assert!(tree.insert(&element));
        }
        assert!(!tree.insert(&[1, 0]));
        let nodes = tree.nodes.len();
        assert!(tree.insert(&[2, 2]));
        assert_eq!((tree.len(), tree.covers(&[2, 2]), tree.nodes.len()), (1, true, nodes));
    }

    struct AntichainReference(InheritanceDirection, Vec<LatticePolicy>);

    impl AntichainReference {
        fn inherits(&self, heir: &[u8], from: &[u8]) -> bool {
            match self.0 {
                InheritanceDirection::Upward => is_same_or_specialization(from, heir),
                InheritanceDirection::Downward => is_same_or_specialization(heir, from),
            }
        }

        fn minimal(&self) -> Vec<LatticePolicy> {
            let mut all = self.1.clone();
            all.sort();
            all.dedup();
            let covered = |x: &LatticePolicy| all.iter().any(|y| y != x && self.inherits(x, y));
            all.iter().filter(|x| !covered(x)).cloned().collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn antichain_random_inserts_match_reference_list(
            inserted in prop::collection::vec(prop::collection::vec(0u8..4, 4), 0..40),
            asked in prop::collection::vec(prop::collection::vec(0u8..4, 4), 20),
            upward in any::<bool>(),
        ) {
            let inheritance = if upward { InheritanceDirection::Upward } else { InheritanceDirection::Downward };
            let mut tree = Antichain::new(inheritance, 4);
            let mut twin = AntichainReference(inheritance, Vec::new());
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
