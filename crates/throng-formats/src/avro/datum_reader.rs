//! Reader of Avro data. `apache-avro` is slower (docs/performance.md), drops repeated map keys, accepts truncated data,
//! and allocates without limit.

use super::avro_types::{AvroType, AvroTypeGraph, AvroTypeId, TimeUnitTicks};
use crate::message_tree::{
    MessageTree, ObjectMember, ObjectTree, PathSelection, SelectedPaths, TreeRowWriter, ValueCount,
};
use crate::path_tree::PathNode;
use crate::typed_lines::decode_zigzag;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throng_core::values::moment::DAY;
use throng_core::values::raw_batch::RawBatch;
use throng_core::values::rejection::RejectionReason;

const MALFORMED: RejectionReason = RejectionReason::MalformedAvro;

const AVRO_UUID_BYTES: usize = 16;

pub(super) fn fill(
    shapes: &AvroTypeGraph,
    paths: &SelectedPaths,
    bytes: &[u8],
    batch: &mut RawBatch,
) -> Result<(), RejectionReason> {
    let mut message = DatumReader::new(shapes, paths, bytes, paths.row(batch));
    message.fill(shapes.root(), &paths.root, 1)?;
    if !message.bytes.is_empty() {
        return Err(MALFORMED);
    }
    paths.explode(message.row, |row, id, bytes, node, depth| {
        DatumReader::new(shapes, paths, bytes, row).fill(id, node, depth)
    })
}

struct DatumReader<'a, 'b> {
    shapes: &'a AvroTypeGraph,
    paths: &'a SelectedPaths,
    bytes: &'a [u8],
    count: ValueCount,
    row: TreeRowWriter<'b, 'a>,
}

impl<'a, 'b> DatumReader<'a, 'b> {
    fn new(shapes: &'a AvroTypeGraph, paths: &'a SelectedPaths, bytes: &'a [u8], row: TreeRowWriter<'b, 'a>) -> Self {
        Self { shapes, paths, bytes, count: ValueCount::default(), row }
    }

    /// Sets the cells of a record field by field.
    fn fill(&mut self, id: AvroTypeId, node: &'a PathNode, depth: usize) -> Result<(), RejectionReason> {
        match self.shapes.get(id) {
            AvroType::Record(fields) if node.attributes.is_empty() && !node.is_array => {
                self.count.register_value(true)?;
                self.paths.check_depth(depth)?;
                node.bind(id, fields.iter().map(|(name, _)| name.as_str()));
                for (field, (name, of)) in fields.iter().enumerate() {
                    match node.field(id, field, name) {
                        Some(child) => self.fill(*of, child, depth + 1)?,
                        None => {
                            self.skip(*of, depth + 1)?;
                            self.row.drop_values(1, false)?;
                        }
                    }
                }
                Ok(())
            }
            AvroType::Union(branches) => {
                let branch = branches[self.read_choice(branches.len())?];
                self.fill(branch, node, depth)
            }
            _ => match &mut self.value(id, PathSelection::of(node), depth) {
                Ok(tree) => self.row.write_message_tree(node, tree, false),
                Err(reason) => Err(*reason),
            },
        }
    }

    /// Reads the next value; a structure has `depth`.
    fn value(
        &mut self,
        id: AvroTypeId,
        want: PathSelection<'a>,
        depth: usize,
    ) -> Result<MessageTree<'a>, RejectionReason> {
        self.count.register_value(true)?;
        match self.shapes.get(id) {
            AvroType::Union(branches) => {
                let branch = branches[self.read_choice(branches.len())?];
                // A branch is never a union.
                self.value(branch, want, depth)
            }
            AvroType::Record(fields) => self.record(id, fields, want, depth),
            AvroType::Array(items) => self.list(*items, want, depth),
            AvroType::Map(values) => self.map(*values, want, depth),
            scalar => self.scalar(scalar),
        }
    }

    #[inline]
    fn scalar(&mut self, shape: &'a AvroType) -> Result<MessageTree<'a>, RejectionReason> {
        let spelled = |bytes| Ok(spelled(shape, bytes));
        match shape {
            AvroType::Boolean => self.boolean().map(MessageTree::Bool),
            AvroType::Int => self.int().map(MessageTree::Integer),
            AvroType::Long => self.long().map(MessageTree::Integer),
            AvroType::Float => self.array().map(|bytes| MessageTree::Single(f32::from_le_bytes(bytes))),
            AvroType::Double => self.array().map(|bytes| MessageTree::Double(f64::from_le_bytes(bytes))),
            AvroType::Date => self.int().map(|days| MessageTree::of_millis(days.checked_mul(DAY), MessageTree::Date)),
            AvroType::Time(ticks) => {
                let count = if *ticks == TimeUnitTicks::Millis { self.int()? } else { self.long()? };
                let millis = Some(ticks.millis(count)).filter(|millis| (0..DAY).contains(millis));
                Ok(MessageTree::of_millis(millis, MessageTree::Time))
            }
            AvroType::Moment(ticks) => {
                self.long().map(|count| MessageTree::of_millis(Some(ticks.millis(count)), MessageTree::Moment))
            }
            AvroType::String => self.text().map(|text| MessageTree::Text(text.into())),
            AvroType::Bytes | AvroType::Decimal { size: None, .. } | AvroType::Uuid => {
                self.read_length_prefixed().and_then(spelled)
            }
            AvroType::Fixed(size) | AvroType::Decimal { size: Some(size), .. } => self.take(*size).and_then(spelled),
            AvroType::Enum(symbols) => {
                self.read_choice(symbols.len()).map(|symbol| MessageTree::Text(symbols[symbol].as_str().into()))
            }
            _ => Ok(MessageTree::Null),
        }
    }

    fn skip(&mut self, id: AvroTypeId, depth: usize) -> Result<(), RejectionReason> {
        self.count.register_value(false)?;
        match self.shapes.get(id) {
            AvroType::Null => Ok(()),
            AvroType::Boolean => self.boolean().map(drop),
            AvroType::Int | AvroType::Date | AvroType::Time(TimeUnitTicks::Millis) => self.int().map(drop),
            AvroType::Long | AvroType::Time(_) | AvroType::Moment(_) => self.long().map(drop),
            AvroType::Float => self.take(4).map(drop),
            AvroType::Double => self.take(8).map(drop),
            AvroType::String => self.text().map(drop),
            AvroType::Bytes | AvroType::Decimal { size: None, .. } | AvroType::Uuid => {
                self.read_length_prefixed().map(drop)
            }
            AvroType::Fixed(size) | AvroType::Decimal { size: Some(size), .. } => self.take(*size).map(drop),
            AvroType::Enum(symbols) => self.read_choice(symbols.len()).map(drop),
            AvroType::Union(branches) => {
                let branch = branches[self.read_choice(branches.len())?];
                self.skip(branch, depth)
            }
            AvroType::Record(fields) => {
                self.paths.check_depth(depth)?;
                fields.iter().try_for_each(|(_, field)| self.skip(*field, depth + 1))
            }
            AvroType::Array(items) => self.items(depth, |reader| reader.skip(*items, depth + 1)),
            AvroType::Map(values) => self.items(depth, |reader| {
                reader.text()?;
                reader.skip(*values, depth + 1)
            }),
        }
    }

    fn record(
        &mut self,
        record: AvroTypeId,
        fields: &'a [(String, AvroTypeId)],
        want: PathSelection<'a>,
        depth: usize,
    ) -> Result<MessageTree<'a>, RejectionReason> {
        self.paths.check_depth(depth)?;
        want.bind(record, fields.iter().map(|(name, _)| name.as_str()));
        let mut object = ObjectTree { record: Some(record), ..ObjectTree::default() };
        object.members.reserve_exact(want.max_member_count(fields.len()));
        for (field, (name, id)) in fields.iter().enumerate() {
            let want = want.field(record, field, name);
            self.member(&mut object, name, field, *id, want, depth)?;
        }
        Ok(MessageTree::Object(Box::new(object)))
    }

    fn map(
        &mut self,
        values: AvroTypeId,
        want: PathSelection<'a>,
        depth: usize,
    ) -> Result<MessageTree<'a>, RejectionReason> {
        let mut object = ObjectTree::default();
        self.items(depth, |reader| {
            let key = reader.text()?;
            reader.member(&mut object, key, 0, values, want.entry(key), depth)
        })?;
        // Other readers would hide the first of two entries.
        if matches!(want, PathSelection::Inside(_)) {
            let mut keys: Vec<&str> = object.members.iter().map(|member| &*member.name).collect();
            keys.sort_unstable();
            if keys.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(RejectionReason::DuplicateKey);
            }
        }
        Ok(MessageTree::Object(Box::new(object)))
    }

    fn member(
        &mut self,
        object: &mut ObjectTree<'a>,
        name: &'a str,
        field: usize,
        id: AvroTypeId,
        want: PathSelection<'a>,
        depth: usize,
    ) -> Result<(), RejectionReason> {
        if matches!(want, PathSelection::Nothing) {
            object.dropped += 1;
            return self.skip(id, depth + 1);
        }
        let value = self.value(id, want, depth + 1)?;
        object.members.push(ObjectMember { name: name.into(), field: field as u32, is_written: true, value });
        Ok(())
    }

    fn list(
        &mut self,
        of: AvroTypeId,
        want: PathSelection<'a>,
        depth: usize,
    ) -> Result<MessageTree<'a>, RejectionReason> {
        let SelectedPaths { elements, limits, .. } = self.paths;
        let (last, mut items, mut index) = (want.last_item(), Vec::new(), 0);
        self.items(depth, |reader| {
            if want.is_record_array() && index >= limits.max_elements {
                return Err(RejectionReason::TooManyElements);
            }
            if last.is_none_or(|last| index > last) {
                reader.skip(of, depth + 1)?;
            } else {
                let wanted = want.item(index, elements.as_ref());
                if matches!(wanted, PathSelection::Nothing) {
                    reader.skip(of, depth + 1)?;
                    items.push(MessageTree::Skipped);
                } else {
                    items.push(reader.item(of, wanted, depth + 1, want.is_record_array())?);
                }
            }
            index += 1;
            Ok(())
        })?;
        let behind = (index - items.len()) as u32;
        Ok(MessageTree::List(items, behind))
    }

    /// Defers a record that `is_element`.
    fn item(
        &mut self,
        id: AvroTypeId,
        want: PathSelection<'a>,
        depth: usize,
        is_element: bool,
    ) -> Result<MessageTree<'a>, RejectionReason> {
        match (self.shapes.get(id), want) {
            (AvroType::Union(branches), _) => {
                let branch = branches[self.read_choice(branches.len())?];
                self.item(branch, want, depth, is_element)
            }
            (AvroType::Record(_), PathSelection::Inside(_)) if is_element => {
                let before = self.bytes;
                self.skip(id, depth)?;
                Ok(MessageTree::Unread(id as u32, depth as u32, &before[..before.len() - self.bytes.len()]))
            }
            _ => self.value(id, want, depth),
        }
    }

    fn items(
        &mut self,
        depth: usize,
        mut item: impl FnMut(&mut Self) -> Result<(), RejectionReason>,
    ) -> Result<(), RejectionReason> {
        self.paths.check_depth(depth)?;
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(());
            }
            if count < 0 {
                self.long()?;
            }
            for _ in 0..count.unsigned_abs() {
                item(self)?;
            }
        }
    }

    fn boolean(&mut self) -> Result<bool, RejectionReason> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(MALFORMED),
        }
    }

    #[inline]
    fn long(&mut self) -> Result<i64, RejectionReason> {
        decode_zigzag(&mut self.bytes).ok_or(MALFORMED)
    }

    fn int(&mut self) -> Result<i64, RejectionReason> {
        self.long().and_then(|value| i32::try_from(value).map(i64::from).map_err(|_| MALFORMED))
    }

    fn read_choice(&mut self, among: usize) -> Result<usize, RejectionReason> {
        usize::try_from(self.long()?).ok().filter(|index| *index < among).ok_or(MALFORMED)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], RejectionReason> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(MALFORMED)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RejectionReason> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(MALFORMED)?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn read_length_prefixed(&mut self) -> Result<&'a [u8], RejectionReason> {
        let length = usize::try_from(self.long()?).map_err(|_| MALFORMED)?;
        self.take(length)
    }

    fn text(&mut self) -> Result<&'a str, RejectionReason> {
        std::str::from_utf8(self.read_length_prefixed()?).map_err(|_| RejectionReason::NotUtf8)
    }
}

fn spelled<'a>(shape: &AvroType, bytes: &'a [u8]) -> MessageTree<'a> {
    match shape {
        AvroType::Decimal { scale, .. } => decimal(bytes, *scale),
        // Without the logical type UUID, the text is the same.
        AvroType::Uuid | AvroType::Fixed(AVRO_UUID_BYTES) => uuid::Uuid::from_slice(bytes)
            .map_or(MessageTree::Refused(MALFORMED), |value| MessageTree::Text(value.to_string().into())),
        AvroType::Fixed(_) => MessageTree::Text(STANDARD.encode(bytes).into()),
        // A writer may change a field from bytes to string.
        _ => MessageTree::Text(std::str::from_utf8(bytes).map_or_else(|_| STANDARD.encode(bytes).into(), Into::into)),
    }
}

/// Converts a two's complement big-endian number of up to 16 bytes.
fn decimal(digits: &[u8], scale: u32) -> MessageTree<'static> {
    if digits.is_empty() || digits.len() > 16 || scale > 38 {
        return MessageTree::Refused(RejectionReason::WrongType);
    }
    let negative = digits[0] & 0x80 != 0;
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[16 - digits.len()..].copy_from_slice(digits);
    let unscaled = i128::from_be_bytes(wide);
    let power = 10_u128.pow(scale);
    let (whole, fraction) = (unscaled.unsigned_abs() / power, unscaled.unsigned_abs() % power);
    let sign = if negative { "-" } else { "" };
    MessageTree::Digits(match scale {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction:0width$}", width = scale as usize),
    })
}
