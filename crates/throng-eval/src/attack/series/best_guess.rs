//! Best linear guess of levels and values from all rows: kriging by conjugate gradients. Known variances and
//! correlations make this attacker stronger than a real one.

use super::panel::{Panel, SignalChannel};
use std::collections::BTreeMap;

/// Further channels are skipped.
const MOST_VALUES: usize = 4_000_000;
const MOST_WEIGHTS: usize = 40_000_000;
/// Time is quadratic.
const MOST_CHANNELS: usize = 40;
const ITERATIONS: usize = 300;
const TOLERANCE: f64 = 1e-6;
/// Prevents singularity.
const NUGGET: f64 = 1e-6;

/// Guesses of one channel, without bucket effects.
pub struct BestGuess {
    /// Channel position in the panel.
    pub channel: usize,
    /// Level by subject; the global mean without rows.
    pub levels: Vec<f64>,
    /// Values by subject, in channel order.
    pub values: Vec<Vec<f64>>,
}

struct ChannelSystem<'a> {
    channel: &'a SignalChannel,
    at: usize,
    offsets: Vec<usize>,
    /// Index in the timeline, bucket and subject.
    places: Vec<usize>,
    buckets: Vec<u32>,
    people: Vec<u32>,
    /// By row: value indices with weights, published minus expected sum, rounding variance.
    rows: Vec<Vec<(u32, f64)>>,
    observed: Vec<f64>,
    rounding: Vec<f64>,
    mean: f64,
    scale: f64,
    shared: f64,
}

struct ChannelCovariances {
    levels: Vec<Vec<f64>>,
    noise: Vec<Vec<f64>>,
    timelines: Vec<usize>,
}

/// Guesses all channels that fit into memory.
pub fn best_guesses(panel: &Panel) -> Vec<BestGuess> {
    let mut left = MOST_VALUES;
    let mut fitting: Vec<usize> = Vec::new();
    for (at, channel) in panel.channels.iter().enumerate().filter(|(_, channel)| !channel.rows.is_empty()) {
        let values = channel.values.iter().map(Vec::len).sum::<usize>();
        if values > left {
            break;
        }
        left -= values;
        fitting.push(at);
    }
    fitting.chunks(MOST_CHANNELS).flat_map(|channels| guess_channels(panel, channels)).collect()
}

fn guess_channels(panel: &Panel, channels: &[usize]) -> Vec<BestGuess> {
    let mut parts: Vec<ChannelSystem<'_>> = Vec::new();
    let mut places: BTreeMap<usize, BTreeMap<(u32, u32), usize>> = BTreeMap::new();
    let mut weights = 0;
    for &at in channels {
        if weights > MOST_WEIGHTS {
            break;
        }
        let channel = &panel.channels[at];
        if let Some(part) = channel_system(panel, at, channel, places.entry(channel.timeline).or_default()) {
            weights += part.rows.iter().map(Vec::len).sum::<usize>();
            parts.push(part);
        }
    }
    if parts.is_empty() {
        return Vec::new();
    }
    let sizes: BTreeMap<usize, usize> = places.into_iter().map(|(timeline, places)| (timeline, places.len())).collect();
    let prior = estimate_covariances(panel, &mut parts, &sizes);
    let system = RowCovariance { panel, parts: &parts, prior: &prior, sizes: &sizes };
    let solution = system.solve();
    system.guesses(&solution)
}

/// In units of the standard deviation; none if constant.
fn channel_system<'a>(
    panel: &Panel,
    at: usize,
    channel: &'a SignalChannel,
    places: &mut BTreeMap<(u32, u32), usize>,
) -> Option<ChannelSystem<'a>> {
    let all: Vec<f64> = channel.values.iter().flatten().map(|(_, value)| *value).collect();
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    let scale = (all.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / all.len().max(1) as f64).sqrt();
    if scale.is_nan() || scale <= 0.0 {
        return None;
    }
    let offsets = channel.offsets();
    let (mut of_values, mut buckets, mut people) = (Vec::new(), Vec::new(), Vec::new());
    for (person, values) in (0_u32..).zip(&channel.values) {
        for (bucket, _) in values {
            let next = places.len();
            of_values.push(*places.entry((person, *bucket)).or_insert(next));
            buckets.push(*bucket);
            people.push(person);
        }
    }
    let (mut rows, mut observed, mut rounding, mut own) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for row in &channel.rows {
        let mut form = Vec::new();
        for &person in panel.members(row) {
            panel.weights(channel, person, row.bucket, &mut own);
            let offset = offsets[person as usize];
            form.extend(own.iter().map(|(at, weight)| ((offset + at) as u32, *weight)));
        }
        let n = panel.members(row).len() as f64;
        let expected = form.iter().map(|(_, weight)| weight * mean).sum::<f64>();
        observed.push((n * row.mean - expected) / scale);
        rounding.push((n * row.step / scale).powi(2) / 12.0 + NUGGET * n);
        rows.push(form);
    }
    let places = of_values;
    Some(ChannelSystem {
        channel,
        at,
        offsets,
        places,
        buckets,
        people,
        rows,
        observed,
        rounding,
        mean,
        scale,
        shared: 0.0,
    })
}

/// Products of complete columns are positive semidefinite.
fn estimate_covariances(
    panel: &Panel,
    parts: &mut [ChannelSystem<'_>],
    sizes: &BTreeMap<usize, usize>,
) -> ChannelCovariances {
    let (mut levels, mut noises) = (Vec::new(), Vec::new());
    for part in parts.iter_mut() {
        let standard = |value: f64| (value - part.mean) / part.scale;
        let mut level = vec![0.0; panel.people];
        let (mut squares, mut people) = (0.0, 0.0);
        for (person, values) in part.channel.values.iter().enumerate().filter(|(_, values)| !values.is_empty()) {
            level[person] = values.iter().map(|(_, value)| standard(*value)).sum::<f64>() / values.len() as f64;
            (squares, people) = (squares + level[person].powi(2), people + 1.0);
        }
        let mut of_bucket: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for (person, values) in part.channel.values.iter().enumerate() {
            for (bucket, value) in values {
                let sum = of_bucket.entry(*bucket).or_default();
                *sum = (sum.0 + standard(*value) - level[person], sum.1 + 1.0);
            }
        }
        let shift = |bucket: u32| of_bucket[&bucket].0 / of_bucket[&bucket].1;
        let mut noise = vec![0.0; sizes[&part.channel.timeline]];
        for (at, value) in part.channel.values.iter().flatten().enumerate() {
            noise[part.places[at]] = standard(value.1) - level[part.people[at] as usize] - shift(part.buckets[at]);
        }
        let within = noise.iter().map(|x| x * x).sum::<f64>() / part.places.len() as f64;
        let shared = of_bucket.values().map(|(sum, n)| (sum / n).powi(2) - within / n).sum::<f64>();
        part.shared = (shared / of_bucket.len() as f64).max(0.0);
        // The variance of subject means includes noise.
        let mean_values = part.places.len() as f64 / f64::max(people, 1.0);
        let between = (squares / f64::max(people, 1.0) - within / mean_values).max(0.01);
        levels.push(scale_column(level, between));
        noises.push(scale_column(noise, within.max(1e-6)));
    }
    let timelines: Vec<usize> = parts.iter().map(|part| part.channel.timeline).collect();
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let gram = |columns: &[Vec<f64>], is_related: &dyn Fn(usize, usize) -> bool| -> Vec<Vec<f64>> {
        let cell = |a: usize, b: usize| if is_related(a, b) { product(&columns[a], &columns[b]) } else { 0.0 };
        (0..columns.len()).map(|a| (0..columns.len()).map(|b| cell(a, b)).collect()).collect()
    };
    ChannelCovariances {
        levels: gram(&levels, &|_, _| true),
        noise: gram(&noises, &|a, b| timelines[a] == timelines[b]),
        timelines,
    }
}

fn scale_column(mut column: Vec<f64>, variance: f64) -> Vec<f64> {
    let length = column.iter().map(|x| x * x).sum::<f64>().sqrt();
    column.iter_mut().for_each(|x| *x *= variance.sqrt() / length.max(1e-12));
    column
}

/// Row covariance as a product of sparse factors.
struct RowCovariance<'a> {
    panel: &'a Panel,
    parts: &'a [ChannelSystem<'a>],
    prior: &'a ChannelCovariances,
    sizes: &'a BTreeMap<usize, usize>,
}

/// By channel, then row, subject or value.
type ChannelVector = Vec<Vec<f64>>;

impl RowCovariance<'_> {
    /// Covariances of a row combination with levels, values and bucket effects.
    fn covariances_with(&self, combination: &ChannelVector) -> (ChannelVector, ChannelVector, ChannelVector) {
        let by_value: ChannelVector = self
            .parts
            .iter()
            .zip(combination)
            .map(|(part, combination)| {
                let mut values = vec![0.0; part.places.len()];
                for (row, factor) in part.rows.iter().zip(combination) {
                    row.iter().for_each(|(at, weight)| values[*at as usize] += weight * factor);
                }
                values
            })
            .collect();
        let mut levels: ChannelVector = vec![vec![0.0; self.panel.people]; self.parts.len()];
        let mut places: Vec<Vec<f64>> =
            self.parts.iter().map(|part| vec![0.0; self.sizes[&part.channel.timeline]]).collect();
        for (from, (part, values)) in self.parts.iter().zip(&by_value).enumerate() {
            let mut of_person = vec![0.0; self.panel.people];
            part.people.iter().zip(values).for_each(|(person, value)| of_person[*person as usize] += value);
            for to in 0..self.parts.len() {
                let relation = self.prior.levels[to][from];
                levels[to].iter_mut().zip(&of_person).for_each(|(level, sum)| *level += relation * sum);
                if self.prior.timelines[to] == self.prior.timelines[from] {
                    let relation = self.prior.noise[to][from];
                    let noise = &mut places[to];
                    part.places.iter().zip(values).for_each(|(place, value)| noise[*place] += relation * value);
                }
            }
        }
        let (mut own, mut shared) = (Vec::new(), Vec::new());
        for ((part, values), (level, noise)) in self.parts.iter().zip(&by_value).zip(levels.iter().zip(&places)) {
            let last = part.buckets.iter().max().map_or(0, |last| *last as usize + 1);
            let mut of_bucket = vec![0.0; last];
            part.buckets.iter().zip(values).for_each(|(bucket, value)| of_bucket[*bucket as usize] += value);
            let at = |at: usize| level[part.people[at] as usize] + noise[part.places[at]];
            own.push((0..values.len()).map(at).collect());
            shared.push(part.buckets.iter().map(|bucket| part.shared * of_bucket[*bucket as usize]).collect());
        }
        (levels, own, shared)
    }

    fn multiply(&self, combination: &ChannelVector) -> ChannelVector {
        let (_, own, shared) = self.covariances_with(combination);
        let parts = self.parts.iter().zip(combination).zip(own.iter().zip(&shared));
        parts
            .map(|((part, combination), (own, shared))| {
                let value = |at: u32| own[at as usize] + shared[at as usize];
                let row = |row: &Vec<(u32, f64)>| row.iter().map(|(at, weight)| weight * value(*at)).sum::<f64>();
                let nuggets = part.rounding.iter().zip(combination);
                part.rows.iter().zip(nuggets).map(|(of_row, (nugget, factor))| row(of_row) + nugget * factor).collect()
            })
            .collect()
    }

    fn solve(&self) -> ChannelVector {
        let dot = |a: &ChannelVector, b: &ChannelVector| -> f64 {
            a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a * b).sum::<f64>()
        };
        let mut residual: ChannelVector = self.parts.iter().map(|part| part.observed.clone()).collect();
        let mut solution: ChannelVector = residual.iter().map(|rows| vec![0.0; rows.len()]).collect();
        let mut direction = residual.clone();
        let mut size = dot(&residual, &residual);
        let enough = size * TOLERANCE * TOLERANCE;
        for _ in 0..ITERATIONS {
            if size <= enough {
                break;
            }
            let image = self.multiply(&direction);
            let step = size / dot(&direction, &image);
            add_scaled(&mut solution, step, &direction);
            add_scaled(&mut residual, -step, &image);
            let next = dot(&residual, &residual);
            let keep = next / size;
            direction.iter_mut().flatten().zip(residual.iter().flatten()).for_each(|(d, r)| *d = keep * *d + r);
            size = next;
        }
        solution
    }

    fn guesses(&self, solution: &ChannelVector) -> Vec<BestGuess> {
        let (levels, own, _) = self.covariances_with(solution);
        let mut guesses = Vec::new();
        for ((part, level), own) in self.parts.iter().zip(levels).zip(own) {
            let back = |x: f64| part.mean + part.scale * x;
            let values = part.offsets.windows(2).map(|ends| own[ends[0]..ends[1]].iter().map(|x| back(*x)).collect());
            guesses.push(BestGuess {
                channel: part.at,
                levels: level.into_iter().map(back).collect(),
                values: values.collect(),
            });
        }
        guesses
    }
}

fn add_scaled(to: &mut ChannelVector, factor: f64, what: &ChannelVector) {
    to.iter_mut().flatten().zip(what.iter().flatten()).for_each(|(to, what)| *to += factor * what);
}
