//! Each documented permission is needed, and a missing one is named.

use crate::security::admin::{May, With, grant};
use crate::security::scene::{BATCH, Scene, TOTAL, refused, rights};
use crate::support::binary::throng;
use crate::support::daemon::{Stage, records};

#[test]
fn each_missing_permission_is_named() {
    let Some(scene) = Scene::shared() else { return };
    let brokers = scene.broker.bootstrap();
    let expected = |stage: &Stage, may: May, with: &With| match (may, with) {
        (May::Read, With::Group(_)) => "as the group of source.group (Read)".to_owned(),
        (May::Read, With::Topic(name)) if *name == stage.changelog => {
            "read the topic of the changelog (Read)".to_owned()
        }
        (May::Read, With::Topic(name)) => format!("describe topic {name:?}"),
        (May::Write, With::Topic(name)) if *name == stage.changelog => format!("write to topic {name:?} (Write)"),
        (May::Write, With::Topic(name)) => format!("describe topic {name:?}"),
        (May::Write, With::Transactions(_)) => "use the transactional id".to_owned(),
        other => panic!("{other:?} is not listed"),
    };
    let count = 7;
    for missing in 0..count {
        let user = scene.user("lacking");
        let mut stage = Stage::new(&scene.broker, 1).with_static_membership().reached_by(scene.at("SASL"));
        stage.security = format!("[source.security]\n{}\n", scene.as_user("scram-sha-512", &user));
        scene.broker.produce_records(&stage.raw, &records(3, 0, TOTAL, 1));
        stage.configure("only", 0, BATCH, "1h");
        let mut rights = rights(&stage);
        assert_eq!(rights.len(), count);
        let (may, with) = rights.remove(missing);
        grant(&brokers, &user, &rights);
        let (code, said) = refused(&stage);
        let expected = expected(&stage, may, &with);
        let named = said.contains(&expected) && said.contains("docs/deploy.md");
        assert!(named && matches!(code, Some(1 | 2)), "without {may:?} {with:?} it ended with {code:?}: {said}");
        // With only Describe, the missing Read or Write permission is named too.
        if let (May::Read | May::Write, With::Topic(_)) = (may, &with) {
            rights.push((May::Describe, with.clone()));
            grant(&brokers, &user, &rights);
            let (code, said) = refused(&stage);
            let verb = if may == May::Read { "(Read)" } else { "(Write)" };
            let named = said.contains("no right to") && said.contains(verb);
            assert!(named && code.is_some_and(|code| code > 0), "with Describe for {may:?} {with:?}: {code:?}: {said}");
        }
    }
}

#[test]
fn topic_without_describe_right_is_reported_with_the_others() {
    let Some(scene) = Scene::shared() else { return };
    let user = scene.user("lister");
    let mut stage = Stage::new(&scene.broker, 1).with_static_membership().reached_by(scene.at("SASL"));
    stage.security = format!("[source.security]\n{}\n", scene.as_user("scram-sha-512", &user));
    let file = stage.configure("only", 0, BATCH, "1h");
    let rights: Vec<_> =
        rights(&stage).into_iter().filter(|(_, with)| *with != With::Topic(stage.letters.clone())).collect();
    grant(&scene.broker.bootstrap(), &user, &rights);
    let output = throng().args(["topics", "list", "-c"]).arg(&file).output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = |topic: &str| text.lines().find(|line| line.starts_with(topic)).unwrap_or_default();
    assert!(line(&stage.letters).contains("no right to describe it"), "{text}");
    assert!(line(&stage.raw).contains("1 partition") && line(&stage.changelog).contains("2 partitions"), "{text}");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}
