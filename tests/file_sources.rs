//! Where records come from that is not one plain file: standard input, compressed files, several files, and what is told of each.

mod support;

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

/// A pipe is read as CSV, compressed or not. Given again from its beginning, it goes on behind what has left, and that is said.
#[test]
fn csv_comes_through_a_pipe() {
    let place = Place::new(SCHEMA, "");
    let one = rows(0, 120);
    let mut process = place.start(&STDIN);
    process.feed(format!("person,age\n{one}"));
    let first = process.wait().expect(0);
    assert_eq!(first.account().consumed, 120);
    assert!(!first.stderr.contains("cannot be sought"));
    let mut process = place.start(&STDIN);
    process.feed(gzip(&format!("person,age\n{one}{}", rows(120, 200))));
    let second = process.wait().expect(0);
    assert_eq!(second.account().consumed, 200);
    assert!(second.stderr.contains("cannot be sought") && second.stderr.contains("120"), "{}", second.stderr);
    let mut process = place.start(&STDIN);
    process.feed(format!("person,age\n{}", rows(0, 50)));
    let third = process.wait().expect(1);
    assert!(third.stderr.contains("ends after 50 records, but 200 had been read before"), "{}", third.stderr);
}

#[test]
fn a_pipe_that_says_nothing_lets_the_daemon_stop() {
    let place = Place::new(SCHEMA, "");
    for begin in [b"".as_slice(), b"per", &gzip("person,age\n")[..10]] {
        let mut process = place.start(&STDIN);
        process.feed(begin);
        std::thread::sleep(std::time::Duration::from_secs(2));
        process.terminate();
        assert!(process.ends_within(std::time::Duration::from_secs(20)), "no header has come: {begin:?}");
    }
    let parquet = place.run(&[("SOURCE__PATH", "-"), ("SOURCE__FORMAT", "parquet")]).expect(2);
    assert!(parquet.stderr.contains("parquet is not read from standard input"), "{}", parquet.stderr);
}

/// 64 GiB of one letter in a few megabytes are one record that is too long: what was whole before has left, and nobody waits for its end.
#[test]
fn a_bomb_lets_the_daemon_stop() {
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
    assert_eq!(process.wait().expect(0).account().consumed, 50, "batches are a function of the file");
}

/// Without a subject a record is a person: one that is read five times would be a crowd of five.
#[test]
fn two_names_of_one_file_are_no_crowd() {
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
    // Another source has a state of its own.
    let days = [("SOURCE__PATH", "days/**/*.csv"), ("SOURCE__FORMAT", "csv"), ("STATE__PATH", "state-of-days")];
    let once = place.run(&days);
    assert_eq!((once.account().consumed, once.account().released), (1, 0), "{}", once.stderr);
}

#[test]
fn a_file_that_ended_with_a_batch_may_be_removed() {
    let place = Place::new(SCHEMA, "");
    fs::create_dir(place.path("days")).expect("a folder");
    place.write("days/1.csv", format!("person,age\n{}", rows(0, 100)));
    let days = [("SOURCE__PATH", "days"), ("SOURCE__FORMAT", "csv")];
    assert_eq!(place.run(&days).expect(0).account().consumed, 100, "two whole batches");
    fs::remove_file(place.path("days/1.csv")).expect("a file");
    place.write("days/2.csv", format!("person,age\n{}", rows(100, 130)));
    assert_eq!(place.run(&days).expect(0).account().consumed, 130);
    // What is gone is forgotten, and what follows is still told from what was read.
    assert_eq!(place.run(&days).expect(0).account().consumed, 130);
    place.write("days/3.csv", format!("person,age\n{}", rows(130, 140)));
    assert_eq!(place.run(&days).expect(0).account().consumed, 140);
    place.write("days/1.csv", format!("person,age\n{}", rows(0, 100)));
    let again = place.run(&days).expect(1);
    assert!(again.stderr.contains("days/1.csv has appeared before days/3.csv"), "{}", again.stderr);
}

#[test]
fn several_files_are_one_source_and_changes_are_told() {
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
    place.write("days/15.csv", format!("person,age\n{}", rows(0, 9)));
    let appeared = place.run(&days).expect(1);
    assert!(appeared.stderr.contains("days/15.csv has appeared before days/3.csv"), "{}", appeared.stderr);
    fs::remove_file(place.path("days/15.csv")).expect("a file");
    place.write("days/1.csv", "person,age\n");
    let changed = place.run(&days).expect(1);
    assert!(changed.stderr.contains("days/1.csv has changed"), "{}", changed.stderr);
    fs::remove_file(place.path("days/1.csv")).expect("a file");
    assert_eq!(place.run(&days).expect(0).account().consumed, 131, "what was read to its end may be removed");
    place.write("days/4.csv", format!("person,years\n{}", rows(0, 9)));
    let other = place.run(&days).expect(2);
    assert!(other.stderr.contains("days/4.csv"), "a file with other columns is named: {}", other.stderr);
    let clash = place.run(&[("SOURCE__PATH", "*.ndjson"), ("STATE__PATH", "other")]).expect(2);
    assert!(clash.stderr.contains("the sink would overwrite the source"), "{}", clash.stderr);
}
