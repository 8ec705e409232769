//! Joint counts of the values of two columns, the basis of conditional probabilities (docs/internals/methods.md §4; \[POD] Alg.
//! 5–7).

use super::CountedTable;

/// Joint record counts of two columns.
///
/// Counts are stored as an array if it has at most 4 cells per row plus 4,096, else as a list of the pairs that
/// occur. The choice depends only on the table, so equal tables give equal values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairCounts {
    /// Column numbers, the smaller one first.
    pub columns: (usize, usize),
    /// Cardinalities of the two columns.
    pub cardinalities: (u32, u32),
    cells: PairCountCells,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PairCountCells {
    /// `n(a, b)` at index `a · cardinality(b) + b`.
    Dense(Vec<u32>),
    /// `(a, b, n)` with n above 0, ascending.
    Sparse(Vec<(u32, u32, u32)>),
}

/// Returns the number of cells of a pair if the pair is stored as an array.
pub(super) fn dense_cells(table: &CountedTable, a: usize, b: usize) -> Option<usize> {
    let cells = table.cardinality(a).checked_mul(table.cardinality(b))?;
    (cells <= 4 * table.rows() + 4096).then_some(cells)
}

impl PairCounts {
    pub(super) fn from_dense_cells(table: &CountedTable, (a, b): (usize, usize), cells: Vec<u32>) -> Self {
        Self { columns: (a, b), cardinalities: cardinalities(table, a, b), cells: PairCountCells::Dense(cells) }
    }

    /// Counts one pair of columns, with `a < b`.
    pub(super) fn from_table(table: &CountedTable, a: usize, b: usize) -> Self {
        let rows = || table.column(a).iter().zip(table.column(b));
        let cells = if let Some(cells) = dense_cells(table, a, b) {
            let mut counts = vec![0; cells];
            let radix = table.cardinality(b);
            rows().for_each(|(a, b)| counts[*a as usize * radix + *b as usize] += 1);
            PairCountCells::Dense(counts)
        } else {
            let mut keys: Vec<(u32, u32)> = rows().map(|(a, b)| (*a, *b)).collect();
            keys.sort_unstable();
            PairCountCells::Sparse(
                keys.chunk_by(|x, y| x == y).map(|all| (all[0].0, all[0].1, all.len() as u32)).collect(),
            )
        };
        Self { columns: (a, b), cardinalities: cardinalities(table, a, b), cells }
    }

    /// Returns the value pairs that occur, ascending, with their record counts.
    pub fn occurring(&self) -> Box<dyn Iterator<Item = (u32, u32, u32)> + '_> {
        match &self.cells {
            PairCountCells::Dense(counts) => {
                let radix = self.cardinalities.1.max(1);
                let at = move |(cell, n): (usize, &u32)| (cell as u32 / radix, cell as u32 % radix, *n);
                Box::new(counts.iter().enumerate().filter(|(_, n)| **n > 0).map(at))
            }
            PairCountCells::Sparse(pairs) => Box::new(pairs.iter().copied()),
        }
    }
}

fn cardinalities(table: &CountedTable, a: usize, b: usize) -> (u32, u32) {
    (table.cardinality(a) as u32, table.cardinality(b) as u32)
}

/// Returns all pairs of columns in lexicographic order.
pub fn all_pairs(width: usize) -> Vec<(usize, usize)> {
    (0..width).flat_map(|a| (a + 1..width).map(move |b| (a, b))).collect()
}

/// Counts pairs of columns on the CPU. Each pair names the smaller column first.
pub fn count_pairs(table: &CountedTable, pairs: &[(usize, usize)]) -> Vec<PairCounts> {
    use rayon::prelude::*;
    pairs.par_iter().map(|(a, b)| PairCounts::from_table(table, *a, *b)).collect()
}

/// Counts of one value relative to another column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueCount {
    /// Records that have the value.
    pub records: u64,
    /// Distinct values of the other column that occur with it.
    pub partner_values: u64,
}

/// Inferences between two columns: `P(b|a) = n(a, b) / n(a)` and `P(a|b)` (docs/internals/methods.md §4).
///
/// Arrays are indexed by cell, `a · cardinality(b) + b`, as in [`PairCounts`]; nodes are indexed by value. The sums
/// of scf and mcf (\[POD] eq. 5.2, 5.3) add these nodes over all other columns.
#[derive(Clone, Debug, PartialEq)]
pub struct PairInference {
    /// Column numbers, the smaller one first.
    pub columns: (usize, usize),
    /// Cardinalities of the two columns.
    pub cardinalities: (u32, u32),
    /// `P(b|a)`; 0 for a pair that does not occur.
    pub forward: Vec<f64>,
    /// `P(a|b)`; 0 for a pair that does not occur.
    pub backward: Vec<f64>,
    /// Values of each column, by code.
    pub nodes: (Vec<ValueCount>, Vec<ValueCount>),
}

impl PairInference {
    /// Computes inferences on the CPU. Each probability is one division of two integers, exact to the last bit.
    pub fn from_counts(counts: &PairCounts) -> Self {
        let (first, second) = (counts.cardinalities.0 as usize, counts.cardinalities.1 as usize);
        let mut nodes = (vec![ValueCount::default(); first], vec![ValueCount::default(); second]);
        for (a, b, n) in counts.occurring() {
            for node in [&mut nodes.0[a as usize], &mut nodes.1[b as usize]] {
                node.records += u64::from(n);
                node.partner_values += 1;
            }
        }
        let (mut forward, mut backward) = (vec![0.0; first * second], vec![0.0; first * second]);
        for (a, b, n) in counts.occurring() {
            let cell = a as usize * second + b as usize;
            forward[cell] = f64::from(n) / nodes.0[a as usize].records as f64;
            backward[cell] = f64::from(n) / nodes.1[b as usize].records as f64;
        }
        Self { columns: counts.columns, cardinalities: counts.cardinalities, forward, backward, nodes }
    }
}

/// Values of two columns, each counted relative to the other column.
pub type PairNodes = (Vec<ValueCount>, Vec<ValueCount>);

/// Summed and mean inference from one value to all other columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CycleInference {
    /// `scf(u) = Σ_v P(v|u)` (\[POD] eq. 5.2); 0 in a table of one column.
    pub scf: f64,
    /// `mcf(u) = scf(u) / t(u)`, with `t(u)` the number of values that occur with u (\[POD] eq. 5.3).
    pub mcf: f64,
}

/// Computes summed and mean cycle inference of every value of every column, from the nodes of all column pairs. All
/// sums are of integers, so their order does not affect the result.
pub fn cycle_inference(
    table: &CountedTable,
    nodes: impl IntoIterator<Item = ((usize, usize), PairNodes)>,
) -> Vec<Vec<CycleInference>> {
    // Records summed over all other columns, records of the value, and number of values that occur with it.
    let mut sums: Vec<Vec<(u64, u64, u64)>> =
        (0..table.width()).map(|column| vec![(0, 0, 0); table.cardinality(column)]).collect();
    for ((a, b), (of_a, of_b)) in nodes {
        for (column, nodes) in [(a, of_a), (b, of_b)] {
            for ((all, records, met), node) in sums[column].iter_mut().zip(nodes) {
                (*all, *records, *met) = (*all + node.records, node.records, *met + node.partner_values);
            }
        }
    }
    let inferred = |(all, records, met): (u64, u64, u64)| {
        let share = |of: f64, by: u64| if by == 0 { 0.0 } else { of / by as f64 };
        let scf = share(all as f64, records);
        CycleInference { scf, mcf: share(scf, met) }
    };
    sums.into_iter().map(|sums| sums.into_iter().map(inferred).collect()).collect()
}
