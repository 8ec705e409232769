//! The work of one batch, in shares that can be counted at the same time.

use super::block::{Block, Cells};
use super::degrees::Degrees;
use super::dense::{self, Lane};
use super::sparse::Sparse;
use throng_core::values::codebook::Code;

/// Dense tables that are counted beside each other.
const BESIDE: usize = 4;

/// Blocks that share their first attribute, each with the codes of its second.
pub(super) enum Share<'a> {
    /// Up to [`BESIDE`] of them.
    Dense(Vec<Lane<'a>>),
    Sparse(&'a mut Sparse, &'a mut Degrees, &'a [Code]),
}

/// Every block in a share, with the place of its first attribute. Blocks of one attribute follow each other.
pub(super) fn shares<'a>(blocks: impl Iterator<Item = (usize, &'a [Code], &'a mut Block)>) -> Vec<(usize, Share<'a>)> {
    let mut shares: Vec<(usize, Share<'a>)> = Vec::new();
    let (mut open, mut of) = (Vec::new(), 0);
    for (a, ys, Block { cells, degrees }) in blocks {
        if !open.is_empty() && (a != of || open.len() == BESIDE) {
            shares.push((of, Share::Dense(std::mem::take(&mut open))));
        }
        match cells {
            Cells::Dense(dense) => {
                of = a;
                open.push(Lane { dense, degrees, ys });
            }
            Cells::Sparse(sparse) => shares.push((a, Share::Sparse(sparse, degrees, ys))),
        }
    }
    if !open.is_empty() {
        shares.push((of, Share::Dense(open)));
    }
    shares
}

impl Share<'_> {
    /// Counts the records; true where a count fell below nothing. Counting the opposite undoes it exactly, also then.
    pub(super) fn count<const SUBTRACT: bool>(self, xs: &[Code]) -> bool {
        let lanes = match self {
            Share::Dense(lanes) => lanes,
            Share::Sparse(sparse, degrees, ys) => return sparse.count::<SUBTRACT>(xs, ys, degrees),
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
