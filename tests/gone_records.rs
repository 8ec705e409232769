//! A batch is intended and does not leave, and its records are gone from the topic before it can be repeated: what is left of the stream is
//! released, and what is lost is said.
#![cfg(feature = "failpoints")]

use crate::support;

use std::time::{Duration, Instant};
use support::daemon::{Daemon, Stage, conserved, records, sound, state};
use support::kafka::Broker;

const BATCH: usize = 40;
const TOTAL: usize = 6 * BATCH;

/// A stage on which the second batch has been intended and has not left, and the range that it is of.
fn intended(broker: &Broker) -> (Stage<'_>, (i64, i64)) {
    let stage = Stage::new(broker, 1).with_static_membership();
    stage.configure("only", 0, BATCH, "1s");
    broker.produce_records(&stage.raw, &records(71, 0, TOTAL, 1));
    stage.start("only", Some("produced=1*off->return")).crashes("produced");
    let intent = state(&stage.state("only")).intent.expect("a batch that was about to leave");
    let range = (intent.ranges[0].from, intent.ranges[0].to);
    assert_eq!(broker.group_offsets(&stage.group, &stage.raw)[&0], Some(range.0));
    (stage, range)
}

fn says(daemon: &mut Daemon, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !daemon.said().contains(what) {
        assert!(daemon.ended().is_none() && Instant::now() < deadline, "it has not said {what:?}: {}", daemon.said());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The line that tells of lost input, which there is once.
fn lost(daemon: &Daemon) -> String {
    let said = daemon.said();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("input is lost")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    lines[0].to_owned()
}

/// Removes everything before what `before` gives for the range of the batch, and lets the stream come to its end.
fn removed_before(before: impl Fn((i64, i64)) -> i64) {
    let Some(broker) = Broker::shared() else { return };
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
fn a_batch_whose_records_are_all_gone_is_given_up_and_said() {
    removed_before(|range| range.1);
}

#[test]
fn so_is_one_that_has_lost_a_part_of_its_records() {
    removed_before(|range| range.0 + 7);
}

#[test]
fn and_one_whose_partition_has_gone_on_without_it() {
    removed_before(|range| range.1 + 15);
}

/// Nothing comes until somebody sends more: the batch is given up all the same.
#[test]
fn an_emptied_partition_holds_nothing_up() {
    let Some(broker) = Broker::shared() else { return };
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

/// Where nothing is gone, the batch is repeated and nothing is said.
#[test]
fn what_is_there_is_repeated() {
    let Some(broker) = Broker::shared() else { return };
    let (stage, range) = intended(broker);
    broker.remove_before(&stage.raw, 0, range.0);
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(TOTAL, &mut [&mut daemon]);
    daemon.stop();
    assert!(!daemon.said().contains("input is lost"), "{}", daemon.said());
    assert_eq!(conserved(&stage.state("only")), TOTAL as u64);
}
