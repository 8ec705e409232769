//! Differencing attacks: adjacent rows, and the best combination of all rows.

use super::best_guess::{BestGuess, best_guesses};
use super::explained_variance::{ChannelGuesses, SubjectGuess, explained_yield};
use super::panel::{LEAST_VALUES, Panel, SignalChannel};
use crate::attack::trials::{AttackYield, YieldCriterion};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};

const VALUES_PER_SUBJECT: usize = 8;
const SILENT_BUCKETS: u32 = 7;

/// Runs all differencing attacks.
pub fn run(panel: &Panel, dice: &mut ChaCha8Rng) -> Vec<AttackYield> {
    let found = best_guesses(panel);
    let covered: Vec<RowMembership> =
        panel.channels.iter().map(|channel| RowMembership::from_channel(panel, channel)).collect();
    let mut yields = Vec::new();
    let moved = |channel: usize, person: u32| covered[channel].streams[person as usize].len() > 1;
    let stopped = |channel: usize, person: u32| has_stopped(&panel.channels[channel], person);
    let everybody = |_: usize, _: u32| true;
    // No guarantee joins the means of two cohorts.
    let cases: [(&str, &dyn Fn(usize, u32) -> bool, f64, YieldCriterion); 3] = [
        ("everything published", &everybody, 1.0, YieldCriterion::Mean),
        ("people who changed their cohort", &moved, 2.0, YieldCriterion::Open),
        ("people who stopped sending", &stopped, 1.0, YieldCriterion::Mean),
    ];
    for (given, is_case, multiple, judged) in cases {
        let guesses = level_guesses(panel, &found, &covered, is_case);
        let given = format!("R² of the level, {given}");
        yields.push(explained_yield("series: differencing", given, &guesses, multiple, judged));
    }
    for (given, is_before_gap) in [("any day", false), ("the last day before a gap", true)] {
        let guesses = value_guesses(panel, &found, &covered, is_before_gap, dice);
        let given = format!("R² of a value, {given}");
        yields.push(explained_yield("series: differencing", given, &guesses, 2.0, YieldCriterion::Open));
    }
    let (levels, values) = adjacent_row_guesses(panel, &covered);
    let given = "R² of the level, one member joins or leaves".to_owned();
    yields.push(explained_yield("series: neighbouring rows", given, &levels, 1.0, YieldCriterion::Mean));
    let given = "R² of a value, one member joins or leaves".to_owned();
    yields.push(explained_yield("series: neighbouring rows", given, &values, 2.0, YieldCriterion::Open));
    yields
}

struct RowMembership {
    /// By subject.
    streams: Vec<BTreeSet<u32>>,
    /// Smallest set by subject.
    sets: Vec<Option<u32>>,
}

impl RowMembership {
    fn from_channel(panel: &Panel, channel: &SignalChannel) -> Self {
        let mut covered = Self { streams: vec![BTreeSet::new(); panel.people], sets: vec![None; panel.people] };
        let pairs: BTreeSet<(u32, u32)> = channel.rows.iter().map(|row| (row.stream, row.set)).collect();
        for (stream, set) in pairs {
            for &person in &panel.sets[set as usize] {
                covered.streams[person as usize].insert(stream);
                let size = |set: u32| panel.sets[set as usize].len();
                let smallest = &mut covered.sets[person as usize];
                *smallest = Some(smallest.map_or(set, |known| if size(set) < size(known) { set } else { known }));
            }
        }
        covered
    }
}

fn mean_of_others(panel: &Panel, set: u32, person: u32, of: impl Fn(u32) -> Option<f64>) -> Option<f64> {
    let others: Vec<f64> =
        panel.sets[set as usize].iter().filter(|other| **other != person).filter_map(|other| of(*other)).collect();
    (!others.is_empty()).then(|| others.iter().sum::<f64>() / others.len() as f64)
}

fn has_stopped(channel: &SignalChannel, person: u32) -> bool {
    let last_row = channel.rows.iter().map(|row| row.bucket).max().unwrap_or(0);
    channel.values[person as usize].last().is_some_and(|(last, _)| last + SILENT_BUCKETS < last_row)
}

fn level_guesses(
    panel: &Panel,
    found: &[BestGuess],
    covered: &[RowMembership],
    is_case: &dyn Fn(usize, u32) -> bool,
) -> ChannelGuesses {
    let mut guesses = ChannelGuesses::new();
    for best in found {
        let channel = &panel.channels[best.channel];
        let of_channel = guesses.entry(channel.name.clone()).or_default();
        for (person, set) in (0_u32..).zip(&covered[best.channel].sets) {
            let (Some(set), Some(truth)) = (*set, channel.level(person)) else { continue };
            if is_case(best.channel, person) {
                let members = panel.sets[set as usize].len();
                let others = mean_of_others(panel, set, person, |other| channel.level(other));
                of_channel.push(SubjectGuess { person, guess: best.levels[person as usize], truth, others, members });
            }
        }
    }
    guesses
}

/// Guesses deviations from the bucket mean, without the common trend.
fn value_guesses(
    panel: &Panel,
    found: &[BestGuess],
    covered: &[RowMembership],
    is_before_gap: bool,
    dice: &mut ChaCha8Rng,
) -> ChannelGuesses {
    let mut guesses = ChannelGuesses::new();
    for best in found {
        let channel = &panel.channels[best.channel];
        let means = channel.bucket_means();
        let buckets: BTreeSet<u32> = channel.rows.iter().map(|row| row.bucket).collect();
        let of_channel = guesses.entry(channel.name.clone()).or_default();
        for (person, set) in (0_u32..).zip(&covered[best.channel].sets) {
            let Some(set) = *set else { continue };
            let own = &channel.values[person as usize];
            let ends = |at: &usize| own.get(at + 1).is_none_or(|(next, _)| *next > own[*at].0 + 1);
            let mut days: Vec<usize> =
                (0..own.len()).filter(|at| buckets.contains(&own[*at].0) && (!is_before_gap || ends(at))).collect();
            days.shuffle(dice);
            days.truncate(VALUES_PER_SUBJECT);
            for at in days {
                let bucket = own[at].0;
                let truth = own[at].1 - means[bucket as usize];
                let deviation = |other: u32| Some(channel.value(other, bucket)? - means[bucket as usize]);
                let others = mean_of_others(panel, set, person, deviation);
                let members = panel.sets[set as usize].len();
                of_channel.push(SubjectGuess {
                    person,
                    guess: best.values[person as usize][at],
                    truth,
                    others,
                    members,
                });
            }
        }
    }
    guesses
}

/// Uses adjacent rows that differ in one subject; levels are means over these events.
fn adjacent_row_guesses(panel: &Panel, covered: &[RowMembership]) -> (ChannelGuesses, ChannelGuesses) {
    let (mut of_levels, mut of_values) = (ChannelGuesses::new(), ChannelGuesses::new());
    for (channel, covered) in panel.channels.iter().zip(covered) {
        let mut rows: Vec<_> = channel.rows.iter().collect();
        rows.sort_unstable_by_key(|row| (row.stream, row.bucket));
        let mut events: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
        for pair in rows.windows(2).filter(|pair| pair[0].stream == pair[1].stream) {
            let present = pair
                .iter()
                .map(|row| panel.members(row).iter().copied().filter(|p| channel.value(*p, row.bucket).is_some()));
            let present: Vec<BTreeSet<u32>> = present.map(Iterator::collect).collect();
            let mut changed = present[0].symmetric_difference(&present[1]);
            let (Some(&person), None) = (changed.next(), changed.next()) else { continue };
            let with = usize::from(present[1].contains(&person));
            let sum = |at: usize| panel.members(pair[at]).len() as f64 * pair[at].mean;
            let value = channel.value(person, pair[with].bucket).unwrap_or(0.0);
            events.entry(person).or_default().push((sum(with) - sum(1 - with), value));
        }
        let levels = of_levels.entry(channel.name.clone()).or_default();
        let values = of_values.entry(channel.name.clone()).or_default();
        for (person, events) in events {
            let Some(set) = covered.sets[person as usize] else { continue };
            let members = panel.sets[set as usize].len();
            values.extend(events.iter().map(|&(guess, truth)| SubjectGuess {
                person,
                guess,
                truth,
                others: None,
                members,
            }));
            if let Some(truth) = channel.level(person).filter(|_| channel.values[person as usize].len() >= LEAST_VALUES)
            {
                let guess = events.iter().map(|(guess, _)| guess).sum::<f64>() / events.len() as f64;
                let others = mean_of_others(panel, set, person, |other| channel.level(other));
                levels.push(SubjectGuess { person, guess, truth, others, members });
            }
        }
    }
    (of_levels, of_values)
}
