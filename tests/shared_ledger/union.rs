//! The union of all that instances release, recounted from what readers see: at every moment each class has k people, whatever is killed.

use crate::support::daemon::{Daemon, K, Stage, records, sound, state};
use crate::support::kafka::{Broker, unique};
use std::collections::BTreeMap;
use std::time::Duration;

const BATCH: usize = 30;
const PARTITIONS: i32 = 4;

/// A stage whose readers see one partition: what they see of it at any moment is the past of every commit in it.
fn stage(broker: &Broker) -> Stage<'_> {
    let mut stage = Stage::new(broker, PARTITIONS);
    stage.out = unique("out");
    broker.create_topic_with(&stage.out, 1, &[("retention.ms", "-1")]);
    let ledger = unique("ledger");
    broker.create_topic_with(&ledger, 2, &[("retention.ms", "-1")]);
    stage.security = format!("ledger_topic = \"{ledger}\"\n");
    stage
}

/// What readers see now, recounted: at the end of each batch every class that it shows has k people, by what stands before that end in
/// the one partition. Whatever a batch has counted was committed before it was begun, and so stands before it. Gives the lines, and how many
/// classes of batches rely on earlier ones.
fn seen(stage: &Stage) -> (usize, usize) {
    let lines = sound(stage.released().values().flatten());
    let (mut before, mut relying): (BTreeMap<Vec<u8>, usize>, usize) = (BTreeMap::new(), 0);
    // Lines of one batch have one stamp, and classes are told apart by their bytes.
    let stored = stage.broker.read_committed(&stage.out);
    let ends: BTreeMap<Option<i64>, i64> = stored.iter().map(|line| (line.timestamp, line.offset)).collect();
    let mut of_batch: BTreeMap<Option<i64>, BTreeMap<Vec<u8>, usize>> = BTreeMap::new();
    for line in stored {
        let class = line.payload.clone().expect("a line");
        *before.entry(class.clone()).or_default() += 1;
        *of_batch.entry(line.timestamp).or_default().entry(class).or_default() += 1;
        if ends[&line.timestamp] == line.offset {
            for (class, own) in &of_batch[&line.timestamp] {
                assert!(before[class] >= K, "{} people at the end of a batch", before[class]);
                relying += usize::from(*own < K);
            }
        }
    }
    (lines, relying)
}

/// Runs `names` over `total` records; each of `deaths` is a fault under which one instance dies and is started again.
fn run(names: &[&'static str], total: usize, deaths: &[&str], seed: u64) -> (usize, usize) {
    let broker = Broker::shared().expect("a broker");
    let stage = stage(broker);
    for name in names {
        stage.configure(name, 0, BATCH, "200ms");
    }
    let mut running: Vec<Daemon> = names.iter().map(|name| stage.start(name, None)).collect();
    let part = total / (deaths.len() + 1);
    for (round, fault) in deaths.iter().enumerate() {
        broker.produce_records(&stage.raw, &records(seed, round * part, (round + 1) * part, PARTITIONS));
        let at = round % names.len();
        running[at].kill();
        let mut dying = stage.start(names[at], Some(fault));
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        // Where it has no partition it does not come to its end.
        while dying.ended().is_none()
            && std::time::Instant::now() < deadline
            && stage.consumed() < ((round + 1) * part) as i64
        {
            seen(&stage);
        }
        if dying.ended().is_none() {
            dying.kill();
        }
        running[at] = stage.start(names[at], None);
    }
    broker.produce_records(&stage.raw, &records(seed, deaths.len() * part, total, PARTITIONS));
    stage.wait_consumed(total, &mut running.iter_mut().collect::<Vec<_>>());
    running.iter_mut().for_each(Daemon::stop);
    // An instance that had no partition when it was ended keeps the batch that it would have repeated; it has not left.
    let consumed: u64 = names.iter().map(|name| state(&stage.state(name)).progress.totals.consumed).sum();
    assert_eq!(consumed, total as u64, "a record was consumed twice, or by nobody");
    seen(&stage)
}

#[test]
fn two_instances_that_are_killed_release_no_class_below_k() {
    if Broker::shared().is_none() {
        return;
    }
    let deaths = ["intent-flushed=1*off->return", "committed=1*off->return", "others-taken-in=2*off->return"];
    let (lines, relying) = run(&["one", "two"], 16 * BATCH, &deaths, 23);
    assert!(
        lines > 8 * BATCH && relying > 20,
        "{lines} lines, of which {relying} classes rely on earlier batches, say little"
    );
}

#[test]
fn four_instances_that_are_killed_release_no_class_below_k() {
    if Broker::shared().is_none() {
        return;
    }
    let deaths = [
        "acknowledged=return",
        "ledger-paused=return;produced=1*off->return",
        "applied=return",
        "wall-clock=return(30000)",
    ];
    let (lines, relying) = run(&["one", "two", "three", "four"], 20 * BATCH, &deaths, 29);
    assert!(
        lines > 8 * BATCH && relying > 20,
        "{lines} lines, of which {relying} classes rely on earlier batches, say little"
    );
}
