//! Tests reload: no record is lost or released twice, and on any error the old configuration continues.
#![cfg(feature = "failpoints")]

use crate::support;

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::daemon::{Dice, Stage, TestDaemon, conserved, records, sound};
use support::kafka::TestCluster;
use support::ports::free_port;
use support::schemas::{AGE, CITY, ILLNESS, PERSON};
use support::stand::{Fault, Stand, record};
use throng::daemon::state::records::Flush;

const BATCH: usize = 40;
const SEED: u64 = 37;
const PARTITIONS: i32 = 2;
const TOKEN: &str = "a-token-of-the-tests";
const PATIENCE: Duration = Duration::from_secs(60);

const HOLDS: &str = r#"
[[test]]
name = "a crowd leaves"
input = ['{"person": "anna", "lot": "L1", "age": 34, "ward": "north"}']
people = 12
expect = ['{"lot": "L1"}']
never = ["person 1"]
"#;

fn until(what: &str, daemon: &TestDaemon, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come: {}", daemon.said());
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Served<'a> {
    stage: Stage<'a>,
    port: u16,
    fed: usize,
}

impl<'a> Served<'a> {
    fn new(broker: &'a TestCluster) -> Self {
        let stage = Stage::new(broker, PARTITIONS);
        stage.configure("only", 2, BATCH, "20ms");
        let served = Self { stage, port: free_port(), fed: 0 };
        fs::write(served.at("token"), TOKEN).expect("a token");
        fs::set_permissions(served.at("token"), Permissions::from_mode(0o600)).expect("our own file");
        let token =
            format!("listen = \"127.0.0.1:{}\"\ntoken_file = \"{}\"\n", served.port, served.at("token").display());
        served.edit("listen = \"127.0.0.1:0\"\n", &token);
        served
    }

    fn at(&self, name: &str) -> PathBuf {
        self.stage.dir.path().join(name)
    }

    fn edit(&self, from: &str, to: &str) {
        let text = fs::read_to_string(self.at("only.toml")).expect("the configuration");
        assert!(text.contains(from), "{from}");
        fs::write(self.at("only.toml"), text.replace(from, to)).expect("the configuration");
    }

    fn start(&self) -> TestDaemon {
        self.start_in(None, &[])
    }

    fn start_in(&self, faults: Option<&str>, environment: &[(&str, &Path)]) -> TestDaemon {
        let daemon = TestDaemon::start_in(&self.at("only.toml"), &[], faults, environment);
        until("the pages", &daemon, || self.asked("GET /healthz", "").is_some_and(|(status, _)| status == 200));
        daemon
    }

    fn feed(&mut self, count: usize) {
        self.stage.broker.produce_records(&self.stage.raw, &records(SEED, self.fed, self.fed + count, PARTITIONS));
        self.fed += count;
    }

    fn finish(self, mut daemon: TestDaemon) -> String {
        self.stage.wait_consumed(self.fed, &mut [&mut daemon]);
        daemon.stop();
        // A stop before the partition assignment leaves held records in the changelog.
        assert_eq!(conserved(&self.stage.state("only")) + self.stage.waiting(), self.fed as u64);
        assert!(sound(self.stage.released().values().flatten()) > 0);
        daemon.said()
    }

    fn asked(&self, request: &str, headers: &str) -> Option<(u16, String)> {
        self.asked_at(self.port, request, headers)
    }

    fn asked_at(&self, port: u16, request: &str, headers: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n{headers}\r\n"
        )
        .ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let status = text.split(' ').nth(1)?.parse().ok()?;
        Some((status, text.split_once("\r\n\r\n")?.1.to_owned()))
    }

    fn reload(&self) -> Output {
        let mut command = crate::support::binary::throng();
        command.args(["reload", "-c"]).arg(self.at("only.toml")).output().expect("the program runs")
    }

    fn reloaded(&self) -> (Option<i32>, String) {
        let output = self.reload();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    fn metric(&self, name: &str) -> f64 {
        let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
        let (_, text) = self.asked("GET /metrics", &bearer).expect("metrics");
        let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
        line.and_then(|line| line.rsplit(' ').next()).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name}"))
    }
}

#[test]
fn reload_replaces_the_policy_or_names_the_refused_key() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut served = Served::new(broker);
    let mut daemon = served.start();
    served.feed(5 * BATCH);
    assert_eq!(served.metric("throng_reloads_total{outcome=\"replaced\"}"), 0.0, "the series is there from the start");
    let (code, said) = served.reloaded();
    assert!(code == Some(0) && said.contains("no changes"), "{code:?} {said}");
    let consumed = served.metric("throng_records_total{outcome=\"consumed\"}");
    served.edit("k = 3", "k = 4");
    let (code, said) = served.reloaded();
    assert!(code == Some(0) && said.contains("changed: privacy.k"), "{code:?} {said}");
    assert_eq!(served.metric("throng_privacy_k"), 4.0);
    assert!(served.metric("throng_records_total{outcome=\"consumed\"}") >= consumed, "counters do not fall");
    served.feed(3 * BATCH);
    let text = fs::read_to_string(served.at("only.toml")).expect("the configuration");
    fs::write(served.at("only.toml"), format!("{text}{HOLDS}")).expect("the configuration");
    let (code, said) = served.reloaded();
    assert!(code == Some(0) && said.contains("changed: test"), "{code:?} {said}");
    served.edit("k = 4", "k = 13");
    let (code, said) = served.reloaded();
    assert!(code == Some(1) && said.contains("test \"a crowd leaves\" fails"), "{code:?} {said}");
    assert_eq!((served.metric("throng_privacy_k"), served.metric("throng_last_reload_refused")), (4.0, 1.0));
    served.edit("k = 13", "k = 5");
    let (topic, canary) = (format!("topic = \"{}\"", served.stage.out), "topic = \"canary\"");
    served.edit(&topic, canary);
    let (code, said) = served.reloaded();
    assert!(code == Some(1) && said.contains("refused: sink.topic:") && !said.contains("canary"), "{code:?} {said}");
    assert_eq!(served.metric("throng_privacy_k"), 4.0, "all of it or nothing");
    served.edit(canary, &topic);
    let schema = fs::read_to_string(served.at("visits.toml")).expect("the schema");
    fs::write(served.at("visits.toml"), schema.replace("\"tent\"", "\"tents\"")).expect("the schema");
    let (code, said) = served.reloaded();
    assert!(code == Some(1) && said.contains("refused: schema.file:"), "{code:?} {said}");
    fs::write(served.at("visits.toml"), schema).expect("the schema");
    served.edit("k = 5", "k = \"canary\"");
    let (code, said) = served.reloaded();
    assert!(code == Some(2) && said.contains("privacy.k") && !said.contains("canary"), "{code:?} {said}");
    daemon.signal(Signal::HUP);
    until("the refusal", &daemon, || served.metric("throng_reloads_total{outcome=\"refused\"}") >= 4.0);
    served.edit("k = \"canary\"", "k = 5");
    daemon.signal(Signal::HUP);
    until("the new policy", &daemon, || served.metric("throng_privacy_k") == 5.0);
    until("the end of the reload", &daemon, || served.metric("throng_last_reload_refused") == 0.0);
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let (_, status) = served.asked("GET /status.json", &bearer).expect("a page");
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["last_reload"]["outcome"], "replaced");
    assert_eq!(status["policy"].as_str().map(str::len), Some(12));
    served.feed(3 * BATCH);
    assert!(daemon.ended().is_none());
    let log = served.finish(daemon);
    assert!(log.contains("new configuration refused, the old one stays active") && !log.contains("canary"), "{log}");
}

#[test]
fn reload_trial_ended_by_shutdown_leaves_no_files() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut served = Served::new(broker);
    let folder = served.at("temporary");
    fs::create_dir(&folder).expect("a folder");
    let mut daemon = served.start_in(None, &[("TMPDIR", &folder)]);
    served.feed(2 * BATCH);
    // Longer than a daemon needs to stop.
    let long = HOLDS.replace("people = 12", "people = 10000");
    let tests: String = (0..40).map(|n| long.replace("a crowd leaves", &format!("crowd {n}"))).collect();
    let text = fs::read_to_string(served.at("only.toml")).expect("the configuration");
    fs::write(served.at("only.toml"), text + &tests).expect("the configuration");
    daemon.signal(Signal::HUP);
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&folder).expect("a folder").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    until("the trial", &daemon, || names().iter().any(|name| name.starts_with("throng-test-")));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.said());
    assert_eq!(names(), [""; 0], "{}", daemon.said());
}

#[test]
fn threat_28_reload_requires_the_token() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut served = Served::new(broker);
    let daemon = served.start();
    served.edit("k = 3", "k = 4");
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    // base64 of `x:a-token-of-the-tests`, which a browser would send automatically.
    let basic = "Authorization: Basic eDphLXRva2VuLW9mLXRoZS10ZXN0cw==\r\n";
    for (headers, status) in [("", 401), ("Authorization: Bearer a-token-of-the-testz\r\n", 401), (basic, 403)] {
        assert_eq!(served.asked("POST /reload", headers).map(|(status, _)| status), Some(status), "{headers}");
    }
    assert_eq!(served.asked("GET /reload", &bearer).map(|(status, _)| status), Some(405));
    let foreign = served.asked("POST http://evil.example.org/reload", &bearer);
    assert_eq!(foreign.map(|(status, _)| status), Some(421));
    assert_eq!(served.metric("throng_privacy_k"), 3.0);
    fs::write(served.at("token"), "another-token-of-the-tests").expect("a token");
    let (code, said) = served.reloaded();
    assert!(code == Some(1) && said.contains("rejected the token") && !said.contains(TOKEN), "{code:?} {said}");
    let (status, body) = served.asked("POST /reload", &bearer).expect("an answer");
    assert!(status == 200 && body.contains("\"replaced\""), "the token of the start: {status} {body}");
    let new = "Authorization: Bearer another-token-of-the-tests\r\n";
    until("the new token", &daemon, || served.asked("GET /status.json", new).is_some_and(|(status, _)| status == 200));
    assert_eq!(served.asked("GET /status.json", &bearer).map(|(status, _)| status), Some(401), "the old token ends");
    fs::write(served.at("token"), TOKEN).expect("a token");
    let (status, body) = served.asked("POST /reload", new).expect("an answer");
    assert!(status == 200 && body.contains("telemetry.token_file"), "{status} {body}");
    until("the first token", &daemon, || {
        served.asked("GET /metrics", &bearer).is_some_and(|(status, _)| status == 200)
    });
    assert_eq!(served.metric("throng_privacy_k"), 4.0);
    served.feed(3 * BATCH);
    let log = served.finish(daemon);
    assert!(!log.contains(TOKEN), "{log}");
}

#[test]
fn reload_without_a_token_is_possible_only_by_signal() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut served = Served::new(broker);
    let text = fs::read_to_string(served.at("only.toml")).expect("the configuration");
    let text: String = text.lines().filter(|l| !l.starts_with("token_file")).map(|l| format!("{l}\n")).collect();
    fs::write(served.at("only.toml"), text).expect("the configuration");
    let daemon = served.start();
    assert_eq!(served.asked("POST /reload", "").map(|(status, _)| status), Some(404));
    let (code, said) = served.reloaded();
    assert!(code == Some(2) && said.contains("telemetry.token_file"), "{code:?} {said}");
    served.edit("k = 3", "k = 4");
    daemon.signal(Signal::HUP);
    until("the new policy", &daemon, || served.metric("throng_privacy_k") == 4.0);
    served.feed(3 * BATCH);
    served.finish(daemon);
}

#[test]
fn reload_that_does_not_start_keeps_the_old_configuration() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut served = Served::new(broker);
    let daemon = served.start_in(Some("start-timeout=return(3)"), &[]);
    served.feed(3 * BATCH);
    let (brokers, wrong) = (format!("brokers = \"{}\"", served.stage.brokers), "brokers = \"127.0.0.1:1\"");
    served.edit(&brokers, wrong);
    served.edit("k = 3", "k = 4");
    let (code, said) = served.reloaded();
    assert!(code == Some(1) && said.contains("timed out"), "{code:?} {said}");
    until("the old configuration", &daemon, || served.metric("throng_privacy_k") == 3.0);
    assert_eq!(served.metric("throng_last_reload_refused"), 1.0);
    served.feed(3 * BATCH);
    served.edit(wrong, &brokers);
    let (code, said) = served.reloaded();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!((served.metric("throng_privacy_k"), served.metric("throng_last_reload_refused")), (4.0, 0.0));
    served.feed(3 * BATCH);
    let log = served.finish(daemon);
    assert!(log.contains("restarting with the previous configuration"), "{log}");
}

#[test]
fn reload_moves_the_pages_to_a_new_address() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut served = Served::new(broker);
    let daemon = served.start();
    served.feed(2 * BATCH);
    let (old, new) = (served.port, free_port());
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    served.edit(&format!("127.0.0.1:{old}"), &format!("127.0.0.1:{new}"));
    let (status, body) = served.asked("POST /reload", &bearer).expect("an answer");
    assert_eq!(status, 200, "{body}");
    served.port = new;
    until("the new pages", &daemon, || served.asked("GET /healthz", "").is_some_and(|(status, _)| status == 200));
    until("the end of the old pages", &daemon, || served.asked_at(old, "GET /healthz", "").is_none());
    served.feed(2 * BATCH);
    served.finish(daemon);
}

/// The reload thread must not wait for an ended pipeline.
#[test]
fn reload_interrupted_by_a_stop_ends_regularly() {
    let Some(broker) = TestCluster::shared() else { return };
    for delay_ms in [0, 5, 20, 60, 120, 400] {
        let mut served = Served::new(broker);
        let mut daemon = served.start();
        served.feed(2 * BATCH);
        served.stage.wait_consumed(served.fed, &mut [&mut daemon]);
        served.edit("k = 3", "k = 4");
        daemon.signal(Signal::HUP);
        std::thread::sleep(Duration::from_millis(delay_ms));
        daemon.stop();
        let daemon = served.start();
        served.finish(daemon);
    }
}

#[test]
fn reload_counts_partitions_once() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut served = Served::new(broker);
    let daemon = served.start();
    for k in 3..6 {
        until("the partitions", &daemon, || served.metric("throng_partitions_assigned") == f64::from(PARTITIONS));
        served.edit(&format!("k = {k}"), &format!("k = {}", k + 1));
        let (code, said) = served.reloaded();
        assert_eq!(code, Some(0), "{said}");
    }
    until("the partitions", &daemon, || served.metric("throng_partitions_assigned") == f64::from(PARTITIONS));
    served.feed(3 * BATCH);
    served.finish(daemon);
}

/// Batches commit their offsets in transactions, of which the consumer does not know.
#[test]
fn lag_falls_to_zero_with_the_commits_after_each_start() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut served = Served::new(broker);
    let mut daemon = served.start();
    for round in 0..3 {
        served.feed(2 * BATCH);
        served.stage.wait_consumed(served.fed, &mut [&mut daemon]);
        // Statistics are renewed every second.
        std::thread::sleep(Duration::from_millis(2_500));
        until("an empty source", &daemon, || served.metric("throng_source_lag_records") == 0.0);
        for partition in 0..PARTITIONS {
            let labels = format!("{{partition=\"{partition}\",topic=\"{}\"}}", served.stage.raw);
            let name = format!("throng_source_partition_lag_records{labels}");
            until("an empty partition", &daemon, || served.metric(&name) == 0.0);
        }
        assert_eq!(served.metric("throng_batch_records_limit"), BATCH as f64);
        if round == 0 {
            daemon.stop();
            daemon = served.start();
        } else {
            served.edit(&format!("k = {}", round + 2), &format!("k = {}", round + 3));
            let (code, said) = served.reloaded();
            assert_eq!(code, Some(0), "{said}");
        }
    }
    served.finish(daemon);
}

/// One restart answers several requests.
#[test]
fn reload_ten_times_a_second_is_exactly_once() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut served = Served::new(broker);
    let daemon = served.start();
    for round in 0..60 {
        served.feed(BATCH / 2);
        let (from, to) = if round % 2 == 0 { ("k = 3", "k = 4") } else { ("k = 4", "k = 3") };
        served.edit(from, to);
        daemon.signal(Signal::HUP);
        std::thread::sleep(Duration::from_millis(100));
    }
    served.edit("k = 3", "k = 5");
    let (code, said) = served.reloaded();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(served.metric("throng_privacy_k"), 5.0);
    let replaced = served.metric("throng_reloads_total{outcome=\"replaced\"}");
    assert!(replaced >= 2.0, "{replaced}");
    served.finish(daemon);
}

#[test]
fn reload_under_load_is_exactly_once_on_kafka() {
    let Some(broker) = TestCluster::shared() else { return };
    let (seed, portion, rounds) = (41, 4 * BATCH, 6);
    let stage = Stage::new(broker, 2);
    let file = stage.configure("only", 2, BATCH, "200ms");
    let mut daemon = stage.start("only", None);
    let text = fs::read_to_string(&file).expect("the configuration");
    for round in 0..rounds {
        broker.produce_records(&stage.raw, &records(seed, round * portion, (round + 1) * portion, 2));
        // In the middle of the portion, in any state of the batch.
        stage.wait_consumed(round * portion + BATCH, &mut [&mut daemon]);
        let k = if round % 2 == 0 { "k = 5\n" } else { "k = 3\n" };
        fs::write(&file, text.replace("k = 3\n", k)).expect("the configuration");
        let asked = Instant::now();
        daemon.signal(Signal::HUP);
        let count = || daemon.said().matches("new configuration active").count();
        until("the new policy", &daemon, || count() > round);
        let in_force = asked.elapsed();
        stage.wait_consumed((round + 1) * portion, &mut [&mut daemon]);
        eprintln!("in force after {in_force:?}, the next batches committed after {:?}", asked.elapsed());
    }
    let total = rounds * portion;
    stage.wait_consumed(total, &mut [&mut daemon]);
    daemon.stop();
    assert_eq!(conserved(&stage.state("only")) + stage.waiting(), total as u64);
    assert!(sound(stage.released().values().flatten()) > total / 2);
}

#[test]
fn reload_with_a_kill_is_exactly_once() {
    let Some(broker) = TestCluster::shared() else { return };
    let (seed, portion) = (43, 4 * BATCH);
    let stage = Stage::new(broker, 1).with_static_membership();
    let file = stage.configure("only", 2, BATCH, "200ms");
    let text = fs::read_to_string(&file).expect("the configuration");
    let points = ["reload-begun", "reload-ended", "reload-done"];
    for (round, point) in points.into_iter().enumerate() {
        broker.produce_records(&stage.raw, &records(seed, round * portion, (round + 1) * portion, 1));
        let mut daemon = stage.start("only", Some(&format!("{point}=return")));
        stage.wait_consumed(round * portion + BATCH, &mut [&mut daemon]);
        let k = if round % 2 == 0 { "k = 5\n" } else { "k = 3\n" };
        fs::write(&file, text.replace("k = 3\n", k)).expect("the configuration");
        daemon.signal(Signal::HUP);
        daemon.crashes(point);
    }
    let total = points.len() * portion;
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(total, &mut [&mut daemon]);
    daemon.stop();
    assert_eq!(conserved(&stage.state("only")) + stage.waiting(), total as u64);
    assert!(sound(stage.released().values().flatten()) > total / 2);
}

#[test]
fn tried_batch_is_not_repeated_under_another_policy() {
    let Some(broker) = TestCluster::shared() else { return };
    let stage = Stage::new(broker, 1).with_static_membership();
    let file = stage.configure("only", 0, BATCH, "200ms");
    let total = 6 * BATCH;
    broker.produce_records(&stage.raw, &records(47, 0, total, 1));
    stage.start("only", Some("intent-flushed=2*off->return")).crashes("intent-flushed");
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, text.replace("k = 3\n", "k = 4\n")).expect("the configuration");
    let mut other = stage.start("only", None);
    assert_eq!(other.wait().code(), Some(2), "{}", other.said());
    let said = other.said();
    assert!(
        said.contains("the policy has changed while batch 3 is pending") && said.contains("--accept-rewind"),
        "{said}"
    );
    fs::write(&file, text.replace("listen = ", "log_format = \"json\"\nlisten = ")).expect("the configuration");
    let mut same = stage.start("only", None);
    stage.wait_consumed(total, &mut [&mut same]);
    same.stop();
    assert_eq!(conserved(&stage.state("only")) + stage.waiting(), total as u64);
}

const START_MS: i64 = 1_700_000_000_000;

fn visits(dice: &mut Dice, count: u64) -> Vec<Option<Vec<u8>>> {
    (0..count)
        .map(|_| {
            let (person, age) = (dice.roll(90), 20 + dice.roll(4) * 17);
            let (city, illness) =
                (["Zug", "Bern", "Chur"][dice.roll(3) as usize], ["flu", "cold"][dice.roll(2) as usize]);
            record(format!(r#"{{"person":"p{person}","age":{age},"city":"{city}","illness":"{illness}"}}"#))
        })
        .collect()
}

fn left(settings: &str, fault: Fault) -> Vec<(u64, usize, String)> {
    let schema = format!("name = \"replaced\"\n{}", [PERSON, AGE, CITY, ILLNESS].concat());
    let mut stand = Stand::new(&schema, settings);
    let mut dice = Dice::new(17);
    let mut coming = visits(&mut dice, 50);
    for batch in 0..14 {
        let next = visits(&mut dice, 30 + batch as u64);
        stand.announce(&next);
        stand.offer(&coming, Flush::No, START_MS + batch * 60_000, fault);
        coming = next;
    }
    stand.settle(Flush::EndOfStream, START_MS + 3_600_000);
    stand.check_conservation().expect("every record is accounted for");
    stand.sink.lines.iter().map(|line| (line.batch, line.group, line.text.clone())).collect()
}

#[test]
fn restarted_engine_releases_the_same_bytes() {
    let groups = "[[group]]\nname = \"a\"\nattributes = [\"age\", \"illness\"]\n[[group]]\nname = \"b\"\nattributes = [\"city\"]\n";
    let diverse = "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\nl = 2\n";
    for settings in [
        "[privacy]\nk = 4\nmax_hold_batches = 3\n".to_owned(),
        format!(
            "[privacy]\nk = 3\nmax_hold_batches = 1\nmax_lines_per_subject = 1\nmax_delay = \"10m\"\n{diverse}{groups}"
        ),
        format!("[privacy]\nk = 3\n[plan]\nwindow_records = 200\ninterval = \"2m\"\n{groups}"),
        format!("[privacy]\nk = 3\nmin_tenure = 2\n{groups}"),
    ] {
        let undisturbed = left(&settings, Fault::Nothing);
        assert!(!undisturbed.is_empty(), "nothing left under {settings}");
        let replaced = left(&settings, Fault::Restart);
        let differs = undisturbed.iter().zip(&replaced).position(|(a, b)| a != b);
        assert!(differs.is_none() && undisturbed.len() == replaced.len(), "it differs at {differs:?} under {settings}");
    }
}

#[test]
fn batches_after_a_restart_use_the_new_policy() {
    let schema = format!("name = \"replaced\"\n{}", [PERSON, AGE, CITY].concat());
    let mut stand = Stand::new(&schema, "[privacy]\nk = 3\n");
    let mut dice = Dice::new(23);
    let ks = [3, 3, 3, 9, 9, 9, 4, 4, 4];
    for (batch, k) in ks.into_iter().enumerate() {
        let before = stand.config.privacy.k;
        stand.config.privacy.k = k;
        if before != k {
            stand.offer(&[], Flush::No, START_MS + batch as i64 * 60_000, Fault::Restart);
        }
        let lines_before = stand.sink.lines.len();
        let coming = visits(&mut dice, 40);
        stand.offer(&coming, Flush::No, START_MS + batch as i64 * 60_000 + 1_000, Fault::Nothing);
        let lines = &stand.sink.lines;
        for line in &lines[lines_before..] {
            let alike = lines.iter().filter(|other| (other.group, &other.text) == (line.group, &line.text));
            let people: BTreeSet<&Option<String>> = alike.map(|other| &other.subject).collect();
            assert!(people.len() >= k, "{} people of {} under k = {k}", people.len(), line.text);
        }
    }
    stand.check_conservation().expect("every record is accounted for");
    assert!(!stand.sink.lines.is_empty());
}
