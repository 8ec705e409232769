//! Two processes of one name, of which the first takes the name back while the second reads its state.

use crate::scene::{BATCH, Scene};
use crate::support::daemon::{conserved, sound};
use crate::support::kafka::{Broker, Record, send, unique};
use rdkafka::producer::Producer;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// What is read is newer than what was to be read: nothing is damaged, and another start is all that it takes.
#[test]
fn a_process_that_is_overtaken_while_it_reads_its_state_says_so() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (98, 20 * BATCH);
    let mut scene = Scene::new(broker, seed, total);
    // Longer than the first one stands still.
    scene.stage.sessions = "\"session.timeout.ms\" = \"45000\"";
    ["only", "second"].iter().for_each(|name| drop(scene.stage.configure(name, 2, BATCH, "1h")));
    let mut first = scene.start(Some("committed=3*off->1*sleep(5000)->off"));
    scene.stage.wait_consumed(4 * BATCH, &mut [&mut first]);
    // Its last transaction is decided, and it has not taken the next epoch.
    first.signal(Signal::STOP);
    // Somebody else's open transaction holds the second one up, which knows by then which batch was the last.
    let other = broker.transactional(&unique("other"));
    other.begin_transaction().expect("begins");
    for partition in 0..3 {
        let (key, payload) = (Some(b"other/x".to_vec()), Some(b"x".to_vec()));
        send(&other, &scene.topic, &Record { partition: Some(partition), key, payload, ..Record::default() });
    }
    other.flush(Duration::from_secs(30)).expect("delivered");
    let mut second = scene.start_as("second", None, &[]);
    scene.says(&mut second, "the state directory is made from its topic");
    first.signal(Signal::CONT);
    let deadline = Instant::now() + Duration::from_secs(60);
    while scene.stage.consumed() < 6 * BATCH as i64 {
        assert!(first.ended().is_none() && Instant::now() < deadline, "{}", first.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    other.abort_transaction(Duration::from_secs(30)).expect("aborts");
    assert_eq!(second.wait().code(), Some(1), "{}", second.said());
    assert!(second.said().contains("has gone on while this one read its state"), "{}", second.said());
    first.kill();
    let mut second = scene.start_as("second", None, &[]);
    scene.stage.wait_consumed(total, &mut [&mut second]);
    second.stop();
    assert_eq!(conserved(&scene.stage.state("second")), total as u64);
    assert!(sound(scene.stage.released().values().flatten()) > total / 2);
}
