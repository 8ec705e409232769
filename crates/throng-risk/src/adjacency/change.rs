//! What changes a model: records that come and go, new numbers.

use super::block::Block;
use super::degrees::changed;
use super::share::{Share, shares};
use super::{Adjacency, AdjacencyError, MAX_CODES, both, number};
use rayon::prelude::*;
use throng_core::values::codebook::Code;

/// Rows that are always counted at once.
const LEAST_SLICE: usize = 64;

impl Adjacency {
    /// Counts the records of a batch, given as every column of the schema.
    ///
    /// Time: one increment for each record and pair of attributes, in parallel over the pairs.
    ///
    /// # Errors
    /// When the columns are not a batch of this schema, or the model is full.
    pub fn add<C: AsRef<[Code]>>(&mut self, columns: &[C]) -> Result<(), AdjacencyError> {
        let (lanes, rows) = self.lanes(columns)?;
        self.admit(rows as u64)?;
        self.make_room(&lanes);
        self.count_nodes::<false>(&lanes);
        self.records += rows as u32;
        let values = self.values();
        let mut from = 0;
        while from < rows {
            let to = from + self.slice(&values, rows - from);
            let slices: Vec<&[Code]> = lanes.iter().map(|lane| &lane[from..to]).collect();
            self.count_pairs::<false>(&slices);
            self.keep_limit();
            from = to;
        }
        Ok(())
    }

    /// Takes back records that were added, given as every column of the schema.
    ///
    /// # Errors
    /// When the columns are not a batch of this schema, or the model does not count such records.
    pub fn subtract<C: AsRef<[Code]>>(&mut self, columns: &[C]) -> Result<(), AdjacencyError> {
        let (lanes, rows) = self.lanes(columns)?;
        if rows == 0 {
            return Ok(());
        }
        for ((nodes, lane), &attribute) in self.nodes.iter().zip(&lanes).zip(&self.attributes) {
            if lane.iter().any(|code| *code as usize >= nodes.len()) {
                return Err(AdjacencyError::NotCounted { attribute });
            }
        }
        let short = self.count_nodes::<true>(&lanes);
        if let Some(at) = short {
            self.count_nodes::<false>(&lanes);
            return Err(AdjacencyError::NotCounted { attribute: self.attributes[at] });
        }
        let short = self.count_pairs::<true>(&lanes);
        if let Some(at) = short {
            self.count_pairs::<false>(&lanes);
            self.count_nodes::<false>(&lanes);
            return Err(AdjacencyError::NotCounted { attribute: self.attributes[at] });
        }
        self.records = self.records.wrapping_sub(rows as u32);
        Ok(())
    }

    /// A count for every code of the lanes.
    pub(super) fn make_room(&mut self, lanes: &[&[Code]]) {
        for (nodes, lane) in self.nodes.iter_mut().zip(lanes) {
            let codes = lane.iter().max().map_or(0, |code| *code as usize + 1);
            nodes.resize(nodes.len().max(codes), 0);
        }
    }

    /// The columns of the attributes that take part, and their length.
    pub(super) fn lanes<'a, C: AsRef<[Code]>>(
        &self,
        columns: &'a [C],
    ) -> Result<(Vec<&'a [Code]>, usize), AdjacencyError> {
        let mut lanes: Vec<&[Code]> = Vec::with_capacity(self.attributes.len());
        for &attribute in &self.attributes {
            let lane = columns.get(attribute).map(AsRef::as_ref);
            let lane = lane.ok_or(AdjacencyError::Width { attribute, columns: columns.len() })?;
            let expected = lanes.first().map_or(lane.len(), |first| first.len());
            if lane.len() != expected {
                return Err(AdjacencyError::Ragged { attribute, found: lane.len(), expected });
            }
            if let Some(code) = lane.iter().copied().max().filter(|code| *code >= MAX_CODES) {
                return Err(AdjacencyError::Code { attribute, code });
            }
            lanes.push(lane);
        }
        let rows = lanes.first().map_or(0, |lane| lane.len());
        Ok((lanes, rows))
    }

    pub(super) fn admit(&self, more: u64) -> Result<(), AdjacencyError> {
        let records = u64::from(self.records) + more;
        if records > u64::from(u32::MAX) { Err(AdjacencyError::Full { records }) } else { Ok(()) }
    }

    /// The place of the first attribute with a count that fell below nothing.
    pub(super) fn count_nodes<const SUBTRACT: bool>(&mut self, lanes: &[&[Code]]) -> Option<usize> {
        let mut short = None;
        for (at, (nodes, lane)) in self.nodes.iter_mut().zip(lanes).enumerate() {
            let mut below = false;
            for &code in *lane {
                let (before, _) = changed::<SUBTRACT>(&mut nodes[code as usize]);
                below |= SUBTRACT && before == 0;
            }
            if below {
                short = short.or(Some(at));
            }
        }
        short
    }

    /// The place of the first attribute of the first pair with a count that fell below nothing.
    fn count_pairs<const SUBTRACT: bool>(&mut self, lanes: &[&[Code]]) -> Option<usize> {
        let codes: Vec<usize> = self.nodes.iter().map(Vec::len).collect();
        let places: Vec<(usize, usize)> = both(codes.len()).collect();
        let kept = |(pair, (a, b)): (_, (usize, usize))| Option::as_mut(pair).map(|block| (a, b, block));
        let mut blocks: Vec<(usize, usize, &mut Block)> =
            self.pairs.iter_mut().zip(places.iter().copied()).filter_map(kept).collect();
        blocks.par_iter_mut().for_each(|(a, b, block)| block.ensure(codes[*a], codes[*b]));
        let shares = shares(blocks.into_iter().map(|(a, b, block)| (a, lanes[b], block)));
        let short = |(a, share): (usize, Share<'_>)| share.count::<SUBTRACT>(lanes[a]).then_some(a);
        let short = shares.into_par_iter().filter_map(short).min();
        self.pairs.par_iter_mut().filter_map(Option::as_mut).for_each(Block::settle);
        short
    }

    /// How many of the next rows can be counted before the limit has to be looked at again, so that there are never more than
    /// four times as many edges: a pair gains at most one a row, and no more than it has cells left.
    fn slice(&self, values: &[u64], rows: usize) -> usize {
        let room = self.limits.max_edges.saturating_mul(4).saturating_sub(self.edge_count());
        let free: Vec<u64> = both(values.len())
            .zip(&self.pairs)
            .filter_map(|((a, b), pair)| pair.as_ref().map(|block| values[a] * values[b] - block.edges()))
            .collect();
        let gain = |rows: usize| free.iter().map(|free| (*free).min(rows as u64)).sum::<u64>();
        let halves = std::iter::successors(Some(rows), |rows| (*rows > LEAST_SLICE).then(|| rows.div_ceil(2)));
        halves.take_while(|rows| *rows > LEAST_SLICE).find(|rows| gain(*rows) <= room).unwrap_or(rows.min(LEAST_SLICE))
    }

    /// Leaves pairs out until the edges are within the limit.
    pub(super) fn keep_limit(&mut self) {
        let mut edges = self.edge_count();
        if edges <= self.limits.max_edges {
            return;
        }
        let edges_of = |pair: &Option<Block>| pair.as_ref().map_or(0, Block::edges);
        let mut heaviest: Vec<(u64, usize)> = self.pairs.iter().map(edges_of).zip(0..).collect();
        heaviest.sort_unstable_by(|one, other| other.cmp(one));
        for (own, at) in heaviest {
            if edges <= self.limits.max_edges {
                break;
            }
            self.pairs[at] = None;
            edges -= own;
        }
    }

    /// Renumbers the codes of one attribute of the schema, as its codebook was; `map` is old → new. Values with the same new
    /// code become one. An attribute that takes no part is none of the model's business.
    ///
    /// # Errors
    /// When a value that records still hold is forgotten.
    pub fn remap(&mut self, attribute: usize, map: &[Code]) -> Result<(), AdjacencyError> {
        let Some(at) = self.place(attribute) else { return Ok(()) };
        let new = |code: Code| map.get(code as usize).copied().filter(|new| *new < MAX_CODES);
        let held = || (0..).zip(&self.nodes[at]).filter(|(_, n)| **n > 0);
        if let Some((_, records)) = held().find(|(code, _)| new(*code).is_none()) {
            return Err(AdjacencyError::Forgets { attribute, records: u64::from(*records) });
        }
        let codes = held().filter_map(|(code, _)| new(code)).max().map_or(0, |code| code as usize + 1);
        let mut nodes = vec![0; codes];
        held().filter_map(|(code, n)| new(code).map(|new| (new, *n))).for_each(|(new, n)| nodes[new as usize] += n);
        self.nodes[at] = nodes;
        let codes: Vec<usize> = self.nodes.iter().map(Vec::len).collect();
        let places: Vec<(usize, usize)> = both(codes.len()).collect();
        let touched = self.pairs.par_iter_mut().zip(places).filter(|(_, (a, b))| *a == at || *b == at);
        touched.for_each(|(pair, (a, b))| {
            if let Some(block) = pair {
                let renumbered = block.all().map(|(x, y, n)| {
                    let code = if a == at { x } else { y };
                    let code = map[code as usize];
                    if a == at { (code, y, n) } else { (x, code, n) }
                });
                *block = Block::of(renumbered, codes[a], codes[b]);
            }
        });
        Ok(())
    }

    /// Counts these pairs of attributes no more, given by their numbers in the schema, the lower one first. Others are ignored.
    pub fn leave_out(&mut self, pairs: &[(usize, usize)]) {
        for &(a, b) in pairs {
            if let (Some(a), Some(b)) = (self.place(a), self.place(b))
                && a < b
            {
                self.pairs[number(self.attributes.len(), a, b)] = None;
            }
        }
    }
}
