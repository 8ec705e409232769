//! Hits and misses, and what they say.

use serde::Serialize;

/// What an attack came to.
#[derive(Clone, Debug, Serialize)]
pub struct Yield {
    /// The attack.
    pub attack: &'static str,
    /// What it was given, in words.
    pub given: String,
    /// Targets that were tried.
    pub trials: u64,
    /// Mean probability of being right, in [0, 1].
    pub rate: f64,
    /// The 95 % interval of the rate.
    pub interval: [f64; 2],
    /// What guessing without the release gives.
    pub chance: f64,
    /// What the guarantee promises the rate to stay below; none where it promises nothing.
    pub bound: Option<f64>,
    /// Nothing is promised, and nothing is judged: measured and published (docs/methods.md §14.3).
    pub open: bool,
}

impl Yield {
    /// The same, where nothing is promised or judged.
    #[must_use]
    pub fn measured_only(self) -> Self {
        Self { open: true, ..self }
    }

    /// Whether the whole interval lies above what is promised, or where nothing is, above 1.5 × chance.
    pub fn is_above(&self) -> bool {
        !self.open && self.trials > 0 && self.interval[0] > self.bound.unwrap_or(0.0).max(1.5 * self.chance)
    }
}

/// Probabilities of being right, one a trial.
#[derive(Clone, Debug, Default)]
pub struct Trials {
    number: u64,
    sum: f64,
    chance: f64,
}

impl Trials {
    /// Adds a trial: how probably the attack, and a guess without the release, are right.
    pub fn add(&mut self, right: f64, chance: f64) {
        self.number += 1;
        self.sum += right;
        self.chance += chance;
    }

    /// The yield of these trials.
    #[must_use]
    pub fn sum_up(self, attack: &'static str, given: String, bound: Option<f64>) -> Yield {
        let number = self.number.max(1) as f64;
        let rate = self.sum / number;
        let interval = if self.number == 0 { [0.0, 1.0] } else { wilson(rate, number) };
        Yield { attack, given, trials: self.number, rate, interval, chance: self.chance / number, bound, open: false }
    }
}

/// The score interval [WIL] of a rate over `n` trials, at 95 %. Trials that are right with a probability vary less than ones
/// that are right or wrong, so that it is wide rather than narrow.
fn wilson(rate: f64, n: f64) -> [f64; 2] {
    const Z: f64 = 1.96;
    let middle = (rate + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
    [(middle - half).max(0.0), (middle + half).min(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_its_rate_and_narrows_with_trials() {
        let few = wilson(0.2, 20.0);
        let many = wilson(0.2, 2000.0);
        assert!(few[0] < many[0] && many[0] < 0.2 && 0.2 < many[1] && many[1] < few[1]);
        // Published values of the interval for 0 of 10 and 5 of 10.
        let close = |a: f64, b: f64| (a - b).abs() < 5e-4;
        assert!(close(wilson(0.0, 10.0)[1], 0.2775) && close(wilson(0.5, 10.0)[0], 0.2366));
    }

    #[test]
    fn above_means_that_the_whole_interval_is() {
        let of = |right: f64, n: usize, bound: Option<f64>| {
            let mut trials = Trials::default();
            (0..n).for_each(|_| trials.add(right, 0.1));
            trials.sum_up("test", String::new(), bound).is_above()
        };
        assert!(!of(0.21, 10, Some(0.2)) && of(0.5, 100, Some(0.2)));
        assert!(!of(0.14, 1000, None) && of(0.3, 1000, None));
        assert!(!Trials::default().sum_up("test", String::new(), None).is_above());
    }
}
