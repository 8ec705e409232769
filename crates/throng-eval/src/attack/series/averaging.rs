//! Averaging attack (G3 of docs/guarantees.md): guesses a value as the mean of unknown members.

use super::explained_variance::{ChannelGuesses, SubjectGuess, explained_yield};
use super::panel::{Panel, PublishedSetMean};
use crate::attack::trials::{AttackYield, YieldCriterion};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

const MOST_ROWS: usize = 400;

/// Attacks with no known member, then with all but a crowd.
pub fn run(panel: &Panel, dice: &mut ChaCha8Rng) -> Vec<AttackYield> {
    let crowd = format!("R² of a value, all but {} members known", panel.crowd);
    let cases = [("R² of a value, no member known".to_owned(), usize::MAX), (crowd, panel.crowd)];
    cases
        .into_iter()
        .map(|(given, unknown)| {
            explained_yield("series: averaging", given, &guesses(panel, unknown, dice), 1.0, YieldCriterion::Mean)
        })
        .collect()
}

fn guesses(panel: &Panel, most_unknown: usize, dice: &mut ChaCha8Rng) -> ChannelGuesses {
    let mut guesses = ChannelGuesses::new();
    for channel in &panel.channels {
        let means = channel.bucket_means();
        let of_channel = guesses.entry(channel.name.clone()).or_default();
        let mut rows: Vec<&PublishedSetMean> = channel.rows.iter().collect();
        rows.shuffle(dice);
        for row in rows.into_iter().take(MOST_ROWS) {
            let mut members = panel.members(row).to_vec();
            let center = means.get(row.bucket as usize).copied().unwrap_or(0.0);
            members.shuffle(dice);
            let (unknown, known) = members.split_at(most_unknown.min(members.len()));
            let known_sum: f64 = known.iter().map(|person| panel.contribution(channel, *person, row.bucket)).sum();
            let guess = (members.len() as f64 * row.mean - known_sum) / unknown.len() as f64 - center;
            let contributions: Vec<f64> =
                unknown.iter().map(|person| panel.contribution(channel, *person, row.bucket)).collect();
            let sum: f64 = contributions.iter().sum();
            for (&person, own) in unknown.iter().zip(&contributions) {
                let Some(value) = channel.value(person, row.bucket) else { continue };
                let others = (unknown.len() > 1).then(|| (sum - own) / (unknown.len() - 1) as f64 - center);
                of_channel.push(SubjectGuess { person, guess, truth: value - center, others, members: unknown.len() });
            }
        }
    }
    guesses
}
