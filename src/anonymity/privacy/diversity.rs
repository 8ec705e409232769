//! ℓ-diversity of one sensitive attribute ([FL2] §2.1): entropy and recursive (c, ℓ).
//!
//! Both take the counts of the values of a class, **descending**.

use super::Ratio;

/// What rounding may take from or add to an entropy: more than it does, less than anything that matters.
const SLACK: f64 = 1e-9;

/// Shannon entropy −Σ p·ln p in nats, in the order of the counts; 0 for an empty class.
pub fn entropy(counts: &[u32]) -> f64 {
    let n: f64 = counts.iter().map(|&c| f64::from(c)).sum();
    let share = |&c: &u32| f64::from(c) / n;
    -counts.iter().map(share).map(|p| p * p.ln()).sum::<f64>()
}

/// Records lost of a class whose entropy is to be at least ln ℓ; none if it holds.
///
/// A class at the very edge (ℓ values, equally frequent) is decided by the rounding of doubles, as in the established
/// tool: ℓ = 2 holds there, ℓ = 3 does not.
///
/// Entropy is concave: the mean entropy of the parts, weighted by size, is at most that of the whole. Parts that hold
/// have ln ℓ at least, so they are at most H / ln ℓ of the records. A class of fewer than ⌈ℓ⌉ values has no part that
/// holds.
pub fn entropy_failing(counts: &[u32], l: f64) -> Option<u64> {
    let n: u64 = counts.iter().map(|&c| u64::from(c)).sum();
    if (counts.len() as f64) < l.ceil() {
        return Some(n);
    }
    let entropy = entropy(counts);
    if entropy >= l.ln() {
        return None;
    }
    let share = (1.0 - (entropy + SLACK) / l.ln()).max(0.0);
    Some(((n as f64 * share * (1.0 - SLACK)).ceil() as u64).min(n))
}

/// Records lost of a class that is to satisfy r₁ < c·(r_ℓ + … + r_m); none if it does.
///
/// Of the parts that hold, r₁ counts less than c times their tails. Tails only grow when parts are merged, so the most
/// frequent value has fewer than c·tail records in parts that hold: at least r₁ + 1 − ⌈c·tail⌉ are in others. Without
/// a tail no part can hold.
pub fn recursive_failing(counts: &[u32], c: Ratio, l: usize) -> Option<u64> {
    let n: u64 = counts.iter().map(|&c| u64::from(c)).sum();
    let tail: u64 = counts.iter().skip(l.saturating_sub(1)).map(|&c| u64::from(c)).sum();
    let first = counts.first().map_or(0, |&c| u64::from(c));
    if tail == 0 {
        return Some(n);
    }
    if c.exceeds(first, tail) {
        return None;
    }
    Some(first + 1 - c.ceil_of(tail))
}
