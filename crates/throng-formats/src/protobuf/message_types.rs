use crate::path_tree::index;
use crate::record_decoder::FieldPath;
use prost_reflect::prost::encoding::WireType;
use prost_reflect::{Cardinality, FieldDescriptor, Kind, MessageDescriptor};
use std::collections::HashMap;
use throng_core::printable::printable;

/// Error for an unusable Protobuf schema. The message contains no data values.
#[derive(Clone, Debug, thiserror::Error)]
#[error("not a Protobuf schema that can be used: {0}")]
pub struct ProtobufSchemaError(String);

impl ProtobufSchemaError {
    /// Creates the error from a description.
    #[must_use]
    pub fn new(what: &str) -> Self {
        Self(printable(what))
    }
}

const MAX_MESSAGE_TYPES: usize = 10_000;

const MAX_TOTAL_FIELDS: usize = 100_000;

pub(super) type MessageTypeId = usize;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ProtobufValueType {
    /// Never [`Kind::Message`].
    Scalar(Kind),
    Message(MessageTypeId),
}

impl ProtobufValueType {
    pub fn wire(&self) -> WireType {
        match self {
            Self::Scalar(kind) => kind.wire_type(),
            Self::Message(_) => WireType::LengthDelimited,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum FieldCardinality {
    /// At most one value, with a default unless it has presence.
    One {
        presence: bool,
    },
    List,
    Map(Kind),
}

#[derive(Clone, Debug)]
pub(super) struct MessageField {
    pub number: u32,
    pub name: String,
    pub json_name: String,
    pub of: ProtobufValueType,
    pub form: FieldCardinality,
    pub oneof: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WellKnownType {
    Timestamp,
    Duration,
    /// `google.protobuf.Int32Value` and similar types.
    Wrapper,
}

#[derive(Clone, Debug, Default)]
pub(super) struct MessageType {
    pub well_known_type: Option<WellKnownType>,
    /// In ascending order of field numbers.
    pub fields: Vec<MessageField>,
    pub oneofs: usize,
}

impl MessageType {
    #[inline]
    pub fn field_index(&self, number: u32) -> Option<usize> {
        // Fast path: most messages number their fields from 1.
        let near = (number as usize).wrapping_sub(1);
        match self.fields.get(near) {
            Some(field) if field.number == number => Some(near),
            _ => self.fields.binary_search_by_key(&number, |field| field.number).ok(),
        }
    }

    /// Accepts the JSON name if unambiguous.
    pub fn field_index_by_name(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name).or_else(|| {
            let mut found = self.fields.iter().enumerate().filter(|(_, field)| field.json_name == name);
            let (first, second) = (found.next(), found.next());
            first.filter(|_| second.is_none()).map(|(at, _)| at)
        })
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct MessageTypeGraph(Vec<MessageType>);

impl MessageTypeGraph {
    /// Compiles all reachable messages; `message` gets number 0.
    pub fn of(message: &MessageDescriptor) -> Result<Self, ProtobufSchemaError> {
        let mut compiler = MessageTypeCompiler { messages: Vec::new(), numbers: HashMap::new(), open: Vec::new() };
        compiler.message(message)?;
        let mut fields = 0;
        // No recursion, because a chain of messages can be very long.
        while let Some((id, message)) = compiler.open.pop() {
            fields += message.fields().len();
            if fields > MAX_TOTAL_FIELDS {
                return Err(ProtobufSchemaError::new(&format!("it has more than {MAX_TOTAL_FIELDS} fields")));
            }
            compiler.messages[id] = compiler.shape(&message)?;
        }
        Ok(Self(compiler.messages))
    }

    pub fn max_field_count(&self) -> usize {
        self.0.iter().map(|message| message.fields.len()).max().unwrap_or(0)
    }

    pub fn bytes(&self) -> usize {
        let fields = self.0.iter().flat_map(|message| &message.fields);
        // An allocated string takes about twice its length.
        let of_fields = fields.map(|field| size_of::<MessageField>() + 2 * (field.name.len() + field.json_name.len()));
        self.0.len() * size_of::<MessageType>() + of_fields.sum::<usize>()
    }

    #[inline]
    pub fn get(&self, id: MessageTypeId) -> &MessageType {
        &self.0[id]
    }

    /// Replaces JSON names by schema names. Returns `true` if the field exists.
    pub fn resolve(&self, field: &FieldPath) -> (FieldPath, bool) {
        let mut names = Vec::new();
        let one = FieldCardinality::One { presence: true };
        let found =
            self.resolve_segments(&ProtobufValueType::Message(0), &one, &field.pointer, field.elements, &mut names);
        names.extend_from_slice(&field.pointer[names.len()..]);
        (FieldPath { pointer: names, elements: field.elements }, found)
    }

    /// The list follows after `elements` segments.
    fn resolve_segments(
        &self,
        of: &ProtobufValueType,
        form: &FieldCardinality,
        pointer: &[String],
        elements: Option<usize>,
        names: &mut Vec<String>,
    ) -> bool {
        let one = FieldCardinality::One { presence: true };
        if elements == Some(0) {
            return *form == FieldCardinality::List && self.resolve_segments(of, &one, pointer, None, names);
        }
        let Some((segment, rest)) = pointer.split_first() else { return true };
        let elements = elements.map(|segments| segments - 1);
        let field = match (form, of) {
            (FieldCardinality::One { .. }, ProtobufValueType::Message(id)) => {
                let shape = self.get(*id);
                shape.field_index_by_name(segment).map(|at| &shape.fields[at])
            }
            (FieldCardinality::One { .. }, ProtobufValueType::Scalar(_)) => None,
            (FieldCardinality::List, _) if index(segment).is_none() => None,
            (FieldCardinality::List | FieldCardinality::Map(_), _) => {
                names.push(segment.clone());
                return self.resolve_segments(of, &one, rest, elements, names);
            }
        };
        field.is_some_and(|field| {
            names.push(field.name.clone());
            self.resolve_segments(&field.of, &field.form, rest, elements, names)
        })
    }
}

struct MessageTypeCompiler {
    messages: Vec<MessageType>,
    numbers: HashMap<String, MessageTypeId>,
    open: Vec<(MessageTypeId, MessageDescriptor)>,
}

impl MessageTypeCompiler {
    fn message(&mut self, message: &MessageDescriptor) -> Result<MessageTypeId, ProtobufSchemaError> {
        if let Some(known) = self.numbers.get(message.full_name()) {
            return Ok(*known);
        }
        let id = self.messages.len();
        if id >= MAX_MESSAGE_TYPES {
            return Err(ProtobufSchemaError::new(&format!("it leads to more than {MAX_MESSAGE_TYPES} types")));
        }
        self.messages.push(MessageType::default());
        self.numbers.insert(message.full_name().to_owned(), id);
        self.open.push((id, message.clone()));
        Ok(id)
    }

    fn shape(&mut self, message: &MessageDescriptor) -> Result<MessageType, ProtobufSchemaError> {
        let oneofs: Vec<_> = message.oneofs().collect();
        let mut fields = Vec::with_capacity(message.fields().len());
        for field in message.fields() {
            let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
            let (of, form) = match field.kind() {
                Kind::Message(entry) if field.is_map() => (
                    self.value(&entry.map_entry_value_field())?,
                    FieldCardinality::Map(entry.map_entry_key_field().kind()),
                ),
                _ if field.cardinality() == Cardinality::Repeated => (self.value(&field)?, FieldCardinality::List),
                _ => (self.value(&field)?, FieldCardinality::One { presence: field.supports_presence() }),
            };
            fields.push(MessageField {
                number: field.number(),
                name: field.name().to_owned(),
                json_name: field.json_name().to_owned(),
                of,
                form,
                oneof: oneof.and_then(|oneof| oneofs.iter().position(|known| *known == oneof)),
            });
        }
        fields.sort_by_key(|field| field.number);
        Ok(MessageType { well_known_type: well_known(message.full_name(), &fields), fields, oneofs: oneofs.len() })
    }

    fn value(&mut self, field: &FieldDescriptor) -> Result<ProtobufValueType, ProtobufSchemaError> {
        Ok(match field.kind() {
            Kind::Message(message) => ProtobufValueType::Message(self.message(&message)?),
            kind => ProtobufValueType::Scalar(kind),
        })
    }
}

/// Other schemas may use the same name.
fn well_known(name: &str, fields: &[MessageField]) -> Option<WellKnownType> {
    let short = name.strip_prefix("google.protobuf.")?;
    let scalar = |field: &MessageField| match (&field.of, &field.form) {
        (ProtobufValueType::Scalar(kind), FieldCardinality::One { .. }) => Some((field.number, kind.clone())),
        _ => None,
    };
    let scalars: Vec<(u32, Kind)> = fields.iter().map(scalar).collect::<Option<_>>()?;
    let wrapped = match short {
        "Timestamp" if scalars == [(1, Kind::Int64), (2, Kind::Int32)] => return Some(WellKnownType::Timestamp),
        "Duration" if scalars == [(1, Kind::Int64), (2, Kind::Int32)] => return Some(WellKnownType::Duration),
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
    (scalars == [(1, wrapped)]).then_some(WellKnownType::Wrapper)
}
