//! Whose history is whose (G2 of docs/guarantees.md), and in which cohort somebody is whose values are known.

use super::panel::{Channel, Panel, Sum};
use crate::evaluation::attack::trials::{Trials, Yield};
use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};

/// Days of a history that an attacker knows.
const KNOWN_DAYS: [usize; 3] = [7, 30, 60];

/// Rows of a channel by stream, in the order of their buckets.
fn streams(channel: &Channel) -> BTreeMap<u32, Vec<Sum>> {
    let mut streams: BTreeMap<u32, Vec<Sum>> = BTreeMap::new();
    for row in &channel.rows {
        streams.entry(row.stream).or_default().push(*row);
    }
    streams.values_mut().for_each(|rows| rows.sort_unstable_by_key(|row| row.bucket));
    streams
}

/// The members of a stream and an unnamed history of seven days of one of them are known: whoever is in the sets of all these days is as
/// likely as the others.
pub fn attribution(panel: &Panel, targets: usize, dice: &mut ChaCha8Rng) -> Yield {
    let mut trials = Trials::default();
    let each = (targets / panel.channels.len().max(1)).max(20);
    for channel in &panel.channels {
        let streams: Vec<Vec<Sum>> = streams(channel).into_values().collect();
        for _ in 0..if streams.is_empty() { 0 } else { each } {
            let rows = &streams[dice.random_range(0..streams.len())];
            let row = rows[dice.random_range(0..rows.len())];
            let members = panel.members(&row);
            if members.is_empty() {
                continue;
            }
            let target = members[dice.random_range(0..members.len())];
            let is_known = |row: &&Sum| {
                channel.value(target, row.bucket).is_some() && panel.members(row).binary_search(&target).is_ok()
            };
            let mut days: Vec<&Sum> = rows.iter().filter(is_known).collect();
            days.shuffle(dice);
            days.truncate(KNOWN_DAYS[0]);
            if days.is_empty() {
                continue;
            }
            let in_all = |person: &&u32| days.iter().all(|row| panel.members(row).binary_search(person).is_ok());
            let candidates = members.iter().filter(in_all).count();
            let everybody: BTreeSet<u32> = rows.iter().flat_map(|row| panel.members(row)).copied().collect();
            trials.add_to(&channel.name, 1.0 / candidates.max(1) as f64, 1.0 / everybody.len() as f64);
        }
    }
    let given = "the members, and a history of 7 days".to_owned();
    trials.sum_up("series: whose history", given, Some(1.0 / panel.crowd.max(1) as f64)).of_each_trial()
}

/// A person's own values of some days are known: the stream whose means follow them best, less what all streams share. Chance is the
/// largest stream's share of the people.
pub fn membership(panel: &Panel, targets: usize, dice: &mut ChaCha8Rng) -> Vec<Yield> {
    let mut yields = Vec::new();
    for days in KNOWN_DAYS {
        let mut trials = Trials::default();
        let each = (targets / panel.channels.len().max(1)).max(20);
        for channel in &panel.channels {
            find_members(panel, channel, days, each, &mut trials, dice);
        }
        yields.push(trials.sum_up("series: membership", format!("own values of {days} days"), None).measured_only());
    }
    yields
}

fn find_members(
    panel: &Panel,
    channel: &Channel,
    days: usize,
    targets: usize,
    trials: &mut Trials,
    dice: &mut ChaCha8Rng,
) {
    let streams = streams(channel);
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
        // Sum of products of deviations from the mean of all streams, less half of the stream's own square: the likelihood of the means
        // given that the person is a member.
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
        trials.add_to(&channel.name, f64::from(u8::from(right)), chance);
    }
}
