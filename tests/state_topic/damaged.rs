//! Records that somebody else has written into the topic, or taken from it.

use crate::support::kafka::{Broker, unique};
use std::collections::BTreeMap;
use throng::io::kafka::connection::Cluster;
use throng::io::state_topic::spelling::Place;
use throng::io::state_topic::{Spelling, StateTopic};

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
