//! The text of a value: a cell's, or the JSON of a whole message, list or map.

use super::shape::{FieldShape, Form, Scalar, Shapes, TypeId, Value, WellKnown};
use super::wire::{Bytes, MALFORMED, Wire};
use crate::codec::cell::{Kind, push_float, push_single};
use crate::records::json::{push_quoted, push_shortest};
use crate::records::moment::{in_range, push_rfc3339};
use crate::telemetry::RejectionReason;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The longest JSON text of a structure. Fields that are not there are written all the same.
const MOST_TEXT: usize = 16 << 10;

/// Values in one record, read, passed over or written out.
const MOST_STEPS: usize = 1 << 20;

/// What one record may cost.
pub(super) struct Bounds {
    max_depth: usize,
    steps: usize,
}

impl Bounds {
    pub fn new(max_depth: usize) -> Self {
        Self { max_depth, steps: 0 }
    }

    /// To be called for every value: there are only so many in a record.
    #[inline]
    pub fn step(&mut self) -> Result<(), RejectionReason> {
        self.steps += 1;
        if self.steps > MOST_STEPS { Err(RejectionReason::Oversized) } else { Ok(()) }
    }

    /// Refuses messages that lie deeper than allowed; the record itself is depth 1.
    pub fn descend(&self, depth: usize) -> Result<(), RejectionReason> {
        if depth > self.max_depth { Err(RejectionReason::TooDeep) } else { Ok(()) }
    }
}

/// Appends a number. Writing to a String cannot fail.
fn number(out: &mut String, value: impl std::fmt::Display) -> Kind {
    let written = write!(out, "{value}");
    debug_assert!(written.is_ok());
    Kind::Number
}

/// Appends the text of the scalar that `bytes` begin with. Texts and bytes are all of `bytes`.
pub(super) fn scalar(
    shapes: &Shapes,
    of: Scalar,
    bytes: &mut Bytes<'_>,
    out: &mut String,
) -> Result<Kind, RejectionReason> {
    // Of a number that is written too long, the lower bits count.
    Ok(match of {
        Scalar::Double => push_float(out, f64::from_le_bytes(bytes.fixed64()?), push_shortest),
        Scalar::Float => push_float(out, f64::from(f32::from_le_bytes(bytes.fixed32()?)), push_single),
        Scalar::Int32 => number(out, bytes.varint()? as i32),
        Scalar::Int64 => number(out, bytes.varint()?.cast_signed()),
        Scalar::Uint32 => number(out, bytes.varint()? as u32),
        Scalar::Uint64 => number(out, bytes.varint()?),
        Scalar::Sint32 => {
            let value = bytes.varint()? as u32;
            number(out, (value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
        }
        Scalar::Sint64 => {
            let value = bytes.varint()?;
            number(out, (value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
        }
        Scalar::Fixed32 => number(out, u32::from_le_bytes(bytes.fixed32()?)),
        Scalar::Fixed64 => number(out, u64::from_le_bytes(bytes.fixed64()?)),
        Scalar::Sfixed32 => number(out, i32::from_le_bytes(bytes.fixed32()?)),
        Scalar::Sfixed64 => number(out, i64::from_le_bytes(bytes.fixed64()?)),
        Scalar::Bool => Kind::Bool(bytes.varint()? != 0),
        Scalar::String => {
            out.push_str(std::str::from_utf8(bytes.0).map_err(|_| RejectionReason::NotUtf8)?);
            Kind::Text
        }
        Scalar::Bytes => {
            STANDARD.encode_string(bytes.0, out);
            Kind::Text
        }
        Scalar::Enum(id) => {
            let number = bytes.varint()? as i32;
            // A number of a later version of the enum: no text stands for it, and the number itself would be another value.
            out.push_str(shapes.symbol(id, number).ok_or(RejectionReason::WrongType)?);
            Kind::Text
        }
    })
}

/// Appends the text of a scalar's default.
pub(super) fn default(shapes: &Shapes, of: Scalar, out: &mut String) -> Result<Kind, RejectionReason> {
    Ok(match of {
        Scalar::Bool => Kind::Bool(false),
        Scalar::String | Scalar::Bytes => Kind::Text,
        Scalar::Enum(id) => {
            out.push_str(shapes.symbol(id, 0).ok_or(RejectionReason::WrongType)?);
            Kind::Text
        }
        _ => {
            out.push('0');
            Kind::Number
        }
    })
}

/// Writes the text of a value of one field into `out`, which is cleared first. `bytes` are its bytes alone.
pub(super) fn cell(
    shapes: &Shapes,
    of: Value,
    mut bytes: Bytes<'_>,
    depth: usize,
    bounds: &mut Bounds,
    out: &mut String,
) -> Result<Kind, RejectionReason> {
    out.clear();
    match of {
        Value::Scalar(of) => scalar(shapes, of, &mut bytes, out),
        Value::Message(id) => {
            bounds.descend(depth)?;
            match shapes.get(id).stands_for {
                Some(known) => well_known(shapes, known, bytes, out),
                None => {
                    message(shapes, id, bytes, depth, bounds, out)?;
                    Ok(Kind::Structure)
                }
            }
        }
    }
}

/// Appends what a message stands for: a moment in UTC to the millisecond, seconds, or a value.
fn well_known(
    shapes: &Shapes,
    known: WellKnown,
    mut bytes: Bytes<'_>,
    out: &mut String,
) -> Result<Kind, RejectionReason> {
    let (mut first, mut second) = (None, None);
    while !bytes.is_empty() {
        let (number, wire) = bytes.tag()?;
        let value = bytes.value(wire)?;
        let (place, wanted) = match (number, known) {
            (1, WellKnown::Wrapper(of)) => (&mut first, of.wire()),
            (1, _) => (&mut first, Wire::Varint),
            (2, WellKnown::Timestamp | WellKnown::Duration) => (&mut second, Wire::Varint),
            _ => continue,
        };
        if wire != wanted {
            return Err(MALFORMED);
        }
        if place.replace(value).is_some() {
            return Err(RejectionReason::DuplicateKey);
        }
    }
    if let WellKnown::Wrapper(of) = known {
        return match first {
            Some(mut value) => scalar(shapes, of, &mut value, out),
            None => default(shapes, of, out),
        };
    }
    let seconds = first.map_or(Ok(0), |mut value| value.varint())?.cast_signed();
    let nanos = second.map_or(Ok(0), |mut value| value.varint())? as i32;
    if known == WellKnown::Timestamp {
        let whole = (0..NANOS).contains(&nanos).then_some(seconds).and_then(|seconds| seconds.checked_mul(1_000));
        let millis = whole.and_then(|whole| whole.checked_add(i64::from(nanos) / 1_000_000)).and_then(in_range);
        push_rfc3339(out, millis.ok_or(RejectionReason::WrongType)?);
        return Ok(Kind::Text);
    }
    // Ten thousand years, as the type allows; both parts have one sign.
    let fits = seconds.unsigned_abs() <= 315_576_000_000 && nanos.unsigned_abs() < NANOS.unsigned_abs();
    if !fits || seconds.signum() * i64::from(nanos).signum() < 0 {
        return Err(RejectionReason::WrongType);
    }
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    let written = write!(out, "{sign}{}.{:09}", seconds.unsigned_abs(), nanos.unsigned_abs());
    debug_assert!(written.is_ok());
    out.truncate(out.trim_end_matches('0').trim_end_matches('.').len());
    Ok(Kind::Number)
}

/// Parts of a second.
const NANOS: i32 = 1_000_000_000;

/// Appends a message as JSON: its fields by their numbers, null for one that is not there.
pub(super) fn message(
    shapes: &Shapes,
    id: TypeId,
    mut bytes: Bytes<'_>,
    depth: usize,
    bounds: &mut Bounds,
    out: &mut String,
) -> Result<(), RejectionReason> {
    bounds.descend(depth)?;
    let shape = shapes.get(id);
    let mut found: Vec<Occurrence<'_>> = Vec::new();
    while !bytes.is_empty() {
        bounds.step()?;
        let (number, wire) = bytes.tag()?;
        let value = bytes.value(wire)?;
        if let Some(field) = shape.place(number) {
            found.push(Occurrence { field, wire, value });
        }
    }
    // Stable: what is repeated keeps its order.
    found.sort_by_key(|occurrence| occurrence.field);
    let mut members = vec![false; shape.oneofs];
    let mut rest = found.as_slice();
    out.push('{');
    for (at, field) in shape.fields.iter().enumerate() {
        let (own, behind) = rest.split_at(rest.iter().take_while(|occurrence| occurrence.field == at).count());
        rest = behind;
        bounds.step()?;
        if out.len() > MOST_TEXT {
            return Err(RejectionReason::Oversized);
        }
        if let (Some(oneof), false) = (field.oneof, own.is_empty())
            && std::mem::replace(&mut members[oneof], true)
        {
            return Err(RejectionReason::DuplicateKey);
        }
        if at > 0 {
            out.push(',');
        }
        push_quoted(out, &field.name);
        out.push(':');
        whole_field(shapes, field, own, depth, bounds, out)?;
    }
    out.push('}');
    Ok(())
}

/// A field as it is there once.
#[derive(Clone, Copy)]
pub(super) struct Occurrence<'a> {
    pub field: usize,
    pub wire: Wire,
    pub value: Bytes<'a>,
}

/// Appends all that is there of a field as JSON. `depth` is that of the message around it.
pub(super) fn whole_field(
    shapes: &Shapes,
    field: &FieldShape,
    own: &[Occurrence<'_>],
    depth: usize,
    bounds: &mut Bounds,
    out: &mut String,
) -> Result<(), RejectionReason> {
    match field.form {
        Form::One { presence } => match (own, field.value) {
            ([], Value::Scalar(of)) if !presence => {
                let mut text = String::new();
                let kind = default(shapes, of, &mut text)?;
                push_json(kind, &text, out);
                Ok(())
            }
            ([], _) => {
                out.push_str("null");
                Ok(())
            }
            ([one], _) if one.wire == field.value.wire() => {
                push_value(shapes, field.value, one.value, depth + 1, bounds, out)
            }
            ([_], _) => Err(MALFORMED),
            _ => Err(RejectionReason::DuplicateKey),
        },
        Form::List => {
            out.push('[');
            let mut first = true;
            for one in own {
                for item in Items::of(field.value, one.wire, one.value)? {
                    if !std::mem::take(&mut first) {
                        out.push(',');
                    }
                    push_value(shapes, field.value, item?, depth + 1, bounds, out)?;
                }
            }
            out.push(']');
            Ok(())
        }
        Form::Map(key) => {
            // A map has no order on the wire.
            let mut entries: BTreeMap<String, Option<Bytes<'_>>> = BTreeMap::new();
            for one in own {
                bounds.step()?;
                let mut text = String::new();
                let value = entry(shapes, key, field.value, one.wire, one.value, &mut text)?;
                if entries.insert(text, value).is_some() {
                    return Err(RejectionReason::DuplicateKey);
                }
            }
            out.push('{');
            for (at, (key, value)) in entries.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_quoted(out, &key);
                out.push(':');
                push_entry(shapes, field.value, value, depth + 1, bounds, out)?;
            }
            out.push('}');
            Ok(())
        }
    }
}

fn push_entry(
    shapes: &Shapes,
    of: Value,
    value: Option<Bytes<'_>>,
    depth: usize,
    bounds: &mut Bounds,
    out: &mut String,
) -> Result<(), RejectionReason> {
    match (value, of) {
        (Some(value), _) => push_value(shapes, of, value, depth, bounds, out),
        (None, Value::Message(_)) => push_value(shapes, of, Bytes(&[]), depth, bounds, out),
        (None, Value::Scalar(of)) => {
            let mut text = String::new();
            let kind = default(shapes, of, &mut text)?;
            push_json(kind, &text, out);
            Ok(())
        }
    }
}

/// Appends one value as JSON. The text is bounded however many values have none.
fn push_value(
    shapes: &Shapes,
    of: Value,
    value: Bytes<'_>,
    depth: usize,
    bounds: &mut Bounds,
    out: &mut String,
) -> Result<(), RejectionReason> {
    bounds.step()?;
    if out.len() > MOST_TEXT {
        return Err(RejectionReason::Oversized);
    }
    if let Value::Message(id) = of
        && shapes.get(id).stands_for.is_none()
    {
        return message(shapes, id, value, depth, bounds, out);
    }
    let mut text = String::new();
    let kind = cell(shapes, of, value, depth, bounds, &mut text)?;
    push_json(kind, &text, out);
    Ok(())
}

fn push_json(kind: Kind, text: &str, out: &mut String) {
    match kind {
        Kind::Null => out.push_str("null"),
        Kind::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        Kind::Number | Kind::Structure => out.push_str(text),
        Kind::Text => push_quoted(out, text),
    }
}

/// The values of a repeated field that are there in one place: one, or several that are packed.
pub(super) struct Items<'a> {
    /// Of one item.
    wire: Wire,
    packed: bool,
    rest: Option<Bytes<'a>>,
}

impl<'a> Items<'a> {
    pub fn of(value: Value, wire: Wire, bytes: Bytes<'a>) -> Result<Self, RejectionReason> {
        let packed = wire != value.wire();
        if packed && wire != Wire::Delimited {
            Err(MALFORMED)
        } else {
            Ok(Self { wire: value.wire(), packed, rest: Some(bytes) })
        }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Bytes<'a>, RejectionReason>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.packed {
            return self.rest.take().map(Ok);
        }
        let rest = self.rest.as_mut().filter(|rest| !rest.is_empty())?;
        let item = rest.value(self.wire);
        if item.is_err() {
            self.rest = None;
        }
        Some(item)
    }
}

/// One entry of a map: writes the text of its key into `out`, which is cleared first, and gives its value, where there is one.
pub(super) fn entry<'a>(
    shapes: &Shapes,
    key: Scalar,
    value: Value,
    wire: Wire,
    mut bytes: Bytes<'a>,
    out: &mut String,
) -> Result<Option<Bytes<'a>>, RejectionReason> {
    if wire != Wire::Delimited {
        return Err(MALFORMED);
    }
    let (mut of_key, mut of_value) = (None, None);
    while !bytes.is_empty() {
        let (number, wire) = bytes.tag()?;
        let part = bytes.value(wire)?;
        let (place, wanted) = match number {
            1 => (&mut of_key, key.wire()),
            2 => (&mut of_value, value.wire()),
            _ => continue,
        };
        if wire != wanted {
            return Err(MALFORMED);
        }
        if place.replace(part).is_some() {
            return Err(RejectionReason::DuplicateKey);
        }
    }
    out.clear();
    let kind = match of_key {
        Some(mut text) => scalar(shapes, key, &mut text, out)?,
        None => default(shapes, key, out)?,
    };
    if let Kind::Bool(value) = kind {
        out.push_str(if value { "true" } else { "false" });
    }
    Ok(of_value)
}
