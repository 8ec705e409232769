//! Hits and misses, and what they say.

use serde::Serialize;
use std::collections::BTreeMap;

/// Promise that a yield is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Every single trial stays at or below the bound, and so do all means.
    EachTrial,
    /// The mean, and that of every group, stays at or below the bound.
    Mean,
    /// The same, or at or below what chance allows ([`allowed_by_chance`]): what most people have is found by chance alone.
    MeanOrChance,
    /// Nothing is promised: the mean, and that of every group, stays at or below what chance allows ([`allowed_by_chance`]).
    Chance,
    /// Nothing is promised or judged: measured and published (docs/methods.md §14.3).
    Open,
}

/// The trials of one group, or of two that were joined.
#[derive(Clone, Debug, Serialize)]
pub struct GroupYield {
    /// Name of the group.
    pub group: String,
    /// Targets that were tried.
    pub trials: u64,
    /// Mean probability of being right, in [0, 1].
    pub rate: f64,
    /// The 95 % interval of the rate.
    pub interval: [f64; 2],
    /// What guessing without the release gives.
    pub chance: f64,
    /// What is promised of this group, where it differs from group to group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
}

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
    /// The group whose interval begins highest above its own limit; none where trials belong to no group.
    pub worst_group: Option<GroupYield>,
    /// All groups: each has its own chance, and is judged by it.
    #[serde(skip)]
    pub groups: Vec<GroupYield>,
    /// Mean probability of being right in the tenth of the trials in which it is highest.
    pub worst_decile: f64,
    /// Share of the trials that are right more probably than the bound; 0 without a bound.
    pub share_above: f64,
    /// What the guarantee promises the rate to stay below; none where it promises nothing.
    pub bound: Option<f64>,
    /// How the bound is judged.
    pub judged: Judgement,
}

/// Rounding of probabilities, which is no finding.
const EPSILON: f64 = 1e-9;

/// The rate that what guessing gives allows: 1.5 × chance, and at most half of the way from chance to 1, which is less where most guesses are right.
fn allowed_by_chance(chance: f64) -> f64 {
    (1.5 * chance).min(f64::midpoint(1.0, chance))
}

impl Yield {
    /// The same, where nothing is promised or judged.
    #[must_use]
    pub fn measured_only(self) -> Self {
        self.judged_by(Judgement::Open)
    }

    /// The same, where every single trial is promised to stay below the bound.
    #[must_use]
    pub fn of_each_trial(self) -> Self {
        self.judged_by(Judgement::EachTrial)
    }

    /// The same, where what most people have may be found by chance more often than the bound says.
    #[must_use]
    pub fn or_by_chance(self) -> Self {
        let judged = if self.bound.is_some() { Judgement::MeanOrChance } else { Judgement::Chance };
        self.judged_by(judged)
    }

    /// The same, judged in another way.
    #[must_use]
    pub fn judged_by(mut self, judged: Judgement) -> Self {
        self.judged = judged;
        let beyond = |group: &GroupYield| {
            let limit = self.limit(group.bound, group.chance);
            group.interval[0] - if limit.is_finite() { limit } else { 0.0 }
        };
        let worst = self.groups.iter().reduce(|worst, next| if beyond(next) > beyond(worst) { next } else { worst });
        self.worst_group = worst.cloned();
        self
    }

    /// What a rate is promised to stay below, by a bound of its own and by what guessing gives.
    fn limit(&self, bound: Option<f64>, chance: f64) -> f64 {
        match (self.judged, bound.or(self.bound)) {
            (Judgement::Open, _) => f64::INFINITY,
            (Judgement::EachTrial | Judgement::Mean, Some(bound)) => bound + EPSILON,
            (Judgement::MeanOrChance, Some(bound)) => bound.max(allowed_by_chance(chance)) + EPSILON,
            (_, _) => allowed_by_chance(chance) + EPSILON,
        }
    }

    /// Distance of the lower bound of the interval from chance; negative where chance lies in the interval.
    #[must_use]
    pub fn above_chance(&self) -> f64 {
        self.interval[0] - self.chance
    }

    /// Whether nothing is promised or judged.
    pub fn is_open(&self) -> bool {
        self.judged == Judgement::Open
    }

    /// Whether a promise is broken: the whole interval of the mean, or of a group, lies above what is promised, or where every trial is
    /// promised to stay below the bound, any is above.
    pub fn is_above(&self) -> bool {
        self.is_above_limit(&|bound, chance| self.limit(bound, chance))
            || self.judged == Judgement::EachTrial && self.share_above > 0.0
    }

    /// Whether the whole interval of the mean, or of a group, lies above a share.
    pub fn is_above_share(&self, most: f64) -> bool {
        !self.is_open() && self.is_above_limit(&|_, _| most)
    }

    /// `limit` by the bound of a group and by what guessing gives.
    fn is_above_limit(&self, limit: &dyn Fn(Option<f64>, f64) -> f64) -> bool {
        let mean = self.trials > 0 && self.interval[0] > limit(None, self.chance);
        mean || self.groups.iter().any(|group| group.interval[0] > limit(group.bound, group.chance))
    }
}

/// Probabilities of being right, one a trial.
#[derive(Clone, Debug, Default)]
pub struct Trials {
    right: Vec<f64>,
    chance: f64,
    /// By group: trials, and sums of the probabilities of being right and of chance.
    groups: BTreeMap<String, (u64, f64, f64)>,
}

impl Trials {
    /// Adds a trial: how probably the attack, and a guess without the release, are right.
    pub fn add(&mut self, right: f64, chance: f64) {
        self.right.push(right);
        self.chance += chance;
    }

    /// Adds a trial of a group.
    pub fn add_to(&mut self, group: &str, right: f64, chance: f64) {
        self.add(right, chance);
        if !self.groups.contains_key(group) {
            self.groups.insert(group.to_owned(), (0, 0.0, 0.0));
        }
        if let Some(sums) = self.groups.get_mut(group) {
            *sums = (sums.0 + 1, sums.1 + right, sums.2 + chance);
        }
    }

    /// The mean probability of being right; 0 without a trial.
    pub fn rate(&self) -> f64 {
        self.right.iter().sum::<f64>() / self.right.len().max(1) as f64
    }

    /// The yield of these trials, judged by its mean.
    #[must_use]
    pub fn sum_up(mut self, attack: &'static str, given: String, bound: Option<f64>) -> Yield {
        let (trials, rate) = (self.right.len() as u64, self.rate());
        let number = trials.max(1) as f64;
        let groups = self.groups.into_iter().map(|(group, (trials, right, chance))| {
            let (number, rate) = (trials as f64, right / trials as f64);
            GroupYield { group, trials, rate, interval: wilson(rate, number), chance: chance / number, bound: None }
        });
        let groups: Vec<GroupYield> = groups.collect();
        let above = self.right.iter().filter(|right| bound.is_some_and(|bound| **right > bound + EPSILON)).count();
        self.right.sort_unstable_by(|a, b| b.total_cmp(a));
        let tenth = self.right.len().div_ceil(10);
        let judged = if bound.is_some() { Judgement::Mean } else { Judgement::Chance };
        let found = Yield {
            attack,
            given,
            trials,
            rate,
            interval: if trials == 0 { [0.0, 1.0] } else { wilson(rate, number) },
            chance: self.chance / number,
            worst_group: None,
            groups,
            worst_decile: self.right[..tenth].iter().sum::<f64>() / tenth.max(1) as f64,
            share_above: above as f64 / number,
            bound,
            judged,
        };
        found.judged_by(judged)
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

    #[test]
    fn one_group_and_one_trial_are_not_hidden_by_a_mean() {
        let of = |each: bool| {
            let mut trials = Trials::default();
            (0..2_000).for_each(|_| trials.add_to("sound", 0.01, 0.0));
            (0..100).for_each(|_| trials.add_to("raw", 0.9, 0.0));
            let found = trials.sum_up("test", String::new(), Some(0.2));
            if each { found.of_each_trial() } else { found }
        };
        let found = of(false);
        assert!(found.rate < 0.2 && found.is_above() && found.is_above_share(0.5) && !found.is_above_share(0.95));
        assert_eq!(found.worst_group.as_ref().map(|group| group.group.as_str()), Some("raw"));
        assert!((found.share_above - 100.0 / 2_100.0).abs() < 1e-12 && found.worst_decile > 0.4);
        let mut one = Trials::default();
        (0..1_000).for_each(|_| one.add(0.2, 0.0));
        assert!(!one.clone().sum_up("test", String::new(), Some(0.2)).of_each_trial().is_above());
        one.add(0.25, 0.0);
        let found = one.sum_up("test", String::new(), Some(0.2));
        assert!(!found.is_above() && found.of_each_trial().is_above(), "one line below its crowd");
    }

    /// A group with a high rate by chance does not hide a group with a high rate by attack.
    #[test]
    fn each_group_is_judged_by_its_own_chance() {
        for leaking in ["a", "z"] {
            let mut trials = Trials::default();
            (0..100).for_each(|_| trials.add_to("m", 1.0, 1.0));
            (0..100).for_each(|_| trials.add_to(leaking, 1.0, 0.5));
            let found = trials.sum_up("test", String::new(), Some(0.2)).or_by_chance();
            assert_eq!(found.worst_group.as_ref().map(|group| group.group.as_str()), Some(leaking));
            assert!(found.is_above(), "{found:?}");
        }
    }

    /// Where most guesses are right, 1.5 × chance is more than anybody can be right.
    #[test]
    fn what_most_people_have_is_no_excuse_for_finding_everybody() {
        let of = |right: f64, chance: f64| {
            let mut trials = Trials::default();
            (0..1_000).for_each(|_| trials.add(right, chance));
            trials.sum_up("test", String::new(), Some(0.2)).or_by_chance().is_above()
        };
        assert!(of(1.0, 0.8) && of(0.97, 0.7) && !of(0.85, 0.8) && !of(1.0, 1.0));
        assert!(of(0.8, 0.4) && !of(0.58, 0.4) && !of(0.19, 0.01));
    }

    #[test]
    fn chance_raises_no_bound_of_its_own() {
        let of = |right: f64, chance: f64| {
            let mut trials = Trials::default();
            (0..10_000).for_each(|_| trials.add(right, chance));
            trials.sum_up("test", String::new(), Some(0.2))
        };
        // An attack whose chance grows with what leaks.
        assert!(of(0.244, 0.19).is_above() && !of(0.244, 0.19).or_by_chance().is_above());
        assert!(!of(0.2, 0.0).is_above() && !of(0.9, 0.9).measured_only().is_above());
    }
}
