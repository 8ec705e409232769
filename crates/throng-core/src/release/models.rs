//! Verification of the privacy models other than k.
//!
//! Claim. If [`verify_models`] returns `Ok`, the shown sensitive cells of every class satisfy every claim
//! (docs/internals/methods.md §8), up to a difference of 10⁻⁹.

use super::verified_batch::ReleasableBatch;
use super::violation::DataSetRefusal;
use crate::line_encoder::LineLayout;
use crate::privacy::{GroundMetric, ValueRequirement};
use std::collections::BTreeMap;

/// Condition on every class. Values are positions in [`SensitiveTerms::texts`].
pub type ModelClaim = ValueRequirement<GroundMetric>;

/// Terms of one sensitive attribute.
#[derive(Clone, Debug)]
pub struct SensitiveTerms {
    /// Position in the line.
    pub column: usize,
    /// Text of each value.
    pub texts: Vec<String>,
    /// Share of each value in the input.
    pub shares: Vec<f64>,
    /// Models of every class.
    pub claims: Vec<ModelClaim>,
}

const MODEL_TOLERANCE: f64 = 1e-9;

/// Verifies `group`; `quasi` marks the class cells.
///
/// # Errors
/// The first violated claim.
pub fn verify_models(
    verified: &ReleasableBatch,
    group: usize,
    layout: &LineLayout,
    quasi: &[bool],
    terms: &[SensitiveTerms],
) -> Result<(), DataSetRefusal> {
    let numbers: Vec<BTreeMap<&str, usize>> =
        terms.iter().map(|t| t.texts.iter().enumerate().map(|(at, text)| (text.as_str(), at)).collect()).collect();
    let mut classes: BTreeMap<Vec<String>, Vec<Vec<f64>>> = BTreeMap::new();
    let mut cells = Vec::new();
    for line in verified.lines(group) {
        layout.read(line.bytes, &mut cells).ok_or(DataSetRefusal::Model("the layout"))?;
        let class = cells.iter().zip(quasi).filter(|(_, quasi)| **quasi).map(|(cell, _)| cell.clone()).collect();
        let counts = classes.entry(class).or_insert_with(|| terms.iter().map(|t| vec![0.0; t.texts.len()]).collect());
        for ((term, numbers), counts) in terms.iter().zip(&numbers).zip(counts) {
            let cell = cells[term.column].as_str();
            match numbers.get(cell) {
                Some(&value) => counts[value] += 1.0,
                None if cell == r#""*""# => {}
                None => return Err(DataSetRefusal::Model("the list of sensitive values")),
            }
        }
    }
    for counts in classes.values() {
        for (term, counts) in terms.iter().zip(counts).filter(|(_, counts)| counts.iter().any(|count| *count > 0.0)) {
            for claim in &term.claims {
                claim.holds(counts, &term.shares)?;
            }
        }
    }
    Ok(())
}

impl ModelClaim {
    pub(super) fn holds(&self, counts: &[f64], shares: &[f64]) -> Result<(), DataSetRefusal> {
        let n: f64 = counts.iter().sum();
        let mut present: Vec<f64> = counts.iter().copied().filter(|&count| count > 0.0).collect();
        present.sort_by(|a, b| b.total_cmp(a));
        let (holds, model) = match self {
            Self::Distinct { l } => (present.len() >= *l, "distinct l-diversity"),
            Self::Entropy { l } => {
                let entropy: f64 = present.iter().map(|count| count / n * (n / count).ln()).sum();
                // At the boundary, exact integers decide.
                let holds = entropy > l.ln() + MODEL_TOLERANCE / 2.0
                    || entropy > l.ln() - MODEL_TOLERANCE && is_edge(&present, n, *l);
                (holds, "entropy l-diversity")
            }
            Self::Recursive { c, l } => {
                let tail: f64 = present.get(l - 1..).map_or(0.0, |tail| tail.iter().sum());
                (present.first().is_some_and(|first| *first < c * tail + MODEL_TOLERANCE), "recursive l-diversity")
            }
            Self::Closeness { t, ground } => {
                // A class without shown values satisfies closeness.
                let surplus: Vec<f64> = counts.iter().zip(shares).map(|(count, share)| count / n - share).collect();
                (n == 0.0 || distance(ground, surplus) <= t + MODEL_TOLERANCE, "t-closeness")
            }
        };
        if holds { Ok(()) } else { Err(DataSetRefusal::Model(model)) }
    }
}

/// Checks that nⁿ = ℓⁿ · Π cᶜ modulo two large primes.
fn is_edge(present: &[f64], n: f64, l: f64) -> bool {
    let mut scale = 1.0;
    while (l * scale).fract() != 0.0 && scale < 1e9 {
        scale *= 10.0;
    }
    let both_sides = |prime: u128| {
        let power = |base: f64, times: f64| {
            let (mut base, mut times, mut product) = (base as u128 % prime, times as u64, 1u128);
            while times > 0 {
                if times & 1 == 1 {
                    product = product * base % prime;
                }
                base = base * base % prime;
                times >>= 1;
            }
            product
        };
        let right = present.iter().fold(power(l * scale, n), |right, &count| right * power(count, count) % prime);
        power(n, n) * power(scale, n) % prime == right
    };
    both_sides((1 << 61) - 1) && both_sides(4_611_686_018_427_387_847)
}

fn distance(ground: &GroundMetric, mut surplus: Vec<f64>) -> f64 {
    let total = |surplus: &[f64]| surplus.iter().map(|s| s.abs()).sum::<f64>();
    match ground {
        GroundMetric::Equal => total(&surplus) / 2.0,
        GroundMetric::Ordered => {
            let mut carried = 0.0;
            let mut sum = 0.0;
            for s in &surplus {
                carried += s;
                sum += f64::abs(carried);
            }
            sum / (surplus.len().max(2) - 1) as f64
        }
        GroundMetric::Hierarchical(levels) => {
            // Mass across tree edges of half a level.
            let mut crossing = 0.0;
            for parents in levels {
                crossing += total(&surplus);
                let mut above = vec![0.0; parents.iter().max().map_or(0, |&p| p as usize + 1)];
                for (&parent, s) in parents.iter().zip(&surplus) {
                    above[parent as usize] += s;
                }
                surplus = above;
            }
            crossing / 2.0 / levels.len().max(1) as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_claims_match_definitions() {
        let shares = [0.25; 4];
        let holds = |claim: &ModelClaim, counts: &[f64]| claim.holds(counts, &shares).is_ok();
        let distinct = ModelClaim::Distinct { l: 3 };
        assert!(holds(&distinct, &[1.0, 1.0, 9.0, 0.0]) && !holds(&distinct, &[5.0, 5.0, 0.0, 0.0]));
        let entropy = ModelClaim::Entropy { l: 2.0 };
        assert!(holds(&entropy, &[3.0, 3.0, 0.0, 0.0]) && !holds(&entropy, &[4.0, 3.0, 0.0, 0.0]));
        assert!(holds(&entropy, &[3.0, 3.0, 0.0, 0.0]) && !holds(&entropy, &[50_001.0, 50_000.0, 0.0, 0.0]));
        let five = ModelClaim::Entropy { l: 5.0 };
        assert!(five.holds(&[4.0, 2.0, 1.0, 1.0, 1.0, 1.0], &[]).is_ok(), "10^10 = 5^10 * 4^4 * 2^2");
        assert!(five.holds(&[4.0, 3.0, 1.0, 1.0, 1.0], &[]).is_err());
        let recursive = ModelClaim::Recursive { c: 2.0, l: 2 };
        assert!(holds(&recursive, &[3.0, 2.0, 0.0, 0.0]) && !holds(&recursive, &[4.1, 2.0, 0.0, 0.0]));
        let close = |t, ground| ModelClaim::Closeness { t, ground };
        // Three quarters must move.
        let first = [4.0, 0.0, 0.0, 0.0];
        assert!(holds(&close(0.75, GroundMetric::Equal), &first) && !holds(&close(0.74, GroundMetric::Equal), &first));
        // A quarter each moves 1/3, 2/3 and 1.
        assert!(
            holds(&close(0.5, GroundMetric::Ordered), &first) && !holds(&close(0.49, GroundMetric::Ordered), &first)
        );
        // A quarter crosses half the height, two the whole.
        let tree = GroundMetric::Hierarchical(vec![vec![0, 0, 1, 1], vec![0, 0]]);
        assert!(holds(&close(0.625, tree.clone()), &first) && !holds(&close(0.62, tree), &first));
        assert!(holds(&close(0.0, GroundMetric::Equal), &[0.0; 4]) && !holds(&distinct, &[0.0; 4]));
    }
}
