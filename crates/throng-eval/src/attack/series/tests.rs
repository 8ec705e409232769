use super::*;
use crate::attack::series::baseline::{plain_means, redrawn_cohorts};
use throng_core::series::CARRIED_SHARE;
use throng_core::values::digest::mix;

const EFFORT: AttackEffort = AttackEffort { targets: 400, known_attributes: 4, seed: 7 };

fn normal(seed: u64) -> f64 {
    (0..12).map(|part| (mix(seed.wrapping_mul(12) + part) >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
}

/// A value is missing on one day in `gap`.
fn values(people: u32, days: u32, gap: u64, noise: f64) -> Panel {
    let signal = |number: u64| -> SignalChannel {
        let of_person = |person: u32| {
            let key = mix(u64::from(person)) ^ number;
            let level = 60.0 + 8.0 * normal(u64::from(person)) + 2.0 * normal(key);
            let is_present = |day: &u32| !mix(u64::from(person) << 20 | u64::from(*day)).is_multiple_of(gap);
            let value = |day: u32| (level + noise * normal(key ^ u64::from(day) << 32)).round();
            (0..days).filter(is_present).map(|day| (day, value(day))).collect()
        };
        let values = (0..people).map(of_person).collect();
        SignalChannel { name: format!("daily s{number}"), values, range: (0.0, 200.0), ..SignalChannel::default() }
    };
    Panel {
        people: people as usize,
        crowd: 5,
        sets: Vec::new(),
        channels: vec![signal(1), signal(2)],
        fill: FillMode::Foreseen,
    }
}

fn locked_cohorts(panel: &Panel, size: usize, step: f64) -> Panel {
    locked_cohorts_with(panel, size, step, 0)
}

/// Quartiles are means of order statistics within `reach`.
fn locked_cohorts_with(panel: &Panel, size: usize, step: f64, reach: usize) -> Panel {
    let sets: Vec<Vec<u32>> =
        (0..panel.people / size).map(|set| (set * size..(set + 1) * size).map(|p| p as u32).collect()).collect();
    let mut locked = Panel { sets, ..panel.clone() };
    for at in 0..locked.channels.len() {
        let channel = &locked.channels[at];
        let buckets = channel.values.iter().flatten().map(|(bucket, _)| *bucket).max().unwrap_or(0);
        let mut rows = Vec::new();
        for bucket in 0..=buckets {
            for (set, members) in (0_u32..).zip(&locked.sets) {
                if members.iter().filter(|person| channel.value(**person, bucket).is_some()).count() >= panel.crowd {
                    let mut values: Vec<f64> =
                        members.iter().map(|person| locked.contribution(channel, *person, bucket)).collect();
                    values.sort_by(f64::total_cmp);
                    let rounded = |value: f64| (value / step).round() * step;
                    let mean = rounded(values.iter().sum::<f64>() / members.len() as f64);
                    let near = |middle: usize| {
                        let window = &values[middle.saturating_sub(reach)..=(middle + reach).min(values.len() - 1)];
                        rounded(window.iter().sum::<f64>() / window.len() as f64)
                    };
                    let quartiles = [1, 2, 3].map(|quarter| near(quarter * (values.len() - 1) / 4));
                    rows.push(PublishedSetMean { bucket, stream: set, set, mean, quartiles: Some(quartiles), step });
                }
            }
        }
        locked.channels[at].rows = rows;
    }
    locked
}

fn find_yield<'a>(yields: &'a [AttackYield], attack: &str, given: &str) -> &'a AttackYield {
    let is_named = |found: &&AttackYield| found.attack == attack && found.given.contains(given);
    yields.iter().find(is_named).unwrap_or_else(|| panic!("{attack} given {given} is missing"))
}

fn run_attacks(panel: &Panel) -> Vec<AttackYield> {
    run(panel, EFFORT, &|_| {})
}

#[test]
fn carried_values_match_formula() {
    let panel = values(1, 40, 3, 5.0);
    let channel = &panel.channels[0];
    let (mut seen, mut mean, mut last, mut missed) = (0.0, 0.0, channel.values[0][0].1, 0);
    for bucket in 0..40 {
        let expected = match channel.value(0, bucket) {
            Some(value) => {
                (seen, missed) = (seen + 1.0, 0);
                mean += (value - mean) / seen;
                last = value;
                value
            }
            None => {
                missed += 1;
                if seen == 0.0 { last } else { mean + CARRIED_SHARE.powi(missed) * (last - mean) }
            }
        };
        assert!((panel.contribution(channel, 0, bucket) - expected).abs() < 1e-9, "bucket {bucket}");
    }
}

#[test]
fn plain_means_reveal_levels_and_members() {
    let yields = run_attacks(&plain_means(&values(40, 120, 3, 3.0)));
    let isolation = &yields[0];
    assert!(isolation.is_above() && isolation.rate > 0.99, "one person is isolated: {isolation:?}");
    let level = find_yield(&yields, "series: differencing", "level, everything");
    assert!(level.rate > 0.6 && level.is_above(), "{level:?}");
    let value = find_yield(&yields, "series: differencing", "value, any day");
    assert!(value.rate > 0.5, "{value:?}");
    assert!(find_yield(&yields, "series: whose history", "").is_above());
}

#[test]
fn rows_differing_by_one_subject_reveal_level() {
    // Each subject is missing on one odd day.
    let mut panel = values(30, 120, 1_000, 1.0);
    for channel in &mut panel.channels {
        for (person, values) in (0_u32..).zip(&mut channel.values) {
            values.retain(|(day, _)| day % 2 == 0 || day / 2 % 30 != person);
        }
    }
    let yields = run_attacks(&plain_means(&panel));
    let level = find_yield(&yields, "series: neighbouring rows", "level");
    assert!(level.rate > 0.6 && level.is_above(), "{level:?}");
    let locked = run_attacks(&locked_cohorts(&panel, 15, 0.5));
    let level = find_yield(&locked, "series: neighbouring rows", "level");
    assert!(level.trials > 40 && level.rate < 0.1 && !level.is_above(), "{level:?}");
}

#[test]
fn redrawn_cohorts_reveal_levels() {
    let panel = redrawn_cohorts(&values(40, 140, 12, 3.0), 10, 7, 1);
    let yields = run_attacks(&panel);
    assert!(yields[0].is_above(), "{:?}", yields[0]);
    let level = find_yield(&yields, "series: differencing", "level, everything");
    assert!(level.rate > 0.5 && level.is_above(), "{level:?}");
}

#[test]
fn locked_cohorts_keep_every_guarantee() {
    let yields = run_attacks(&locked_cohorts(&values(90, 100, 8, 4.0), 15, 0.5));
    assert_eq!(yields[0].given, "smallest combination of all sums: 15 people");
    for found in &yields {
        assert!(!found.is_above(), "{found:?}");
    }
    let level = find_yield(&yields, "series: differencing", "level, everything");
    assert!(level.rate < 0.2 && level.trials == 180, "{level:?}");
    let averaging = find_yield(&yields, "series: averaging", "no member");
    assert!((averaging.rate - 1.0 / 15.0).abs() < 0.04, "{averaging:?}");
    let known = find_yield(&yields, "series: averaging", "all but 5");
    assert!((known.rate - 1.0 / 5.0).abs() < 0.07, "{known:?}");
    let history = find_yield(&yields, "series: whose history", "");
    assert!((history.rate - 1.0 / 15.0).abs() < 1e-9, "{history:?}");
    // 15 half units of integers allow 8 sums.
    let sum = find_yield(&yields, "series: exact sum", "");
    assert!(sum.rate < 0.13, "{sum:?}");
}

#[test]
fn known_days_of_subject_find_cohort() {
    let mut panel = values(30, 100, 8, 4.0);
    for channel in &mut panel.channels {
        channel.values[15..].iter_mut().flatten().for_each(|(_, value)| *value += 60.0);
    }
    let yields = run_attacks(&locked_cohorts(&panel, 15, 0.5));
    let found = find_yield(&yields, "series: membership", "7 days");
    assert!(found.rate > 0.9 && (found.chance - 0.5).abs() < 0.01, "{found:?}");
}

#[test]
fn overlapping_sets_of_bucket_reveal_values() {
    let mut panel = values(20, 30, 1_000, 4.0);
    panel.fill = FillMode::None;
    panel.sets = (0..30_u64)
        .map(|set| (0..20).filter(|person| !mix(set << 8 | u64::from(*person)).is_multiple_of(2)).collect())
        .collect();
    for at in 0..panel.channels.len() {
        let channel = &panel.channels[at];
        let mut rows = Vec::new();
        for (bucket, set) in (0..30).flat_map(|bucket| (0..30).map(move |set| (bucket, set))) {
            let mean = |set: &Vec<u32>| {
                let values = set.iter().filter_map(|person| channel.value(*person, bucket));
                (values.clone().count() == set.len()).then(|| values.sum::<f64>() / set.len() as f64)
            };
            if let Some(mean) = mean(&panel.sets[set as usize]) {
                rows.push(PublishedSetMean { bucket, stream: set, set, mean, quartiles: None, step: 0.0 });
            }
        }
        panel.channels[at].rows = rows;
    }
    let solved = find_yield(&run_attacks(&panel), "series: linear programme", "").clone();
    assert!(solved.rate > 0.8 && solved.chance < 0.2, "{solved:?}");
    let locked = find_yield(&run_attacks(&locked_cohorts(&panel, 10, 0.5)), "series: linear programme", "").clone();
    assert!(locked.rate < 0.2, "{locked:?}");
}

#[test]
fn dominated_sums_reveal_largest_value() {
    let mut panel = values(20, 30, 1_000, 4.0);
    for channel in &mut panel.channels {
        channel.values.iter_mut().flatten().for_each(|(_, value)| *value /= 1_000.0);
        channel.values[3].iter_mut().for_each(|(_, value)| *value = 10.0);
        channel.range = (0.0, 20.0);
    }
    let yields = run_attacks(&locked_cohorts(&panel, 10, 0.001));
    let largest = find_yield(&yields, "series: largest value", "");
    assert!(largest.is_above() && largest.rate > 0.45, "{largest:?}");
}

/// One subject per cohort stops.
#[test]
fn single_member_quartiles_reveal_level_of_stopped_subject() {
    let mut panel = values(450, 120, 1_000, 6.0);
    for channel in &mut panel.channels {
        channel.values.iter_mut().flatten().for_each(|(day, value)| *value += normal(u64::from(*day) * 7 + 1) / 50.0);
        for values in channel.values.iter_mut().step_by(15) {
            values.truncate(30);
        }
    }
    let attacked = |step: f64, reach: usize| {
        find_yield(&run_attacks(&locked_cohorts_with(&panel, 15, step, reach)), "series: quartiles", "").clone()
    };
    for single in [attacked(0.000_1, 0), attacked(1.0, 0)] {
        assert!(single.trials == 60 && single.rate > 0.6 && single.chance < 0.2, "{single:?}");
    }
    let several = attacked(1.0, 2);
    assert!(several.trials == 60 && several.rate < 0.25, "{several:?}");
}
