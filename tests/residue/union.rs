//! The union of all that instances release which hand each other records: nothing leaves twice, every class has its crowd in its own batch,
//! and the accounts of all instances together are those of the source, whatever is killed.

use crate::support::daemon::{Daemon, K, Stage, records, sound, state};
use crate::support::kafka::{Broker, unique};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

const BATCH: usize = 30;
const PARTITIONS: i32 = 4;

/// What is left of the residue for whoever comes next.
struct Residue {
    topic: String,
    handed_on: u64,
    taken_up: u64,
}

impl Residue {
    fn read(stage: &Stage, topic: String) -> Self {
        let next = stage.broker.group_offsets(&stage.group, &topic);
        let stored = stage.broker.read_committed(&topic);
        let is_taken_up =
            |partition: i32, offset: i64| next.get(&partition).copied().flatten().is_some_and(|next| offset < next);
        let taken_up = stored.iter().filter(|one| is_taken_up(one.partition, one.offset)).count() as u64;
        Self { topic, handed_on: stored.len() as u64, taken_up }
    }
}

/// Each class that a batch shows has k people in that batch, as readers see it; gives the lines.
fn seen(stage: &Stage) -> usize {
    let mut of_batch: BTreeMap<(Option<i64>, Vec<u8>), usize> = BTreeMap::new();
    for line in stage.broker.read_committed(&stage.out) {
        *of_batch.entry((line.timestamp, line.payload.expect("a line"))).or_default() += 1;
    }
    for ((_, class), lines) in &of_batch {
        assert!(*lines >= K, "{lines} of {} in a batch", String::from_utf8_lossy(class));
    }
    // No lot more often than there are records of it.
    sound(stage.released().values().flatten())
}

/// Runs `names` over `total` records; each of `deaths` is a fault under which one instance dies and is started again.
fn run(names: &[&'static str], hold: usize, total: usize, deaths: &[&str], seed: u64) {
    let broker = Broker::shared().expect("a broker");
    let mut stage = Stage::new(broker, PARTITIONS);
    let residue = unique("residue");
    broker.create_topic(&residue, 2, false);
    stage.security = format!("residue_topic = \"{residue}\"\nresidue_age = \"1h\"\n");
    for name in names {
        let file = stage.configure(name, hold, BATCH, "200ms");
        let text = fs::read_to_string(&file).expect("the configuration");
        fs::write(&file, text.replace("batch_crowd = 0", "batch_crowd = 3")).expect("the configuration");
    }
    let mut running: Vec<Daemon> = names.iter().map(|name| stage.start(name, None)).collect();
    let part = total / (deaths.len() + 1);
    let mut died = BTreeSet::new();
    for (round, fault) in deaths.iter().enumerate() {
        broker.produce_records(&stage.raw, &records(seed, round * part, (round + 1) * part, PARTITIONS));
        let at = round % names.len();
        running[at].kill();
        let mut dying = stage.start(names[at], Some(fault));
        let deadline = Instant::now() + Duration::from_secs(30);
        // Where it has no partition it does not come to its end.
        while dying.ended().is_none() && Instant::now() < deadline && stage.consumed() < ((round + 1) * part) as i64 {
            seen(&stage);
        }
        match dying.ended() {
            Some(_) => drop(died.insert(*fault)),
            None => dying.kill(),
        }
        running[at] = stage.start(names[at], None);
    }
    broker.produce_records(&stage.raw, &records(seed, deaths.len() * part, total, PARTITIONS));
    stage.wait_consumed(total, &mut running.iter_mut().collect::<Vec<_>>());
    running.iter_mut().for_each(Daemon::stop);
    let Residue { topic, handed_on, taken_up } = Residue::read(&stage, residue);
    let totals: Vec<_> = names.iter().map(|name| state(&stage.state(name)).progress.totals).collect();
    let sum = |of: fn(&throng::telemetry::Totals) -> u64| totals.iter().map(of).sum::<u64>();
    assert_eq!(sum(|t| t.forwarded), handed_on, "{topic}: what is handed on is in the topic, once");
    assert_eq!(sum(|t| t.consumed), total as u64 + taken_up, "a record was consumed twice, or by nobody");
    for (name, t) in names.iter().zip(&totals) {
        assert_eq!(t.held(), Some(0), "{name}: {t:?}");
    }
    let gone = sum(|t| t.released + t.suppressed + t.dead_lettered + t.dropped);
    assert_eq!(gone + (handed_on - taken_up), total as u64, "the union is not conserved");
    let lines = seen(&stage);
    println!(
        "{total} records, {handed_on} handed on, {taken_up} taken up, {} suppressed, {lines} lines, died at {died:?}",
        sum(|t| t.suppressed)
    );
    assert!(lines > total / 2 && taken_up > 10 && !died.is_empty(), "{lines} lines and {taken_up} taken up say little");
}

#[test]
fn threat_39_two_instances_that_are_killed_lose_nothing_and_release_nothing_twice() {
    if Broker::shared().is_none() {
        return;
    }
    let deaths =
        ["intent-flushed=2*off->return", "produced=2*off->return", "committed=2*off->return", "applied=1*off->return"];
    run(&["one", "two"], 0, 20 * BATCH, &deaths, 31);
}

#[test]
fn four_instances_that_are_killed_lose_nothing_and_release_nothing_twice() {
    if Broker::shared().is_none() {
        return;
    }
    let deaths =
        ["acknowledged=1*off->return", "offsets-sent=1*off->return", "committed=1*off->return", "settled=return"];
    run(&["one", "two", "three", "four"], 0, 24 * BATCH, &deaths, 37);
}

/// What is held is handed on when nothing came of the wait.
#[test]
fn what_was_held_in_vain_is_handed_on() {
    if Broker::shared().is_none() {
        return;
    }
    run(&["one", "two"], 2, 16 * BATCH, &["intent-flushed=3*off->return", "produced=1*off->return"], 41);
}
