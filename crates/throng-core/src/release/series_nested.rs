//! Recount of signals that are multiples of each other except for few members (docs/internals/methods.md §13).

use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct ShownMeans {
    values: BTreeMap<Vec<u64>, Vec<Vec<f64>>>,
}

impl ShownMeans {
    /// Refuses values that isolate the rest of few members with an earlier mean.
    pub(super) fn record_means(
        &mut self,
        members: &[u64],
        values: Vec<f64>,
        crowd: usize,
        colluders: usize,
    ) -> Result<(), &'static str> {
        let before = self.values.entry(members.to_vec()).or_default();
        if before.iter().any(|other| has_rest_of_few(other, &values, crowd, colluders)) {
            return Err("two published signals isolate few members");
        }
        before.push(values);
        Ok(())
    }
}

/// Checks if most members share a ratio, and the rest is below `crowd` or dominated by one.
///
/// Carried values have another summation order, so the check is stricter than the proposal.
pub(super) fn has_rest_of_few(one: &[f64], other: &[f64], crowd: usize, colluders: usize) -> bool {
    let is_zero = |at: usize| one[at] == 0.0 && other[at] == 0.0;
    let zeros = (0..one.len()).filter(|at| is_zero(*at)).count();
    // A majority on a circle contains two neighbours.
    let equal = |a: f64, b: f64, error: f64| (a - b).abs() <= error * a.abs().max(b.abs());
    let neighbours = (0..one.len()).zip((1..one.len()).chain([0]));
    if zeros == 0
        && !neighbours.into_iter().any(|(at, next)| equal(one[at] * other[next], one[next] * other[at], 1e-10))
    {
        return false;
    }
    let mut ratios: Vec<f64> =
        (0..one.len()).filter(|at| one[*at] != 0.0 && other[*at] != 0.0).map(|at| one[at] / other[at]).collect();
    ratios.sort_by(f64::total_cmp);
    let mut runs: Vec<(usize, f64)> = Vec::new();
    for ratio in ratios {
        match runs.last_mut() {
            Some((length, first)) if equal(*first, ratio, 1e-10) => *length += 1,
            _ => runs.push((1, ratio)),
        }
    }
    let longest = runs.iter().map(|(length, _)| *length).max().unwrap_or(0);
    let Some((_, ratio)) = runs.into_iter().find(|(length, _)| *length == longest && longest > 1) else { return false };
    let mut rests: Vec<f64> = (0..one.len())
        .filter(|at| !equal(one[*at], ratio * other[*at], 1.1e-6))
        .map(|at| (one[at] - ratio * other[at]).abs())
        .collect();
    if rests.is_empty() || 2 * rests.len() >= one.len() {
        return false;
    }
    rests.sort_by(f64::total_cmp);
    let total: f64 = rests.iter().sum();
    let largest = rests[rests.len() - 1];
    let small: f64 = rests.iter().rev().skip(1 + colluders.max(1)).sum();
    rests.len() < crowd || small < largest / 10.0 * (1.0 - 1e-9) || largest > total / 2.0 * (1.0 + 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_signal_is_refused_only_below_crowd() {
        let one: Vec<f64> = (0..15).map(|at| 4_000.0 + f64::from(at * at * 37 % 101) * 61.7).collect();
        let with = |part: &dyn Fn(usize) -> f64| -> Vec<f64> {
            one.iter().enumerate().map(|(at, value)| 0.75 * value + part(at)).collect()
        };
        let refused = |part: &dyn Fn(usize) -> f64| {
            let mut means = ShownMeans::default();
            means.record_means(&[1, 2], with(part), 5, 0).expect("other members");
            means.record_means(&[1, 2, 3], one.clone(), 5, 0).expect("the first of these");
            means.record_means(&[1, 2, 3], with(part), 5, 0).is_err()
        };
        assert!(refused(&|at| if at == 7 { 2_900.0 } else { 0.0 }));
        assert!(refused(&|at| if at < 4 { 500.0 + at as f64 } else { 0.0 }));
        assert!(refused(&|at| if at < 6 { [9_000.0, 5.0, 5.5, 6.0, 6.5, 7.0][at] } else { 0.0 }));
        assert!(!refused(&|at| if at < 5 { 500.0 + at as f64 } else { 0.0 }));
        assert!(!refused(&|_| 0.0));
        assert!(!refused(&|at| (at * 37 % 11) as f64 * 100.0 + 50.0));
    }
}
