//! The textual form of one Arrow cell.

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

use throng_core::values::raw::Token;

/// Whether cells of this type have a textual form.
pub(super) fn supported(kind: &DataType) -> bool {
    use DataType as D;
    match kind {
        D::Dictionary(_, values) => supported(values),
        D::List(item) | D::LargeList(item) | D::FixedSizeList(item, _) => supported(item.data_type()),
        D::Struct(members) => members.iter().all(|member| supported(member.data_type())),
        D::Map(entries, _) => supported(entries.data_type()),
        // Without the schema of its writer, the months of an interval are lost.
        D::Interval(_) | D::Union(..) | D::RunEndEncoded(..) | D::ListView(_) | D::LargeListView(_) => false,
        _ => true,
    }
}

/// Returns the values of a dictionary and the index among them that `row` refers to; `row` is not null.
fn dictionary_entry(array: &dyn Array, row: usize) -> (&dyn Array, usize) {
    downcast_dictionary_array!(
        array => (array.values().as_ref(), array.key(row).expect("a valid key")),
        kind => unreachable!("{kind} is no dictionary")
    )
}

/// The cell at `row` as a token; texts that the column does not hold as such are written to `scratch`.
pub(super) fn token<'a>(array: &'a dyn Array, row: usize, scratch: &'a mut String) -> Token<'a> {
    use DataType as D;
    if array.is_null(row) {
        return Token::Null;
    }
    macro_rules! number {
        ($kind:ty) => {{
            spell(scratch, format_args!("{}", array.as_primitive::<$kind>().value(row)));
            Token::Number(scratch)
        }};
    }
    macro_rules! decimal {
        ($kind:ty) => {{
            scratch.push_str(&array.as_primitive::<$kind>().value_as_string(row));
            Token::Number(scratch)
        }};
    }
    match array.data_type() {
        D::Null => Token::Null,
        D::Dictionary(..) => {
            let (values, index) = dictionary_entry(array, row);
            token(values, index, scratch)
        }
        D::Boolean => Token::Bool(array.as_boolean().value(row)),
        D::Int8 => number!(Int8Type),
        D::Int16 => number!(Int16Type),
        D::Int32 => number!(Int32Type),
        D::Int64 => number!(Int64Type),
        D::UInt8 => number!(UInt8Type),
        D::UInt16 => number!(UInt16Type),
        D::UInt32 => number!(UInt32Type),
        D::UInt64 => number!(UInt64Type),
        D::Float16 => float(scratch, array.as_primitive::<Float16Type>().value(row).to_f32()),
        D::Float32 => float(scratch, array.as_primitive::<Float32Type>().value(row)),
        D::Float64 => float(scratch, array.as_primitive::<Float64Type>().value(row)),
        D::Decimal32(..) => decimal!(Decimal32Type),
        D::Decimal64(..) => decimal!(Decimal64Type),
        D::Decimal128(..) => decimal!(Decimal128Type),
        D::Decimal256(..) => decimal!(Decimal256Type),
        D::Utf8 => Token::Text(array.as_string::<i32>().value(row)),
        D::LargeUtf8 => Token::Text(array.as_string::<i64>().value(row)),
        D::Utf8View => Token::Text(array.as_string_view().value(row)),
        D::Binary => bytes(array.as_binary::<i32>().value(row), scratch),
        D::LargeBinary => bytes(array.as_binary::<i64>().value(row), scratch),
        D::BinaryView => bytes(array.as_binary_view().value(row), scratch),
        D::FixedSizeBinary(UUID) => {
            let bytes = array.as_fixed_size_binary().value(row);
            uuid::Uuid::from_slice(bytes).map_or(Token::Null, |value| {
                spell(scratch, format_args!("{value}"));
                Token::Text(scratch)
            })
        }
        D::FixedSizeBinary(_) => bytes(array.as_fixed_size_binary().value(row), scratch),
        D::List(_) | D::LargeList(_) | D::FixedSizeList(..) | D::Struct(_) | D::Map(..) => {
            json(array, row, scratch);
            Token::Structure(scratch)
        }
        D::Duration(unit) => {
            let count = match unit {
                TimeUnit::Second => array.as_primitive::<DurationSecondType>().value(row),
                TimeUnit::Millisecond => array.as_primitive::<DurationMillisecondType>().value(row),
                TimeUnit::Microsecond => array.as_primitive::<DurationMicrosecondType>().value(row),
                TimeUnit::Nanosecond => array.as_primitive::<DurationNanosecondType>().value(row),
            };
            seconds(scratch, count, *unit);
            Token::Number(scratch)
        }
        _ => instant(array, row, scratch),
    }
}

/// Bytes of a UUID.
const UUID: i32 = 16;

fn spell(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A `String` takes every text; `fmt::Error` comes from the sink alone.
    out.write_fmt(text).expect("writing to a string");
}

/// Text where the bytes are text, else Base64, as for Avro.
fn bytes<'a>(bytes: &'a [u8], scratch: &'a mut String) -> Token<'a> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Token::Text(text),
        Err(_) => {
            STANDARD.encode_string(bytes, scratch);
            Token::Text(scratch)
        }
    }
}

/// A duration as a number of seconds.
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
    spell(out, format_args!("{sign}{whole}"));
    if fraction > 0 {
        spell(out, format_args!(".{fraction:0digits$}"));
        out.truncate(out.trim_end_matches('0').len());
    }
}

/// The shortest digits that give the same float back, always a JSON number; what is not finite is untyped text.
fn float<F: std::fmt::Debug + Into<f64> + Copy>(out: &mut String, value: F) -> Token<'_> {
    spell(out, format_args!("{value:?}"));
    if value.into().is_finite() { Token::Number(out) } else { Token::Untyped(out) }
}

/// Dates, times and timestamps in the manner of ISO 8601. A count outside the calendar is untyped text, as NaN is among numbers:
/// `infinity` and `-infinity` as databases write them, else the count with its unit.
fn instant<'a>(array: &dyn Array, row: usize, out: &'a mut String) -> Token<'a> {
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
            // With a zone the column counts from the epoch in UTC, whatever the zone's name.
            let suffix = if zone.is_some() { "Z" } else { "" };
            // Of nanoseconds the ends of the count are in the calendar, and say that there is no end all the same.
            let is_infinite = count.unsigned_abs() >= i64::MAX.unsigned_abs();
            let at = at.filter(|_| !is_infinite);
            (at.map(|at| format!("{}{suffix}", at.format("%Y-%m-%dT%H:%M:%S%.f"))), count, name)
        }
        // Types without a textual form are refused when the file is opened.
        _ => return Token::Null,
    };
    match spelled {
        Some(text) => {
            out.push_str(&text);
            return Token::Text(out);
        }
        None if count.unsigned_abs() >= i64::MAX.unsigned_abs() => {
            out.push_str(if count < 0 { "-infinity" } else { "infinity" });
        }
        None => spell(out, format_args!("{count} {unit}")),
    }
    Token::Untyped(out)
}

/// Writes a nested cell as JSON. Floats that are not finite have no JSON and become null.
fn json(array: &dyn Array, row: usize, out: &mut String) {
    use DataType as D;
    if array.is_null(row) {
        out.push_str("null");
        return;
    }
    match array.data_type() {
        D::Dictionary(..) => {
            let (values, index) = dictionary_entry(array, row);
            json(values, index, out);
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
                quote(member.name(), out);
                out.push(':');
                json(column, row, out);
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
                json(entries.column(0), index, &mut key);
                // A key of JSON is text, whatever it was in the map.
                if key.starts_with('"') {
                    out.push_str(&key);
                } else {
                    quote(&key, out);
                }
                out.push(':');
                json(entries.column(1), index, out);
            }
            out.push('}');
        }
        _ => {
            let mut scratch = String::new();
            match token(array, row, &mut scratch) {
                Token::Number(text) | Token::Structure(text) => out.push_str(text),
                Token::Bool(value) => out.push_str(if value { "true" } else { "false" }),
                Token::Text(text) => quote(text, out),
                Token::Absent | Token::Null | Token::Untyped(_) => out.push_str("null"),
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
        json(items, index, out);
    }
    out.push(']');
}

fn quote(text: &str, out: &mut String) {
    spell(out, format_args!("{}", serde_json::Value::from(text)));
}
