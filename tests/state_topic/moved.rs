//! A topic that is another one than before, while the directory stays.

use crate::scene::{BATCH, MADE, Scene};
use crate::support::daemon::{conserved, finished, records};
use crate::support::kafka::{Broker, Record, unique};
use throng::io::state_topic::Spelling;

/// What a start says that copies the state anew.
const ANEW: &str = "it is copied anew";

/// The partition of the instance in a topic of so many.
fn partition(scene: &Scene<'_>, partitions: i32) -> i32 {
    Spelling::new(&scene.stage.group, &scene.instance, &[0; 32], &[0; 32]).partition(partitions)
}

#[test]
fn a_topic_that_is_another_one_gets_the_whole_state() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, mut total) = (95, 3 * BATCH);
    let mut scene = Scene::new(broker, seed, total);
    while partition(&scene, 3) == partition(&scene, 4) {
        scene.instance = unique("instance");
    }
    let mut daemon = scene.consume(total);
    finished(&scene.stage, &mut daemon, total);
    for what in ["renamed", "more partitions", "made anew", "made anew, and others write there"] {
        match what {
            "renamed" => {
                scene.topic = unique("state");
                broker.create_topic(&scene.topic, 3, true);
            }
            "more partitions" => broker.add_partitions(&scene.topic, 4),
            _ => broker.make_topic_anew(&scene.topic, 4, true),
        }
        if what.ends_with("write there") {
            let (key, payload) = (Some(b"other/x".to_vec()), Some(b"x".to_vec()));
            let partition = Some(partition(&scene, 4));
            broker.produce_records(&scene.topic, &[Record { partition, key, payload, ..Record::default() }]);
        }
        let more = |total: &mut usize| {
            broker.produce_records(&scene.stage.raw, &records(seed, *total, *total + BATCH, 1));
            *total += BATCH;
            scene.consume(*total)
        };
        let mut daemon = more(&mut total);
        scene.says(&mut daemon, ANEW);
        daemon.kill();
        // A start that finds all of it where it was kept copies nothing.
        let mut daemon = more(&mut total);
        daemon.kill();
        assert!(!daemon.said().contains(ANEW) && !daemon.said().contains(MADE), "{what}: {}", daemon.said());
        scene.lose();
        let mut daemon = more(&mut total);
        scene.says(&mut daemon, MADE);
        daemon.stop();
        assert_eq!(conserved(&scene.stage.state("only")), total as u64, "{what}: {}", daemon.said());
    }
    broker.produce_records(&scene.stage.raw, &records(seed, total, total + BATCH, 1));
    total += BATCH;
    let mut daemon = scene.consume(total);
    finished(&scene.stage, &mut daemon, total);
}
