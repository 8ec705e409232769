//! Linear models from released moments and from the original.
//!
//! Moments are pooled by subjects (docs/series.md). The original model is least squares with row weight 1 / rows of the
//! subject in the epoch.

use super::SeriesEvidence;
use crate::learning::area_under_curve;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::series::{MomentStatistic, RowStatistic, SeriesRow};

/// Relative pivot of collinear signals.
const SINGULAR: f64 = 1e-10;

/// Linear model of a signal.
#[derive(Clone, Debug, Serialize)]
pub struct MomentModel {
    /// Series name.
    pub series: String,
    /// Name of the predicted signal.
    pub target: String,
    /// Pooled cohorts and epochs with complete moments.
    pub parts: u64,
    /// Their subjects, once per epoch.
    pub people: u64,
    /// Original rows, complete buckets.
    pub rows: u64,
    /// R² of the moment model on original rows.
    pub r2_moments: Option<f64>,
    /// R² of the original model on these rows.
    pub r2_original: Option<f64>,
    /// AUC of both models; none unless the target is binary.
    pub auc: Option<[f64; 2]>,
    /// Coefficients per predictor.
    pub coefficients: Vec<ModelCoefficient>,
    /// Moments missing in excluded parts.
    pub missing: Vec<MissingMoment>,
}

/// Coefficient of one predictor.
#[derive(Clone, Debug, Serialize)]
pub struct ModelCoefficient {
    /// Predictor name.
    pub signal: String,
    /// Coefficient from moments.
    pub moments: f64,
    /// Coefficient from original rows.
    pub original: f64,
    /// Standard error of the latter, clustered by subject.
    pub standard_error: f64,
}

/// Missing moment: constant, dominated or disclosing few subjects.
#[derive(Clone, Debug, Serialize)]
pub struct MissingMoment {
    /// One or two signals.
    pub signals: Vec<String>,
    /// Cohorts and epochs without it.
    pub parts: u64,
}

impl MomentModel {
    /// Returns R² from moments ÷ R² from rows.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let (moments, original) = self.r2_moments.zip(self.r2_original)?;
        (original > 0.0).then(|| moments / original)
    }

    /// Returns the largest coefficient difference in standard errors.
    #[must_use]
    pub fn largest_difference(&self) -> Option<(&str, f64)> {
        let of = |of: &ModelCoefficient| (of.moments - of.original).abs() / of.standard_error;
        let differences = self.coefficients.iter().map(|each| (each.signal.as_str(), of(each)));
        differences.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

#[derive(Clone, Debug)]
struct WeightedMoments {
    weight: f64,
    means: Vec<f64>,
    covariances: Vec<Vec<f64>>,
}

/// The target's slope is 0.
#[derive(Clone, Debug)]
struct LinearModel {
    intercept: f64,
    slopes: Vec<f64>,
}

struct WeightedRow {
    values: Vec<f64>,
    weight: f64,
    person: usize,
}

impl SeriesEvidence {
    /// No two series with moments share a signal.
    fn moments_series_of_signal(&self, target: &str) -> Option<(usize, usize)> {
        let mut with_moments = self.terms.series.iter().enumerate().filter(|(_, series)| series.moments.is_some());
        with_moments.find_map(|(at, series)| Some((at, series.signals.iter().position(|of| of.name == target)?)))
    }

    /// Fits a signal's linear model.
    #[must_use]
    pub fn linear_model(&self, target: &str) -> Option<MomentModel> {
        let (series, target) = self.moments_series_of_signal(target)?;
        let name = |signal: usize| self.terms.series[series].signals[signal].name.clone();
        let (parts, missing) = self.complete_moments(series);
        let rows = self.weighted_rows(series);
        let original = WeightedMoments::from_weighted_rows(&rows, self.terms.series[series].signals.len());
        let of_moments = WeightedMoments::pool_parts(&parts).and_then(|moments| moments.least_squares(target));
        let of_rows = original.as_ref().and_then(|moments| moments.least_squares(target));
        let r2 = |model: &Option<LinearModel>| model.as_ref().and_then(|model| model.r_squared(&rows, target));
        let mut coefficients = Vec::new();
        if let (Some(one), Some(other), Some(original)) = (&of_moments, &of_rows, &original) {
            let errors = other.standard_errors(&rows, original, target);
            for (signal, error) in errors {
                coefficients.push(ModelCoefficient {
                    signal: name(signal),
                    moments: one.slopes[signal],
                    original: other.slopes[signal],
                    standard_error: error,
                });
            }
        }
        Some(MomentModel {
            series: self.terms.series[series].name.clone(),
            target: name(target),
            parts: parts.len() as u64,
            people: parts.iter().map(|part| part.weight as u64).sum(),
            rows: rows.len() as u64,
            r2_moments: r2(&of_moments),
            r2_original: r2(&of_rows),
            auc: of_moments
                .as_ref()
                .zip(of_rows.as_ref())
                .and_then(|models| areas_under_curve(models.into(), &rows, target)),
            coefficients,
            missing: missing
                .into_iter()
                .map(|(pair, parts)| MissingMoment { signals: pair.into_iter().map(name).collect(), parts })
                .collect(),
        })
    }

    /// Also counts missing signals and pairs.
    fn complete_moments(&self, series: usize) -> (Vec<WeightedMoments>, BTreeMap<Vec<usize>, u64>) {
        let signals = self.terms.series[series].signals.len();
        let mut blocks: BTreeMap<_, Vec<(&SeriesRow, MomentStatistic)>> = BTreeMap::new();
        for row in self.moments.iter().filter(|row| row.series == series) {
            if let RowStatistic::Moment(of) = row.statistic {
                blocks.entry((row.bucket, &row.cohort, &row.stratum)).or_default().push((row, of));
            }
        }
        let (mut parts, mut missing) = (Vec::new(), BTreeMap::new());
        for block in blocks.values() {
            let mut part = WeightedMoments {
                weight: block[0].0.n as f64,
                means: vec![f64::NAN; signals],
                covariances: vec![vec![f64::NAN; signals]; signals],
            };
            for (row, of) in block {
                (part.covariances[row.signal][of.with], part.covariances[of.with][row.signal]) =
                    (of.covariance, of.covariance);
                if let Some(mean) = of.mean {
                    part.means[row.signal] = mean;
                }
            }
            let lacks = |a: usize, b: usize| part.covariances[a][b].is_nan();
            let mut of_part: BTreeSet<Vec<usize>> =
                (0..signals).filter(|at| lacks(*at, *at)).map(|at| vec![at]).collect();
            for a in 0..signals {
                let others = (a + 1..signals).filter(|b| lacks(a, *b) && !lacks(a, a) && !lacks(*b, *b));
                of_part.extend(others.map(|b| vec![a, b]));
            }
            if of_part.is_empty() {
                parts.push(part);
            }
            of_part.into_iter().for_each(|pair| *missing.entry(pair).or_default() += 1);
        }
        (parts, missing)
    }

    fn weighted_rows(&self, series: usize) -> Vec<WeightedRow> {
        let Some(moments) = &self.terms.series[series].moments else { return Vec::new() };
        let mut rows: BTreeMap<(i64, usize), Vec<Vec<f64>>> = BTreeMap::new();
        for ((_, bucket), people) in self.contributions.range((series, i64::MIN)..=(series, i64::MAX)) {
            for (person, of) in people {
                if let Some(row) = of.values.iter().copied().collect::<Option<Vec<f64>>>() {
                    rows.entry((moments.epoch(*bucket), *person)).or_default().push(row);
                }
            }
        }
        let weighted = |((_, person), rows): ((i64, usize), Vec<Vec<f64>>)| {
            let weight = 1.0 / rows.len() as f64;
            rows.into_iter().map(move |values| WeightedRow { values, weight, person })
        };
        rows.into_iter().flat_map(weighted).collect()
    }
}

impl WeightedMoments {
    /// Weighted by subjects.
    fn pool_parts(parts: &[Self]) -> Option<Self> {
        let signals = parts.first()?.means.len();
        let weight: f64 = parts.iter().map(|part| part.weight).sum();
        let over = |of: &dyn Fn(&Self) -> f64| parts.iter().map(|part| part.weight * of(part)).sum::<f64>() / weight;
        let means: Vec<f64> = (0..signals).map(|at| over(&|part| part.means[at])).collect();
        let covariance = |a: usize, b: usize| {
            over(&|part| part.covariances[a][b] + (part.means[a] - means[a]) * (part.means[b] - means[b]))
        };
        let covariances = (0..signals).map(|a| (0..signals).map(|b| covariance(a, b)).collect()).collect();
        Some(Self { weight, means, covariances })
    }

    fn from_weighted_rows(rows: &[WeightedRow], signals: usize) -> Option<Self> {
        let weight: f64 = rows.iter().map(|row| row.weight).sum();
        let over =
            |of: &dyn Fn(&[f64]) -> f64| rows.iter().map(|row| row.weight * of(&row.values)).sum::<f64>() / weight;
        let means: Vec<f64> = (0..signals).map(|at| over(&|row| row[at])).collect();
        let covariance = |a: usize, b: usize| over(&|row| (row[a] - means[a]) * (row[b] - means[b]));
        let covariances = (0..signals).map(|a| (0..signals).map(|b| covariance(a, b)).collect()).collect();
        (weight > 0.0).then_some(Self { weight, means, covariances })
    }

    /// None if collinear.
    fn inverse_without(&self, target: usize) -> Option<Vec<Vec<f64>>> {
        let others = |line: &[f64]| -> Vec<f64> {
            line.iter().enumerate().filter(|(at, _)| *at != target).map(|(_, value)| *value).collect()
        };
        let lines = self.covariances.iter().enumerate().filter(|(at, _)| *at != target);
        inverse_matrix(&lines.map(|(_, line)| others(line)).collect::<Vec<_>>())
    }

    fn least_squares(&self, target: usize) -> Option<LinearModel> {
        let inverse = self.inverse_without(target)?;
        let predictors: Vec<usize> = (0..self.means.len()).filter(|at| *at != target).collect();
        let mut slopes = vec![0.0; self.means.len()];
        for (line, signal) in inverse.iter().zip(&predictors) {
            slopes[*signal] = line.iter().zip(&predictors).map(|(x, at)| x * self.covariances[*at][target]).sum();
        }
        let explained: f64 = slopes.iter().zip(&self.means).map(|(slope, mean)| slope * mean).sum();
        Some(LinearModel { intercept: self.means[target] - explained, slopes })
    }
}

impl LinearModel {
    fn predicted_value(&self, values: &[f64]) -> f64 {
        self.intercept + self.slopes.iter().zip(values).map(|(slope, value)| slope * value).sum::<f64>()
    }

    /// None for a constant target.
    fn r_squared(&self, rows: &[WeightedRow], target: usize) -> Option<f64> {
        let weight: f64 = rows.iter().map(|row| row.weight).sum();
        let mean = rows.iter().map(|row| row.weight * row.values[target]).sum::<f64>() / weight;
        let over =
            |of: &dyn Fn(&[f64]) -> f64| rows.iter().map(|row| row.weight * of(&row.values).powi(2)).sum::<f64>();
        let whole = over(&|row| row[target] - mean);
        (whole > 0.0).then(|| 1.0 - over(&|row| row[target] - self.predicted_value(row)) / whole)
    }

    /// A subject's residuals are correlated, hence summed before squaring.
    fn standard_errors(&self, rows: &[WeightedRow], moments: &WeightedMoments, target: usize) -> Vec<(usize, f64)> {
        let Some(inverse) = moments.inverse_without(target) else { return Vec::new() };
        let predictors: Vec<usize> = (0..moments.means.len()).filter(|at| *at != target).collect();
        let mut scores: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for row in rows {
            let residual = row.values[target] - self.predicted_value(&row.values);
            let of_person = scores.entry(row.person).or_insert_with(|| vec![0.0; predictors.len()]);
            for (score, at) in of_person.iter_mut().zip(&predictors) {
                *score += row.weight / moments.weight * (row.values[*at] - moments.means[*at]) * residual;
            }
        }
        let error = |line: &Vec<f64>| {
            let influence = |scores: &Vec<f64>| line.iter().zip(scores).map(|(x, score)| x * score).sum::<f64>();
            scores.values().map(|scores| influence(scores).powi(2)).sum::<f64>().sqrt()
        };
        predictors.iter().copied().zip(inverse.iter().map(error)).collect()
    }
}

fn areas_under_curve(models: [&LinearModel; 2], rows: &[WeightedRow], target: usize) -> Option<[f64; 2]> {
    let high = rows.iter().map(|row| row.values[target]).fold(f64::NEG_INFINITY, f64::max);
    let low = rows.iter().map(|row| row.values[target]).fold(f64::INFINITY, f64::min);
    let has_two = low < high && rows.iter().all(|row| row.values[target] == low || row.values[target] == high);
    let is_high: Vec<bool> = rows.iter().map(|row| row.values[target] == high).collect();
    let area = |model: &LinearModel| {
        area_under_curve(&rows.iter().map(|row| model.predicted_value(&row.values)).collect::<Vec<f64>>(), &is_high)
    };
    has_two.then(|| models.map(area))
}

/// None if singular.
fn inverse_matrix(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    let scales: Vec<f64> = (0..size).map(|at| matrix[at][at].sqrt()).collect();
    if scales.iter().any(|scale| scale.is_nan() || *scale <= 0.0) {
        return None;
    }
    let line = |row: usize| {
        let own = (0..size).map(|at| matrix[row][at] / scales[row] / scales[at]);
        own.chain((0..size).map(|at| f64::from(u8::from(at == row)))).collect()
    };
    let mut lines: Vec<Vec<f64>> = (0..size).map(line).collect();
    for pivot in 0..size {
        // Scaled pivots are in [0, 1].
        if lines[pivot][pivot] < SINGULAR {
            return None;
        }
        let factor = lines[pivot][pivot];
        lines[pivot].iter_mut().for_each(|value| *value /= factor);
        let own = lines[pivot].clone();
        for (_, line) in lines.iter_mut().enumerate().filter(|(at, _)| *at != pivot) {
            let factor = line[pivot];
            line.iter_mut().zip(&own).for_each(|(value, own)| *value -= factor * own);
        }
    }
    let unscaled = |row: usize| (0..size).map(|at| lines[row][size + at] / scales[row] / scales[at]).collect();
    Some((0..size).map(unscaled).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::values::digest::mix;

    fn draw(seed: u64) -> f64 {
        (mix(seed) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn rows(people: usize, seed: u64) -> Vec<WeightedRow> {
        let of_person = |person: usize| {
            let own = mix(seed ^ (person as u64) << 8);
            let count = 1 + own % 9;
            let row = move |at: u64| {
                let first = 50.0 + 40.0 * draw(own ^ at << 20);
                let second = first / 3.0 + 10.0 * draw(own ^ at << 21 ^ 7);
                let target = 7.0 + 0.5 * first - 0.2 * second + 3.0 * draw(own) + draw(own ^ at << 22);
                WeightedRow { values: vec![first, second, target], weight: 1.0 / count as f64, person }
            };
            (0..count).map(row)
        };
        (0..people).flat_map(of_person).collect()
    }

    /// The intercept takes the target's position.
    fn gradient(rows: &[WeightedRow], model: &LinearModel, target: usize) -> Vec<f64> {
        let mut sums = vec![0.0; rows[0].values.len()];
        for row in rows {
            let residual = row.values[target] - model.predicted_value(&row.values);
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum += row.weight * residual * if at == target { 1.0 } else { row.values[at] };
            }
        }
        sums
    }

    #[test]
    fn models_from_parts_and_rows_are_least_squares() {
        for seed in 0..20 {
            let rows = rows(40, seed);
            let whole = WeightedMoments::from_weighted_rows(&rows, 3).expect("rows");
            let part = |people: std::ops::Range<usize>| {
                let of = rows.iter().filter(|row| people.contains(&row.person));
                let of: Vec<WeightedRow> = of.map(|row| WeightedRow { values: row.values.clone(), ..*row }).collect();
                WeightedMoments::from_weighted_rows(&of, 3).expect("rows")
            };
            let pooled = WeightedMoments::pool_parts(&[part(0..13), part(13..26), part(26..40)]).expect("parts");
            for target in 0..3 {
                let (one, other) =
                    (pooled.least_squares(target).expect("a model"), whole.least_squares(target).expect("a model"));
                for (a, b) in one.slopes.iter().zip(&other.slopes) {
                    assert!((a - b).abs() <= 1e-9 * b.abs().max(1e-3), "seed {seed}: {a} against {b}");
                }
                for (at, sum) in gradient(&rows, &other, target).into_iter().enumerate() {
                    assert!(sum.abs() < 1e-6, "seed {seed}, target {target}, signal {at}: {sum}");
                }
            }
        }
    }

    /// One predictor: √(Σ over subjects of (Σ w (x − x̄) e)²) / Σ w (x − x̄)².
    #[test]
    fn standard_errors_are_clustered_by_subject() {
        let mut rows = rows(30, 5);
        rows.iter_mut().for_each(|row| row.values = vec![row.values[0], row.values[2]]);
        let moments = WeightedMoments::from_weighted_rows(&rows, 2).expect("rows");
        let model = moments.least_squares(1).expect("a model");
        let mut of_people: BTreeMap<usize, f64> = BTreeMap::new();
        let mut squares = 0.0;
        for WeightedRow { values, weight, person } in &rows {
            let distance = values[0] - moments.means[0];
            *of_people.entry(*person).or_default() += weight * distance * (values[1] - model.predicted_value(values));
            squares += weight * distance * distance;
        }
        let exact = of_people.values().map(|sum| sum * sum).sum::<f64>().sqrt() / squares;
        let errors = model.standard_errors(&rows, &moments, 1);
        assert_eq!(errors.len(), 1);
        assert!((errors[0].1 - exact).abs() < 1e-9 * exact, "{errors:?} against {exact}");
    }

    #[test]
    fn collinear_signals_give_no_model() {
        let mut rows = rows(30, 6);
        rows.iter_mut().for_each(|row| row.values[1] = 2.0 * row.values[0] + 1.0);
        let moments = WeightedMoments::from_weighted_rows(&rows, 3).expect("rows");
        assert!(moments.least_squares(2).is_none());
        assert!(moments.least_squares(0).is_some(), "the target explains");
        let constant = WeightedMoments { weight: 1.0, means: vec![0.0; 2], covariances: vec![vec![0.0; 2]; 2] };
        assert!(constant.least_squares(1).is_none());
    }

    #[test]
    fn areas_under_curve_require_two_target_values() {
        let mut rows = rows(30, 7);
        let model = |rows: &[WeightedRow]| {
            WeightedMoments::from_weighted_rows(rows, 3).and_then(|moments| moments.least_squares(2)).expect("a model")
        };
        let of_three = model(&rows);
        assert_eq!(areas_under_curve([&of_three, &of_three], &rows, 2), None);
        rows.iter_mut().for_each(|row| row.values[2] = f64::from(u8::from(row.values[2] > 38.0)));
        let model = model(&rows);
        let (mut pairs, mut right) = (0.0, 0.0);
        for high in rows.iter().filter(|row| row.values[2] == 1.0) {
            for low in rows.iter().filter(|row| row.values[2] == 0.0) {
                let (one, other) = (model.predicted_value(&high.values), model.predicted_value(&low.values));
                (pairs, right) = (pairs + 1.0, right + if one > other { 1.0 } else { 0.0 });
            }
        }
        assert!(pairs > 100.0);
        let [area, _] = areas_under_curve([&model, &model], &rows, 2).expect("two values");
        assert!((area - right / pairs).abs() < 1e-12, "{area}");
    }
}
