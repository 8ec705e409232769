//! Share of the variance that guesses explain, with its interval and the share that chance and the promise allow.
//!
//! A guess for a person tells something about every member of the set behind it. The chance level is what it tells of the other
//! members: the share c of the variance that members of a set have in common. A mean of m members that are alike to that degree
//! explains c + (1 − c)/m of a member's variance (G3 of docs/guarantees.md), so an attack that finds more has told members apart.

use crate::evaluation::attack::trials::{GroupYield, Judgement, Yield};
use std::collections::{BTreeMap, BTreeSet};

/// A guess of a person's value or level, and the truth.
#[derive(Clone, Copy, Debug)]
pub struct Guess {
    pub person: u32,
    pub guess: f64,
    pub truth: f64,
    /// Mean of the truth over the other members of the person's sets; none where no other is known.
    pub others: Option<f64>,
    /// Members of the set among whom the person hides.
    pub members: usize,
}

/// Guesses by channel.
pub type Guesses = BTreeMap<String, Vec<Guess>>;

/// Guesses of one channel as correlation, its number of people, chance and permitted share.
struct Fit {
    correlation: f64,
    people: usize,
    guesses: usize,
    chance: f64,
    bound: f64,
}

/// People below which a correlation says nothing.
const LEAST_PEOPLE: usize = 4;

/// The yield of guesses: a mean over channels, and each channel as a group. `multiple` · 1/m is permitted above chance.
pub fn explained(attack: &'static str, given: String, guesses: &Guesses, multiple: f64, judged: Judgement) -> Yield {
    let fits: Vec<(&String, Fit)> =
        guesses.iter().filter_map(|(channel, of_channel)| Some((channel, fit(of_channel, multiple)?))).collect();
    let total: f64 = fits.iter().map(|(_, fit)| fit.people as f64).sum::<f64>().max(1.0);
    let mean = |of: &dyn Fn(&Fit) -> f64| fits.iter().map(|(_, fit)| of(fit) * fit.people as f64).sum::<f64>() / total;
    let groups: Vec<GroupYield> = fits
        .iter()
        .map(|(channel, fit)| GroupYield {
            group: (*channel).clone(),
            trials: fit.guesses as u64,
            rate: share(fit.correlation),
            interval: interval(fit.correlation, fit.people),
            chance: fit.chance,
            bound: Some(fit.bound),
        })
        .collect();
    let intervals = [0, 1].map(|end| mean(&|fit| interval(fit.correlation, fit.people)[end]));
    let (mut rates, tenth) = (groups.iter().map(|group| group.rate).collect::<Vec<f64>>(), groups.len().div_ceil(10));
    rates.sort_unstable_by(|a, b| b.total_cmp(a));
    let found = Yield {
        attack,
        given,
        trials: fits.iter().map(|(_, fit)| fit.guesses as u64).sum(),
        rate: mean(&|fit| share(fit.correlation)),
        interval: if fits.is_empty() { [0.0, 1.0] } else { intervals },
        chance: mean(&|fit| fit.chance),
        worst_group: None,
        worst_decile: rates[..tenth].iter().sum::<f64>() / tenth.max(1) as f64,
        share_above: 0.0,
        bound: (!fits.is_empty()).then(|| mean(&|fit| fit.bound)),
        judged,
        groups,
    };
    found.judged_by(judged)
}

/// Share of the variance: guesses that point the wrong way explain nothing.
fn share(correlation: f64) -> f64 {
    correlation.max(0.0).powi(2)
}

/// The 95 % interval of a share of the variance over `people` independent people (Fisher's transformation of the correlation).
fn interval(correlation: f64, people: usize) -> [f64; 2] {
    let half = 1.96 / (people.saturating_sub(3).max(1) as f64).sqrt();
    let z = correlation.clamp(-0.999_999, 0.999_999).atanh();
    [share((z - half).tanh()), share((z + half).tanh())]
}

fn fit(guesses: &[Guess], multiple: f64) -> Option<Fit> {
    let people = guesses.iter().map(|guess| guess.person).collect::<BTreeSet<u32>>().len();
    let n = guesses.len() as f64;
    let mean = |of: &dyn Fn(&Guess) -> f64| guesses.iter().map(of).sum::<f64>() / n;
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
    // A guess that says nothing is right by this much in a sample.
    let luck = 1.0 / (people as f64 - 1.0);
    let common = common.clamp(0.0, 1.0);
    let told = mean(&|guess| (multiple / guess.members.max(1) as f64).min(1.0)).max(luck);
    let above = |share: f64| common + (1.0 - common) * share;
    Some(Fit { correlation, people, guesses: guesses.len(), chance: above(luck), bound: above(told) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::values::digest::mix;

    fn noise(seed: u64) -> f64 {
        (0..12).map(|part| (mix(seed * 12 + part) >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
    }

    /// Means of sets of ten explain a tenth, and are not above what is permitted; means that weigh one person more are.
    #[test]
    fn mean_of_ten_explains_a_tenth() {
        let truth: Vec<f64> = (0..2_000).map(noise).collect();
        let guesses = |own: f64| -> Guesses {
            let of = |person: usize| {
                let set = person / 10 * 10..person / 10 * 10 + 10;
                let sum: f64 = truth[set].iter().sum();
                let (others, guess) = ((sum - truth[person]) / 9.0, (sum + own * truth[person]) / 10.0);
                Guess { person: person as u32, guess, truth: truth[person], others: Some(others), members: 10 }
            };
            BTreeMap::from([("s".to_owned(), (0..truth.len()).map(of).collect())])
        };
        let fair = explained("test", String::new(), &guesses(0.0), 1.0, Judgement::Mean);
        assert!((fair.rate - 0.1).abs() < 0.03 && fair.chance < 0.02 && !fair.is_above(), "{fair:?}");
        let weighted = explained("test", String::new(), &guesses(3.0), 1.0, Judgement::Mean);
        assert!(weighted.rate > 0.3 && weighted.is_above(), "{weighted:?}");
    }

    /// Members who are alike are told by the mean of the others: no finding.
    #[test]
    fn members_who_are_alike_raise_the_chance_level() {
        let of = |person: u32| {
            let common = 3.0 * noise(u64::from(person / 10) + 9_000);
            let truth = common + noise(u64::from(person));
            Guess { person, guess: common, truth, others: Some(common), members: 10 }
        };
        let guesses = BTreeMap::from([("s".to_owned(), (0..600).map(of).collect())]);
        let found = explained("test", String::new(), &guesses, 1.0, Judgement::Mean);
        assert!(found.rate > 0.8 && found.chance > 0.75 && !found.is_above(), "{found:?}");
    }
}
