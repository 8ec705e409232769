//! The directory is lost, after a kill at any point.

use crate::scene::{BATCH, MADE, Scene, copy};
use crate::support::crash_points::{self, kill_at};
use crate::support::daemon::{Dice, finished, same, state};
use crate::support::kafka::Broker;

/// Points of the first copy into the topic, and of the making of a directory.
const OF_A_COPY: [&str; 4] = ["state-copy-begun", "state-part-kept", "state-produced", "state-in-force"];

/// Those that are tried where time is short: of each kind of place one.
const FIRST: [&str; 4] = ["state-in-force", "produced", "committed", "settled"];

/// Without faults, and with a directory that stays.
fn undisturbed(broker: &Broker, seed: u64, total: usize) -> (Scene<'_>, crate::support::daemon::Seen) {
    let calm = Scene::new(broker, seed, total);
    let mut daemon = calm.stage.start("only", None);
    calm.stage.wait_consumed(total, &mut [&mut daemon]);
    let seen = finished(&calm.stage, &mut daemon, total);
    (calm, seen)
}

#[test]
fn a_directory_that_is_lost_with_a_kill_at_any_point_changes_nothing() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (61, 50 * BATCH);
    let (calm, undisturbed) = undisturbed(broker, seed, total);
    let scene = Scene::new(broker, seed, total);
    let mut dice = Dice::new(seed);
    let is_long = std::env::var_os("THRONG_LONG").is_some();
    let of_a_batch = crash_points::TOPIC.into_iter().chain([crash_points::SETTLED, crash_points::EPOCH_TAKEN]);
    for point in OF_A_COPY.into_iter().chain(of_a_batch).filter(|point| is_long || FIRST.contains(point)) {
        let crash = kill_at(point, &mut dice);
        let mut daemon = scene.start(Some(&crash));
        daemon.crashes(&crash);
        // Where nothing had been committed there is nothing to make a directory of.
        scene.lose();
    }
    assert!(scene.stage.consumed() < total as i64, "the last crash came after the end of the stream");
    let mut daemon = scene.consume(total);
    scene.says(&mut daemon, MADE);
    let seen = finished(&scene.stage, &mut daemon, total);
    same(&scene.stage, &seen, &calm.stage, &undisturbed);
}

/// What the topic has is known whatever a process was killed in: a later start without the directory finds it adding up.
#[test]
fn a_kill_whose_directory_stays_leaves_the_topic_adding_up() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (66, 60 * BATCH);
    let scene = Scene::new(broker, seed, total);
    let is_long = std::env::var_os("THRONG_LONG").is_some();
    let first = ["committed", "rows-laid"];
    let more = ["acknowledged", "delivered", "applied", "state-unwritten", "state-unflushed", "intent-flushed"];
    for point in first.into_iter().chain(more.into_iter().filter(|_| is_long)) {
        // The first rows are laid for a batch that is behind a committed one.
        let crash = format!("{point}=1*off->return");
        scene.start(Some(&crash)).crashes(&crash);
        // And once more before anything that the start writes is on the disk.
        scene.start(Some("state-unflushed=return")).crashes("state-unflushed");
        scene.start(Some("committed=1*off->return")).crashes("committed");
        scene.lose();
        scene.start(Some("restored=return")).crashes("restored");
    }
    let mut daemon = scene.consume(total);
    finished(&scene.stage, &mut daemon, total);
}

#[test]
fn a_kill_while_the_directory_is_made_changes_nothing() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (62, 12 * BATCH);
    let (calm, undisturbed) = undisturbed(broker, seed, total);
    let scene = Scene::new(broker, seed, total);
    scene.start(Some("committed=3*off->return")).crashes("committed");
    let aside = scene.stage.dir.path().join("aside");
    copy(&scene.directory(), &aside);
    scene.lose();
    for point in ["restore-begun", "restore-filled", "state-import-unmarked", "restored"] {
        scene.start(Some(&format!("{point}=return"))).crashes(point);
        if point == "restored" {
            scene.lose();
        }
    }
    scene.start(Some("committed=2*off->return")).crashes("committed");
    // The old directory has come back: it is behind, and made anew in its place.
    for point in ["restore-begun", "restore-filled", "restored"] {
        scene.lose();
        copy(&aside, &scene.directory());
        scene.start(Some(&format!("{point}=return"))).crashes(point);
    }
    let mut daemon = scene.consume(total);
    let seen = finished(&scene.stage, &mut daemon, total);
    same(&scene.stage, &seen, &calm.stage, &undisturbed);
}

/// What is remembered is the same; ages go on, and what is counted of a process begins anew.
#[test]
fn what_is_remembered_comes_back_as_it_was() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (63, 6 * BATCH);
    let scene = Scene::new(broker, seed, total);
    scene.start(Some("committed=4*off->return")).crashes("committed");
    let aside = scene.stage.dir.path().join("aside");
    copy(&scene.directory(), &aside);
    scene.lose();
    // Nothing but the making of the directory.
    scene.start(Some("restored=return")).crashes("restored");
    let (before, after) = (state(&aside), state(&scene.directory()));
    assert_eq!(before.intent, after.intent, "the last batch, which the next start applies");
    assert!(after.intent.is_some());
    assert_eq!((before.progress, before.plan, before.baseline), (after.progress, after.plan, after.baseline));
    assert_eq!((before.sample, before.met), (after.sample, after.met));
    let ordered = |mut held: Vec<throng::daemon::state::records::KeptRow>| {
        held.sort_by_key(|row| row.ordinal);
        held
    };
    assert_eq!(ordered(before.held), ordered(after.held));
    assert_eq!(before.deltas, after.deltas);
    assert_eq!(before.rows.len(), after.rows.len());
    let mut daemon = scene.consume(total);
    finished(&scene.stage, &mut daemon, total);
}

/// After an order to end nothing is pending, and what had been held is settled: the next instance begins behind it.
#[test]
fn an_instance_that_ended_in_order_goes_on_without_its_directory() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (64, 6 * BATCH);
    let scene = Scene::new(broker, seed, total);
    let mut daemon = scene.consume(total);
    finished(&scene.stage, &mut daemon, total);
    scene.lose();
    let more = crate::support::daemon::records(seed, total, 2 * total, 1);
    broker.produce_records(&scene.stage.raw, &more);
    let mut daemon = scene.consume(2 * total);
    scene.says(&mut daemon, MADE);
    finished(&scene.stage, &mut daemon, 2 * total);
}

/// Another instance's open transaction in the partition must not hide what is ours.
#[test]
fn what_another_instance_has_open_is_waited_for() {
    use rdkafka::producer::Producer;
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (65, 6 * BATCH);
    let scene = Scene::new(broker, seed, total);
    scene.start(Some("committed=1*off->return")).crashes("committed");
    let other = broker.transactional(&crate::support::kafka::unique("other"));
    other.begin_transaction().expect("begins");
    for partition in 0..3 {
        let record = crate::support::kafka::Record {
            partition: Some(partition),
            key: Some(b"other/x".to_vec()),
            payload: Some(b"x".to_vec()),
            ..Default::default()
        };
        crate::support::kafka::send(&other, &scene.topic, &record);
    }
    other.flush(std::time::Duration::from_secs(30)).expect("delivered");
    let mut daemon = scene.start(Some("committed=1*off->return"));
    daemon.crashes("committed");
    scene.lose();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_secs(3));
            other.abort_transaction(std::time::Duration::from_secs(30)).expect("aborts");
        });
        let mut daemon = scene.consume(total);
        finished(&scene.stage, &mut daemon, total);
    });
}
