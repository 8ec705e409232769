use super::pair_count_block::PairCountBlock;
use super::{Adjacency, AdjacencyError, index_pairs};
use throng_core::values::codebook::Code;

impl Adjacency {
    /// Adds an attribute determined by `host`; `map[a]` is its value for host code a.
    ///
    /// The result equals a model that counted both from the start.
    ///
    /// # Errors
    /// Fails if the attribute is in the model, the host is not, or `map` misses a host value in use.
    pub fn add_derived_attribute(&mut self, attribute: usize, host: usize, map: &[Code]) -> Result<(), AdjacencyError> {
        let from = self.attribute_index(host).ok_or(AdjacencyError::Attributes { attribute: host })?;
        let Err(to) = self.attributes.binary_search(&attribute) else {
            return Err(AdjacencyError::Attributes { attribute });
        };
        let value = |code: Code| map.get(code as usize).copied().filter(|value| *value < super::MAX_CODES);
        let held: Vec<(Code, u32)> = (0..).zip(self.nodes[from].iter().copied()).filter(|(_, n)| *n > 0).collect();
        if let Some((_, records)) = held.iter().find(|(code, _)| value(*code).is_none()) {
            return Err(AdjacencyError::DropsUsedValue { attribute: host, records: u64::from(*records) });
        }
        let codes = held.iter().filter_map(|(code, _)| value(*code)).max().map_or(0, |code| code as usize + 1);
        let mut nodes = vec![0; codes];
        held.iter().for_each(|(code, n)| nodes[map[*code as usize] as usize] += n);

        let width = self.attributes.len() + 1;
        let old = |at: usize| at - usize::from(at > to);
        let mut beside: Vec<Option<PairCountBlock>> = Vec::new();
        for other in (0..width).filter(|at| *at != to).map(old) {
            let others = self.nodes[other].len();
            let edges: Vec<(Code, Code, u32)> = if other == from {
                held.iter().map(|(code, n)| (map[*code as usize], *code, *n)).collect()
            } else {
                let Some(block) = self.pair(from.min(other), from.max(other)) else {
                    beside.push(None);
                    continue;
                };
                let turned = |(x, y, n): (Code, Code, u32)| if from < other { (x, y, n) } else { (y, x, n) };
                block.all_edges().map(turned).map(|(x, y, n)| (map[x as usize], y, n)).collect()
            };
            let block = if to <= other {
                PairCountBlock::of(edges.into_iter(), codes, others)
            } else {
                PairCountBlock::of(edges.into_iter().map(|(x, y, n)| (y, x, n)), others, codes)
            };
            beside.push(Some(block));
        }
        let (mut beside, mut apart) = (beside.into_iter(), std::mem::take(&mut self.pairs).into_iter());
        let next = |(a, b)| if a == to || b == to { beside.next() } else { apart.next() };
        self.pairs = index_pairs(width).filter_map(next).collect();
        self.attributes.insert(to, attribute);
        self.nodes.insert(to, nodes);
        self.enforce_edge_limit();
        Ok(())
    }

    /// Returns `n(u)` per code; empty outside the model.
    pub fn counts_of(&self, attribute: usize) -> Vec<u32> {
        self.attribute_index(attribute).map_or_else(Vec::new, |at| self.nodes[at].clone())
    }

    /// Removes an attribute and its counts, if present.
    pub fn remove_attribute(&mut self, attribute: usize) {
        let Some(at) = self.attribute_index(attribute) else { return };
        let places = index_pairs(self.attributes.len());
        let stays = |((a, b), pair)| (a != at && b != at).then_some(pair);
        self.pairs = places.zip(std::mem::take(&mut self.pairs)).filter_map(stays).collect();
        self.attributes.remove(at);
        self.nodes.remove(at);
    }
}
