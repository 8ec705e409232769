//! One datum as a tree of values, by the deserializer of `apache-avro`.
//!
//! The deserializer hands on a value at a time as it stands in the bytes. Its own tree of values would lose an entry of a map whose key is
//! there twice, take the end of the bytes for null, and grow by any number of items that take no bytes.

use super::shape::{Shape, Shapes, Ticks, TypeId};
use crate::codec::tree::{Member, Object, Paths, Tree, ValueCount, Want};
use crate::records::moment::{DAY, in_range, push_date, push_rfc3339};
use crate::telemetry::RejectionReason;
use apache_avro::GenericSingleObjectReader;
use apache_avro::error::Details;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

const MALFORMED: RejectionReason = RejectionReason::MalformedAvro;

/// Bytes of a UUID.
const UUID: usize = 16;

/// Items of one block of an array or a map. More would be refused as too many values, after all of them were looked at.
const MAX_BLOCK_ITEMS: usize = 1 << 20;

/// The types of a schema, and the pointers of the attributes.
#[derive(Debug)]
pub(super) struct Plan {
    pub shapes: Shapes,
    pub paths: Paths,
}

thread_local! {
    /// The plan of the datum being read, and why it is refused: `read_deser` has no room for arguments.
    static READING: RefCell<(Option<Arc<Plan>>, Option<RejectionReason>)> = const { RefCell::new((None, None)) };
}

/// Reads the datum that `bytes` are, to their end.
pub(super) fn read(
    reader: &GenericSingleObjectReader,
    plan: &Arc<Plan>,
    mut bytes: &[u8],
) -> Result<Tree<'static>, RejectionReason> {
    READING.set((Some(Arc::clone(plan)), None));
    let read: Result<Datum, _> = reader.read_deser(&mut bytes);
    let (_, refused) = READING.take();
    match read {
        Ok(Datum(tree)) if bytes.is_empty() => Ok(tree),
        Ok(_) => Err(MALFORMED),
        Err(error) => Err(refused.unwrap_or(match error.details() {
            Details::ConvertToUtf8(_) => RejectionReason::NotUtf8,
            _ => MALFORMED,
        })),
    }
}

struct Datum(Tree<'static>);

impl<'de> serde::Deserialize<'de> for Datum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let plan = READING.with_borrow_mut(|(plan, _)| plan.take()).ok_or_else(|| refuse::<D::Error>(MALFORMED))?;
        let (id, want) = (plan.shapes.root(), Want::of(&plan.paths.root));
        let count = Cell::default();
        Value { plan: &plan, count: &count, id, want, depth: 1 }.deserialize(deserializer).map(Self)
    }
}

/// Ends the reading for this reason.
fn refuse<E: Error>(reason: RejectionReason) -> E {
    READING.with_borrow_mut(|(_, refused)| *refused = Some(reason));
    E::custom("refused")
}

/// A value of type `id` to be read; `depth` is its own if it is a structure.
#[derive(Clone, Copy)]
struct Value<'p> {
    plan: &'p Plan,
    count: &'p Cell<ValueCount>,
    id: TypeId,
    want: Want<'p>,
    depth: usize,
}

impl<'p> Value<'p> {
    fn shape(&self) -> &'p Shape {
        self.plan.shapes.get(self.id)
    }

    /// A value inside this one.
    fn inner(self, id: TypeId, want: Want<'p>) -> Self {
        Self { id, want, depth: self.depth + 1, ..self }
    }

    fn is_wanted(&self) -> bool {
        !matches!(self.want, Want::Nothing)
    }

    fn step(&self) -> Result<(), RejectionReason> {
        let mut count = self.count.get();
        let step = count.step(self.is_wanted());
        self.count.set(count);
        step
    }

    fn check_block(hint: Option<usize>) -> Result<(), RejectionReason> {
        if hint.is_some_and(|items| items > MAX_BLOCK_ITEMS) { Err(RejectionReason::Oversized) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Tree<'static>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree<'static>, D::Error> {
        self.step().map_err(refuse)?;
        if matches!(self.shape(), Shape::Record(_) | Shape::Array(_) | Shape::Map(_)) {
            self.plan.paths.check_depth(self.depth).map_err(refuse)?;
        }
        match self.shape() {
            Shape::Null => Ok(Tree::Null),
            Shape::Boolean => deserializer.deserialize_bool(self),
            Shape::Int | Shape::Date | Shape::Time(Ticks::Millis) => deserializer.deserialize_i32(self),
            Shape::Long | Shape::Time(_) | Shape::Moment(_) => deserializer.deserialize_i64(self),
            Shape::Float => deserializer.deserialize_f32(self),
            Shape::Double => deserializer.deserialize_f64(self),
            Shape::String => deserializer.deserialize_string(self),
            Shape::Bytes | Shape::Fixed(_) | Shape::Decimal { .. } | Shape::Uuid { .. } => {
                deserializer.deserialize_byte_buf(self)
            }
            Shape::Enum(_) | Shape::Union(_) => deserializer.deserialize_enum("", &[], self),
            Shape::Array(_) => deserializer.deserialize_seq(self),
            Shape::Record(_) | Shape::Map(_) => deserializer.deserialize_map(self),
        }
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Tree<'static>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a value of the schema")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree<'static>, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i32<E: Error>(self, value: i32) -> Result<Tree<'static>, E> {
        Ok(match self.shape() {
            Shape::Date => date(value),
            Shape::Time(_) => time(value.into()),
            _ => Tree::Integer(value.into()),
        })
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree<'static>, E> {
        Ok(match self.shape() {
            Shape::Time(ticks) => time(ticks.millis(value)),
            Shape::Moment(ticks) => moment(ticks.millis(value)),
            _ => Tree::Integer(value),
        })
    }

    fn visit_f32<E: Error>(self, value: f32) -> Result<Tree<'static>, E> {
        Ok(Tree::Single(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree<'static>, E> {
        Ok(Tree::Double(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree<'static>, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Tree<'static>, E> {
        Ok(if self.is_wanted() { Tree::Text(value.into()) } else { Tree::Skipped })
    }

    fn visit_byte_buf<E: Error>(self, value: Vec<u8>) -> Result<Tree<'static>, E> {
        if !self.is_wanted() {
            return Ok(Tree::Skipped);
        }
        Ok(match self.shape() {
            Shape::Decimal { scale, .. } => decimal(&value, *scale),
            // Sixteen bytes have one text, whether their logical type says that they are a UUID or not.
            Shape::Uuid { .. } | Shape::Fixed(UUID) => uuid::Uuid::from_slice(&value)
                .map_or(Tree::Refused(MALFORMED), |value| Tree::Text(value.to_string().into())),
            Shape::Fixed(_) => Tree::Text(STANDARD.encode(value).into()),
            // A writer may make a string of what was bytes: the same text is the same value under both schemas.
            _ => {
                Tree::Text(String::from_utf8(value).unwrap_or_else(|error| STANDARD.encode(error.into_bytes())).into())
            }
        })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Tree<'static>, A::Error> {
        let (choice, variant) = access.variant_seed(Choice)?;
        match (self.shape(), choice) {
            (Shape::Union(branches), Chosen::Branch(branch)) => {
                let id = *branches.get(branch as usize).ok_or_else(|| refuse(MALFORMED))?;
                // A branch is no union, so that this goes one step down at most.
                variant.newtype_variant_seed(Self { id, ..self })
            }
            (_, Chosen::Symbol(symbol)) => {
                variant.unit_variant()?;
                Ok(Tree::Text(symbol.into()))
            }
            _ => Err(refuse(MALFORMED)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree<'static>, A::Error> {
        let Shape::Array(id) = self.shape() else { return Err(refuse(MALFORMED)) };
        let Paths { elements, limits, .. } = &self.plan.paths;
        let (last, mut items, mut behind) = (self.want.last_item(), Vec::new(), 0);
        for index in 0.. {
            Self::check_block(access.size_hint()).map_err(refuse)?;
            let is_kept = last.is_some_and(|last| index <= last);
            let want = if is_kept { self.want.item(index, elements.as_ref()) } else { Want::Nothing };
            let Some(item) = access.next_element_seed(self.inner(*id, want))? else { break };
            if self.want.is_exploded() && index >= limits.max_elements {
                return Err(refuse(RejectionReason::TooManyElements));
            }
            if is_kept {
                items.push(item);
            } else {
                behind += 1;
            }
        }
        Ok(Tree::List(items, behind))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree<'static>, A::Error> {
        let mut object = Object::default();
        if let (Shape::Record(fields), true) = (self.shape(), self.is_wanted()) {
            object.members.reserve_exact(fields.len());
        }
        let mut put = |name: &Arc<str>, want: Want<'_>, value| match want {
            Want::Nothing => object.dropped += 1,
            _ => object.members.push(Member { name: Arc::clone(name), value, is_written: true }),
        };
        match self.shape() {
            Shape::Record(fields) => {
                for (name, id) in fields {
                    let want = self.want.member(name);
                    access.next_key_seed(FieldName)?;
                    put(name, want, access.next_value_seed(self.inner(*id, want))?);
                }
                access.next_key_seed(FieldName)?;
            }
            Shape::Map(id) => loop {
                Self::check_block(access.size_hint()).map_err(refuse)?;
                let Some(key) = access.next_key::<String>()? else { break };
                let want = self.want.member(&key);
                put(&key.into(), want, access.next_value_seed(self.inner(*id, want))?);
            },
            _ => return Err(refuse(MALFORMED)),
        }
        // Of two entries with one key the last would count for other readers, and the first be hidden.
        if let (Shape::Map(_), Want::Inside(_)) = (self.shape(), self.want) {
            let mut names: Vec<&str> = object.members.iter().map(|member| &*member.name).collect();
            names.sort_unstable();
            if names.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(refuse(RejectionReason::DuplicateKey));
            }
        }
        Ok(Tree::Object(Box::new(object)))
    }
}

/// The name of the next field, which is known.
struct FieldName;

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldName {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

/// The symbol of an enum, or the branch of a union.
struct Choice;

enum Chosen {
    Symbol(String),
    Branch(u32),
}

impl<'de> DeserializeSeed<'de> for Choice {
    type Value = Chosen;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Chosen, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Choice {
    type Value = Chosen;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a symbol or a branch")
    }

    fn visit_str<E: Error>(self, symbol: &str) -> Result<Chosen, E> {
        Ok(Chosen::Symbol(symbol.to_owned()))
    }

    fn visit_u32<E: Error>(self, branch: u32) -> Result<Chosen, E> {
        Ok(Chosen::Branch(branch))
    }
}

/// A text that `push` appends, of a moment that there is.
fn text_of(millis: Option<i64>, push: impl FnOnce(&mut String, i64)) -> Tree<'static> {
    let Some(millis) = millis else { return Tree::Refused(RejectionReason::WrongType) };
    let mut text = String::new();
    push(&mut text, millis);
    Tree::Text(text.into())
}

fn date(days: i32) -> Tree<'static> {
    text_of(i64::from(days).checked_mul(DAY).and_then(in_range), push_date)
}

fn moment(millis: i64) -> Tree<'static> {
    text_of(in_range(millis), push_rfc3339)
}

/// `10:05:07.250`.
fn time(millis: i64) -> Tree<'static> {
    text_of((0..DAY).contains(&millis).then_some(millis), |text, millis| {
        let (seconds, fraction) = (millis / 1_000, millis % 1_000);
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        text.push_str(&format!("{hours:02}:{minutes:02}:{:02}.{fraction:03}", seconds % 60));
    })
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
