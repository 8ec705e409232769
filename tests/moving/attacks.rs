//! Threat 25: attacks by repetition. Each attack must succeed on a release without limits.
//!
//! With limits, it may be no better than the larger of 1/k and 1.5 × chance: the same attack after a permutation of the
//! subjects. A minimum number of released lines is required. All seeds are fixed.

use crate::support::invariants::{Line, cells};
use crate::support::schemas::PERSON;
use crate::support::stand::{Fault, Stand, record};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use throng::daemon::state::records::Flush;

const K: usize = 5;
const NOW: i64 = 1_700_000_000_000;
const MINUTE: i64 = 60_000;
const BATCHES: usize = 240;
/// Number of intermittent people, the targets.
const PEOPLE: usize = 240;
/// Body classes and homes, each shared by four intermittent people.
const LABELS: usize = 60;
/// Regular people per label, which send in every batch.
const REGULARS: usize = 8;
const ACTIVE: usize = 15;
/// Attacks may be no better than this or one and a half times chance.
const BOUND: f64 = 1.0 / K as f64;

struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % sides as u64).expect("small")
    }

    fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        for at in (1..count).rev() {
            all.swap(at, self.roll(at + 1));
        }
        all
    }
}

/// The record number is only for the evaluation.
#[derive(Clone, Copy)]
struct Seen {
    batch: usize,
    group: usize,
    label: usize,
    record: usize,
}

/// One batch per minute. The cells of a group are a letter and a number.
fn seen(stand: &Stand) -> Vec<Seen> {
    let label = |text: &str| text.trim_matches('"')[1..].parse::<usize>().ok();
    let of = |line: &Line| {
        let cells = cells(line).expect("an object");
        Some(Seen {
            batch: usize::try_from((line.clock_ms - NOW) / MINUTE).expect("a batch"),
            group: line.group,
            label: label(&cells[0].1)?,
            record: usize::try_from(line.source.2).expect("an offset"),
        })
    };
    stand.sink.lines.iter().filter_map(of).collect()
}

fn deal() -> (Vec<usize>, Vec<usize>) {
    let mut dice = Dice::new(25);
    let mut deal = || dice.shuffled(PEOPLE).into_iter().map(|place| place % LABELS).collect::<Vec<_>>();
    (deal(), deal())
}

/// All labels are equally frequent, and no pair occurs twice.
fn regular(number: usize, labels: usize) -> (usize, usize) {
    (number % labels, (number + 7 * (number / labels)) % labels)
}

struct Release {
    lines: Vec<Seen>,
    present: Vec<BTreeSet<usize>>,
    people: Vec<usize>,
}

fn static_groups(limits: &str) -> Release {
    // The home is declared static; the daemon must detect the body.
    let schema = format!(
        "name = \"static\"\n{PERSON}[[attribute]]\nname = \"body\"\ntype = \"string\"\n\
         [[attribute]]\nname = \"home\"\ntype = \"string\"\nchanges = \"never\"\n"
    );
    let settings = format!(
        "[privacy]\nk = {K}\nstatic_window = \"1h\"\n{limits}\n[plan]\nwindow_records = 20000\n\
         [[group]]\nname = \"body\"\nattributes = [\"body\"]\n[[group]]\nname = \"home\"\nattributes = [\"home\"]\n"
    );
    let mut stand = Stand::new(&schema, &settings);
    let (bodies, homes) = deal();
    let mut dice = Dice::new(2_500);
    let (mut people, mut present) = (Vec::new(), vec![BTreeSet::new(); PEOPLE]);
    for batch in 0..BATCHES {
        let mut records = Vec::new();
        let mut senders: Vec<usize> = (0..PEOPLE).filter(|_| dice.roll(100) < ACTIVE).collect();
        for &person in &senders {
            present[person].insert(batch);
        }
        senders.extend(PEOPLE..PEOPLE + REGULARS * LABELS);
        for person in senders {
            let (body, home) = match person.checked_sub(PEOPLE) {
                Some(number) => regular(number, LABELS),
                None => (bodies[person], homes[person]),
            };
            records.push(record(format!(r#"{{"person":"p{person}","body":"b{body}","home":"h{home}"}}"#)));
            people.push(person);
        }
        let now = NOW + MINUTE * i64::try_from(batch).expect("small");
        stand.offer(&records, Flush::No, now, Fault::Nothing);
    }
    stand.settle(Flush::EndOfStream, NOW + MINUTE * i64::try_from(BATCHES).expect("small"));
    stand.check_conservation().expect("conservation");
    println!("{limits}: {} lines of {} records", stand.sink.lines.len(), people.len());
    println!("{:?} {:?}", stand.telemetry.status().totals, stand.telemetry.status().suppressed);
    Release { lines: seen(&stand), present, people }
}

fn without_limits() -> &'static Release {
    static RELEASE: OnceLock<Release> = OnceLock::new();
    RELEASE.get_or_init(|| static_groups(""))
}

fn with_limits() -> &'static Release {
    static RELEASE: OnceLock<Release> = OnceLock::new();
    RELEASE.get_or_init(|| static_groups(DEFAULTS))
}

/// One body and one home per person and window.
const SAYABLE: usize = (PEOPLE + REGULARS * LABELS) * 2 * BATCHES / 60;

/// Counts by label and bin of `width` batches, minus their expectation.
fn series(lines: &[Seen], group: usize, width: usize) -> Vec<Vec<f32>> {
    let bins = BATCHES / width + 1;
    let mut counts = vec![vec![0.0_f32; bins]; LABELS];
    let mut all = vec![0.0_f32; bins];
    for line in lines.iter().filter(|line| line.group == group) {
        let bin = line.batch / width;
        counts[line.label][bin] += 1.0;
        all[bin] += 1.0;
    }
    let total: f32 = all.iter().sum();
    for label in &mut counts {
        let share = label.iter().sum::<f32>() / total.max(1.0);
        label.iter_mut().zip(&all).for_each(|(count, all)| *count -= share * all);
    }
    counts
}

/// Returns the share of true pairs of intermittent people among the 100 pairs of labels with the largest covariance,
/// for the best of several bin widths.
fn covariance(lines: &[Seen]) -> f64 {
    let (bodies, homes) = deal();
    let true_pairs: BTreeSet<(usize, usize)> = bodies.into_iter().zip(homes).collect();
    let of_width = |width: usize| {
        let (a, b) = (series(lines, 0, width), series(lines, 1, width));
        let mut pairs: Vec<(f32, usize, usize)> = Vec::with_capacity(LABELS * LABELS);
        for (i, x) in a.iter().enumerate() {
            pairs.extend(b.iter().enumerate().map(|(j, y)| (x.iter().zip(y).map(|(x, y)| x * y).sum(), i, j)));
        }
        pairs.sort_by(|x, y| y.0.total_cmp(&x.0));
        pairs[..100].iter().filter(|(_, i, j)| true_pairs.contains(&(*i, *j))).count() as f64 / 100.0
    };
    [1, 5, 20, 60].map(of_width).into_iter().fold(0.0, f64::max)
}

fn permuted(release: &Release, seed: u64) -> Vec<Seen> {
    let (homes, other) = (deal().1, Dice::new(seed).shuffled(PEOPLE));
    let moved = |line: &Seen| match line.group {
        1 if release.people[line.record] < PEOPLE => Seen { label: homes[other[release.people[line.record]]], ..*line },
        _ => *line,
    };
    release.lines.iter().map(moved).collect()
}

#[test]
fn threat_25_covariance_over_batches_joins_no_subject() {
    let (free, limited) = (without_limits(), with_limits());
    let chance = [1, 2].map(|seed| covariance(&permuted(limited, seed))).into_iter().sum::<f64>() / 2.0;
    let (before, after) = (covariance(&free.lines), covariance(&limited.lines));
    println!("true pairs among the top 100: {before} without limits, {after} with them, {chance} by chance");
    println!("{} of {SAYABLE} lines", limited.lines.len());
    assert!(before > 0.8 && before > 5.0 * chance, "the attack wins without limits: {before}, {chance} by chance");
    assert!(limited.lines.len() > SAYABLE / 2, "{} of {SAYABLE} lines are still said", limited.lines.len());
    assert!(after <= BOUND.max(1.5 * chance), "{after} of the pairs are true, {chance} by chance");
}

/// Returns the share of targets whose body has the largest excess count after 20 known times of presence, for the best
/// of several interval lengths.
fn presence(lines: &[Seen], present: &[BTreeSet<usize>], bodies: &[usize]) -> f64 {
    let mut counts = vec![vec![0.0_f64; BATCHES + 1]; LABELS];
    lines.iter().filter(|line| line.group == 0).for_each(|line| counts[line.label][line.batch.min(BATCHES)] += 1.0);
    let mean: Vec<f64> = counts.iter().map(|of| of.iter().sum::<f64>() / BATCHES as f64).collect();
    let targets = PEOPLE;
    let found = |reach: usize| {
        let mut dice = Dice::new(20);
        let hits = (0..targets).filter(|target| {
            let moments: Vec<usize> = present[*target].iter().copied().collect();
            let known: Vec<usize> = dice.shuffled(moments.len()).into_iter().take(20).map(|at| moments[at]).collect();
            let score = |label: usize| {
                let met: f64 = known.iter().flat_map(|&at| &counts[label][at..(at + reach).min(BATCHES + 1)]).sum();
                (met - mean[label] * (known.len() * reach) as f64) / mean[label].max(1e-3).sqrt()
            };
            let best = (0..LABELS).max_by(|a, b| score(*a).total_cmp(&score(*b)));
            best == Some(bodies[*target])
        });
        hits.count() as f64 / f64::from(targets as u32)
    };
    [1, 5, 20, 60].map(found).into_iter().fold(0.0, f64::max)
}

#[test]
fn threat_25_twenty_known_times_reveal_no_class() {
    let (bodies, _) = deal();
    let (free, limited) = (without_limits(), with_limits());
    let (present, free, limited) = (&free.present, &free.lines, &limited.lines);
    let other = Dice::new(4).shuffled(PEOPLE);
    let others: Vec<usize> = other.iter().map(|&person| bodies[person]).collect();
    let (before, after) = (presence(free, present, &bodies), presence(limited, present, &bodies));
    let chance = presence(limited, present, &others);
    println!("bodies found by 20 moments: {before} without limits, {after} with them, {chance} by chance");
    assert!(limited.len() > SAYABLE / 2, "{} of {SAYABLE} lines are still said", limited.len());
    assert!(before > 0.4, "the attack wins without limits: {before}");
    assert!(after <= BOUND.max(1.5 * chance), "{after} of the bodies are found, {chance} by chance");
}

/// Names the keys in a comment, so that the test engine uses their defaults.
const DEFAULTS: &str = "# max_lines_per_subject, max_delay";

/// 150 records per batch from devices that send in bursts, with one place and app per burst; further people complete
/// the classes.
fn bursts(limits: &str) -> (Vec<Seen>, Vec<(usize, usize)>) {
    let attribute = |name: &str| format!("[[attribute]]\nname = \"{name}\"\ntype = \"string\"\nchanges = \"always\"\n");
    let schema = format!("name = \"bursts\"\n{PERSON}{}{}", attribute("place"), attribute("app"));
    let settings = format!(
        "[privacy]\nk = {K}\n{limits}\n[[group]]\nname = \"place\"\nattributes = [\"place\"]\n\
         [[group]]\nname = \"app\"\nattributes = [\"app\"]\n"
    );
    let mut stand = Stand::new(&schema, &settings);
    let (mut dice, mut truth) = (Dice::new(38), Vec::new());
    for batch in 0..BURST_BATCHES {
        let mut records = Vec::new();
        for number in 0..SINGLES {
            let (place, app) = regular(number, PLACES);
            records.push(record(format!(r#"{{"person":"r{number}","place":"p{place}","app":"a{app}"}}"#)));
            truth.push((place, app));
        }
        let full = SINGLES + 150;
        while records.len() < full {
            let (person, place, app) = (dice.roll(400), dice.roll(PLACES), dice.roll(PLACES));
            for _ in 0..(1 + 2 * dice.roll(4) * dice.roll(7)).min(full - records.len()) {
                records.push(record(format!(r#"{{"person":"p{person}","place":"p{place}","app":"a{app}"}}"#)));
                truth.push((place, app));
            }
        }
        let now = NOW + MINUTE * i64::try_from(batch).expect("small");
        stand.offer(&records, Flush::No, now, Fault::Nothing);
    }
    stand.settle(Flush::EndOfStream, NOW + MINUTE * i64::try_from(BURST_BATCHES).expect("small"));
    stand.check_conservation().expect("conservation");
    println!("{limits}: {} lines of {} records", stand.sink.lines.len(), truth.len());
    println!("{:?} {:?}", stand.telemetry.status().totals, stand.telemetry.status().suppressed);
    (seen(&stand), truth)
}

const BURST_BATCHES: usize = 150;
const PLACES: usize = 40;
/// k + 1 for each place and each app.
const SINGLES: usize = PLACES * (K + 1);

/// Joins labels that alone have their count in a batch. Returns the number of joined fragments and the share of correct
/// ones.
fn equal_counts(lines: &[Seen], app_of: impl Fn(&Seen) -> usize) -> (usize, f64) {
    let mut batches: BTreeMap<usize, [BTreeMap<usize, Vec<&Seen>>; 2]> = BTreeMap::new();
    for line in lines {
        batches.entry(line.batch).or_default()[line.group].entry(line.label).or_default().push(line);
    }
    let (mut joined, mut right) = (0, 0);
    for [places, apps] in batches.values() {
        let only = |labels: &BTreeMap<usize, Vec<&Seen>>| {
            let mut by_count: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            labels.iter().for_each(|(label, lines)| by_count.entry(lines.len()).or_default().push(*label));
            by_count.into_iter().filter(|(_, labels)| labels.len() == 1).map(|(n, l)| (n, l[0])).collect::<Vec<_>>()
        };
        let apps_by_count: BTreeMap<usize, usize> = only(apps).into_iter().collect();
        for (count, place) in only(places) {
            let Some(app) = apps_by_count.get(&count) else { continue };
            joined += count;
            right += places[&place].iter().filter(|line| app_of(line) == *app).count();
        }
    }
    (joined, right as f64 / joined.max(1) as f64)
}

/// Returns the result of [`equal_counts`] with the app of each fragment drawn from the batch.
fn equal_counts_by_chance(lines: &[Seen]) -> f64 {
    let mut apps: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    lines.iter().filter(|line| line.group == 1).for_each(|line| apps.entry(line.batch).or_default().push(line.label));
    let anybody = |line: &Seen, seed: usize| {
        let of_batch = &apps[&line.batch];
        of_batch[Dice::new((line.record * 31 + seed) as u64).roll(of_batch.len())]
    };
    (0..20).map(|seed| equal_counts(lines, |line| anybody(line, seed)).1).sum::<f64>() / 20.0
}

#[test]
fn threat_25_equal_counts_in_batch_join_no_subject() {
    let ((free, truth), (limited, _)) = (bursts(""), bursts(DEFAULTS));
    let truly = |line: &Seen| truth[line.record].1;
    let ((joined, before), (still, after)) = (equal_counts(&free, truly), equal_counts(&limited, truly));
    let (chance_before, chance) = (equal_counts_by_chance(&free), equal_counts_by_chance(&limited));
    println!("{joined} joined, {before} of them right, {chance_before} by chance");
    println!("with limits {still} joined, {after} right, {chance} by chance; {} lines", limited.len());
    assert!(before > 2.0 * BOUND && before > 3.0 * chance_before, "the attack wins without limits: {before}");
    assert!(joined > 1_000, "the attack wins without limits: {joined} are joined");
    assert!(limited.len() > 2 * SINGLES * BURST_BATCHES * 9 / 10, "{} lines are still said", limited.len());
    assert!(after <= BOUND.max(1.5 * chance), "{after} of {still} are joined rightly, {chance} by chance");
}
