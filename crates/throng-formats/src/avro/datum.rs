//! One datum as a tree of values, read under the types of its schema.
//!
//! The deserializer of `apache-avro` allocates every text and every field name, and is two to five times slower (docs/performance.md). Its
//! tree of values would lose an entry of a map whose key is there twice, take the end of the bytes for null, and grow by any number of
//! items that take no bytes.

use super::shape::{Shape, Shapes, Ticks, TypeId};
use crate::path_tree::PathNode;
use crate::tree::{Member, Object, Paths, Row, Tree, ValueCount, Want};
use crate::typed::take_long;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throng_core::values::moment::DAY;
use throng_core::values::raw::RawBatch;
use throng_core::values::rejection::RejectionReason;

const MALFORMED: RejectionReason = RejectionReason::MalformedAvro;

/// Bytes of a UUID.
const UUID: usize = 16;

/// Fills the row of `batch` opened last from the datum that `bytes` are, to their end.
pub(super) fn fill(shapes: &Shapes, paths: &Paths, bytes: &[u8], batch: &mut RawBatch) -> Result<(), RejectionReason> {
    let mut message = Reader::new(shapes, paths, bytes, paths.row(batch));
    message.fill(shapes.root(), &paths.root, 1)?;
    if !message.bytes.is_empty() {
        return Err(MALFORMED);
    }
    paths.explode(message.row, |row, id, bytes, node, depth| {
        Reader::new(shapes, paths, bytes, row).fill(id, node, depth)
    })
}

struct Reader<'a, 'b> {
    shapes: &'a Shapes,
    paths: &'a Paths,
    /// Those that are not read yet.
    bytes: &'a [u8],
    count: ValueCount,
    row: Row<'b, 'a>,
}

impl<'a, 'b> Reader<'a, 'b> {
    fn new(shapes: &'a Shapes, paths: &'a Paths, bytes: &'a [u8], row: Row<'b, 'a>) -> Self {
        Self { shapes, paths, bytes, count: ValueCount::default(), row }
    }

    /// Takes the cells of the next value, of type `id`: those of a record one by one, and of another value from the whole.
    fn fill(&mut self, id: TypeId, node: &'a PathNode, depth: usize) -> Result<(), RejectionReason> {
        match self.shapes.get(id) {
            Shape::Record(fields) if node.attributes.is_empty() && !node.is_array => {
                self.count.step(true)?;
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
            Shape::Union(branches) => {
                let branch = branches[self.choice(branches.len())?];
                self.fill(branch, node, depth)
            }
            _ => match &mut self.value(id, Want::of(node), depth) {
                Ok(tree) => self.row.take(node, tree, false),
                Err(reason) => Err(*reason),
            },
        }
    }

    /// The next value, of type `id`; `depth` is its own if it is a structure.
    fn value(&mut self, id: TypeId, want: Want<'a>, depth: usize) -> Result<Tree<'a>, RejectionReason> {
        self.count.step(true)?;
        match self.shapes.get(id) {
            Shape::Union(branches) => {
                let branch = branches[self.choice(branches.len())?];
                // A branch is no union, so that this goes one step down at most.
                self.value(branch, want, depth)
            }
            Shape::Record(fields) => self.record(id, fields, want, depth),
            Shape::Array(items) => self.list(*items, want, depth),
            Shape::Map(values) => self.map(*values, want, depth),
            scalar => self.scalar(scalar),
        }
    }

    #[inline]
    fn scalar(&mut self, shape: &'a Shape) -> Result<Tree<'a>, RejectionReason> {
        let spelled = |bytes| Ok(spelled(shape, bytes));
        match shape {
            Shape::Boolean => self.boolean().map(Tree::Bool),
            Shape::Int => self.int().map(Tree::Integer),
            Shape::Long => self.long().map(Tree::Integer),
            Shape::Float => self.array().map(|bytes| Tree::Single(f32::from_le_bytes(bytes))),
            Shape::Double => self.array().map(|bytes| Tree::Double(f64::from_le_bytes(bytes))),
            Shape::Date => self.int().map(|days| Tree::of_millis(days.checked_mul(DAY), Tree::Date)),
            Shape::Time(ticks) => {
                let count = if *ticks == Ticks::Millis { self.int()? } else { self.long()? };
                let millis = Some(ticks.millis(count)).filter(|millis| (0..DAY).contains(millis));
                Ok(Tree::of_millis(millis, Tree::Time))
            }
            Shape::Moment(ticks) => self.long().map(|count| Tree::of_millis(Some(ticks.millis(count)), Tree::Moment)),
            Shape::String => self.text().map(|text| Tree::Text(text.into())),
            Shape::Bytes | Shape::Decimal { size: None, .. } | Shape::Uuid => self.sized().and_then(spelled),
            Shape::Fixed(size) | Shape::Decimal { size: Some(size), .. } => self.take(*size).and_then(spelled),
            Shape::Enum(symbols) => {
                self.choice(symbols.len()).map(|symbol| Tree::Text(symbols[symbol].as_str().into()))
            }
            _ => Ok(Tree::Null),
        }
    }

    /// Passes over the next value, which no attribute leads to.
    fn skip(&mut self, id: TypeId, depth: usize) -> Result<(), RejectionReason> {
        self.count.step(false)?;
        match self.shapes.get(id) {
            Shape::Null => Ok(()),
            Shape::Boolean => self.boolean().map(drop),
            Shape::Int | Shape::Date | Shape::Time(Ticks::Millis) => self.int().map(drop),
            Shape::Long | Shape::Time(_) | Shape::Moment(_) => self.long().map(drop),
            Shape::Float => self.take(4).map(drop),
            Shape::Double => self.take(8).map(drop),
            Shape::String => self.text().map(drop),
            Shape::Bytes | Shape::Decimal { size: None, .. } | Shape::Uuid => self.sized().map(drop),
            Shape::Fixed(size) | Shape::Decimal { size: Some(size), .. } => self.take(*size).map(drop),
            Shape::Enum(symbols) => self.choice(symbols.len()).map(drop),
            Shape::Union(branches) => {
                let branch = branches[self.choice(branches.len())?];
                self.skip(branch, depth)
            }
            Shape::Record(fields) => {
                self.paths.check_depth(depth)?;
                fields.iter().try_for_each(|(_, field)| self.skip(*field, depth + 1))
            }
            Shape::Array(items) => self.items(depth, |reader| reader.skip(*items, depth + 1)),
            Shape::Map(values) => self.items(depth, |reader| {
                reader.text()?;
                reader.skip(*values, depth + 1)
            }),
        }
    }

    fn record(
        &mut self,
        record: TypeId,
        fields: &'a [(String, TypeId)],
        want: Want<'a>,
        depth: usize,
    ) -> Result<Tree<'a>, RejectionReason> {
        self.paths.check_depth(depth)?;
        want.bind(record, fields.iter().map(|(name, _)| name.as_str()));
        let mut object = Object { record: Some(record), ..Object::default() };
        object.members.reserve_exact(want.most_members(fields.len()));
        for (field, (name, id)) in fields.iter().enumerate() {
            let want = want.field(record, field, name);
            self.member(&mut object, name, field, *id, want, depth)?;
        }
        Ok(Tree::Object(Box::new(object)))
    }

    fn map(&mut self, values: TypeId, want: Want<'a>, depth: usize) -> Result<Tree<'a>, RejectionReason> {
        let mut object = Object::default();
        self.items(depth, |reader| {
            let key = reader.text()?;
            reader.member(&mut object, key, 0, values, want.entry(key), depth)
        })?;
        // Of two entries with one key the last would count for other readers, and the first be hidden.
        if matches!(want, Want::Inside(_)) {
            let mut keys: Vec<&str> = object.members.iter().map(|member| &*member.name).collect();
            keys.sort_unstable();
            if keys.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(RejectionReason::DuplicateKey);
            }
        }
        Ok(Tree::Object(Box::new(object)))
    }

    /// Reads a member of `object`, of type `id`, or passes over it.
    fn member(
        &mut self,
        object: &mut Object<'a>,
        name: &'a str,
        field: usize,
        id: TypeId,
        want: Want<'a>,
        depth: usize,
    ) -> Result<(), RejectionReason> {
        if matches!(want, Want::Nothing) {
            object.dropped += 1;
            return self.skip(id, depth + 1);
        }
        let value = self.value(id, want, depth + 1)?;
        object.members.push(Member { name: name.into(), field: field as u32, is_written: true, value });
        Ok(())
    }

    fn list(&mut self, of: TypeId, want: Want<'a>, depth: usize) -> Result<Tree<'a>, RejectionReason> {
        let Paths { elements, limits, .. } = self.paths;
        let (last, mut items, mut index) = (want.last_item(), Vec::new(), 0);
        self.items(depth, |reader| {
            if want.is_exploded() && index >= limits.max_elements {
                return Err(RejectionReason::TooManyElements);
            }
            if last.is_none_or(|last| index > last) {
                reader.skip(of, depth + 1)?;
            } else {
                let wanted = want.item(index, elements.as_ref());
                if matches!(wanted, Want::Nothing) {
                    reader.skip(of, depth + 1)?;
                    items.push(Tree::Skipped);
                } else {
                    items.push(reader.item(of, wanted, depth + 1, want.is_exploded())?);
                }
            }
            index += 1;
            Ok(())
        })?;
        let behind = (index - items.len()) as u32;
        Ok(Tree::List(items, behind))
    }

    /// An item of a list; a record that `is_element` is read later.
    fn item(
        &mut self,
        id: TypeId,
        want: Want<'a>,
        depth: usize,
        is_element: bool,
    ) -> Result<Tree<'a>, RejectionReason> {
        match (self.shapes.get(id), want) {
            (Shape::Union(branches), _) => {
                let branch = branches[self.choice(branches.len())?];
                self.item(branch, want, depth, is_element)
            }
            (Shape::Record(_), Want::Inside(_)) if is_element => {
                let before = self.bytes;
                self.skip(id, depth)?;
                Ok(Tree::Unread(id as u32, depth as u32, &before[..before.len() - self.bytes.len()]))
            }
            _ => self.value(id, want, depth),
        }
    }

    /// Reads all items of an array or a map by `item`.
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
                // The size of the block in bytes.
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
        take_long(&mut self.bytes).ok_or(MALFORMED)
    }

    /// A long that is an int.
    fn int(&mut self) -> Result<i64, RejectionReason> {
        self.long().and_then(|value| i32::try_from(value).map(i64::from).map_err(|_| MALFORMED))
    }

    /// A choice among so many: the branch of a union, the symbol of an enum.
    fn choice(&mut self, among: usize) -> Result<usize, RejectionReason> {
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

    /// Bytes behind their length.
    fn sized(&mut self) -> Result<&'a [u8], RejectionReason> {
        let length = usize::try_from(self.long()?).map_err(|_| MALFORMED)?;
        self.take(length)
    }

    fn text(&mut self) -> Result<&'a str, RejectionReason> {
        std::str::from_utf8(self.sized()?).map_err(|_| RejectionReason::NotUtf8)
    }
}

/// What bytes of this type are spelled as.
fn spelled<'a>(shape: &Shape, bytes: &'a [u8]) -> Tree<'a> {
    match shape {
        Shape::Decimal { scale, .. } => decimal(bytes, *scale),
        // Sixteen bytes have one text, whether their logical type says that they are a UUID or not.
        Shape::Uuid | Shape::Fixed(UUID) => {
            uuid::Uuid::from_slice(bytes).map_or(Tree::Refused(MALFORMED), |value| Tree::Text(value.to_string().into()))
        }
        Shape::Fixed(_) => Tree::Text(STANDARD.encode(bytes).into()),
        // A writer may make a string of what was bytes: the same text is the same value under both schemas.
        _ => Tree::Text(std::str::from_utf8(bytes).map_or_else(|_| STANDARD.encode(bytes).into(), Into::into)),
    }
}

/// A two's complement big-endian number of up to 16 bytes, divided by ten to the `scale`.
fn decimal(digits: &[u8], scale: u32) -> Tree<'static> {
    if digits.is_empty() || digits.len() > 16 || scale > 38 {
        return Tree::Refused(RejectionReason::WrongType);
    }
    let negative = digits[0] & 0x80 != 0;
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[16 - digits.len()..].copy_from_slice(digits);
    let unscaled = i128::from_be_bytes(wide);
    let power = 10_u128.pow(scale);
    let (whole, fraction) = (unscaled.unsigned_abs() / power, unscaled.unsigned_abs() % power);
    let sign = if negative { "-" } else { "" };
    Tree::Digits(match scale {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction:0width$}", width = scale as usize),
    })
}
