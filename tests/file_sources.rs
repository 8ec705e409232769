//! Tests standard input, compressed files and several files.

use crate::support;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use support::binary::Place;
use support::schemas::schema;

const SCHEMA: &str = schema!("visits"; person, hundred "age");

fn rows(from: usize, to: usize) -> String {
    let mut text = String::new();
    for n in from..to {
        writeln!(text, "p{n},{}", [30, 30, 30, 40, 40][n % 5]).expect("a string");
    }
    text
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("it is compressed");
    encoder.finish().expect("it is compressed")
}

const STDIN: [(&str, &str); 2] = [("SOURCE__PATH", "-"), ("SOURCE__FORMAT", "csv")];

/// A stream has no position to resume.
#[test]
fn csv_on_standard_input_is_read() {
    let place = Place::new(SCHEMA, "");
    let one = rows(0, 120);
    let mut process = place.start(&STDIN);
    process.feed(format!("person,age\n{one}"));
    assert_eq!(process.wait().expect(0).account().consumed, 120);
    let other = [STDIN[0], STDIN[1], ("SINK__PATH", "-"), ("SINK__DEAD_LETTER_PATH", ""), ("STATE__PATH", "")];
    let mut process = place.start(&other);
    process.feed(gzip(&format!("person,age\n{one}{}", rows(120, 200))));
    let second = process.wait().expect(0);
    assert_eq!(second.account().consumed, 200);
    assert_eq!(second.stdout.iter().filter(|byte| **byte == b'\n').count() as u64, second.account().released);
    let parquet = place.run(&[STDIN[0], STDIN[1], ("SINK__PATH", "out.parquet")]).expect(2);
    assert!(parquet.stderr.contains("written line by line"), "{}", parquet.stderr);
    assert!(std::process::Command::new("mkfifo").arg(place.path("in.fifo")).status().expect("mkfifo").success());
    let named = place.run(&[("SOURCE__PATH", "in.fifo"), ("SOURCE__FORMAT", "csv")]).expect(1);
    assert!(named.stderr.contains("send the data of a pipe to standard input"), "{}", named.stderr);
}

#[test]
fn silent_pipe_does_not_block_shutdown() {
    let place = Place::new(SCHEMA, "");
    for begin in [b"".as_slice(), b"per", &gzip("person,age\n")[..10]] {
        let mut process = place.start(&STDIN);
        process.feed(begin);
        std::thread::sleep(std::time::Duration::from_secs(2));
        process.terminate();
        assert!(process.ends_within(std::time::Duration::from_secs(20)), "no header has come: {begin:?}");
        assert!(process.wait().expect(0).stderr.contains("standard input may hold further records"));
    }
    let parquet = place.run(&[("SOURCE__PATH", "-"), ("SOURCE__FORMAT", "parquet")]).expect(2);
    assert!(parquet.stderr.contains("parquet cannot be read from standard input"), "{}", parquet.stderr);
}

/// 64 GiB of one letter are one oversized record.
#[test]
fn decompression_bomb_does_not_block_shutdown() {
    let place = Place::new(SCHEMA, "");
    let block = zstd::stream::encode_all(&vec![b'x'; 64 << 20][..], 1).expect("it is compressed");
    let start = format!("person,age\n{}\"", rows(0, 60));
    let mut content = zstd::stream::encode_all(start.as_bytes(), 1).expect("it is compressed");
    (0..1024).for_each(|_| content.extend(&block));
    place.write("in.csv.zst", content);
    let mut process = place.start(&[("SOURCE__PATH", "in.csv.zst"), ("SOURCE__FORMAT", "csv")]);
    std::thread::sleep(std::time::Duration::from_secs(3));
    process.terminate();
    assert!(process.ends_within(std::time::Duration::from_secs(20)), "it is passed over to its end");
    assert!(process.wait().expect(1).stderr.contains("no output was replaced"));
    assert!(!place.path("out.ndjson").exists());
}

/// Without a subject attribute, a file read five times would be a crowd of five.
#[test]
fn input_file_with_two_names_is_refused() {
    let place = Place::new(schema!("visits"; hundred "age"), "");
    fs::create_dir(place.path("days")).expect("a folder");
    place.write("days/1.csv", "age\n30\n");
    for link in 2..6 {
        std::os::unix::fs::symlink("1.csv", place.path(&format!("days/{link}.csv"))).expect("a link");
    }
    let refused = place.run(&[("SOURCE__PATH", "days"), ("SOURCE__FORMAT", "csv")]).expect(1);
    assert!(refused.stderr.contains("days/2.csv and days/1.csv are two names of one file"), "{}", refused.stderr);
    assert!(place.read("out.ndjson").is_empty());
    for link in 2..6 {
        fs::remove_file(place.path(&format!("days/{link}.csv"))).expect("a link");
    }
    std::os::unix::fs::symlink(".", place.path("days/loop")).expect("a link");
    // Each source needs a separate state.
    let days = [("SOURCE__PATH", "days/**/*.csv"), ("SOURCE__FORMAT", "csv"), ("STATE__PATH", "state-of-days")];
    let once = place.run(&days);
    assert_eq!((once.account().consumed, once.account().released), (1, 0), "{}", once.stderr);
}

/// A second run would read the release of the first.
#[test]
fn output_reached_by_a_source_link_is_refused() {
    let place = Place::new(SCHEMA, "");
    fs::create_dir(place.path("days")).expect("a folder");
    fs::create_dir(place.path("real")).expect("a folder");
    let line = |n: usize| format!("{{\"person\":\"p{n}\",\"age\":30}}\n");
    place.write("real/in.ndjson", (0..20).map(line).collect::<String>());
    std::os::unix::fs::symlink("../real", place.path("days/link")).expect("a link");
    let to = |source: &'static str, sink: &'static str| [("SOURCE__PATH", source), ("SINK__PATH", sink)];
    let check = |overrides: &[(&str, &str)]| {
        let mut command = crate::support::binary::throng();
        command.args(["check", "-c", "throng.toml"]);
        place.surround(&mut command, overrides);
        support::binary::Process::spawn(command, place.port).wait()
    };
    let refused = |overrides: &[(&str, &str)]| {
        for outcome in [check(overrides), place.run(overrides)] {
            let said = outcome.expect(2).stderr;
            assert!(said.contains("the sink would overwrite the source"), "{said}");
        }
    };
    for source in ["days/*/*.ndjson", "days/link/*.ndjson", "days/l*/*"] {
        refused(&to(source, "real/out.ndjson"));
    }
    place.run(&to("days/*/*.ndjson", "real/out.json")).expect(0);
    place.run(&[("SOURCE__PATH", "days/*/*.ndjson"), ("STATE__PATH", "")]).expect(0);
    place.write("days/in.ndjson", line(0));
    std::os::unix::fs::symlink("../out.ndjson", place.path("days/old.ndjson")).expect("a link");
    refused(&to("days/*.ndjson", "out.ndjson"));
    refused(&[("SOURCE__PATH", "days"), ("SOURCE__FORMAT", "json")]);
}

#[test]
fn several_input_files_are_one_source() {
    let place = Place::new(SCHEMA, "");
    fs::create_dir(place.path("days")).expect("a folder");
    place.write("days/1.csv", format!("person,age\n{}", rows(0, 60)));
    place.write("days/2.csv.gz", gzip(&format!("person,age\n{}", rows(60, 130))));
    let days = [("SOURCE__PATH", "days"), ("SOURCE__FORMAT", "csv")];
    let first = place.run(&days).expect(0);
    assert_eq!(first.account().consumed, 130);
    assert!(first.stderr.contains("days/2.csv.gz"), "the log says which records are whose");
    place.write("days/3.csv", "age,person\n30,p1\n");
    assert_eq!(place.run(&days).expect(0).account().consumed, 131);
    let written = place.read("out.ndjson");
    place.write("days/4.csv", format!("person,years\n{}", rows(0, 9)));
    let other = place.run(&days).expect(1);
    assert!(other.stderr.contains("days/4.csv"), "a file with other columns is named: {}", other.stderr);
    assert_eq!(place.read("out.ndjson"), written, "nothing is replaced");
    let clash = place.run(&[("SOURCE__PATH", "*.ndjson"), ("STATE__PATH", "other")]).expect(2);
    assert!(clash.stderr.contains("the sink would overwrite the source"), "{}", clash.stderr);
}

/// A sender with 250 records per record of the others does not end the batches, also under many spellings or unreadable
/// names.
#[test]
fn flooding_sender_does_not_close_batches() {
    const SPELLINGS: [&str; 5] = ["7", "07", "7.0", "7e0", " 7"];
    let names = SCHEMA.replacen("type = \"string\"", "type = \"integer\"", 1);
    // Rejected records close a batch only in much larger numbers.
    for (flood, least) in [(&SPELLINGS[..1], 380), (&SPELLINGS[..], 380), (&["a", "b", "c", "d"][..], 200)] {
        let place = Place::new(&names, "");
        let mut text = String::from("person,age\n");
        let mut spellings = flood.iter().cycle();
        for person in 0..400 {
            writeln!(text, "{},{}", 1000 + person, [30, 40][person % 2]).expect("a string");
            for spelling in spellings.by_ref().take(250) {
                writeln!(text, "{spelling},99").expect("a string");
            }
        }
        fs::write(place.path("in.csv"), text).expect("it is written");
        let settings = [("SOURCE__PATH", "in.csv"), ("BATCH__MAX_RECORDS", "1000")];
        let account = place.run(&settings).expect(0).account();
        assert_eq!(account.consumed, 400 * 251);
        let accounted = account.released + account.suppressed + account.dead_lettered;
        assert_eq!(account.consumed, accounted, "records are conserved");
        let honest = place.lines("out.ndjson").iter().filter(|line| !line.contains("99")).count();
        assert!(honest >= least, "{honest} of 400 lines of people who send once, {account:?}");
    }
}
