//! The text of a value: a cell's, or the JSON of a whole structure.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::read::Bytes;
use super::shape::{Shape, Shapes, Ticks, TypeId};
use crate::codec::cell::{Kind, push_float, push_single};
use crate::records::json::{push_quoted, push_shortest};
use crate::records::moment::{DAY, in_range, push_date, push_rfc3339};
use crate::telemetry::RejectionReason;

const MALFORMED: RejectionReason = RejectionReason::MalformedAvro;

/// Reads a value of type `id` and writes its text into `out`, which is cleared first. Unions give what is in them.
pub(super) fn cell(
    shapes: &Shapes,
    id: TypeId,
    bytes: &mut Bytes<'_>,
    depth: usize,
    out: &mut String,
) -> Result<Kind, RejectionReason> {
    out.clear();
    let number = |out: &mut String, value: i64| {
        // Writing to a String cannot fail.
        let written = write!(out, "{value}");
        debug_assert!(written.is_ok());
        Kind::Number
    };
    Ok(match shapes.get(id) {
        Shape::Null => Kind::Null,
        Shape::Boolean => Kind::Bool(bytes.boolean()?),
        Shape::Int => number(out, i64::from(bytes.int()?)),
        Shape::Long => number(out, bytes.long()?),
        Shape::Float => push_float(out, f64::from(bytes.float()?), push_single),
        Shape::Double => push_float(out, bytes.double()?, push_shortest),
        Shape::String => {
            out.push_str(bytes.string()?);
            Kind::Text
        }
        Shape::Bytes => {
            // A writer may make a string of what was bytes: the same text is the same value under both schemas.
            let raw = bytes.bytes()?;
            match std::str::from_utf8(raw) {
                Ok(text) => out.push_str(text),
                Err(_) => STANDARD.encode_string(raw, out),
            }
            Kind::Text
        }
        // As the same sixteen bytes are spelled where their logical type says that they are a UUID.
        Shape::Fixed(UUID) => {
            push_uuid(out, bytes.take(UUID)?)?;
            Kind::Text
        }
        Shape::Fixed(size) => {
            STANDARD.encode_string(bytes.take(*size)?, out);
            Kind::Text
        }
        Shape::Enum(symbols) => {
            out.push_str(&symbols[bytes.choice(symbols.len())?]);
            Kind::Text
        }
        Shape::Decimal { scale, size } => {
            let digits = match size {
                Some(size) => bytes.take(*size)?,
                None => bytes.bytes()?,
            };
            push_decimal(out, digits, *scale)?;
            Kind::Number
        }
        Shape::Uuid { fixed } => {
            push_uuid(out, if *fixed { bytes.take(UUID)? } else { bytes.bytes()? })?;
            Kind::Text
        }
        Shape::Date => {
            let millis = i64::from(bytes.int()?).checked_mul(DAY).and_then(in_range);
            push_date(out, millis.ok_or(RejectionReason::WrongType)?);
            Kind::Text
        }
        Shape::Time(ticks) => {
            let count = if *ticks == Ticks::Millis { i64::from(bytes.int()?) } else { bytes.long()? };
            push_time(out, ticks.millis(count))?;
            Kind::Text
        }
        Shape::Moment(ticks) => {
            let millis = in_range(ticks.millis(bytes.long()?)).ok_or(RejectionReason::WrongType)?;
            push_rfc3339(out, millis);
            Kind::Text
        }
        Shape::Union(branches) => {
            let branch = branches[bytes.choice(branches.len())?];
            // A union's branch is no union, so this goes one step down at most.
            return cell(shapes, branch, bytes, depth, out);
        }
        Shape::Record(_) | Shape::Array(_) | Shape::Map(_) => {
            json(shapes, id, bytes, depth, out)?;
            Kind::Structure
        }
    })
}

/// The longest JSON text of a structure. Items may take no bytes, and their names are written all the same.
const MOST_TEXT: usize = 16 << 10;

/// Reads a value of type `id` and appends it to `out` as JSON.
fn json(
    shapes: &Shapes,
    id: TypeId,
    bytes: &mut Bytes<'_>,
    depth: usize,
    out: &mut String,
) -> Result<(), RejectionReason> {
    bytes.step()?;
    if shapes.get(id).is_structure() {
        bytes.descend(depth)?;
    }
    if out.len() > MOST_TEXT {
        return Err(RejectionReason::Oversized);
    }
    match shapes.get(id) {
        Shape::Record(fields) => {
            out.push('{');
            for (at, (name, field)) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_quoted(out, name);
                out.push(':');
                json(shapes, *field, bytes, depth + 1, out)?;
            }
            out.push('}');
        }
        Shape::Union(branches) => {
            let branch = branches[bytes.choice(branches.len())?];
            json(shapes, branch, bytes, depth, out)?;
        }
        Shape::Array(items) => {
            out.push('[');
            let mut first = true;
            bytes.each_item(|bytes| {
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                json(shapes, *items, bytes, depth + 1, out)
            })?;
            out.push(']');
        }
        Shape::Map(values) => {
            out.push('{');
            let mut first = true;
            bytes.each_item(|bytes| {
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                push_quoted(out, bytes.string()?);
                out.push(':');
                json(shapes, *values, bytes, depth + 1, out)
            })?;
            out.push('}');
        }
        _ => {
            let mut text = String::new();
            match cell(shapes, id, bytes, depth, &mut text)? {
                Kind::Null => out.push_str("null"),
                Kind::Bool(value) => out.push_str(if value { "true" } else { "false" }),
                Kind::Number | Kind::Structure => out.push_str(&text),
                Kind::Text => push_quoted(out, &text),
            }
        }
    }
    Ok(())
}

/// Reads past a value of type `id`.
pub(super) fn skip(shapes: &Shapes, id: TypeId, bytes: &mut Bytes<'_>, depth: usize) -> Result<(), RejectionReason> {
    bytes.step()?;
    if shapes.get(id).is_structure() {
        bytes.descend(depth)?;
    }
    match shapes.get(id) {
        Shape::Null => {}
        Shape::Boolean => {
            bytes.boolean()?;
        }
        Shape::Int | Shape::Date | Shape::Time(Ticks::Millis) => {
            bytes.int()?;
        }
        Shape::Long | Shape::Time(_) | Shape::Moment(_) => {
            bytes.long()?;
        }
        Shape::Float => {
            bytes.take(4)?;
        }
        Shape::Double => {
            bytes.take(8)?;
        }
        Shape::String | Shape::Bytes | Shape::Decimal { size: None, .. } | Shape::Uuid { fixed: false } => {
            bytes.bytes()?;
        }
        Shape::Fixed(size) | Shape::Decimal { size: Some(size), .. } => {
            bytes.take(*size)?;
        }
        Shape::Uuid { fixed: true } => {
            bytes.take(16)?;
        }
        Shape::Enum(symbols) => {
            bytes.choice(symbols.len())?;
        }
        Shape::Union(branches) => {
            let branch = branches[bytes.choice(branches.len())?];
            skip(shapes, branch, bytes, depth)?;
        }
        Shape::Record(fields) => {
            for (_, field) in fields {
                skip(shapes, *field, bytes, depth + 1)?;
            }
        }
        Shape::Array(items) => loop {
            let count = bytes.block()?;
            if count == 0 {
                break;
            }
            // Nulls are no bytes.
            for _ in 0..if matches!(shapes.get(*items), Shape::Null) { 0 } else { count } {
                skip(shapes, *items, bytes, depth + 1)?;
            }
        },
        Shape::Map(values) => bytes.each_item(|bytes| {
            bytes.bytes()?;
            skip(shapes, *values, bytes, depth + 1)
        })?,
    }
    Ok(())
}

/// Bytes of a UUID.
const UUID: usize = 16;

fn push_uuid(out: &mut String, raw: &[u8]) -> Result<(), RejectionReason> {
    let raw: [u8; UUID] = raw.try_into().map_err(|_| MALFORMED)?;
    let written = write!(out, "{}", uuid::Uuid::from_bytes(raw));
    debug_assert!(written.is_ok());
    Ok(())
}

/// Appends a two's complement big-endian number of up to 16 bytes, divided by ten to the `scale`.
fn push_decimal(out: &mut String, digits: &[u8], scale: u32) -> Result<(), RejectionReason> {
    if digits.is_empty() || digits.len() > 16 || scale > 38 {
        return Err(RejectionReason::WrongType);
    }
    let negative = digits[0] & 0x80 != 0;
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[16 - digits.len()..].copy_from_slice(digits);
    let unscaled = i128::from_be_bytes(wide);
    let power = 10_u128.pow(scale);
    let (whole, fraction) = (unscaled.unsigned_abs() / power, unscaled.unsigned_abs() % power);
    let sign = if negative { "-" } else { "" };
    let written = if scale == 0 {
        write!(out, "{sign}{whole}")
    } else {
        write!(out, "{sign}{whole}.{fraction:0width$}", width = scale as usize)
    };
    debug_assert!(written.is_ok());
    Ok(())
}

/// Appends `10:05:07.250`.
fn push_time(out: &mut String, millis: i64) -> Result<(), RejectionReason> {
    if !(0..DAY).contains(&millis) {
        return Err(RejectionReason::WrongType);
    }
    let (seconds, fraction) = (millis / 1_000, millis % 1_000);
    let written = write!(out, "{:02}:{:02}:{:02}.{fraction:03}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    debug_assert!(written.is_ok());
    Ok(())
}
