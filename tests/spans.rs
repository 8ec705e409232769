//! Spans of batches, told to a collector: every batch, nothing of a record, and nobody waits.

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;
use support::binary::{Place, series};

const SCHEMA: &str = "name = \"t\"\n[[attribute]]\nname = \"user\"\ntype = \"string\"\nrole = \"subject\"\n\
                      [[attribute]]\nname = \"kind\"\ntype = \"string\"\n[[attribute]]\nname = \"note\"\ntype = \"string\"\n";
const CANARY: &str = "canary";

fn lines(count: usize) -> String {
    let line =
        |n: usize| format!("{{\"user\":\"{CANARY}{}\",\"kind\":\"{CANARY}\",\"note\":\"{CANARY}{n}\"}}\n", n % 10);
    (0..count).map(line).collect()
}

/// A collector that gives `status` as its answer, or none at all; its address and the requests that it gets.
fn collector(status: Option<u16>) -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming().map_while(Result::ok) {
            let Some(status) = status else {
                silent.push(stream);
                continue;
            };
            let mut reader = BufReader::new(stream);
            loop {
                let (mut head, mut length) = (String::new(), 0);
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                        break;
                    }
                    if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = bytes.trim().parse().expect("a length");
                    }
                    head.push_str(&line);
                }
                let mut body = vec![0; length];
                if head.is_empty() || reader.read_exact(&mut body).is_err() {
                    break;
                }
                if tell.send((head, String::from_utf8(body).expect("text"))).is_err() {
                    return;
                }
                let answer = format!("HTTP/1.1 {status} .\r\nContent-Length: 2\r\n\r\n{{}}");
                if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    (address, told)
}

#[test]
fn a_collector_is_told_of_every_batch_and_of_no_value() {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", lines(1_025));
    let (address, told) = collector(Some(200));
    let outcome = place.run(&[("TELEMETRY__OTLP_ENDPOINT", &address)]).expect(0);
    assert_eq!(outcome.account().consumed, 1_025);
    let requests: Vec<(String, String)> = told.try_iter().collect();
    assert!(requests.iter().all(|(head, body)| !head.contains(CANARY) && !body.contains(CANARY)), "a value was told");
    assert!(requests.iter().all(|(head, _)| head.starts_with("POST /v1/traces HTTP/1.1\r\n")), "{requests:?}");
    let mut sequences = BTreeSet::new();
    let mut released = 0;
    for (_, body) in &requests {
        let body: Value = serde_json::from_str(body).expect("JSON");
        let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone();
        for batch in spans.iter().filter(|span| span["name"] == "batch") {
            let of = |key: &str| {
                let attributes = batch["attributes"].as_array().expect("attributes");
                let found = attributes.iter().find(|one| one["key"] == key).expect("an attribute");
                found["value"]["intValue"].as_str().expect("a text").parse::<u64>().expect("a number")
            };
            assert!(sequences.insert(of("throng.sequence")), "a batch was told twice");
            released += of("throng.released");
            let below: BTreeSet<&str> = spans
                .iter()
                .filter(|span| span["parentSpanId"] == batch["spanId"] && span["traceId"] == batch["traceId"])
                .map(|span| span["name"].as_str().expect("a name"))
                .collect();
            assert_eq!(below, BTreeSet::from(["read", "decode", "encode", "treat", "verify", "commit", "learn"]));
        }
    }
    // 20 full batches, the rest, and perhaps what was held.
    assert!(sequences.len() >= 21 && sequences.iter().copied().eq(1..=sequences.len() as u64), "{sequences:?}");
    assert_eq!(released, outcome.account().released);
}

#[test]
fn batches_go_on_whatever_a_collector_does() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        format!("http://{}", listener.local_addr().expect("an address"))
    };
    let (refuses, _told) = collector(Some(503));
    let (silent, _nothing) = collector(None);
    for address in [closed, refuses, silent] {
        let place = Place::new(SCHEMA, "");
        let mut process = place.start(&[("SOURCE__PATH", "-"), ("TELEMETRY__OTLP_ENDPOINT", &address)]);
        process.feed(lines(600));
        process.until("its batches leave", |status| status["batches_committed"].as_u64() >= Some(11));
        let refused = || {
            let page = process.get("/metrics").map(|(_, page)| series(&page)).unwrap_or_default();
            page.get("throng_spans_total{outcome=\"refused\"}").copied().unwrap_or(0.0)
        };
        process.until("what is not taken is counted", |_| refused() >= 1.0);
        process.end_input();
        assert!(process.ends_within(Duration::from_secs(30)), "the end waits for a collector");
        let outcome = process.wait().expect(0);
        assert_eq!(outcome.account().consumed, 600);
        assert!(outcome.stderr.contains("does not take spans"), "{}", outcome.stderr);
    }
}

#[test]
fn an_address_that_is_none_and_a_file_that_is_not_there_are_refused() {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", lines(10));
    for wrong in ["localhost:4318", "http://", "http://user:password@localhost:4318"] {
        let outcome = place.run(&[("TELEMETRY__OTLP_ENDPOINT", wrong)]).expect(2);
        assert!(outcome.stderr.contains("OTLP_ENDPOINT: this is no address"), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("password@"), "{}", outcome.stderr);
    }
    let files = [("TELEMETRY__OTLP_ENDPOINT", "https://localhost:1"), ("TELEMETRY__OTLP_CA_FILE", "none.pem")];
    let outcome = place.run(&files).expect(2);
    assert!(outcome.stderr.contains("telemetry.otlp_ca_file: none.pem"), "{}", outcome.stderr);
}
