use std::fs::File;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Date32Type, Float64Type, Int64Type, TimestampMillisecondType};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

use super::*;
use crate::io::file::{FileFormat, ReleaseTarget};
use throng_core::values::json::{push_quoted, push_shortest};

fn column(name: &str, kind: ColumnType) -> OutputColumn {
    OutputColumn { name: name.to_owned(), kind }
}

fn bounded(kind: BoundType) -> ColumnType {
    ColumnType::TextWithBounds(kind)
}

/// Releases `lines` and returns the rows as one batch.
fn written(columns: &[OutputColumn], lines: &str) -> Result<RecordBatch, SinkError> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("out.parquet");
    let place = ReleaseTarget::claim_target(&path, FileFormat::Parquet)?;
    place.write_release::<SinkError>(columns, |write| write(lines.as_bytes()))?;
    let file = File::open(path).expect("a file");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let schema = Arc::clone(builder.schema());
    let batches: Vec<RecordBatch> = builder.build().expect("a reader").collect::<Result<_, _>>().expect("rows");
    assert!(batches.len() <= 1, "small tests");
    Ok(batches.into_iter().next().unwrap_or_else(|| RecordBatch::new_empty(schema)))
}

fn texts(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let array = batch.column_by_name(name).expect("a column").as_string::<i32>();
    array.iter().map(|text| text.map(str::to_owned)).collect()
}

fn integers(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    batch.column_by_name(name).expect("a column").as_primitive::<Int64Type>().iter().collect()
}

fn doubles(batch: &RecordBatch, name: &str) -> Vec<Option<f64>> {
    batch.column_by_name(name).expect("a column").as_primitive::<Float64Type>().iter().collect()
}

#[test]
fn fragment_columns_are_texts_with_typed_bounds() {
    let columns = [
        column("age", bounded(BoundType::Integer)),
        column("weight", bounded(BoundType::Float)),
        column("day", bounded(BoundType::Date)),
        column("at", bounded(BoundType::Timestamp)),
        column("sex", ColumnType::Text),
    ];
    let lines = "{\"age\":20,\"weight\":71.5,\"day\":\"2024-02\",\"at\":\"1970-01-01T00\",\"sex\":\"f\"}\n\
                 {\"age\":\"45-49\",\"weight\":\"[65,70)\",\"day\":\"*\",\"at\":null,\"sex\":\"*\"}\n\
                 {\"age\":\"*\"}\n";
    let batch = written(&columns, lines).expect("a release");
    let schema = batch.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let expected = "age age_min age_max weight weight_min weight_max day day_min day_max at at_min at_max sex";
    assert_eq!(names.join(" "), expected);
    assert!(schema.fields().iter().all(|field| field.is_nullable()));
    let about = |name: &str| schema.field_with_name(name).expect("a field").metadata().get("throng").cloned();
    assert_eq!(about("age_max").as_deref(), Some("upper bound, included, of age"));
    assert_eq!(about("weight_max").as_deref(), Some("upper bound, included unless the text ends with ), of weight"));
    assert_eq!(integers(&batch, "age_min"), [Some(20), Some(45), None]);
    assert_eq!(integers(&batch, "age_max"), [Some(20), Some(49), None]);
    assert_eq!(doubles(&batch, "weight_min"), [Some(71.5), Some(65.0), None]);
    assert_eq!(doubles(&batch, "weight_max"), [Some(71.5), Some(70.0), None]);
    let days =
        |name| batch.column_by_name(name).expect("a column").as_primitive::<Date32Type>().iter().collect::<Vec<_>>();
    assert_eq!((days("day_min"), days("day_max")), (vec![Some(19_754), None, None], vec![Some(19_782), None, None]));
    let at = batch.column_by_name("at_max").expect("a column");
    assert_eq!(*at.data_type(), DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())));
    assert_eq!(at.as_primitive::<TimestampMillisecondType>().value(0), 3_599_999);
    // The text distinguishes suppressed from missing cells.
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(texts(&batch, "day"), [text("2024-02"), text("*"), None]);
    assert_eq!(texts(&batch, "at"), [text("1970-01-01T00"), None, None]);
    assert_eq!(texts(&batch, "age"), [text("20"), text("45-49"), text("*")]);
}

#[test]
fn extreme_numbers_are_exact_or_only_texts() {
    let columns = [column("n", bounded(BoundType::Integer)), column("x", bounded(BoundType::Float))];
    let lines = "{\"n\":9007199254740993,\"x\":1e300}\n{\"n\":-9223372036854775808,\"x\":0.1}\n\
                 {\"n\":9223372036854775808,\"x\":1e999}\n{\"n\":\"NaN\",\"x\":\"NaN\"}\n{\"n\":\"inf\",\"x\":\"inf\"}\n";
    let batch = written(&columns, lines).expect("a release");
    assert_eq!(integers(&batch, "n_min"), [Some(9_007_199_254_740_993), Some(i64::MIN), None, None, None]);
    assert_eq!(doubles(&batch, "x_max"), [Some(1e300), Some(0.1), None, None, None]);
    let n = ["9007199254740993", "-9223372036854775808", "9223372036854775808", "NaN", "inf"];
    assert_eq!(texts(&batch, "n").into_iter().flatten().collect::<Vec<_>>(), n);
    let x = ["1e300", "0.1", "1e999", "NaN", "inf"];
    assert_eq!(texts(&batch, "x").into_iter().flatten().collect::<Vec<_>>(), x);
}

#[test]
fn series_columns_are_counts_statistics_and_times() {
    let columns =
        [column("bucket", ColumnType::Time), column("n", ColumnType::Count), column("mean", ColumnType::Number)];
    let lines = "{\"bucket\":\"2026-01-12\",\"n\":15,\"mean\":64.5}\n{\"bucket\":\"2026-01-12T13:00:00Z\",\"n\":9007199254740993,\"mean\":null}\n";
    let batch = written(&columns, lines).expect("a release");
    let buckets = batch.column(0).as_primitive::<TimestampMillisecondType>();
    let start = moment::parse("2026-01-12").expect("a day");
    assert_eq!(buckets.values(), &[start, start + 13 * 3_600_000]);
    assert_eq!(integers(&batch, "n"), [Some(15), Some(9_007_199_254_740_993)]);
    assert_eq!(doubles(&batch, "mean"), [Some(64.5), None]);
    for (cells, reason) in [
        ("\"n\":9223372036854775808", "64-bit"),
        ("\"n\":1.5", "64-bit"),
        ("\"mean\":1e999", "finite"),
        ("\"mean\":true", "finite"),
        ("\"bucket\":\"soon\"", "not a time"),
    ] {
        let error = written(&columns, &format!("{{{cells}}}\n")).expect_err("no value is dropped").to_string();
        assert!(error.contains(reason) && error.contains("out.parquet"), "{error}");
    }
}

fn number_cell() -> impl Strategy<Value = String> {
    let quoted = |text: String| {
        let mut out = String::new();
        push_quoted(&mut out, &text);
        out
    };
    prop_oneof![
        Just("null".to_owned()),
        Just("\"*\"".to_owned()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| {
            let mut out = String::new();
            push_shortest(&mut out, value);
            out
        }),
        (-99..99_i64, 0..99_i64).prop_map(|(low, width)| format!("\"{low}-{}\"", low + width)),
        (-99..99_i64, 1..99_i64, any::<bool>()).prop_map(|(low, width, closed)| {
            format!("\"[{low},{}.5{}\"", low + width, if closed { ']' } else { ')' })
        }),
        "[0-9a-z,)(-]{0,6}".prop_map(quoted),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn bounds_add_nothing_to_the_text_release(cells in prop::collection::vec(number_cell(), 1..20)) {
        let lines: String = cells.iter().map(|cell| format!("{{\"a\":{cell}}}\n")).collect();
        let text_release = written(&[column("a", ColumnType::Text)], &lines).expect("a release");
        let text = texts(&text_release, "a");
        let integer = written(&[column("a", bounded(BoundType::Integer))], &lines).expect("a release");
        prop_assert_eq!(&texts(&integer, "a"), &text);
        let float = written(&[column("a", bounded(BoundType::Float))], &lines).expect("a release");
        prop_assert_eq!(&texts(&float, "a"), &text);
        // A row with equal text has equal bounds.
        for (end, name) in ["a_min", "a_max"].into_iter().enumerate() {
            let of = |kind: BoundType, text: &Option<String>| text.as_deref().and_then(|text| kind.bounds(text)).map(|ends| ends[end]);
            let whole: Vec<Option<i64>> =
                text.iter().map(|text| of(BoundType::Integer, text).and_then(Bound::whole)).collect();
            prop_assert_eq!(integers(&integer, name), whole);
            let real: Vec<Option<f64>> = text.iter().map(|text| of(BoundType::Float, text).and_then(Bound::real)).collect();
            prop_assert_eq!(doubles(&float, name), real);
        }
    }
}
