//! What is refused, by name, and what nobody reads in the topic.

use crate::scene::{BATCH, Scene};
use crate::support::daemon::finished;
use crate::support::kafka::{Broker, unique};
use std::fs;
use std::path::Path;

#[test]
fn another_secret_kind_name_or_topic_is_refused() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (81, 4 * BATCH);
    let mut scene = Scene::new(broker, seed, total);
    let mut daemon = scene.consume(total);
    finished(&scene.stage, &mut daemon, total);

    let mut local = scene.stage.start("only", None);
    scene.refused(&mut local, "is the cache of a state in a topic");
    let other = Path::new("another");
    let mut named = scene.start_as("only", None, &[("THRONG__STATE__INSTANCE", other)]);
    scene.refused(&mut named, "it is that of");
    for command in [&["forget", "somebody"][..], &["state", "rekey", "--new-secret-file", "new"]] {
        let dir = scene.stage.dir.path();
        fs::write(dir.join("new"), "another secret that is long enough").expect("a file");
        let done = std::process::Command::new(env!("CARGO_BIN_EXE_throng"))
            .args([command, &["-c", "only.toml"]].concat())
            .current_dir(dir)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && said.contains("would come back from there"), "{said}");
    }

    let key = scene.stage.dir.path().join("key");
    let secret = fs::read(&key).expect("the secret");
    fs::write(&key, "a foreign secret that is long enough").expect("a file");
    scene.lose();
    scene.refused(&mut scene.start(None), "the secret does not belong to the state of instance");
    fs::write(&key, secret).expect("a file");

    // An emptied topic, and one that deletes by age.
    let kept = std::mem::replace(&mut scene.topic, unique("state"));
    broker.create_topic(&scene.topic, 3, true);
    scene.refused(&mut scene.start(None), "has no state of instance");
    scene.topic = unique("state");
    broker.create_topic_with(&scene.topic, 3, &[("cleanup.policy", "compact,delete")]);
    scene.refused(&mut scene.start(None), "deletes records by age");
    scene.topic = kept;
    let mut daemon = scene.consume(total);
    finished(&scene.stage, &mut daemon, total);
}

#[test]
fn a_directory_in_which_something_is_pending_is_no_cache_yet() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (82, 3 * BATCH);
    let scene = Scene::new(broker, seed, total);
    scene.stage.start("only", Some("committed=1*off->return")).crashes("committed");
    scene.refused(&mut scene.start(None), "whether its last batch has left is not settled");
    let missing = scene.start_as("only", None, &[("THRONG__STATE__INSTANCE", Path::new(""))]);
    let mut missing = missing;
    scene.refused(&mut missing, "a state in a topic is found by the name of its instance");
}

#[test]
fn threat_38_who_reads_the_topic_learns_nothing_of_anybody() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, total) = (83, 4 * BATCH);
    let scene = Scene::new(broker, seed, total);
    let mut daemon = scene.consume(total);
    finished(&scene.stage, &mut daemon, total);
    let stored = broker.read_uncommitted(&scene.topic);
    assert!(stored.len() > 20, "{} records say little", stored.len());
    let canaries =
        ["\"p1", "person", "north", "south", "tent", "beds", "held/", "shard", "delta", "profile", "progress"];
    for record in &stored {
        let key = record.key.as_deref().expect("a key");
        let name = format!("{}/{}", scene.stage.group, scene.instance);
        assert!(key.starts_with(name.as_bytes()) && key.len() == name.len() + 29, "a name and digests");
        for bytes in [Some(key), record.payload.as_deref()].into_iter().flatten() {
            for canary in canaries {
                assert!(!bytes.windows(canary.len()).any(|w| w == canary.as_bytes()), "{canary}");
            }
        }
    }
    assert!(stored.iter().all(|record| record.partition == stored[0].partition), "one partition an instance");
}
