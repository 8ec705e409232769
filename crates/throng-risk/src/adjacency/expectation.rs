//! Expected value and deviation of μ over all sets of one size around an attribute, exactly and without listing them.

use super::inference::{Inference, ONE};
use rayon::prelude::*;

/// The largest sets that are judged. Their sums fit 128 bits at any width.
pub const LARGEST: usize = 4;

/// The statistics of μ over `T_n(c)`, the sets of n attributes that contain c.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// How many sets there are.
    pub sets: u64,
    /// The mean of μ.
    pub mean: f64,
    /// Of the whole population, not of a sample of it.
    pub deviation: f64,
}

/// Count, sum and sum of squares of whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moments {
    count: i128,
    sum: i128,
    squares: i128,
}

impl Moments {
    const ONE_OF_NOTHING: Self = Self { count: 1, sum: 0, squares: 0 };

    /// Each of the numbers raised by `m`.
    fn raised(self, m: i128) -> Self {
        let Self { count, sum, squares } = self;
        Self { count, sum: sum + count * m, squares: squares + 2 * m * sum + count * m * m }
    }

    fn and(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum + other.sum, squares: self.squares + other.squares }
    }

    /// count² times the variance.
    fn spread(self) -> i128 {
        self.count * self.squares - self.sum * self.sum
    }

    /// `|E − x| / σ`: 0 where every number is the same.
    pub(super) fn deviations(self, x: u64) -> f64 {
        let spread = self.spread();
        if spread == 0 {
            0.0
        } else {
            (self.sum - self.count * i128::from(x)).unsigned_abs() as f64 / (spread as f64).sqrt()
        }
    }

    /// Of sums round cycles of `size` attributes.
    pub(super) fn expectation(self, size: usize) -> Expectation {
        let scale = self.count.max(1) as f64 * size as f64 * ONE as f64;
        let deviation = (self.spread() as f64).sqrt() / scale;
        Expectation { sets: self.count as u64, mean: self.sum as f64 / scale, deviation }
    }
}

/// For each size up to [`LARGEST`] (from 0, the first two empty) and each place, the moments of the sums round all cycles
/// through it.
///
/// A set's ascending cycle can be read from any of its attributes: c, the others in the cyclic order that starts behind c, and
/// back. So the cycles through c are the ascending paths of that order, and the moments of paths of one more step are
/// those of the shorter ones, raised by the step. Time: `O(sizes · width³)` additions, in parallel over c; sizes above `largest` keep
/// empty moments.
pub(super) fn moments(inference: &Inference, largest: usize) -> Vec<Vec<Moments>> {
    let width = inference.width();
    let through_each = |c| through(inference, c, largest);
    let around: Vec<[Moments; LARGEST + 1]> = (0..width).into_par_iter().map(through_each).collect();
    (0..=LARGEST).map(|size| around.iter().map(|moments| moments[size]).collect()).collect()
}

fn through(inference: &Inference, c: usize, largest: usize) -> [Moments; LARGEST + 1] {
    let width = inference.width();
    let place = |step: usize| (c + step) % width;
    let m = |from: usize, to: usize| i128::from(inference.at(place(from), place(to)));
    let mut closed = [Moments::default(); LARGEST + 1];
    // Paths of some attributes that end at each step; of one attribute there is the one that stays at c.
    let mut paths = vec![Moments::default(); width];
    paths[0] = Moments::ONE_OF_NOTHING;
    for size in closed.iter_mut().take(largest + 1).skip(2) {
        let longer = |to: usize| {
            (0..to).map(|from| (from, paths[from])).fold(Moments::default(), |sum, (from, path)| {
                if path.count == 0 { sum } else { sum.and(path.raised(m(from, to))) }
            })
        };
        paths = (0..width).map(longer).collect();
        *size = (1..width).fold(Moments::default(), |sum, last| sum.and(paths[last].raised(m(last, 0))));
    }
    closed
}
