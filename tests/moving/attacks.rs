//! Threat 25, as the attacker would try it: repetition. Every attack is run on the release without limits, where it must
//! win, and on the release with them, where it may do no better than the larger of 1/k and 1.5 × chance. Chance is the
//! same attack on fragments whose subjects were permuted between the groups.
//!
//! All is drawn from fixed seeds and the secret of the stand, so that a test passes always or never. Over other seeds: the
//! limits leave about as many hits as chance, 1 % of 100 pairs and of 300 targets, against a bound of 20 %: more than ten
//! standard deviations, a false failure in far less than one seed of a million.

use super::support::invariants::cells;
use super::support::stand::{Fault, Stand, record};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use throng::daemon::engine::Settling;

const K: usize = 5;
const NOW: i64 = 1_700_000_000_000;
const MINUTE: i64 = 60_000;
const BATCHES: usize = 600;
const PEOPLE: usize = 3_000;
/// Body classes, and homes: each is that of ten people.
const LABELS: usize = 300;
/// Fragments may join no better than this, or one and a half times chance.
const BOUND: f64 = 1.0 / K as f64;

const PERSON: &str = "[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n";

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

/// One line with an exact label: the batch that it left with, its group and its label.
#[derive(Clone, Copy)]
struct Seen {
    batch: usize,
    group: usize,
    label: usize,
}

/// What left of a stream whose batches are a minute apart. The cells of a group are a letter and a number.
fn seen(stand: &Stand) -> Vec<Seen> {
    let label = |text: &str| text.trim_matches('"')[1..].parse::<usize>().ok();
    let of = |line: &super::support::invariants::Line| {
        let cells = cells(line).expect("an object");
        Some(Seen {
            batch: usize::try_from((line.clock_ms - NOW) / MINUTE).expect("a batch"),
            group: line.group,
            label: label(&cells[0].1)?,
        })
    };
    stand.sink.lines.iter().filter_map(of).collect()
}

/// The bodies and homes of the people: two deals that know nothing of each other.
fn deal() -> (Vec<usize>, Vec<usize>) {
    let mut dice = Dice::new(25);
    let mut deal = || dice.shuffled(PEOPLE).into_iter().map(|place| place % LABELS).collect::<Vec<_>>();
    (deal(), deal())
}

/// Three thousand people who send in one batch of seven or so, 600 batches a minute apart.
fn static_groups(limits: &str) -> (Vec<Seen>, Vec<BTreeSet<usize>>) {
    // The home is declared; that a body does not change is for the daemon to find out.
    let schema = format!(
        "name = \"static\"\n{PERSON}[[attribute]]\nname = \"body\"\ntype = \"string\"\n\
         [[attribute]]\nname = \"home\"\ntype = \"string\"\nchanges = \"never\"\n"
    );
    let settings = format!(
        "[privacy]\nk = {K}\nsupport_window = \"1h\"\n{limits}\n[plan]\nwindow_records = 20000\nsample_records = 4000\n\
         [[group]]\nname = \"body\"\nattributes = [\"body\"]\n[[group]]\nname = \"home\"\nattributes = [\"home\"]\n"
    );
    let mut stand = Stand::new(&schema, &settings);
    let (bodies, homes) = deal();
    let mut dice = Dice::new(2_500);
    let (mut records_sent, mut present) = (0, vec![BTreeSet::new(); PEOPLE]);
    for batch in 0..BATCHES {
        let mut records = Vec::new();
        for person in (0..PEOPLE).filter(|_| dice.roll(100) < 15).collect::<Vec<_>>() {
            let (body, home) = (bodies[person], homes[person]);
            records.push(record(format!(r#"{{"person":"p{person}","body":"b{body}","home":"h{home}"}}"#)));
            records_sent += 1;
            present[person].insert(batch);
        }
        let now = NOW + MINUTE * i64::try_from(batch).expect("small");
        stand.offer(&records, Settling::No, now, Fault::Nothing);
    }
    stand.settle(Settling::EndOfStream, NOW + MINUTE * i64::try_from(BATCHES).expect("small"));
    stand.check_conservation().expect("conservation");
    let last = stand.telemetry.status();
    println!(
        "{limits}: {} lines of {} records, {:?}, {} fragments a batch thinned at last",
        stand.sink.lines.len(),
        records_sent,
        last.totals,
        last.last.map_or(0, |report| report.thinned_fragments),
    );
    (seen(&stand), present)
}

type Release = (Vec<Seen>, Vec<BTreeSet<usize>>);

fn without_limits() -> &'static Release {
    static RELEASE: OnceLock<Release> = OnceLock::new();
    RELEASE.get_or_init(|| static_groups(""))
}

fn with_limits() -> &'static Release {
    static RELEASE: OnceLock<Release> = OnceLock::new();
    RELEASE.get_or_init(|| static_groups("max_lines_per_subject = 1\nmax_delay = \"1h\""))
}

/// Whether the body that was seen more often than it should be after 20 known moments of a person is the person's. The
/// attacker may choose how many batches after each moment are counted, and is told which choice was best for all targets.
fn presence(lines: &[Seen], present: &[BTreeSet<usize>], bodies: &[usize]) -> f64 {
    let mut counts = vec![vec![0.0_f64; BATCHES + 1]; LABELS];
    lines.iter().filter(|line| line.group == 0).for_each(|line| counts[line.label][line.batch.min(BATCHES)] += 1.0);
    let mean: Vec<f64> = counts.iter().map(|of| of.iter().sum::<f64>() / BATCHES as f64).collect();
    let targets = 300;
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
fn threat_25_twenty_known_moments_find_no_class() {
    let (bodies, _) = deal();
    let ((free, present), (limited, _)) = (without_limits(), with_limits());
    let other = Dice::new(4).shuffled(PEOPLE);
    let others: Vec<usize> = other.iter().map(|&person| bodies[person]).collect();
    let (before, after) = (presence(free, present, &bodies), presence(limited, present, &bodies));
    let chance = presence(limited, present, &others);
    println!("bodies found by 20 moments: {before} without limits, {after} with them, {chance} by chance");
    assert!(before > 0.4, "the attack wins without limits: {before}");
    assert!(after <= BOUND.max(1.5 * chance), "{after} of the bodies are found, {chance} by chance");
}
