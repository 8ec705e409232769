//! Bayesian adjacency of the values of a stream (docs/internals/methods.md §4; \[POD] §5.1, Alg. 5–7, Table 5.1).
//!
//! Nodes are values; edges are values that occur together. Micro-batches are added and subtracted exactly.

mod block_count_task;
mod degrees;
mod dense;
mod derived_attribute;
mod expectation;
mod inference_matrix;
mod joint_count_update;
mod model_updates;
mod pair_count_block;
mod sparse;
mod triage;
mod triage_comparison;

#[cfg(test)]
mod tests;

pub use expectation::InferenceExpectation;
pub use inference_matrix::InferenceMatrix;
pub use joint_count_update::PairCountFn;
pub use triage::{SuspectSets, Triage};
pub use triage_comparison::{SuspectDetection, TriageCheckEffort, TriageCheckOrder, TriageReport};

use pair_count_block::PairCountBlock;
use throng_core::values::codebook::Code;

/// Exclusive upper bound of codes.
pub const MAX_CODES: u32 = 1 << 26;

/// Default of [`AdjacencyLimits::max_edges`].
pub const MAX_EDGES: u64 = 2_000_000;

/// Value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueNode {
    /// Schema number of the attribute.
    pub attribute: usize,
    /// Code of the value.
    pub code: Code,
}

/// Size limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdjacencyLimits {
    /// Most edges after a change; a batch may hold four times as many.
    ///
    /// Beyond it, pairs of attributes are left out: most edges first, then the later pair. `n(u)` is always exact.
    pub max_edges: u64,
}

impl Default for AdjacencyLimits {
    fn default() -> Self {
        Self { max_edges: MAX_EDGES }
    }
}

/// Error of a change, which then has no effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum AdjacencyError {
    #[error(
        "the attributes of a model must ascend and be below {}: attribute {attribute} does not",
        crate::counting::attribute_set::MAX_ATTRIBUTES
    )]
    Attributes { attribute: usize },
    #[error(
        "the batch has {columns} columns, but the model counts attribute {attribute}: pass every column of the schema"
    )]
    Width { attribute: usize, columns: usize },
    #[error(
        "the column of attribute {attribute} has {found} rows and another has {expected}: columns of a batch must have the same length"
    )]
    Ragged { attribute: usize, found: usize, expected: usize },
    #[error("code {code} of attribute {attribute} is not below {MAX_CODES}: compact the codebook before counting")]
    Code { attribute: usize, code: Code },
    #[error("the model would count {records} records, but the maximum is {}: subtract earlier records first", u32::MAX)]
    Full { records: u64 },
    #[error("attribute {attribute}: cannot subtract records that the model does not count")]
    NotCounted { attribute: usize },
    #[error(
        "attribute {attribute}: the renumbering drops a value that {records} records still have: subtract their records first"
    )]
    DropsUsedValue { attribute: usize, records: u64 },
}

/// Adjacency of the values of some attributes. Equality ignores the history of updates.
#[derive(Clone, Debug)]
pub struct Adjacency {
    /// Ascending schema numbers; elsewhere, attributes are indices into them.
    attributes: Vec<usize>,
    limits: AdjacencyLimits,
    records: u32,
    /// n(u) per code.
    nodes: Vec<Vec<u32>>,
    /// Counts of all pairs a < b, in the order (0,1), (0,2), …, (1,2), …; `None` if left out.
    pairs: Vec<Option<PairCountBlock>>,
}

impl Adjacency {
    /// Creates an empty model of attributes with these schema numbers.
    ///
    /// # Errors
    /// Fails if the numbers do not ascend or one is too large.
    pub fn new(attributes: &[usize], limits: AdjacencyLimits) -> Result<Self, AdjacencyError> {
        let beyond = |attribute: &usize| *attribute >= crate::counting::attribute_set::MAX_ATTRIBUTES;
        let falls = attributes.windows(2).find(|two| two[0] >= two[1]).map(|two| two[1]);
        if let Some(attribute) = falls.or_else(|| attributes.iter().copied().find(beyond)) {
            return Err(AdjacencyError::Attributes { attribute });
        }
        let width = attributes.len();
        Ok(Self {
            attributes: attributes.to_vec(),
            limits,
            records: 0,
            nodes: vec![Vec::new(); width],
            pairs: vec![Some(PairCountBlock::default()); width * width.saturating_sub(1) / 2],
        })
    }

    /// Returns the attributes by ascending schema numbers.
    pub fn attributes(&self) -> &[usize] {
        &self.attributes
    }

    /// Returns the size limits.
    pub fn limits(&self) -> AdjacencyLimits {
        self.limits
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        u64::from(self.records)
    }

    fn attribute_index(&self, attribute: usize) -> Option<usize> {
        self.attributes.binary_search(&attribute).ok()
    }

    /// Returns `n(u)`; 0 outside the model.
    pub fn n(&self, node: ValueNode) -> u64 {
        let nodes = self.attribute_index(node.attribute).map(|at| &self.nodes[at]);
        nodes.and_then(|nodes| nodes.get(node.code as usize)).map_or(0, |n| u64::from(*n))
    }

    /// Returns `n(u,v)`; `None` for a left-out pair, one attribute, or outside the model.
    pub fn n_both(&self, u: ValueNode, v: ValueNode) -> Option<u64> {
        let (a, b) = (self.attribute_index(u.attribute)?, self.attribute_index(v.attribute)?);
        if a == b {
            return None;
        }
        let (a, b, x, y) = if a < b { (a, b, u.code, v.code) } else { (b, a, v.code, u.code) };
        self.pair(a, b).map(|block| u64::from(block.get(x, y)))
    }

    /// Returns `P(v|u)` in [0, 1]; `None` without `n(u,v)` or if `n(u)` is 0.
    pub fn p(&self, v: ValueNode, u: ValueNode) -> Option<f64> {
        let both = self.n_both(u, v)?;
        let n = self.n(u);
        (n > 0).then(|| both as f64 / n as f64)
    }

    /// Iterates over the values in use with `n(u)`, ascending.
    pub fn nodes(&self) -> impl Iterator<Item = (ValueNode, u64)> + '_ {
        self.attributes.iter().zip(&self.nodes).flat_map(|(&attribute, nodes)| {
            let held = (0..).zip(nodes).filter(|(_, n)| **n > 0);
            held.map(move |(code, n)| (ValueNode { attribute, code }, u64::from(*n)))
        })
    }

    /// Iterates over each edge once, with `n(u,v)`, ascending.
    pub fn edges(&self) -> impl Iterator<Item = (ValueNode, ValueNode, u64)> + '_ {
        let kept = self.indexed_pairs().filter_map(|(a, b, pair)| pair.map(|block| (a, b, block)));
        kept.flat_map(move |(a, b, block)| {
            block.sorted_edges().into_iter().map(move |(x, y, n)| {
                let node = |at: usize, code| ValueNode { attribute: self.attributes[at], code };
                (node(a, x), node(b, y), u64::from(n))
            })
        })
    }

    /// Returns the edges of a node with `n(u,v)`, ascending. Time: all codes of the other attributes.
    pub fn row(&self, u: ValueNode) -> Vec<(ValueNode, u64)> {
        let Some(at) = self.attribute_index(u.attribute) else { return Vec::new() };
        let mut row = Vec::new();
        for (b, &attribute) in self.attributes.iter().enumerate().filter(|(b, _)| *b != at) {
            if let Some(block) = self.pair(at.min(b), at.max(b)) {
                let edges = block.edges_of(u.code, at < b);
                row.extend(edges.into_iter().map(|(code, n)| (ValueNode { attribute, code }, u64::from(n))));
            }
        }
        row
    }

    /// Returns the number of values in use.
    pub fn node_count(&self) -> u64 {
        self.values().iter().sum()
    }

    fn values(&self) -> Vec<u64> {
        self.nodes.iter().map(|nodes| nodes.iter().filter(|n| **n > 0).count() as u64).collect()
    }

    /// Returns the number of edges.
    pub fn edge_count(&self) -> u64 {
        self.pairs.iter().flatten().map(PairCountBlock::edges).sum()
    }

    /// Returns the pairs of attributes that are no longer counted.
    pub fn left_out_pairs(&self) -> Vec<(usize, usize)> {
        let left_out = self.indexed_pairs().filter(|(_, _, pair)| pair.is_none());
        left_out.map(|(a, b, _)| (self.attributes[a], self.attributes[b])).collect()
    }

    /// Returns the allocated memory in bytes.
    pub fn bytes(&self) -> usize {
        let nodes: usize = self.nodes.iter().map(|nodes| nodes.capacity() * size_of::<u32>()).sum();
        let blocks: usize = self.pairs.iter().flatten().map(PairCountBlock::bytes).sum();
        nodes + blocks + self.pairs.capacity() * size_of::<Option<PairCountBlock>>()
    }

    /// Returns the summed cycle inference `scf(u) = Σ_v P(v|u)` (\[POD] eq. 5.2), without the diagonal.
    pub fn scf(&self, u: ValueNode) -> f64 {
        let n = self.n(u);
        if n == 0 { 0.0 } else { self.row(u).iter().map(|(_, both)| *both as f64).sum::<f64>() / n as f64 }
    }

    /// Returns the mean cycle inference `mcf(u) = scf(u)/t(u)` (\[POD] eq. 5.3), or 0 without neighbours.
    pub fn mcf(&self, u: ValueNode) -> f64 {
        let neighbours = self.neighbours(u);
        if neighbours == 0 { 0.0 } else { self.scf(u) / neighbours as f64 }
    }

    /// Returns `t(u)`, the number of neighbours of u.
    pub fn neighbours(&self, u: ValueNode) -> u64 {
        let Some(at) = self.attribute_index(u.attribute) else { return 0 };
        let others = (0..self.attributes.len()).filter(|b| *b != at);
        others
            .filter_map(|b| self.pair(at.min(b), at.max(b)).map(|block| block.degree(u.code, at < b)))
            .map(u64::from)
            .sum()
    }

    fn pair(&self, a: usize, b: usize) -> Option<&PairCountBlock> {
        self.pairs[pair_number(self.attributes.len(), a, b)].as_ref()
    }

    fn indexed_pairs(&self) -> impl Iterator<Item = (usize, usize, Option<&PairCountBlock>)> {
        index_pairs(self.attributes.len()).zip(&self.pairs).map(|((a, b), pair)| (a, b, pair.as_ref()))
    }
}

fn pair_number(width: usize, a: usize, b: usize) -> usize {
    debug_assert!(a < b && b < width);
    a * (2 * width - a - 1) / 2 + b - a - 1
}

fn index_pairs(width: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..width).flat_map(move |a| (a + 1..width).map(move |b| (a, b)))
}

impl PartialEq for Adjacency {
    fn eq(&self, other: &Self) -> bool {
        let frame = |model: &Self| (model.attributes.clone(), model.records);
        frame(self) == frame(other) && self.nodes().eq(other.nodes()) && self.pairs == other.pairs
    }
}

impl Eq for Adjacency {}
