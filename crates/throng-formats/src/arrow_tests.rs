use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, DurationNanosecondArray,
    DurationSecondArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int64Array, IntervalYearMonthArray,
    ListArray, MapBuilder, StringArray, StringBuilder, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, UInt8Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::Int32Type;

use super::*;
use crate::codec_fixtures::MESSAGE_POSITION;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn cells(array: ArrayRef, pointer: &[&str]) -> Vec<String> {
    let batch = batch(vec![("c", array)]);
    let field = FieldPath {
        pointer: std::iter::once("c").chain(pointer.iter().copied()).map(str::to_owned).collect(),
        elements: None,
    };
    let codec = ArrowCodec::new(&batch.schema(), &[field], DecodeLimits::default(), UnknownCellPolicy::Drop).unwrap();
    let rows = codec.rows(&batch).unwrap();
    let mut into = RawBatch::new(1);
    let cell = |row| match rows.decode(row, MESSAGE_POSITION, &mut into) {
        Ok(_) => format!("{:?}", into.token(into.rows() - 1, 0)),
        Err(rejection) => rejection.to_string(),
    };
    (0..batch.num_rows()).map(cell).collect()
}

#[test]
fn arrow_scalars_have_matching_tokens() {
    assert_eq!(cells(Arc::new(Int64Array::from(vec![Some(-7), None])), &[]), ["Number(\"-7\")", "Null"]);
    assert_eq!(cells(Arc::new(UInt8Array::from(vec![255])), &[]), ["Number(\"255\")"]);
    assert_eq!(
        cells(Arc::new(Float64Array::from(vec![0.1, 1e300, f64::NAN, f64::NEG_INFINITY])), &[]),
        ["Number(\"0.1\")", "Number(\"1e300\")", "Untyped(\"NaN\")", "Untyped(\"-inf\")"]
    );
    assert_eq!(cells(Arc::new(Float32Array::from(vec![0.1])), &[]), ["Number(\"0.1\")"]);
    assert_eq!(cells(Arc::new(BooleanArray::from(vec![true, false])), &[]), ["Bool(true)", "Bool(false)"]);
    assert_eq!(
        cells(Arc::new(StringArray::from(vec![Some("é"), Some(""), None])), &[]),
        ["Text(\"é\")", "Text(\"\")", "Null"]
    );
    assert_eq!(
        cells(Arc::new(BinaryArray::from(vec![b"ok".as_ref(), b"\xff"])), &[]),
        ["Text(\"ok\")", "Text(\"/w==\")"]
    );
    let sized = |bytes: &[u8]| Arc::new(FixedSizeBinaryArray::try_from_iter([bytes].into_iter()).unwrap());
    let uuid = [0x3a, 0x1e, 0x0d, 0x2c, 0x7b, 0x1f, 0x4d, 0x8e, 0x9a, 0x53, 0x0c, 0x9b, 0x7a, 0x6d, 0x5e, 0x4f];
    assert_eq!(cells(sized(&uuid), &[]), ["Text(\"3a1e0d2c-7b1f-4d8e-9a53-0c9b7a6d5e4f\")"]);
    assert_eq!(cells(sized(b"\xfe\xff\x01"), &[]), ["Text(\"/v8B\")"]);
    let decimal = Decimal128Array::from(vec![12_345, -5]).with_precision_and_scale(10, 2).unwrap();
    assert_eq!(cells(Arc::new(decimal), &[]), ["Number(\"123.45\")", "Number(\"-0.05\")"]);
    let dictionary: DictionaryArray<Int32Type> = vec![Some("x"), None, Some("y"), Some("x")].into_iter().collect();
    assert_eq!(cells(Arc::new(dictionary), &[]), ["Text(\"x\")", "Null", "Text(\"y\")", "Text(\"x\")"]);
}

#[test]
fn temporal_cells_are_iso_8601() {
    assert_eq!(
        cells(Arc::new(Date32Array::from(vec![0, 19_783])), &[]),
        ["Text(\"1970-01-01\")", "Text(\"2024-03-01\")"]
    );
    assert_eq!(
        cells(Arc::new(Date32Array::from(vec![i32::MAX, -i32::MAX, 200_000_000])), &[]),
        ["Untyped(\"infinity\")", "Untyped(\"-infinity\")", "Untyped(\"200000000 days\")"]
    );
    let ends = vec![i64::MAX, -i64::MAX, i64::MIN, i64::MAX / 2];
    for (array, finite) in [
        (
            Arc::new(TimestampMicrosecondArray::from(ends.clone())) as ArrayRef,
            "Text(\"+148108-07-06T14:00:27.387903\")",
        ),
        (Arc::new(TimestampNanosecondArray::from(ends)), "Text(\"2116-02-20T23:53:38.427387903\")"),
    ] {
        let infinite = ["Untyped(\"infinity\")", "Untyped(\"-infinity\")", "Untyped(\"-infinity\")", finite];
        assert_eq!(cells(array, &[]), infinite);
    }
    let spans = DurationNanosecondArray::from(vec![5_400_000_000_000, -1_500_000_000, 1]);
    assert_eq!(cells(Arc::new(spans), &[]), ["Number(\"5400\")", "Number(\"-1.5\")", "Number(\"0.000000001\")"]);
    assert_eq!(cells(Arc::new(DurationSecondArray::from(vec![90])), &[]), ["Number(\"90\")"]);
    let time = Time64MicrosecondArray::from(vec![3_600_000_001]);
    assert_eq!(cells(Arc::new(time), &[]), ["Text(\"01:00:00.000001\")"]);
    let local = TimestampMillisecondArray::from(vec![1_709_294_400_500, 1_709_294_400_000]);
    assert_eq!(
        cells(Arc::new(local.clone()), &[]),
        ["Text(\"2024-03-01T12:00:00.500\")", "Text(\"2024-03-01T12:00:00\")"]
    );
    assert_eq!(cells(Arc::new(local.with_timezone("Europe/Athens")), &[])[1], "Text(\"2024-03-01T12:00:00Z\")");
}

#[test]
fn nested_columns_are_selected_or_written_as_json() {
    let rate: ArrayRef = Arc::new(Int64Array::from(vec![Some(61), None, Some(0)]));
    let unit: ArrayRef = Arc::new(StringArray::from(vec![Some("b\"m"), None, None]));
    let members = vec![
        Arc::new(ArrowField::new("rate", DataType::Int64, true)),
        Arc::new(ArrowField::new("unit", DataType::Utf8, true)),
    ];
    let heart = StructArray::new(members.into(), vec![rate, unit], Some(NullBuffer::from(vec![true, true, false])));
    let heart: ArrayRef = Arc::new(heart);
    assert_eq!(cells(heart.clone(), &["rate"]), ["Number(\"61\")", "Null", "Absent"]);
    assert_eq!(
        cells(heart, &[])[..2],
        [r#"Structure("{\"rate\":61,\"unit\":\"b\\\"m\"}")"#, r#"Structure("{\"rate\":null,\"unit\":null}")"#]
    );
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None]), Some(vec![]), None]);
    assert_eq!(cells(Arc::new(list), &[]), ["Structure(\"[1,null]\")", "Structure(\"[]\")", "Null"]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    map.keys().append_value("k");
    map.values().append_value("v");
    map.append(true).unwrap();
    assert_eq!(cells(Arc::new(map.finish()), &[]), [r#"Structure("{\"k\":\"v\"}")"#]);
}

#[test]
fn incompatible_columns_are_refused_on_open() {
    let seconds: ArrayRef = Arc::new(IntervalYearMonthArray::from(vec![1]));
    let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let batch = batch(vec![("d", seconds), ("n", number)]);
    let open = |name: &str, unknown| {
        ArrowCodec::new(&batch.schema(), &[FieldPath::top_level(name)], DecodeLimits::default(), unknown)
            .map(|codec| codec.absent())
    };
    assert!(
        matches!(open("d", UnknownCellPolicy::Drop), Err(ArrowColumnError::Unsupported { column, .. }) if column == "d")
    );
    assert_eq!(open("x", UnknownCellPolicy::Drop), Err(ArrowColumnError::NothingKnown { columns: 2 }));
    assert_eq!(open("n", UnknownCellPolicy::Refuse), Err(ArrowColumnError::Unknown { column: "d".into() }));
    assert_eq!(open("n", UnknownCellPolicy::Drop), Ok(vec![]));
}

#[test]
fn oversized_arrow_row_is_rejected_and_unknown_columns_counted() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["short".to_owned(), "x".repeat(100)]));
    let other: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let whole = batch(vec![("o", other), ("c", texts)]);
    let limits = DecodeLimits { max_record_bytes: 50, max_depth: 8, max_elements: 100, max_repeated_bytes: 1 << 20 };
    let codec =
        ArrowCodec::new(&whole.schema(), &[FieldPath::top_level("c")], limits, UnknownCellPolicy::Drop).unwrap();
    let rows = codec.rows(&whole.project(codec.roots()).unwrap()).unwrap();
    let mut into = RawBatch::new(1);
    assert_eq!(rows.decode(0, MESSAGE_POSITION, &mut into), Ok(5));
    assert_eq!(rows.decode(1, MESSAGE_POSITION, &mut into), Err(RejectionReason::Oversized));
    assert_eq!((into.rows(), into.unknown_cells), (1, 1));
    assert_eq!(codec.rows(&whole.project(&[]).unwrap()).unwrap_err(), ArrowColumnError::Mismatch);
}
