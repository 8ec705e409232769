//! Input of the attacks: published sums of sets of subjects over time, and the values of each subject.

use throng_core::series::CARRIED_SHARE;

/// Contribution of a member without a value in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillMode {
    /// Every member of a set has a value.
    None,
    /// The carried value of docs/internals/methods.md §13, and 0 before the first value.
    Carried,
    /// The carried value, and the first value before it occurs: a job over files knows it.
    Foreseen,
}

/// Published mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedSetMean {
    /// Number of the bucket in its channel.
    pub bucket: u32,
    /// Cohort, or another key of rows that follow each other over time.
    pub stream: u32,
    /// Contributor set, as a position in [`Panel::sets`].
    pub set: u32,
    /// Mean over the set, as published.
    pub mean: f64,
    /// Quartiles of the set, as published.
    pub quartiles: Option<[f64; 3]>,
    /// Rounding step of the mean and the quartiles; 0 if they are not rounded.
    pub step: f64,
}

/// One signal of one series, and one slot of its cycle.
#[derive(Clone, Debug, Default)]
pub struct SignalChannel {
    /// Name of series and signal in reports.
    pub name: String,
    /// Channels with the same number have the same buckets in time.
    pub timeline: usize,
    /// By subject: buckets with a value, ascending.
    pub values: Vec<Vec<(u32, f64)>>,
    /// Published rows.
    pub rows: Vec<PublishedSetMean>,
    /// Lowest and highest possible value.
    pub range: (f64, f64),
    /// True if a member without a value contributes the mean of its earlier values, as in moments, instead of the
    /// carried value.
    pub carries_mean: bool,
}

/// Release of series, with its original values.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Number of subjects; a subject is an index below it.
    pub people: usize,
    /// Sum of `privacy.k` and `privacy.colluders`: the smallest group about which the release may give information.
    pub crowd: usize,
    /// Contributor sets: subjects, ascending.
    pub sets: Vec<Vec<u32>>,
    /// All channels.
    pub channels: Vec<SignalChannel>,
    /// Filling of all rows.
    pub fill: FillMode,
}

impl SignalChannel {
    /// Returns the value of a subject in a bucket.
    pub fn value(&self, person: u32, bucket: u32) -> Option<f64> {
        let values = &self.values[person as usize];
        values.binary_search_by_key(&bucket, |(at, _)| *at).ok().map(|at| values[at].1)
    }

    /// Returns the level of a subject: the mean of its values; none with fewer than `LEAST_VALUES`.
    pub fn level(&self, person: u32) -> Option<f64> {
        let values = &self.values[person as usize];
        (values.len() >= LEAST_VALUES).then(|| values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64)
    }

    /// Returns the position of the first value of each subject among the values of all, and the number of all values.
    pub fn offsets(&self) -> Vec<usize> {
        let mut offsets = vec![0];
        for values in &self.values {
            offsets.push(offsets[offsets.len() - 1] + values.len());
        }
        offsets
    }

    /// Returns the mean over all subjects by bucket.
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

/// Minimum number of values of a subject for a level.
pub const LEAST_VALUES: usize = 4;

impl Panel {
    /// Writes the contribution of a member to a bucket as weights of its values: (position in the list of the values,
    /// weight). The weights depend only on the presence of the subject.
    pub fn weights(&self, channel: &SignalChannel, person: u32, bucket: u32, found: &mut Vec<(usize, f64)>) {
        found.clear();
        let values = &channel.values[person as usize];
        let past = values.partition_point(|(at, _)| *at < bucket);
        if values.get(past).is_some_and(|(at, _)| *at == bucket) {
            found.push((past, 1.0));
            return;
        }
        match (self.fill, past) {
            (FillMode::None, _) | (FillMode::Carried, 0) => {}
            (FillMode::Foreseen, 0) => found.extend((!values.is_empty()).then_some((0, 1.0))),
            (FillMode::Carried | FillMode::Foreseen, past) => {
                let missed = i32::try_from(bucket - values[past - 1].0).unwrap_or(i32::MAX);
                let kept = if channel.carries_mean { 0.0 } else { CARRIED_SHARE.powi(missed) };
                let share = (1.0 - kept) / past as f64;
                found.extend((0..past).map(|at| (at, share)));
                found[past - 1].1 += kept;
            }
        }
    }

    /// Returns the contribution of a member to a bucket: the value, or the carried one.
    pub fn contribution(&self, channel: &SignalChannel, person: u32, bucket: u32) -> f64 {
        let mut weights = Vec::new();
        self.weights(channel, person, bucket, &mut weights);
        let values = &channel.values[person as usize];
        weights.into_iter().map(|(at, weight)| weight * values[at].1).sum()
    }

    /// Returns the members of a row.
    pub fn members(&self, row: &PublishedSetMean) -> &[u32] {
        &self.sets[row.set as usize]
    }
}
