//! Conversion of a run's release to attack input.

use super::panel::{FillMode, Panel, PublishedSetMean, SignalChannel};
use crate::series::SeriesEvidence;
use std::collections::BTreeMap;
use throng_core::series::{AllSeriesTerms, MomentStatistic, RowStatistic, SlotCycle};

struct ChannelLayout<'a> {
    terms: &'a AllSeriesTerms,
    firsts: Vec<usize>,
    first_buckets: BTreeMap<usize, i64>,
    channels: Vec<SignalChannel>,
}

impl<'a> ChannelLayout<'a> {
    /// One channel per signal and slot; with moments one per signal, with epochs as buckets.
    fn from_terms(evidence: &'a SeriesEvidence) -> Self {
        let terms = &*evidence.terms;
        let mut channels: Vec<SignalChannel> = Vec::with_capacity(terms.channels());
        let mut first_buckets: BTreeMap<usize, i64> = BTreeMap::new();
        for (series, bucket) in evidence.contributions.keys() {
            first_buckets.entry(*series).or_insert(*bucket);
        }
        let mut firsts = Vec::new();
        for series in &terms.series {
            firsts.push(channels.len());
            if series.noise.is_some() {
                continue;
            }
            let slots = series.cycle.map_or(1, SlotCycle::slots);
            for at in 0..slots * series.signals.len() {
                let (slot, signal) = (at / series.signals.len(), &series.signals[at % series.signals.len()]);
                let slot_name = series.cycle.map_or_else(String::new, |_| format!(" {slot}"));
                channels.push(SignalChannel {
                    name: format!("{} {}{slot_name}", series.name, signal.name),
                    timeline: channels.len() - at % series.signals.len(),
                    values: vec![Vec::new(); evidence.people.len()],
                    rows: Vec::new(),
                    range: signal.range,
                    carries_mean: series.moments.is_some(),
                });
            }
        }
        Self { terms, firsts, first_buckets, channels }
    }

    fn channel_and_bucket(&self, series: usize, bucket: i64, signal: usize) -> (usize, u32) {
        let of = &self.terms.series[series];
        let first = self.first_buckets.get(&series).copied().unwrap_or(bucket);
        let (channel, windows) = match &of.moments {
            Some(moments) => (signal, (bucket - moments.epoch(first)) / moments.every_ms),
            None => (of.channel(bucket, signal), of.windows_between(first, bucket)),
        };
        (self.firsts[series] + channel, u32::try_from(windows).unwrap_or(u32::MAX))
    }

    /// Means per bucket, or over an epoch's rows.
    fn add_values(&mut self, evidence: &SeriesEvidence) {
        for ((series, bucket), people) in &evidence.contributions {
            let terms = &self.terms.series[*series];
            // Skip noisy rows: ε bounds any attack.
            if terms.noise.is_some() || terms.moments.is_some() {
                continue;
            }
            for (person, contribution) in people {
                for (signal, value) in contribution.values.iter().enumerate() {
                    if let Some(value) = value {
                        let (channel, bucket) = self.channel_and_bucket(*series, *bucket, signal);
                        self.channels[channel].values[*person].push((bucket, *value));
                    }
                }
            }
        }
        for (series, of) in self.terms.series.iter().enumerate() {
            for ((epoch, person), rows) in evidence.rows_of_epochs(series) {
                for signal in 0..of.signals.len() {
                    let (channel, epoch) = self.channel_and_bucket(series, epoch, signal);
                    let mean = rows.iter().map(|row| row[signal]).sum::<f64>() / rows.len() as f64;
                    self.channels[channel].values[person].push((epoch, mean));
                }
            }
        }
    }
}

impl Panel {
    /// Builds the panel from contributor rows.
    #[must_use]
    pub fn from_evidence(evidence: &SeriesEvidence) -> Self {
        let terms = &evidence.terms;
        let mut layout = ChannelLayout::from_terms(evidence);
        layout.add_values(evidence);
        let mut numbers: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let mut sets: Vec<Vec<u32>> = Vec::new();
        let mut streams: BTreeMap<(Option<&str>, Option<&[String]>), u32> = BTreeMap::new();
        for row in evidence.rows.iter().chain(&evidence.moments).filter(|row| !row.sets.is_empty()) {
            let mut members: Vec<u32> = evidence.members_of_row(row).map(|person| person as u32).collect();
            members.sort_unstable();
            let next = sets.len() as u32;
            let set = *numbers.entry(members).or_insert_with_key(|members| {
                sets.push(members.clone());
                next
            });
            let (mean, quartiles, step) = match row.statistic {
                RowStatistic::Mean(statistic) => (statistic.mean, statistic.quartiles, statistic.rounding_step(row.n)),
                RowStatistic::Moment(MomentStatistic { mean: Some(mean), .. }) => (mean, None, 0.0),
                // Shares and covariances contribute only sets.
                RowStatistic::Moment(_) | RowStatistic::Bin { .. } | RowStatistic::Noisy(_) => continue,
            };
            let next = streams.len() as u32;
            let stream = *streams.entry((row.cohort.as_deref(), row.stratum.as_deref())).or_insert(next);
            let (channel, bucket) = layout.channel_and_bucket(row.series, row.bucket, row.signal);
            layout.channels[channel].rows.push(PublishedSetMean { bucket, stream, set, mean, quartiles, step });
        }
        let fill = if terms.cohorts.is_batch { FillMode::Foreseen } else { FillMode::Carried };
        Self { people: evidence.people.len(), crowd: terms.cohorts.crowd, sets, channels: layout.channels, fill }
    }
}
