//! Types of a writer schema as a graph.

use crate::path_tree::index;
use crate::record_decoder::FieldPath;
use apache_avro::Schema;
use apache_avro::schema::{InnerDecimalSchema, Name, UuidSchema};
use std::collections::HashMap;

/// Error for an invalid Avro schema. The message contains no data values.
#[derive(Clone, Debug, thiserror::Error)]
#[error("not an Avro schema: {0}")]
pub struct AvroSchemaError(pub(super) String);

pub(super) type AvroTypeId = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnitTicks {
    Millis,
    Micros,
    Nanos,
}

impl TimeUnitTicks {
    /// Rounds down.
    pub fn millis(self, ticks: i64) -> i64 {
        match self {
            Self::Millis => ticks,
            Self::Micros => ticks.div_euclid(1_000),
            Self::Nanos => ticks.div_euclid(1_000_000),
        }
    }
}

/// One type; sizes in bytes.
#[derive(Clone, Debug)]
pub(super) enum AvroType {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Vec<String>),
    /// Divided by ten to the power `scale`; fixed size or length prefix.
    Decimal {
        scale: u32,
        size: Option<usize>,
    },
    /// Sixteen bytes with a length prefix.
    Uuid,
    /// Days since 1970.
    Date,
    /// Time since midnight; milliseconds are an int, others a long.
    Time(TimeUnitTicks),
    /// Time since 1970.
    Moment(TimeUnitTicks),
    Record(Vec<(String, AvroTypeId)>),
    Array(AvroTypeId),
    Map(AvroTypeId),
    Union(Vec<AvroTypeId>),
}

#[derive(Clone, Debug)]
pub(super) struct AvroTypeGraph {
    types: Vec<AvroType>,
    root: AvroTypeId,
}

impl AvroTypeGraph {
    pub fn parse(schema: &str, parts: &[String]) -> Result<Self, AvroSchemaError> {
        // Untrusted parts can nest deeply, and the parser is recursive.
        std::thread::scope(|scope| {
            let parse = || Self::parse_on_current_thread(schema, parts);
            let parser = std::thread::Builder::new().stack_size(PARSER_STACK_BYTES).spawn_scoped(scope, parse);
            let parser =
                parser.map_err(|error| AvroSchemaError(format!("cannot start a thread to parse it: {error}")))?;
            parser.join().unwrap_or_else(|_| Err(AvroSchemaError("it cannot be read".into())))
        })
    }

    fn parse_on_current_thread(schema: &str, parts: &[String]) -> Result<Self, AvroSchemaError> {
        let parsed = Schema::parse_str_with_list(schema, parts);
        let (parsed, defined) = parsed.map_err(|error| AvroSchemaError(error.to_string()))?;
        let mut compiler = AvroSchemaCompiler { types: Vec::new(), named: HashMap::new(), defined, depth: 0 };
        let root = compiler.compile(&parsed, None)?;
        Ok(Self { types: compiler.types, root })
    }

    pub fn size(&self) -> usize {
        let of = |shape: &AvroType| match shape {
            AvroType::Record(fields) => fields.len(),
            AvroType::Enum(symbols) => symbols.len(),
            AvroType::Union(branches) => branches.len(),
            _ => 0,
        };
        self.types.iter().map(|shape| 1 + of(shape)).sum()
    }

    pub fn most_fields(&self) -> usize {
        let fields = |shape: &AvroType| if let AvroType::Record(fields) = shape { fields.len() } else { 0 };
        self.types.iter().map(fields).max().unwrap_or(0)
    }

    pub fn root(&self) -> AvroTypeId {
        self.root
    }

    /// Returns `true` if `field` exists. Fails if nested unions have too many branches.
    pub fn contains_field(&self, field: &FieldPath) -> Result<bool, AvroSchemaError> {
        let mut left = MAX_SEARCHED_BRANCHES;
        let found = self.search_field(self.root, &field.pointer, field.elements, &mut left);
        if left == 0 {
            let message = format!("its unions lead to attributes from more than {MAX_SEARCHED_BRANCHES} places");
            return Err(AvroSchemaError(message));
        }
        Ok(found)
    }

    /// Searches with the budget `left`. The array follows after `elements` segments.
    fn search_field(&self, id: AvroTypeId, pointer: &[String], elements: Option<usize>, left: &mut usize) -> bool {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return false;
        }
        match (self.get(id), elements, pointer.split_first()) {
            (AvroType::Union(branches), ..) => {
                branches.iter().any(|branch| self.search_field(*branch, pointer, elements, left))
            }
            (AvroType::Array(items), Some(0), _) => self.search_field(*items, pointer, None, left),
            (_, Some(0), _) => false,
            (_, _, None) => true,
            (of, _, Some((segment, rest))) => {
                let inner = match of {
                    AvroType::Record(fields) => fields.iter().find(|(name, _)| name == segment).map(|(_, id)| *id),
                    AvroType::Array(items) => index(segment).map(|_| *items),
                    AvroType::Map(values) => Some(*values),
                    _ => None,
                };
                inner.is_some_and(|inner| self.search_field(inner, rest, elements.map(|segments| segments - 1), left))
            }
        }
    }

    #[inline]
    pub fn get(&self, id: AvroTypeId) -> &AvroType {
        &self.types[id]
    }
}

/// Suffices for 64 parts with the maximum JSON nesting.
const PARSER_STACK_BYTES: usize = 256 << 20;

const MAX_SEARCHED_BRANCHES: usize = 1 << 16;

const MAX_TYPE_NESTING: usize = 500;

struct AvroSchemaCompiler {
    depth: usize,
    types: Vec<AvroType>,
    named: HashMap<String, AvroTypeId>,
    defined: Vec<Schema>,
}

impl AvroSchemaCompiler {
    fn add(&mut self, shape: AvroType) -> AvroTypeId {
        self.types.push(shape);
        self.types.len() - 1
    }

    fn define(&mut self, name: &Name, namespace: Option<&str>, shape: AvroType) -> AvroTypeId {
        let id = self.add(shape);
        self.named.insert(name.fullname(namespace), id);
        id
    }

    fn compile(&mut self, schema: &Schema, namespace: Option<&str>) -> Result<AvroTypeId, AvroSchemaError> {
        if self.depth >= MAX_TYPE_NESTING {
            return Err(AvroSchemaError(format!("it nests more than {MAX_TYPE_NESTING} types")));
        }
        self.depth += 1;
        let compiled = self.compile_type(schema, namespace);
        self.depth -= 1;
        compiled
    }

    fn compile_type(&mut self, schema: &Schema, namespace: Option<&str>) -> Result<AvroTypeId, AvroSchemaError> {
        let shape = match schema {
            Schema::Null => AvroType::Null,
            Schema::Boolean => AvroType::Boolean,
            Schema::Int => AvroType::Int,
            Schema::Long => AvroType::Long,
            Schema::Float => AvroType::Float,
            Schema::Double => AvroType::Double,
            Schema::Bytes | Schema::BigDecimal => AvroType::Bytes,
            Schema::String | Schema::Uuid(UuidSchema::String) => AvroType::String,
            Schema::Date => AvroType::Date,
            Schema::TimeMillis => AvroType::Time(TimeUnitTicks::Millis),
            Schema::TimeMicros => AvroType::Time(TimeUnitTicks::Micros),
            Schema::TimestampMillis | Schema::LocalTimestampMillis => AvroType::Moment(TimeUnitTicks::Millis),
            Schema::TimestampMicros | Schema::LocalTimestampMicros => AvroType::Moment(TimeUnitTicks::Micros),
            Schema::TimestampNanos | Schema::LocalTimestampNanos => AvroType::Moment(TimeUnitTicks::Nanos),
            Schema::Uuid(UuidSchema::Bytes) => AvroType::Uuid,
            Schema::Uuid(UuidSchema::Fixed(fixed)) | Schema::Duration(fixed) | Schema::Fixed(fixed) => {
                return Ok(self.define(&fixed.name, namespace, AvroType::Fixed(fixed.size)));
            }
            Schema::Decimal(decimal) => {
                let scale = u32::try_from(decimal.scale).map_err(|_| AvroSchemaError("a scale of a decimal".into()))?;
                match &decimal.inner {
                    InnerDecimalSchema::Bytes => AvroType::Decimal { scale, size: None },
                    InnerDecimalSchema::Fixed(fixed) => {
                        let shape = AvroType::Decimal { scale, size: Some(fixed.size) };
                        return Ok(self.define(&fixed.name, namespace, shape));
                    }
                }
            }
            Schema::Enum(symbols) => {
                return Ok(self.define(&symbols.name, namespace, AvroType::Enum(symbols.symbols.clone())));
            }
            Schema::Array(array) => AvroType::Array(self.compile(&array.items, namespace)?),
            Schema::Map(map) => AvroType::Map(self.compile(&map.types, namespace)?),
            Schema::Union(union) => {
                let branches = union.variants().iter().map(|branch| self.compile(branch, namespace));
                AvroType::Union(branches.collect::<Result<_, _>>()?)
            }
            Schema::Record(record) => {
                // A record may contain itself.
                let id = self.define(&record.name, namespace, AvroType::Null);
                let full = record.name.fullname(namespace);
                let inner = full.rsplit_once('.').map(|(namespace, _)| namespace.to_owned());
                let mut fields = Vec::with_capacity(record.fields.len());
                for field in &record.fields {
                    fields.push((field.name.clone(), self.compile(&field.schema, inner.as_deref())?));
                }
                self.types[id] = AvroType::Record(fields);
                return Ok(id);
            }
            Schema::Ref { name } => {
                let full = name.fullname(namespace);
                if let Some(known) = self.named.get(&full) {
                    return Ok(*known);
                }
                while let Some(part) = self.defined.pop() {
                    self.compile(&part, None)?;
                    if let Some(known) = self.named.get(&full) {
                        return Ok(*known);
                    }
                }
                return Err(AvroSchemaError(format!("no type {full:?}")));
            }
        };
        Ok(self.add(shape))
    }
}
