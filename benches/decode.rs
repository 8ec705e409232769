//! Decoding speed: one JSON record of 25 fields, beside a plain tree of values and a parse that keeps nothing.
#![allow(missing_docs, reason = "what the macros of criterion make")]

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use serde::de::IgnoredAny;
use serde_json::Value;
use throng::codec::{Field, JsonCodec, Limits};
use throng::records::raw::{Coordinate, RawBatch};

const FIELDS: usize = 25;
const RECORDS: usize = 1000;

/// A record in the manner of a wearable's: short texts, integers and decimals, a null, one nested object if asked.
fn record(seed: usize, nested: bool) -> String {
    let mut text = String::from("{");
    for index in 0..FIELDS {
        if index > 0 {
            text.push(',');
        }
        let value = seed * 7919 + index * 104_729;
        let outcome = match index % 5 {
            0 => write!(text, "\"signal_{index}\":{}", value % 200),
            1 => write!(text, "\"signal_{index}\":{}.{}", value % 100, value % 10),
            2 => write!(text, "\"signal_{index}\":\"text{}\"", value % 10_000),
            3 => write!(text, "\"signal_{index}\":{}", value.is_multiple_of(2)),
            _ if nested => write!(text, "\"group_{index}\":{{\"signal_{index}\":{}}}", value % 1000),
            _ => write!(text, "\"signal_{index}\":null"),
        };
        outcome.expect("writing to a string");
    }
    text.push('}');
    text
}

fn fields(nested: bool) -> Vec<Field> {
    let field = |index: usize| match index % 5 {
        4 if nested => Field { pointer: vec![format!("group_{index}"), format!("signal_{index}")] },
        _ => Field::flat(&format!("signal_{index}")),
    };
    (0..FIELDS).map(field).collect()
}

fn decode(criterion: &mut Criterion) {
    for (name, nested) in [("flat", false), ("nested", true)] {
        let records: Vec<String> = (0..RECORDS).map(|seed| record(seed, nested)).collect();
        let codec = JsonCodec::new(&fields(nested), Limits::default());
        let mut group = criterion.benchmark_group(format!("decode/{name}/{}B", records[0].len()));
        group.throughput(Throughput::Elements(RECORDS as u64));
        group.bench_function("codec", |bencher| {
            let at = Coordinate { topic: 0, partition: 0, offset: 0 };
            bencher.iter_batched(
                || RawBatch::new(FIELDS),
                |mut batch| {
                    for record in &records {
                        codec.decode(record.as_bytes(), at, &mut batch).expect("the record is sound");
                    }
                    batch
                },
                BatchSize::LargeInput,
            );
        });
        group.bench_function("serde_json::Value", |bencher| {
            bencher.iter(|| {
                for record in &records {
                    black_box(serde_json::from_str::<Value>(record).expect("the record is sound"));
                }
            });
        });
        group.bench_function("serde_json::IgnoredAny", |bencher| {
            bencher.iter(|| {
                for record in &records {
                    black_box(serde_json::from_str::<IgnoredAny>(record).expect("the record is sound"));
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
