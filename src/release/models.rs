//! Verification of privacy models beside k, from the encoded bytes of what is about to leave.
//!
//! Claim. If [`verify_models`] returns `Ok`, the sensitive cells of every class that shows any, read back from the lines,
//! satisfy every claim. A sensitive cell that is suppressed shows nothing and counts for nothing. Written from the
//! definitions (docs/methods.md §8) in plain numbers and apart from the search, whose integers it must agree with; what
//! is equal may differ by rounding, so 10⁻⁹ is let pass. k-map and δ-presence speak of a population that does not
//! leave: they cannot be verified here.

use super::verified::Verified;
use super::violation::DataSetRefusal;
use crate::anonymity::privacy::{Ground, Requirement};
use std::collections::BTreeMap;
use throng_formats::LineLayout;

/// What every class must satisfy; values are positions in [`SensitiveTerms::texts`].
pub type Claim = Requirement<Ground>;

/// What the verifier knows of one sensitive attribute.
#[derive(Clone, Debug)]
pub struct SensitiveTerms {
    /// Its position in the line.
    pub column: usize,
    /// The text of each value.
    pub texts: Vec<String>,
    /// Share of each value in the whole input.
    pub shares: Vec<f64>,
    /// What the values of every class must satisfy.
    pub claims: Vec<Claim>,
}

const SLACK: f64 = 1e-9;

/// Verifies the lines of `group`, whose cells `quasi` marks form the class.
///
/// # Errors
/// The first class and claim that do not agree.
pub fn verify_models(
    verified: &Verified,
    group: usize,
    layout: &LineLayout,
    quasi: &[bool],
    terms: &[SensitiveTerms],
) -> Result<(), DataSetRefusal> {
    let numbers: Vec<BTreeMap<&str, usize>> =
        terms.iter().map(|t| t.texts.iter().enumerate().map(|(at, text)| (text.as_str(), at)).collect()).collect();
    // By class: for each sensitive attribute the lines by value.
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

impl Claim {
    pub(super) fn holds(&self, counts: &[f64], shares: &[f64]) -> Result<(), DataSetRefusal> {
        let n: f64 = counts.iter().sum();
        let mut present: Vec<f64> = counts.iter().copied().filter(|&count| count > 0.0).collect();
        present.sort_by(|a, b| b.total_cmp(a));
        let (holds, model) = match self {
            Self::Distinct { l } => (present.len() >= *l, "distinct l-diversity"),
            Self::Entropy { l } => {
                let entropy: f64 = present.iter().map(|count| count / n * (n / count).ln()).sum();
                // At the edge whole numbers decide. Treatment asks for a little more than this does.
                let holds = entropy > l.ln() + SLACK / 2.0 || entropy > l.ln() - SLACK && is_edge(&present, n, *l);
                (holds, "entropy l-diversity")
            }
            Self::Recursive { c, l } => {
                let tail: f64 = present.get(l - 1..).map_or(0.0, |tail| tail.iter().sum());
                (present.first().is_some_and(|first| *first < c * tail + SLACK), "recursive l-diversity")
            }
            Self::Closeness { t, ground } => {
                // A class that shows nothing is as close as can be.
                let surplus: Vec<f64> = counts.iter().zip(shares).map(|(count, share)| count / n - share).collect();
                (n == 0.0 || distance(ground, surplus) <= t + SLACK, "t-closeness")
            }
        };
        if holds { Ok(()) } else { Err(DataSetRefusal::Model(model)) }
    }
}

/// Whether nⁿ = ℓⁿ · Π cᶜ: both sides leave the same behind when divided by two large primes.
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

fn distance(ground: &Ground, mut surplus: Vec<f64>) -> f64 {
    let total = |surplus: &[f64]| surplus.iter().map(|s| s.abs()).sum::<f64>();
    match ground {
        Ground::Equal => total(&surplus) / 2.0,
        Ground::Ordered => {
            let mut carried = 0.0;
            let mut sum = 0.0;
            for s in &surplus {
                carried += s;
                sum += f64::abs(carried);
            }
            sum / (surplus.len().max(2) - 1) as f64
        }
        Ground::Hierarchical(levels) => {
            // What crosses the edges of the tree, each half a level long.
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
    fn claims_mean_their_definitions() {
        let shares = [0.25; 4];
        let holds = |claim: &Claim, counts: &[f64]| claim.holds(counts, &shares).is_ok();
        let distinct = Claim::Distinct { l: 3 };
        assert!(holds(&distinct, &[1.0, 1.0, 9.0, 0.0]) && !holds(&distinct, &[5.0, 5.0, 0.0, 0.0]));
        let entropy = Claim::Entropy { l: 2.0 };
        assert!(holds(&entropy, &[3.0, 3.0, 0.0, 0.0]) && !holds(&entropy, &[4.0, 3.0, 0.0, 0.0]));
        assert!(holds(&entropy, &[3.0, 3.0, 0.0, 0.0]) && !holds(&entropy, &[50_001.0, 50_000.0, 0.0, 0.0]));
        let five = Claim::Entropy { l: 5.0 };
        assert!(five.holds(&[4.0, 2.0, 1.0, 1.0, 1.0, 1.0], &[]).is_ok(), "10^10 = 5^10 * 4^4 * 2^2");
        assert!(five.holds(&[4.0, 3.0, 1.0, 1.0, 1.0], &[]).is_err());
        let recursive = Claim::Recursive { c: 2.0, l: 2 };
        assert!(holds(&recursive, &[3.0, 2.0, 0.0, 0.0]) && !holds(&recursive, &[4.1, 2.0, 0.0, 0.0]));
        let close = |t, ground| Claim::Closeness { t, ground };
        // All at the first value: three quarters have to move.
        let first = [4.0, 0.0, 0.0, 0.0];
        assert!(holds(&close(0.75, Ground::Equal), &first) && !holds(&close(0.74, Ground::Equal), &first));
        // A quarter each goes one, two and three thirds of the way.
        assert!(holds(&close(0.5, Ground::Ordered), &first) && !holds(&close(0.49, Ground::Ordered), &first));
        // One quarter crosses half the height, two the whole.
        let tree = Ground::Hierarchical(vec![vec![0, 0, 1, 1], vec![0, 0]]);
        assert!(holds(&close(0.625, tree.clone()), &first) && !holds(&close(0.62, tree), &first));
        assert!(holds(&close(0.0, Ground::Equal), &[0.0; 4]) && !holds(&distinct, &[0.0; 4]));
    }
}
