//! What one instance has released supports what another one releases, as soon as it has been heard.

use crate::scene::{HEARD, K, Scene, TOLD, crowd, one_more};
use crate::support::kafka::Broker;

#[test]
fn what_one_has_released_supports_the_other() {
    let Some(broker) = Broker::shared() else { return };
    // Whoever is started again has his partition still.
    let scene = Scene { session: "45000", ..Scene::new(broker) };
    let [mut one, mut two] = scene.two(&[], ["", ""]);
    let before = two.metric(HEARD);
    scene.visits(0, &crowd("Chur", 0));
    one.wait_consumed(2 * K as u64);
    two.wait_for(HEARD, |records| records > before);
    scene.visits(1, &one_more("Chur", "Bern"));
    two.wait_consumed(K as u64 + 1);
    assert_eq!(scene.released()["Chur"], K + 1, "the crowd of the other supports the one who comes alone");
    assert_eq!(scene.released()["Bern"], K);
    assert!(one.metric(TOLD) >= 2.0 && two.metric(TOLD) >= 1.0);
    // The other way round, and after a new start: what was heard is in the state.
    one.wait_for(HEARD, |records| records >= 1.0);
    two.end();
    scene.start(&mut two, &[], "");
    two.wait_for("throng_partitions_assigned", |partitions| partitions == 1.0);
    scene.visits(1, &[("late-again".to_owned(), "Chur"), ("late-too".to_owned(), "Sion"), ("x".to_owned(), "Bern")]);
    two.wait_consumed(2 * K as u64 + 1);
    assert_eq!((scene.released()["Chur"], scene.released()["Sion"]), (K + 2, K + 1));
    one.end();
    two.end();
    // Nobody who reads the topic finds a value or a person in it.
    for stored in broker.read_uncommitted(&scene.ledger) {
        let bytes = [stored.key.unwrap_or_default(), stored.payload.unwrap_or_default()].concat();
        for word in ["Chur", "Bern", "late-", "city", &scene.group] {
            assert!(
                !bytes.windows(word.len()).any(|window| window == word.as_bytes()),
                "{word} is in the ledger topic"
            );
        }
    }
}

#[test]
fn without_a_ledger_each_counts_its_own() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker);
    let [mut one, mut two] = scene.two(&[("SINK__LEDGER_TOPIC", "")], ["", ""]);
    scene.visits(0, &crowd("Chur", 0));
    one.wait_consumed(2 * K as u64);
    scene.visits(1, &one_more("Chur", "Bern"));
    two.wait_consumed(K as u64 + 1);
    assert_eq!(scene.released()["Chur"], K);
    assert!(broker.read_uncommitted(&scene.ledger).is_empty());
    one.end();
    two.end();
}

/// A reader that has fallen behind makes crowds smaller, and nothing else.
#[test]
fn a_reader_that_is_late_understates() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene { session: "45000", ..Scene::new(broker) };
    let [mut one, mut two] = scene.two(&[], ["ledger-paused=return", "ledger-paused=return"]);
    scene.visits(0, &crowd("Chur", 0));
    one.wait_consumed(2 * K as u64);
    scene.visits(1, &one_more("Chur", "Bern"));
    two.wait_consumed(K as u64 + 1);
    assert_eq!(scene.released()["Chur"], K, "what has not been heard supports nobody");
    one.end();
    two.end();
    // With the next start it is heard.
    scene.start(&mut two, &[], "");
    two.wait_for("throng_partitions_assigned", |partitions| partitions >= 1.0);
    scene.visits(1, &[("y".to_owned(), "Chur"), ("z".to_owned(), "Bern"), ("w".to_owned(), "Bern")]);
    two.wait_consumed(2 * K as u64 + 1);
    assert_eq!(scene.released()["Chur"], K + 1);
    two.end();
}

/// An instance with an empty directory knows what the others have released when it begins.
#[test]
fn a_new_instance_begins_with_what_there_is() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker);
    let mut one = scene.instance("one");
    scene.start(&mut one, &[], "");
    one.wait_for("throng_partitions_assigned", |partitions| partitions == 2.0);
    scene.visits(0, &crowd("Chur", 0));
    one.wait_consumed(K as u64);
    one.end();
    let mut two = scene.instance("two");
    scene.start(&mut two, &[], "");
    scene.visits(1, &one_more("Chur", "Bern"));
    two.wait_consumed(K as u64 + 1);
    assert_eq!(scene.released()["Chur"], K + 1);
    assert_eq!(two.metric(HEARD), 1.0);
    two.end();
}
