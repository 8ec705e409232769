//! Several instances of one group under a privacy model. After each fault, the union of all releases is recounted; at
//! the end, the sum of all accounts must equal the source.
//!
//! Four rounds, or a hundred with `./dev test --long`. `THRONG_SEED` sets the seed, `THRONG_ROUNDS` the number of
//! rounds, and with `THRONG_BOUNCE` most rounds restart the broker.
#![cfg(feature = "failpoints")]

use crate::support;

mod faults;
mod feeder;
mod fleet;
mod noticed;
mod people;
mod reader;
mod recount;
mod seen;

use faults::Faults;
use feeder::Feeder;
use fleet::{Fleet, Happened};
use people::Stream;
use recount::{Promise, Recount};
use std::time::Instant;
use support::instances::Account;
use support::kafka::TestCluster;

const SEED: u64 = 24;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn recount(fleet: &mut Fleet, recount: &mut Recount, until: i64, seed: u64) {
    if let Err(why) = recount.go_on(&fleet.reader.lines, until, &fleet.reader.batches) {
        fleet.reader.compare();
        println!("{}", fleet.said());
        panic!("seed {seed}: {why}");
    }
}

#[test]
fn threat_17_union_of_instances_keeps_guarantees_under_faults() {
    let Some(broker) = TestCluster::shared() else { return };
    let is_long = std::env::var_os("THRONG_LONG").is_some();
    let rounds = number("THRONG_ROUNDS").unwrap_or(if is_long { 100 } else { 4 });
    let seed = number("THRONG_SEED").unwrap_or(SEED);
    println!("seed {seed}, {rounds} rounds");
    let began = Instant::now();
    let stream = Stream(seed);
    let promise = Promise { k: 3, lines: 2 };
    let (mut fleet, mut recounted) = (Fleet::new(broker), Recount::new(stream, promise));
    let feeder = Feeder::begin(broker, &fleet.topics.raw, stream);
    Faults::begin(&mut fleet);
    fleet.catch_up(&feeder);
    let (mut faults, mut until) = (Faults::new(seed), fleet.reader.end());
    for _ in 0..rounds {
        faults.befall(&mut fleet, &feeder);
        recount(&mut fleet, &mut recounted, until, seed);
        until = fleet.reader.end();
    }
    let total = feeder.end();
    let stopped: Vec<usize> = (0..fleet.members.len()).filter(|at| !fleet.members[*at].is_running()).collect();
    stopped.into_iter().for_each(|at| fleet.start(at, ""));
    let account = fleet.settled(total);
    (0..fleet.members.len()).for_each(|at| fleet.end(at));
    fleet.reader.look();
    let end = fleet.reader.end();
    recount(&mut fleet, &mut recounted, end, seed);
    let (found, happened) = (recounted.found, fleet.happened);
    println!("{total} records in {:?}: {account:?}\n{found:?}\n{happened:?}", began.elapsed());

    let of = |is: &dyn Fn(usize) -> bool| (0..total).filter(|number| is(*number)).count() as u64;
    let Account { consumed, released, suppressed, dead_lettered, dropped } = account;
    assert_eq!(consumed, total as u64, "a record was consumed twice, or by nobody");
    assert_eq!(dead_lettered, of(&|number| stream.is_broken(number)), "dead letters");
    assert_eq!(dropped, of(&|number| stream.is_tombstone(number)), "what holds nothing");
    assert_eq!(released + suppressed + dead_lettered + dropped, total as u64);
    assert_eq!(released, found.lines as u64, "lines that readers see, and records that are said to have left");
    assert_eq!(
        broker.read_committed(&fleet.topics.letters).len() as u64,
        dead_lettered,
        "dead letters are written once"
    );

    // A run with too few lines, values or faults proves little.
    let recount::Found { lines, values, unclear, batches, .. } = found;
    assert!(lines * 3 > total && values * 4 > lines, "{found:?} says little");
    assert!(unclear * 20 < batches, "{found:?}");
    let Happened { kills, deaths, .. } = happened;
    assert!(kills + deaths > 0, "{happened:?} is too peaceful");
    if rounds >= 100 {
        let Happened { shifts, bounces, joins, leaves, ordered_ends, .. } = happened;
        let all = [kills, deaths, shifts, bounces, joins, leaves, ordered_ends];
        assert!(all.iter().all(|many| *many > 0), "{happened:?}");
    }
}
