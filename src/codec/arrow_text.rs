//! The textual form of one Arrow cell.

use std::fmt::Write as _;

use arrow::array::{Array, AsArray, downcast_dictionary_array};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::temporal_conversions as moment;

use crate::records::raw::Token;
use crate::telemetry::RejectionReason;

/// Whether cells of this type have a textual form.
pub(super) fn supported(kind: &DataType) -> bool {
    use DataType as D;
    match kind {
        D::Dictionary(_, values) => supported(values),
        D::List(item) | D::LargeList(item) | D::FixedSizeList(item, _) => supported(item.data_type()),
        D::Struct(members) => members.iter().all(|member| supported(member.data_type())),
        D::Map(entries, _) => supported(entries.data_type()),
        D::Interval(_)
        | D::Duration(_)
        | D::Union(..)
        | D::RunEndEncoded(..)
        | D::ListView(_)
        | D::LargeListView(_) => false,
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
pub(super) fn token<'a>(
    array: &'a dyn Array,
    row: usize,
    scratch: &'a mut String,
) -> Result<Token<'a>, RejectionReason> {
    use DataType as D;
    if array.is_null(row) {
        return Ok(Token::Null);
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
    Ok(match array.data_type() {
        D::Null => Token::Null,
        D::Dictionary(..) => {
            let (values, index) = dictionary_entry(array, row);
            return token(values, index, scratch);
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
        D::Binary => text(array.as_binary::<i32>().value(row))?,
        D::LargeBinary => text(array.as_binary::<i64>().value(row))?,
        D::BinaryView => text(array.as_binary_view().value(row))?,
        D::FixedSizeBinary(_) => text(array.as_fixed_size_binary().value(row))?,
        D::List(_) | D::LargeList(_) | D::FixedSizeList(..) | D::Struct(_) | D::Map(..) => {
            json(array, row, scratch)?;
            Token::Structure(scratch)
        }
        _ => {
            instant(array, row, scratch)?;
            Token::Text(scratch)
        }
    })
}

fn spell(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A `String` takes every text; `fmt::Error` comes from the sink alone.
    out.write_fmt(text).expect("writing to a string");
}

fn text(bytes: &[u8]) -> Result<Token<'_>, RejectionReason> {
    std::str::from_utf8(bytes).map(Token::Text).map_err(|_| RejectionReason::NotUtf8)
}

/// The shortest digits that give the same float back, always a JSON number; what is not finite is untyped text.
fn float<F: std::fmt::Debug + Into<f64> + Copy>(out: &mut String, value: F) -> Token<'_> {
    spell(out, format_args!("{value:?}"));
    if value.into().is_finite() { Token::Number(out) } else { Token::Untyped(out) }
}

/// Dates, times and timestamps in the manner of ISO 8601.
fn instant(array: &dyn Array, row: usize, out: &mut String) -> Result<(), RejectionReason> {
    use DataType as D;
    macro_rules! value {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(row)
        };
    }
    let outside = RejectionReason::MalformedRow;
    match array.data_type() {
        D::Date32 => {
            let date = moment::date32_to_datetime(value!(Date32Type)).ok_or(outside)?.date();
            spell(out, format_args!("{date}"));
        }
        D::Date64 => {
            let date = moment::date64_to_datetime(value!(Date64Type)).ok_or(outside)?.date();
            spell(out, format_args!("{date}"));
        }
        D::Time32(_) | D::Time64(_) => {
            let time = match array.data_type() {
                D::Time32(TimeUnit::Second) => moment::time32s_to_time(value!(Time32SecondType)),
                D::Time32(_) => moment::time32ms_to_time(value!(Time32MillisecondType)),
                D::Time64(TimeUnit::Microsecond) => moment::time64us_to_time(value!(Time64MicrosecondType)),
                _ => moment::time64ns_to_time(value!(Time64NanosecondType)),
            };
            spell(out, format_args!("{}", time.ok_or(outside)?.format("%H:%M:%S%.f")));
        }
        D::Timestamp(unit, zone) => {
            let at = match unit {
                TimeUnit::Second => moment::timestamp_s_to_datetime(value!(TimestampSecondType)),
                TimeUnit::Millisecond => moment::timestamp_ms_to_datetime(value!(TimestampMillisecondType)),
                TimeUnit::Microsecond => moment::timestamp_us_to_datetime(value!(TimestampMicrosecondType)),
                TimeUnit::Nanosecond => moment::timestamp_ns_to_datetime(value!(TimestampNanosecondType)),
            };
            // With a zone the column counts from the epoch in UTC, whatever the zone's name.
            let suffix = if zone.is_some() { "Z" } else { "" };
            spell(out, format_args!("{}{suffix}", at.ok_or(outside)?.format("%Y-%m-%dT%H:%M:%S%.f")));
        }
        // Types without a textual form are refused when the file is opened.
        _ => return Err(outside),
    }
    Ok(())
}

/// Writes a nested cell as JSON. Floats that are not finite have no JSON and become null.
fn json(array: &dyn Array, row: usize, out: &mut String) -> Result<(), RejectionReason> {
    use DataType as D;
    if array.is_null(row) {
        out.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        D::Dictionary(..) => {
            let (values, index) = dictionary_entry(array, row);
            json(values, index, out)
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
                json(column, row, out)?;
            }
            out.push('}');
            Ok(())
        }
        D::Map(..) => {
            let entries = array.as_map().value(row);
            out.push('{');
            for index in 0..entries.len() {
                if index > 0 {
                    out.push(',');
                }
                let mut key = String::new();
                json(entries.column(0), index, &mut key)?;
                // A key of JSON is text, whatever it was in the map.
                if key.starts_with('"') {
                    out.push_str(&key);
                } else {
                    quote(&key, out);
                }
                out.push(':');
                json(entries.column(1), index, out)?;
            }
            out.push('}');
            Ok(())
        }
        _ => {
            let mut scratch = String::new();
            match token(array, row, &mut scratch)? {
                Token::Number(text) | Token::Structure(text) => out.push_str(text),
                Token::Bool(value) => out.push_str(if value { "true" } else { "false" }),
                Token::Text(text) => quote(text, out),
                Token::Absent | Token::Null | Token::Untyped(_) => out.push_str("null"),
            }
            Ok(())
        }
    }
}

fn items(items: &dyn Array, out: &mut String) -> Result<(), RejectionReason> {
    out.push('[');
    for index in 0..items.len() {
        if index > 0 {
            out.push(',');
        }
        json(items, index, out)?;
    }
    out.push(']');
    Ok(())
}

fn quote(text: &str, out: &mut String) {
    spell(out, format_args!("{}", serde_json::Value::from(text)));
}
