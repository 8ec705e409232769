//! Text of one Arrow cell.

use std::fmt::Write as _;

use arrow::array::{Array, AsArray, downcast_dictionary_array};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::temporal_conversions as moment;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use throng_core::values::raw_batch::RawToken;

pub(super) fn has_textual_form(kind: &DataType) -> bool {
    use DataType as D;
    match kind {
        D::Dictionary(_, values) => has_textual_form(values),
        D::List(item) | D::LargeList(item) | D::FixedSizeList(item, _) => has_textual_form(item.data_type()),
        D::Struct(members) => members.iter().all(|member| has_textual_form(member.data_type())),
        D::Map(entries, _) => has_textual_form(entries.data_type()),
        // Intervals need the writer's schema.
        D::Interval(_) | D::Union(..) | D::RunEndEncoded(..) | D::ListView(_) | D::LargeListView(_) => false,
        _ => true,
    }
}

fn dictionary_entry(array: &dyn Array, row: usize) -> (&dyn Array, usize) {
    downcast_dictionary_array!(
        array => (array.values().as_ref(), array.key(row).expect("a valid key")),
        kind => unreachable!("{kind} is no dictionary")
    )
}

/// Computed text is written to `scratch`.
pub(super) fn token<'a>(array: &'a dyn Array, row: usize, scratch: &'a mut String) -> RawToken<'a> {
    use DataType as D;
    if array.is_null(row) {
        return RawToken::Null;
    }
    macro_rules! number {
        ($kind:ty) => {{
            append_formatted(scratch, format_args!("{}", array.as_primitive::<$kind>().value(row)));
            RawToken::Number(scratch)
        }};
    }
    macro_rules! decimal {
        ($kind:ty) => {{
            scratch.push_str(&array.as_primitive::<$kind>().value_as_string(row));
            RawToken::Number(scratch)
        }};
    }
    match array.data_type() {
        D::Null => RawToken::Null,
        D::Dictionary(..) => {
            let (values, index) = dictionary_entry(array, row);
            token(values, index, scratch)
        }
        D::Boolean => RawToken::Bool(array.as_boolean().value(row)),
        D::Int8 => number!(Int8Type),
        D::Int16 => number!(Int16Type),
        D::Int32 => number!(Int32Type),
        D::Int64 => number!(Int64Type),
        D::UInt8 => number!(UInt8Type),
        D::UInt16 => number!(UInt16Type),
        D::UInt32 => number!(UInt32Type),
        D::UInt64 => number!(UInt64Type),
        D::Float16 => float_token(scratch, array.as_primitive::<Float16Type>().value(row).to_f32()),
        D::Float32 => float_token(scratch, array.as_primitive::<Float32Type>().value(row)),
        D::Float64 => float_token(scratch, array.as_primitive::<Float64Type>().value(row)),
        D::Decimal32(..) => decimal!(Decimal32Type),
        D::Decimal64(..) => decimal!(Decimal64Type),
        D::Decimal128(..) => decimal!(Decimal128Type),
        D::Decimal256(..) => decimal!(Decimal256Type),
        D::Utf8 => RawToken::Text(array.as_string::<i32>().value(row)),
        D::LargeUtf8 => RawToken::Text(array.as_string::<i64>().value(row)),
        D::Utf8View => RawToken::Text(array.as_string_view().value(row)),
        D::Binary => bytes(array.as_binary::<i32>().value(row), scratch),
        D::LargeBinary => bytes(array.as_binary::<i64>().value(row), scratch),
        D::BinaryView => bytes(array.as_binary_view().value(row), scratch),
        D::FixedSizeBinary(FIXED_UUID_BYTES) => {
            let bytes = array.as_fixed_size_binary().value(row);
            uuid::Uuid::from_slice(bytes).map_or(RawToken::Null, |value| {
                append_formatted(scratch, format_args!("{value}"));
                RawToken::Text(scratch)
            })
        }
        D::FixedSizeBinary(_) => bytes(array.as_fixed_size_binary().value(row), scratch),
        D::List(_) | D::LargeList(_) | D::FixedSizeList(..) | D::Struct(_) | D::Map(..) => {
            append_nested_json(array, row, scratch);
            RawToken::Structure(scratch)
        }
        D::Duration(unit) => {
            let count = match unit {
                TimeUnit::Second => array.as_primitive::<DurationSecondType>().value(row),
                TimeUnit::Millisecond => array.as_primitive::<DurationMillisecondType>().value(row),
                TimeUnit::Microsecond => array.as_primitive::<DurationMicrosecondType>().value(row),
                TimeUnit::Nanosecond => array.as_primitive::<DurationNanosecondType>().value(row),
            };
            seconds(scratch, count, *unit);
            RawToken::Number(scratch)
        }
        _ => temporal_token(array, row, scratch),
    }
}

const FIXED_UUID_BYTES: i32 = 16;

fn append_formatted(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string");
}

fn bytes<'a>(bytes: &'a [u8], scratch: &'a mut String) -> RawToken<'a> {
    match std::str::from_utf8(bytes) {
        Ok(text) => RawToken::Text(text),
        Err(_) => {
            STANDARD.encode_string(bytes, scratch);
            RawToken::Text(scratch)
        }
    }
}

fn seconds(out: &mut String, count: i64, unit: TimeUnit) {
    let digits: usize = match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    let per_second = 10_u64.pow(digits as u32);
    let (whole, fraction) = (count.unsigned_abs() / per_second, count.unsigned_abs() % per_second);
    let sign = if count < 0 { "-" } else { "" };
    append_formatted(out, format_args!("{sign}{whole}"));
    if fraction > 0 {
        append_formatted(out, format_args!(".{fraction:0digits$}"));
        out.truncate(out.trim_end_matches('0').len());
    }
}

/// Writes the shortest exact digits; non-finite values are untyped text.
fn float_token<F: std::fmt::Debug + Into<f64> + Copy>(out: &mut String, value: F) -> RawToken<'_> {
    append_formatted(out, format_args!("{value:?}"));
    if value.into().is_finite() { RawToken::Number(out) } else { RawToken::Untyped(out) }
}

/// Writes ISO 8601. A count outside the calendar is untyped text, such as `infinity`.
fn temporal_token<'a>(array: &dyn Array, row: usize, out: &'a mut String) -> RawToken<'a> {
    use DataType as D;
    macro_rules! value {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(row)
        };
    }
    let (spelled, count, unit) = match array.data_type() {
        D::Date32 => {
            let days = value!(Date32Type);
            let count = if days.unsigned_abs() >= i32::MAX.unsigned_abs() {
                i64::from(days).signum() * i64::MAX
            } else {
                days.into()
            };
            (moment::date32_to_datetime(days).map(|at| at.date().to_string()), count, "days")
        }
        D::Date64 => {
            let millis = value!(Date64Type);
            (moment::date64_to_datetime(millis).map(|at| at.date().to_string()), millis, "ms")
        }
        D::Time32(_) | D::Time64(_) => {
            let (time, count) = match array.data_type() {
                D::Time32(TimeUnit::Second) => {
                    (moment::time32s_to_time(value!(Time32SecondType)), value!(Time32SecondType).into())
                }
                D::Time32(_) => {
                    (moment::time32ms_to_time(value!(Time32MillisecondType)), value!(Time32MillisecondType).into())
                }
                D::Time64(TimeUnit::Microsecond) => {
                    (moment::time64us_to_time(value!(Time64MicrosecondType)), value!(Time64MicrosecondType))
                }
                _ => (moment::time64ns_to_time(value!(Time64NanosecondType)), value!(Time64NanosecondType)),
            };
            (time.map(|time| time.format("%H:%M:%S%.f").to_string()), count, "since midnight")
        }
        D::Timestamp(unit, zone) => {
            let (at, count, name) = match unit {
                TimeUnit::Second => {
                    let count = value!(TimestampSecondType);
                    (moment::timestamp_s_to_datetime(count), count, "s")
                }
                TimeUnit::Millisecond => {
                    let count = value!(TimestampMillisecondType);
                    (moment::timestamp_ms_to_datetime(count), count, "ms")
                }
                TimeUnit::Microsecond => {
                    let count = value!(TimestampMicrosecondType);
                    (moment::timestamp_us_to_datetime(count), count, "us")
                }
                TimeUnit::Nanosecond => {
                    let count = value!(TimestampNanosecondType);
                    (moment::timestamp_ns_to_datetime(count), count, "ns")
                }
            };
            // A column with a time zone counts in UTC.
            let suffix = if zone.is_some() { "Z" } else { "" };
            // The extreme counts of nanoseconds are valid dates but mean infinity.
            let is_infinite = count.unsigned_abs() >= i64::MAX.unsigned_abs();
            let at = at.filter(|_| !is_infinite);
            (at.map(|at| format!("{}{suffix}", at.format("%Y-%m-%dT%H:%M:%S%.f"))), count, name)
        }
        // Refused when the file is opened.
        _ => return RawToken::Null,
    };
    match spelled {
        Some(text) => {
            out.push_str(&text);
            return RawToken::Text(out);
        }
        None if count.unsigned_abs() >= i64::MAX.unsigned_abs() => {
            out.push_str(if count < 0 { "-infinity" } else { "infinity" });
        }
        None => append_formatted(out, format_args!("{count} {unit}")),
    }
    RawToken::Untyped(out)
}

/// Non-finite floats are null.
fn append_nested_json(array: &dyn Array, row: usize, out: &mut String) {
    use DataType as D;
    if array.is_null(row) {
        out.push_str("null");
        return;
    }
    match array.data_type() {
        D::Dictionary(..) => {
            let (values, index) = dictionary_entry(array, row);
            append_nested_json(values, index, out);
        }
        D::List(_) => items(&array.as_list::<i32>().value(row), out),
        D::LargeList(_) => items(&array.as_list::<i64>().value(row), out),
        D::FixedSizeList(..) => items(&array.as_fixed_size_list().value(row), out),
        D::Struct(members) => {
            out.push('{');
            for (index, (member, column)) in members.iter().zip(array.as_struct().columns()).enumerate() {
                if index > 0 {
                    out.push(',');
                }
                append_quoted(member.name(), out);
                out.push(':');
                append_nested_json(column, row, out);
            }
            out.push('}');
        }
        D::Map(..) => {
            let entries = array.as_map().value(row);
            out.push('{');
            for index in 0..entries.len() {
                if index > 0 {
                    out.push(',');
                }
                let mut key = String::new();
                append_nested_json(entries.column(0), index, &mut key);
                if key.starts_with('"') {
                    out.push_str(&key);
                } else {
                    append_quoted(&key, out);
                }
                out.push(':');
                append_nested_json(entries.column(1), index, out);
            }
            out.push('}');
        }
        _ => {
            let mut scratch = String::new();
            match token(array, row, &mut scratch) {
                RawToken::Number(text) | RawToken::Structure(text) => out.push_str(text),
                RawToken::Bool(value) => out.push_str(if value { "true" } else { "false" }),
                RawToken::Text(text) => append_quoted(text, out),
                RawToken::Absent | RawToken::Null | RawToken::Untyped(_) => out.push_str("null"),
            }
        }
    }
}

fn items(items: &dyn Array, out: &mut String) {
    out.push('[');
    for index in 0..items.len() {
        if index > 0 {
            out.push(',');
        }
        append_nested_json(items, index, out);
    }
    out.push(']');
}

fn append_quoted(text: &str, out: &mut String) {
    append_formatted(out, format_args!("{}", serde_json::Value::from(text)));
}
