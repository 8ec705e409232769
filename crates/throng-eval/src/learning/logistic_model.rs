//! Multiclass logistic regression: sparse rows, L-BFGS, deterministic.
//!
//! Minimizes Σ −log p(class | row) + [`RIDGE`]/2 · Σ weights² without constants. Two classes share one weight vector;
//! more have one each (softmax).

use rayon::prelude::*;
use std::collections::VecDeque;

const RIDGE: f64 = 1.0;

/// Largest gradient component per row.
const TOLERANCE: f64 = 1e-5;

/// Otherwise the last step counts.
const MAX_STEPS: usize = 500;

const CURVATURE_PAIRS: usize = 10;

/// Fixed: sums must not depend on the thread count.
const ROWS_PER_TASK: usize = 1_024;

#[derive(Clone, Debug)]
pub(super) struct SparseRows {
    width: usize,
    /// Row starts in `entries`, and the end.
    starts: Vec<usize>,
    /// Column and number.
    entries: Vec<(u32, f64)>,
    classes: Vec<u32>,
}

impl SparseRows {
    pub(super) fn new(width: usize) -> Self {
        Self { width, starts: vec![0], entries: Vec::new(), classes: Vec::new() }
    }

    /// Numbers of the same column are summed.
    pub(super) fn push(&mut self, row: impl IntoIterator<Item = (u32, f64)>, class: u32) {
        self.entries.extend(row);
        self.starts.push(self.entries.len());
        self.classes.push(class);
    }

    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    pub(super) fn share_of(&self, class: u32) -> f64 {
        self.classes.iter().filter(|of| **of == class).count() as f64 / self.classes.len().max(1) as f64
    }

    fn row(&self, at: usize) -> &[(u32, f64)] {
        &self.entries[self.starts[at]..self.starts[at + 1]]
    }
}

pub(super) struct LogisticModel {
    /// Training classes, ascending.
    classes: Vec<u32>,
    /// With two classes only for the second.
    weights: Vec<Vec<f64>>,
}

impl LogisticModel {
    /// None without columns or with fewer than two classes.
    pub(super) fn fit(rows: &SparseRows) -> Option<Self> {
        let mut classes = rows.classes.clone();
        classes.sort_unstable();
        classes.dedup();
        if rows.width == 0 || classes.len() < 2 {
            return None;
        }
        let of_row = |class: &u32| classes.binary_search(class).unwrap_or(0);
        let labels: Vec<usize> = rows.classes.iter().map(of_row).collect();
        let outputs = if classes.len() == 2 { 1 } else { classes.len() };
        let objective = LogisticObjective { rows, labels, outputs };
        let flat = minimize(vec![0.0; outputs * objective.stride()], rows.len(), |at| objective.value_and_gradient(at));
        let weights = flat.chunks(objective.stride()).map(<[f64]>::to_vec).collect();
        Some(Self { classes, weights })
    }

    /// Negative infinity for a class without training rows.
    pub(super) fn scores(&self, row: &[(u32, f64)], number: usize) -> Vec<f64> {
        let mut scores = vec![f64::NEG_INFINITY; number];
        let found: Vec<f64> = self.weights.iter().map(|weights| linear_score(weights, row)).collect();
        if let ([one, other], [score]) = (&self.classes[..], &found[..]) {
            scores[*one as usize] = -score;
            scores[*other as usize] = *score;
        } else {
            self.classes.iter().zip(found).for_each(|(class, score)| scores[*class as usize] = score);
        }
        scores
    }

    /// By output, without the constant.
    pub(super) fn contributions(&self, row: &[(u32, f64)]) -> impl Iterator<Item = f64> {
        self.weights.iter().map(|weights| dot(weights, row))
    }
}

fn dot(weights: &[f64], row: &[(u32, f64)]) -> f64 {
    row.iter().map(|(column, value)| weights[*column as usize] * value).sum()
}

/// The constant follows the weights.
fn linear_score(weights: &[f64], row: &[(u32, f64)]) -> f64 {
    weights.last().copied().unwrap_or(0.0) + dot(weights, row)
}

struct LogisticObjective<'a> {
    rows: &'a SparseRows,
    labels: Vec<usize>,
    outputs: usize,
}

impl LogisticObjective<'_> {
    /// With the constant.
    fn stride(&self) -> usize {
        self.rows.width + 1
    }

    fn value_and_gradient(&self, at: &[f64]) -> (f64, Vec<f64>) {
        let tasks = self.rows.len().div_ceil(ROWS_PER_TASK);
        let parts: Vec<(f64, Vec<f64>)> = (0..tasks)
            .into_par_iter()
            .map(|task| {
                self.task_value_and_gradient(
                    at,
                    task * ROWS_PER_TASK..((task + 1) * ROWS_PER_TASK).min(self.rows.len()),
                )
            })
            .collect();
        let (mut value, mut gradient) = (0.0, vec![0.0; at.len()]);
        for (part, slope) in parts {
            value += part;
            gradient.iter_mut().zip(slope).for_each(|(sum, part)| *sum += part);
        }
        for (weights, slope) in at.chunks(self.stride()).zip(gradient.chunks_mut(self.stride())) {
            for (weight, slope) in weights.iter().zip(slope).take(self.rows.width) {
                value += RIDGE / 2.0 * weight * weight;
                *slope += RIDGE * weight;
            }
        }
        (value, gradient)
    }

    fn task_value_and_gradient(&self, at: &[f64], rows: std::ops::Range<usize>) -> (f64, Vec<f64>) {
        let (mut value, mut gradient) = (0.0, vec![0.0; at.len()]);
        let mut scores = vec![0.0; self.outputs];
        for row in rows {
            let (entries, label) = (self.rows.row(row), self.labels[row]);
            for (score, weights) in scores.iter_mut().zip(at.chunks(self.stride())) {
                *score = linear_score(weights, entries);
            }
            value += loss_and_derivatives(&mut scores, label);
            for (slope, part) in gradient.chunks_mut(self.stride()).zip(&scores) {
                entries.iter().for_each(|(column, value)| slope[*column as usize] += part * value);
                slope[self.rows.width] += part;
            }
        }
        (value, gradient)
    }
}

/// Replaces the scores by their derivatives.
fn loss_and_derivatives(scores: &mut [f64], label: usize) -> f64 {
    if let [score] = scores {
        let (signed, sign) = if label == 1 { (*score, -1.0) } else { (-*score, 1.0) };
        // log(1 + exp(−signed)) without overflow.
        let small = (-signed.abs()).exp();
        *score = sign * if signed > 0.0 { small / (1.0 + small) } else { 1.0 / (1.0 + small) };
        return (-signed).max(0.0) + small.ln_1p();
    }
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let own = scores[label];
    scores.iter_mut().for_each(|score| *score = (*score - most).exp());
    let sum: f64 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
    scores[label] -= 1.0;
    sum.ln() + most - own
}

/// L-BFGS with step halving (docs/internals/methods.md §14.5).
fn minimize(mut at: Vec<f64>, rows: usize, of: impl Fn(&[f64]) -> (f64, Vec<f64>)) -> Vec<f64> {
    let (mut value, mut gradient) = of(&at);
    let mut pairs: VecDeque<(Vec<f64>, Vec<f64>, f64)> = VecDeque::with_capacity(CURVATURE_PAIRS);
    for _ in 0..MAX_STEPS {
        let steepest = gradient.iter().fold(0.0_f64, |most, part| most.max(part.abs()));
        if steepest <= TOLERANCE * rows as f64 {
            break;
        }
        let direction = lbfgs_direction(&gradient, &pairs);
        let slope = dot_product(&direction, &gradient);
        let mut step = if pairs.is_empty() { 1.0 / steepest.max(1.0) } else { 1.0 };
        let Some((next, next_value, next_gradient)) = (0..40).find_map(|_| {
            let next: Vec<f64> = at.iter().zip(&direction).map(|(x, d)| x + step * d).collect();
            let (found, slopes) = of(&next);
            let is_enough = found <= value + 1e-4 * step * slope;
            step /= 2.0;
            is_enough.then_some((next, found, slopes))
        }) else {
            break;
        };
        let moved: Vec<f64> = next.iter().zip(&at).map(|(new, old)| new - old).collect();
        let turned: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(new, old)| new - old).collect();
        let curvature = dot_product(&moved, &turned);
        if curvature > 1e-12 * dot_product(&turned, &turned) {
            if pairs.len() == CURVATURE_PAIRS {
                pairs.pop_front();
            }
            pairs.push_back((moved, turned, curvature));
        }
        (at, value, gradient) = (next, next_value, next_gradient);
    }
    at
}

/// Two-loop recursion.
fn lbfgs_direction(gradient: &[f64], pairs: &VecDeque<(Vec<f64>, Vec<f64>, f64)>) -> Vec<f64> {
    let mut found: Vec<f64> = gradient.iter().map(|part| -part).collect();
    let add = |to: &mut [f64], factor: f64, from: &[f64]| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
    };
    let mut factors = Vec::with_capacity(pairs.len());
    for (moved, turned, curvature) in pairs.iter().rev() {
        let factor = dot_product(moved, &found) / curvature;
        add(&mut found, -factor, turned);
        factors.push(factor);
    }
    if let Some((_, turned, curvature)) = pairs.back() {
        let scale = curvature / dot_product(turned, turned);
        found.iter_mut().for_each(|part| *part *= scale);
    }
    for ((moved, turned, curvature), factor) in pairs.iter().zip(factors.into_iter().rev()) {
        let back = dot_product(turned, &found) / curvature;
        add(&mut found, factor - back, moved);
    }
    found
}

fn dot_product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type DenseTable = Vec<(Vec<f64>, u32)>;

    fn sparse(table: &DenseTable) -> SparseRows {
        let mut rows = SparseRows::new(table[0].0.len());
        for (row, class) in table {
            let entries = row.iter().enumerate().filter(|(_, value)| **value != 0.0);
            rows.push(entries.map(|(column, value)| (column as u32, *value)), *class);
        }
        rows
    }

    /// Two classes have ± half the score.
    fn cost_by_definition(table: &DenseTable, scores: impl Fn(&[f64]) -> Vec<f64>, squares: f64) -> f64 {
        let of = |(row, class): &(Vec<f64>, u32)| {
            let scores = scores(row);
            scores.iter().map(|score| score.exp()).sum::<f64>().ln() - scores[*class as usize]
        };
        table.iter().map(of).sum::<f64>() + RIDGE / 2.0 * squares
    }

    fn coordinate_descent_cost(table: &DenseTable, outputs: usize) -> f64 {
        let width = table[0].0.len() + 1;
        let mut weights = vec![0.0; outputs * width];
        let cost_of = |weights: &[f64]| {
            let linear = |row: &[f64], weights: &[f64]| {
                row.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>() + weights[width - 1]
            };
            let scores = |row: &[f64]| match outputs {
                1 => vec![0.0, linear(row, weights)],
                _ => weights.chunks(width).map(|weights| linear(row, weights)).collect(),
            };
            let penalized = weights.iter().enumerate().filter(|(at, _)| at % width != width - 1);
            cost_by_definition(table, scores, penalized.map(|(_, w)| w * w).sum())
        };
        let mut best = cost_of(&weights);
        let mut step = 1.0;
        while step > 1e-7 {
            let before = best;
            for at in 0..weights.len() {
                for change in [step, -step] {
                    weights[at] += change;
                    let found = cost_of(&weights);
                    if found < best { best = found } else { weights[at] -= change }
                }
            }
            if before - best < 1e-10 {
                step /= 2.0;
            }
        }
        best
    }

    fn table(classes: u32) -> impl Strategy<Value = DenseTable> {
        let number = prop_oneof![Just(0.0), -2.0..2.0_f64];
        prop::collection::vec((prop::collection::vec(number, 3), 0..classes), 8..30)
    }

    fn fitted_cost(table: &DenseTable, classes: usize) -> Option<f64> {
        let model = LogisticModel::fit(&sparse(table))?;
        if model.classes.len() != classes {
            return None;
        }
        let row = |row: &[f64]| row.iter().enumerate().map(|(at, x)| (at as u32, *x)).collect::<Vec<_>>();
        let half = if classes == 2 { 0.5 } else { 1.0 };
        let scores = |x: &[f64]| model.scores(&row(x), classes).iter().map(|score| half * score).collect();
        let squares = model.weights.iter().flat_map(|w| &w[..w.len() - 1]).map(|w| w * w).sum();
        Some(cost_by_definition(table, scores, squares))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn model_of_two_classes_reaches_descent_cost(table in table(2)) {
            if let Some(found) = fitted_cost(&table, 2) {
                let twin = coordinate_descent_cost(&table, 1);
                prop_assert!((found - twin).abs() < 1e-3 * twin.max(1.0), "{found} and {twin}");
            }
        }

        #[test]
        fn model_of_three_classes_reaches_descent_cost(table in table(3)) {
            if let Some(found) = fitted_cost(&table, 3) {
                let twin = coordinate_descent_cost(&table, 3);
                prop_assert!((found - twin).abs() < 1e-3 * twin.max(1.0), "{found} and {twin}");
            }
        }
    }

    /// Weights from scikit-learn 1.9 (`LogisticRegression(C=1, tol=1e-10)`).
    #[test]
    fn model_weights_match_scikit_learn() {
        let table: DenseTable = (0..12_u32)
            .map(|n| {
                (vec![f64::from(n % 4) - 1.5, f64::from(n % 3), f64::from(n * n % 5) / 2.0], u32::from(n * 7 % 12 > 5))
            })
            .collect();
        let model = LogisticModel::fit(&sparse(&table)).expect("two classes");
        let wanted = [0.017_737_19, 0.011_225_86, -0.089_844_89, 0.067_378_22];
        for (found, wanted) in model.weights[0].iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-3, "{:?} and {wanted:?}", model.weights);
        }
    }

    #[test]
    fn fit_of_eight_classes_takes_few_steps() {
        // One column determines the class in ten of eleven rows.
        let mut rows = SparseRows::new(40);
        for n in 0..4_000_u32 {
            let class = if n % 11 == 0 { n / 11 % 8 } else { n * 13 % 40 % 8 };
            rows.push([(n * 13 % 40, 1.0)], class);
        }
        let asked = std::cell::Cell::new(0);
        let labels = rows.classes.iter().map(|class| *class as usize).collect();
        let objective = LogisticObjective { rows: &rows, labels, outputs: 8 };
        minimize(vec![0.0; 8 * 41], rows.len(), |at| {
            asked.set(asked.get() + 1);
            objective.value_and_gradient(at)
        });
        assert!(asked.get() < 80, "{} steps", asked.get());
        let model = LogisticModel::fit(&rows).expect("a model");
        let right = (0..40_u32).filter(|column| {
            let scores = model.scores(&[(*column, 1.0)], 8);
            (0..8).all(|class| scores[class] <= scores[*column as usize % 8])
        });
        assert_eq!(right.count(), 40);
    }
}
