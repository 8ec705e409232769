//! Simpler releases of the same values, for comparison.

use super::panel::{FillMode, Panel, PublishedSetMean, SignalChannel};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};

struct BaselineRelease<'a> {
    panel: &'a Panel,
    numbers: BTreeMap<Vec<u32>, u32>,
    sets: Vec<Vec<u32>>,
}

impl BaselineRelease<'_> {
    fn set_number(&mut self, mut members: Vec<u32>) -> u32 {
        members.sort_unstable();
        let next = self.sets.len() as u32;
        *self.numbers.entry(members).or_insert_with_key(|members| {
            self.sets.push(members.clone());
            next
        })
    }

    fn build_panel(
        mut self,
        fill: FillMode,
        rows: impl Fn(&mut Self, &SignalChannel) -> Vec<(u32, u32, u32)>,
    ) -> Panel {
        let bare = Panel { channels: Vec::new(), sets: Vec::new(), fill, ..*self.panel };
        let mut channels = Vec::new();
        for channel in &self.panel.channels {
            let rows = rows(&mut self, channel);
            let sum = |&(bucket, stream, set): &(u32, u32, u32)| {
                let members = &self.sets[set as usize];
                let total: f64 = members.iter().map(|person| bare.contribution(channel, *person, bucket)).sum();
                PublishedSetMean { bucket, stream, set, mean: total / members.len() as f64, quartiles: None, step: 0.0 }
            };
            channels.push(SignalChannel { rows: rows.iter().map(sum).collect(), ..channel.clone() });
        }
        Panel { channels, sets: self.sets, ..bare }
    }
}

fn present_by_bucket(channel: &SignalChannel) -> BTreeMap<u32, Vec<u32>> {
    let mut present: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (person, values) in (0_u32..).zip(&channel.values) {
        values.iter().for_each(|(bucket, _)| present.entry(*bucket).or_default().push(person));
    }
    present
}

/// Releases means over at least a crowd of present subjects.
#[must_use]
pub fn plain_means(panel: &Panel) -> Panel {
    let everybody: BTreeSet<u32> = (0..panel.people as u32).collect();
    means_of_present(panel, &|_| BTreeMap::from([(0, everybody.clone())]))
}

/// Releases means over at least a crowd of a cohort's present members.
#[must_use]
pub fn cohort_means(panel: &Panel) -> Panel {
    means_of_present(panel, &|channel| {
        let mut cohorts: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for row in &channel.rows {
            cohorts.entry(row.stream).or_default().extend(panel.members(row));
        }
        cohorts
    })
}

fn means_of_present(panel: &Panel, cohorts: &dyn Fn(&SignalChannel) -> BTreeMap<u32, BTreeSet<u32>>) -> Panel {
    let baseline = BaselineRelease { panel, numbers: BTreeMap::new(), sets: Vec::new() };
    baseline.build_panel(FillMode::None, |baseline, channel| {
        let (mut rows, present) = (Vec::new(), present_by_bucket(channel));
        for (stream, members) in cohorts(channel) {
            for (bucket, people) in &present {
                let people: Vec<u32> = people.iter().copied().filter(|person| members.contains(person)).collect();
                if people.len() >= panel.crowd {
                    rows.push((*bucket, stream, baseline.set_number(people)));
                }
            }
        }
        rows
    })
}

/// Releases means over filled cohorts of about `size`, redrawn every `buckets` from subjects with values.
#[must_use]
pub fn redrawn_cohorts(panel: &Panel, size: usize, buckets: u32, seed: u64) -> Panel {
    let baseline = BaselineRelease { panel, numbers: BTreeMap::new(), sets: Vec::new() };
    baseline.build_panel(FillMode::Carried, |baseline, channel| {
        let mut rows = Vec::new();
        let mut draws: BTreeMap<u32, BTreeMap<u32, Vec<u32>>> = BTreeMap::new();
        for (bucket, people) in present_by_bucket(channel) {
            draws.entry(bucket / buckets).or_default().insert(bucket, people);
        }
        for (draw, by_bucket) in draws {
            let mut people: Vec<u32> = by_bucket.values().flatten().copied().collect();
            people.sort_unstable();
            people.dedup();
            // Channels of a timeline share cohorts.
            people.shuffle(&mut ChaCha8Rng::seed_from_u64(seed ^ u64::from(draw)));
            let cohorts = (people.len() / size).max(1);
            for cohort in 0..cohorts {
                let part = &people[cohort * people.len() / cohorts..(cohort + 1) * people.len() / cohorts];
                let set = baseline.set_number(part.to_vec());
                let enough = |of_bucket: &Vec<u32>| {
                    part.iter().filter(|person| of_bucket.binary_search(person).is_ok()).count() >= panel.crowd
                };
                let buckets = by_bucket.iter().filter(|(_, of_bucket)| enough(of_bucket));
                // Each draw starts new streams.
                let stream = draw << 16 | cohort as u32;
                rows.extend(buckets.map(|(bucket, _)| (*bucket, stream, set)));
            }
        }
        rows
    })
}
