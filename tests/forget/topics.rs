//! Tests erasure from topic to topic on a real broker, with kills while records arrive.

use crate::forget::opened::Opened;
use crate::forget::{TOKEN, kills::POINTS};
use crate::support::daemon::{Stage, TestDaemon, finished, records};
use crate::support::kafka::TestCluster;
use crate::support::ports::free_port;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

const SECRET: &[u8] = b"a secret of the tests, and of nobody else";
const PART: usize = 200;

fn forget(stage: &Stage, arguments: &[&str]) -> Output {
    let mut command = crate::support::binary::throng();
    command.arg("forget").arg("-c").arg(stage.dir.path().join("only.toml")).args(arguments);
    command.env_remove("FAILPOINTS").output().expect("it runs")
}

#[test]
fn threat_33_topic_erasure_with_kills_is_exactly_once() {
    let Some(broker) = TestCluster::shared() else { return };
    let stage = Stage::new(broker, 2).with_static_membership();
    let file = stage.configure("only", 2, 40, "100ms");
    let port = free_port();
    let token = stage.dir.path().join("token");
    fs::write(&token, TOKEN).expect("the token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("a file of ours");
    let text = fs::read_to_string(&file).expect("the configuration");
    let listen = "listen = \"127.0.0.1:0\"\n";
    assert!(text.contains(listen));
    let pages = format!("listen = \"127.0.0.1:{port}\"\ntoken_file = \"{}\"\n", token.display());
    fs::write(&file, text.replace(listen, &pages)).expect("the configuration");

    let (mut produced, mut erased) = (0, Vec::new());
    let produce = |produced: &mut usize| {
        broker.produce_records(&stage.raw, &records(9, *produced, *produced + PART, 2));
        *produced += PART;
    };
    for point in POINTS.iter().chain(&["erasure-unanswered"]) {
        let before = stage.consumed();
        produce(&mut produced);
        let mut daemon = stage.start("only", Some(&format!("{point}=return")));
        wait_beyond(&stage, before, &mut daemon);
        let person = format!("p{}", produced - PART + 3);
        let out = forget(&stage, &["--json", &person]);
        assert_eq!(out.status.code(), Some(1), "{point}: {}", String::from_utf8_lossy(&out.stderr));
        daemon.crashes(point);
        erased.push(person);
    }
    produce(&mut produced);
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(produced, &mut [&mut daemon]);
    for person in &erased {
        let out = forget(&stage, &["--json", person]);
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    }
    // Conservation over all restarts, no record twice, no class below k.
    finished(&stage, &mut daemon, produced);
    let config = throng::config::load(&file, std::iter::empty()).unwrap_or_else(|p| panic!("{p:#?}"));
    let state = Opened::read(&stage.state("only"), SECRET);
    for person in &erased {
        let names = crate::forget::opened::spellings(&config, SECRET, person);
        assert_eq!(state.with(&names), Vec::<String>::new(), "{person}");
    }
}

fn wait_beyond(stage: &Stage, offset: i64, daemon: &mut TestDaemon) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
    while stage.consumed() <= offset {
        assert!(daemon.ended().is_none(), "it ended early: {}", daemon.said());
        assert!(std::time::Instant::now() < deadline, "it reads nothing: {}", daemon.said());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
