//! Exact statistics of μ over all sets of one size around an attribute.

use super::inference_matrix::{FIXED_POINT_ONE, InferenceMatrix};
use rayon::prelude::*;

/// Size of the largest judged sets. Their sums fit into 128 bits.
pub const MAX_CYCLE_SIZE: usize = 4;

/// Statistics of μ over the sets of one size with an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InferenceExpectation {
    /// Number of sets.
    pub sets: u64,
    /// Mean of μ.
    pub mean: f64,
    /// Population standard deviation.
    pub deviation: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CycleMoments {
    count: i128,
    sum: i128,
    squares: i128,
}

impl CycleMoments {
    const EMPTY_PATH: Self = Self { count: 1, sum: 0, squares: 0 };

    fn shifted_by(self, m: i128) -> Self {
        let Self { count, sum, squares } = self;
        Self { count, sum: sum + count * m, squares: squares + 2 * m * sum + count * m * m }
    }

    fn combined_with(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum + other.sum, squares: self.squares + other.squares }
    }

    fn scaled_variance(self) -> i128 {
        self.count * self.squares - self.sum * self.sum
    }

    pub(super) fn relative_deviation(self, x: u64) -> f64 {
        let spread = self.scaled_variance();
        if spread == 0 {
            0.0
        } else {
            (self.sum - self.count * i128::from(x)).unsigned_abs() as f64 / (spread as f64).sqrt()
        }
    }

    pub(super) fn expectation(self, size: usize) -> InferenceExpectation {
        let scale = self.count.max(1) as f64 * size as f64 * FIXED_POINT_ONE as f64;
        let deviation = (self.scaled_variance() as f64).sqrt() / scale;
        InferenceExpectation { sets: self.count as u64, mean: self.sum as f64 / scale, deviation }
    }
}

/// Computes the moments of cycle sums through each attribute, by size up to `largest`.
///
/// A cycle through c is a path in the cyclic order after c and a step back. Longer paths extend shorter ones. Time:
/// `O(sizes · width³)`.
pub(super) fn cycle_moments(inference: &InferenceMatrix, largest: usize) -> Vec<Vec<CycleMoments>> {
    let width = inference.width();
    let through_each = |c| moments_through(inference, c, largest);
    let around: Vec<[CycleMoments; MAX_CYCLE_SIZE + 1]> = (0..width).into_par_iter().map(through_each).collect();
    (0..=MAX_CYCLE_SIZE).map(|size| around.iter().map(|moments| moments[size]).collect()).collect()
}

fn moments_through(inference: &InferenceMatrix, c: usize, largest: usize) -> [CycleMoments; MAX_CYCLE_SIZE + 1] {
    let width = inference.width();
    let place = |step: usize| (c + step) % width;
    let m = |from: usize, to: usize| i128::from(inference.at(place(from), place(to)));
    let mut closed = [CycleMoments::default(); MAX_CYCLE_SIZE + 1];
    let mut paths = vec![CycleMoments::default(); width];
    paths[0] = CycleMoments::EMPTY_PATH;
    for size in closed.iter_mut().take(largest + 1).skip(2) {
        let longer = |to: usize| {
            (0..to).map(|from| (from, paths[from])).fold(CycleMoments::default(), |sum, (from, path)| {
                if path.count == 0 { sum } else { sum.combined_with(path.shifted_by(m(from, to))) }
            })
        };
        paths = (0..width).map(longer).collect();
        *size =
            (1..width).fold(CycleMoments::default(), |sum, last| sum.combined_with(paths[last].shifted_by(m(last, 0))));
    }
    closed
}
