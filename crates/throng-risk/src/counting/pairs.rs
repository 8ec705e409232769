//! How often each pair of values of two columns occurs together: the counts behind conditional probabilities
//! (docs/methods.md §4; [POD] Alg. 5–7).

use super::CountedTable;

/// The joint counts of two columns, in records.
///
/// Kept as an array of cells while it has at most four a row (and 4,096 more), else as the pairs that occur: the choice
/// depends on the table alone, so that equal tables give equal values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairCounts {
    /// Columns, the smaller number first.
    pub columns: (usize, usize),
    /// Their cardinalities.
    pub cardinalities: (u32, u32),
    cells: Cells,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cells {
    /// `n(a, b)` at `a · cardinality(b) + b`.
    Dense(Vec<u32>),
    /// `(a, b, n)` where n is above 0, ascending.
    Sparse(Vec<(u32, u32, u32)>),
}

/// The cells of a pair where they are kept as an array.
pub(super) fn dense_cells(table: &CountedTable, a: usize, b: usize) -> Option<usize> {
    let cells = table.cardinality(a).checked_mul(table.cardinality(b))?;
    (cells <= 4 * table.rows() + 4096).then_some(cells)
}

impl PairCounts {
    pub(super) fn dense(table: &CountedTable, (a, b): (usize, usize), cells: Vec<u32>) -> Self {
        Self { columns: (a, b), cardinalities: cardinalities(table, a, b), cells: Cells::Dense(cells) }
    }

    /// Counts one pair, `a < b`.
    pub(super) fn counted(table: &CountedTable, a: usize, b: usize) -> Self {
        let rows = || table.column(a).iter().zip(table.column(b));
        let cells = if let Some(cells) = dense_cells(table, a, b) {
            let mut counts = vec![0; cells];
            let radix = table.cardinality(b);
            rows().for_each(|(a, b)| counts[*a as usize * radix + *b as usize] += 1);
            Cells::Dense(counts)
        } else {
            let mut keys: Vec<(u32, u32)> = rows().map(|(a, b)| (*a, *b)).collect();
            keys.sort_unstable();
            Cells::Sparse(keys.chunk_by(|x, y| x == y).map(|run| (run[0].0, run[0].1, run.len() as u32)).collect())
        };
        Self { columns: (a, b), cardinalities: cardinalities(table, a, b), cells }
    }

    /// The pairs of values that occur, ascending, with their records.
    pub fn occurring(&self) -> Box<dyn Iterator<Item = (u32, u32, u32)> + '_> {
        match &self.cells {
            Cells::Dense(counts) => {
                let radix = self.cardinalities.1.max(1);
                let at = move |(cell, n): (usize, &u32)| (cell as u32 / radix, cell as u32 % radix, *n);
                Box::new(counts.iter().enumerate().filter(|(_, n)| **n > 0).map(at))
            }
            Cells::Sparse(pairs) => Box::new(pairs.iter().copied()),
        }
    }
}

fn cardinalities(table: &CountedTable, a: usize, b: usize) -> (u32, u32) {
    (table.cardinality(a) as u32, table.cardinality(b) as u32)
}

/// Every pair of the columns, in lexicographic order.
pub fn all_pairs(width: usize) -> Vec<(usize, usize)> {
    (0..width).flat_map(|a| (a + 1..width).map(move |b| (a, b))).collect()
}

/// Counts pairs of columns (each with the smaller number first) on this machine's cores.
pub fn count_pairs(table: &CountedTable, pairs: &[(usize, usize)]) -> Vec<PairCounts> {
    use rayon::prelude::*;
    pairs.par_iter().map(|(a, b)| PairCounts::counted(table, *a, *b)).collect()
}

/// A value as seen from another column: its records, and the values there that it meets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueCount {
    /// Records that have the value.
    pub records: u64,
    /// Values of the other column that it was seen with.
    pub met: u64,
}

/// The inferences between two columns: `P(b|a) = n(a, b) / n(a)` and the other way round (docs/methods.md §4).
///
/// Arrays are by cell as in [`PairCounts`], `a · cardinality(b) + b`; nodes by value. The sums behind scf and mcf
/// ([POD] eq. 5.2, 5.3) are those of the nodes over all other columns.
#[derive(Clone, Debug, PartialEq)]
pub struct PairInference {
    /// The two columns.
    pub columns: (usize, usize),
    /// Values of each.
    pub cardinalities: (u32, u32),
    /// `P(b|a)`; 0 where the pair does not occur.
    pub forward: Vec<f64>,
    /// `P(a|b)`.
    pub backward: Vec<f64>,
    /// The values of each column, by code.
    pub nodes: (Vec<ValueCount>, Vec<ValueCount>),
}

impl PairInference {
    /// From joint counts, on the CPU. One division of two integers each: exact to the last bit of the quotient.
    pub fn of(counts: &PairCounts) -> Self {
        let (first, second) = (counts.cardinalities.0 as usize, counts.cardinalities.1 as usize);
        let mut nodes = (vec![ValueCount::default(); first], vec![ValueCount::default(); second]);
        for (a, b, n) in counts.occurring() {
            for node in [&mut nodes.0[a as usize], &mut nodes.1[b as usize]] {
                node.records += u64::from(n);
                node.met += 1;
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

/// The values of two columns, each as seen from the other column.
pub type PairNodes = (Vec<ValueCount>, Vec<ValueCount>);

/// What a value tells of all other columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CycleInference {
    /// `scf(u) = Σ_v P(v|u)` ([POD] eq. 5.2); 0 in a table of one column.
    pub scf: f64,
    /// `mcf(u) = scf(u) / t(u)`, `t(u)` the values that u meets ([POD] eq. 5.3).
    pub mcf: f64,
}

/// Summed and mean cycle inference of every value of every column, from the nodes of all pairs of columns. Sums are of
/// integers, so their order changes no bit.
pub fn cycle_inference(
    table: &CountedTable,
    nodes: impl IntoIterator<Item = ((usize, usize), PairNodes)>,
) -> Vec<Vec<CycleInference>> {
    // Records over all other columns, records, values met.
    let mut sums: Vec<Vec<(u64, u64, u64)>> =
        (0..table.width()).map(|column| vec![(0, 0, 0); table.cardinality(column)]).collect();
    for ((a, b), (of_a, of_b)) in nodes {
        for (column, nodes) in [(a, of_a), (b, of_b)] {
            for ((all, records, met), node) in sums[column].iter_mut().zip(nodes) {
                (*all, *records, *met) = (*all + node.records, node.records, *met + node.met);
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
