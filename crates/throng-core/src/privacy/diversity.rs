//! Entropy and recursive (c, ℓ) ℓ-diversity (\[FL2] §2.1) of **descending** value counts.

use super::DecimalRatio;

const ENTROPY_TOLERANCE: f64 = 1e-9;

/// Shannon entropy −Σ p·ln p in nats; 0 for an empty class.
pub fn entropy(counts: &[u32]) -> f64 {
    let n: f64 = counts.iter().map(|&c| f64::from(c)).sum();
    let share = |&c: &u32| f64::from(c) / n;
    -counts.iter().map(share).map(|p| p * p.ln()).sum::<f64>()
}

/// Records lost under entropy ≥ ln ℓ; none if satisfied.
///
/// Near the limit, only exactly ln ℓ is accepted. By concavity, the weighted mean entropy of parts is at most H, so
/// accepted parts contain at most H / ln ℓ of the records (none below ⌈ℓ⌉ values).
pub fn entropy_lost_records(counts: &[u32], l: f64) -> Option<u64> {
    let n: u64 = counts.iter().map(|&c| u64::from(c)).sum();
    if (counts.len() as f64) < l.ceil() {
        return Some(n);
    }
    let entropy = entropy(counts);
    if entropy >= l.ln() + ENTROPY_TOLERANCE
        || (entropy - l.ln()).abs() < ENTROPY_TOLERANCE && is_exactly_log(counts, n, l)
    {
        return None;
    }
    let share = (1.0 - (entropy + ENTROPY_TOLERANCE) / l.ln()).max(0.0);
    Some(((n as f64 * share * (1.0 - ENTROPY_TOLERANCE)).ceil() as u64).min(n))
}

/// Exactly ln ℓ: nⁿ = ℓⁿ · Π cᶜ, prime by prime.
fn is_exactly_log(counts: &[u32], n: u64, l: f64) -> bool {
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
    add_prime_factors(n, n_times, &mut exponents);
    add_prime_factors(scale, n_times, &mut exponents);
    add_prime_factors(part, -n_times, &mut exponents);
    counts.iter().for_each(|&c| add_prime_factors(u64::from(c), -i128::from(c), &mut exponents));
    exponents.values().all(|&exponent| exponent == 0)
}

fn add_prime_factors(mut number: u64, times: i128, exponents: &mut std::collections::BTreeMap<u64, i128>) {
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

/// Records lost under r₁ < c·(r_ℓ + … + r_m); none if satisfied.
///
/// Tails only grow when parts are merged, so accepted parts hold fewer than c·tail records of the most frequent value.
/// At least r₁ + 1 − ⌈c·tail⌉ are in others; all without a tail.
pub fn recursive_lost_records(counts: &[u32], c: DecimalRatio, l: usize) -> Option<u64> {
    let n: u64 = counts.iter().map(|&c| u64::from(c)).sum();
    let tail: u64 = counts.iter().skip(l.saturating_sub(1)).map(|&c| u64::from(c)).sum();
    let first = counts.first().map_or(0, |&c| u64::from(c));
    if tail == 0 {
        return Some(n);
    }
    if c.is_above_quotient(first, tail) {
        return None;
    }
    Some(first + 1 - c.ceil_of(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_exactly_at_limit_is_accepted_and_below_is_not() {
        // 10¹⁰ = 5¹⁰ · 4⁴ · 2²; in doubles one bit below ln 5.
        for (counts, l) in [
            (&[4, 2, 1, 1, 1, 1][..], 5.0),
            (&[1, 1], 2.0),
            (&[1, 1, 1], 3.0),
            (&[7, 7, 7], 3.0),
            (&[50_000, 50_000, 50_000], 3.0),
        ] {
            assert_eq!(entropy_lost_records(counts, l), None, "{counts:?}");
            let more = l + 1e-6;
            assert!(entropy_lost_records(counts, more).is_some(), "{counts:?} against {more}");
        }
        assert!(entropy_lost_records(&[4, 3, 1, 1, 1], 5.0).is_some());
        assert!(entropy_lost_records(&[50_001, 50_000, 49_999], 3.0).is_some());
        assert_eq!(entropy_lost_records(&[3, 2], 1.8), None);
    }
}
