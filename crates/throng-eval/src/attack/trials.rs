//! Outcomes of attacks, and their judgement.

use serde::Serialize;
use std::collections::BTreeMap;

/// Rule for judging a yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum YieldCriterion {
    /// Every trial is at most the bound.
    EachTrial,
    /// All means, also per group, are at most the bound.
    Mean,
    /// All means are at most the larger of bound and chance limit.
    MeanOrChance,
    /// All means are at most the chance limit, min(1.5 × chance, (1 + chance) / 2).
    Chance,
    /// No bound or judgement.
    Open,
}

/// Trials of one or two joined groups.
#[derive(Clone, Debug, Serialize)]
pub struct GroupYield {
    /// Group name.
    pub group: String,
    /// Number of targets.
    pub trials: u64,
    /// Mean probability of a correct guess.
    pub rate: f64,
    /// 95 % confidence interval of the rate.
    pub interval: [f64; 2],
    /// Rate without the release.
    pub chance: f64,
    /// Bound of this group, if bounds differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
}

/// Result of an attack.
#[derive(Clone, Debug, Serialize)]
pub struct AttackYield {
    /// Attack name.
    pub attack: &'static str,
    /// Attacker's knowledge.
    pub given: String,
    /// Number of targets.
    pub trials: u64,
    /// Mean probability of a correct guess.
    pub rate: f64,
    /// 95 % confidence interval of the rate.
    pub interval: [f64; 2],
    /// Rate without the release.
    pub chance: f64,
    /// Group whose interval starts highest above its limit.
    pub worst_group: Option<GroupYield>,
    /// Results of all groups.
    #[serde(skip)]
    pub groups: Vec<GroupYield>,
    /// Mean of the highest tenth of the probabilities.
    pub worst_decile: f64,
    /// Share of trials above the bound.
    pub share_above: f64,
    /// Guaranteed upper bound of the rate.
    pub bound: Option<f64>,
    /// Rule for judging the rate.
    pub judged: YieldCriterion,
}

const EPSILON: f64 = 1e-9;

/// Returns min(1.5 × chance, (1 + chance) / 2).
fn allowed_by_chance(chance: f64) -> f64 {
    (1.5 * chance).min(f64::midpoint(1.0, chance))
}

impl AttackYield {
    /// Removes bound and judgement.
    #[must_use]
    pub fn measured_only(self) -> Self {
        self.with_criterion(YieldCriterion::Open)
    }

    /// Applies the bound to every trial.
    #[must_use]
    pub fn judge_each_trial(self) -> Self {
        self.with_criterion(YieldCriterion::EachTrial)
    }

    /// Judges by the larger of bound and chance limit.
    #[must_use]
    pub fn allow_chance(self) -> Self {
        let judged = if self.bound.is_some() { YieldCriterion::MeanOrChance } else { YieldCriterion::Chance };
        self.with_criterion(judged)
    }

    /// Replaces the judgement.
    #[must_use]
    pub fn with_criterion(mut self, judged: YieldCriterion) -> Self {
        self.judged = judged;
        let beyond = |group: &GroupYield| {
            let limit = self.limit(group.bound, group.chance);
            group.interval[0] - if limit.is_finite() { limit } else { 0.0 }
        };
        let worst = self.groups.iter().reduce(|worst, next| if beyond(next) > beyond(worst) { next } else { worst });
        self.worst_group = worst.cloned();
        self
    }

    fn limit(&self, bound: Option<f64>, chance: f64) -> f64 {
        match (self.judged, bound.or(self.bound)) {
            (YieldCriterion::Open, _) => f64::INFINITY,
            (YieldCriterion::EachTrial | YieldCriterion::Mean, Some(bound)) => bound + EPSILON,
            (YieldCriterion::MeanOrChance, Some(bound)) => bound.max(allowed_by_chance(chance)) + EPSILON,
            (_, _) => allowed_by_chance(chance) + EPSILON,
        }
    }

    /// Returns the lower end of the interval minus chance.
    #[must_use]
    pub fn above_chance(&self) -> f64 {
        self.interval[0] - self.chance
    }

    /// Returns true if the interval begins above chance.
    #[must_use]
    pub fn is_above_chance(&self) -> bool {
        self.trials > 0 && self.above_chance() > EPSILON
    }

    /// Returns true without bound and judgement.
    pub fn is_open(&self) -> bool {
        self.judged == YieldCriterion::Open
    }

    /// Returns true if an interval lies above its limit or, for [`YieldCriterion::EachTrial`], any trial does.
    pub fn is_above(&self) -> bool {
        self.is_above_limit(&|bound, chance| self.limit(bound, chance))
            || self.judged == YieldCriterion::EachTrial && self.share_above > 0.0
    }

    /// Returns true if an interval lies above a share.
    pub fn is_above_share(&self, most: f64) -> bool {
        !self.is_open() && self.is_above_limit(&|_, _| most)
    }

    fn is_above_limit(&self, limit: &dyn Fn(Option<f64>, f64) -> f64) -> bool {
        let mean = self.trials > 0 && self.interval[0] > limit(None, self.chance);
        mean || self.groups.iter().any(|group| group.interval[0] > limit(group.bound, group.chance))
    }
}

/// Probabilities of a correct guess, one per trial.
#[derive(Clone, Debug, Default)]
pub struct AttackTrials {
    right: Vec<f64>,
    chance: f64,
    /// Trials, and sums of attack and chance probabilities.
    groups: BTreeMap<String, (u64, f64, f64)>,
}

impl AttackTrials {
    /// Adds a trial.
    pub fn add(&mut self, right: f64, chance: f64) {
        self.right.push(right);
        self.chance += chance;
    }

    /// Adds a trial of a group.
    pub fn add_to_group(&mut self, group: &str, right: f64, chance: f64) {
        self.add(right, chance);
        if !self.groups.contains_key(group) {
            self.groups.insert(group.to_owned(), (0, 0.0, 0.0));
        }
        if let Some(sums) = self.groups.get_mut(group) {
            *sums = (sums.0 + 1, sums.1 + right, sums.2 + chance);
        }
    }

    /// Returns the mean probability; 0 without trials.
    pub fn rate(&self) -> f64 {
        self.right.iter().sum::<f64>() / self.right.len().max(1) as f64
    }

    /// Returns the yield, judged by its mean.
    #[must_use]
    pub fn into_yield(mut self, attack: &'static str, given: String, bound: Option<f64>) -> AttackYield {
        let (trials, rate) = (self.right.len() as u64, self.rate());
        let number = trials.max(1) as f64;
        let groups = self.groups.into_iter().map(|(group, (trials, right, chance))| {
            let (number, rate) = (trials as f64, right / trials as f64);
            GroupYield {
                group,
                trials,
                rate,
                interval: wilson_interval(rate, number),
                chance: chance / number,
                bound: None,
            }
        });
        let groups: Vec<GroupYield> = groups.collect();
        let above = self.right.iter().filter(|right| bound.is_some_and(|bound| **right > bound + EPSILON)).count();
        self.right.sort_unstable_by(|a, b| b.total_cmp(a));
        let tenth = self.right.len().div_ceil(10);
        let judged = if bound.is_some() { YieldCriterion::Mean } else { YieldCriterion::Chance };
        let found = AttackYield {
            attack,
            given,
            trials,
            rate,
            interval: if trials == 0 { [0.0, 1.0] } else { wilson_interval(rate, number) },
            chance: self.chance / number,
            worst_group: None,
            groups,
            worst_decile: self.right[..tenth].iter().sum::<f64>() / tenth.max(1) as f64,
            share_above: above as f64 / number,
            bound,
            judged,
        };
        found.with_criterion(judged)
    }
}

/// 95 % score interval \[WIL]; conservative for probabilities.
fn wilson_interval(rate: f64, n: f64) -> [f64; 2] {
    const Z: f64 = 1.96;
    let middle = (rate + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
    [(middle - half).max(0.0), (middle + half).min(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_interval_contains_rate_and_narrows_with_trials() {
        let few = wilson_interval(0.2, 20.0);
        let many = wilson_interval(0.2, 2000.0);
        assert!(few[0] < many[0] && many[0] < 0.2 && 0.2 < many[1] && many[1] < few[1]);
        // Published values for 0 of 10 and 5 of 10.
        let close = |a: f64, b: f64| (a - b).abs() < 5e-4;
        assert!(close(wilson_interval(0.0, 10.0)[1], 0.2775) && close(wilson_interval(0.5, 10.0)[0], 0.2366));
    }

    #[test]
    fn yield_is_above_if_whole_interval_is() {
        let of = |right: f64, n: usize, bound: Option<f64>| {
            let mut trials = AttackTrials::default();
            (0..n).for_each(|_| trials.add(right, 0.1));
            trials.into_yield("test", String::new(), bound).is_above()
        };
        assert!(!of(0.21, 10, Some(0.2)) && of(0.5, 100, Some(0.2)));
        assert!(!of(0.14, 1000, None) && of(0.3, 1000, None));
        assert!(!AttackTrials::default().into_yield("test", String::new(), None).is_above());
    }

    #[test]
    fn yield_mean_hides_no_group_or_trial() {
        let of = |each: bool| {
            let mut trials = AttackTrials::default();
            (0..2_000).for_each(|_| trials.add_to_group("sound", 0.01, 0.0));
            (0..100).for_each(|_| trials.add_to_group("raw", 0.9, 0.0));
            let found = trials.into_yield("test", String::new(), Some(0.2));
            if each { found.judge_each_trial() } else { found }
        };
        let found = of(false);
        assert!(found.rate < 0.2 && found.is_above() && found.is_above_share(0.5) && !found.is_above_share(0.95));
        assert_eq!(found.worst_group.as_ref().map(|group| group.group.as_str()), Some("raw"));
        assert!((found.share_above - 100.0 / 2_100.0).abs() < 1e-12 && found.worst_decile > 0.4);
        let mut one = AttackTrials::default();
        (0..1_000).for_each(|_| one.add(0.2, 0.0));
        assert!(!one.clone().into_yield("test", String::new(), Some(0.2)).judge_each_trial().is_above());
        one.add(0.25, 0.0);
        let found = one.into_yield("test", String::new(), Some(0.2));
        assert!(!found.is_above() && found.judge_each_trial().is_above(), "one line below its crowd");
    }

    #[test]
    fn group_yield_is_compared_with_chance_of_group() {
        for leaking in ["a", "z"] {
            let mut trials = AttackTrials::default();
            (0..100).for_each(|_| trials.add_to_group("m", 1.0, 1.0));
            (0..100).for_each(|_| trials.add_to_group(leaking, 1.0, 0.5));
            let found = trials.into_yield("test", String::new(), Some(0.2)).allow_chance();
            assert_eq!(found.worst_group.as_ref().map(|group| group.group.as_str()), Some(leaking));
            assert!(found.is_above(), "{found:?}");
        }
    }

    #[test]
    fn single_trial_is_not_above_chance() {
        let of = |right: f64, n: usize| {
            let mut trials = AttackTrials::default();
            (0..n).for_each(|_| trials.add(right, 0.0));
            trials.into_yield("test", String::new(), None).is_above_chance()
        };
        assert!(!of(0.0, 1) && !of(0.0, 0) && !of(0.0, 200) && of(0.5, 200));
    }

    /// 1.5 × chance would exceed 1.
    #[test]
    fn high_chance_does_not_allow_rate_of_one() {
        let of = |right: f64, chance: f64| {
            let mut trials = AttackTrials::default();
            (0..1_000).for_each(|_| trials.add(right, chance));
            trials.into_yield("test", String::new(), Some(0.2)).allow_chance().is_above()
        };
        assert!(of(1.0, 0.8) && of(0.97, 0.7) && !of(0.85, 0.8) && !of(1.0, 1.0));
        assert!(of(0.8, 0.4) && !of(0.58, 0.4) && !of(0.19, 0.01));
    }

    #[test]
    fn chance_raises_bound_only_if_allowed() {
        let of = |right: f64, chance: f64| {
            let mut trials = AttackTrials::default();
            (0..10_000).for_each(|_| trials.add(right, chance));
            trials.into_yield("test", String::new(), Some(0.2))
        };
        // The chance rate grows with the leak.
        assert!(of(0.244, 0.19).is_above() && !of(0.244, 0.19).allow_chance().is_above());
        assert!(!of(0.2, 0.0).is_above() && !of(0.9, 0.9).measured_only().is_above());
    }
}
