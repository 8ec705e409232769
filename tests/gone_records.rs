//! Tests a batch with an intent but no release, whose records are deleted before the retry.
#![cfg(feature = "failpoints")]

use crate::support;

use std::time::{Duration, Instant};
use support::daemon::{Stage, TestDaemon, conserved, records, sound, state};
use support::kafka::TestCluster;

const BATCH: usize = 40;
const TOTAL: usize = 6 * BATCH;

/// Returns the stage and the offset range of the second batch, with an intent and no release.
fn intended(broker: &TestCluster) -> (Stage<'_>, (i64, i64)) {
    let stage = Stage::new(broker, 1).with_static_membership();
    stage.configure("only", 0, BATCH, "1s");
    broker.produce_records(&stage.raw, &records(71, 0, TOTAL, 1));
    stage.start("only", Some("produced=1*off->return")).crashes("produced");
    let intent = state(&stage.state("only")).intent.expect("a batch that was about to leave");
    let range = (intent.ranges[0].from, intent.ranges[0].to);
    assert_eq!(broker.group_offsets(&stage.group, &stage.raw)[&0], Some(range.0));
    (stage, range)
}

fn says(daemon: &mut TestDaemon, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !daemon.said().contains(what) {
        assert!(daemon.ended().is_none() && Instant::now() < deadline, "it has not said {what:?}: {}", daemon.said());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn lost(daemon: &TestDaemon) -> String {
    let said = daemon.said();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("input is lost")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    lines[0].to_owned()
}

fn removed_before(before: impl Fn((i64, i64)) -> i64) {
    let Some(broker) = TestCluster::shared() else { return };
    let (stage, range) = intended(broker);
    let begin = before(range);
    broker.remove_before(&stage.raw, 0, begin);
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(TOTAL, &mut [&mut daemon]);
    daemon.stop();
    let line = lost(&daemon);
    assert!(line.contains("ERROR") && line.contains(&stage.raw) && line.contains("partition"), "{line}");
    for offset in [range.0, begin.min(range.1)] {
        assert!(line.contains(&offset.to_string()), "{offset} in {line}");
    }
    assert_eq!(
        conserved(&stage.state("only")) as i64,
        TOTAL as i64 - (begin - range.0),
        "all that there was is accounted for"
    );
    let lines = sound(stage.released().values().flatten());
    assert!(lines > TOTAL / 2, "{lines} fragments say little");
}

#[test]
fn batch_with_deleted_records_is_given_up_and_reported() {
    removed_before(|range| range.1);
}

#[test]
fn batch_with_partly_deleted_records_is_given_up_and_reported() {
    removed_before(|range| range.0 + 7);
}

#[test]
fn batch_in_a_truncated_partition_is_given_up_and_reported() {
    removed_before(|range| range.1 + 15);
}

/// No record follows at first: the batch is given up nevertheless.
#[test]
fn emptied_partition_does_not_block_processing() {
    let Some(broker) = TestCluster::shared() else { return };
    let (stage, range) = intended(broker);
    broker.remove_before(&stage.raw, 0, TOTAL as i64);
    let mut daemon = stage.start("only", None);
    says(&mut daemon, "input is lost");
    broker.produce_records(&stage.raw, &records(71, TOTAL, 2 * TOTAL, 1));
    stage.wait_consumed(2 * TOTAL, &mut [&mut daemon]);
    daemon.stop();
    lost(&daemon);
    assert_eq!(conserved(&stage.state("only")) as i64, TOTAL as i64 + range.0);
}

#[test]
fn batch_with_available_records_is_repeated() {
    let Some(broker) = TestCluster::shared() else { return };
    let (stage, range) = intended(broker);
    broker.remove_before(&stage.raw, 0, range.0);
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(TOTAL, &mut [&mut daemon]);
    daemon.stop();
    assert!(!daemon.said().contains("input is lost"), "{}", daemon.said());
    assert_eq!(conserved(&stage.state("only")), TOTAL as u64);
}
