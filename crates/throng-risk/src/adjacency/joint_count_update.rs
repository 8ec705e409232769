use super::pair_count_block::PairCountBlock;
use super::{Adjacency, AdjacencyError, index_pairs};
use crate::counting::{CountedTable, PairCounts};
use rayon::prelude::*;
use throng_core::values::codebook::Code;

/// Most cells per call, of 4 bytes each, unless one pair has more.
const MAX_CELLS_PER_CALL: usize = 1 << 24;

/// Function that counts pairs of columns, smaller column first, and returns the counts in the same order.
pub type PairCountFn<'c> = dyn FnMut(&[(usize, usize)]) -> Vec<PairCounts> + 'c;

impl Adjacency {
    /// Adds a batch, given as all columns of the schema, from joint counts that `count` returns for pairs of `table`.
    ///
    /// The result equals that of [`add`](Self::add), which takes over if the batch exceeds the edge limit. `table` must
    /// be [`Self::table`] of the same records. Memory: at most 64 MiB of joint counts, unless one pair takes more, and
    /// possibly a copy of the model.
    ///
    /// # Errors
    /// Fails like [`add`](Self::add).
    ///
    /// # Panics
    /// Panics if the table has other records, or if `count` omits a pair.
    pub fn add_counted<C: AsRef<[Code]>>(
        &mut self,
        columns: &[C],
        table: &CountedTable,
        count: &mut PairCountFn<'_>,
    ) -> Result<(), AdjacencyError> {
        let (lanes, rows) = self.counted_columns(columns)?;
        assert_eq!((table.width(), table.rows()), (lanes.len(), rows), "a table of the same records");
        self.check_capacity(rows as u64)?;
        let cells = |(a, b)| table.cardinality(a).saturating_mul(table.cardinality(b));
        let kept = self.indexed_pairs().filter(|(_, _, pair)| pair.is_some());
        let most = kept.map(|(a, b, _)| cells((a, b)).min(rows) as u64).sum::<u64>().saturating_add(self.edge_count());
        let before = (most > self.limits.max_edges).then(|| self.clone());
        self.make_room(&lanes);
        self.count_nodes::<false>(&lanes);
        self.records += rows as u32;
        let codes = codes_by_number(&lanes, table);
        let sizes: Vec<usize> = self.nodes.iter().map(Vec::len).collect();
        let mut edges = self.edge_count();
        let kept: Vec<((usize, usize), &mut PairCountBlock)> = index_pairs(sizes.len())
            .zip(&mut self.pairs)
            .filter_map(|(places, pair)| pair.as_mut().map(|block| (places, block)))
            .collect();
        for mut part in split_by_cells(kept, |pair| cells(pair).min(4 * rows + 4096)) {
            let asked: Vec<(usize, usize)> = part.iter().map(|(places, _)| *places).collect();
            let counted = count(&asked);
            assert_eq!(counted.len(), asked.len(), "a count a pair");
            edges -= part.iter().map(|(_, block)| block.edges()).sum::<u64>();
            part.par_iter_mut().zip(&counted).for_each(|(((a, b), block), counts)| {
                block.ensure(sizes[*a], sizes[*b]);
                for (x, y, n) in counts.occurring() {
                    block.add_to_edge(codes[*a][x as usize], codes[*b][y as usize], n);
                }
                block.densify_if_smaller();
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

    /// Returns a table with one column per counted attribute; `None` if the columns are invalid or too long.
    pub fn table<C: AsRef<[Code]>>(&self, columns: &[C]) -> Option<CountedTable> {
        let (lanes, _) = self.counted_columns(columns).ok()?;
        CountedTable::new(lanes.into_iter().map(<[Code]>::to_vec).collect(), None).ok()
    }

    #[cfg(test)]
    pub(super) fn counted_pair_indices(&self) -> Vec<(usize, usize)> {
        self.indexed_pairs().filter(|(_, _, pair)| pair.is_some()).map(|(a, b, _)| (a, b)).collect()
    }
}

fn codes_by_number(lanes: &[&[Code]], table: &CountedTable) -> Vec<Vec<Code>> {
    let of = |(column, lane): (usize, &&[Code])| {
        let mut codes = vec![0; table.cardinality(column)];
        table.column(column).iter().zip(*lane).for_each(|(number, code)| codes[*number as usize] = *code);
        codes
    };
    lanes.iter().enumerate().map(of).collect()
}

fn split_by_cells<T>(
    pairs: Vec<((usize, usize), T)>,
    cells: impl Fn((usize, usize)) -> usize,
) -> Vec<Vec<((usize, usize), T)>> {
    let mut parts: Vec<Vec<((usize, usize), T)>> = Vec::new();
    let mut open = usize::MAX;
    for pair in pairs {
        let more = cells(pair.0);
        if open.saturating_add(more) > MAX_CELLS_PER_CALL {
            parts.push(Vec::new());
            open = 0;
        }
        open += more;
        parts.last_mut().expect("one was opened").push(pair);
    }
    parts
}
