//! What the bytes of a message look like: a graph of messages, in which each is known by its number.

use super::bad::BadProtobuf;
use super::wire::Wire;
use prost_reflect::{Cardinality, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use std::collections::HashMap;

/// Messages and enums that one may lead to. Schemas of people have some dozens.
const MOST_TYPES: usize = 10_000;

/// Fields of all those messages.
const MOST_FIELDS: usize = 100_000;

/// The number of a message, or of an enum, in its [`Shapes`].
pub(super) type TypeId = usize;

/// A value without others inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Double,
    Float,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Bool,
    String,
    Bytes,
    Enum(TypeId),
}

impl Scalar {
    pub fn wire(self) -> Wire {
        match self {
            Self::Double | Self::Fixed64 | Self::Sfixed64 => Wire::Fixed64,
            Self::Float | Self::Fixed32 | Self::Sfixed32 => Wire::Fixed32,
            Self::String | Self::Bytes => Wire::Delimited,
            _ => Wire::Varint,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Scalar(Scalar),
    Message(TypeId),
}

impl Value {
    pub fn wire(self) -> Wire {
        match self {
            Self::Scalar(scalar) => scalar.wire(),
            Self::Message(_) => Wire::Delimited,
        }
    }
}

/// How often a field's value may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Once or not. Without presence nothing is written for the default, so that what is not there has the default.
    One {
        presence: bool,
    },
    List,
    /// Keys of this type; the field's value is that of an entry.
    Map(Scalar),
}

#[derive(Clone, Debug)]
pub(super) struct FieldShape {
    pub number: u32,
    pub name: String,
    pub json_name: String,
    pub value: Value,
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
    Wrapper(Scalar),
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
        let of = |is: fn(&FieldShape) -> &str| {
            let mut found =
                self.fields.iter().enumerate().filter(move |(_, field)| is(field) == name).map(|(at, _)| at);
            (found.next(), found.next())
        };
        match of(|field| &field.name) {
            (Some(at), _) => Some(at),
            _ => match of(|field| &field.json_name) {
                (Some(at), None) => Some(at),
                _ => None,
            },
        }
    }
}

/// The types that one message leads to.
#[derive(Clone, Debug, Default)]
pub(super) struct Shapes {
    messages: Vec<MessageShape>,
    /// Numbers and names, by number.
    enums: Vec<Vec<(i32, String)>>,
}

impl Shapes {
    /// The message is number 0.
    pub fn of(message: &MessageDescriptor) -> Result<Self, BadProtobuf> {
        let mut compiler =
            Compiler { shapes: Self::default(), numbers: HashMap::new(), open: Vec::new(), enums: HashMap::new() };
        compiler.message(message)?;
        let mut fields = 0;
        // No recursion: a schema may have a chain of messages as long as it likes.
        while let Some((id, message)) = compiler.open.pop() {
            fields += message.fields().len();
            if fields > MOST_FIELDS {
                return Err(BadProtobuf::new(&format!("it has more than {MOST_FIELDS} fields")));
            }
            compiler.shapes.messages[id] = compiler.shape(&message)?;
        }
        Ok(compiler.shapes)
    }

    /// Bytes of memory that they take, roughly.
    pub fn bytes(&self) -> usize {
        let fields = self.messages.iter().flat_map(|message| &message.fields);
        // A text of its own takes as much again as it is long.
        let of_fields = fields.map(|field| size_of::<FieldShape>() + 2 * (field.name.len() + field.json_name.len()));
        let symbols = self.enums.iter().flatten().map(|(_, name)| size_of::<(i32, String)>() + 2 * name.len());
        self.messages.len() * size_of::<MessageShape>() + of_fields.sum::<usize>() + symbols.sum::<usize>()
    }

    #[inline]
    pub fn get(&self, id: TypeId) -> &MessageShape {
        &self.messages[id]
    }

    /// The name of a number of an enum.
    pub fn symbol(&self, id: TypeId, number: i32) -> Option<&str> {
        let symbols = &self.enums[id];
        let at = symbols.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(&symbols[at].1)
    }
}

struct Compiler {
    shapes: Shapes,
    /// By full name.
    numbers: HashMap<String, TypeId>,
    /// Messages without a shape yet.
    open: Vec<(TypeId, MessageDescriptor)>,
    /// By full name.
    enums: HashMap<String, TypeId>,
}

impl Compiler {
    fn message(&mut self, message: &MessageDescriptor) -> Result<TypeId, BadProtobuf> {
        if let Some(known) = self.numbers.get(message.full_name()) {
            return Ok(*known);
        }
        let id = self.shapes.messages.len();
        if id + self.shapes.enums.len() >= MOST_TYPES {
            return Err(BadProtobuf::new(&format!("it leads to more than {MOST_TYPES} types")));
        }
        self.shapes.messages.push(MessageShape::default());
        self.numbers.insert(message.full_name().to_owned(), id);
        self.open.push((id, message.clone()));
        Ok(id)
    }

    fn symbols(&mut self, of: &EnumDescriptor) -> Result<TypeId, BadProtobuf> {
        if let Some(known) = self.enums.get(of.full_name()) {
            return Ok(*known);
        }
        let id = self.shapes.enums.len();
        if id + self.shapes.messages.len() >= MOST_TYPES {
            return Err(BadProtobuf::new(&format!("it leads to more than {MOST_TYPES} types")));
        }
        let mut symbols: Vec<(i32, String)> =
            of.values().map(|value| (value.number(), value.name().to_owned())).collect();
        // Of several names of one number the first stands for it.
        symbols.sort_by_key(|(number, _)| *number);
        symbols.dedup_by_key(|(number, _)| *number);
        self.shapes.enums.push(symbols);
        self.enums.insert(of.full_name().to_owned(), id);
        Ok(id)
    }

    fn shape(&mut self, message: &MessageDescriptor) -> Result<MessageShape, BadProtobuf> {
        let oneofs: Vec<_> = message.oneofs().collect();
        let mut fields = Vec::with_capacity(message.fields().len());
        for field in message.fields() {
            let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
            let (value, form) = if field.is_map() {
                let Kind::Message(entry) = field.kind() else {
                    return Err(BadProtobuf::new("a map without entries"));
                };
                let Value::Scalar(key) = self.value(&entry.map_entry_key_field())? else {
                    return Err(BadProtobuf::new("a map whose keys are messages"));
                };
                (self.value(&entry.map_entry_value_field())?, Form::Map(key))
            } else if field.cardinality() == Cardinality::Repeated {
                (self.value(&field)?, Form::List)
            } else {
                (self.value(&field)?, Form::One { presence: field.supports_presence() })
            };
            fields.push(FieldShape {
                number: field.number(),
                name: field.name().to_owned(),
                json_name: field.json_name().to_owned(),
                value,
                form,
                oneof: oneof.and_then(|oneof| oneofs.iter().position(|known| *known == oneof)),
            });
        }
        fields.sort_by_key(|field| field.number);
        let stands_for = well_known(message.full_name(), &fields);
        Ok(MessageShape { stands_for, fields, oneofs: oneofs.len() })
    }

    fn value(&mut self, field: &FieldDescriptor) -> Result<Value, BadProtobuf> {
        Ok(Value::Scalar(match field.kind() {
            Kind::Double => Scalar::Double,
            Kind::Float => Scalar::Float,
            Kind::Int32 => Scalar::Int32,
            Kind::Int64 => Scalar::Int64,
            Kind::Uint32 => Scalar::Uint32,
            Kind::Uint64 => Scalar::Uint64,
            Kind::Sint32 => Scalar::Sint32,
            Kind::Sint64 => Scalar::Sint64,
            Kind::Fixed32 => Scalar::Fixed32,
            Kind::Fixed64 => Scalar::Fixed64,
            Kind::Sfixed32 => Scalar::Sfixed32,
            Kind::Sfixed64 => Scalar::Sfixed64,
            Kind::Bool => Scalar::Bool,
            Kind::String => Scalar::String,
            Kind::Bytes => Scalar::Bytes,
            Kind::Enum(of) => Scalar::Enum(self.symbols(&of)?),
            Kind::Message(message) => return Ok(Value::Message(self.message(&message)?)),
        }))
    }
}

/// What a message of this name and these fields stands for: another one may have the name.
fn well_known(name: &str, fields: &[FieldShape]) -> Option<WellKnown> {
    let short = name.strip_prefix("google.protobuf.")?;
    let scalars: Vec<(u32, Scalar)> = fields
        .iter()
        .filter_map(|field| match (field.value, field.form) {
            (Value::Scalar(scalar), Form::One { .. }) => Some((field.number, scalar)),
            _ => None,
        })
        .collect();
    if scalars.len() != fields.len() {
        return None;
    }
    let wrapped = match short {
        "Timestamp" if scalars == [(1, Scalar::Int64), (2, Scalar::Int32)] => return Some(WellKnown::Timestamp),
        "Duration" if scalars == [(1, Scalar::Int64), (2, Scalar::Int32)] => return Some(WellKnown::Duration),
        "DoubleValue" => Scalar::Double,
        "FloatValue" => Scalar::Float,
        "Int64Value" => Scalar::Int64,
        "UInt64Value" => Scalar::Uint64,
        "Int32Value" => Scalar::Int32,
        "UInt32Value" => Scalar::Uint32,
        "BoolValue" => Scalar::Bool,
        "StringValue" => Scalar::String,
        "BytesValue" => Scalar::Bytes,
        _ => return None,
    };
    (scalars == [(1, wrapped)]).then_some(WellKnown::Wrapper(wrapped))
}
