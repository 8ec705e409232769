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
/// Near the edge doubles do not decide: a class there holds if its entropy is ln ℓ exactly ([`is_edge`]), and what is
/// not to be told from less does not.
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
    if entropy >= l.ln() + SLACK || (entropy - l.ln()).abs() < SLACK && is_edge(counts, n, l) {
        return None;
    }
    let share = (1.0 - (entropy + SLACK) / l.ln()).max(0.0);
    Some(((n as f64 * share * (1.0 - SLACK)).ceil() as u64).min(n))
}

/// Whether the entropy of `counts`, n in all, is exactly ln ℓ: nⁿ = ℓⁿ · Π cᶜ, prime by prime.
fn is_edge(counts: &[u32], n: u64, l: f64) -> bool {
    let text = format!("{l}");
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let Some((part, scale)) = format!("{whole}{decimals}")
        .parse()
        .ok()
        .zip(u32::try_from(decimals.len()).ok().and_then(|d| 10u64.checked_pow(d)))
    else {
        return false;
    };
    let n_times = i128::from(n);
    let mut exponents = std::collections::BTreeMap::new();
    factor(n, n_times, &mut exponents);
    factor(scale, n_times, &mut exponents);
    factor(part, -n_times, &mut exponents);
    counts.iter().for_each(|&c| factor(u64::from(c), -i128::from(c), &mut exponents));
    exponents.values().all(|&exponent| exponent == 0)
}

/// Adds the prime factors of `number`, each `times` as often, to `exponents`.
fn factor(mut number: u64, times: i128, exponents: &mut std::collections::BTreeMap<u64, i128>) {
    let mut prime = 2;
    while number > 1 {
        if prime * prime > number {
            prime = number;
        }
        while number.is_multiple_of(prime) {
            number /= prime;
            *exponents.entry(prime).or_default() += times;
        }
        prime += 1;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entropy_at_the_very_edge_holds_and_one_below_it_does_not() {
        // 10¹⁰ = 5¹⁰ · 4⁴ · 2²; in doubles the entropy is the last bit below ln 5.
        for (counts, l) in [
            (&[4, 2, 1, 1, 1, 1][..], 5.0),
            (&[1, 1], 2.0),
            (&[1, 1, 1], 3.0),
            (&[7, 7, 7], 3.0),
            (&[50_000, 50_000, 50_000], 3.0),
        ] {
            assert_eq!(entropy_failing(counts, l), None, "{counts:?}");
            let more = l + 1e-6;
            assert!(entropy_failing(counts, more).is_some(), "{counts:?} against {more}");
        }
        assert!(entropy_failing(&[4, 3, 1, 1, 1], 5.0).is_some());
        assert!(entropy_failing(&[50_001, 50_000, 49_999], 3.0).is_some());
        assert_eq!(entropy_failing(&[3, 2], 1.8), None);
    }
}
