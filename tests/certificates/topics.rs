//! From topic to topic, on a real broker.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::scene::{BATCH, KEY, PUBLIC, Verdict, chained, comparable, statement, throng};
use crate::support::canaries::hex;
use crate::support::crash_points::{self, kill_at};
use crate::support::daemon::{Dice, Stage, finish, records};
use crate::support::kafka::{Broker, Stored, unique};

/// A stage with certificates in a topic of their own.
fn stage(broker: &Broker, hold: usize) -> (Stage<'_>, String) {
    let stage = Stage::new(broker, 1).with_static_membership();
    let audit = unique("audit");
    broker.create_topic(&audit, 1, true);
    std::fs::write(stage.dir.path().join("public.pem"), PUBLIC).expect("a key");
    configure(&stage, &audit, "only", hold);
    (stage, audit)
}

/// The configuration of an instance that writes its certificates there.
fn configure(stage: &Stage, audit: &str, name: &str, hold: usize) {
    use std::os::unix::fs::PermissionsExt;
    let key = stage.dir.path().join("signing");
    std::fs::write(&key, KEY).expect("a key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("a file of ours");
    let config = stage.configure(name, hold, BATCH, "1h");
    let text = std::fs::read_to_string(&config).expect("the configuration");
    let more = format!("[certificates]\nkey_file = \"{}\"\ntopic = \"{audit}\"\n", key.display());
    std::fs::write(&config, text + &more).expect("the configuration");
}

fn line(stored: &Stored) -> &str {
    std::str::from_utf8(stored.payload.as_deref().expect("a payload")).expect("text")
}

/// The certificates of committed batches, their keys and places checked.
fn certificates(stage: &Stage, audit: &str) -> Vec<Value> {
    let stored = stage.broker.read_committed(audit);
    for one in &stored {
        let chain = &statement(line(one)).0["predicate"]["chain"];
        let (instance, sequence) =
            (chain["instance"].as_str().expect("a text"), chain["sequence"].as_u64().expect("one"));
        assert_eq!(one.key.as_deref(), Some(format!("{instance}/{sequence:020}").as_bytes()));
        assert_eq!((one.partition, one.headers.len()), (0, 0));
    }
    chained(stored.iter().map(line))
}

/// Fragments by group in the order of the batches, held against the digests: the place of a fragment is its rank in its batch.
fn digests(stage: &Stage, statements: &[Value]) -> [String; 2] {
    let released = stage.released();
    let mut next: BTreeMap<i32, usize> = BTreeMap::new();
    let mut exported = [String::new(), String::new()];
    for statement in statements {
        let mut rank = 0;
        for (subject, output) in statement["subject"].as_array().expect("some").iter().zip(0..) {
            let count = statement["predicate"]["outputs"][output]["lines"].as_u64().expect("a count");
            let mut bytes = String::new();
            for _ in 0..count {
                let partition = rank % 2;
                rank += 1;
                let at = next.entry(partition).or_default();
                bytes += &released[&partition][*at];
                bytes.push('\n');
                *at += 1;
            }
            assert_eq!(subject["digest"]["sha256"], hex(&Sha256::digest(bytes.as_bytes())), "{}", subject["name"]);
            exported[output] += &bytes;
        }
    }
    for (partition, lines) in &released {
        assert_eq!(next.get(partition), Some(&lines.len()), "every fragment of partition {partition} is certified");
    }
    exported
}

#[test]
fn a_committed_batch_has_one_certificate_in_its_transaction() {
    let Some(broker) = Broker::shared() else { return };
    let (stage, audit) = stage(broker, 2);
    let total = 8 * BATCH;
    broker.produce_records(&stage.raw, &records(52, 0, total, 1));
    finish(&stage, total);
    let statements = certificates(&stage, &audit);
    // The last one settles what is held.
    assert!(statements.len() == 8 || statements.len() == 9, "{} batches", statements.len());
    let [traces, visits] = digests(&stage, &statements);
    let consumed: u64 = statements.iter().filter_map(|s| s["predicate"]["counts"]["consumed"].as_u64()).sum();
    assert_eq!(consumed, total as u64);
    let input = &statements[2]["predicate"]["input"];
    assert_eq!(input[0]["topic"], stage.raw);
    assert_eq!((input[0]["from"].as_i64(), input[0]["to"].as_i64()), (Some(80), Some(120)));
    // The topic is checked where it is.
    let source = format!("topic:{audit}");
    let arguments =
        ["verify-release", "-c", "only.toml", "--json", "--certificates", &source, "--public-key", "public.pem"];
    let verdict = Verdict::of(&throng(stage.dir.path(), &arguments));
    verdict.is_whole();
    assert_eq!(verdict.report["certificates"], statements.len());
    // And so is what was exported, line by line; the configuration then has no source that files could not come from.
    let place = stage.dir.path();
    std::fs::write(place.join("out.trace.ndjson"), &traces).expect("a file");
    let check = |visits: &str| {
        std::fs::write(place.join("out.visit.ndjson"), visits).expect("a file");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_throng"));
        command.current_dir(place).args(["verify-release", "out.ndjson"]).args(&arguments[1..]);
        command.envs([("THRONG__SOURCE__KIND", "file"), ("THRONG__SOURCE__PATH", "none")]);
        command.env("THRONG__SINK__BROKERS", broker.bootstrap());
        Verdict::of(&command.output().expect("the binary runs"))
    };
    check(&visits).is_whole();
    let cut = visits.split_once('\n').expect("lines").1;
    check(cut).names("the bytes that are certified", Some(1));
}

/// An attempt that was aborted leaves no certificate to readers of committed records, and its repetition has the same bytes.
#[test]
fn a_kill_at_any_point_leaves_one_unbroken_chain_of_committed_batches() {
    let Some(broker) = Broker::shared() else { return };
    let total = 45 * BATCH;
    let (calm, calm_audit) = stage(broker, 0);
    broker.produce_records(&calm.raw, &records(53, 0, total, 1));
    finish(&calm, total);
    let (stage, audit) = stage(broker, 0);
    broker.produce_records(&stage.raw, &records(53, 0, total, 1));
    let mut dice = Dice::new(53);
    for point in crash_points::TOPIC.into_iter().chain([crash_points::EPOCH_TAKEN]) {
        let crash = kill_at(point, &mut dice);
        stage.start("only", Some(&crash)).crashes(&crash);
    }
    assert!(stage.consumed() < total as i64, "the last crash came after the end of the stream");
    finish(&stage, total);
    let committed = certificates(&stage, &audit);
    digests(&stage, &committed);
    let of = |statements: Vec<Value>, stage: &Stage| -> Vec<Value> {
        let plain = |statement| {
            let mut statement = comparable(statement);
            for range in statement["predicate"]["input"].as_array_mut().expect("ranges") {
                assert_eq!(range["topic"], stage.raw);
                range["topic"] = Value::Null;
            }
            for output in statement["predicate"]["outputs"].as_array_mut().expect("outputs") {
                assert_eq!(output["topic"], stage.out);
                output["topic"] = Value::Null;
            }
            statement
        };
        statements.into_iter().map(plain).collect()
    };
    let wanted = of(certificates(&calm, &calm_audit), &calm);
    assert_eq!(of(committed.clone(), &stage), wanted);
    // Those of attempts that were killed behind "produced" are there for readers of everything, each like the one that was committed.
    let all = broker.read_uncommitted(&audit);
    assert!(all.len() > committed.len(), "no attempt was aborted");
    for one in &all {
        let (attempted, _) = statement(line(one));
        let sequence = attempted["predicate"]["chain"]["sequence"].as_u64().expect("one") as usize;
        assert_eq!(attempted, committed[sequence - 1], "an aborted attempt and its repetition differ");
    }
}

/// Instances share a topic, and each has a chain of its own.
#[test]
fn every_instance_has_a_chain_of_its_own() {
    let Some(broker) = Broker::shared() else { return };
    let (stage, audit) = stage(broker, 0);
    for (part, name) in ["one", "two", "one"].into_iter().enumerate() {
        configure(&stage, &audit, name, 0);
        let (from, to) = (part * 4 * BATCH, (part + 1) * 4 * BATCH);
        broker.produce_records(&stage.raw, &records(54, from, to, 1));
        let mut daemon = stage.start(name, None);
        stage.wait_consumed(to, &mut [&mut daemon]);
        daemon.stop();
    }
    let source = format!("topic:{audit}");
    let arguments =
        ["verify-release", "-c", "one.toml", "--json", "--certificates", &source, "--public-key", "public.pem"];
    let verdict = Verdict::of(&throng(stage.dir.path(), &arguments));
    verdict.is_whole();
    let chains = verdict.report["chains"].as_array().expect("chains");
    let counts: Vec<_> = chains.iter().map(|chain| chain["certificates"].as_u64().expect("a count")).collect();
    assert_eq!(counts, [8, 4], "{chains:?}");
}

/// A topic that is not there ends the start with its name.
#[test]
fn a_topic_of_certificates_that_is_missing_is_named() {
    let Some(broker) = Broker::shared() else { return };
    let (stage, audit) = stage(broker, 0);
    let config = stage.dir.path().join("only.toml");
    let text = std::fs::read_to_string(&config).expect("the configuration");
    std::fs::write(&config, text.replace(&audit, "no-such-topic")).expect("the configuration");
    let mut daemon = stage.start("only", None);
    assert_eq!(daemon.wait().code(), Some(2), "{}", daemon.said());
    assert!(daemon.said().contains("no-such-topic"), "{}", daemon.said());
}
