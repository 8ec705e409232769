//! Whom a start refuses, by name and with a remedy; and what is only ignored.

use crate::scene::{HEARD, Instance, K, Scene, crowd, foreign, one_more};
use crate::support::kafka::Broker;

/// A scene in which one instance has released a crowd in Chur and has ended.
fn released_once(broker: &'static Broker) -> Scene {
    let scene = Scene::new(broker);
    let mut one = scene.instance("one");
    scene.start(&mut one, &[], "");
    one.wait_for("throng_partitions_assigned", |partitions| partitions == 2.0);
    scene.visits(0, &crowd("Chur", 0));
    one.wait_consumed(K as u64);
    one.end();
    scene
}

/// How a start ends that must not begin.
fn refused(scene: &Scene, instance: &mut Instance, more: &[(&str, &str)]) -> String {
    scene.start(instance, more, "");
    let said = instance.was_refused();
    assert_eq!(scene.released().len(), 1, "nothing has left");
    said
}

#[test]
fn threat_35_another_secret_is_refused_by_name() {
    let Some(broker) = Broker::shared() else { return };
    let scene = released_once(broker);
    let mut two = scene.instance("two");
    two.place.write("secret", "another secret of the tests altogether");
    let said = refused(&scene, &mut two, &[]);
    assert!(
        said.contains("has another secret, or belongs to another group")
            && said.contains("give all instances the same secret"),
        "{said}"
    );
    let named =
        said.split_once(": instance ").map(|(_, rest)| rest.chars().take(36).collect::<String>()).unwrap_or_default();
    assert!(uuid_like(&named), "{named:?} in {said}");
    // The very same start goes on once the secret is right.
    let mut two = scene.instance("two");
    scene.start(&mut two, &[], "");
    scene.visits(1, &one_more("Chur", "Bern"));
    two.wait_consumed(K as u64 + 1);
    assert_eq!(scene.released()["Chur"], K + 1);
    two.end();
}

fn uuid_like(text: &str) -> bool {
    text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

#[test]
fn threat_35_another_schema_and_other_outputs_are_refused_by_name() {
    let Some(broker) = Broker::shared() else { return };
    let scene = released_once(broker);
    let mut two = scene.instance("two");
    let schema = String::from_utf8(two.place.read("schema.toml")).expect("text");
    two.place.write(
        "schema.toml",
        schema + "[attribute.hierarchy]\nkind = \"tree\"\n[attribute.hierarchy.tree]\n\"west\" = [\"Genf\"]\n",
    );
    let said = refused(&scene, &mut two, &[]);
    assert!(said.contains("goes by another record schema"), "{said}");
    let mut three = scene.instance("three");
    broker.create_topic_with(&format!("{}.b", scene.out), 1, &[("retention.ms", "-1")]);
    let said = refused(&scene, &mut three, &[("SINK__TOPIC", &format!("{}.b", scene.out))]);
    assert!(said.contains("releases to other topics, or in other groups of attributes"), "{said}");
}

/// Policies are exchanged instance after instance: meanwhile both run, and do not count for each other.
#[test]
fn another_policy_is_ignored_and_counted() {
    let Some(broker) = Broker::shared() else { return };
    let scene = released_once(broker);
    let mut two = scene.instance("two");
    scene.start(&mut two, &[("PLAN__INTERVAL", "2h")], "");
    scene.visits(1, &one_more("Chur", "Bern"));
    two.wait_consumed(K as u64 + 1);
    assert_eq!(scene.released()["Chur"], K);
    assert!(two.metric(&foreign("policy")) >= 1.0 && two.metric(HEARD) == 0.0);
    two.end();
}

#[test]
fn topics_that_would_lose_the_ledger_are_refused() {
    let Some(broker) = Broker::shared() else { return };
    let scene = released_once(broker);
    let mut two = scene.instance("two");
    let compacted = format!("{}.compacted", scene.ledger);
    broker.create_topic_with(&compacted, 1, &[("cleanup.policy", "compact"), ("retention.ms", "-1")]);
    let said = refused(&scene, &mut two, &[("SINK__LEDGER_TOPIC", &compacted)]);
    assert!(said.contains("is compacted") && said.contains("cleanup.policy = delete"), "{said}");
    let short = format!("{}.short", scene.ledger);
    broker.create_topic_with(&short, 1, &[("retention.ms", "86400000")]);
    let said = refused(&scene, &mut two, &[("SINK__LEDGER_TOPIC", &short)]);
    assert!(said.contains("keeps records for 1day") && said.contains("sink.ledger_skew"), "{said}");
}

#[test]
fn what_a_shared_ledger_does_not_go_with_is_refused() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker);
    for (more, told) in [
        (vec![("PRIVACY__RECODING", "strict")], "strict recoding counts raw tuples"),
        (vec![("PRIVACY__MAX_CLASSES_PER_SUBJECT", "3")], "who has spent a budget"),
        (vec![("PRIVACY__MIN_TENURE", "1")], "who has spent a budget"),
        (vec![("PRIVACY__SUPPORT_WINDOW", "0s")], "nothing that was released before supports anything"),
        (vec![("PRIVACY__SUPPORT_WINDOW", "30s")], "nothing of other instances would ever count"),
        (vec![("SINK__LEDGER_TOPIC", scene.out.as_str())], "this topic is named by sink.topic too"),
    ] {
        let mut instance = scene.instance("one");
        scene.start(&mut instance, &more, "");
        let said = instance.was_refused();
        assert!(said.contains(told), "{more:?}: {said}");
    }
    let mut instance = scene.instance("one");
    instance.keep_an_own_secret();
    scene.start(&mut instance, &[], "");
    assert!(instance.was_refused().contains("would draw a secret of its own"));
}

/// Whatever somebody writes to the topic while instances run: it is counted, and changes nothing.
#[test]
fn threat_35_what_is_forged_or_damaged_is_ignored_and_counted() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker);
    let [mut one, mut two] = scene.two(&[], ["", ""]);
    let (before, consumed) = (two.metric(HEARD), one.consumed());
    scene.visits(0, &crowd("Chur", 0));
    one.wait_consumed(consumed + K as u64);
    two.wait_for(HEARD, |records| records > before);
    let records = broker.read_committed(&scene.ledger);
    let good = records.last().and_then(|stored| stored.payload.clone()).expect("a record");
    let mut flipped = good.clone();
    *flipped.last_mut().expect("bytes") ^= 1;
    let cut = good[..good.len() - 1].to_vec();
    let mut renamed = good.clone();
    renamed[4] = if renamed[4] == b'0' { b'1' } else { b'0' };
    broker.produce(
        &scene.ledger,
        [b"nonsense".to_vec(), flipped, cut, renamed].into_iter().map(|payload| (None, Some(payload))).collect(),
    );
    two.wait_for(&foreign("secret"), |records| records == 3.0);
    two.wait_for(&foreign("unreadable"), |records| records == 1.0);
    scene.visits(1, &one_more("Chur", "Bern"));
    two.wait_consumed(K as u64 + 1);
    assert_eq!(scene.released()["Chur"], K + 1, "what is true still counts");
    one.end();
    two.end();
}
