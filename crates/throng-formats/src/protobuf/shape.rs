//! The messages that one leads to as a graph, in which each is known by its number.

use crate::path_tree::index;
use crate::record::Field;
use prost_reflect::prost::encoding::WireType;
use prost_reflect::{Cardinality, FieldDescriptor, Kind, MessageDescriptor};
use std::collections::HashMap;
use throng_core::printable::printable;

/// What is no Protobuf schema, or none that can be used. It says what is wrong; a schema has no values of records.
#[derive(Clone, Debug, thiserror::Error)]
#[error("not a Protobuf schema that can be used: {0}")]
pub struct BadProtobuf(String);

impl BadProtobuf {
    /// Says what is wrong.
    #[must_use]
    pub fn new(what: &str) -> Self {
        Self(printable(what))
    }
}

/// Messages that one may lead to. Schemas of people have some dozens.
const MOST_TYPES: usize = 10_000;

/// Fields of all those messages.
const MOST_FIELDS: usize = 100_000;

/// The number of a message in its [`Shapes`].
pub(super) type TypeId = usize;

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ValueType {
    /// Not [`Kind::Message`].
    Scalar(Kind),
    Message(TypeId),
}

impl ValueType {
    pub fn wire(&self) -> WireType {
        match self {
            Self::Scalar(kind) => kind.wire_type(),
            Self::Message(_) => WireType::LengthDelimited,
        }
    }
}

/// How often a field's value may be there.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// Once or not. Without presence nothing is written for the default, so that what is not there has the default.
    One {
        presence: bool,
    },
    List,
    /// Keys of this type; the field's value is that of an entry.
    Map(Kind),
}

#[derive(Clone, Debug)]
pub(super) struct FieldShape {
    pub number: u32,
    pub name: String,
    pub json_name: String,
    pub of: ValueType,
    pub form: Form,
    /// Of several such fields one is there at most: the number of these among those of the message.
    pub oneof: Option<usize>,
}

/// Messages that stand for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WellKnown {
    Timestamp,
    Duration,
    /// `google.protobuf.Int32Value` and its like.
    Wrapper,
}

#[derive(Clone, Debug, Default)]
pub(super) struct MessageShape {
    pub stands_for: Option<WellKnown>,
    /// By number, rising.
    pub fields: Vec<FieldShape>,
    pub oneofs: usize,
}

impl MessageShape {
    /// The place of the field with this number.
    #[inline]
    pub fn place(&self, number: u32) -> Option<usize> {
        // Most messages have the numbers from 1 on.
        let near = (number as usize).wrapping_sub(1);
        match self.fields.get(near) {
            Some(field) if field.number == number => Some(near),
            _ => self.fields.binary_search_by_key(&number, |field| field.number).ok(),
        }
    }

    /// The place of the field with this name; its name in JSON does, too, where it names one field alone.
    pub fn named(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name).or_else(|| {
            let mut found = self.fields.iter().enumerate().filter(|(_, field)| field.json_name == name);
            let (first, second) = (found.next(), found.next());
            first.filter(|_| second.is_none()).map(|(at, _)| at)
        })
    }
}

/// The messages that one message leads to.
#[derive(Clone, Debug, Default)]
pub(super) struct Shapes(Vec<MessageShape>);

impl Shapes {
    /// The message is number 0.
    pub fn of(message: &MessageDescriptor) -> Result<Self, BadProtobuf> {
        let mut compiler = Compiler { messages: Vec::new(), numbers: HashMap::new(), open: Vec::new() };
        compiler.message(message)?;
        let mut fields = 0;
        // No recursion: a schema may have a chain of messages as long as it likes.
        while let Some((id, message)) = compiler.open.pop() {
            fields += message.fields().len();
            if fields > MOST_FIELDS {
                return Err(BadProtobuf::new(&format!("it has more than {MOST_FIELDS} fields")));
            }
            compiler.messages[id] = compiler.shape(&message)?;
        }
        Ok(Self(compiler.messages))
    }

    /// The most fields that a message has.
    pub fn most_fields(&self) -> usize {
        self.0.iter().map(|message| message.fields.len()).max().unwrap_or(0)
    }

    /// Bytes of memory that they take, roughly.
    pub fn bytes(&self) -> usize {
        let fields = self.0.iter().flat_map(|message| &message.fields);
        // A text of its own takes as much again as it is long.
        let of_fields = fields.map(|field| size_of::<FieldShape>() + 2 * (field.name.len() + field.json_name.len()));
        self.0.len() * size_of::<MessageShape>() + of_fields.sum::<usize>()
    }

    #[inline]
    pub fn get(&self, id: TypeId) -> &MessageShape {
        &self.0[id]
    }

    /// `field` with the names of the schema instead of those in JSON, and whether something leads there.
    pub fn resolve(&self, field: &Field) -> (Field, bool) {
        let mut names = Vec::new();
        let one = Form::One { presence: true };
        let found = self.follow(&ValueType::Message(0), &one, &field.pointer, field.elements, &mut names);
        names.extend_from_slice(&field.pointer[names.len()..]);
        (Field { pointer: names, elements: field.elements }, found)
    }

    /// `elements`: after this many segments comes the list of the elements.
    fn follow(
        &self,
        of: &ValueType,
        form: &Form,
        pointer: &[String],
        elements: Option<usize>,
        names: &mut Vec<String>,
    ) -> bool {
        let one = Form::One { presence: true };
        if elements == Some(0) {
            return *form == Form::List && self.follow(of, &one, pointer, None, names);
        }
        let Some((segment, rest)) = pointer.split_first() else { return true };
        let elements = elements.map(|segments| segments - 1);
        let field = match (form, of) {
            (Form::One { .. }, ValueType::Message(id)) => {
                let shape = self.get(*id);
                shape.named(segment).map(|at| &shape.fields[at])
            }
            (Form::One { .. }, ValueType::Scalar(_)) => None,
            (Form::List, _) if index(segment).is_none() => None,
            (Form::List | Form::Map(_), _) => {
                names.push(segment.clone());
                return self.follow(of, &one, rest, elements, names);
            }
        };
        field.is_some_and(|field| {
            names.push(field.name.clone());
            self.follow(&field.of, &field.form, rest, elements, names)
        })
    }
}

struct Compiler {
    messages: Vec<MessageShape>,
    /// By full name.
    numbers: HashMap<String, TypeId>,
    /// Messages without a shape yet.
    open: Vec<(TypeId, MessageDescriptor)>,
}

impl Compiler {
    fn message(&mut self, message: &MessageDescriptor) -> Result<TypeId, BadProtobuf> {
        if let Some(known) = self.numbers.get(message.full_name()) {
            return Ok(*known);
        }
        let id = self.messages.len();
        if id >= MOST_TYPES {
            return Err(BadProtobuf::new(&format!("it leads to more than {MOST_TYPES} types")));
        }
        self.messages.push(MessageShape::default());
        self.numbers.insert(message.full_name().to_owned(), id);
        self.open.push((id, message.clone()));
        Ok(id)
    }

    fn shape(&mut self, message: &MessageDescriptor) -> Result<MessageShape, BadProtobuf> {
        let oneofs: Vec<_> = message.oneofs().collect();
        let mut fields = Vec::with_capacity(message.fields().len());
        for field in message.fields() {
            let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
            let (of, form) = match field.kind() {
                Kind::Message(entry) if field.is_map() => {
                    (self.value(&entry.map_entry_value_field())?, Form::Map(entry.map_entry_key_field().kind()))
                }
                _ if field.cardinality() == Cardinality::Repeated => (self.value(&field)?, Form::List),
                _ => (self.value(&field)?, Form::One { presence: field.supports_presence() }),
            };
            fields.push(FieldShape {
                number: field.number(),
                name: field.name().to_owned(),
                json_name: field.json_name().to_owned(),
                of,
                form,
                oneof: oneof.and_then(|oneof| oneofs.iter().position(|known| *known == oneof)),
            });
        }
        fields.sort_by_key(|field| field.number);
        Ok(MessageShape { stands_for: well_known(message.full_name(), &fields), fields, oneofs: oneofs.len() })
    }

    fn value(&mut self, field: &FieldDescriptor) -> Result<ValueType, BadProtobuf> {
        Ok(match field.kind() {
            Kind::Message(message) => ValueType::Message(self.message(&message)?),
            kind => ValueType::Scalar(kind),
        })
    }
}

/// What a message of this name and these fields stands for: another one may have the name.
fn well_known(name: &str, fields: &[FieldShape]) -> Option<WellKnown> {
    let short = name.strip_prefix("google.protobuf.")?;
    let scalar = |field: &FieldShape| match (&field.of, &field.form) {
        (ValueType::Scalar(kind), Form::One { .. }) => Some((field.number, kind.clone())),
        _ => None,
    };
    let scalars: Vec<(u32, Kind)> = fields.iter().map(scalar).collect::<Option<_>>()?;
    let wrapped = match short {
        "Timestamp" if scalars == [(1, Kind::Int64), (2, Kind::Int32)] => return Some(WellKnown::Timestamp),
        "Duration" if scalars == [(1, Kind::Int64), (2, Kind::Int32)] => return Some(WellKnown::Duration),
        "DoubleValue" => Kind::Double,
        "FloatValue" => Kind::Float,
        "Int64Value" => Kind::Int64,
        "UInt64Value" => Kind::Uint64,
        "Int32Value" => Kind::Int32,
        "UInt32Value" => Kind::Uint32,
        "BoolValue" => Kind::Bool,
        "StringValue" => Kind::String,
        "BytesValue" => Kind::Bytes,
        _ => return None,
    };
    (scalars == [(1, wrapped)]).then_some(WellKnown::Wrapper)
}
