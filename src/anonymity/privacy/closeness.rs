//! t-closeness ([FL2] §2.1): the earth mover's distance between the values of a class and those of the whole table.
//!
//! Distances are fractions of integers. With cᵢ of n records in the class and Cᵢ of N in the table, value i has the
//! surplus cᵢN − Cᵢn; sums of surpluses reach nN, which leaves 32 bits behind at 46,341 records.

/// Which values are near each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ground {
    /// All values are equally far apart: ½ Σ |pᵢ − qᵢ|.
    Equal,
    /// Values in a row, in the order of their codes: Σᵢ |Σ_{j≤i} (pⱼ − qⱼ)| / (m − 1).
    Ordered,
    /// Values in a tree: what moves between two children of a node costs the node's level over the tree's height.
    /// For each level above the values: the node of each node below.
    Hierarchical(Vec<Vec<u32>>),
}

/// The distribution of a sensitive attribute over the whole table, and how far from it a class may be.
#[derive(Clone, Debug)]
pub struct Reference {
    counts: Vec<u64>,
    total: u64,
    ground: Ground,
}

impl Reference {
    pub fn new(counts: Vec<u64>, ground: Ground) -> Self {
        Self { total: counts.iter().sum(), counts, ground }
    }

    /// The distance as `numerator / denominator`, in [0, 1]; 0/1 for an empty class. `values` are the values present with
    /// their counts, each once; `room` is scratch.
    pub fn distance(&self, values: &[(u32, u32)], room: &mut Vec<i128>) -> (u128, u128) {
        let n: u64 = values.iter().map(|&(_, c)| u64::from(c)).sum();
        let whole = i128::from(n) * i128::from(self.total);
        if whole == 0 {
            return (0, 1);
        }
        if self.ground == Ground::Equal {
            // What a class has too much of, it has too little of elsewhere: the positive half is the distance.
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
            Ground::Equal => unreachable!("answered above"),
            Ground::Ordered => {
                let (mut sum, mut moved) = (0, 0);
                for &surplus in room.iter() {
                    sum += surplus;
                    moved += sum.abs();
                }
                (moved as u128, whole as u128 * (self.counts.len().max(2) - 1) as u128)
            }
            Ground::Hierarchical(levels) => {
                let mut cost = 0;
                let mut from = 0;
                for (level, parents) in levels.iter().enumerate() {
                    let nodes = parents.iter().max().map_or(0, |&p| p as usize + 1);
                    let to = room.len();
                    debug_assert_eq!(to - from, parents.len());
                    // The surplus of a node and the smaller side of what its children exchange.
                    room.resize(to + nodes, 0);
                    let exchanged = exchange(&mut room[from..], parents, nodes);
                    cost += (level as i128 + 1) * exchanged;
                    from = to;
                }
                (cost as u128, whole as u128 * levels.len().max(1) as u128)
            }
        }
    }
}

/// Σ over the nodes of min(surplus, deficit) of their children; leaves the nodes' surpluses behind the children's.
fn exchange(room: &mut [i128], parents: &[u32], nodes: usize) -> i128 {
    let (children, above) = room.split_at_mut(parents.len());
    let mut gross = 0;
    for (&child, &parent) in children.iter().zip(parents) {
        above[parent as usize] += child;
        gross += child.abs();
    }
    // surplus + deficit = Σ|child|, surplus − deficit = the node: twice the smaller is the difference of the two.
    let net: i128 = above[..nodes].iter().map(|s| s.abs()).sum();
    (gross - net) / 2
}
