//! Whoever changes certificates or the output afterwards is found, and where.

use std::fs;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use throng::certificates::key::SigningKey;

use crate::scene::{OTHER_KEY, Run, Verdict, throng};

/// A run that has ended, its certificates as lines.
fn finished() -> (Run, Vec<String>) {
    let run = Run::new(0);
    run.finish();
    let lines = run.read("certificates.ndjson").lines().map(str::to_owned).collect();
    (run, lines)
}

/// The verdict on these lines in place of the certificates.
fn verdict(run: &Run, lines: &[String]) -> Verdict {
    run.write("changed.ndjson", &(lines.join("\n") + "\n"));
    run.check("changed.ndjson")
}

/// A line with another payload under the old signature, or signed anew by `key`.
fn altered(line: &str, key: Option<&str>, how: impl Fn(&mut Value)) -> String {
    let mut envelope: Value = serde_json::from_str(line).expect("an envelope");
    let payload = STANDARD.decode(envelope["payload"].as_str().expect("a payload")).expect("base64");
    let mut statement: Value = serde_json::from_slice(&payload).expect("a statement");
    how(&mut statement);
    let payload = serde_json::to_vec(&statement).expect("JSON");
    envelope["payload"] = STANDARD.encode(&payload).into();
    if let Some(key) = key {
        let kind = "application/vnd.in-toto+json";
        let signed =
            [format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).as_bytes(), payload.as_slice()].concat();
        let key = SigningKey::parse(key.as_bytes()).expect("a key");
        envelope["signatures"][0]["sig"] = STANDARD.encode(key.sign(&signed)).into();
    }
    envelope.to_string()
}

#[test]
fn threat_31_whatever_is_done_to_certificates_is_named() {
    let (run, lines) = finished();
    verdict(&run, &lines).is_whole();
    // A payload with another count: the signature does not fit, records are not conserved, and the next one names another before it.
    let mut changed = lines.clone();
    changed[4] = altered(&changed[4], None, |s| s["predicate"]["counts"]["consumed"] = json!(1_000_000));
    verdict(&run, &changed)
        .names("signed by a key that is given", Some(5))
        .names("records are conserved", Some(5))
        .names("names the one before it", Some(6));
    // A foreign key that says it is ours.
    let mut changed = lines.clone();
    changed[4] = altered(&changed[4], Some(OTHER_KEY), |_| {});
    let found = verdict(&run, &changed);
    found.names("signed by a key that is given", Some(5));
    assert_eq!(found.broken().len(), 1);
    // One that is missing in the middle, one at the beginning.
    let mut changed = lines.clone();
    changed.remove(6);
    verdict(&run, &changed).names("no certificate is missing before this one", Some(8));
    verdict(&run, &lines[1..]).names("from its first certificate on", Some(2));
    // Two that are exchanged, one twice.
    let mut changed = lines.clone();
    changed.swap(6, 7);
    verdict(&run, &changed)
        .names("no certificate is missing before this one", Some(8))
        .names("stand in their order", Some(7));
    let mut changed = lines.clone();
    changed.insert(3, lines[2].clone());
    verdict(&run, &changed).names("stand in their order, each once", Some(3));
    // An end that is cut off: with the head, and by the output too.
    let whole = run.check("certificates.ndjson");
    let head = whole.report["chains"][0]["head"].as_str().expect("a head").to_owned();
    run.write("changed.ndjson", &(lines[..10].join("\n") + "\n"));
    let arguments = ["--certificates", "changed.ndjson", "--public-key", "public.pem", "--head", &head];
    run.verify(&arguments).names("a chain ends where --head says", None);
    run.check("changed.ndjson").names("every line is of a batch that has a certificate", None);
    let alone = throng(run.dir.path(), &[&["verify-release", "-c", "only.toml", "--json"], &arguments[..4]].concat());
    let alone = Verdict::of(&alone);
    alone.is_whole();
    assert!(
        alone.report["not_checked"].to_string().contains("--head"),
        "the end that is cut off is not noticed, and that is said"
    );
    // What is no certificate at all.
    for odd in ["{}", "", "nonsense", "[1]"] {
        let mut changed = lines.clone();
        changed[3] = odd.to_owned();
        verdict(&run, &changed).names("a line is a signed envelope", None);
    }
    let mut changed = lines.clone();
    changed[3] = altered(&changed[3], Some(crate::scene::KEY), |s| s["predicate"]["more"] = json!(1));
    verdict(&run, &changed).names("a payload is the statement of a certificate", None);
    verdict(&run, &[]).names("a line is a signed envelope", None);
    run.write("changed.ndjson", "");
    run.check("changed.ndjson").names("there is a certificate", None);
}

/// Even the owner of the key cannot certify what does not add up, or another policy, unnoticed.
#[test]
fn what_contradicts_itself_is_named_whoever_has_signed() {
    let (run, lines) = finished();
    let key = Some(crate::scene::KEY);
    for (promise, how) in [
        ("records are conserved", (|s| s["predicate"]["counts"]["released"] = json!(0)) as fn(&mut Value)),
        ("lines are those that were verified", |s| s["predicate"]["verification"]["lines"] = json!(1)),
        ("has the crowd that is asked for", |s| s["predicate"]["crowds"]["smallest"] = json!(2)),
        ("has passed verification", |s| s["predicate"]["verification"]["result"] = json!("failed")),
        ("has passed verification", |s| s["predicate"]["risk"]["lines_below_k"] = json!(1)),
        ("a batch begins where the one before it ended", |s| s["predicate"]["outputs"][1]["first_line"] = json!(1)),
        ("input is consumed once", |s| s["predicate"]["input"][0]["from"] = json!(0)),
        ("under the policy of this configuration", |s| s["predicate"]["policy"]["sha256"] = json!("0")),
        ("names its outputs as its subjects", |s| s["subject"][0]["name"] = json!("visit")),
    ] {
        let mut changed = lines.clone();
        changed[4] = altered(&changed[4], key, how);
        verdict(&run, &changed).names(promise, Some(5));
    }
    // The policy is that of the configuration which is named.
    run.change(|text| text.replace("k = 3", "k = 2"));
    let found = run.check("certificates.ndjson");
    found.names("under the policy of this configuration", Some(1));
    assert_eq!(found.broken().len(), lines.len());
}

/// Lines that are altered, removed or added are found in their batch, and in no other.
#[test]
fn threat_31_whatever_is_done_to_the_output_is_named_by_batch() {
    let (run, lines) = finished();
    let text = run.read("out.visit.ndjson");
    let of_batch = |n: usize| {
        let statement = crate::scene::statement(&lines[n - 1]).0;
        statement["predicate"]["outputs"][1]["first_line"].as_u64().expect("a place") as usize
    };
    let at = of_batch(6) + 1;
    let mut whole: Vec<String> = text.lines().map(str::to_owned).collect();
    let good = whole.clone();
    let found = |lines: &[String]| {
        run.write("out.visit.ndjson", &(lines.join("\n") + "\n"));
        run.check("certificates.ndjson")
    };
    let bytes = "the output of a batch has the bytes that are certified";
    let only = |verdict: &Verdict, batch: u64| {
        verdict.names(bytes, Some(batch));
        assert_eq!(verdict.broken(), [(bytes.to_owned(), Some(batch), Some("visit".to_owned()))]);
    };
    whole[at] = whole[at].replace("\"ward\":\"", "\"ward\":\"x");
    only(&found(&whole), 6);
    whole.clone_from(&good);
    whole.remove(at);
    only(&found(&whole), 6);
    whole.clone_from(&good);
    whole.insert(at, good[0].clone());
    only(&found(&whole), 6);
    whole.clone_from(&good);
    let other = (of_batch(8)..good.len()).find(|other| good[*other] != good[at]).expect("another line");
    whole.swap(at, other);
    found(&whole).names(bytes, Some(6)).names(bytes, Some(8));
    whole.clone_from(&good);
    whole.push(good[0].clone());
    found(&whole).names("every line is of a batch that has a certificate", None);
    whole.clone_from(&good);
    whole.pop();
    found(&whole).names(bytes, Some(lines.len() as u64));
    found(&good).is_whole();
    // Through a pipe.
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.current_dir(run.dir.path()).args(["verify-release", "out.ndjson", "-c", "only.toml", "--json"]);
    command.args(["--certificates", "-", "--public-key", "public.pem"]);
    command.stdin(fs::File::open(run.path("certificates.ndjson")).expect("the certificates"));
    Verdict::of(&command.output().expect("the binary runs")).is_whole();
}
