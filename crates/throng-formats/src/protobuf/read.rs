//! One message as a tree of values: the bytes by `prost`, the types by `prost-reflect`.
//!
//! `prost-reflect`'s own message keeps the last of two values of a field, of a `oneof` and of a map's key, merges messages, and is
//! refused as a whole for one bad element; so the fields are taken here as they stand in the bytes.

use super::shape::{BadProtobuf, FieldShape, Form, Shapes, TypeId, ValueType, WellKnown};
use crate::path_tree::PathNode;
use crate::record::{Field, Fields};
use crate::tree::{Member, Object, Paths, Row, Tree, ValueCount, Want};
use crate::{Decoder, Limits, Unknown};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::prost::encoding::{WireType, decode_key, decode_varint};
use prost_reflect::{Kind, MessageDescriptor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use throng_core::values::raw::RawBatch;
use throng_core::values::rejection::RejectionReason;

const MALFORMED: RejectionReason = RejectionReason::MalformedProtobuf;

/// Decodes messages of one type.
#[derive(Debug)]
pub struct ProtobufCodec {
    shapes: Shapes,
    paths: Paths,
    /// Fields that nothing in the message leads to.
    missing: Vec<usize>,
}

impl ProtobufCodec {
    pub(super) fn of(
        message: &MessageDescriptor,
        fields: &Fields,
        limits: Limits,
        unknown: Unknown,
    ) -> Result<Self, BadProtobuf> {
        let shapes = Shapes::of(message)?;
        let (mut resolved, mut missing): (Vec<(usize, Field)>, _) = (Vec::new(), Vec::new());
        for (attribute, field) in fields {
            let (field, found) = shapes.resolve(field);
            resolved.push((*attribute, field));
            if !found {
                missing.push(*attribute);
            }
        }
        Ok(Self { shapes, paths: Paths::new(&resolved, limits, unknown), missing })
    }

    /// Bytes of memory that the codec takes, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.shapes.bytes() + self.paths.bytes(self.shapes.most_fields())
    }

    /// Those of its fields that nothing in the message leads to.
    #[must_use]
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// Whether a field at the top leads to no attribute.
    #[must_use]
    pub fn drops(&self) -> bool {
        let root = &self.paths.root;
        let dropped = self.shapes.get(0).fields.iter().any(|field| root.child(&field.name).is_none());
        root.attributes.is_empty() && (dropped || root.is_leaf())
    }
}

impl Decoder for ProtobufCodec {
    /// See [`Decoder::fill`]. A field that no attribute leads to adds one to `into.unknown_cells`, however often it is there.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        if payload.len() > self.paths.limits.max_record_bytes {
            return Err(RejectionReason::Oversized);
        }
        fill(&self.shapes, &self.paths, payload, into)
    }
}

/// Fills the row of `batch` opened last from the message that `bytes` are, to their end.
fn fill(shapes: &Shapes, paths: &Paths, bytes: &[u8], batch: &mut RawBatch) -> Result<(), RejectionReason> {
    let mut message = Reader::new(shapes, paths, paths.row(batch));
    message.fill(&ValueType::Message(0), bytes, &paths.root, 1)?;
    paths.explode(message.row, |row, id, bytes, node, depth| {
        Reader::new(shapes, paths, row).fill(&ValueType::Message(id), bytes, node, depth)
    })
}

struct Reader<'a, 'b> {
    shapes: &'a Shapes,
    paths: &'a Paths,
    count: ValueCount,
    row: Row<'b, 'a>,
}

/// A field of the message being read.
enum Slot<'a> {
    Unmet,
    /// It is there, and no attribute leads to it, or its cells have been taken.
    Met,
    One(Tree<'a>),
    List(Vec<Tree<'a>>, u32),
    Map(BTreeMap<Cow<'a, str>, Tree<'a>>, u32),
}

impl<'a, 'b> Reader<'a, 'b> {
    fn new(shapes: &'a Shapes, paths: &'a Paths, row: Row<'b, 'a>) -> Self {
        Self { shapes, paths, count: ValueCount::default(), row }
    }

    /// Takes the cells of a value: those of a message one by one, and of another value from the whole.
    fn fill(
        &mut self,
        of: &ValueType,
        bytes: &'a [u8],
        node: &'a PathNode,
        depth: usize,
    ) -> Result<(), RejectionReason> {
        let (&ValueType::Message(id), true) = (of, node.attributes.is_empty() && !node.is_array) else {
            return match &mut self.value(of, bytes, Want::of(node), depth) {
                Ok(tree) => self.row.take(node, tree, false),
                Err(reason) => Err(*reason),
            };
        };
        let (mut slots, dropped) = self.fields(id, bytes, Want::Inside(node), depth, true)?;
        for (at, (field, slot)) in self.shapes.get(id).fields.iter().zip(&mut slots).enumerate() {
            if matches!(slot, Slot::Met) {
                continue;
            }
            if let Some(child) = node.field(id, at, &field.name) {
                self.count.step(true)?;
                self.row.take(child, &mut whole_field(field, Want::of(child), slot), false)?;
            }
        }
        self.row.drop_values(dropped, false)
    }

    fn message(
        &mut self,
        id: TypeId,
        bytes: &'a [u8],
        want: Want<'a>,
        depth: usize,
    ) -> Result<Tree<'a>, RejectionReason> {
        let (mut slots, dropped) = self.fields(id, bytes, want, depth, false)?;
        let shape = self.shapes.get(id);
        let mut members = Vec::with_capacity(want.most_members(slots.len()));
        for (at, (field, slot)) in shape.fields.iter().zip(&mut slots).enumerate() {
            let want = want.field(id, at, &field.name);
            if matches!(want, Want::Nothing) {
                continue;
            }
            self.count.step(true)?;
            let (name, is_written) = (field.name.as_str().into(), !matches!(slot, Slot::Unmet));
            members.push(Member { name, field: at as u32, is_written, value: whole_field(field, want, slot) });
        }
        let known = shape.stands_for.filter(|_| matches!(want, Want::All));
        let stands_for = known.map(|known| stands_for(known, &members));
        Ok(Tree::Object(Box::new(Object { record: Some(id), members, dropped, stands_for })))
    }

    /// What is wanted of the fields of a message, and how many are there that nobody wants. Cells are taken at once where `is_taken`.
    fn fields(
        &mut self,
        id: TypeId,
        mut bytes: &'a [u8],
        want: Want<'a>,
        depth: usize,
        is_taken: bool,
    ) -> Result<(Vec<Slot<'a>>, u64), RejectionReason> {
        self.paths.check_depth(depth)?;
        let shape = self.shapes.get(id);
        want.bind(id, shape.fields.iter().map(|field| field.name.as_str()));
        let mut slots: Vec<Slot<'a>> = shape.fields.iter().map(|_| Slot::Unmet).collect();
        let mut oneofs = vec![false; shape.oneofs];
        let mut dropped = 0;
        while !bytes.is_empty() {
            self.count.step(false)?;
            let (number, wire, value) = next_field(&mut bytes)?;
            let Some(at) = shape.place(number) else {
                dropped += 1;
                continue;
            };
            let field = &shape.fields[at];
            // The last would count, and the first be hidden: no serializer writes two.
            if field.oneof.is_some_and(|oneof| std::mem::replace(&mut oneofs[oneof], true)) {
                return Err(RejectionReason::DuplicateKey);
            }
            let slot = &mut slots[at];
            match (want.field(id, at, &field.name), &field.form) {
                (Want::Nothing, _) => {
                    dropped += u64::from(matches!(slot, Slot::Unmet));
                    *slot = Slot::Met;
                }
                (wanted, Form::One { .. }) => {
                    if wire != field.of.wire() {
                        return Err(MALFORMED);
                    }
                    if !matches!(slot, Slot::Unmet) {
                        return Err(RejectionReason::DuplicateKey);
                    }
                    *slot = match want {
                        Want::Inside(node) if is_taken => {
                            let child = node.field(id, at, &field.name).ok_or(MALFORMED)?;
                            self.fill(&field.of, value, child, depth + 1)?;
                            Slot::Met
                        }
                        _ => Slot::One(self.value(&field.of, value, wanted, depth + 1)?),
                    };
                }
                (wanted, Form::List) => self.items(&field.of, wire, value, wanted, depth + 1, slot)?,
                (wanted, Form::Map(key)) => self.entry(key, &field.of, wire, value, wanted, depth + 1, slot)?,
            }
        }
        Ok((slots, dropped))
    }

    fn value(
        &mut self,
        of: &ValueType,
        bytes: &'a [u8],
        want: Want<'a>,
        depth: usize,
    ) -> Result<Tree<'a>, RejectionReason> {
        self.count.step(true)?;
        match of {
            ValueType::Message(id) => self.message(*id, bytes, want, depth),
            // The pointers lead further down.
            ValueType::Scalar(_) if !matches!(want, Want::All) => Ok(Tree::Skipped),
            ValueType::Scalar(kind) => scalar(kind, bytes),
        }
    }

    /// The items of a list that are in one place: one, or several that are packed.
    fn items(
        &mut self,
        of: &ValueType,
        wire: WireType,
        mut bytes: &'a [u8],
        want: Want<'a>,
        depth: usize,
        slot: &mut Slot<'a>,
    ) -> Result<(), RejectionReason> {
        let is_packed = wire != of.wire();
        if is_packed && wire != WireType::LengthDelimited {
            return Err(MALFORMED);
        }
        if matches!(slot, Slot::Unmet) {
            *slot = Slot::List(Vec::new(), 0);
        }
        let Slot::List(items, behind) = slot else { return Err(MALFORMED) };
        let last = want.last_item();
        while !(is_packed && bytes.is_empty()) {
            let item = if is_packed { field_value(of.wire(), &mut bytes)? } else { bytes };
            let index = items.len();
            if want.is_exploded() && index >= self.paths.limits.max_elements {
                return Err(RejectionReason::TooManyElements);
            }
            if last.is_none_or(|last| index > last) {
                self.count.step(false)?;
                *behind += 1;
            } else {
                let wanted = want.item(index, self.paths.elements.as_ref());
                let read = match wanted {
                    Want::Nothing => self.count.step(true).map(|()| Tree::Skipped),
                    Want::Inside(_) if let (true, ValueType::Message(id)) = (want.is_exploded(), of) => {
                        self.count.step(true).map(|()| Tree::Unread(*id as u32, depth as u32, item))
                    }
                    wanted => self.value(of, item, wanted, depth),
                };
                // An element that cannot be read is refused alone.
                items.push(if want.is_exploded() { read.unwrap_or_else(Tree::Refused) } else { read? });
            }
            if !is_packed {
                break;
            }
        }
        Ok(())
    }

    /// An entry of a map. A map has no order on the wire.
    #[expect(clippy::too_many_arguments, reason = "the parts of one field")]
    fn entry(
        &mut self,
        key: &Kind,
        of: &ValueType,
        wire: WireType,
        mut bytes: &'a [u8],
        want: Want<'a>,
        depth: usize,
        slot: &mut Slot<'a>,
    ) -> Result<(), RejectionReason> {
        if wire != WireType::LengthDelimited {
            return Err(MALFORMED);
        }
        self.count.step(false)?;
        let (mut of_key, mut of_value) = (None, None);
        while !bytes.is_empty() {
            let (number, wire, part) = next_field(&mut bytes)?;
            let (place, wanted) = match number {
                1 => (&mut of_key, key.wire_type()),
                2 => (&mut of_value, of.wire()),
                _ => continue,
            };
            if wire != wanted {
                return Err(MALFORMED);
            }
            if place.replace(part).is_some() {
                return Err(RejectionReason::DuplicateKey);
            }
        }
        let key = of_key.map_or_else(|| Ok(default(key)), |bytes| scalar(key, bytes))?.into_key()?;
        if matches!(slot, Slot::Unmet) {
            *slot = Slot::Map(BTreeMap::new(), 0);
        }
        let Slot::Map(entries, dropped) = slot else { return Err(MALFORMED) };
        let value = match (want.entry(&key), of, of_value) {
            (Want::Nothing, ..) => {
                *dropped += 1;
                return Ok(());
            }
            (want, _, Some(bytes)) => self.value(of, bytes, want, depth)?,
            (want, ValueType::Message(_), None) => self.value(of, &[], want, depth)?,
            (Want::All, ValueType::Scalar(kind), None) => default(kind),
            (_, ValueType::Scalar(_), None) => Tree::Absent,
        };
        match entries.insert(key, value) {
            None => Ok(()),
            Some(_) => Err(RejectionReason::DuplicateKey),
        }
    }
}

/// All that is there of a field, or what stands for it where nothing is.
fn whole_field<'a>(field: &FieldShape, want: Want<'_>, slot: &mut Slot<'a>) -> Tree<'a> {
    match (std::mem::replace(slot, Slot::Met), &field.form, &field.of) {
        (Slot::One(value), ..) => value,
        (Slot::List(items, behind), ..) => Tree::List(items, behind),
        (Slot::Map(entries, dropped), ..) => {
            let member = |(name, value)| Member { name, field: 0, is_written: true, value };
            let members = entries.into_iter().map(member).collect();
            Tree::Object(Box::new(Object { members, dropped: dropped.into(), ..Object::default() }))
        }
        (_, Form::List, _) => Tree::List(Vec::new(), 0),
        (_, Form::Map(_), _) if matches!(want, Want::All) => Tree::Object(Box::default()),
        (_, Form::One { presence: false }, ValueType::Scalar(kind)) if matches!(want, Want::All) => default(kind),
        _ => Tree::Absent,
    }
}

/// The number of the next field, how its value is written, and its bytes without their length.
#[inline]
fn next_field<'a>(bytes: &mut &'a [u8]) -> Result<(u32, WireType, &'a [u8]), RejectionReason> {
    let (number, wire) = decode_key(bytes).map_err(|_| MALFORMED)?;
    Ok((number, wire, field_value(wire, bytes)?))
}

/// Groups, which have long been given up, are malformed.
#[inline]
fn field_value<'a>(wire: WireType, bytes: &mut &'a [u8]) -> Result<&'a [u8], RejectionReason> {
    let before = *bytes;
    let length = match wire {
        WireType::Varint => {
            decode_varint(bytes).map_err(|_| MALFORMED)?;
            return Ok(&before[..before.len() - bytes.len()]);
        }
        WireType::SixtyFourBit => 8,
        WireType::ThirtyTwoBit => 4,
        WireType::LengthDelimited => {
            decode_varint(bytes).ok().and_then(|length| length.try_into().ok()).ok_or(MALFORMED)?
        }
        WireType::StartGroup | WireType::EndGroup => return Err(MALFORMED),
    };
    let (value, rest) = bytes.split_at_checked(length).ok_or(MALFORMED)?;
    *bytes = rest;
    Ok(value)
}

/// A scalar, whose bytes these are.
fn scalar<'a>(kind: &Kind, mut bytes: &'a [u8]) -> Result<Tree<'a>, RejectionReason> {
    let fixed32 = || <[u8; 4]>::try_from(bytes).map_err(|_| MALFORMED);
    let fixed64 = || <[u8; 8]>::try_from(bytes).map_err(|_| MALFORMED);
    let zigzag = |value: u64| (value >> 1).cast_signed() ^ -((value & 1).cast_signed());
    Ok(match kind {
        Kind::Double => Tree::Double(f64::from_le_bytes(fixed64()?)),
        Kind::Float => Tree::Single(f32::from_le_bytes(fixed32()?)),
        Kind::Fixed32 => Tree::Unsigned(u32::from_le_bytes(fixed32()?).into()),
        Kind::Fixed64 => Tree::Unsigned(u64::from_le_bytes(fixed64()?)),
        Kind::Sfixed32 => Tree::Integer(i32::from_le_bytes(fixed32()?).into()),
        Kind::Sfixed64 => Tree::Integer(i64::from_le_bytes(fixed64()?)),
        Kind::String => Tree::Text(std::str::from_utf8(bytes).map_err(|_| RejectionReason::NotUtf8)?.into()),
        Kind::Bytes => Tree::Text(STANDARD.encode(bytes).into()),
        Kind::Message(_) => Tree::Refused(MALFORMED),
        _ => {
            let value = decode_varint(&mut bytes).map_err(|_| MALFORMED)?;
            // Of a number that is written too long, the lower bits count.
            match kind {
                Kind::Int32 => Tree::Integer((value as i32).into()),
                Kind::Int64 => Tree::Integer(value.cast_signed()),
                Kind::Uint32 => Tree::Unsigned((value as u32).into()),
                Kind::Sint32 => Tree::Integer(zigzag((value as u32).into())),
                Kind::Sint64 => Tree::Integer(zigzag(value)),
                Kind::Bool => Tree::Bool(value != 0),
                Kind::Enum(_) => symbol(kind, value as i32),
                _ => Tree::Unsigned(value),
            }
        }
    })
}

/// A number of a later version of the enum is refused: no text stands for it, and the number itself would be another value.
fn symbol(kind: &Kind, number: i32) -> Tree<'static> {
    let name = kind.as_enum().and_then(|of| of.get_value(number)).map(|value| value.name().to_owned());
    name.map_or(Tree::Refused(RejectionReason::WrongType), |name| Tree::Text(name.into()))
}

/// The default of a scalar.
fn default(kind: &Kind) -> Tree<'static> {
    match kind {
        Kind::Bool => Tree::Bool(false),
        Kind::String | Kind::Bytes => Tree::Text("".into()),
        Kind::Enum(_) => symbol(kind, 0),
        _ => Tree::Integer(0),
    }
}

/// Parts of a second.
const NANOS: i64 = 1_000_000_000;

/// What a message with these members stands for: a moment in UTC to the millisecond, seconds, or a value.
fn stands_for<'a>(known: WellKnown, members: &[Member<'a>]) -> Tree<'a> {
    let refused = Tree::Refused(RejectionReason::WrongType);
    let (seconds, nanos) = match (known, members) {
        (WellKnown::Wrapper, [value]) => return value.value.clone(),
        (_, [seconds, nanos]) => match (&seconds.value, &nanos.value) {
            (Tree::Integer(seconds), Tree::Integer(nanos)) => (*seconds, *nanos),
            // With presence, and not there.
            (Tree::Integer(seconds), _) => (*seconds, 0),
            (_, Tree::Integer(nanos)) => (0, *nanos),
            _ => (0, 0),
        },
        _ => return refused,
    };
    if known == WellKnown::Timestamp {
        let whole = (0..NANOS).contains(&nanos).then_some(seconds).and_then(|seconds| seconds.checked_mul(1_000));
        return Tree::of_millis(whole.and_then(|whole| whole.checked_add(nanos / 1_000_000)), Tree::Moment);
    }
    // Ten thousand years, as the type allows; both parts have one sign.
    let fits = seconds.unsigned_abs() <= 315_576_000_000 && nanos.unsigned_abs() < NANOS.unsigned_abs();
    if !fits || seconds.signum() * nanos.signum() < 0 {
        return refused;
    }
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    let text = format!("{sign}{}.{:09}", seconds.unsigned_abs(), nanos.unsigned_abs());
    Tree::Digits(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}
