//! Joint counts of two columns (docs/internals/methods.md §4; \[POD] Alg. 5–7).

use super::CountedTable;

/// Joint record counts of two columns: an array of at most 4 cells per row plus 4,096, else a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairCounts {
    /// Column numbers, ascending.
    pub columns: (usize, usize),
    /// Cardinalities of the columns.
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

pub(super) fn dense_cells(table: &CountedTable, a: usize, b: usize) -> Option<usize> {
    let cells = table.cardinality(a).checked_mul(table.cardinality(b))?;
    (cells <= 4 * table.rows() + 4096).then_some(cells)
}

impl PairCounts {
    pub(super) fn from_dense_cells(table: &CountedTable, (a, b): (usize, usize), cells: Vec<u32>) -> Self {
        Self { columns: (a, b), cardinalities: cardinalities(table, a, b), cells: PairCountCells::Dense(cells) }
    }

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

    /// Returns occurring value pairs, ascending, with record counts.
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

/// Returns all column pairs, ordered.
pub fn all_pairs(width: usize) -> Vec<(usize, usize)> {
    (0..width).flat_map(|a| (a + 1..width).map(move |b| (a, b))).collect()
}

/// Counts column pairs on the CPU; the smaller column comes first.
pub fn count_pairs(table: &CountedTable, pairs: &[(usize, usize)]) -> Vec<PairCounts> {
    use rayon::prelude::*;
    pairs.par_iter().map(|(a, b)| PairCounts::from_table(table, *a, *b)).collect()
}

/// Counts of a value relative to another column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueCount {
    /// Records with the value.
    pub records: u64,
    /// Partner values in the other column.
    pub partner_values: u64,
}

/// Inferences between two columns: `P(b|a) = n(a, b) / n(a)` and `P(a|b)` (docs/internals/methods.md §4).
///
/// Arrays are indexed by `a · cardinality(b) + b`. Nodes, summed over all other columns, give scf and mcf (\[POD] eq.
/// 5.2, 5.3).
#[derive(Clone, Debug, PartialEq)]
pub struct PairInference {
    /// Column numbers, ascending.
    pub columns: (usize, usize),
    /// Cardinalities of the columns.
    pub cardinalities: (u32, u32),
    /// `P(b|a)`; 0 for absent pairs.
    pub forward: Vec<f64>,
    /// `P(a|b)`; 0 for absent pairs.
    pub backward: Vec<f64>,
    /// Values by column and code.
    pub nodes: (Vec<ValueCount>, Vec<ValueCount>),
}

impl PairInference {
    /// Computes inferences on the CPU, correctly rounded.
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

/// Values of two columns, relative to each other.
pub type PairNodes = (Vec<ValueCount>, Vec<ValueCount>);

/// Cycle inference of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CycleInference {
    /// `scf(u) = Σ_v P(v|u)` (\[POD] eq. 5.2); 0 without another column.
    pub scf: f64,
    /// `mcf(u) = scf(u) / t(u)`, with t(u) co-occurring values (\[POD] eq. 5.3).
    pub mcf: f64,
}

/// Computes scf and mcf of every value from the nodes of all column pairs.
pub fn cycle_inference(
    table: &CountedTable,
    nodes: impl IntoIterator<Item = ((usize, usize), PairNodes)>,
) -> Vec<Vec<CycleInference>> {
    // Records with other columns, own records, and partner values.
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
