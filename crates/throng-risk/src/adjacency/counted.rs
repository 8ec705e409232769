//! Counting from joint counts that somebody else has made: all pairs of attributes of a batch or a window in one pass.

use super::block::Block;
use super::{Adjacency, AdjacencyError, both};
use crate::counting::{CountedTable, PairCounts};
use rayon::prelude::*;
use throng_core::values::codebook::Code;

/// Cells that are counted at once, at most, unless a single pair has more: 4 bytes each.
const CELLS: usize = 1 << 24;

/// Counts pairs of columns of a table, each with the smaller number first, and gives them in this order.
pub type CountPairs<'c> = dyn FnMut(&[(usize, usize)]) -> Vec<PairCounts> + 'c;

impl Adjacency {
    /// Counts the records of a batch, given as every column of the schema, from what `count` says of their pairs. The model is
    /// the one that [`add`](Self::add) makes, to the last edge: where it would leave pairs out, which it does record by
    /// record, `add` counts.
    ///
    /// `count` is asked about the columns of `table`: those of [`Self::table`] for the same records.
    ///
    /// Memory: at most 64 MiB of joint counts at once (more where a single pair takes more), and the model once more where the
    /// batch might bring it to its limit.
    ///
    /// # Errors
    /// As [`add`](Self::add); the model is then as it was.
    ///
    /// # Panics
    /// When the table is one of other records, or `count` leaves a pair out.
    pub fn add_counted<C: AsRef<[Code]>>(
        &mut self,
        columns: &[C],
        table: &CountedTable,
        count: &mut CountPairs<'_>,
    ) -> Result<(), AdjacencyError> {
        let (lanes, rows) = self.lanes(columns)?;
        assert_eq!((table.width(), table.rows()), (lanes.len(), rows), "a table of the same records");
        self.admit(rows as u64)?;
        let cells = |(a, b)| table.cardinality(a).saturating_mul(table.cardinality(b));
        let kept = self.numbered().filter(|(_, _, pair)| pair.is_some());
        let most = kept.map(|(a, b, _)| cells((a, b)).min(rows) as u64).sum::<u64>().saturating_add(self.edge_count());
        let before = (most > self.limits.max_edges).then(|| self.clone());
        self.make_room(&lanes);
        self.count_nodes::<false>(&lanes);
        self.records += rows as u32;
        let codes = values(&lanes, table);
        let sizes: Vec<usize> = self.nodes.iter().map(Vec::len).collect();
        let mut edges = self.edge_count();
        let kept: Vec<((usize, usize), &mut Block)> = both(sizes.len())
            .zip(&mut self.pairs)
            .filter_map(|(places, pair)| pair.as_mut().map(|block| (places, block)))
            .collect();
        for mut part in parts(kept, |pair| cells(pair).min(4 * rows + 4096)) {
            let asked: Vec<(usize, usize)> = part.iter().map(|(places, _)| *places).collect();
            let counted = count(&asked);
            assert_eq!(counted.len(), asked.len(), "a count a pair");
            edges -= part.iter().map(|(_, block)| block.edges()).sum::<u64>();
            part.par_iter_mut().zip(&counted).for_each(|(((a, b), block), counts)| {
                block.ensure(sizes[*a], sizes[*b]);
                for (x, y, n) in counts.occurring() {
                    block.raise(codes[*a][x as usize], codes[*b][y as usize], n);
                }
                block.settle();
            });
            edges += part.iter().map(|(_, block)| block.edges()).sum::<u64>();
            if edges > self.limits.max_edges {
                break;
            }
        }
        match before {
            Some(before) if edges > self.limits.max_edges => {
                *self = before;
                self.add(columns)
            }
            _ => Ok(()),
        }
    }

    /// The columns of the attributes that take part as a table, a column each. `None` where they are no batch of this
    /// schema, or too long for a table.
    pub fn table<C: AsRef<[Code]>>(&self, columns: &[C]) -> Option<CountedTable> {
        let (lanes, _) = self.lanes(columns).ok()?;
        CountedTable::new(lanes.into_iter().map(<[Code]>::to_vec).collect(), None).ok()
    }

    /// Pairs of the attributes' places that are counted.
    #[cfg(test)]
    pub(super) fn kept_places(&self) -> Vec<(usize, usize)> {
        self.numbered().filter(|(_, _, pair)| pair.is_some()).map(|(a, b, _)| (a, b)).collect()
    }
}

/// The code behind each number of the table, column by column.
fn values(lanes: &[&[Code]], table: &CountedTable) -> Vec<Vec<Code>> {
    let of = |(column, lane): (usize, &&[Code])| {
        let mut codes = vec![0; table.cardinality(column)];
        table.column(column).iter().zip(*lane).for_each(|(number, code)| codes[*number as usize] = *code);
        codes
    };
    lanes.iter().enumerate().map(of).collect()
}

/// Splits pairs into runs of at most [`CELLS`] cells.
fn parts<T>(pairs: Vec<((usize, usize), T)>, cells: impl Fn((usize, usize)) -> usize) -> Vec<Vec<((usize, usize), T)>> {
    let mut parts: Vec<Vec<((usize, usize), T)>> = Vec::new();
    let mut open = usize::MAX;
    for pair in pairs {
        let more = cells(pair.0);
        if open.saturating_add(more) > CELLS {
            parts.push(Vec::new());
            open = 0;
        }
        open += more;
        parts.last_mut().expect("one was opened").push(pair);
    }
    parts
}
