//! Directories that come back, and two processes of one name.

use crate::scene::{BATCH, MADE, Scene, copy};
use crate::support::daemon::{finished, records};
use crate::support::kafka::Broker;
use std::time::Duration;

#[test]
fn an_old_directory_that_comes_back_is_made_anew() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (71, 6 * BATCH);
    let scene = Scene::new(broker, seed, total);
    let mut daemon = scene.consume(total);
    finished(&scene.stage, &mut daemon, total);
    let aside = scene.stage.dir.path().join("aside");
    copy(&scene.directory(), &aside);
    broker.produce_records(&scene.stage.raw, &records(seed, total, 2 * total, 1));
    let mut daemon = scene.consume(2 * total);
    assert!(!daemon.said().contains(MADE), "it was in step");
    finished(&scene.stage, &mut daemon, 2 * total);
    scene.lose();
    copy(&aside, &scene.directory());
    broker.produce_records(&scene.stage.raw, &records(seed, 2 * total, 3 * total, 1));
    let mut daemon = scene.consume(3 * total);
    scene.says(&mut daemon, "the instance has run elsewhere since");
    finished(&scene.stage, &mut daemon, 3 * total);
}

#[test]
fn a_second_process_of_one_name_takes_the_place_of_the_first() {
    if std::env::var_os("THRONG_LONG").is_none() {
        eprintln!("SKIPPED: it waits for a group to give up a member (./dev test --long)");
        return;
    }
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (72, 6 * BATCH);
    let mut scene = Scene::new(broker, seed, total);
    let mut first = scene.consume(total);
    // A member of its own: the group lets both be.
    scene.stage.properties = String::new();
    scene.stage.configure("other", 2, BATCH, "1h");
    let mut second = scene.start_as("other", None, &[]);
    scene.says(&mut second, MADE);
    broker.produce_records(&scene.stage.raw, &records(seed, total, 2 * total, 1));
    // The first reads them, and can commit none.
    assert_eq!(first.wait().code(), Some(1), "{}", first.said());
    scene.stage.wait_consumed(2 * total, &mut [&mut second]);
    second.stop();
    assert_eq!(crate::support::daemon::conserved(&scene.stage.state("other")), 2 * total as u64);
    let released = scene.stage.released();
    crate::support::daemon::sound(released.values().flatten());
}

/// A state that has been on one machine until now, and is killed on its way into the topic.
#[test]
fn a_state_of_one_directory_is_taken_over_by_the_topic() {
    if std::env::var_os("THRONG_LONG").is_none() {
        eprintln!("SKIPPED: it starts nine times (./dev test --long)");
        return;
    }
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (73, 6 * BATCH);
    let scene = Scene::new(broker, seed, total);
    let mut daemon = scene.stage.start("only", None);
    scene.stage.wait_consumed(total, &mut [&mut daemon]);
    finished(&scene.stage, &mut daemon, total);
    for point in ["state-adopting", "state-adopted", "state-part-kept", "state-in-force"] {
        scene.start(Some(&format!("{point}=return"))).crashes(point);
    }
    broker.produce_records(&scene.stage.raw, &records(seed, total, 2 * total, 1));
    scene.start(Some("committed=1*off->return")).crashes("committed");
    scene.lose();
    let mut daemon = scene.consume(2 * total);
    scene.says(&mut daemon, MADE);
    finished(&scene.stage, &mut daemon, 2 * total);
    let mut local = scene.stage.start("only", None);
    scene.refused(&mut local, "is the cache of a state in a topic");
    // A name is one of a group: what another group keeps under it takes nobody's place.
    let other =
        Scene { instance: scene.instance.clone(), topic: scene.topic.clone(), ..Scene::new(broker, seed, total) };
    let mut stranger = other.consume(total);
    finished(&other.stage, &mut stranger, total);
    scene.lose();
    let mut daemon = scene.consume(2 * total);
    finished(&scene.stage, &mut daemon, 2 * total);
}

/// Whatever it waits for while it begins, it does not wait when it is told to end (`stop` asks for the exit code 0, which one that has
/// reached `process.shutdown_time` does not have).
#[test]
fn one_that_is_told_to_end_while_it_begins_ends() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (73, 4 * BATCH);
    let scene = Scene::new(broker, seed, total);
    let mut daemon = scene.consume(total);
    finished(&scene.stage, &mut daemon, total);
    let rounds = if std::env::var_os("THRONG_LONG").is_some() { 60 } else { 6 };
    for round in 0..rounds {
        if round % 2 == 0 {
            scene.lose();
        }
        let mut daemon = scene.start(None);
        // It hears signals from here on.
        scene.says(&mut daemon, "is a file that others may read");
        std::thread::sleep(Duration::from_millis(100 + 3_000 * round / rounds));
        daemon.stop();
    }
    // All is consumed already, so that it is not waited for.
    let mut daemon = scene.start(None);
    scene.says(&mut daemon, "is a file that others may read");
    finished(&scene.stage, &mut daemon, total);
}
