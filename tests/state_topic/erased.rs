//! Who was erased does not come back from the topic.

use crate::scene::{BATCH, MADE, Scene};
use crate::support::daemon::{Daemon, finished, records};
use crate::support::kafka::Broker;
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

/// Asks the running daemon, whose directory is left alone.
fn forget((scene, url): (&Scene, &str), arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.arg("forget").arg("-c").arg(scene.stage.dir.path().join("only.toml")).args(["--url", url]).args(arguments);
    command.env_remove("FAILPOINTS").output().expect("it runs")
}

/// Generations of which the topic has values.
fn generations(scene: &Scene) -> BTreeSet<Vec<u8>> {
    let mut live = BTreeSet::new();
    for record in scene.stage.broker.read_committed(&scene.topic) {
        let key = record.key.expect("a key");
        match record.payload {
            Some(_) => live.insert(key),
            None => live.remove(&key),
        };
    }
    let from = scene.stage.group.len() + 1 + scene.instance.len() + 1;
    live.into_iter().map(|key| key[from..from + 8].to_vec()).collect()
}

/// Asks until the page is there.
fn erase(scene: (&Scene, &str), daemon: &mut Daemon, person: &str) -> serde_json::Value {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
    loop {
        let out = forget(scene, &["--json", person]);
        if out.status.success() {
            return serde_json::from_slice(&out.stdout).expect("a receipt");
        }
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(daemon.ended().is_none() && std::time::Instant::now() < deadline, "{said}\n{}", daemon.said());
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn threat_38_who_was_erased_does_not_come_back_from_the_topic() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, mut total) = (91, 5 * BATCH);
    let scene = Scene::new(broker, seed, total);
    let file = scene.stage.dir.path().join("only.toml");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
    let token = scene.stage.dir.path().join("token");
    fs::write(&token, "a-token-of-the-tests-and-of-nobody-else").expect("the token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("a file of ours");
    let text = fs::read_to_string(&file).expect("the configuration");
    let pages = format!("listen = \"127.0.0.1:{port}\"\ntoken_file = \"{}\"\n", token.display());
    fs::write(&file, text.replace("listen = \"127.0.0.1:0\"\n", &pages)).expect("the configuration");

    let url = format!("http://127.0.0.1:{port}");
    let page = (&scene, url.as_str());
    let points = ["erasure-named", "state-copy-begun", "state-part-kept", "state-in-force", "state-part-cleared"];
    let is_long = std::env::var_os("THRONG_LONG").is_some();
    for (person, point) in (20..).zip(points).filter(|(_, point)| is_long || *point == "state-in-force") {
        let mut daemon = scene.consume(total);
        daemon.kill();
        let mut daemon = scene.start(Some(&format!("{point}=return")));
        broker.produce_records(&scene.stage.raw, &records(seed, total, total + BATCH, 1));
        total += BATCH;
        scene.stage.wait_consumed(total, &mut [&mut daemon]);
        let asked = forget(page, &["--json", &format!("p{person}")]);
        assert!(!asked.status.success(), "{point}: it was acknowledged");
        daemon.crashes(point);
        // With the directory or without it: nobody is half erased, and asking again does it.
        if person % 2 == 0 {
            scene.lose();
        }
        let mut daemon = scene.consume(total);
        erase(page, &mut daemon, &format!("p{person}"));
        assert_eq!(generations(&scene).len(), 1, "{point}: of the state before something has stayed");
        daemon.kill();
        scene.lose();
        let mut daemon = scene.consume(total);
        scene.says(&mut daemon, MADE);
        let again = erase(page, &mut daemon, &format!("p{person}"));
        let removed = again["removed"].as_object().expect("counts");
        assert!(removed.values().all(|count| count == 0), "{point}: p{person} has come back: {again}");
        daemon.kill();
    }
    let mut daemon = scene.consume(total);
    finished(&scene.stage, &mut daemon, total);
}
