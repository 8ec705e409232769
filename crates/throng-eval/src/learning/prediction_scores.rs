//! Scores of predictions.

use serde::Serialize;

/// Scores on test records.
#[derive(Clone, Debug, Serialize)]
pub struct PredictionScores {
    /// Training records or lines.
    pub rows: u64,
    /// Share of correct predictions.
    pub accuracy: f64,
    /// Mean over classes of the accuracy.
    pub balanced_accuracy: f64,
    /// Mean over classes of the probability that a member scores higher than a non-member.
    pub auc: f64,
    /// Error rates of a binary target.
    pub errors: Option<ErrorRates>,
}

/// Errors of a binary target. Positive is the second value, or a case of `any(…)`, with its training share as
/// threshold.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ErrorRates {
    /// Share of negative records counted as positive.
    pub false_positives: f64,
    /// Share of positive records counted as negative.
    pub false_negatives: f64,
}

impl ErrorRates {
    /// Log-odds of class 1, and its training share.
    fn measure_rates(truth: &[u32], scores: &[Vec<f64>], prevalence: f64) -> Self {
        let threshold = (prevalence / (1.0 - prevalence)).ln();
        let share = |class: u32, told: bool| {
            let of = truth.iter().zip(scores).filter(|(truth, _)| **truth == class);
            let (mut all, mut wrong) = (0.0_f64, 0.0);
            for (_, scores) in of {
                all += 1.0;
                wrong += f64::from(u8::from((scores[1] >= threshold) == told));
            }
            wrong / all.max(1.0)
        };
        Self { false_positives: share(0, true), false_negatives: share(1, false) }
    }
}

impl PredictionScores {
    /// None without test records or with one class. `prevalence` is the training share of class 1.
    pub(super) fn measure_scores(truth: &[u32], scores: &[Vec<f64>], rows: u64, prevalence: f64) -> Option<Self> {
        let number = scores.first()?.len();
        let best = |scores: &Vec<f64>| {
            (0..number).max_by(|a, b| scores[*a].total_cmp(&scores[*b]).then(b.cmp(a))).unwrap_or(0) as u32
        };
        let told: Vec<u32> = scores.iter().map(best).collect();
        let right = |class: Option<u32>| {
            let of = truth.iter().zip(&told).filter(|(truth, _)| class.is_none_or(|class| **truth == class));
            let (mut all, mut right) = (0.0_f64, 0.0);
            for (truth, told) in of {
                all += 1.0;
                right += f64::from(u8::from(truth == told));
            }
            right / all.max(1.0)
        };
        let classes: Vec<u32> = (0..number as u32).filter(|class| truth.contains(class)).collect();
        if classes.len() < 2 {
            return None;
        }
        let mean = |of: &dyn Fn(u32) -> f64| classes.iter().map(|class| of(*class)).sum::<f64>() / classes.len() as f64;
        Some(Self {
            rows,
            accuracy: right(None),
            balanced_accuracy: mean(&|class| right(Some(class))),
            auc: mean(&|class| {
                let of_class: Vec<f64> = scores.iter().map(|scores| scores[class as usize]).collect();
                area_under_curve(&of_class, &truth.iter().map(|truth| *truth == class).collect::<Vec<bool>>())
            }),
            errors: (number == 2).then(|| ErrorRates::measure_rates(truth, scores, prevalence)),
        })
    }
}

/// Returns the AUC by ranks; ties count half.
#[must_use]
pub fn area_under_curve(scores: &[f64], positive: &[bool]) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]));
    let (mut ranks, mut before) = (0.0, 0);
    for equal in order.chunk_by(|a, b| scores[*a].total_cmp(&scores[*b]).is_eq()) {
        let rank = before as f64 + f64::midpoint(equal.len() as f64, 1.0);
        ranks += rank * equal.iter().filter(|at| positive[**at]).count() as f64;
        before += equal.len();
    }
    let of = positive.iter().filter(|positive| **positive).count() as f64;
    let others = positive.len() as f64 - of;
    if of * others == 0.0 { 0.5 } else { (ranks - of * (of + 1.0) / 2.0) / (of * others) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn area_under_curve_is_share_of_ordered_pairs(cases in prop::collection::vec((0_u8..6, any::<bool>()), 2..40)) {
            let scores: Vec<f64> = cases.iter().map(|case| f64::from(case.0)).collect();
            let positive: Vec<bool> = cases.iter().map(|case| case.1).collect();
            let (mut pairs, mut right) = (0.0, 0.0);
            for a in cases.iter().filter(|case| case.1) {
                for b in cases.iter().filter(|case| !case.1) {
                    pairs += 1.0;
                    right += match a.0.cmp(&b.0) {
                        std::cmp::Ordering::Greater => 1.0,
                        std::cmp::Ordering::Equal => 0.5,
                        std::cmp::Ordering::Less => 0.0,
                    };
                }
            }
            let twin = if pairs == 0.0 { 0.5 } else { right / pairs };
            prop_assert!((area_under_curve(&scores, &positive) - twin).abs() < 1e-9);
        }
    }

    #[test]
    fn scores_match_manual_calculation() {
        // Three of class 0, one of class 1, all predicted as 0.
        let scores = vec![vec![1.0, 0.0], vec![2.0, 0.0], vec![3.0, 0.0], vec![0.5, 0.1]];
        let found = PredictionScores::measure_scores(&[0, 0, 0, 1], &scores, 7, 0.5).unwrap();
        assert_eq!((found.rows, found.accuracy, found.balanced_accuracy, found.auc), (7, 0.75, 0.5, 1.0));
        // Log-odds 0 and 0.1; prevalence 1/2 and 3/5.
        let errors = found.errors.unwrap();
        assert_eq!((errors.false_positives, errors.false_negatives), (1.0, 0.0));
        let errors = PredictionScores::measure_scores(&[0, 0, 0, 1], &scores, 7, 0.6).unwrap().errors.unwrap();
        assert_eq!((errors.false_positives, errors.false_negatives), (0.0, 1.0));
        assert!(PredictionScores::measure_scores(&[0, 0], &scores[..2], 7, 0.5).is_none());
    }
}
