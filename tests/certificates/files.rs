//! From file to file.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::scene::{BATCH, LINES, OTHER_KEY, Run, Verdict, chained, comparable, throng};
use crate::support::canaries::hex;
use crate::support::crash_points::{self, kill_at};

/// The digests of the outputs, counted by hand: lines of each batch, in the order of the certificates.
fn digests(run: &Run, statements: &[Value]) {
    for (at, name) in ["trace", "visit"].into_iter().enumerate() {
        let text = run.read(&format!("out.{name}.ndjson"));
        let mut lines = text.split_inclusive('\n');
        let mut first = 0;
        for statement in statements {
            let (subject, output) = (&statement["subject"][at], &statement["predicate"]["outputs"][at]);
            assert_eq!((subject["name"].as_str(), output["name"].as_str()), (Some(name), Some(name)));
            assert_eq!(output["first_line"].as_u64(), Some(first));
            let count = output["lines"].as_u64().expect("a count");
            let bytes: String = lines.by_ref().take(usize::try_from(count).expect("few")).collect();
            assert_eq!(output["bytes"].as_u64(), Some(bytes.len() as u64 - count));
            assert_eq!(subject["digest"]["sha256"], hex(&Sha256::digest(bytes.as_bytes())));
            first += count;
        }
        assert!(lines.next().is_none(), "all lines of {name} are certified");
    }
}

/// Counts add up to the records, and no batch says more than it has.
fn counts(statements: &[Value], k: u64) {
    let mut held = 0;
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    for statement in statements {
        let predicate = &statement["predicate"];
        let counts = &predicate["counts"];
        let of = |name: &str| match &counts[name] {
            Value::Object(reasons) => reasons.values().filter_map(Value::as_u64).sum(),
            count => count.as_u64().expect("a count"),
        };
        let gone: u64 = ["released", "suppressed", "dead_lettered", "dropped"].into_iter().map(of).sum();
        assert_eq!(held + of("consumed"), gone + of("held"), "conserved: {counts}");
        held = of("held");
        for name in ["consumed", "released", "suppressed", "dead_lettered"] {
            *all.entry(name).or_default() += of(name);
        }
        let crowds = &predicate["crowds"];
        assert_eq!((crowds["asked"].as_u64(), crowds["asked_in_batch"].as_u64()), (Some(k), Some(0)));
        assert!(crowds["smallest"].as_u64().is_some_and(|n| n == k || n == 0), "capped at what was asked: {crowds}");
        assert_eq!(predicate["verification"]["result"], "passed");
        assert_eq!(predicate["risk"]["lines_below_k"], 0);
    }
    assert_eq!((held, all["consumed"]), (0, LINES as u64));
    assert!(all["released"] > 0 && (all["suppressed"] > 0 || k == 3) && all["dead_lettered"] > 0, "{all:?}");
}

#[test]
fn every_batch_of_a_file_has_its_certificate_and_an_auditor_finds_nothing_broken() {
    // Of many people that are asked for, some records have too few.
    for (hold, k) in [(0, 3), (2, 3), (0, 30)] {
        let run = Run::new(hold);
        run.change(|text| text.replace("k = 3", &format!("k = {k}")));
        let said = run.finish();
        let certificates = run.read("certificates.ndjson");
        let statements = chained(certificates.lines());
        assert_eq!(statements.len(), LINES.div_ceil(BATCH));
        digests(&run, &statements);
        counts(&statements, k);
        let verdict = run.check("certificates.ndjson");
        verdict.is_whole();
        assert_eq!(verdict.report["certificates"], statements.len());
        // The head that the daemon has logged is the head that is found.
        let head = verdict.report["chains"][0]["head"].as_str().expect("a head").to_owned();
        assert!(said.contains(&format!("head={head}")) || said.contains(&format!("head=\"{head}\"")), "{said}");
        run.verify(&["--certificates", "certificates.ndjson", "--public-key", "public.pem", "--head", &head])
            .is_whole();
        // A file that is complete stays as it is.
        run.finish();
        assert_eq!(run.read("certificates.ndjson"), certificates);
    }
}

/// Tables, joined rows, and files that are rotated: what is altered in any of them is named.
#[test]
fn every_form_of_output_is_held_against_its_certificates() {
    // What is exchanged in the configuration, the file that is altered, the output's name.
    for (from, to, file, name) in [
        ("out.ndjson\"", "out.csv\"", "out.csv", "visit"),
        ("[sink]\n", "[sink]\nrows = \"joined\"\n", "out.ndjson", "joined"),
        ("[schema]\n", "[sink.rotate]\nsize = \"2KiB\"\n[schema]\n", "out.visit.00000001.ndjson", "visit"),
    ] {
        let run = Run::new(2);
        run.change(|text| text.replacen(from, to, 1));
        let is_csv = name == "visit" && !file.contains("visit");
        if is_csv {
            // A row of one cell could be an empty line.
            let trace = "[[group]]\nname = \"trace\"\nattributes = [\"lot\"]\n";
            run.change(|text| text.replacen(trace, "", 1).replace("[\"age\"", "[\"lot\", \"age\""));
        }
        run.finish();
        let out = if is_csv { "out.csv" } else { "out.ndjson" };
        let arguments = ["verify-release", out, "-c", "only.toml", "--json", "--certificates", "certificates.ndjson"];
        let check =
            || Verdict::of(&throng(run.dir.path(), &[&arguments[..], &["--public-key", "public.pem"]].concat()));
        check().is_whole();
        // One cell in the middle, which stays as long as it was.
        let text = run.read(file);
        let at = text.len() / 2 + text[text.len() / 2..].find("north").expect("a ward");
        run.write(file, &(text[..at].to_owned() + "south" + &text[at + 5..]));
        let broken = check().broken();
        assert!(broken.len() == 1 && broken[0].0.contains("the bytes that are certified"), "{file}: {broken:?}");
        assert!(broken[0].1.is_some() && broken[0].2.as_deref() == Some(name), "{file}: {broken:?}");
    }
}

/// Another start goes on with the chain, another key too; where certificates were off for a while the chain says so.
#[test]
fn a_chain_goes_on_over_starts_with_another_key_and_says_what_has_none() {
    let run = Run::new(0);
    let text = run.read("in.ndjson");
    let part = |batches: usize| text.split_inclusive('\n').take(batches * BATCH).collect::<String>();
    run.write("in.ndjson", &part(3));
    run.finish();
    // What the state keeps of the chain is no stranger in it.
    let examined = throng(run.dir.path(), &["state", "verify", "-c", "only.toml", "--json"]);
    let report = String::from_utf8_lossy(&examined.stdout).into_owned();
    assert!(
        examined.status.success() && report.contains("\"certified\"") && !report.contains("\"unknown\""),
        "{report}"
    );
    run.write("in.ndjson", &part(5));
    run.sign_with(OTHER_KEY);
    run.finish();
    chained(run.read("certificates.ndjson").lines());
    let both = ["--certificates", "certificates.ndjson", "--public-key", "public.pem", "--public-key", "other.hex"];
    run.verify(&both).is_whole();
    let verdict = run.check("certificates.ndjson");
    verdict.names("signed by a key that is given", Some(4)).names("signed by a key that is given", Some(5));
    assert_eq!(verdict.broken().len(), 2);
    // Two batches without.
    run.change(|text| text.replace("key_file =", "# key_file ="));
    run.write("in.ndjson", &part(7));
    run.finish();
    run.change(|text| text.replace("# key_file =", "key_file ="));
    run.write("in.ndjson", &text);
    run.finish();
    let verdict = run.verify(&both);
    verdict.is_whole();
    assert_eq!(verdict.report["chains"][0]["batches_without"], 2);
    assert_eq!(verdict.report["certificates"].as_u64(), Some(LINES.div_ceil(BATCH) as u64 - 2));
}

/// Switched on behind batches that have none, a chain begins there and says so.
#[test]
fn a_chain_that_begins_late_says_where() {
    let run = Run::new(0);
    let text = run.read("in.ndjson");
    run.write("in.ndjson", &text.split_inclusive('\n').take(2 * BATCH).collect::<String>());
    run.change(|text| text.replace("key_file =", "# key_file ="));
    run.finish();
    assert_eq!(run.read("certificates.ndjson"), "");
    run.change(|text| text.replace("# key_file =", "key_file ="));
    run.write("in.ndjson", &text);
    let said = run.finish();
    assert!(said.contains("chain of certificates started anew") && said.contains("after=2"), "{said}");
    let verdict = run.check("certificates.ndjson");
    verdict.is_whole();
    assert_eq!(verdict.report["chains"][0]["first_batch"], 3);
    assert!(verdict.report["not_checked"].to_string().contains("before the first certificate"));
}

/// A state that is lost has a new identity, and with it a new chain: an auditor is told of both.
#[test]
fn a_lost_state_begins_a_chain_of_its_own() {
    let run = Run::new(0);
    run.finish();
    let first = run.read("certificates.ndjson");
    for name in ["out.trace.ndjson", "out.visit.ndjson", "certificates.ndjson"] {
        std::fs::remove_file(run.path(name)).expect("a file");
    }
    std::fs::remove_dir_all(run.path("only")).expect("the state");
    run.finish();
    run.write("both.ndjson", &(first + &run.read("certificates.ndjson")));
    let verdict = run.check("both.ndjson");
    verdict.is_whole();
    let chains = verdict.report["chains"].as_array().expect("chains");
    assert!(chains.len() == 2 && chains[0]["instance"] != chains[1]["instance"], "{chains:?}");
    assert!(verdict.report["not_checked"].to_string().contains("several instances"));
}

/// Killed at any point: the chain is unbroken, and says what that of an undisturbed run says.
#[test]
fn a_kill_at_any_point_breaks_no_chain_and_changes_no_byte() {
    use crate::support::daemon::Dice;
    for hold in [0, 2] {
        let calm = Run::new(hold);
        calm.finish();
        let run = Run::new(hold);
        let mut dice = Dice::new(51 + hold as u64);
        let mut seen = String::new();
        for point in crash_points::all_of_files() {
            run.start(Some(&kill_at(point, &mut dice))).crashes(point);
            let now = run.read("certificates.ndjson");
            // What was there is there again, byte by byte, or has been repeated with the same bytes; all but a line that was torn.
            let whole = seen.rfind('\n').map_or("", |at| &seen[..=at]);
            let common = whole.len().min(now.len());
            assert!(whole.as_bytes()[..common] == now.as_bytes()[..common], "{point}: a certificate has changed");
            if now.len() > seen.len() {
                seen = now;
            }
        }
        run.finish();
        let certificates = run.read("certificates.ndjson");
        let whole = seen.rfind('\n').map_or("", |at| &seen[..=at]);
        assert!(certificates.starts_with(whole), "a certificate that was seen has changed");
        let found: Vec<Value> = chained(certificates.lines()).into_iter().map(comparable).collect();
        let wanted: Vec<Value> =
            chained(calm.read("certificates.ndjson").lines()).into_iter().map(comparable).collect();
        assert_eq!(found, wanted);
        run.check("certificates.ndjson").is_whole();
    }
}

/// No value and no person of any record is in a certificate, whatever was done with the record.
#[test]
fn threat_31_no_value_is_in_a_certificate() {
    let run = Run::new(2);
    run.finish();
    let plain: Vec<String> =
        run.read("certificates.ndjson").lines().map(|l| crate::scene::statement(l).0.to_string()).collect();
    let plain = plain.concat() + &run.read("certificates.ndjson");
    let input = run.read("in.ndjson");
    let mut looked_for = 0;
    for record in input.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        // Ages are numbers of two digits, and digests have such digits: they are looked for as values.
        for value in [&record["person"], &record["lot"], &record["ward"]] {
            let value = value.to_string();
            assert!(
                !plain.contains(&value) && !plain.contains(&format!("\\{}\\\"", &value[..value.len() - 1])),
                "{value}"
            );
            looked_for += 1;
        }
    }
    assert!(looked_for > LINES, "{looked_for} values");
    // Whatever text there is, it is one of these.
    let texts = |value: &Value| -> Vec<String> {
        fn walk(value: &Value, into: &mut Vec<String>) {
            match value {
                Value::String(text) => into.push(text.clone()),
                Value::Array(items) => items.iter().for_each(|item| walk(item, into)),
                Value::Object(map) => map.iter().for_each(|(key, item)| {
                    into.push(key.clone());
                    walk(item, into);
                }),
                _ => {}
            }
        }
        let mut found = Vec::new();
        walk(value, &mut found);
        found
    };
    const WORDS: &str = "_type https://in-toto.io/Statement/v1 subject name trace visit digest sha256 predicateType \
        urn:throng:release-certificate:v1 predicate chain instance number sequence previous clock_ms program throng version build \
        debug release policy input partition from to counts consumed released suppressed dead_lettered dropped held outputs lines bytes \
        first_line framing newline crowds asked asked_in_batch smallest smallest_in_batch risk highest lines_below_k verification result \
        passed no_support guard held_out end_of_stream malformed_json";
    let words: Vec<&str> = WORDS.split_whitespace().chain([env!("CARGO_PKG_VERSION")]).collect();
    for line in run.read("certificates.ndjson").lines() {
        for text in texts(&crate::scene::statement(line).0) {
            let digest = text.len() >= 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
            assert!(digest || words.contains(&text.as_str()), "{text:?} is no word of a certificate");
        }
    }
}

/// What cannot be read, is open to all, or is no key ends the start with a remedy and without quoting it.
#[test]
fn a_key_that_cannot_sign_is_refused_at_the_start() {
    use std::os::unix::fs::PermissionsExt;
    let run = Run::new(0);
    let refused = |says: &str| {
        let mut daemon = run.start(None);
        assert_eq!(daemon.wait().code(), Some(2), "{}", daemon.said());
        let said = daemon.said();
        assert!(said.contains("certificates.key_file") && said.contains(says), "{says}: {said}");
        assert!(said.contains("openssl genpkey") && !said.contains("canary"), "{said}");
        assert!(!run.path("out.visit.ndjson").exists(), "nothing is opened");
    };
    run.sign_with("canary-canary-canary-canary-canary-canary");
    refused("holds no private key of Ed25519");
    run.sign_with(crate::scene::KEY);
    std::fs::set_permissions(run.path("signing"), std::fs::Permissions::from_mode(0o604)).expect("ours");
    refused("mode 0604");
    std::fs::remove_file(run.path("signing")).expect("ours");
    refused("cannot be read");
    for (change, says) in [
        (("certificates.ndjson\"", "out.visit.ndjson\""), "sink.path too"),
        (("path = \"@/certificates.ndjson\"", ""), "written to a file"),
        (("out.ndjson\"", "out.parquet\""), "segments of parquet"),
    ] {
        let run = Run::new(0);
        let place = run.dir.path().to_string_lossy().into_owned();
        run.change(|text| text.replace(&change.0.replace('@', &place), change.1));
        let mut daemon = run.start(None);
        assert_eq!(daemon.wait().code(), Some(2), "{}", daemon.said());
        assert!(daemon.said().contains(says), "{says}: {}", daemon.said());
    }
    // A file that is somebody else's is not written over.
    let run = Run::new(0);
    run.write("certificates.ndjson", "somebody's\n");
    let mut daemon = run.start(None);
    assert_ne!(daemon.wait().code(), Some(0), "{}", daemon.said());
    assert_eq!(run.read("certificates.ndjson"), "somebody's\n");
}

/// A trial is nobody's release: nothing is signed, and the file of the run stays as it is.
#[test]
fn a_trial_signs_nothing() {
    let run = Run::new(2);
    let test = "[[test]]\nname = \"alike\"\ninput = ['{\"person\": \"anna\", \"lot\": \"L1\", \"age\": 34, \"ward\": \"north\"}']\npeople = 12\nreleased = 12\n";
    run.change(|text| format!("{text}\n{test}"));
    let check = || {
        let output = throng(run.dir.path(), &["check", "-c", "only.toml"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("passed"), "the test was run");
    };
    let certificates = run.dir.path().join("certificates.ndjson");
    check();
    assert!(!certificates.exists(), "nothing is signed before the first run");
    run.finish();
    let signed = std::fs::read(&certificates).expect("certificates");
    check();
    assert_eq!(std::fs::read(&certificates).expect("certificates"), signed);
}
