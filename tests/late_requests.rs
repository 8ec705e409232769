//! Tests late, repeated and lost requests, and connections that break: the daemon releases the bytes of an undisturbed
//! run.

use crate::support;

use std::ops::Deref;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::daemon::{Dice, Seen, Stage, TestDaemon, finish, finished, records, same};
use support::kafka::TestCluster;
use support::proxy::{
    ADD_OFFSETS, ADD_PARTITIONS, END_TXN, FIND_COORDINATOR, Fault, INIT_PRODUCER_ID, PRODUCE, Proxy, TXN_OFFSET_COMMIT,
    wait_until,
};

/// Batches closed by count depend only on the stream.
const BATCH: usize = 40;

/// The request arrives when the next transaction has records in a topic.
const AFTER_THE_NEXT_BEGINS: &[i16] = &[END_TXN, PRODUCE];

/// The request arrives when the next transaction's offsets are sent and not committed.
const AFTER_THE_NEXT_SENDS_OFFSETS: &[i16] = &[END_TXN, TXN_OFFSET_COMMIT];

/// Error that forces the client to abort.
const NOT_AUTHORIZED: i16 = 30;

struct Network {
    broker: TestCluster,
    proxy: Proxy,
}

static IDLE: Mutex<Vec<Network>> = Mutex::new(Vec::new());

struct Lent(Option<Network>);

impl Deref for Lent {
    type Target = Network;

    fn deref(&self) -> &Network {
        self.0.as_ref().expect("it is given back at the end")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // Connections of a failed test may still hold armed faults.
        if !std::thread::panicking() {
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).extend(self.0.take());
        }
    }
}

fn network() -> Option<Lent> {
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let network = match idle {
        Some(network) => network,
        None => {
            let proxy = Proxy::listen();
            let (broker, port) = TestCluster::start_behind(proxy.port())?;
            proxy.forward_to(port);
            Network { broker, proxy }
        }
    };
    network.proxy.calm();
    Some(Lent(Some(network)))
}

fn behind(network: &Network, hold: usize) -> Stage<'_> {
    let stage = Stage::new(&network.broker, 1).with_static_membership().reached_by(network.proxy.address());
    stage.configure("only", hold, BATCH, "1h");
    stage
}

fn undisturbed(broker: &TestCluster, seed: u64, hold: usize, total: usize) -> (Stage<'_>, Seen) {
    let stage = Stage::new(broker, 1).with_static_membership();
    stage.configure("only", hold, BATCH, "1h");
    broker.produce_records(&stage.raw, &records(seed, 0, total, 1));
    let seen = finish(&stage, total);
    (stage, seen)
}

struct Supervised<'a> {
    stage: &'a Stage<'a>,
    daemon: TestDaemon,
    ends: usize,
}

impl<'a> Supervised<'a> {
    fn start(stage: &'a Stage<'a>) -> Self {
        Self { stage, daemon: stage.start("only", None), ends: 0 }
    }

    fn watch(&mut self, what: &str) {
        if let Some(status) = self.daemon.ended() {
            assert_eq!(status.code(), Some(1), "{what}: {}", self.daemon.said());
            eprintln!("{what}: it ended: {}", self.daemon.said().lines().last().unwrap_or_default());
            self.ends += 1;
            self.daemon = self.stage.start("only", None);
        }
    }

    fn aborted(&self) -> usize {
        self.daemon.said().matches("batch aborted").count()
    }

    fn wait_consumed(&mut self, what: &str, records: usize) {
        wait_until(what, || {
            self.watch(what);
            self.stage.consumed() >= records as i64
        });
    }
}

fn is_prefix(what: &str, stage: &Stage, undisturbed: &Seen) -> usize {
    let released = stage.released();
    for (partition, lines) in &released {
        let calm = &undisturbed.released[partition];
        let differs = lines.iter().zip(calm).position(|(a, b)| a != b);
        assert!(differs.is_none() && lines.len() <= calm.len(), "{what}: partition {partition} differs at {differs:?}");
    }
    released.values().map(Vec::len).sum()
}

/// The delayed commit request arrives when the next transaction has its first records.
#[test]
fn late_commit_request_commits_nothing_of_the_next_batch() {
    let Some(network) = network() else { return };
    let Network { broker, proxy } = &*network;
    let (seed, total) = (61, 4 * BATCH);
    let (_one, first_batch) = undisturbed(broker, seed, 0, BATCH);
    let first_batch: usize = first_batch.released.values().map(Vec::len).sum();
    let (calm, seen) = undisturbed(broker, seed, 0, total);

    let stage = behind(&network, 0);
    broker.produce_records(&stage.raw, &records(seed, 0, total, 1));
    proxy.arm(END_TXN, 0, Fault::Late(AFTER_THE_NEXT_BEGINS));
    // The commit of the second batch, after the repetition of the first.
    proxy.arm(END_TXN, 1, Fault::Stall);
    let mut daemon = Supervised::start(&stage);
    wait_until("the second batch's own commit", || proxy.stalled() > 0 || daemon.daemon.ended().is_some());
    let delivered = proxy.delivered();
    let visible = is_prefix("before the second batch's own commit", &stage, &seen);
    eprintln!(
        "the broker's answer to the late commit: {delivered:?}; visible: {visible}, of the first batch: {first_batch}"
    );
    assert_eq!(delivered.len(), 1, "the commit was not late: {delivered:?}");
    assert_eq!(visible, first_batch, "fragments of the second batch are visible before it is committed");
    proxy.let_go();
    daemon.wait_consumed("the rest", total);
    same(&stage, &finished(&stage, &mut daemon.daemon, total), &calm, &seen);
    assert_ne!(delivered[0].error, 0, "the broker took the late commit");
    assert_eq!(daemon.ends, 0, "a late request of an older epoch is no reason to end");
}

/// The coordinator forgets the offsets of the open transaction and commits the rest of it.
#[test]
fn offsets_forgotten_by_the_broker_are_committed_again() {
    let Some(network) = network() else { return };
    let Network { broker, proxy } = &*network;
    let (seed, total) = (62, 2 * BATCH);
    let (calm, seen) = undisturbed(broker, seed, 0, total);
    let stage = behind(&network, 0);
    broker.produce_records(&stage.raw, &records(seed, 0, total, 1));
    proxy.arm(TXN_OFFSET_COMMIT, 0, Fault::Late(AFTER_THE_NEXT_SENDS_OFFSETS));
    let mut daemon = Supervised::start(&stage);
    daemon.wait_consumed("both batches", total);
    assert_eq!(proxy.delivered().len(), 1, "the offsets were not late");
    // Kafka 4.1.1 keeps them.
    assert!(
        TestCluster::is_newer() || daemon.daemon.said().contains("committing them again"),
        "the broker has forgotten nothing: the test shows nothing"
    );
    same(&stage, &finished(&stage, &mut daemon.daemon, total), &calm, &seen);
    assert_eq!(daemon.ends, 0, "it is no reason to end");
}

#[test]
fn shutdown_waits_until_offsets_are_committed() {
    let Some(network) = network() else { return };
    let Network { broker, proxy } = &*network;
    let (seed, total) = (63, 2 * BATCH);
    let (calm, seen) = undisturbed(broker, seed, 0, total);
    let stage = behind(&network, 0);
    broker.produce_records(&stage.raw, &records(seed, 0, total, 1));
    proxy.arm(TXN_OFFSET_COMMIT, 0, Fault::Late(AFTER_THE_NEXT_SENDS_OFFSETS));
    proxy.arm(END_TXN, 1, Fault::Stall);
    let mut daemon = stage.start("only", None);
    wait_until("the second batch's commit", || proxy.stalled() == 1);
    // The offsets are checked after the next epoch.
    proxy.arm(INIT_PRODUCER_ID, 0, Fault::Stall);
    proxy.let_go();
    wait_until("the next epoch", || proxy.stalled() == 2);
    daemon.signal(Signal::TERM);
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        assert!(daemon.ended().is_none(), "it has left: {}", daemon.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = if TestCluster::is_newer() { total } else { BATCH };
    assert_eq!(stage.consumed(), left as i64, "the broker has forgotten nothing: the test shows nothing");
    proxy.let_go();
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.said());
    assert_eq!(stage.consumed(), total as i64, "{}", daemon.said());
    let mut daemon = stage.start("only", None);
    wait_until("its partition", || daemon.said().contains("partitions changed"));
    same(&stage, &finished(&stage, &mut daemon, total), &calm, &seen);
}

/// Separate tests run in parallel.
const FILLING: &[i16] = &[PRODUCE, ADD_PARTITIONS, ADD_OFFSETS];
const ENDS: &[i16] = &[END_TXN, TXN_OFFSET_COMMIT, FIND_COORDINATOR, INIT_PRODUCER_ID];
const ENDS_OF_ABORTED: &[i16] = &[END_TXN, INIT_PRODUCER_ID];

fn walk(kinds: &[i16], seed: u64, hold: usize, aborts: bool) {
    let Some(network) = network() else { return };
    let Network { broker, proxy } = &*network;
    let fates = |kind| {
        // The next epoch is requested between two transactions.
        let between = matches!(kind, INIT_PRODUCER_ID | FIND_COORDINATOR);
        let until = if between { &AFTER_THE_NEXT_BEGINS[1..] } else { AFTER_THE_NEXT_BEGINS };
        let delay = Fault::Delay(Duration::from_millis(200));
        [Fault::Late(until), Fault::Twice(until), Fault::CutBefore, Fault::CutAfter, delay]
    };
    let cases: Vec<(i16, Fault)> =
        kinds.iter().flat_map(|kind| fates(*kind).into_iter().map(move |fate| (*kind, fate))).collect();
    let rounds = if std::env::var_os("THRONG_LONG").is_some() { 10 } else { 1 };
    let total = (rounds * cases.len() * 2 + 1) * BATCH;
    let (calm, seen) = undisturbed(broker, seed, hold, total);

    let stage = behind(&network, hold);
    let mut daemon = Supervised::start(&stage);
    let mut dice = Dice::new(seed);
    let (mut sent, mut seen_aborts) = (0, (0, 0));
    let mut produce = |batches: usize| {
        broker.produce_records(&stage.raw, &records(seed, sent, sent + batches * BATCH, 1));
        sent += batches * BATCH;
        sent
    };
    let consumed = produce(1);
    daemon.wait_consumed("the first batch", consumed);
    for round in 0..rounds {
        for (kind, fate) in &cases {
            let skip = match *kind {
                PRODUCE | ADD_PARTITIONS if round > 0 => dice.roll(3) as usize,
                _ => 0,
            };
            let what = format!("round {round}: request {kind} ({skip} before it), {fate:?}, aborts: {aborts}");
            proxy.calm();
            if aborts {
                proxy.arm(ADD_OFFSETS, 0, Fault::Refuse(NOT_AUTHORIZED));
            }
            proxy.arm(*kind, skip, fate.clone());
            let (ends, aborted) = (daemon.ends, daemon.aborted());
            let consumed = produce(2);
            daemon.wait_consumed(&what, consumed);
            if *kind != PRODUCE && *kind != ADD_PARTITIONS {
                assert!(proxy.is_done(), "{what}: it has not happened");
            }
            // The refusal uses the connection of these requests, and a repeated offset request may take its place.
            let cut = match fate {
                Fault::Delay(_) => false,
                Fault::Twice(_) => *kind == ADD_OFFSETS,
                _ => matches!(*kind, ADD_PARTITIONS | ADD_OFFSETS),
            };
            // The log lines are rate-limited, so the log may lack some aborts.
            seen_aborts.0 += usize::from(daemon.aborted() > aborted || daemon.ends > ends);
            seen_aborts.1 += usize::from(aborts && !cut);
            // Only a request for an epoch takes the epoch from a producer.
            assert!(*kind == INIT_PRODUCER_ID || daemon.ends == ends, "{what}: it ended");
            is_prefix(&what, &stage, &seen);
            eprintln!("{what}: {:?}", proxy.delivered());
        }
    }
    proxy.calm();
    assert!(2 * seen_aborts.0 >= seen_aborts.1, "{seen_aborts:?}: too little was aborted");
    eprintln!("it was started again {} times in {} cases", daemon.ends, rounds * cases.len());
    same(&stage, &finished(&stage, &mut daemon.daemon, total), &calm, &seen);
}

#[test]
fn request_faults_while_filling_a_batch_keep_output_identical() {
    walk(FILLING, 71, 0, false);
}

#[test]
fn request_faults_at_batch_boundaries_keep_output_identical() {
    walk(ENDS, 73, 0, false);
}

#[test]
fn request_faults_while_filling_an_aborted_batch_keep_output_identical() {
    walk(FILLING, 72, 2, true);
}

#[test]
fn request_faults_at_aborted_batch_boundaries_keep_output_identical() {
    walk(ENDS_OF_ABORTED, 74, 2, true);
}
