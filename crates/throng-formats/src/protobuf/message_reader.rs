//! Reader of Protobuf messages. The dynamic messages of `prost-reflect` merge repeated values and fail completely for
//! one invalid element.

use super::message_types::{
    FieldCardinality, MessageField, MessageTypeGraph, MessageTypeId, ProtobufSchemaError, ProtobufValueType,
    WellKnownType,
};
use crate::message_tree::{
    MessageTree, ObjectMember, ObjectTree, PathSelection, SelectedPaths, TreeRowWriter, ValueCount,
};
use crate::path_tree::PathNode;
use crate::record_decoder::{FieldPath, NumberedFields};
use crate::{DecodeLimits, RecordDecoder, UnknownCellPolicy};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::prost::encoding::{WireType, decode_key, decode_varint};
use prost_reflect::{Kind, MessageDescriptor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use throng_core::values::raw_batch::RawBatch;
use throng_core::values::rejection::RejectionReason;

const MALFORMED: RejectionReason = RejectionReason::MalformedProtobuf;

/// Decodes messages of one type.
#[derive(Debug)]
pub struct ProtobufCodec {
    shapes: MessageTypeGraph,
    paths: SelectedPaths,
    missing: Vec<usize>,
}

impl ProtobufCodec {
    pub(super) fn of(
        message: &MessageDescriptor,
        fields: &NumberedFields,
        limits: DecodeLimits,
        unknown: UnknownCellPolicy,
    ) -> Result<Self, ProtobufSchemaError> {
        let shapes = MessageTypeGraph::of(message)?;
        let (mut resolved, mut missing): (Vec<(usize, FieldPath)>, _) = (Vec::new(), Vec::new());
        for (attribute, field) in fields {
            let (field, found) = shapes.resolve(field);
            resolved.push((*attribute, field));
            if !found {
                missing.push(*attribute);
            }
        }
        Ok(Self { shapes, paths: SelectedPaths::new(&resolved, limits, unknown), missing })
    }

    /// Returns the approximate memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.shapes.bytes() + self.paths.bytes(self.shapes.max_field_count())
    }

    /// Returns the attributes without a field.
    #[must_use]
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// Returns `true` if some top-level field is not selected.
    #[must_use]
    pub fn drops(&self) -> bool {
        let root = &self.paths.root;
        let dropped = self.shapes.get(0).fields.iter().any(|field| root.child(&field.name).is_none());
        root.attributes.is_empty() && (dropped || root.is_leaf())
    }
}

impl RecordDecoder for ProtobufCodec {
    /// Each unselected field adds one to `into.unknown_cells`, even if repeated.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        if payload.len() > self.paths.limits.max_record_bytes {
            return Err(RejectionReason::Oversized);
        }
        fill(&self.shapes, &self.paths, payload, into)
    }
}

fn fill(
    shapes: &MessageTypeGraph,
    paths: &SelectedPaths,
    bytes: &[u8],
    batch: &mut RawBatch,
) -> Result<(), RejectionReason> {
    let mut message = ProtobufMessageReader::new(shapes, paths, paths.row(batch));
    message.fill(&ProtobufValueType::Message(0), bytes, &paths.root, 1)?;
    paths.explode(message.row, |row, id, bytes, node, depth| {
        ProtobufMessageReader::new(shapes, paths, row).fill(&ProtobufValueType::Message(id), bytes, node, depth)
    })
}

struct ProtobufMessageReader<'a, 'b> {
    shapes: &'a MessageTypeGraph,
    paths: &'a SelectedPaths,
    count: ValueCount,
    row: TreeRowWriter<'b, 'a>,
}

enum FieldState<'a> {
    Unseen,
    /// Present, and not selected or already written.
    Processed,
    One(MessageTree<'a>),
    List(Vec<MessageTree<'a>>, u32),
    Map(BTreeMap<Cow<'a, str>, MessageTree<'a>>, u32),
}

impl<'a, 'b> ProtobufMessageReader<'a, 'b> {
    fn new(shapes: &'a MessageTypeGraph, paths: &'a SelectedPaths, row: TreeRowWriter<'b, 'a>) -> Self {
        Self { shapes, paths, count: ValueCount::default(), row }
    }

    /// Sets the cells of a message field by field.
    fn fill(
        &mut self,
        of: &ProtobufValueType,
        bytes: &'a [u8],
        node: &'a PathNode,
        depth: usize,
    ) -> Result<(), RejectionReason> {
        let (&ProtobufValueType::Message(id), true) = (of, node.attributes.is_empty() && !node.is_array) else {
            return match &mut self.value(of, bytes, PathSelection::of(node), depth) {
                Ok(tree) => self.row.write_message_tree(node, tree, false),
                Err(reason) => Err(*reason),
            };
        };
        let (mut slots, dropped) = self.read_fields(id, bytes, PathSelection::Inside(node), depth, true)?;
        for (at, (field, slot)) in self.shapes.get(id).fields.iter().zip(&mut slots).enumerate() {
            if matches!(slot, FieldState::Processed) {
                continue;
            }
            if let Some(child) = node.field(id, at, &field.name) {
                self.count.register_value(true)?;
                self.row.write_message_tree(child, &mut whole_field(field, PathSelection::of(child), slot), false)?;
            }
        }
        self.row.drop_values(dropped, false)
    }

    fn message(
        &mut self,
        id: MessageTypeId,
        bytes: &'a [u8],
        want: PathSelection<'a>,
        depth: usize,
    ) -> Result<MessageTree<'a>, RejectionReason> {
        let (mut slots, dropped) = self.read_fields(id, bytes, want, depth, false)?;
        let shape = self.shapes.get(id);
        let mut members = Vec::with_capacity(want.max_member_count(slots.len()));
        for (at, (field, slot)) in shape.fields.iter().zip(&mut slots).enumerate() {
            let want = want.field(id, at, &field.name);
            if matches!(want, PathSelection::Nothing) {
                continue;
            }
            self.count.register_value(true)?;
            let (name, is_written) = (field.name.as_str().into(), !matches!(slot, FieldState::Unseen));
            members.push(ObjectMember { name, field: at as u32, is_written, value: whole_field(field, want, slot) });
        }
        let known = shape.well_known_type.filter(|_| matches!(want, PathSelection::All));
        let stands_for = known.map(|known| stands_for(known, &members));
        Ok(MessageTree::Object(Box::new(ObjectTree {
            record: Some(id),
            members,
            dropped,
            represented_value: stands_for,
        })))
    }

    /// Also returns the number of unselected fields. If `is_taken`, sets cells immediately.
    fn read_fields(
        &mut self,
        id: MessageTypeId,
        mut bytes: &'a [u8],
        want: PathSelection<'a>,
        depth: usize,
        is_taken: bool,
    ) -> Result<(Vec<FieldState<'a>>, u64), RejectionReason> {
        self.paths.check_depth(depth)?;
        let shape = self.shapes.get(id);
        want.bind(id, shape.fields.iter().map(|field| field.name.as_str()));
        let mut slots: Vec<FieldState<'a>> = shape.fields.iter().map(|_| FieldState::Unseen).collect();
        let mut oneofs = vec![false; shape.oneofs];
        let mut dropped = 0;
        while !bytes.is_empty() {
            self.count.register_value(false)?;
            let (number, wire, value) = next_field(&mut bytes)?;
            let Some(at) = shape.field_index(number) else {
                dropped += 1;
                continue;
            };
            let field = &shape.fields[at];
            // Readers would hide the first value.
            if field.oneof.is_some_and(|oneof| std::mem::replace(&mut oneofs[oneof], true)) {
                return Err(RejectionReason::DuplicateKey);
            }
            let slot = &mut slots[at];
            match (want.field(id, at, &field.name), &field.form) {
                (PathSelection::Nothing, _) => {
                    dropped += u64::from(matches!(slot, FieldState::Unseen));
                    *slot = FieldState::Processed;
                }
                (wanted, FieldCardinality::One { .. }) => {
                    if wire != field.of.wire() {
                        return Err(MALFORMED);
                    }
                    if !matches!(slot, FieldState::Unseen) {
                        return Err(RejectionReason::DuplicateKey);
                    }
                    *slot = match want {
                        PathSelection::Inside(node) if is_taken => {
                            let child = node.field(id, at, &field.name).ok_or(MALFORMED)?;
                            self.fill(&field.of, value, child, depth + 1)?;
                            FieldState::Processed
                        }
                        _ => FieldState::One(self.value(&field.of, value, wanted, depth + 1)?),
                    };
                }
                (wanted, FieldCardinality::List) => self.items(&field.of, wire, value, wanted, depth + 1, slot)?,
                (wanted, FieldCardinality::Map(key)) => {
                    self.entry(key, &field.of, wire, value, wanted, depth + 1, slot)?;
                }
            }
        }
        Ok((slots, dropped))
    }

    fn value(
        &mut self,
        of: &ProtobufValueType,
        bytes: &'a [u8],
        want: PathSelection<'a>,
        depth: usize,
    ) -> Result<MessageTree<'a>, RejectionReason> {
        self.count.register_value(true)?;
        match of {
            ProtobufValueType::Message(id) => self.message(*id, bytes, want, depth),
            // The pointers continue below this scalar.
            ProtobufValueType::Scalar(_) if !matches!(want, PathSelection::All) => Ok(MessageTree::Skipped),
            ProtobufValueType::Scalar(kind) => scalar(kind, bytes),
        }
    }

    /// Reads one item or several packed items.
    fn items(
        &mut self,
        of: &ProtobufValueType,
        wire: WireType,
        mut bytes: &'a [u8],
        want: PathSelection<'a>,
        depth: usize,
        slot: &mut FieldState<'a>,
    ) -> Result<(), RejectionReason> {
        let is_packed = wire != of.wire();
        if is_packed && wire != WireType::LengthDelimited {
            return Err(MALFORMED);
        }
        if matches!(slot, FieldState::Unseen) {
            *slot = FieldState::List(Vec::new(), 0);
        }
        let FieldState::List(items, behind) = slot else { return Err(MALFORMED) };
        let last = want.last_item();
        while !(is_packed && bytes.is_empty()) {
            let item = if is_packed { field_value(of.wire(), &mut bytes)? } else { bytes };
            let index = items.len();
            if want.is_record_array() && index >= self.paths.limits.max_elements {
                return Err(RejectionReason::TooManyElements);
            }
            if last.is_none_or(|last| index > last) {
                self.count.register_value(false)?;
                *behind += 1;
            } else {
                let wanted = want.item(index, self.paths.elements.as_ref());
                let read = match wanted {
                    PathSelection::Nothing => self.count.register_value(true).map(|()| MessageTree::Skipped),
                    PathSelection::Inside(_)
                        if let (true, ProtobufValueType::Message(id)) = (want.is_record_array(), of) =>
                    {
                        self.count.register_value(true).map(|()| MessageTree::Unread(*id as u32, depth as u32, item))
                    }
                    wanted => self.value(of, item, wanted, depth),
                };
                // An unreadable element is refused alone.
                items.push(if want.is_record_array() { read.unwrap_or_else(MessageTree::Refused) } else { read? });
            }
            if !is_packed {
                break;
            }
        }
        Ok(())
    }

    /// The fields of an entry have no fixed order.
    #[expect(clippy::too_many_arguments, reason = "the parts of one field")]
    fn entry(
        &mut self,
        key: &Kind,
        of: &ProtobufValueType,
        wire: WireType,
        mut bytes: &'a [u8],
        want: PathSelection<'a>,
        depth: usize,
        slot: &mut FieldState<'a>,
    ) -> Result<(), RejectionReason> {
        if wire != WireType::LengthDelimited {
            return Err(MALFORMED);
        }
        self.count.register_value(false)?;
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
        let key = of_key.map_or_else(|| Ok(scalar_default(key)), |bytes| scalar(key, bytes))?.into_key()?;
        if matches!(slot, FieldState::Unseen) {
            *slot = FieldState::Map(BTreeMap::new(), 0);
        }
        let FieldState::Map(entries, dropped) = slot else { return Err(MALFORMED) };
        let value = match (want.entry(&key), of, of_value) {
            (PathSelection::Nothing, ..) => {
                *dropped += 1;
                return Ok(());
            }
            (want, _, Some(bytes)) => self.value(of, bytes, want, depth)?,
            (want, ProtobufValueType::Message(_), None) => self.value(of, &[], want, depth)?,
            (PathSelection::All, ProtobufValueType::Scalar(kind), None) => scalar_default(kind),
            (_, ProtobufValueType::Scalar(_), None) => MessageTree::Absent,
        };
        match entries.insert(key, value) {
            None => Ok(()),
            Some(_) => Err(RejectionReason::DuplicateKey),
        }
    }
}

fn whole_field<'a>(field: &MessageField, want: PathSelection<'_>, slot: &mut FieldState<'a>) -> MessageTree<'a> {
    match (std::mem::replace(slot, FieldState::Processed), &field.form, &field.of) {
        (FieldState::One(value), ..) => value,
        (FieldState::List(items, behind), ..) => MessageTree::List(items, behind),
        (FieldState::Map(entries, dropped), ..) => {
            let member = |(name, value)| ObjectMember { name, field: 0, is_written: true, value };
            let members = entries.into_iter().map(member).collect();
            MessageTree::Object(Box::new(ObjectTree { members, dropped: dropped.into(), ..ObjectTree::default() }))
        }
        (_, FieldCardinality::List, _) => MessageTree::List(Vec::new(), 0),
        (_, FieldCardinality::Map(_), _) if matches!(want, PathSelection::All) => MessageTree::Object(Box::default()),
        (_, FieldCardinality::One { presence: false }, ProtobufValueType::Scalar(kind))
            if matches!(want, PathSelection::All) =>
        {
            scalar_default(kind)
        }
        _ => MessageTree::Absent,
    }
}

/// Returns field number, wire type and value bytes.
#[inline]
fn next_field<'a>(bytes: &mut &'a [u8]) -> Result<(u32, WireType, &'a [u8]), RejectionReason> {
    let (number, wire) = decode_key(bytes).map_err(|_| MALFORMED)?;
    Ok((number, wire, field_value(wire, bytes)?))
}

/// Refuses groups.
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

fn scalar<'a>(kind: &Kind, mut bytes: &'a [u8]) -> Result<MessageTree<'a>, RejectionReason> {
    let fixed32 = || <[u8; 4]>::try_from(bytes).map_err(|_| MALFORMED);
    let fixed64 = || <[u8; 8]>::try_from(bytes).map_err(|_| MALFORMED);
    let zigzag = |value: u64| (value >> 1).cast_signed() ^ -((value & 1).cast_signed());
    Ok(match kind {
        Kind::Double => MessageTree::Double(f64::from_le_bytes(fixed64()?)),
        Kind::Float => MessageTree::Single(f32::from_le_bytes(fixed32()?)),
        Kind::Fixed32 => MessageTree::Unsigned(u32::from_le_bytes(fixed32()?).into()),
        Kind::Fixed64 => MessageTree::Unsigned(u64::from_le_bytes(fixed64()?)),
        Kind::Sfixed32 => MessageTree::Integer(i32::from_le_bytes(fixed32()?).into()),
        Kind::Sfixed64 => MessageTree::Integer(i64::from_le_bytes(fixed64()?)),
        Kind::String => MessageTree::Text(std::str::from_utf8(bytes).map_err(|_| RejectionReason::NotUtf8)?.into()),
        Kind::Bytes => MessageTree::Text(STANDARD.encode(bytes).into()),
        Kind::Message(_) => MessageTree::Refused(MALFORMED),
        _ => {
            let value = decode_varint(&mut bytes).map_err(|_| MALFORMED)?;
            // Overlong varints are truncated to the lower bits.
            match kind {
                Kind::Int32 => MessageTree::Integer((value as i32).into()),
                Kind::Int64 => MessageTree::Integer(value.cast_signed()),
                Kind::Uint32 => MessageTree::Unsigned((value as u32).into()),
                Kind::Sint32 => MessageTree::Integer(zigzag((value as u32).into())),
                Kind::Sint64 => MessageTree::Integer(zigzag(value)),
                Kind::Bool => MessageTree::Bool(value != 0),
                Kind::Enum(_) => enum_name(kind, value as i32),
                _ => MessageTree::Unsigned(value),
            }
        }
    })
}

/// Refuses unknown numbers.
fn enum_name(kind: &Kind, number: i32) -> MessageTree<'static> {
    let name = kind.as_enum().and_then(|of| of.get_value(number)).map(|value| value.name().to_owned());
    name.map_or(MessageTree::Refused(RejectionReason::WrongType), |name| MessageTree::Text(name.into()))
}

fn scalar_default(kind: &Kind) -> MessageTree<'static> {
    match kind {
        Kind::Bool => MessageTree::Bool(false),
        Kind::String | Kind::Bytes => MessageTree::Text("".into()),
        Kind::Enum(_) => enum_name(kind, 0),
        _ => MessageTree::Integer(0),
    }
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Returns a UTC time with milliseconds, seconds, or a wrapped value.
fn stands_for<'a>(known: WellKnownType, members: &[ObjectMember<'a>]) -> MessageTree<'a> {
    let refused = MessageTree::Refused(RejectionReason::WrongType);
    let (seconds, nanos) = match (known, members) {
        (WellKnownType::Wrapper, [value]) => return value.value.clone(),
        (_, [seconds, nanos]) => match (&seconds.value, &nanos.value) {
            (MessageTree::Integer(seconds), MessageTree::Integer(nanos)) => (*seconds, *nanos),
            (MessageTree::Integer(seconds), _) => (*seconds, 0),
            (_, MessageTree::Integer(nanos)) => (0, *nanos),
            _ => (0, 0),
        },
        _ => return refused,
    };
    if known == WellKnownType::Timestamp {
        let whole =
            (0..NANOS_PER_SECOND).contains(&nanos).then_some(seconds).and_then(|seconds| seconds.checked_mul(1_000));
        return MessageTree::of_millis(
            whole.and_then(|whole| whole.checked_add(nanos / 1_000_000)),
            MessageTree::Moment,
        );
    }
    // The type allows ±10,000 years; both parts have the same sign.
    let fits = seconds.unsigned_abs() <= 315_576_000_000 && nanos.unsigned_abs() < NANOS_PER_SECOND.unsigned_abs();
    if !fits || seconds.signum() * nanos.signum() < 0 {
        return refused;
    }
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    let text = format!("{sign}{}.{:09}", seconds.unsigned_abs(), nanos.unsigned_abs());
    MessageTree::Digits(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}
