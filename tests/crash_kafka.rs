//! Kills the daemon at every step of the commit protocol. It releases the bytes of an undisturbed run, exactly once.
#![cfg(feature = "failpoints")]

use crate::support;

use std::time::Duration;

use support::crash_points::{self, kill_at};
use support::daemon::{Dice, Stage, finish, records, same};
use support::kafka::{Record, TestCluster, send};

use rdkafka::producer::Producer;

/// Batches closed by count depend only on the stream.
const BATCH: usize = 40;

fn killed_at_every_point(hold: usize) {
    let Some(broker) = TestCluster::shared() else { return };
    let (seed, total) = (7 + hold as u64, 50 * BATCH);
    let calm = Stage::new(broker, 1).with_static_membership();
    calm.configure("only", hold, BATCH, "1h");
    calm.broker.produce_records(&calm.raw, &records(seed, 0, total, 1));
    let undisturbed = finish(&calm, total);

    let stage = Stage::new(broker, 1).with_static_membership();
    stage.configure("only", hold, BATCH, "1h");
    stage.broker.produce_records(&stage.raw, &records(seed, 0, total, 1));
    let mut dice = Dice::new(seed);
    for point in crash_points::all_of_topics() {
        let crash = kill_at(point, &mut dice);
        stage.start("only", Some(&crash)).crashes(&crash);
    }
    let left = total as i64 - stage.consumed();
    assert!(left > 0, "the last crash came after the end of the stream");
    let seen = finish(&stage, total);
    same(&stage, &seen, &calm, &undisturbed);
}

#[test]
fn kafka_kill_at_any_point_keeps_output_identical() {
    killed_at_every_point(0);
}

#[test]
fn kafka_kill_with_held_records_keeps_output_identical() {
    killed_at_every_point(2);
}

#[test]
fn kafka_kills_at_random_times_keep_output_identical() {
    let Some(broker) = TestCluster::shared() else { return };
    let rounds = if std::env::var_os("THRONG_LONG").is_some() { 100 } else { 5 };
    let (seed, portion) = (20, 6 * BATCH);
    let total = rounds * portion;
    let calm = Stage::new(broker, 1).with_static_membership();
    calm.configure("only", 2, BATCH, "1h");
    calm.broker.produce_records(&calm.raw, &records(seed, 0, total, 1));
    let undisturbed = finish(&calm, total);

    let stage = Stage::new(broker, 1).with_static_membership();
    stage.configure("only", 2, BATCH, "1h");
    let mut dice = Dice::new(seed);
    for round in 0..rounds {
        stage.broker.produce_records(&stage.raw, &records(seed, round * portion, (round + 1) * portion, 1));
        let mut daemon = stage.start("only", None);
        std::thread::sleep(Duration::from_millis(100 + dice.roll(2500)));
        assert!(daemon.ended().is_none(), "round {round}: {}", daemon.said());
        daemon.kill();
    }
    let seen = finish(&stage, total);
    same(&stage, &seen, &calm, &undisturbed);
}

#[test]
fn changelog_marker_behind_an_open_transaction_is_found() {
    let Some(broker) = TestCluster::shared() else { return };
    let (seed, total) = (31, 8 * BATCH);
    let stage = Stage::new(broker, 1).with_static_membership();
    stage.configure("only", 2, BATCH, "1h");
    stage.broker.produce_records(&stage.raw, &records(seed, 0, total, 1));
    let other = broker.transactional(&support::kafka::unique("other"));
    other.begin_transaction().expect("begins");
    let marker = Record {
        partition: Some(0),
        key: Some(b"other".to_vec()),
        payload: Some(b"{\"sequence\":1}".to_vec()),
        ..Record::default()
    };
    send(&other, &stage.changelog, &marker);
    other.flush(Duration::from_secs(30)).expect("delivered");
    stage.start("only", Some("committed=2*off->return")).crashes("committed");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(4));
            other.abort_transaction(Duration::from_secs(30)).expect("aborts");
        });
        finish(&stage, total);
    });
}

/// An aborted attempt may have been read.
#[test]
fn held_records_killed_during_commit_are_released_identically() {
    let Some(broker) = TestCluster::shared() else { return };
    let (seed, total) = (44, 6 * BATCH);
    let stage = Stage::new(broker, 1).with_static_membership();
    stage.configure("only", 2, BATCH, "1h");
    stage.broker.produce_records(&stage.raw, &records(seed, 0, total, 1));
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(total, &mut [&mut daemon]);
    daemon.kill();
    let mut daemon = stage.start("only", Some("acknowledged=return"));
    daemon.says("state of partitions restored");
    daemon.signal(rustix::process::Signal::TERM);
    daemon.crashes("acknowledged");
    let attempted = payloads(&broker.read_uncommitted(&stage.out));
    // The next batch would otherwise include the held records.
    stage.broker.produce_records(&stage.raw, &records(seed, total, total + BATCH, 1));
    finish(&stage, total + BATCH);
    let committed = payloads(&broker.read_committed(&stage.out));
    assert!(!attempted.is_empty() && committed.len() > attempted.len());
    assert!(committed[..attempted.len()] == attempted[..], "the aborted attempt and its retry differ");
}

#[test]
fn changelog_without_its_marker_is_refused() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut stage = Stage::new(broker, 1);
    stage.configure("only", 2, BATCH, "1h");
    stage.broker.produce_records(&stage.raw, &records(5, 0, 6 * BATCH, 1));
    stage.start("only", Some("committed=3*off->return")).crashes("committed");
    stage.changelog = support::kafka::unique("changelog");
    broker.create_topic(&stage.changelog, 2, true);
    stage.configure("only", 2, BATCH, "1h");
    let mut daemon = stage.start("only", None);
    assert_eq!(daemon.wait().code(), Some(1), "{}", daemon.said());
    assert!(daemon.said().contains("no marker of batch 3"), "{}", daemon.said());
}

fn payloads(stored: &[support::kafka::Stored]) -> Vec<Vec<u8>> {
    stored.iter().filter(|s| s.partition == 0).filter_map(|s| s.payload.clone()).collect()
}
