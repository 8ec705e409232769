//! What is not to be read is refused by name, with the remedy, in time, and without a secret (`Place::audit` looks at every word).

use std::time::{Duration, Instant};

use crate::place::{Place, parquet, rows};
use crate::stub::{Fails, Stub};

/// A store with one file of several row groups, and a text.
fn stored() -> Place {
    let place = Place::new(1000);
    place.put("days/a.parquet", &parquet(&rows(60_000, 1), 10_000));
    place.put("t.csv", format!("age,sex\n{}", "1,2\n".repeat(200_000)).as_bytes());
    place
}

#[test]
fn what_is_not_there_or_not_allowed_is_named() {
    let mut place = stored();
    place.audit("s3://data/none.csv --k 2").refuses(1, &["s3://data/none.csv is not there"]);
    place.audit("s3://nowhere/days/ --k 2").refuses(1, &["s3://nowhere/days/", "bucket that is not there"]);
    place.stub.fail("?closed/", Fails::With(403, "AccessDenied"));
    place.audit("s3://data/closed/ --k 2").refuses(1, &["s3://data/closed/ is not to be read", "s3:ListBucket"]);
    place.stub.fail("t.csv", Fails::With(403, "AccessDenied"));
    place.audit("s3://data/t.csv --k 2").refuses(1, &["s3://data/t.csv is not to be read", "s3:GetObject"]);
    place.stub.fail("?moved/", Fails::With(301, "PermanentRedirect"));
    place.audit("s3://data/moved/ --k 2").refuses(1, &["s3://data/moved/", "another region", "AWS_REGION"]);
    place.stub.fail("?late/", Fails::With(403, "RequestTimeTooSkewed"));
    place.audit("s3://data/late/ --k 2").refuses(1, &["s3://data/late/", "clock"]);
    place.told.insert("AWS_SESSION_TOKEN", "a-token-of-the-tests-expired".to_owned());
    place.audit("s3://data/days/ --k 2").refuses(1, &["s3://data/days/", "expired", "AWS_SESSION_TOKEN"]);
    place.told.remove("AWS_SESSION_TOKEN");
    place.told.insert("AWS_ACCESS_KEY_ID", "AKIASOMEBODY".to_owned());
    let said = place.audit("s3://data/days/ --k 2");
    assert!(!said.stderr.contains("AKIASOMEBODY"), "{}", said.stderr);
    said.refuses(1, &["s3://data/days/", "does not know", "AWS_ACCESS_KEY_ID"]);
}

#[test]
fn secrets_in_a_name_are_refused_and_not_repeated() {
    let place = stored();
    for named in [
        "s3://AKIASOMEBODY:topsecret@data/t.csv",
        "s3://data/t.csv?X-Amz-Signature=topsecret",
        "t.csv s3://topsecret@data/t.csv",
    ] {
        let said = place.audit(&format!("{named} --k 2"));
        assert!(!said.stderr.contains("topsecret") && !said.stderr.contains("AKIASOMEBODY"), "{}", said.stderr);
        said.refuses(2, &["not shown"]);
    }
    place.audit("https://example.org/t.csv --k 2").refuses(2, &["names no object store"]);
    place.audit("t.csv --link s3:///x --k 2").refuses(2, &["names no bucket"]);
    assert!(place.stub.requests().is_empty(), "{:?}", place.stub.requests());
}

#[test]
fn what_is_in_the_clear_has_to_be_allowed() {
    let mut place = stored();
    place.told.remove("AWS_ALLOW_HTTP");
    place.audit("s3://data/t.csv --k 2").refuses(1, &["s3://data/t.csv", "unencrypted", "AWS_ALLOW_HTTP"]);
    // And where encryption is asked for, what does not speak it is no store.
    let address = format!("https://127.0.0.1:{}", place.stub.port);
    place.told.insert("AWS_ENDPOINT_URL", address);
    place.audit("s3://data/t.csv --k 2").refuses(1, &["s3://data/t.csv", "cannot be reached"]);
}

#[test]
fn an_object_that_changes_is_refused() {
    for how in [Fails::Changes(0), Fails::Changes(2), Fails::Careless(2)] {
        let place = stored();
        place.stub.fail("days/a.parquet", how);
        place.audit("s3://data/days/ --k 3").refuses(1, &["s3://data/days/a.parquet has changed", "read it again"]);
        place.stub.fail("t.csv", how);
        place.audit("s3://data/t.csv --k 3").refuses(1, &["s3://data/t.csv has changed"]);
    }
    // What changes behind the last byte is seen where an audit may take hours.
    let place = stored();
    let ranges = place.stub.requests().len();
    place.report("s3://data/days/ --k 3 --memory 1MiB --temp .");
    let asked = place.stub.requests().split_off(ranges);
    assert_eq!(asked.iter().filter(|asked| asked.contains("list-type")).count(), 2, "before and behind: {asked:?}");
}

#[test]
fn a_store_that_fails_for_a_while_is_asked_again() {
    let place = stored();
    let held = place.report("days --format parquet --k 3");
    for how in [Fails::Times(3, 503, "SlowDown"), Fails::Times(2, 500, "InternalError"), Fails::Cut(2)] {
        place.stub.fail("days/a.parquet", how);
        place.stub.fail("?days/", Fails::Times(2, 503, "SlowDown"));
        assert_eq!(place.report("s3://data/days/ --k 3"), held, "{how:?}");
    }
}

#[test]
fn a_store_that_fails_for_good_is_not_waited_for_without_end() {
    let mut place = stored();
    let begun = Instant::now();
    for (how, says) in [(Fails::With(503, "SlowDown"), "busy or failed"), (Fails::Cut(usize::MAX), "cut short")] {
        place.stub.fail("days/a.parquet", how);
        place.audit("s3://data/days/ --k 3").refuses(1, &["s3://data/days/a.parquet", says]);
    }
    place.stub.fail("t.csv", Fails::Silent);
    place.told.insert("AWS_TIMEOUT", "1s".to_owned());
    place.audit("s3://data/t.csv --k 3").refuses(1, &["s3://data/t.csv", "does not answer in time", "AWS_TIMEOUT"]);
    // A port at which nobody listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    place.told.insert("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"));
    place.audit("s3://data/t.csv --k 3").refuses(1, &["s3://data/t.csv", "cannot be reached", "AWS_ENDPOINT_URL"]);
    assert!(begun.elapsed() < Duration::from_secs(4 * 60), "{:?}", begun.elapsed());
}

#[test]
fn damage_is_told_as_it_is_of_files() {
    let place = stored();
    let mut bytes = parquet(&rows(60_000, 1), 10_000);
    let middle = bytes.len() / 2;
    bytes[middle - 3000..middle + 3000].fill(0xff);
    place.put("bad.parquet", &bytes);
    bytes.truncate(middle);
    place.put("short.parquet", &bytes);
    place.put("empty.parquet", b"");
    for name in ["bad.parquet", "short.parquet", "empty.parquet"] {
        let (disk, store) = (place.audit(&format!("{name} --k 3")), place.audit(&format!("s3://data/{name} --k 3")));
        assert_eq!((store.code, store.stderr.replace("s3://data/", "")), (disk.code, disk.stderr), "{name}");
    }
}

#[test]
fn the_daemon_reads_no_store() {
    let stub = Stub::new(10);
    stub.put("data", "in.ndjson", "{}\n");
    let url = throng::io::store::check(std::path::Path::new("s3://data/in.ndjson"));
    assert!(url.is_ok());
    let reading = throng::io::file::Reading {
        format: throng::io::file::Format::Ndjson,
        fields: Vec::new(),
        limits: throng::codec::Limits::of_whole_files(),
        unknown: throng::codec::Unknown::Drop,
        stop: throng::io::file::StopFlag::default(),
    };
    let path = std::path::Path::new("s3://data/in.ndjson");
    let start = throng::io::file::SourcePosition::default();
    let said = throng::io::file::FileSource::resume(path, reading, start, &[], &[]).expect_err("refused").to_string();
    assert!(said.contains("read by throng audit only"), "{said}");
    assert!(stub.requests().is_empty());
}
