//! Tests consumer groups: instances that join, leave and are replaced, offsets that are set back, and a broker that
//! dies.

use crate::support;

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Signal;
use support::copies;
use support::daemon::{Stage, TestDaemon, conserved, records, sound};
use support::kafka::TestCluster;
use support::proxy::wait_until;

const BATCH: usize = 40;

fn all(stage: &Stage) -> usize {
    sound(stage.released().values().flatten())
}

#[test]
fn rebalance_with_kills_is_exactly_once() {
    let Some(broker) = TestCluster::shared() else { return };
    come_and_go(&Stage::new(broker, 4));
}

fn newer() -> Option<&'static TestCluster> {
    static NEWER: OnceLock<Option<TestCluster>> = OnceLock::new();
    NEWER.get_or_init(TestCluster::newer).as_ref()
}

#[test]
fn rebalance_with_kills_is_exactly_once_in_consumer_protocol() {
    let Some(broker) = newer() else { return };
    come_and_go(&Stage::new(broker, 4).with_consumer_protocol());
}

fn come_and_go(stage: &Stage) {
    let broker = stage.broker;
    let (seed, portion) = (3, 10 * BATCH);
    for name in ["one", "two"] {
        stage.configure(name, 2, BATCH, "300ms");
    }
    let produce = |part: usize| {
        broker.produce_records(&stage.raw, &records(seed, part * portion, (part + 1) * portion, 4));
    };
    // A group reassigns partitions in two rounds, with a heartbeat every three seconds.
    let pause = || std::thread::sleep(Duration::from_secs(8));
    produce(0);
    let mut one = stage.start("one", None);
    stage.wait_consumed(portion / 2, &mut [&mut one]);
    let mut two = stage.start("two", None);
    produce(1);
    pause();
    produce(2);
    two.stop();
    produce(3);
    let mut two = stage.start("two", None);
    pause();
    produce(4);
    std::thread::sleep(Duration::from_millis(200));
    two.kill();
    produce(5);
    // An open transaction may block its partitions for the other instance.
    let mut two = stage.start("two", None);
    let total = 6 * portion;
    stage.wait_consumed(total, &mut [&mut one, &mut two]);
    one.stop();
    two.stop();
    let (one, two) = (conserved(&stage.state("one")), conserved(&stage.state("two")));
    // An instance that stops before the restore keeps held records in the changelog.
    let waiting = stage.waiting();
    eprintln!("{one} + {two} records of {total}, {waiting} wait");
    assert_eq!(one + two + waiting, total as u64, "a record was consumed twice, or by nobody");
    assert!(one > 0 && two > 0, "{one} and {two}: one of them had nothing to do");
    assert!(all(stage) > total / 2);
}

#[test]
fn rolling_restart_to_consumer_protocol_is_exactly_once() {
    const NAMES: [&str; 4] = ["one", "two", "three", "four"];
    let Some(broker) = newer() else { return };
    let (seed, portion) = (5, 12 * BATCH);
    let mut stage = Stage::new(broker, 8);
    NAMES.iter().for_each(|name| drop(stage.configure(name, 2, BATCH, "300ms")));
    let produce = |stage: &Stage, part: usize| {
        broker.produce_records(&stage.raw, &records(seed, part * portion, (part + 1) * portion, 8));
    };
    let mut daemons: Vec<_> = NAMES.iter().map(|name| stage.start(name, None)).collect();
    let consumed = |stage: &Stage, daemons: &mut [TestDaemon], wanted| {
        stage.wait_consumed(wanted, &mut daemons.iter_mut().collect::<Vec<_>>());
    };
    produce(&stage, 0);
    consumed(&stage, &mut daemons, portion / 2);
    stage = stage.with_consumer_protocol();
    for (at, name) in NAMES.iter().enumerate() {
        produce(&stage, at + 1);
        daemons[at].stop();
        stage.configure(name, 2, BATCH, "300ms");
        daemons[at] = stage.start(name, None);
        // Everything produced before it left is consumed.
        consumed(&stage, &mut daemons, (at + 1) * portion);
    }
    let total = (NAMES.len() + 1) * portion;
    consumed(&stage, &mut daemons, total);
    daemons.iter_mut().for_each(TestDaemon::stop);
    let each: Vec<u64> = NAMES.iter().map(|name| conserved(&stage.state(name))).collect();
    let waiting = stage.waiting();
    let sum = each.iter().sum::<u64>() + waiting;
    assert_eq!(sum, total as u64, "a record was consumed twice, or by nobody: {each:?}, {waiting} wait");
    assert!(all(&stage) > total / 2);
}

/// Older brokers answer with nothing; newer ones may have the protocol disabled.
#[test]
fn consumer_protocol_on_old_brokers_is_refused() {
    let Some(broker) = TestCluster::start_with(&|_, _| "group.coordinator.rebalance.protocols=classic\n".to_owned())
    else {
        return;
    };
    let stage = Stage::new(&broker, 1).with_consumer_protocol();
    stage.configure("only", 0, BATCH, "1h");
    let mut daemon = stage.start("only", None);
    wait_until("the word", || {
        daemon.said().contains("the brokers may be older than Kafka 4.0")
            || daemon.ended().is_some() && daemon.said().contains("remove group.protocol from source.librdkafka")
    });
}

#[test]
fn message_delivered_twice_counts_once() {
    let Some(broker) = TestCluster::shared() else { return };
    let (seed, total) = (19, 4 * BATCH);
    let stage = Stage::new(broker, 2);
    stage.configure("only", 0, BATCH, "300ms");
    broker.produce_records(&stage.raw, &records(seed, 0, total, 2));
    let mut daemon = stage.start("only", Some("messages-again=return"));
    stage.wait_consumed(total, &mut [&mut daemon]);
    daemon.stop();
    assert_eq!(conserved(&stage.state("only")), total as u64);
    all(&stage);
}

#[test]
fn static_member_duplicate_is_refused_in_consumer_protocol() {
    let Some(broker) = newer() else { return };
    let stage = Stage::new(broker, 2).with_static_membership().with_consumer_protocol();
    stage.configure("first", 0, BATCH, "300ms");
    stage.configure("second", 0, BATCH, "300ms");
    broker.produce_records(&stage.raw, &records(9, 0, 4 * BATCH, 2));
    let mut first = stage.start("first", None);
    stage.wait_consumed(BATCH, &mut [&mut first]);
    let mut second = stage.start("second", None);
    assert_eq!(second.wait().code(), Some(1), "{}", second.said());
    assert!(second.said().contains("another member still has our group.instance.id"), "{}", second.said());
    stage.wait_consumed(4 * BATCH, &mut [&mut first]);
    first.stop();
    assert_eq!(conserved(&stage.state("first")), 4 * BATCH as u64);
}

/// The older protocol gives the name to the second member.
#[test]
fn static_member_duplicate_fences_the_first_member() {
    let Some(broker) = TestCluster::shared() else { return };
    let total = 8 * BATCH;
    let stage = Stage::new(broker, 2).with_static_membership();
    stage.configure("first", 0, BATCH, "300ms");
    stage.configure("second", 0, BATCH, "300ms");
    broker.produce_records(&stage.raw, &records(29, 0, total / 2, 2));
    let mut first = stage.start("first", None);
    stage.wait_consumed(total / 2, &mut [&mut first]);
    let mut second = stage.start("second", None);
    assert_eq!(first.wait().code(), Some(1), "{}", first.said());
    assert!(first.said().contains("taken over our group.instance.id"), "{}", first.said());
    broker.produce_records(&stage.raw, &records(29, total / 2, total, 2));
    stage.wait_consumed(total, &mut [&mut second]);
    second.stop();
    let consumed = ["first", "second"].map(|name| conserved(&stage.state(name))).iter().sum::<u64>();
    assert_eq!(consumed + stage.waiting(), total as u64);
    all(&stage);
}

#[test]
fn broker_crash_in_mid_stream_keeps_output_identical() {
    let Some(broker) = TestCluster::start() else { return };
    let (seed, total) = (9, 24 * BATCH);
    let calm = Stage::new(&broker, 1);
    let stage = Stage::new(&broker, 1);
    for (stage, disturbed) in [(&calm, false), (&stage, true)] {
        stage.configure("only", 2, BATCH, "1h");
        let mut daemon = stage.start("only", None);
        for part in 0..3 {
            broker.produce_records(&stage.raw, &records(seed, part * total / 3, (part + 1) * total / 3, 1));
            if disturbed && part < 2 {
                stage.wait_consumed(part * total / 3 + BATCH, &mut [&mut daemon]);
                broker.kill();
                std::thread::sleep(Duration::from_millis(500));
                broker.restart();
            }
        }
        stage.wait_consumed(total, &mut [&mut daemon]);
        daemon.stop();
        assert_eq!(conserved(&stage.state("only")), total as u64);
    }
    assert!(all(&calm) > total / 2);
    assert!(calm.released() == stage.released(), "the disturbed run has released something else");
}

#[test]
fn copied_state_directory_fences_the_original_instance() {
    let Some(broker) = TestCluster::shared() else { return };
    let (seed, portion) = (13, 10 * BATCH);
    let stage = Stage::new(broker, 2);
    for name in ["first", "copy"] {
        stage.configure(name, 2, BATCH, "300ms");
    }
    broker.produce_records(&stage.raw, &records(seed, 0, portion, 2));
    let mut first = stage.start("first", None);
    stage.wait_consumed(2 * BATCH, &mut [&mut first]);
    first.signal(Signal::STOP);
    copies::tree(&stage.state("first"), &stage.state("copy"));
    let mut second = stage.start("copy", None);
    stage.wait_consumed(portion, &mut [&mut second]);
    first.signal(Signal::CONT);
    broker.produce_records(&stage.raw, &records(seed, portion, 2 * portion, 2));
    let status = first.wait();
    assert_eq!(status.code(), Some(1), "{}", first.said());
    let told =
        ["taken over our transactional id", "with a copy of this state"].iter().any(|why| first.said().contains(why));
    assert!(told, "{}", first.said());
    // The first instance may have taken the id back before it saw the marker. The copy is then fenced, and continues
    // after a restart.
    wait_until("the rest", || {
        if let Some(status) = second.ended() {
            assert!(
                status.code() == Some(1) && second.said().contains("taken over our transactional id"),
                "{status}: {}",
                second.said()
            );
            second = stage.start("copy", None);
        }
        stage.consumed() >= 2 * portion as i64
    });
    second.stop();
    // It may be stopped while it restores a partition.
    assert_eq!(conserved(&stage.state("copy")) + stage.waiting(), 2 * portion as u64);
    let lines = all(&stage);
    // The topic contains the releases of the copy.
    for arguments in [&[][..], &["--accept-rewind"]] {
        let mut first = stage.start_with("first", arguments, None);
        assert_eq!(first.wait().code(), Some(1), "{}", first.said());
        assert!(first.said().contains("does not match its topics: it ends at batch"), "{}", first.said());
    }
    assert_eq!(all(&stage), lines);
}

#[test]
fn rewound_offsets_are_refused_until_accepted() {
    let Some(broker) = TestCluster::shared() else { return };
    let (seed, total) = (17, 4 * BATCH);
    let stage = Stage::new(broker, 1);
    stage.configure("only", 0, BATCH, "1h");
    broker.produce_records(&stage.raw, &records(seed, 0, total, 1));
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(total, &mut [&mut daemon]);
    daemon.stop();
    let lines = all(&stage);
    broker.set_group_offset(&stage.group, &stage.raw, 0, 2 * BATCH as i64);
    let mut daemon = stage.start("only", None);
    assert_eq!(daemon.wait().code(), Some(1), "{}", daemon.said());
    assert!(daemon.said().contains("--accept-rewind"), "{}", daemon.said());
    assert_eq!((all(&stage), stage.consumed()), (lines, 2 * BATCH as i64));
    let mut daemon = stage.start_with("only", &["--accept-rewind"], None);
    stage.wait_consumed(total, &mut [&mut daemon]);
    daemon.stop();
    assert_eq!(conserved(&stage.state("only")), (total + 2 * BATCH) as u64);
    let again = stage.released().values().map(Vec::len).sum::<usize>();
    assert!(again > lines, "the records after the accepted offset leave a second time");
}

#[test]
fn lost_state_directory_loses_no_record() {
    let Some(broker) = TestCluster::shared() else { return };
    let (seed, portion) = (19, 4 * BATCH);
    let stage = Stage::new(broker, 1);
    stage.configure("only", 0, BATCH, "1h");
    broker.produce_records(&stage.raw, &records(seed, 0, portion, 1));
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(portion, &mut [&mut daemon]);
    daemon.stop();
    fs::remove_dir_all(stage.state("only")).expect("a directory of ours");
    broker.produce_records(&stage.raw, &records(seed, portion, 2 * portion, 1));
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(2 * portion, &mut [&mut daemon]);
    daemon.stop();
    assert_eq!(conserved(&stage.state("only")), portion as u64, "it goes on behind the offsets of the group");
    all(&stage);
}

#[test]
fn idle_daemon_uses_little_cpu() {
    const TICKS_A_SECOND: u64 = 100;
    let Some(broker) = TestCluster::shared() else { return };
    let stage = Stage::new(broker, 1);
    stage.configure("only", 0, BATCH, "300ms");
    broker.produce_records(&stage.raw, &records(23, 0, 2 * BATCH, 1));
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(2 * BATCH, &mut [&mut daemon]);
    let ticks = || -> u64 {
        let of = fs::read_to_string(format!("/proc/{}/stat", daemon.pid().as_raw_nonzero())).expect("a process");
        // After the name: the state and ten more fields, then the times in user and in system mode.
        let (_, behind) = of.rsplit_once(')').expect("a name");
        behind.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    };
    let (before, seconds) = (ticks(), 4);
    std::thread::sleep(Duration::from_secs(seconds));
    let taken = ticks() - before;
    assert!(taken < seconds * TICKS_A_SECOND / 4, "{taken} of {} ticks", seconds * TICKS_A_SECOND);
    daemon.stop();
}
