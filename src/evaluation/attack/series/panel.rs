//! Input of the attacks: published sums of sets of people over time, beside the values of each person.

use crate::anonymity::series::CARRY;

/// How a member without a value in a bucket contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Every member of a set has a value.
    None,
    /// The carried value of docs/methods.md §13, and 0 before the first value.
    Carried,
    /// The carried value, and before the first value that one: a job over files knows it.
    Foreseen,
}

/// A published mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum {
    /// Number of the bucket in its channel.
    pub bucket: u32,
    /// Cohort, or another name under which rows follow each other over time.
    pub stream: u32,
    /// Contributor set, as a position in [`Panel::sets`].
    pub set: u32,
    /// Mean over the set, as published.
    pub mean: f64,
    /// Quartiles of the set, as published.
    pub quartiles: Option<[f64; 3]>,
    /// Rounding step of the mean and the quartiles; 0 where they are not rounded.
    pub step: f64,
}

/// One signal of one series, and of a cycle one slot.
#[derive(Clone, Debug, Default)]
pub struct Channel {
    /// Series and signal in reports.
    pub name: String,
    /// Channels of one number have the same buckets: a bucket of one is the same time in another.
    pub timeline: usize,
    /// By person: buckets with a value, ascending.
    pub values: Vec<Vec<(u32, f64)>>,
    /// Published rows.
    pub rows: Vec<Sum>,
    /// Lowest and highest possible value.
    pub range: (f64, f64),
    /// A member without a value contributes the mean of the earlier ones, as in moments, instead of the carried value.
    pub carries_mean: bool,
}

/// A release of series, beside its original.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Number of people; a person is an index below it.
    pub people: usize,
    /// `privacy.k` and `privacy.colluders` together: the size of the smallest group that the release promises to tell of.
    pub crowd: usize,
    /// Contributor sets: people, ascending.
    pub sets: Vec<Vec<u32>>,
    /// All channels.
    pub channels: Vec<Channel>,
    /// Fill of all rows.
    pub fill: Fill,
}

impl Channel {
    /// Value of a person in a bucket.
    pub fn value(&self, person: u32, bucket: u32) -> Option<f64> {
        let values = &self.values[person as usize];
        values.binary_search_by_key(&bucket, |(at, _)| *at).ok().map(|at| values[at].1)
    }

    /// Level of a person: the mean of their values; none with fewer than [`LEAST_VALUES`].
    pub fn level(&self, person: u32) -> Option<f64> {
        let values = &self.values[person as usize];
        (values.len() >= LEAST_VALUES).then(|| values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64)
    }

    /// Position of the first value of each person among the values of all, and the number of all values.
    pub fn offsets(&self) -> Vec<usize> {
        let mut offsets = vec![0];
        for values in &self.values {
            offsets.push(offsets[offsets.len() - 1] + values.len());
        }
        offsets
    }

    /// Mean over all people by bucket.
    pub fn bucket_means(&self) -> Vec<f64> {
        let mut sums: Vec<(f64, f64)> = Vec::new();
        for &(bucket, value) in self.values.iter().flatten() {
            let at = bucket as usize;
            sums.resize(sums.len().max(at + 1), (0.0, 0.0));
            sums[at] = (sums[at].0 + value, sums[at].1 + 1.0);
        }
        sums.into_iter().map(|(sum, count)| sum / f64::max(count, 1.0)).collect()
    }
}

/// Values that a person needs for a level.
pub const LEAST_VALUES: usize = 4;

impl Panel {
    /// The sum of a member in a bucket as weights of their values: (position in the list of the values, weight). Everything but the
    /// values themselves is known to whoever knows when each person sent.
    pub fn weights(&self, channel: &Channel, person: u32, bucket: u32, found: &mut Vec<(usize, f64)>) {
        found.clear();
        let values = &channel.values[person as usize];
        let past = values.partition_point(|(at, _)| *at < bucket);
        if values.get(past).is_some_and(|(at, _)| *at == bucket) {
            found.push((past, 1.0));
            return;
        }
        match (self.fill, past) {
            (Fill::None, _) | (Fill::Carried, 0) => {}
            (Fill::Foreseen, 0) => found.extend((!values.is_empty()).then_some((0, 1.0))),
            (Fill::Carried | Fill::Foreseen, past) => {
                let missed = i32::try_from(bucket - values[past - 1].0).unwrap_or(i32::MAX);
                let kept = if channel.carries_mean { 0.0 } else { CARRY.powi(missed) };
                let share = (1.0 - kept) / past as f64;
                found.extend((0..past).map(|at| (at, share)));
                found[past - 1].1 += kept;
            }
        }
    }

    /// What a member contributes to a bucket: the value, or the carried one.
    pub fn contribution(&self, channel: &Channel, person: u32, bucket: u32) -> f64 {
        let mut weights = Vec::new();
        self.weights(channel, person, bucket, &mut weights);
        let values = &channel.values[person as usize];
        weights.into_iter().map(|(at, weight)| weight * values[at].1).sum()
    }

    /// Members of a row.
    pub fn members(&self, row: &Sum) -> &[u32] {
        &self.sets[row.set as usize]
    }
}
