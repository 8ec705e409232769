//! Logistic regression, two classes or more, with a ridge penalty; fitted by `smartcore` (L-BFGS, no randomness).

use smartcore::linalg::basic::arrays::Array;
use smartcore::linalg::basic::matrix::DenseMatrix;
use smartcore::linear::logistic_regression::{LogisticRegression, LogisticRegressionParameters};

/// The penalty of squared weights.
const RIDGE: f64 = 1.0;

/// Weights by class.
pub(super) struct Model {
    /// The classes that were seen, ascending.
    classes: Vec<u32>,
    /// By class (of two: one, for the second): its weights and its constant.
    weights: Vec<(Vec<f64>, f64)>,
}

impl Model {
    /// Fits rows `x` of classes `y`; none where there is nothing to learn: no column, or fewer than two classes.
    pub(super) fn fit(x: &[Vec<f64>], y: &[u32]) -> Option<Self> {
        let mut classes = y.to_vec();
        classes.sort_unstable();
        classes.dedup();
        let width = x.first().map_or(0, Vec::len);
        if width == 0 || classes.len() < 2 {
            return None;
        }
        let x = DenseMatrix::new(x.len(), width, x.concat(), false).ok()?;
        let asked = LogisticRegressionParameters::default().with_alpha(RIDGE);
        let fitted = LogisticRegression::fit(&x, &y.to_vec(), asked).ok()?;
        let (coefficients, intercept) = (fitted.coefficients(), fitted.intercept());
        let of = |class: usize| {
            ((0..width).map(|at| *coefficients.get((class, at))).collect::<Vec<f64>>(), *intercept.get((class, 0)))
        };
        let weights = (0..coefficients.shape().0).map(of).collect();
        Some(Self { classes, weights })
    }

    /// By class, of `number`, how much speaks for it; a class that was never seen has nothing for it.
    pub(super) fn scores(&self, x: &[f64], number: usize) -> Vec<f64> {
        let mut scores = vec![f64::NEG_INFINITY; number];
        let linear =
            |(weights, constant): &(Vec<f64>, f64)| constant + weights.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
        if let ([one, other], [weights]) = (&self.classes[..], &self.weights[..]) {
            let score = linear(weights);
            scores[*one as usize] = -score;
            scores[*other as usize] = score;
        } else {
            for (class, weights) in self.classes.iter().zip(&self.weights) {
                scores[*class as usize] = linear(weights);
            }
        }
        scores
    }
}
