//! t-closeness (\[FL2] §2.1): earth mover's distance between class and table.
//!
//! With cᵢ of n records in the class and Cᵢ of N in the table, value i has the surplus cᵢN − Cᵢn. Sums reach nN.

use serde::{Deserialize, Serialize};

/// Distance between sensitive values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum GroundDistance {
    /// All values are equally distant.
    #[default]
    Equal,
    /// By order: numbers by size, texts alphabetically.
    Ordered,
    /// By the attribute's hierarchy.
    Hierarchical,
}

/// Distance between sensitive values, with a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroundMetric {
    /// Equal distances: ½ Σ |pᵢ − qᵢ|.
    Equal,
    /// Order of the codes: Σᵢ |Σ_{j≤i} (pⱼ − qⱼ)| / (m − 1).
    Ordered,
    /// Parents by level above the values. A move between children costs level / height.
    Hierarchical(Vec<Vec<u32>>),
}

/// Distribution of a sensitive attribute in the table.
#[derive(Clone, Debug)]
pub struct ClosenessTarget {
    counts: Vec<u64>,
    total: u64,
    ground: GroundMetric,
}

impl ClosenessTarget {
    pub fn new(counts: Vec<u64>, ground: GroundMetric) -> Self {
        Self { total: counts.iter().sum(), counts, ground }
    }

    /// Returns `numerator / denominator` in [0, 1]. `values` are distinct, with counts; `room` is scratch.
    pub fn distance(&self, values: &[(u32, u32)], room: &mut Vec<i128>) -> (u128, u128) {
        let n: u64 = values.iter().map(|&(_, c)| u64::from(c)).sum();
        let whole = i128::from(n) * i128::from(self.total);
        if whole == 0 {
            return (0, 1);
        }
        if self.ground == GroundMetric::Equal {
            // Surpluses sum to zero; the positive half is the distance.
            let surplus = |&(v, c): &(u32, u32)| {
                (i128::from(c) * i128::from(self.total) - i128::from(self.counts[v as usize]) * i128::from(n)).max(0)
            };
            return (values.iter().map(surplus).sum::<i128>() as u128, whole as u128);
        }
        room.clear();
        room.extend(self.counts.iter().map(|&c| -(i128::from(c) * i128::from(n))));
        for &(value, count) in values {
            room[value as usize] += i128::from(count) * i128::from(self.total);
        }
        match &self.ground {
            GroundMetric::Equal => unreachable!("answered above"),
            GroundMetric::Ordered => {
                let (mut sum, mut moved) = (0, 0);
                for &surplus in room.iter() {
                    sum += surplus;
                    moved += sum.abs();
                }
                (moved as u128, whole as u128 * (self.counts.len().max(2) - 1) as u128)
            }
            GroundMetric::Hierarchical(levels) => {
                let mut cost = 0;
                let mut from = 0;
                for (level, parents) in levels.iter().enumerate() {
                    let nodes = parents.iter().max().map_or(0, |&p| p as usize + 1);
                    let to = room.len();
                    debug_assert_eq!(to - from, parents.len());
                    room.resize(to + nodes, 0);
                    let exchanged = exchange_between_children(&mut room[from..], parents, nodes);
                    cost += (level as i128 + 1) * exchanged;
                    from = to;
                }
                (cost as u128, whole as u128 * levels.len().max(1) as u128)
            }
        }
    }
}

/// Σ min(surplus, deficit) of children. Appends node surpluses.
fn exchange_between_children(room: &mut [i128], parents: &[u32], nodes: usize) -> i128 {
    let (children, above) = room.split_at_mut(parents.len());
    let mut gross = 0;
    for (&child, &parent) in children.iter().zip(parents) {
        above[parent as usize] += child;
        gross += child.abs();
    }
    // surplus + deficit = Σ|child|, surplus − deficit = node.
    let net: i128 = above[..nodes].iter().map(|s| s.abs()).sum();
    (gross - net) / 2
}
