//! Another policy while the daemon runs: no record is lost or leaves twice, and whatever is wrong, the old policy stays.
#![cfg(feature = "failpoints")]

mod support;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::daemon::{Daemon, Dice, Stage, configure, conserved, payload, records, scratch, sound};
use support::kafka::Broker;
use support::schemas::{AGE, CITY, ILLNESS, PERSON};
use support::stand::{Fault, Stand, record};
use throng::daemon::engine::Settling;

const BATCH: usize = 40;
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

fn until(what: &str, daemon: &Daemon, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come: {}", daemon.said());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A daemon over a pipe, which gives what it is fed.
struct Pipe {
    dir: tempfile::TempDir,
    port: u16,
    dice: Dice,
    fed: usize,
    feed: Option<File>,
}

impl Pipe {
    fn new() -> Self {
        let dir = scratch();
        let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        assert!(Command::new("mkfifo").arg(at("in.fifo")).status().expect("mkfifo").success());
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        let ends = format!(
            "[source]\nkind = \"file\"\nformat = \"json\"\npath = \"-\"\n[sink]\nkind = \"file\"\npath = \"{}\"\n",
            at("out.ndjson")
        );
        configure(dir.path(), "only", &ends, 2, BATCH, "20ms");
        fs::write(at("token"), TOKEN).expect("a token");
        fs::set_permissions(at("token"), Permissions::from_mode(0o600)).expect("our own file");
        let pipe = Self { dir, port, dice: Dice::new(5), fed: 0, feed: None };
        let token = format!("listen = \"127.0.0.1:{port}\"\ntoken_file = \"{}\"\n", pipe.at("token").display());
        pipe.edit("listen = \"127.0.0.1:0\"\n", &token);
        pipe
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn edit(&self, from: &str, to: &str) {
        let text = fs::read_to_string(self.at("only.toml")).expect("the configuration");
        assert!(text.contains(from), "{from}");
        fs::write(self.at("only.toml"), text.replace(from, to)).expect("the configuration");
    }

    fn start(&mut self) -> Daemon {
        self.start_in(None, &[])
    }

    fn start_in(&mut self, faults: Option<&str>, environment: &[(&str, &Path)]) -> Daemon {
        let daemon = Daemon::start_in(&self.at("only.toml"), &[], faults, environment);
        self.feed = Some(OpenOptions::new().write(true).open(self.at("in.fifo")).expect("the pipe"));
        until("the pages", &daemon, || self.asked("GET /healthz", "").is_some_and(|(status, _)| status == 200));
        daemon
    }

    fn feed(&mut self, records: usize) {
        let mut text = Vec::new();
        for number in self.fed..self.fed + records {
            text.extend(payload(number, &mut self.dice).unwrap_or_else(|| b"null".to_vec()));
            text.push(b'\n');
        }
        self.fed += records;
        self.feed.as_mut().expect("it was started").write_all(&text).expect("the daemon reads");
    }

    /// Ends the stream and looks at what has left.
    fn finish(mut self, mut daemon: Daemon) -> String {
        drop(self.feed.take());
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.said());
        assert_eq!(conserved(&self.at("only")), self.fed as u64);
        let lines = |name: &str| -> Vec<String> {
            fs::read_to_string(self.at(name)).unwrap_or_default().lines().map(str::to_owned).collect()
        };
        assert!(sound(lines("out.trace.ndjson").iter().chain(&lines("out.visit.ndjson"))) > 0);
        daemon.said()
    }

    fn asked(&self, request: &str, headers: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
        command.args(["reload", "-c"]).arg(self.at("only.toml")).output().expect("the program runs")
    }

    /// The exit code and everything that `throng reload` says.
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
fn a_policy_is_replaced_between_two_batches_or_refused_by_name() {
    let mut pipe = Pipe::new();
    let mut daemon = pipe.start();
    pipe.feed(5 * BATCH);
    assert_eq!(pipe.metric("throng_reloads_total{outcome=\"replaced\"}"), 0.0, "the series is there from the start");
    let (code, said) = pipe.reloaded();
    assert!(code == Some(0) && said.contains("says what is in force already"), "{code:?} {said}");
    // In force.
    pipe.edit("k = 3", "k = 4");
    let (code, said) = pipe.reloaded();
    assert!(code == Some(0) && said.contains("changed: privacy.k"), "{code:?} {said}");
    assert_eq!(pipe.metric("throng_privacy_k"), 4.0);
    pipe.feed(3 * BATCH);
    // Tests of its own: those that hold change nothing, those that fail keep what is in force.
    let text = fs::read_to_string(pipe.at("only.toml")).expect("the configuration");
    fs::write(pipe.at("only.toml"), format!("{text}{HOLDS}")).expect("the configuration");
    let (code, said) = pipe.reloaded();
    assert!(code == Some(0) && said.contains("changed: test"), "{code:?} {said}");
    pipe.edit("k = 4", "k = 13");
    let (code, said) = pipe.reloaded();
    assert!(code == Some(1) && said.contains("test \"a crowd leaves\" fails"), "{code:?} {said}");
    assert_eq!((pipe.metric("throng_privacy_k"), pipe.metric("throng_last_reload_refused")), (4.0, 1.0));
    // What needs a new start is named, and nothing of it happens.
    pipe.edit("k = 13", "k = 5");
    pipe.edit("out.ndjson", "canary.ndjson");
    let (code, said) = pipe.reloaded();
    assert!(code == Some(1) && said.contains("refused: sink.path:") && !said.contains("canary"), "{code:?} {said}");
    assert_eq!(pipe.metric("throng_privacy_k"), 4.0, "all of it or nothing");
    pipe.edit("canary.ndjson", "out.ndjson");
    // A record schema that says something else.
    let schema = fs::read_to_string(pipe.at("visits.toml")).expect("the schema");
    fs::write(pipe.at("visits.toml"), schema.replace("\"tent\"", "\"tents\"")).expect("the schema");
    let (code, said) = pipe.reloaded();
    assert!(code == Some(1) && said.contains("refused: schema.file:"), "{code:?} {said}");
    fs::write(pipe.at("visits.toml"), schema).expect("the schema");
    // What is wrong is not even asked.
    pipe.edit("k = 5", "k = \"canary\"");
    let (code, said) = pipe.reloaded();
    assert!(code == Some(2) && said.contains("privacy.k") && !said.contains("canary"), "{code:?} {said}");
    // By the signal, it is refused in the log.
    daemon.signal(Signal::HUP);
    until("the refusal", &daemon, || pipe.metric("throng_reloads_total{outcome=\"refused\"}") >= 4.0);
    pipe.edit("k = \"canary\"", "k = 5");
    daemon.signal(Signal::HUP);
    until("the new policy", &daemon, || pipe.metric("throng_privacy_k") == 5.0);
    until("the end of the reload", &daemon, || pipe.metric("throng_last_reload_refused") == 0.0);
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let (_, status) = pipe.asked("GET /status.json", &bearer).expect("a page");
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["last_reload"]["outcome"], "replaced");
    assert_eq!(status["policy"].as_str().map(str::len), Some(12));
    pipe.feed(3 * BATCH);
    assert!(daemon.ended().is_none());
    let log = pipe.finish(daemon);
    assert!(log.contains("the new configuration is refused, the old one stays") && !log.contains("canary"), "{log}");
}

/// A daemon that ends while it tries a configuration ends the trial, which takes its files along.
#[test]
fn a_trial_that_is_ended_leaves_nothing_behind() {
    let mut pipe = Pipe::new();
    let folder = pipe.at("temporary");
    fs::create_dir(&folder).expect("a folder");
    let mut daemon = pipe.start_in(None, &[("TMPDIR", &folder)]);
    pipe.feed(2 * BATCH);
    // Longer than a daemon takes to end.
    let long = HOLDS.replace("people = 12", "people = 10000");
    let tests: String = (0..40).map(|n| long.replace("a crowd leaves", &format!("crowd {n}"))).collect();
    let text = fs::read_to_string(pipe.at("only.toml")).expect("the configuration");
    fs::write(pipe.at("only.toml"), text + &tests).expect("the configuration");
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

/// The last write of a swap fails: nothing of it has happened, and the policy before goes on; the next try is one like any other.
#[test]
fn a_swap_whose_last_write_fails_is_wholly_undone() {
    let mut pipe = Pipe::new();
    let mut daemon = pipe.start_in(Some("succession-unnoted=1*return->off"), &[]);
    pipe.feed(3 * BATCH);
    pipe.edit("k = 3", "k = 4");
    let (code, said) = pipe.reloaded();
    assert!(code == Some(1) && said.contains("the database takes nothing more"), "{code:?} {said}");
    assert_eq!((pipe.metric("throng_privacy_k"), pipe.metric("throng_last_reload_refused")), (3.0, 1.0));
    pipe.feed(3 * BATCH);
    assert!(daemon.ended().is_none(), "{}", daemon.said());
    let (code, said) = pipe.reloaded();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!((pipe.metric("throng_privacy_k"), pipe.metric("throng_last_reload_refused")), (4.0, 0.0));
    pipe.feed(3 * BATCH);
    pipe.finish(daemon);
}

#[test]
fn threat_28_only_who_brings_the_token_may_ask() {
    let mut pipe = Pipe::new();
    let daemon = pipe.start();
    pipe.edit("k = 3", "k = 4");
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    // base64 of `x:a-token-of-the-tests`, which a browser would send by itself.
    let basic = "Authorization: Basic eDphLXRva2VuLW9mLXRoZS10ZXN0cw==\r\n";
    for (headers, status) in [("", 401), ("Authorization: Bearer a-token-of-the-testz\r\n", 401), (basic, 403)] {
        assert_eq!(pipe.asked("POST /reload", headers).map(|(status, _)| status), Some(status), "{headers}");
    }
    assert_eq!(pipe.asked("GET /reload", &bearer).map(|(status, _)| status), Some(405));
    let foreign = pipe.asked("POST http://evil.example.org/reload", &bearer);
    assert_eq!(foreign.map(|(status, _)| status), Some(421));
    assert_eq!(pipe.metric("throng_privacy_k"), 3.0);
    fs::write(pipe.at("token"), "another-token-of-the-tests").expect("a token");
    let (code, said) = pipe.reloaded();
    assert!(code == Some(1) && said.contains("another token") && !said.contains(TOKEN), "{code:?} {said}");
    let (status, body) = pipe.asked("POST /reload", &bearer).expect("an answer");
    assert!(status == 200 && body.contains("\"replaced\""), "the token of the start: {status} {body}");
    assert_eq!(pipe.metric("throng_privacy_k"), 4.0);
    pipe.feed(3 * BATCH);
    let log = pipe.finish(daemon);
    assert!(!log.contains(TOKEN), "{log}");
}

#[test]
fn without_a_token_there_is_no_way_but_the_signal() {
    let mut pipe = Pipe::new();
    let text = fs::read_to_string(pipe.at("only.toml")).expect("the configuration");
    let text: String = text.lines().filter(|l| !l.starts_with("token_file")).map(|l| format!("{l}\n")).collect();
    fs::write(pipe.at("only.toml"), text).expect("the configuration");
    let daemon = pipe.start();
    assert_eq!(pipe.asked("POST /reload", "").map(|(status, _)| status), Some(404));
    let (code, said) = pipe.reloaded();
    assert!(code == Some(2) && said.contains("telemetry.token_file"), "{code:?} {said}");
    pipe.edit("k = 3", "k = 4");
    daemon.signal(Signal::HUP);
    until("the new policy", &daemon, || pipe.metric("throng_privacy_k") == 4.0);
    pipe.feed(3 * BATCH);
    pipe.finish(daemon);
}

/// As many reloads as there are batches, in the midst of them.
#[test]
fn ten_reloads_a_second_lose_and_repeat_nothing() {
    let mut pipe = Pipe::new();
    let daemon = pipe.start();
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let begun = Instant::now();
    let mut replaced = 0;
    for round in 0..40 {
        pipe.feed(BATCH + BATCH / 2);
        let (from, to) = if round % 2 == 0 { ("k = 3", "k = 4") } else { ("k = 4", "k = 3") };
        pipe.edit(from, to);
        if round % 5 == 4 {
            daemon.signal(Signal::HUP);
        }
        let (status, body) = pipe.asked("POST /reload", &bearer).expect("an answer");
        assert_eq!(status, 200, "{body}");
        replaced += usize::from(body.contains("\"replaced\""));
    }
    eprintln!("40 reloads in {:?}, {replaced} of them replaced a policy", begun.elapsed());
    assert!(replaced >= 30, "{replaced}");
    let said = pipe.finish(daemon);
    assert!(said.contains("a new configuration is in force"));
}

#[test]
fn reloads_under_load_lose_and_repeat_nothing_on_kafka() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, portion, rounds) = (41, 4 * BATCH, 6);
    let stage = Stage::new(broker, 2);
    let file = stage.configure("only", 2, BATCH, "200ms");
    let mut daemon = stage.start("only", None);
    let text = fs::read_to_string(&file).expect("the configuration");
    for round in 0..rounds {
        broker.produce_records(&stage.raw, &records(seed, round * portion, (round + 1) * portion, 2));
        // In the midst of the portion, whatever the batch is at.
        stage.wait_consumed(round * portion + BATCH, &mut [&mut daemon]);
        let k = if round % 2 == 0 { "k = 5\n" } else { "k = 3\n" };
        fs::write(&file, text.replace("k = 3\n", k)).expect("the configuration");
        daemon.signal(Signal::HUP);
        let count = || daemon.said().matches("a new configuration is in force").count();
        until("the new policy", &daemon, || count() > round);
    }
    let total = rounds * portion;
    stage.wait_consumed(total, &mut [&mut daemon]);
    daemon.stop();
    assert_eq!(conserved(&stage.state("only")), total as u64);
    assert!(sound(stage.released().values().flatten()) > total / 2);
}

#[test]
fn a_kill_around_the_swap_loses_and_repeats_nothing() {
    let Some(broker) = Broker::shared() else { return };
    let (seed, portion) = (43, 4 * BATCH);
    let stage = Stage::new(broker, 1).with_static_membership();
    let file = stage.configure("only", 2, BATCH, "200ms");
    let text = fs::read_to_string(&file).expect("the configuration");
    let points = ["reload-begun", "reload-noted", "reload-done"];
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
    assert_eq!(conserved(&stage.state("only")), total as u64);
    assert!(sound(stage.released().values().flatten()) > total / 2);
}

/// A batch that was tried and has not left is repeated under its own policy, or not at all.
#[test]
fn a_batch_that_was_tried_is_not_repeated_under_another_policy() {
    let Some(broker) = Broker::shared() else { return };
    let stage = Stage::new(broker, 1).with_static_membership();
    let total = 6 * BATCH;
    let file = stage.configure("only", 0, BATCH, "1h");
    broker.produce_records(&stage.raw, &records(9, 0, total, 1));
    stage.start("only", Some("intent-flushed=2*off->return")).crashes("intent-flushed");
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, text.replace("k = 3\n", "k = 4\n")).expect("the configuration");
    let mut other = stage.start("only", None);
    assert_eq!(other.wait().code(), Some(2), "{}", other.said());
    let said = other.said();
    assert!(
        said.contains("the policy is another than when batch 3 was tried") && said.contains("--accept-rewind"),
        "{said}"
    );
    // What is no policy may change.
    fs::write(&file, text.replace("listen = ", "log_format = \"json\"\nlisten = ")).expect("the configuration");
    let mut same = stage.start("only", None);
    stage.wait_consumed(total, &mut [&mut same]);
    same.stop();
    assert_eq!(conserved(&stage.state("only")), total as u64);
}

const START_MS: i64 = 1_700_000_000_000;

/// A batch of people who come again and again.
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

/// What leaves of one stream, batch by batch, where an engine takes over from another after each, or after none.
fn left(settings: &str, fault: Fault) -> Vec<(u64, usize, String)> {
    let schema = format!("name = \"replaced\"\n{}", [PERSON, AGE, CITY, ILLNESS].concat());
    let mut stand = Stand::new(&schema, settings);
    let mut dice = Dice::new(17);
    let mut coming = visits(&mut dice, 50);
    for batch in 0..14 {
        // Encoded ahead, by dictionaries that go with the engine.
        let next = visits(&mut dice, 30 + batch as u64);
        stand.announce(&next);
        stand.offer(&coming, Settling::No, START_MS + batch * 60_000, fault);
        coming = next;
    }
    stand.settle(Settling::EndOfStream, START_MS + 3_600_000);
    stand.check_conservation().expect("every record is accounted for");
    stand.sink.lines.iter().map(|line| (line.batch, line.group, line.text.clone())).collect()
}

#[test]
fn an_engine_that_takes_over_from_its_like_lets_out_the_same_bytes() {
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
        let replaced = left(&settings, Fault::Replace);
        let differs = undisturbed.iter().zip(&replaced).position(|(a, b)| a != b);
        assert!(differs.is_none() && undisturbed.len() == replaced.len(), "it differs at {differs:?} under {settings}");
    }
}

#[test]
fn what_leaves_after_the_swap_is_judged_by_the_new_policy() {
    let schema = format!("name = \"replaced\"\n{}", [PERSON, AGE, CITY].concat());
    let mut stand = Stand::new(&schema, "[privacy]\nk = 3\n");
    let mut dice = Dice::new(23);
    let ks = [3, 3, 3, 9, 9, 9, 4, 4, 4];
    for (batch, k) in ks.into_iter().enumerate() {
        let before = stand.config.privacy.k;
        stand.config.privacy.k = k;
        if before != k {
            stand.offer(&[], Settling::No, START_MS + batch as i64 * 60_000, Fault::Replace);
        }
        let lines_before = stand.sink.lines.len();
        let coming = visits(&mut dice, 40);
        stand.offer(&coming, Settling::No, START_MS + batch as i64 * 60_000 + 1_000, Fault::Nothing);
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
