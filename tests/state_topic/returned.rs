//! Directories that come back, and two processes of one name.

use crate::scene::{BATCH, MADE, Scene, copy};
use crate::support::daemon::{finished, records};
use crate::support::kafka::Broker;

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
    assert!(daemon.said().contains("the instance has run elsewhere since"), "{}", daemon.said());
    finished(&scene.stage, &mut daemon, 3 * total);
}

#[test]
fn a_second_process_of_one_name_takes_the_place_of_the_first() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (72, 6 * BATCH);
    let scene = Scene::new(broker, seed, total);
    // A static member of its own, so that the group does not decide it.
    let mut first = scene.consume(total);
    scene.stage.configure("other", 2, BATCH, "1h");
    let mut second = scene.start_as("other", None, &[]);
    broker.produce_records(&scene.stage.raw, &records(seed, total, 2 * total, 1));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while scene.stage.consumed() < 2 * total as i64 {
        assert!(second.ended().is_none(), "{}", second.said());
        assert!(std::time::Instant::now() < deadline, "{}", second.said());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(second.said().contains(MADE), "{}", second.said());
    assert_eq!(first.wait().code(), Some(1), "{}", first.said());
    second.stop();
    assert_eq!(crate::support::daemon::conserved(&scene.stage.state("other")), 2 * total as u64);
    let released = scene.stage.released();
    crate::support::daemon::sound(released.values().flatten());
}

/// A state that has been on one machine until now, and is killed on its way into the topic.
#[test]
fn a_state_of_one_directory_is_taken_over_by_the_topic() {
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
    assert!(daemon.said().contains(MADE), "{}", daemon.said());
    finished(&scene.stage, &mut daemon, 2 * total);
    let mut local = scene.stage.start("only", None);
    scene.refused(&mut local, "is the cache of a state in a topic");
    // A name is one of a group: what another group keeps under it takes nobody's place.
    let other = Scene { instance: scene.instance.clone(), topic: scene.topic.clone(), ..Scene::new(broker, seed, total) };
    let mut stranger = other.consume(total);
    finished(&other.stage, &mut stranger, total);
    scene.lose();
    let mut daemon = scene.consume(2 * total);
    finished(&scene.stage, &mut daemon, 2 * total);
}
