//! An attribute that another one determines, taken out of a model and put back from the counts alone.

use super::block::Block;
use super::{Adjacency, AdjacencyError, both};
use throng_core::values::codebook::Code;

impl Adjacency {
    /// Puts in an attribute whose values are unions of values of `host`: `map[a]` is the value beside code a of the host.
    /// The model is then the one that had counted both all along.
    ///
    /// Time: the edges of the host, and a step for each pair of attributes.
    ///
    /// # Errors
    /// When the attribute takes part already, the host does not, or a value of the host that records hold has no value
    /// in `map`. The model is then as it was.
    pub fn derive(&mut self, attribute: usize, host: usize, map: &[Code]) -> Result<(), AdjacencyError> {
        let from = self.place(host).ok_or(AdjacencyError::Attributes { attribute: host })?;
        let Err(to) = self.attributes.binary_search(&attribute) else {
            return Err(AdjacencyError::Attributes { attribute });
        };
        let value = |code: Code| map.get(code as usize).copied().filter(|value| *value < super::MAX_CODES);
        let held: Vec<(Code, u32)> = (0..).zip(self.nodes[from].iter().copied()).filter(|(_, n)| *n > 0).collect();
        if let Some((_, records)) = held.iter().find(|(code, _)| value(*code).is_none()) {
            return Err(AdjacencyError::Forgets { attribute: host, records: u64::from(*records) });
        }
        let codes = held.iter().filter_map(|(code, _)| value(*code)).max().map_or(0, |code| code as usize + 1);
        let mut nodes = vec![0; codes];
        held.iter().for_each(|(code, n)| nodes[map[*code as usize] as usize] += n);

        let width = self.attributes.len() + 1;
        let old = |at: usize| at - usize::from(at > to);
        let mut beside: Vec<Option<Block>> = Vec::new();
        for other in (0..width).filter(|at| *at != to).map(old) {
            let others = self.nodes[other].len();
            // Edges as (value here, value of the other).
            let edges: Vec<(Code, Code, u32)> = if other == from {
                held.iter().map(|(code, n)| (map[*code as usize], *code, *n)).collect()
            } else {
                let Some(block) = self.pair(from.min(other), from.max(other)) else {
                    beside.push(None);
                    continue;
                };
                let turned = |(x, y, n): (Code, Code, u32)| if from < other { (x, y, n) } else { (y, x, n) };
                block.all().map(turned).map(|(x, y, n)| (map[x as usize], y, n)).collect()
            };
            let block = if to <= other {
                Block::of(edges.into_iter(), codes, others)
            } else {
                Block::of(edges.into_iter().map(|(x, y, n)| (y, x, n)), others, codes)
            };
            beside.push(Some(block));
        }
        let (mut beside, mut apart) = (beside.into_iter(), std::mem::take(&mut self.pairs).into_iter());
        // Pairs with the new place come in the order of the other one, all others in the order that they had.
        let next = |(a, b)| if a == to || b == to { beside.next() } else { apart.next() };
        self.pairs = both(width).filter_map(next).collect();
        self.attributes.insert(to, attribute);
        self.nodes.insert(to, nodes);
        self.keep_limit();
        Ok(())
    }

    /// `n(u)` of an attribute's values, an entry a code; none where it takes no part.
    pub fn counts_of(&self, attribute: usize) -> Vec<u32> {
        self.place(attribute).map_or_else(Vec::new, |at| self.nodes[at].clone())
    }

    /// Takes an attribute out, with all its counts. One that takes no part is none of the model's business.
    pub fn forget(&mut self, attribute: usize) {
        let Some(at) = self.place(attribute) else { return };
        let places = both(self.attributes.len());
        let stays = |((a, b), pair)| (a != at && b != at).then_some(pair);
        self.pairs = places.zip(std::mem::take(&mut self.pairs)).filter_map(stays).collect();
        self.attributes.remove(at);
        self.nodes.remove(at);
    }
}
