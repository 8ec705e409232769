//! Input of the series attacks.

use throng_core::series::CARRIED_SHARE;

/// Contribution of a member without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillMode {
    /// Every member has a value.
    None,
    /// Carried value (docs/internals/methods.md §13), initially 0.
    Carried,
    /// Carried value; before it the first value, as in jobs over files.
    Foreseen,
}

/// Published mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedSetMean {
    /// Bucket number in its channel.
    pub bucket: u32,
    /// Cohort, or another key of successive rows.
    pub stream: u32,
    /// Contributor set: position in [`Panel::sets`].
    pub set: u32,
    /// Published mean of the set.
    pub mean: f64,
    /// Published quartiles of the set.
    pub quartiles: Option<[f64; 3]>,
    /// Rounding step of mean and quartiles; 0 if unrounded.
    pub step: f64,
}

/// Signal of a series in one cycle slot.
#[derive(Clone, Debug, Default)]
pub struct SignalChannel {
    /// Name in reports.
    pub name: String,
    /// Channels with equal numbers share buckets.
    pub timeline: usize,
    /// By subject: buckets with values, ascending.
    pub values: Vec<Vec<(u32, f64)>>,
    /// Published rows.
    pub rows: Vec<PublishedSetMean>,
    /// Value range.
    pub range: (f64, f64),
    /// True if the mean of earlier values fills gaps, as in moments.
    pub carries_mean: bool,
}

/// Release of series, with its original values.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Number of subjects; indices are below it.
    pub people: usize,
    /// `privacy.k` + `privacy.colluders`.
    pub crowd: usize,
    /// Contributor sets: subjects, ascending.
    pub sets: Vec<Vec<u32>>,
    /// All channels.
    pub channels: Vec<SignalChannel>,
    /// Fill mode of all rows.
    pub fill: FillMode,
}

impl SignalChannel {
    /// Returns a subject's value in a bucket.
    pub fn value(&self, person: u32, bucket: u32) -> Option<f64> {
        let values = &self.values[person as usize];
        values.binary_search_by_key(&bucket, |(at, _)| *at).ok().map(|at| values[at].1)
    }

    /// Returns a subject's mean over at least `LEAST_VALUES` values.
    pub fn level(&self, person: u32) -> Option<f64> {
        let values = &self.values[person as usize];
        (values.len() >= LEAST_VALUES).then(|| values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64)
    }

    /// Returns each subject's first value position, and the total.
    pub fn offsets(&self) -> Vec<usize> {
        let mut offsets = vec![0];
        for values in &self.values {
            offsets.push(offsets[offsets.len() - 1] + values.len());
        }
        offsets
    }

    /// Returns the mean over subjects by bucket.
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

/// Minimum values of a subject for a level.
pub const LEAST_VALUES: usize = 4;

impl Panel {
    /// Writes a contribution as (value position, weight), which depends only on presence.
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

    /// Returns a member's own or carried value.
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
