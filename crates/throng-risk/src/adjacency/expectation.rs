//! Mean and deviation of μ over all sets of one size around an attribute, computed exactly without listing the sets.

use super::inference_matrix::{FIXED_POINT_ONE, InferenceMatrix};
use rayon::prelude::*;

/// Size of the largest judged sets. Their sums fit into 128 bits at any width.
pub const MAX_CYCLE_SIZE: usize = 4;

/// Statistics of μ over `T_n(c)`, the sets of n attributes that contain c.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InferenceExpectation {
    /// Number of sets.
    pub sets: u64,
    /// Mean of μ.
    pub mean: f64,
    /// Standard deviation of the whole population, not of a sample.
    pub deviation: f64,
}

/// Count, sum and sum of squares of integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CycleMoments {
    count: i128,
    sum: i128,
    squares: i128,
}

impl CycleMoments {
    const EMPTY_PATH: Self = Self { count: 1, sum: 0, squares: 0 };

    /// Adds `m` to each of the numbers.
    fn shifted_by(self, m: i128) -> Self {
        let Self { count, sum, squares } = self;
        Self { count, sum: sum + count * m, squares: squares + 2 * m * sum + count * m * m }
    }

    fn combined_with(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum + other.sum, squares: self.squares + other.squares }
    }

    /// Returns count² times the variance.
    fn scaled_variance(self) -> i128 {
        self.count * self.squares - self.sum * self.sum
    }

    /// Returns `|E − x| / σ`, or 0 if all numbers are equal.
    pub(super) fn relative_deviation(self, x: u64) -> f64 {
        let spread = self.scaled_variance();
        if spread == 0 {
            0.0
        } else {
            (self.sum - self.count * i128::from(x)).unsigned_abs() as f64 / (spread as f64).sqrt()
        }
    }

    /// Returns the statistics of μ from the moments of cycle sums of `size` attributes.
    pub(super) fn expectation(self, size: usize) -> InferenceExpectation {
        let scale = self.count.max(1) as f64 * size as f64 * FIXED_POINT_ONE as f64;
        let deviation = (self.scaled_variance() as f64).sqrt() / scale;
        InferenceExpectation { sets: self.count as u64, mean: self.sum as f64 / scale, deviation }
    }
}

/// Computes the moments of the cycle sums through each attribute, for each size up to [`MAX_CYCLE_SIZE`]; sizes 0 and 1 are
/// empty.
///
/// The ascending cycle of a set can be read from any attribute c of the set. It visits the others in the cyclic order
/// that starts after c, and returns to c. So the cycles through c are the ascending paths of that order. The moments
/// of paths of one more step are the moments of shorter paths, raised by the step.
///
/// Time: `O(sizes · width³)` additions, in parallel over c. Sizes above `largest` have empty moments.
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
    // Moments of the paths that end at each step. The only path of one attribute is c.
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
