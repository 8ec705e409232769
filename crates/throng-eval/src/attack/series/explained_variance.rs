//! Explained share of the variance.
//!
//! Let c be the variance share common to members of a set. The mean of m members explains c + (1 − c)/m (G3 of
//! docs/guarantees.md); more distinguishes members.

use crate::attack::trials::{AttackYield, GroupYield, YieldCriterion};
use std::collections::{BTreeMap, BTreeSet};

/// Guess and truth.
#[derive(Clone, Copy, Debug)]
pub struct SubjectGuess {
    pub person: u32,
    pub guess: f64,
    pub truth: f64,
    /// Mean truth of the other set members, if known.
    pub others: Option<f64>,
    /// Size of the anonymity set.
    pub members: usize,
}

/// Guesses by channel.
pub type ChannelGuesses = BTreeMap<String, Vec<SubjectGuess>>;

struct ChannelFit {
    correlation: f64,
    people: usize,
    guesses: usize,
    chance: f64,
    bound: f64,
}

const LEAST_PEOPLE: usize = 4;

/// Returns the mean over channels, grouped by channel. The bound is `multiple` · 1/m above chance.
pub fn explained_yield(
    attack: &'static str,
    given: String,
    guesses: &ChannelGuesses,
    multiple: f64,
    judged: YieldCriterion,
) -> AttackYield {
    let fits: Vec<(&String, ChannelFit)> = guesses
        .iter()
        .filter_map(|(channel, of_channel)| Some((channel, fit_channel(of_channel, multiple)?)))
        .collect();
    let total: f64 = fits.iter().map(|(_, fit)| fit.people as f64).sum::<f64>().max(1.0);
    let mean =
        |of: &dyn Fn(&ChannelFit) -> f64| fits.iter().map(|(_, fit)| of(fit) * fit.people as f64).sum::<f64>() / total;
    let groups: Vec<GroupYield> = fits
        .iter()
        .map(|(channel, fit)| GroupYield {
            group: (*channel).clone(),
            trials: fit.guesses as u64,
            rate: variance_share(fit.correlation),
            interval: fisher_interval(fit.correlation, fit.people),
            chance: fit.chance,
            bound: Some(fit.bound),
        })
        .collect();
    let intervals = [0, 1].map(|end| mean(&|fit| fisher_interval(fit.correlation, fit.people)[end]));
    let (mut rates, tenth) = (groups.iter().map(|group| group.rate).collect::<Vec<f64>>(), groups.len().div_ceil(10));
    rates.sort_unstable_by(|a, b| b.total_cmp(a));
    let found = AttackYield {
        attack,
        given,
        trials: fits.iter().map(|(_, fit)| fit.guesses as u64).sum(),
        rate: mean(&|fit| variance_share(fit.correlation)),
        interval: if fits.is_empty() { [0.0, 1.0] } else { intervals },
        chance: mean(&|fit| fit.chance),
        worst_group: None,
        worst_decile: rates[..tenth].iter().sum::<f64>() / tenth.max(1) as f64,
        share_above: 0.0,
        bound: (!fits.is_empty()).then(|| mean(&|fit| fit.bound)),
        judged,
        groups,
    };
    found.with_criterion(judged)
}

/// A negative correlation explains nothing.
fn variance_share(correlation: f64) -> f64 {
    correlation.max(0.0).powi(2)
}

/// 95 % interval by Fisher's transformation.
fn fisher_interval(correlation: f64, people: usize) -> [f64; 2] {
    let half = 1.96 / (people.saturating_sub(3).max(1) as f64).sqrt();
    let z = correlation.clamp(-0.999_999, 0.999_999).atanh();
    [variance_share((z - half).tanh()), variance_share((z + half).tanh())]
}

fn fit_channel(guesses: &[SubjectGuess], multiple: f64) -> Option<ChannelFit> {
    let people = guesses.iter().map(|guess| guess.person).collect::<BTreeSet<u32>>().len();
    let n = guesses.len() as f64;
    let mean = |of: &dyn Fn(&SubjectGuess) -> f64| guesses.iter().map(of).sum::<f64>() / n;
    let (center, middle) = (mean(&|guess| guess.truth), mean(&|guess| guess.guess));
    let variance = mean(&|guess| (guess.truth - center).powi(2));
    let spread = mean(&|guess| (guess.guess - middle).powi(2));
    if people < LEAST_PEOPLE || variance <= 0.0 {
        return None;
    }
    let covariance = mean(&|guess| (guess.truth - center) * (guess.guess - middle));
    let correlation = if spread > 0.0 { covariance / (variance * spread).sqrt() } else { 0.0 };
    let common =
        mean(&|guess| guess.others.map_or(0.0, |others| (guess.truth - center) * (others - center))) / variance;
    // Expected share of a random guess.
    let luck = 1.0 / (people as f64 - 1.0);
    let common = common.clamp(0.0, 1.0);
    let told = mean(&|guess| (multiple / guess.members.max(1) as f64).min(1.0)).max(luck);
    let above = |share: f64| common + (1.0 - common) * share;
    Some(ChannelFit { correlation, people, guesses: guesses.len(), chance: above(luck), bound: above(told) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::values::digest::mix;

    fn noise(seed: u64) -> f64 {
        (0..12).map(|part| (mix(seed * 12 + part) >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
    }

    #[test]
    fn mean_of_ten_explains_one_tenth() {
        let truth: Vec<f64> = (0..2_000).map(noise).collect();
        let guesses = |own: f64| -> ChannelGuesses {
            let of = |person: usize| {
                let set = person / 10 * 10..person / 10 * 10 + 10;
                let sum: f64 = truth[set].iter().sum();
                let (others, guess) = ((sum - truth[person]) / 9.0, (sum + own * truth[person]) / 10.0);
                SubjectGuess { person: person as u32, guess, truth: truth[person], others: Some(others), members: 10 }
            };
            BTreeMap::from([("s".to_owned(), (0..truth.len()).map(of).collect())])
        };
        let fair = explained_yield("test", String::new(), &guesses(0.0), 1.0, YieldCriterion::Mean);
        assert!((fair.rate - 0.1).abs() < 0.03 && fair.chance < 0.02 && !fair.is_above(), "{fair:?}");
        let weighted = explained_yield("test", String::new(), &guesses(3.0), 1.0, YieldCriterion::Mean);
        assert!(weighted.rate > 0.3 && weighted.is_above(), "{weighted:?}");
    }

    #[test]
    fn similar_members_raise_chance_level() {
        let of = |person: u32| {
            let common = 3.0 * noise(u64::from(person / 10) + 9_000);
            let truth = common + noise(u64::from(person));
            SubjectGuess { person, guess: common, truth, others: Some(common), members: 10 }
        };
        let guesses = BTreeMap::from([("s".to_owned(), (0..600).map(of).collect())]);
        let found = explained_yield("test", String::new(), &guesses, 1.0, YieldCriterion::Mean);
        assert!(found.rate > 0.8 && found.chance > 0.75 && !found.is_above(), "{found:?}");
    }
}
