//! What handing records on does not go with, and topics that would lose them.

use crate::scene::Scene;
use crate::support::kafka::Broker;

fn refused(scene: &Scene, more: &[(&str, &str)]) -> String {
    let mut instance = scene.instance("one");
    scene.start(&mut instance, more, "");
    instance.was_refused()
}

#[test]
fn what_handing_on_does_not_go_with_is_refused() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker);
    for (more, told) in [
        (vec![("PRIVACY__RECODING", "strict")], "can strike out of its class"),
        (vec![("PRIVACY__MAX_CLASSES_PER_SUBJECT", "3")], "who has spent a budget"),
        (vec![("PRIVACY__MIN_TENURE", "1")], "who has spent a budget"),
        (vec![("SINK__RESIDUE_AGE", "0s")], "no record would be young enough"),
        (vec![("SINK__RESIDUE_TOPIC", scene.raw.as_str())], "this topic is named by source.topics too"),
    ] {
        let said = refused(&scene, &more);
        assert!(said.contains(told), "{more:?}: {said}");
    }
    let mut instance = scene.instance("one");
    instance.keep_an_own_secret();
    scene.start(&mut instance, &[], "");
    assert!(instance.was_refused().contains("would draw a secret of its own"));
}

#[test]
fn topics_that_would_lose_records_are_refused() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker);
    let compacted = format!("{}.compacted", scene.residue);
    broker.create_topic_with(&compacted, 1, &[("cleanup.policy", "compact"), ("retention.ms", "-1")]);
    let said = refused(&scene, &[("SINK__RESIDUE_TOPIC", &compacted)]);
    assert!(said.contains("is compacted") && said.contains("cleanup.policy = delete"), "{said}");
    let short = format!("{}.short", scene.residue);
    broker.create_topic_with(&short, 1, &[("retention.ms", "60000")]);
    let said = refused(&scene, &[("SINK__RESIDUE_TOPIC", &short)]);
    assert!(said.contains("keeps records for 1m") && said.contains("sink.residue_age"), "{said}");
}
