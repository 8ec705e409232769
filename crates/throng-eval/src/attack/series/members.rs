//! Attribution of a history to a member (G2 of docs/guarantees.md), and cohort membership.

use super::panel::{Panel, PublishedSetMean, SignalChannel};
use crate::attack::trials::{AttackTrials, AttackYield};
use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};

const KNOWN_DAYS: [usize; 3] = [7, 30, 60];

fn rows_by_stream(channel: &SignalChannel) -> BTreeMap<u32, Vec<PublishedSetMean>> {
    let mut streams: BTreeMap<u32, Vec<PublishedSetMean>> = BTreeMap::new();
    for row in &channel.rows {
        streams.entry(row.stream).or_default().push(*row);
    }
    streams.values_mut().for_each(|rows| rows.sort_unstable_by_key(|row| row.bucket));
    streams
}

/// Attributes an unnamed history of seven days equally to all subjects in its sets.
pub fn attribution(panel: &Panel, targets: usize, dice: &mut ChaCha8Rng) -> AttackYield {
    let mut trials = AttackTrials::default();
    let each = (targets / panel.channels.len().max(1)).max(20);
    for channel in &panel.channels {
        let streams: Vec<Vec<PublishedSetMean>> = rows_by_stream(channel).into_values().collect();
        for _ in 0..if streams.is_empty() { 0 } else { each } {
            let rows = &streams[dice.random_range(0..streams.len())];
            let row = rows[dice.random_range(0..rows.len())];
            let members = panel.members(&row);
            if members.is_empty() {
                continue;
            }
            let target = members[dice.random_range(0..members.len())];
            let is_known = |row: &&PublishedSetMean| {
                channel.value(target, row.bucket).is_some() && panel.members(row).binary_search(&target).is_ok()
            };
            let mut days: Vec<&PublishedSetMean> = rows.iter().filter(is_known).collect();
            days.shuffle(dice);
            days.truncate(KNOWN_DAYS[0]);
            if days.is_empty() {
                continue;
            }
            let in_all = |person: &&u32| days.iter().all(|row| panel.members(row).binary_search(person).is_ok());
            let candidates = members.iter().filter(in_all).count();
            let everybody: BTreeSet<u32> = rows.iter().flat_map(|row| panel.members(row)).copied().collect();
            trials.add_to_group(&channel.name, 1.0 / candidates.max(1) as f64, 1.0 / everybody.len() as f64);
        }
    }
    let given = "the members, and a history of 7 days".to_owned();
    trials.into_yield("series: whose history", given, Some(1.0 / panel.crowd.max(1) as f64)).judge_each_trial()
}

/// Guesses the stream whose means best follow known values, without the common trend. Chance: the largest stream's
/// share.
pub fn membership(panel: &Panel, targets: usize, dice: &mut ChaCha8Rng) -> Vec<AttackYield> {
    let mut yields = Vec::new();
    for days in KNOWN_DAYS {
        let mut trials = AttackTrials::default();
        let each = (targets / panel.channels.len().max(1)).max(20);
        for channel in &panel.channels {
            find_members(panel, channel, days, each, &mut trials, dice);
        }
        yields
            .push(trials.into_yield("series: membership", format!("own values of {days} days"), None).measured_only());
    }
    yields
}

fn find_members(
    panel: &Panel,
    channel: &SignalChannel,
    days: usize,
    targets: usize,
    trials: &mut AttackTrials,
    dice: &mut ChaCha8Rng,
) {
    let streams = rows_by_stream(channel);
    let mut by_bucket: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
    let mut members: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for row in streams.values().flatten() {
        by_bucket.entry(row.bucket).or_default().push((row.stream, row.mean));
        members.entry(row.stream).or_default().extend(panel.members(row));
    }
    let sizes: Vec<usize> = members.values().map(BTreeSet::len).collect();
    let chance = sizes.iter().max().map_or(1.0, |largest| *largest as f64 / sizes.iter().sum::<usize>() as f64);
    let mut people: Vec<u32> = members.values().flatten().copied().collect::<BTreeSet<u32>>().into_iter().collect();
    people.shuffle(dice);
    for person in people.into_iter().take(if streams.len() < 2 { 0 } else { targets }) {
        let mut known: Vec<(u32, f64)> = channel.values[person as usize]
            .iter()
            .copied()
            .filter(|(bucket, _)| by_bucket.get(bucket).is_some_and(|rows| rows.len() > 1))
            .collect();
        known.shuffle(dice);
        known.truncate(days);
        if known.len() < days {
            continue;
        }
        // Log-likelihood under membership: deviation products minus half the stream's square.
        let mut scores: BTreeMap<u32, f64> = BTreeMap::new();
        for (bucket, value) in known {
            let rows = &by_bucket[&bucket];
            let center = rows.iter().map(|(_, mean)| mean).sum::<f64>() / rows.len() as f64;
            for (stream, mean) in rows {
                let deviation = mean - center;
                *scores.entry(*stream).or_default() += (value - center) * deviation - deviation * deviation / 2.0;
            }
        }
        let best = scores.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(stream, _)| stream);
        let right = best.is_some_and(|best| members[&best].contains(&person));
        trials.add_to_group(&channel.name, f64::from(u8::from(right)), chance);
    }
}
