use super::block_count_task::{BlockCountTask, block_count_tasks};
use super::degrees::step_count;
use super::pair_count_block::PairCountBlock;
use super::{Adjacency, AdjacencyError, MAX_CODES, index_pairs, pair_number};
use rayon::prelude::*;
use throng_core::values::codebook::Code;

const MIN_SLICE_ROWS: usize = 64;

impl Adjacency {
    /// Adds a batch, given as all columns of the schema.
    ///
    /// # Errors
    /// Fails if the columns do not match the schema, or if the model is full.
    pub fn add<C: AsRef<[Code]>>(&mut self, columns: &[C]) -> Result<(), AdjacencyError> {
        let (lanes, rows) = self.counted_columns(columns)?;
        self.check_capacity(rows as u64)?;
        self.make_room(&lanes);
        self.count_nodes::<false>(&lanes);
        self.records += rows as u32;
        let values = self.values();
        let mut from = 0;
        while from < rows {
            let to = from + self.rows_until_limit_check(&values, rows - from);
            let slices: Vec<&[Code]> = lanes.iter().map(|lane| &lane[from..to]).collect();
            self.count_pairs::<false>(&slices);
            self.enforce_edge_limit();
            from = to;
        }
        Ok(())
    }

    /// Subtracts records added before, given as all columns of the schema.
    ///
    /// # Errors
    /// Fails if the columns do not match the schema, or if the model lacks these records.
    pub fn subtract<C: AsRef<[Code]>>(&mut self, columns: &[C]) -> Result<(), AdjacencyError> {
        let (lanes, rows) = self.counted_columns(columns)?;
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

    pub(super) fn make_room(&mut self, lanes: &[&[Code]]) {
        for (nodes, lane) in self.nodes.iter_mut().zip(lanes) {
            let codes = lane.iter().max().map_or(0, |code| *code as usize + 1);
            nodes.resize(nodes.len().max(codes), 0);
        }
    }

    pub(super) fn counted_columns<'a, C: AsRef<[Code]>>(
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

    pub(super) fn check_capacity(&self, more: u64) -> Result<(), AdjacencyError> {
        let records = u64::from(self.records) + more;
        if records > u64::from(u32::MAX) { Err(AdjacencyError::Full { records }) } else { Ok(()) }
    }

    /// Returns the first attribute whose count underflowed.
    pub(super) fn count_nodes<const SUBTRACT: bool>(&mut self, lanes: &[&[Code]]) -> Option<usize> {
        let mut short = None;
        for (at, (nodes, lane)) in self.nodes.iter_mut().zip(lanes).enumerate() {
            let mut below = false;
            for &code in *lane {
                let (before, _) = step_count::<SUBTRACT>(&mut nodes[code as usize]);
                below |= SUBTRACT && before == 0;
            }
            if below {
                short = short.or(Some(at));
            }
        }
        short
    }

    /// Returns the lowest first attribute of a pair whose count underflowed.
    fn count_pairs<const SUBTRACT: bool>(&mut self, lanes: &[&[Code]]) -> Option<usize> {
        let codes: Vec<usize> = self.nodes.iter().map(Vec::len).collect();
        let places: Vec<(usize, usize)> = index_pairs(codes.len()).collect();
        let kept = |(pair, (a, b)): (_, (usize, usize))| Option::as_mut(pair).map(|block| (a, b, block));
        let mut blocks: Vec<(usize, usize, &mut PairCountBlock)> =
            self.pairs.iter_mut().zip(places.iter().copied()).filter_map(kept).collect();
        blocks.par_iter_mut().for_each(|(a, b, block)| block.ensure(codes[*a], codes[*b]));
        let shares = block_count_tasks(blocks.into_iter().map(|(a, b, block)| (a, lanes[b], block)));
        let short = |(a, share): (usize, BlockCountTask<'_>)| share.count::<SUBTRACT>(lanes[a]).then_some(a);
        let short = shares.into_par_iter().filter_map(short).min();
        self.pairs.par_iter_mut().filter_map(Option::as_mut).for_each(PairCountBlock::densify_if_smaller);
        short
    }

    /// Returns the number of rows until the next check of the edge limit.
    ///
    /// A row adds at most one edge per pair, up to its free cells, so the model stays below four times the limit.
    fn rows_until_limit_check(&self, values: &[u64], rows: usize) -> usize {
        let room = self.limits.max_edges.saturating_mul(4).saturating_sub(self.edge_count());
        let free: Vec<u64> = index_pairs(values.len())
            .zip(&self.pairs)
            .filter_map(|((a, b), pair)| pair.as_ref().map(|block| values[a] * values[b] - block.edges()))
            .collect();
        let gain = |rows: usize| free.iter().map(|free| (*free).min(rows as u64)).sum::<u64>();
        let halves = std::iter::successors(Some(rows), |rows| (*rows > MIN_SLICE_ROWS).then(|| rows.div_ceil(2)));
        halves
            .take_while(|rows| *rows > MIN_SLICE_ROWS)
            .find(|rows| gain(*rows) <= room)
            .unwrap_or(rows.min(MIN_SLICE_ROWS))
    }

    /// Leaves out pairs, most edges first, until the limit holds.
    pub(super) fn enforce_edge_limit(&mut self) {
        let mut edges = self.edge_count();
        if edges <= self.limits.max_edges {
            return;
        }
        let edges_of = |pair: &Option<PairCountBlock>| pair.as_ref().map_or(0, PairCountBlock::edges);
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

    /// Renumbers the codes of an attribute after compaction; `map` is old → new, and may merge values.
    ///
    /// # Errors
    /// Fails if `map` drops a value in use.
    pub fn remap(&mut self, attribute: usize, map: &[Code]) -> Result<(), AdjacencyError> {
        let Some(at) = self.attribute_index(attribute) else { return Ok(()) };
        let new = |code: Code| map.get(code as usize).copied().filter(|new| *new < MAX_CODES);
        let held = || (0..).zip(&self.nodes[at]).filter(|(_, n)| **n > 0);
        if let Some((_, records)) = held().find(|(code, _)| new(*code).is_none()) {
            return Err(AdjacencyError::DropsUsedValue { attribute, records: u64::from(*records) });
        }
        let codes = held().filter_map(|(code, _)| new(code)).max().map_or(0, |code| code as usize + 1);
        let mut nodes = vec![0; codes];
        held().filter_map(|(code, n)| new(code).map(|new| (new, *n))).for_each(|(new, n)| nodes[new as usize] += n);
        self.nodes[at] = nodes;
        let codes: Vec<usize> = self.nodes.iter().map(Vec::len).collect();
        let places: Vec<(usize, usize)> = index_pairs(codes.len()).collect();
        let touched = self.pairs.par_iter_mut().zip(places).filter(|(_, (a, b))| *a == at || *b == at);
        touched.for_each(|(pair, (a, b))| {
            if let Some(block) = pair {
                let renumbered = block.all_edges().map(|(x, y, n)| {
                    let code = if a == at { x } else { y };
                    let code = map[code as usize];
                    if a == at { (code, y, n) } else { (x, code, n) }
                });
                *block = PairCountBlock::of(renumbered, codes[a], codes[b]);
            }
        });
        Ok(())
    }

    /// Leaves out pairs of attributes, given by schema numbers, the lower one first.
    pub fn exclude_pairs(&mut self, pairs: &[(usize, usize)]) {
        for &(a, b) in pairs {
            if let (Some(a), Some(b)) = (self.attribute_index(a), self.attribute_index(b))
                && a < b
            {
                self.pairs[pair_number(self.attributes.len(), a, b)] = None;
            }
        }
    }
}
