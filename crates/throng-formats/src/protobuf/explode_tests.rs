//! Compares messages with records in repeated fields with `prost-reflect`.

use super::{ProtobufCodec, ProtobufSchema};
use crate::codec_fixtures::{decode_test_message, element, numbered_test_fields, row_tokens};
use crate::{DecodeLimits, UnknownCellPolicy};
use proptest::prelude::*;
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor, Value};
use std::sync::LazyLock;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::rejection::RejectionReason;

const LIMITS: DecodeLimits =
    DecodeLimits { max_record_bytes: 1 << 16, max_depth: 8, max_elements: 6, max_repeated_bytes: 200 };

const SCHEMA: &str = r#"
syntax = "proto3";
message Day { string user = 1; Watch watch = 2; int64 end = 9; map<string, Watch> worn = 10; }
message Watch { repeated Point points = 1; string model = 2; repeated sint32 beats = 3; Point last = 4; map<int32, Point> slots = 5; }
message Point { int32 offset = 1; optional double bpm = 2; string spare = 3; Place place = 4; }
message Place { string city = 1; Place inner = 2; }
"#;

const DAY_POINTERS: [&str; 5] =
    ["/user", "/watch/points/*/offset", "/watch/points/*/bpm", "/watch/points/*/place/city", "/end"];
const POINT_POINTERS: [&str; 3] = ["/offset", "/bpm", "/place/city"];

fn message(name: &str) -> MessageDescriptor {
    static COMPILED: LazyLock<ProtobufSchema> =
        LazyLock::new(|| ProtobufSchema::compile_proto_texts(SCHEMA, &[]).expect("a schema"));
    COMPILED.message_by_name(Some(name)).expect("a message").0
}

fn codec(name: &str, pointers: &[&str]) -> ProtobufCodec {
    ProtobufCodec::of(&message(name), &numbered_test_fields(pointers), LIMITS, UnknownCellPolicy::Drop)
        .expect("a codec")
}

fn delimited(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a short part");
    [&[number << 3 | 2, (length & 0x7f) as u8 | 0x80, (length >> 7) as u8], bytes].concat()
}

fn day(points: &[Vec<u8>]) -> Vec<u8> {
    let watch: Vec<u8> = points.iter().flat_map(|point| delimited(1, point)).collect();
    [delimited(1, b"u"), delimited(2, &watch), vec![0x48, 9]].concat()
}

fn point(offset: i32, bpm: Option<f64>, city: &str) -> Vec<u8> {
    let mut point = DynamicMessage::new(message("Point"));
    point.set_field_by_name("offset", Value::I32(offset));
    if let Some(bpm) = bpm {
        point.set_field_by_name("bpm", Value::F64(bpm));
    }
    if !city.is_empty() {
        let mut place = DynamicMessage::new(message("Place"));
        place.set_field_by_name("city", Value::String(city.to_owned()));
        point.set_field_by_name("place", Value::Message(place));
    }
    point.encode_to_vec()
}

#[test]
fn repeated_field_items_become_rows() {
    let points = |pointers: &[&str]| codec("Day", pointers);
    let codec = points(&DAY_POINTERS);
    assert_eq!(codec.missing(), Vec::<usize>::new(), "what is in elements is there");
    let lacking = ["/user", "/watch/points/*/x"];
    assert_eq!(points(&lacking).missing(), [1]);
    let twice = [point(5, None, ""), point(6, None, "")].concat();
    let payload = day(&[point(0, Some(61.5), "Bern"), twice, vec![0xff], point(7, None, "")]);
    let (batch, refused) = decode_test_message(&codec, 5, &payload).expect("a message");
    let (user, end) = (RawToken::Text("u"), RawToken::Number("9"));
    assert_eq!(batch.coordinates(), [element(1), element(4)]);
    assert_eq!(
        row_tokens(&batch, 0),
        [user, RawToken::Number("0"), RawToken::Number("61.5"), RawToken::Text("Bern"), end]
    );
    assert_eq!(row_tokens(&batch, 1), [user, RawToken::Number("7"), RawToken::Absent, RawToken::Absent, end]);
    let reasons = [RejectionReason::DuplicateKey, RejectionReason::MalformedProtobuf];
    assert_eq!(refused, [(element(2), reasons[0]), (element(3), reasons[1])]);
}

#[test]
fn scalar_elements_can_also_be_indexed() {
    let beats = codec("Day", &["/user", "/watch/beats/*", "/watch/beats/1", "/watch/beats"]);
    // Packed and unpacked: 1, -1, 2.
    let watch = [delimited(3, &[2, 1]), vec![0x18, 4]].concat();
    let payload = [delimited(1, b"u"), delimited(2, &watch)].concat();
    let (batch, refused) = decode_test_message(&beats, 4, &payload).expect("a message");
    let rows: Vec<RawToken<'_>> = (0..3).map(|row| batch.token(row, 1)).collect();
    assert_eq!(rows, [RawToken::Number("1"), RawToken::Number("-1"), RawToken::Number("2")]);
    for row in 0..3 {
        assert_eq!(batch.token(row, 2), RawToken::Number("-1"));
        assert_eq!(batch.token(row, 3), RawToken::Structure("[1,-1,2]"));
    }
    assert_eq!((refused, batch.unknown_cells), (Vec::new(), 0));
    // A scalar element is no record if attributes are inside the elements.
    let inside = codec("Day", &["/user", "/watch/beats/*/x"]);
    let (batch, refused) = decode_test_message(&inside, 2, &payload).expect("a message");
    assert_eq!(batch.rows(), 0);
    assert_eq!(refused, [1, 2, 3].map(|number| (element(number), RejectionReason::NotAnObject)));
}

#[test]
fn protobuf_message_without_elements_is_rejected_with_reason() {
    let codec_of = |pointer: &str| codec("Day", &["/user", pointer]);
    let points = codec_of("/watch/points/*/offset");
    let short = |count: i32| (0..count).map(|offset| point(offset, None, "")).collect::<Vec<_>>();
    for (payload, reason) in [
        (Vec::new(), RejectionReason::NoElements),
        (day(&[]), RejectionReason::NoElements),
        (day(&short(7)), RejectionReason::TooManyElements),
        ([day(&short(1)), delimited(2, &[])].concat(), RejectionReason::DuplicateKey),
        ([day(&short(1)), vec![0x0a, 9]].concat(), RejectionReason::MalformedProtobuf),
        (delimited(2, &[0x08, 1]), RejectionReason::MalformedProtobuf),
    ] {
        assert_eq!(decode_test_message(&points, 2, &payload).map(|_| ()), Err(reason), "{payload:?}");
    }
    assert_eq!(decode_test_message(&points, 2, &day(&short(6))).expect("as many as may be").0.rows(), 6);
    let last = delimited(2, &delimited(4, &point(1, None, "")));
    assert_eq!(
        decode_test_message(&codec_of("/watch/last/*/offset"), 2, &last).map(|_| ()),
        Err(RejectionReason::NotAnArray)
    );
    assert_eq!(
        decode_test_message(&codec_of("/watch/last/*/offset"), 2, &day(&[])).map(|_| ()),
        Err(RejectionReason::NoElements)
    );
    let slots = delimited(2, &delimited(5, &[8, 1]));
    assert_eq!(
        decode_test_message(&codec_of("/watch/slots/*/offset"), 2, &slots).map(|_| ()),
        Err(RejectionReason::NotAnArray)
    );
    assert_eq!(decode_test_message(&codec_of("/user/*/x"), 2, &day(&[])).map(|_| ()), Err(RejectionReason::NotAnArray));
    assert_eq!(
        decode_test_message(&codec_of("/*/x"), 2, &day(&short(1))).map(|_| ()),
        Err(RejectionReason::NotAnArray)
    );
}

#[test]
fn elements_under_duplicate_key_reject_message() {
    let codec = codec("Day", &["/user", "/worn/a/points/*/offset"]);
    let entry = |key: &[u8], offset: i32| {
        let watch = delimited(1, &point(offset, None, ""));
        delimited(10, &[delimited(1, key), delimited(2, &watch)].concat())
    };
    let (batch, _) = decode_test_message(&codec, 2, &[entry(b"a", 1), entry(b"b", 2)].concat()).expect("a message");
    assert_eq!((batch.rows(), batch.token(0, 1)), (1, RawToken::Number("1")));
    assert_eq!(
        decode_test_message(&codec, 2, &[entry(b"a", 1), entry(b"a", 2)].concat()).map(|_| ()),
        Err(RejectionReason::DuplicateKey)
    );
}

#[test]
fn repeated_enclosing_protobuf_bytes_are_limited() {
    let codec = codec("Day", &DAY_POINTERS);
    let points = [point(1, None, ""), point(2, None, ""), point(3, None, "")];
    let of_user = |length: usize| [delimited(1, &vec![b'u'; length]), day(&points)[4..].to_vec()].concat();
    // The user and the one-digit end are repeated twice.
    let (batch, _) = decode_test_message(&codec, 5, &of_user(99)).expect("200 bytes");
    assert_eq!((batch.rows(), batch.repeated_bytes()), (3, 200));
    assert_eq!(decode_test_message(&codec, 5, &of_user(100)).map(|_| ()), Err(RejectionReason::TooManyElements));
}

#[test]
fn element_depth_counts_from_message() {
    let codec = codec("Day", &["/user", "/watch/points/*/place/inner/inner/inner/inner/inner"]);
    let mut place = delimited(1, b"x");
    for _ in 0..4 {
        place = delimited(2, &place);
    }
    let of = |place: &[u8]| day(&[delimited(4, place)]);
    // Day, watch, point, place and four nested places.
    let (batch, refused) = decode_test_message(&codec, 2, &of(&place)).expect("a message");
    assert_eq!((batch.rows(), refused), (1, Vec::new()));
    let (batch, refused) = decode_test_message(&codec, 2, &of(&delimited(2, &place))).expect("a message");
    assert_eq!((batch.rows(), refused), (0, vec![(element(1), RejectionReason::TooDeep)]));
}

fn any_point() -> impl Strategy<Value = (i32, Option<f64>, String)> {
    (any::<i32>(), proptest::option::of(-1e6_f64..1e6), "[a-zé]{0,4}")
}

proptest! {
    #[test]
    fn exploded_protobuf_cells_match_dynamic_message(points in prop::collection::vec(any_point(), 1..7)) {
        let encoded: Vec<Vec<u8>> = points.iter().map(|(offset, bpm, city)| point(*offset, *bpm, city)).collect();
        let payload = day(&encoded);
        let (batch, refused) = decode_test_message(&codec("Day", &DAY_POINTERS), 5, &payload).expect("a message");
        prop_assert_eq!((batch.rows(), refused.len()), (points.len(), 0));
        let twin = DynamicMessage::decode(message("Day"), payload.as_slice()).expect("a message");
        let watch = twin.get_field_by_name("watch").expect("a field");
        let watch = watch.as_message().expect("a message");
        let listed = watch.get_field_by_name("points").expect("a field");
        for (row, listed) in listed.as_list().expect("a list").iter().enumerate() {
            let listed = listed.as_message().expect("a message");
            let offset = listed.get_field_by_name("offset").and_then(|offset| offset.as_i32()).expect("a number");
            prop_assert_eq!(batch.token(row, 1), RawToken::Number(&offset.to_string()));
            match (listed.has_field_by_name("bpm"), batch.token(row, 2)) {
                (true, RawToken::Number(text)) => {
                    let bpm = listed.get_field_by_name("bpm").and_then(|bpm| bpm.as_f64());
                    prop_assert_eq!(text.parse::<f64>().ok(), bpm);
                }
                (there, token) => prop_assert!(!there && token == RawToken::Absent, "{:?}", token),
            }
            let place = listed.get_field_by_name("place").expect("a field");
            let city = place.as_message().and_then(|place| place.get_field_by_name("city").map(std::borrow::Cow::into_owned));
            let there = listed.has_field_by_name("place");
            let wanted = city.as_ref().and_then(|city| city.as_str()).filter(|_| there);
            prop_assert_eq!(batch.token(row, 3), wanted.map_or(RawToken::Absent, RawToken::Text));
        }
    }

    #[test]
    fn protobuf_elements_decode_like_single_messages(
        elements in prop::collection::vec(
            prop_oneof![
                2 => any_point().prop_map(|(offset, bpm, city)| point(offset, bpm, &city)),
                1 => prop::collection::vec(any::<u8>(), 0..12),
                1 => (any_point(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|((offset, bpm, city), at, byte)| {
                    let mut changed = point(offset, bpm, &city);
                    changed.push(0);
                    let at = at.index(changed.len());
                    changed[at] = byte;
                    changed
                }),
            ],
            1..7,
        ),
    ) {
        let (batch, refused) = decode_test_message(&codec("Day", &DAY_POINTERS), 5, &day(&elements)).expect("a message");
        prop_assert_eq!(batch.rows() + refused.len(), elements.len());
        let alone = codec("Point", &POINT_POINTERS);
        let (mut row, mut refused) = (0, refused.into_iter());
        for (bytes, number) in elements.iter().zip(1..) {
            match decode_test_message(&alone, 3, bytes) {
                Err(reason) => prop_assert_eq!(refused.next(), Some((element(number), reason))),
                Ok((twin, _)) => {
                    prop_assert_eq!(batch.coordinates()[row], element(number));
                    let (found, wanted) = (row_tokens(&batch, row), row_tokens(&twin, 0));
                    prop_assert_eq!(&found[1..4], wanted.as_slice());
                    row += 1;
                }
            }
        }
    }

    #[test]
    fn random_protobuf_bytes_leave_no_partial_rows(
        noise in prop::collection::vec(any::<u8>(), 0..60), cut in any::<prop::sample::Index>(),
    ) {
        let codec = codec("Day", &DAY_POINTERS);
        if let Ok((batch, refused)) = decode_test_message(&codec, 5, &noise) {
            prop_assert!(batch.rows() + refused.len() > 0);
        }
        let whole = day(&[point(1, Some(2.0), "Bern"), noise]);
        let cut = cut.index(whole.len());
        if let Ok((batch, refused)) = decode_test_message(&codec, 5, &whole[..cut]) {
            prop_assert!(batch.rows() + refused.len() == 2, "cut at {}", cut);
        }
    }
}
