//! Parallel counting tasks of one batch.

use super::degrees::PartnerDegrees;
use super::dense::{self, DenseTableLane};
use super::pair_count_block::{PairCountBlock, PairCountTable};
use super::sparse::SparsePairCounts;
use throng_core::values::codebook::Code;

const TABLES_PER_PASS: usize = 4;

/// Blocks with one first attribute, and the codes of their second attributes.
pub(super) enum BlockCountTask<'a> {
    /// At most [`TABLES_PER_PASS`] tables.
    Dense(Vec<DenseTableLane<'a>>),
    Sparse(&'a mut SparsePairCounts, &'a mut PartnerDegrees, &'a [Code]),
}

/// Groups blocks into tasks. Blocks with one first attribute must be adjacent.
pub(super) fn block_count_tasks<'a>(
    blocks: impl Iterator<Item = (usize, &'a [Code], &'a mut PairCountBlock)>,
) -> Vec<(usize, BlockCountTask<'a>)> {
    let mut shares: Vec<(usize, BlockCountTask<'a>)> = Vec::new();
    let (mut open, mut of) = (Vec::new(), 0);
    for (a, ys, PairCountBlock { cells, degrees }) in blocks {
        if !open.is_empty() && (a != of || open.len() == TABLES_PER_PASS) {
            shares.push((of, BlockCountTask::Dense(std::mem::take(&mut open))));
        }
        match cells {
            PairCountTable::Dense(dense) => {
                of = a;
                open.push(DenseTableLane { dense, degrees, ys });
            }
            PairCountTable::Sparse(sparse) => shares.push((a, BlockCountTask::Sparse(sparse, degrees, ys))),
        }
    }
    if !open.is_empty() {
        shares.push((of, BlockCountTask::Dense(open)));
    }
    shares
}

impl BlockCountTask<'_> {
    /// Returns true if a count underflowed. The opposite call undoes it exactly.
    pub(super) fn count<const SUBTRACT: bool>(self, xs: &[Code]) -> bool {
        let lanes = match self {
            BlockCountTask::Dense(lanes) => lanes,
            BlockCountTask::Sparse(sparse, degrees, ys) => return sparse.count::<SUBTRACT>(xs, ys, degrees),
        };
        let mut lanes = lanes.into_iter();
        let mut below = false;
        while let Some(first) = lanes.next() {
            below |= match (lanes.next(), lanes.next(), lanes.next()) {
                (None, ..) => dense::count::<1, SUBTRACT>([first], xs),
                (Some(second), None, _) => dense::count::<2, SUBTRACT>([first, second], xs),
                (Some(second), Some(third), None) => dense::count::<3, SUBTRACT>([first, second, third], xs),
                (Some(second), Some(third), Some(fourth)) => {
                    dense::count::<4, SUBTRACT>([first, second, third, fourth], xs)
                }
            };
        }
        below
    }
}
