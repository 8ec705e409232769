//! Benchmark of decoding JSON, Avro and Protobuf records of 25 fields.
#![allow(missing_docs, reason = "what the macros of criterion make")]

use std::fmt::Write as _;
use std::hint::black_box;

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value as AvroValue;
use apache_avro::writer::datum::GenericDatumWriter;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use prost::Message;
use prost_reflect::{DynamicMessage, Value as ProtobufValue};
use serde::de::IgnoredAny;
use serde_json::Value;
use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_formats::{AvroCodec, DecodeLimits, FieldPath, JsonCodec, ProtobufSchema, RecordDecoder, UnknownCellPolicy};

const FIELDS: usize = 25;
const RECORDS: usize = 1000;

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

fn fields(nested: bool) -> Vec<FieldPath> {
    let field = |index: usize| match index % 5 {
        4 if nested => FieldPath { pointer: vec![format!("group_{index}"), format!("signal_{index}")], elements: None },
        _ => FieldPath::top_level(&format!("signal_{index}")),
    };
    (0..FIELDS).map(field).collect()
}

fn decode(criterion: &mut Criterion) {
    for (name, nested) in [("flat", false), ("nested", true)] {
        let records: Vec<String> = (0..RECORDS).map(|seed| record(seed, nested)).collect();
        let codec = JsonCodec::new(&fields(nested), DecodeLimits::default());
        let mut group = criterion.benchmark_group(format!("decode/{name}/{}B", records[0].len()));
        group.throughput(Throughput::Elements(RECORDS as u64));
        group.bench_function("codec", |bencher| {
            let at = RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 };
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

fn avro_schema() -> String {
    let field = |index: usize| {
        let kind = match index % 5 {
            0 => "\"long\"",
            1 => "\"double\"",
            2 => "\"string\"",
            3 => "\"boolean\"",
            _ => "[\"null\", \"long\"]",
        };
        format!("{{\"name\": \"signal_{index}\", \"type\": {kind}}}")
    };
    let fields: Vec<String> = (0..FIELDS).map(field).collect();
    format!("{{\"type\": \"record\", \"name\": \"Sample\", \"fields\": [{}]}}", fields.join(","))
}

fn avro_record(seed: usize) -> AvroValue {
    let field = |index: usize| {
        let value = seed * 7919 + index * 104_729;
        let cell = match index % 5 {
            0 => AvroValue::Long((value % 200) as i64),
            1 => AvroValue::Double((value % 1000) as f64 / 10.0),
            2 => AvroValue::String(format!("text{}", value % 10_000)),
            3 => AvroValue::Boolean(value.is_multiple_of(2)),
            _ => AvroValue::Union(0, Box::new(AvroValue::Null)),
        };
        (format!("signal_{index}"), cell)
    };
    AvroValue::Record((0..FIELDS).map(field).collect())
}

fn decode_avro(criterion: &mut Criterion) {
    let text = avro_schema();
    let schema = Schema::parse_str(&text).expect("a schema");
    let writer = GenericDatumWriter::builder(&schema).build().expect("a writer");
    let reader = GenericDatumReader::builder(&schema).build().expect("a reader");
    let data: Vec<Vec<u8>> =
        (0..RECORDS).map(|seed| writer.write_value_to_vec(avro_record(seed)).expect("a record of it")).collect();
    let numbered: Vec<(usize, FieldPath)> = fields(false).into_iter().enumerate().collect();
    let codec = AvroCodec::new(&text, &numbered, DecodeLimits::default(), UnknownCellPolicy::Drop).expect("a schema");
    let mut group = criterion.benchmark_group(format!("decode/avro/{}B", data[0].len()));
    group.throughput(Throughput::Elements(RECORDS as u64));
    group.bench_function("codec", |bencher| {
        let at = RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 };
        bencher.iter_batched(
            || RawBatch::new(FIELDS),
            |mut batch| {
                for datum in &data {
                    codec.decode(datum, at, &mut batch).expect("the record is sound");
                }
                batch
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("apache_avro", |bencher| {
        bencher.iter(|| {
            for datum in &data {
                black_box(reader.read_value(&mut datum.as_slice()).expect("the record is sound"));
            }
        });
    });
    group.finish();
}

#[derive(Clone, PartialEq, Message)]
#[expect(clippy::struct_excessive_bools, reason = "a record has each kind of value five times")]
struct Sample {
    #[prost(int64, tag = "1")]
    signal_0: i64,
    #[prost(double, tag = "2")]
    signal_1: f64,
    #[prost(string, tag = "3")]
    signal_2: String,
    #[prost(bool, tag = "4")]
    signal_3: bool,
    #[prost(int64, optional, tag = "5")]
    signal_4: Option<i64>,
    #[prost(int64, tag = "6")]
    signal_5: i64,
    #[prost(double, tag = "7")]
    signal_6: f64,
    #[prost(string, tag = "8")]
    signal_7: String,
    #[prost(bool, tag = "9")]
    signal_8: bool,
    #[prost(int64, optional, tag = "10")]
    signal_9: Option<i64>,
    #[prost(int64, tag = "11")]
    signal_10: i64,
    #[prost(double, tag = "12")]
    signal_11: f64,
    #[prost(string, tag = "13")]
    signal_12: String,
    #[prost(bool, tag = "14")]
    signal_13: bool,
    #[prost(int64, optional, tag = "15")]
    signal_14: Option<i64>,
    #[prost(int64, tag = "16")]
    signal_15: i64,
    #[prost(double, tag = "17")]
    signal_16: f64,
    #[prost(string, tag = "18")]
    signal_17: String,
    #[prost(bool, tag = "19")]
    signal_18: bool,
    #[prost(int64, optional, tag = "20")]
    signal_19: Option<i64>,
    #[prost(int64, tag = "21")]
    signal_20: i64,
    #[prost(double, tag = "22")]
    signal_21: f64,
    #[prost(string, tag = "23")]
    signal_22: String,
    #[prost(bool, tag = "24")]
    signal_23: bool,
    #[prost(int64, optional, tag = "25")]
    signal_24: Option<i64>,
}

fn protobuf_schema() -> String {
    let field = |index: usize| {
        let kind = ["int64", "double", "string", "bool", "optional int64"][index % 5];
        format!("{kind} signal_{index} = {};", index + 1)
    };
    format!("syntax = \"proto3\"; message Sample {{ {} }}", (0..FIELDS).map(field).collect::<String>())
}

struct Text;

impl protox::file::FileResolver for Text {
    fn open_file(&self, name: &str) -> Result<protox::file::File, protox::Error> {
        protox::file::File::from_source(name, &protobuf_schema())
    }
}

fn decode_protobuf(criterion: &mut Criterion) {
    let mut compiler = protox::Compiler::with_file_resolver(Text);
    let pool = compiler.open_file("sample.proto").expect("a schema").descriptor_pool();
    let dynamic = pool.get_message_by_name("Sample").expect("a message");
    let record = |seed: usize| {
        let mut message = DynamicMessage::new(dynamic.clone());
        for index in 0..FIELDS {
            let value = seed * 7919 + index * 104_729;
            let cell = match index % 5 {
                0 => ProtobufValue::I64((value % 200) as i64),
                1 => ProtobufValue::F64((value % 1000) as f64 / 10.0),
                2 => ProtobufValue::String(format!("text{}", value % 10_000)),
                3 => ProtobufValue::Bool(value.is_multiple_of(2)),
                _ => continue,
            };
            message.set_field_by_name(&format!("signal_{index}"), cell);
        }
        message.encode_to_vec()
    };
    let data: Vec<Vec<u8>> = (0..RECORDS).map(record).collect();
    let numbered: Vec<(usize, FieldPath)> = fields(false).into_iter().enumerate().collect();
    let message = ProtobufSchema::compile_proto_texts(&protobuf_schema(), &[])
        .expect("a schema")
        .message_by_name(None)
        .expect("a message");
    let codec = message.codec(&numbered, DecodeLimits::default(), UnknownCellPolicy::Drop).expect("a codec");
    let mut group = criterion.benchmark_group(format!("decode/protobuf/{}B", data[0].len()));
    group.throughput(Throughput::Elements(RECORDS as u64));
    group.bench_function("codec", |bencher| {
        let at = RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 };
        bencher.iter_batched(
            || RawBatch::new(FIELDS),
            |mut batch| {
                for datum in &data {
                    codec.decode(datum, at, &mut batch).expect("the record is sound");
                }
                batch
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("prost_reflect", |bencher| {
        bencher.iter(|| {
            for datum in &data {
                black_box(DynamicMessage::decode(dynamic.clone(), datum.as_slice()).expect("the record is sound"));
            }
        });
    });
    group.bench_function("prost", |bencher| {
        bencher.iter(|| {
            for datum in &data {
                black_box(Sample::decode(datum.as_slice()).expect("the record is sound"));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, decode, decode_avro, decode_protobuf);
criterion_main!(benches);
