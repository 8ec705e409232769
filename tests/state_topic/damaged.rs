//! Records that somebody else has written into the topic, or taken from it.

use crate::scene::{BATCH, MADE, Scene};
use crate::support::daemon::{finished, records};
use crate::support::kafka::{Broker, Record, unique};
use std::collections::BTreeMap;
use throng::io::kafka::connection::Cluster;
use throng::io::state_topic::spelling::Place;
use throng::io::state_topic::{Spelling, StateTopic};

#[test]
fn threat_38_a_value_that_was_removed_or_put_back_is_noticed() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, mut total) = (96, 4 * BATCH);
    let scene = Scene::new(broker, seed, total);
    scene.consume(total).kill();
    // One that has been written over.
    let mut versions: BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>> = BTreeMap::new();
    for record in broker.read_committed(&scene.topic) {
        versions.entry(record.key.expect("a key")).or_default().push(record.payload);
    }
    let all = |bodies: &Vec<Option<Vec<u8>>>| bodies.len() > 1 && bodies.iter().all(Option::is_some);
    let (key, bodies) = versions.into_iter().find(|(_, bodies)| all(bodies)).expect("a value that has changed");
    let name = Spelling::new(&scene.stage.group, &scene.instance, &[0; 32], &[0; 32]);
    let put = |body: Option<Vec<u8>>| {
        let (key, partition) = (Some(key.clone()), Some(name.partition(3)));
        let record = Record { key, payload: body, partition, ..Record::default() };
        broker.produce_records(&scene.topic, &[record]);
    };
    scene.lose();
    for wrong in [None, bodies[0].clone()] {
        put(wrong);
        scene.refused(&mut scene.start(None), "records of it were removed, or older ones put back");
    }
    put(bodies.last().cloned().flatten());
    broker.produce_records(&scene.stage.raw, &records(seed, total, total + BATCH, 1));
    total += BATCH;
    let mut daemon = scene.consume(total);
    scene.says(&mut daemon, MADE);
    finished(&scene.stage, &mut daemon, total);
}

#[test]
fn a_record_that_somebody_else_has_written_is_named() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, mut total) = (97, 2 * BATCH);
    let scene = Scene::new(broker, seed, total);
    scene.consume(total).kill();
    let stored = broker.read_committed(&scene.topic);
    let (ours, name) = (&stored[0], Spelling::new(&scene.stage.group, &scene.instance, &[0; 32], &[0; 32]));
    let place = name.place(ours.key.as_deref().expect("a key")).expect("a key of ours");
    let key = name.key_of(&Place { digest: [9; 16], ..place });
    let put = |payload: Option<&[u8]>| {
        let (key, payload) = (Some(key.clone()), payload.map(<[u8]>::to_vec));
        let record = Record { key, payload, partition: Some(ours.partition), ..Record::default() };
        broker.produce_records(&scene.topic, &[record]);
        broker.read_committed(&scene.topic).last().expect("what was written").offset
    };
    let offset = put(Some(b"garbage"));
    scene.lose();
    let said = format!("the record at offset {offset} in partition {} of topic", ours.partition);
    scene.refused(&mut scene.start(None), &said);
    put(None);
    broker.produce_records(&scene.stage.raw, &records(seed, total, total + BATCH, 1));
    total += BATCH;
    let mut daemon = scene.consume(total);
    scene.says(&mut daemon, MADE);
    finished(&scene.stage, &mut daemon, total);
}

/// What the topic has of older copies is named by its keys, whatever stands in the records of the one in force.
#[test]
fn what_is_cleared_is_known_by_its_keys_alone() {
    let Some(broker) = Broker::shared() else { return };
    let (topic, group) = (unique("state"), unique("group"));
    broker.create_topic(&topic, 1, true);
    let spelling = Spelling::new(&group, "one", &[1; 32], &[2; 32]);
    let key = |generation, digest| spelling.key_of(&Place { generation, digest: [digest; 16], part: 0 });
    let other = Spelling::new(&group, "two", &[1; 32], &[2; 32]);
    let foreign = other.key_of(&Place { generation: 3, digest: [1; 16], part: 0 });
    let written = |key: &[u8], body: Option<&[u8]>| (Some(key.to_vec()), body.map(<[u8]>::to_vec));
    broker.produce(
        &topic,
        vec![
            written(&key(7, 1), Some(b"does not open")),
            written(&key(3, 1), Some(b"nor does this")),
            written(&key(3, 2), Some(b"x")),
            written(&key(4, 3), Some(b"y")),
            written(&key(3, 2), None),
            written(&foreign, Some(b"z")),
            written(b"neither", Some(b"z")),
        ],
    );
    let cluster = Cluster::new(&broker.bootstrap(), BTreeMap::new());
    let kept = StateTopic::find(&cluster, &topic, spelling.clone(), true).expect("a compacted topic");
    assert_eq!(kept.others(7).expect("a walk to the end"), [key(3, 1), key(4, 3)]);
    assert_eq!(kept.others(9).expect("a walk to the end").len(), 3);
}
