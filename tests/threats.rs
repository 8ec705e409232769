//! Threats 1 to 4, 10, 13 to 17 and 19 to 21, each as an attack (`docs/internals/threats.md`).

#![allow(clippy::format_collect, reason = "short texts of a test")]

use crate::support;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::time::Duration;
use support::binary::Place;
use support::canaries::hex;
use support::invariants::{Line, check_once};
use support::schemas::{AGE, CITY, ILLNESS, MOOD, PERSON};
use support::stand::{Fault, SECRET, Stand, record};
use throng::config::FixedSettings;
use throng::daemon::engine::BatchError;
use throng::daemon::state::records::Flush;

const K3: &str = "[privacy]\nk = 3\n";
const NOW: i64 = 1_700_000_000_000;

fn schema(attributes: &[&str]) -> String {
    format!("name = \"threats\"\n{}", attributes.concat())
}

fn texts(stand: &Stand) -> Vec<&str> {
    stand.sink.lines.iter().map(|l| l.text.as_str()).collect()
}

fn people(from: usize, count: usize, fields: &str) -> Vec<Option<Vec<u8>>> {
    (from..from + count).map(|i| record(format!(r#"{{"person":"p{i}",{fields}}}"#))).collect()
}

#[test]
fn threat_01_many_records_of_one_subject_are_no_crowd() {
    let mut stand = Stand::new(&schema(&[PERSON, AGE, CITY]), K3);
    let same = vec![record(r#"{"person":"p1","age":41,"city":"Zug"}"#); 1000];
    stand.offer(&same, Flush::No, NOW, Fault::Nothing);
    // The batch is a crowd, but does not include this record.
    let mut mixed = same.clone();
    mixed.extend(people(10, 5, r#""age":90,"city":"Bern""#));
    stand.offer(&mixed, Flush::No, NOW + 1, Fault::Nothing);
    for batch in 0..5 {
        stand.offer(&mixed, Flush::No, NOW + 2 + batch, Fault::Nothing);
    }
    assert_eq!(stand.sink.lines.iter().filter(|l| l.text.contains("Zug") || l.text.contains("41")).count(), 0);
    assert_eq!(stand.sink.lines.iter().filter(|l| l.text.contains("Bern")).count(), 6 * 5);
    let nobody = vec![record(r#"{"person":null,"age":77,"city":"Chur"}"#); 1000];
    let mut with_crowd = nobody;
    with_crowd.extend(people(10, 5, r#""age":90,"city":"Bern""#));
    stand.offer(&with_crowd, Flush::EndOfStream, NOW + 9, Fault::Nothing);
    assert!(!texts(&stand).iter().any(|t| t.contains("Chur") || t.contains("77")));
    // The thousand records are one member of every crowd.
    let mut three = same;
    three.extend(people(50, 2, r#""age":41,"city":"Zug""#));
    stand.offer(&three, Flush::No, NOW + 10, Fault::Nothing);
    assert_eq!(stand.sink.lines.iter().filter(|l| l.text.contains("Zug")).count(), 1002);
    stand.check_conservation().expect("conservation");
}

#[test]
fn threat_02_output_order_is_independent_of_input_order() {
    let two_groups = "[privacy]\nk = 3\n[[group]]\nname = \"a\"\nattributes = [\"age\"]\n\
                      [[group]]\nname = \"b\"\nattributes = [\"city\"]\n";
    let mut records = Vec::new();
    for (age, city) in [(30, "Zug"), (31, "Bern"), (70, "Chur"), (30, "Bern"), (70, "Zug")] {
        records.extend(people(records.len(), 7, &format!(r#""age":{age},"city":"{city}""#)));
    }
    let leave = |records: &[Option<Vec<u8>>]| {
        let mut stand = Stand::new(&schema(&[PERSON, AGE, CITY]), two_groups);
        stand.offer(records, Flush::EndOfStream, NOW, Fault::Nothing);
        stand.sink.lines.iter().map(|l| (l.group, l.text.clone())).collect::<Vec<_>>()
    };
    let straight = leave(&records);
    assert!(straight.len() > 30, "{} lines", straight.len());
    assert!(straight.is_sorted(), "group after group, sorted by their bytes");
    let mut reversed = records.clone();
    reversed.reverse();
    assert_eq!(leave(&reversed), straight);
    let shuffled: Vec<_> = (0..records.len()).map(|i| records[i * 16 % records.len()].clone()).collect();
    assert_eq!(shuffled.iter().collect::<BTreeSet<_>>().len(), records.len(), "a permutation");
    assert_eq!(leave(&shuffled), straight);
}

#[test]
fn threat_02_counting_forces_no_pair_of_cells() {
    // All subjects are calm, so the only subject of Zug is known to be calm.
    let groups = "[privacy]\nk = 3\n[[group]]\nname = \"a\"\nattributes = [\"city\"]\n\
                  [[group]]\nname = \"b\"\nattributes = [\"mood\"]\n";
    let mut stand = Stand::new(&schema(&[PERSON, CITY, MOOD]), groups);
    let mut first = people(0, 5, r#""city":"Zug","mood":"calm""#);
    first.extend(people(10, 5, r#""city":"Bern","mood":"tired""#));
    stand.offer(&first, Flush::No, NOW, Fault::Nothing);
    assert_eq!(stand.sink.lines.len(), 20, "crowds on both sides");
    let mut second = people(20, 9, r#""city":"Bern","mood":"calm""#);
    second.extend(people(40, 1, r#""city":"Zug","mood":"calm""#));
    stand.offer(&second, Flush::No, NOW + 1, Fault::Nothing);
    let of_second: Vec<&Line> = stand.sink.lines.iter().filter(|l| l.batch == 2).collect();
    let zug = of_second.iter().any(|l| l.text.contains("Zug"));
    let calm = of_second.iter().any(|l| l.text.contains("calm"));
    assert!(!(zug && calm), "one person of Zug among nothing but calm people");
    assert!(of_second.len() >= 9, "the rest leaves: {of_second:?}");
    assert!(stand.telemetry.status().totals.suppressed <= 1);
    stand.promise.check_all(&stand.sink.lines).expect("no pair is forced");
}

#[test]
fn threat_02_counting_forces_no_pair_of_generalized_labels() {
    // Eight of ten subjects are in their thirties, and three live in Zug. At least one subject is in both sets, and
    // exactly one is.
    let groups = "[privacy]\nk = 3\n[[group]]\nname = \"a\"\nattributes = [\"age\"]\n\
                  [[group]]\nname = \"b\"\nattributes = [\"city\"]\n";
    let mut stand = Stand::new(&schema(&[PERSON, AGE, CITY]), groups);
    let ages = [30, 31, 32, 33, 34, 35, 36, 37, 70, 71];
    let mut first = Vec::new();
    for (age, city) in ages.iter().zip(["Zug", "Bern"].iter().cycle()) {
        first.extend(people(first.len(), 3, &format!(r#""age":{age},"city":"{city}""#)));
    }
    stand.offer(&first, Flush::No, NOW, Fault::Nothing);
    assert_eq!(stand.sink.lines.len(), 60, "everything has support from here on");
    let mut second = Vec::new();
    for (i, age) in ages.iter().enumerate() {
        let city = if [0, 8, 9].contains(&i) { "Zug" } else { "Bern" };
        second.extend(people(100 + i, 1, &format!(r#""age":{age},"city":"{city}""#)));
    }
    stand.offer(&second, Flush::No, NOW + 1, Fault::Nothing);
    let carriers = |group: usize, wanted: &dyn Fn(&str) -> bool| -> BTreeSet<(u16, i32, i64)> {
        let lines = stand.sink.lines.iter().filter(|l| l.batch == 2 && l.group == group && wanted(&l.text));
        lines.map(|l| l.source).collect()
    };
    let records = carriers(0, &|_| true).union(&carriers(1, &|_| true)).count();
    let thirties = carriers(0, &|text| text.starts_with(r#"{"age":3"#) || text.contains("30-39"));
    let zug = carriers(1, &|text| text.contains("Zug"));
    let both = thirties.intersection(&zug).count();
    assert!(
        thirties.len() + zug.len() <= records || both >= 3,
        "{} of {records} in their thirties, {} of Zug: somebody is both, and {both} people are",
        thirties.len(),
        zug.len(),
    );
    assert!(stand.sink.lines.iter().filter(|l| l.batch == 2).count() >= 12, "most of it leaves");
    stand.check_conservation().expect("conservation");
}

#[test]
fn threats_03_and_20_output_does_not_depend_on_subject_names() {
    // The output contains no token of a subject.
    let stream = |name: fn(usize) -> String| {
        let mut stand = Stand::new(&schema(&[PERSON, AGE, CITY]), K3);
        for batch in 0..4 {
            let records: Vec<_> = (0..40)
                .map(|i| {
                    let (person, age) = (name(i * 7 % 13), 20 + (i * batch) % 30);
                    record(format!(r#"{{"person":"{person}","age":{age},"city":"c{}"}}"#, i % 5))
                })
                .collect();
            stand.offer(&records, Flush::No, NOW + i64::try_from(batch).expect("small"), Fault::Nothing);
        }
        stand.sink.lines.iter().map(|l| l.text.clone()).collect::<Vec<_>>()
    };
    let one = stream(|i| format!("person {i}"));
    let other = stream(|i| format!("{:x}", 0xfeed_beef_u64 >> i));
    assert!(one.len() > 50, "{} lines", one.len());
    assert_eq!(one, other);
    assert!(!one.iter().any(|t| t.contains("person")));
}

#[test]
fn threat_04_patterns_of_missing_values_count_as_values() {
    // Two subjects have each form of a missing value: none is released.
    let ways = [r#""city":null,"#, "", r#""city":"","#, r#""city":"*","#, r#""city":"\\*","#, r#""city":"null","#];
    let mut stand = Stand::new(&schema(&[PERSON, CITY, MOOD]), K3);
    let mut records = Vec::new();
    for way in ways {
        records.extend(people(records.len(), 2, &format!(r#"{way}"mood":"calm""#)));
    }
    stand.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    assert_eq!(texts(&stand), [r#"{"city":"*","mood":"calm"}"#; 12], "the pattern of every record is suppressed");
    let mut stand = Stand::new(&schema(&[PERSON, CITY, MOOD]), K3);
    let mut records = Vec::new();
    for way in ways {
        records.extend(people(records.len(), 3, &format!(r#"{way}"mood":"calm""#)));
    }
    stand.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    let left: BTreeSet<&str> = texts(&stand).into_iter().collect();
    let expected = BTreeSet::from([
        r#"{"city":null,"mood":"calm"}"#,
        r#"{"mood":"calm"}"#,
        r#"{"city":"","mood":"calm"}"#,
        r#"{"city":"\\*","mood":"calm"}"#,
        r#"{"city":"\\\\*","mood":"calm"}"#,
        r#"{"city":"null","mood":"calm"}"#,
    ]);
    assert_eq!(left, expected);
}

#[test]
fn threat_10_classes_do_not_depend_on_sensitive_values() {
    let stream = |illness: fn(usize) -> usize| {
        let mut stand = Stand::new(&schema(&[PERSON, AGE, CITY, ILLNESS]), K3);
        for batch in 0..3 {
            let records: Vec<_> = (0..40)
                .map(|i| {
                    let (age, city) = (20 + i * 3 % 40, i % 4);
                    record(format!(
                        r#"{{"person":"p{}","age":{age},"city":"c{city}","illness":"i{}"}}"#,
                        i % 17,
                        illness(i)
                    ))
                })
                .collect();
            stand.offer(&records, Flush::No, NOW + batch, Fault::Nothing);
        }
        let mut quasi: Vec<(i64, String)> = stand
            .sink
            .lines
            .iter()
            .map(|l| (l.source.2, l.text.split(r#","illness""#).next().expect("a part").to_owned()))
            .collect();
        quasi.sort();
        quasi
    };
    let one = stream(|i| i % 2);
    assert!(one.len() > 60, "{} lines", one.len());
    assert_eq!(one, stream(|i| i % 7));
    assert_eq!(one, stream(|i| i));
    assert_eq!(one, stream(|_| 0));
}

#[test]
fn threat_13_dictionary_attack_finds_no_digest() {
    let place = Place::new(&schema(&[PERSON, CITY]), "");
    let candidates: Vec<String> = (0..3000).map(|i| format!("+4179{:07}", i * 31)).collect();
    let source: String =
        candidates[..60].iter().map(|p| format!("{{\"person\":\"{p}\",\"city\":\"Zug\"}}\n")).collect();
    place.write("in.ndjson", &source);
    let mut command = place.command(&[], &["--lineage", "lineage.ndjson"]);
    let out = command.output().expect("runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let lineage = place.lines("lineage.ndjson");
    assert_eq!(lineage.len(), 60);
    let digest = |line: &String| {
        let entry: serde_json::Value = serde_json::from_str(line).expect("an entry");
        entry["subject"].as_str().expect("a digest").to_owned()
    };
    let digests: BTreeSet<String> = lineage.iter().map(digest).collect();
    assert_eq!(digests.len(), 60, "a digest a subject");
    // The attacker tries every unkeyed hash of every candidate, whole or in quotes, from either end, and keys that are
    // easy to guess.
    let hmac = |key: &[u8], text: &str| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any key");
        mac.update(format!("throng subject\0{text}").as_bytes());
        hex(&mac.finalize().into_bytes())
    };
    for candidate in &candidates {
        for text in [candidate.clone(), format!("\"{candidate}\""), format!("throng subject\0\"{candidate}\"")] {
            let sha = hex(&Sha256::digest(&text));
            for guess in [sha, hmac(&[0; 32], &text), hmac(b"", &text), hmac(b"throng", &text)] {
                assert!(!digests.contains(&guess[..16]) && !digests.contains(&guess[guess.len() - 16..]));
            }
        }
    }
    let other = Place::new(&schema(&[PERSON, CITY]), "");
    other.write("in.ndjson", &source);
    other.write("secret", "another secret that is as long as it must be");
    assert!(other.command(&[], &["--lineage", "lineage.ndjson"]).output().expect("runs").status.success());
    let others: BTreeSet<String> = other.lines("lineage.ndjson").iter().map(digest).collect();
    assert_eq!((others.len(), others.intersection(&digests).count()), (60, 0));
}

const TWO: &str = "{\"person\":\"p1\",\"city\":\"Zug\"}\n{\"person\":\"p2\",\"city\":\"Zug\"}\n";
const THIRD: &str = "{\"person\":\"p3\",\"city\":\"Zug\"}\n";

#[test]
fn threat_14_end_of_file_releases_no_small_class() {
    let place = Place::new(&schema(&[PERSON, CITY]), "");
    place.write("in.ndjson", TWO);
    let account = place.run(&[]).expect(1).account();
    assert_eq!((account.consumed, account.suppressed, place.lines("out.ndjson").len()), (2, 2, 0));
    // A third subject completes the crowd.
    place.write("in.ndjson", format!("{TWO}{TWO}"));
    assert_eq!(place.run(&[]).expect(1).account().suppressed, 4);
    place.write("in.ndjson", format!("{TWO}{THIRD}"));
    let account = place.run(&[]).expect(0).account();
    assert_eq!((account.released, account.suppressed, place.lines("out.ndjson").len()), (3, 0, 3));
}

#[test]
fn threat_14_signal_releases_no_small_class() {
    for (hold, kill) in [("0", false), ("3", false), ("3", true)] {
        let place = Place::new(&schema(&[PERSON, CITY]), "");
        let overrides = [("SOURCE__PATH", "-"), ("PRIVACY__MAX_HOLD_BATCHES", hold), ("BATCH__MAX_WAIT", "50ms")];
        let mut process = place.start(&overrides);
        process.feed(TWO);
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(place.lines("out.ndjson").len(), 0, "below min_subjects nothing is closed");
        if kill {
            process.kill();
            assert_eq!(place.lines("out.ndjson").len(), 0);
            continue;
        }
        process.terminate();
        assert!(process.ends_within(Duration::from_secs(10)), "a silent pipe does not keep it from ending");
        let account = process.wait().expect(0).account();
        assert_eq!((account.consumed, account.released, account.suppressed, account.held), (2, 0, 2, 0));
        assert_eq!(place.lines("out.ndjson").len(), 0);
    }
}

#[test]
fn threat_14_quiet_stream_is_flushed_by_a_timer() {
    let place = Place::new(&schema(&[PERSON, CITY]), "");
    let overrides = [("SOURCE__PATH", "-"), ("BATCH__MAX_WAIT", "50ms"), ("BATCH__MAX_AGE", "400ms")];
    let mut process = place.start(&overrides);
    process.feed(TWO);
    let status = process.until("the two are settled", |s| s["totals"]["suppressed"] == 2);
    assert_eq!(status["suppressed"]["quiet"], 2);
    process.feed(format!("{TWO}{THIRD}"));
    process.until("three are released", |s| s["totals"]["released"] == 3);
    assert_eq!(process.wait().expect(0).account().released, 3);
}

#[test]
fn threat_14_one_frequent_sender_does_not_close_a_batch() {
    let place = Place::new(&schema(&[PERSON, CITY]), "");
    let overrides = [("SOURCE__PATH", "-"), ("BATCH__MAX_WAIT", "50ms"), ("BATCH__MAX_AGE", "1h")];
    let mut process = place.start(&overrides);
    process.feed("{\"person\":\"p1\",\"city\":\"Zug\"}\n".repeat(10));
    // A batch closed by time would suppress all ten as quiet.
    std::thread::sleep(Duration::from_millis(500));
    process.feed(format!("{TWO}{THIRD}"));
    process.until("all of them leave together", |s| s["totals"]["released"] == 13);
    assert_eq!(process.wait().expect(0).account().suppressed, 0);
}

#[test]
fn threat_14_held_records_are_flushed_in_a_quiet_stream() {
    let place = Place::new(&schema(&[PERSON, CITY]), "");
    let overrides = [
        ("SOURCE__PATH", "-"),
        ("PRIVACY__MAX_HOLD_BATCHES", "9"),
        ("BATCH__MAX_WAIT", "50ms"),
        ("BATCH__MAX_AGE", "600ms"),
    ];
    let mut process = place.start(&overrides);
    // Three of Zug are released, and one of Bern is held.
    process.feed(format!("{TWO}{THIRD}{{\"person\":\"p4\",\"city\":\"Bern\"}}\n"));
    process.until("one is held", |s| s["held"] == 1 && s["totals"]["released"] == 3);
    let status = process.until("it is settled", |s| s["held"] == 0);
    assert_eq!(status["totals"]["suppressed"], 1);
    let account = process.wait().expect(0).account();
    assert_eq!((account.released, account.suppressed), (3, 1));
}

#[test]
fn threat_14_held_records_move_with_their_partition_once() {
    let settings = "[privacy]\nk = 3\nmax_hold_batches = 9\n";
    let mut stand = Stand::of_a_topic(&schema(&[PERSON, CITY]), settings, FixedSettings::default());
    let mut records = people(0, 3, r#""city":"Zug""#);
    records.extend(people(10, 2, r#""city":"Bern""#));
    stand.offer(&records, Flush::No, NOW, Fault::Nothing);
    assert_eq!((stand.sink.lines.len(), stand.engine().unreleased_records()), (3, 2), "two of Bern wait");
    stand.move_on();
    assert_eq!((stand.sink.lines.len(), stand.engine().unreleased_records()), (3, 2));
    assert_eq!(stand.engine().progress().positions.get(&(0, 0)), Some(&5));
    let mut records = people(20, 3, r#""city":"Zug""#);
    records.extend(people(30, 2, r#""city":"Bern""#));
    stand.offer(&records, Flush::No, NOW + 1, Fault::Nothing);
    assert_eq!(
        (stand.sink.lines.len(), stand.engine().unreleased_records()),
        (3 + 3 + 4, 0),
        "four of Bern leave together"
    );
    stand.move_on();
    assert_eq!(stand.engine().unreleased_records(), 0);
    let mut records = people(40, 3, r#""city":"Zug""#);
    records.extend(people(50, 2, r#""city":"Chur""#));
    stand.offer(&records, Flush::No, NOW + 2, Fault::Nothing);
    let held = stand.engine().unreleased_records();
    assert!(held > 0);
    stand.engine().drop_partitions(&[(0, 0)].into());
    assert_eq!((stand.engine().unreleased_records(), stand.engine().progress().totals.held()), (0, Some(0)));
    stand.settle(Flush::Shutdown, NOW + 3);
    assert_eq!(stand.sink.lines.len(), 13);
    stand.move_on();
    assert_eq!(stand.engine().unreleased_records(), held);
    stand.promise.check_all(&stand.sink.lines).expect("the invariant");
}

#[test]
fn threat_15_retry_has_the_bytes_of_the_first_attempt() {
    // Attempts are repeated under every condition, including a dictionary too small for the stream.
    let unlimited = FixedSettings::default();
    for (settings, tuning) in [
        (K3, unlimited),
        ("[privacy]\nk = 3\nmax_hold_batches = 2\n[plan]\ninterval = \"1s\"\n", unlimited),
        ("[privacy]\nk = 3\nmin_tenure = 1\nrelease_window = \"3s\"\n", unlimited),
        (
            "[privacy]\nk = 3\n[batch]\nmax_records = 30\n[plan]\nwindow_records = 25\n",
            FixedSettings { max_dictionary_values: 110, ..unlimited },
        ),
    ] {
        let mut stand = Stand::tuned(&schema(&[PERSON, AGE, CITY, ILLNESS]), settings, SECRET, tuning);
        for batch in 0..12_usize {
            let records: Vec<_> = (0..30)
                .map(|i| {
                    let n = i * 5 + batch * 11;
                    record(format!(
                        r#"{{"person":"p{}","age":{},"city":"c{}","illness":"i{}"}}"#,
                        n % 19,
                        20 + n % 23,
                        if i % 2 == 0 { n % 3 } else { 1000 * batch + i },
                        n % 4
                    ))
                })
                .collect();
            let fault = [Fault::Abort, Fault::AbortAndDie, Fault::LeaveAndDie][batch % 3];
            stand.offer(&records, Flush::No, NOW + 600 * i64::try_from(batch).expect("small"), fault);
        }
        assert!(stand.sink.lines.len() > 150, "{} lines", stand.sink.lines.len());
        check_once(&stand.sink.lines).expect("no record under two generalizations");
        stand.promise.check_all(&stand.sink.lines).expect("the invariant");
        stand.check_conservation().expect("conservation");
    }
}

/// No subject may have tenure any longer.
#[test]
fn threat_15_late_retry_requires_a_current_crowd() {
    let settings = "[privacy]\nk = 3\nmin_tenure = 1\nrelease_window = \"10s\"\n";
    let late = |wait_ms: i64| {
        let mut stand = Stand::new(&schema(&[PERSON, AGE, CITY]), settings);
        stand.offer(&people(0, 5, r#""age":41,"city":"Zug""#), Flush::No, NOW, Fault::Nothing);
        let records = people(0, 5, r#""age":41,"city":"Zug""#);
        stand.sink.abort_next = true;
        let aborted = stand.process(&records, 5, Flush::No, None, NOW + 1000).expect_err("the sink aborts");
        let BatchError::Aborted { intent, .. } = aborted else { panic!("{aborted}") };
        stand.process(&records, 5, Flush::No, Some(&intent), NOW + 1000 + wait_ms).expect("the second attempt");
        let lines = stand.sink.lines.clone();
        assert_eq!(stand.sink.committed.1, if wait_ms > 10_000 { NOW + 1000 + wait_ms } else { NOW + 1000 });
        stand.promise.check_all(&lines).expect("crowds at the commit");
        lines.iter().filter(|line| line.batch == 2 && line.text.contains("Zug")).count()
    };
    assert_eq!(late(500), 5, "an early attempt is the first one's bytes");
    assert_eq!(late(20_000), 0, "nobody has been seen for a window");
}

#[test]
fn threat_16_tombstones_are_dropped_and_counted() {
    let place = Place::new(&schema(&[PERSON, CITY]), "");
    place.write("in.ndjson", format!("null\n{TWO}null\n{THIRD}  null  \n"));
    let account = place.run(&[]).expect(0).account();
    assert_eq!((account.consumed, account.released, account.dropped, account.dead_lettered), (6, 3, 3, 0));
    assert_eq!(place.lines("out.ndjson").len(), 3);
    assert!(!String::from_utf8_lossy(&place.read("out.ndjson")).contains("null"));
}

#[test]
fn threat_17_union_of_two_instances_satisfies_the_invariant() {
    // Each batch of the two instances has separate crowds.
    let settings = "[privacy]\nk = 3\nmax_hold_batches = 1\n\
                    [[group]]\nname = \"a\"\nattributes = [\"age\"]\n[[group]]\nname = \"b\"\nattributes = [\"city\"]\n";
    let mut instances = [0, 1].map(|partition| {
        let mut stand = Stand::new(&schema(&[PERSON, AGE, CITY]), settings);
        stand.partition = partition;
        stand
    });
    let mut union: Vec<Line> = Vec::new();
    for batch in 0..20_usize {
        let stand = &mut instances[batch * 7 / 3 % 2];
        let records: Vec<_> = (0..12)
            .map(|i| {
                let n = i * 3 + batch * 5;
                record(format!(r#"{{"person":"p{}","age":{},"city":"c{}"}}"#, n % 11, 20 + n * n % 37, n % 4))
            })
            .collect();
        let known = stand.sink.lines.len();
        stand.offer(&records, Flush::No, NOW + 1500 * i64::try_from(batch).expect("small"), Fault::Nothing);
        let new = stand.sink.lines[known..].iter().map(|l| Line { batch: batch as u64 + 1, ..l.clone() });
        union.extend(new);
        // An equal secret identifies subjects across the instances.
        stand.promise.check_batch(&union, batch as u64 + 1).expect("the invariant on the union");
    }
    let by_partition = |p: i32| union.iter().filter(|l| l.source.1 == p).count();
    assert!(by_partition(0) > 20 && by_partition(1) > 20, "{} and {}", by_partition(0), by_partition(1));
}

#[test]
fn threat_19_spellings_of_one_value_are_merged() {
    let temperature = "[[attribute]]\nname = \"temperature\"\ntype = \"float\"\nround = 0.5\n";
    let seen = "[[attribute]]\nname = \"seen\"\ntype = \"timestamp\"\nround = \"hour\"\n";
    let mut stand = Stand::new(&schema(&[PERSON, temperature, seen]), K3);
    let spellings = [
        ("36.51", r#""2021-05-24T10:00:00Z""#),
        ("36.499999999999", r#""2021-05-24T12:00:01+02:00""#),
        (r#""36.5""#, r#""2021-05-24T10:59:59.999Z""#),
        ("3.65e1", r#""2021-05-24 10:00""#),
        ("36.7", r#""2021-05-24T05:30:00-05:00""#),
    ];
    let records: Vec<_> = (0..)
        .zip(spellings)
        .map(|(i, (t, s))| record(format!(r#"{{"person":"p{i}","temperature":{t},"seen":{s}}}"#)))
        .collect();
    stand.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    assert_eq!(texts(&stand), [r#"{"temperature":36.5,"seen":"2021-05-24T10:00:00Z"}"#; 5]);
    let mut stand = Stand::new(&schema(&[PERSON, temperature]), K3);
    let records: Vec<_> = ["0", "-0.0", "0.1", "-0.2", "0e5"]
        .iter()
        .enumerate()
        .map(|(i, t)| record(format!(r#"{{"person":"p{i}","temperature":{t}}}"#)))
        .collect();
    stand.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    assert_eq!(texts(&stand), [r#"{"temperature":0}"#; 5]);
}

#[test]
fn threat_19_spellings_of_a_numeric_subject_are_one_subject() {
    let mut stand = Stand::new(&schema(&[PERSON, AGE]), K3);
    let spelled = ["7", "7.0", "7.00", "70e-1", "0.7e1", "7E+0", "\"7\""];
    let records: Vec<_> = spelled.iter().map(|seven| record(format!(r#"{{"person":{seven},"age":41}}"#))).collect();
    let mut crowd = people(0, 3, r#""age":90"#);
    crowd.extend(records);
    stand.offer(&crowd, Flush::EndOfStream, NOW, Fault::Nothing);
    assert!(!texts(&stand).iter().any(|text| text.contains("41")), "one person is no crowd");
    let beyond = ["1e99999999999999999999", "10e99999999999999999998", "0.1e100000000000000000000"];
    let records: Vec<_> = beyond.iter().map(|huge| record(format!(r#"{{"person":{huge},"age":42}}"#))).collect();
    stand.offer(&records, Flush::EndOfStream, NOW + 1, Fault::Nothing);
    assert_eq!((stand.sink.rejected.len(), stand.sink.lines.len()), (3, 3));
}

/// A process killed after its commit counts no support.
#[test]
fn watching_after_a_crash_releases_nothing() {
    let mut stand = Stand::watching(&schema(&[PERSON, AGE, CITY]), K3);
    for batch in 0..4 {
        let fault = if batch % 2 == 0 { Fault::LeaveAndDie } else { Fault::AbortAndDie };
        stand.offer(&people(0, 5, r#""age":41,"city":"Zug""#), Flush::No, NOW + batch, fault);
    }
    assert_eq!(stand.sink.lines.len(), 0);
    assert_eq!(stand.engine().progress().sequence, 4);
    stand.check_conservation().expect("every record is accounted for");
}

#[test]
fn threat_21_unknown_fields_and_values_are_not_released() {
    let tree = "[[attribute]]\nname = \"kind\"\ntype = \"string\"\n[attribute.hierarchy]\nkind = \"tree\"\ntree = [\"a\", \"b\"]\n";
    let dead = "[[attribute]]\nname = \"ghost\"\ntype = \"string\"\npointer = \"/no/such/path\"\n";
    let mut stand = Stand::new(&schema(&[PERSON, tree, dead, AGE]), K3);
    let records: Vec<_> = people(0, 6, r#""kind":"uncovered","age":150,"colour":"blue","meta":{"deep":"green"}"#)
        .into_iter()
        .chain(people(6, 3, r#""kind":"a","age":30"#))
        .collect();
    stand.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    // The value of six subjects is not in the attribute's domain.
    let all = texts(&stand).concat();
    for word in ["uncovered", "150", "blue", "green", "colour", "meta", "deep"] {
        assert!(!all.contains(word), "{word}: {all}");
    }
    // The path that matches no field is absent in every record.
    let lines = [vec![r#"{"kind":"*","age":"*"}"#; 6], vec![r#"{"kind":"a","age":30}"#; 3]].concat();
    assert_eq!(texts(&stand), lines);
    let last = stand.telemetry.status().last.expect("a batch");
    assert_eq!((last.unknown_cells, last.uncovered_cells), (12, 12));
}
