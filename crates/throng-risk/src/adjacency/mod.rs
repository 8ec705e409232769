//! The Bayesian adjacency of the values of a stream (docs/methods.md §4; [POD] §5.1, Alg. 5–7, Table 5.1).
//!
//! Nodes are values, `n(u)` and `n(u,v)` count the records that hold u, and u and v, and `P(v|u) = n(u,v)/n(u)`. There is no
//! edge where that is 0 and none inside one attribute; each pair of attributes is counted once and read both ways.
//!
//! Counts add. So a micro-batch is added and an expired one subtracted without rereading a record, and the result is the
//! model of the records that are left, to the last edge.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod` | the model, its reading and its limits |
//! | `change` | adding, subtracting, renumbering |
//! | `derived` | an attribute that another determines, taken out and put back |
//! | `counted` | adding what was counted elsewhere, on a GPU for instance |
//! | `share` | the work of one batch in parts |
//! | `block`, `dense`, `sparse` | the counts of one pair of attributes |
//! | `inference`, `expectation` | `M(A→B)`, `μ(t)`, and the statistics of μ over all sets around an attribute |
//! | `triage`, `comparison` | suspects, θ, the order of the exact re-check, and how good it is |

mod block;
mod change;
mod comparison;
mod counted;
mod degrees;
mod dense;
mod derived;
mod expectation;
mod inference;
mod share;
mod sparse;
mod triage;

#[cfg(test)]
mod tests;

pub use comparison::{Detection, Effort, Order, TriageReport};
pub use counted::CountPairs;
pub use expectation::Expectation;
pub use inference::Inference;
pub use triage::{Suspects, Triage};

use block::Block;
use throng_core::values::codebook::Code;

/// Codes of one attribute stay below this: a table of counts is indexed by them.
pub const MAX_CODES: u32 = 1 << 26;

/// Edges of a model at most, where nothing else is asked for.
pub const MAX_EDGES: u64 = 2_000_000;

/// A value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueNode {
    /// The schema's number of the attribute.
    pub attribute: usize,
    /// The code of the value.
    pub code: Code,
}

/// How large a model may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Edges held after a change, at most; an edge is a pair of values seen together. Where a batch ends above it, pairs
    /// of attributes are left out, most edges first (of equals the later pair), until the rest fits. While a batch is
    /// counted there may be four times as many. `n(u)` is exact whatever is left out.
    pub max_edges: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_edges: MAX_EDGES }
    }
}

/// Why a model cannot be made or changed. The model is then as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum AdjacencyError {
    #[error(
        "the attributes of a model must ascend and be below {}: attribute {attribute} does not",
        crate::counting::attribute_set::MAX_ATTRIBUTES
    )]
    Attributes { attribute: usize },
    #[error(
        "the batch has {columns} columns and the model counts attribute {attribute}: give it every column of the schema"
    )]
    Width { attribute: usize, columns: usize },
    #[error(
        "the column of attribute {attribute} has {found} rows and another has {expected}: columns of one batch are equally long"
    )]
    Ragged { attribute: usize, found: usize, expected: usize },
    #[error("code {code} of attribute {attribute} is not below {MAX_CODES}: compact the codebook before counting")]
    Code { attribute: usize, code: Code },
    #[error("the model would count {records} records and holds {} at most: subtract earlier records first", u32::MAX)]
    Full { records: u64 },
    #[error("attribute {attribute}: records are to be subtracted that the model does not count")]
    NotCounted { attribute: usize },
    #[error(
        "attribute {attribute}: the renumbering forgets a value that {records} records still hold: subtract their records first"
    )]
    Forgets { attribute: usize, records: u64 },
}

/// The adjacency of the values of some attributes.
///
/// Equal models count the same attributes, have the same `n(u)`, the same pairs left out and the same
/// edges elsewhere, however each of them came to be.
#[derive(Clone, Debug)]
pub struct Adjacency {
    /// The schema's numbers, ascending. Below, an attribute is its place in here.
    attributes: Vec<usize>,
    limits: Limits,
    /// Records that are counted.
    records: u32,
    /// n(u), an entry a code.
    nodes: Vec<Vec<u32>>,
    /// (0,1), (0,2), …, (1,2), …: the counts of all pairs a < b; none where a pair is left out.
    pairs: Vec<Option<Block>>,
}

impl Adjacency {
    /// An empty model of the attributes, given by their numbers in the schema, ascending.
    ///
    /// # Errors
    /// When the attributes do not ascend.
    pub fn new(attributes: &[usize], limits: Limits) -> Result<Self, AdjacencyError> {
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
            pairs: vec![Some(Block::default()); width * width.saturating_sub(1) / 2],
        })
    }

    /// The attributes that take part, by their numbers in the schema, ascending.
    pub fn attributes(&self) -> &[usize] {
        &self.attributes
    }

    /// How large it may become.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Records that are counted.
    pub fn records(&self) -> u64 {
        u64::from(self.records)
    }

    fn place(&self, attribute: usize) -> Option<usize> {
        self.attributes.binary_search(&attribute).ok()
    }

    /// `n(u)`; 0 for an attribute that takes no part.
    pub fn n(&self, node: ValueNode) -> u64 {
        let nodes = self.place(node.attribute).map(|at| &self.nodes[at]);
        nodes.and_then(|nodes| nodes.get(node.code as usize)).map_or(0, |n| u64::from(*n))
    }

    /// `n(u,v)`; `None` where the pair is left out, is of one attribute, or an attribute takes no part.
    pub fn n_both(&self, u: ValueNode, v: ValueNode) -> Option<u64> {
        let (a, b) = (self.place(u.attribute)?, self.place(v.attribute)?);
        if a == b {
            return None;
        }
        let (a, b, x, y) = if a < b { (a, b, u.code, v.code) } else { (b, a, v.code, u.code) };
        self.pair(a, b).map(|block| u64::from(block.get(x, y)))
    }

    /// `P(v|u) = n(u,v)/n(u)` in [0, 1]; `None` where [`n_both`](Self::n_both) is, or where nothing holds u.
    pub fn p(&self, v: ValueNode, u: ValueNode) -> Option<f64> {
        let both = self.n_both(u, v)?;
        let n = self.n(u);
        (n > 0).then(|| both as f64 / n as f64)
    }

    /// The values that some record holds, ascending.
    pub fn nodes(&self) -> impl Iterator<Item = (ValueNode, u64)> + '_ {
        self.attributes.iter().zip(&self.nodes).flat_map(|(&attribute, nodes)| {
            let held = (0..).zip(nodes).filter(|(_, n)| **n > 0);
            held.map(move |(code, n)| (ValueNode { attribute, code }, u64::from(*n)))
        })
    }

    /// Every edge once, u of the lower attribute, with `n(u,v)`; ascending by attributes, then by codes.
    pub fn edges(&self) -> impl Iterator<Item = (ValueNode, ValueNode, u64)> + '_ {
        let kept = self.numbered().filter_map(|(a, b, pair)| pair.map(|block| (a, b, block)));
        kept.flat_map(move |(a, b, block)| {
            block.sorted().into_iter().map(move |(x, y, n)| {
                let node = |at: usize, code| ValueNode { attribute: self.attributes[at], code };
                (node(a, x), node(b, y), u64::from(n))
            })
        })
    }

    /// The edges of one node, with `n(u,v)`, ascending. Time: the codes of all other attributes.
    pub fn row(&self, u: ValueNode) -> Vec<(ValueNode, u64)> {
        let Some(at) = self.place(u.attribute) else { return Vec::new() };
        let mut row = Vec::new();
        for (b, &attribute) in self.attributes.iter().enumerate().filter(|(b, _)| *b != at) {
            if let Some(block) = self.pair(at.min(b), at.max(b)) {
                let edges = block.edges_of(u.code, at < b);
                row.extend(edges.into_iter().map(|(code, n)| (ValueNode { attribute, code }, u64::from(n))));
            }
        }
        row
    }

    /// Values that some record holds.
    pub fn node_count(&self) -> u64 {
        self.values().iter().sum()
    }

    /// Values that some record holds, of each attribute.
    fn values(&self) -> Vec<u64> {
        self.nodes.iter().map(|nodes| nodes.iter().filter(|n| **n > 0).count() as u64).collect()
    }

    /// Edges held; an edge is read both ways and held once.
    pub fn edge_count(&self) -> u64 {
        self.pairs.iter().flatten().map(Block::edges).sum()
    }

    /// Pairs of attributes that are not counted any more, by their numbers in the schema, ascending. A pair comes back
    /// only in a new model.
    pub fn left_out_pairs(&self) -> Vec<(usize, usize)> {
        let left_out = self.numbered().filter(|(_, _, pair)| pair.is_none());
        left_out.map(|(a, b, _)| (self.attributes[a], self.attributes[b])).collect()
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let nodes: usize = self.nodes.iter().map(|nodes| nodes.capacity() * size_of::<u32>()).sum();
        let blocks: usize = self.pairs.iter().flatten().map(Block::bytes).sum();
        nodes + blocks + self.pairs.capacity() * size_of::<Option<Block>>()
    }

    /// Summed cycle inference `scf(u) = Σ_v P(v|u)` ([POD] eq. 5.2), the diagonal left out.
    ///
    /// Every record has one value of each attribute, a missing one included, so each attribute adds 1: it is the number of
    /// other attributes whose pair is kept.
    pub fn scf(&self, u: ValueNode) -> f64 {
        let n = self.n(u);
        if n == 0 { 0.0 } else { self.row(u).iter().map(|(_, both)| *both as f64).sum::<f64>() / n as f64 }
    }

    /// Mean cycle inference `mcf(u) = scf(u)/t(u)` ([POD] eq. 5.3), `t(u)` the neighbours of u; 0 where it has none.
    pub fn mcf(&self, u: ValueNode) -> f64 {
        let neighbours = self.neighbours(u);
        if neighbours == 0 { 0.0 } else { self.scf(u) / neighbours as f64 }
    }

    /// `t(u)`: the values seen beside u. Kept as counts, so it costs one look a pair.
    pub fn neighbours(&self, u: ValueNode) -> u64 {
        let Some(at) = self.place(u.attribute) else { return 0 };
        let others = (0..self.attributes.len()).filter(|b| *b != at);
        others
            .filter_map(|b| self.pair(at.min(b), at.max(b)).map(|block| block.degree(u.code, at < b)))
            .map(u64::from)
            .sum()
    }

    fn pair(&self, a: usize, b: usize) -> Option<&Block> {
        self.pairs[number(self.attributes.len(), a, b)].as_ref()
    }

    /// All pairs with the places of their attributes.
    fn numbered(&self) -> impl Iterator<Item = (usize, usize, Option<&Block>)> {
        both(self.attributes.len()).zip(&self.pairs).map(|((a, b), pair)| (a, b, pair.as_ref()))
    }
}

/// The number of the pair a < b among all pairs of `width` attributes.
fn number(width: usize, a: usize, b: usize) -> usize {
    debug_assert!(a < b && b < width);
    a * (2 * width - a - 1) / 2 + b - a - 1
}

/// All pairs a < b, in the order of their numbers.
fn both(width: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..width).flat_map(move |a| (a + 1..width).map(move |b| (a, b)))
}

impl PartialEq for Adjacency {
    fn eq(&self, other: &Self) -> bool {
        let frame = |model: &Self| (model.attributes.clone(), model.records);
        frame(self) == frame(other) && self.nodes().eq(other.nodes()) && self.pairs == other.pairs
    }
}

impl Eq for Adjacency {}
