//! The types of a writer schema as a graph, in which named types are known by their number.

use crate::path_tree::index;
use crate::record::Field;
use apache_avro::Schema;
use apache_avro::schema::{InnerDecimalSchema, Name, UuidSchema};
use std::collections::HashMap;

/// A text that is no Avro schema. It says what is wrong with it; a schema has no values of records.
#[derive(Clone, Debug, thiserror::Error)]
#[error("not an Avro schema: {0}")]
pub struct BadSchema(pub(super) String);

/// The number of a type in its [`Shapes`].
pub(super) type TypeId = usize;

/// Parts of a second in which a time is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ticks {
    Millis,
    Micros,
    Nanos,
}

impl Ticks {
    /// Milliseconds, rounded down.
    pub fn millis(self, ticks: i64) -> i64 {
        match self {
            Self::Millis => ticks,
            Self::Micros => ticks.div_euclid(1_000),
            Self::Nanos => ticks.div_euclid(1_000_000),
        }
    }
}

/// One type. The sizes are in bytes.
#[derive(Clone, Debug)]
pub(super) enum Shape {
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
    /// A whole number divided by ten to the scale; of a size, or behind its length.
    Decimal {
        scale: u32,
        size: Option<usize>,
    },
    /// Sixteen bytes behind their length.
    Uuid,
    /// Days since 1970.
    Date,
    /// Since midnight; milliseconds are an int, the others a long.
    Time(Ticks),
    /// Since 1970.
    Moment(Ticks),
    Record(Vec<(String, TypeId)>),
    Array(TypeId),
    Map(TypeId),
    Union(Vec<TypeId>),
}

/// The types of one schema.
#[derive(Clone, Debug)]
pub(super) struct Shapes {
    types: Vec<Shape>,
    root: TypeId,
}

impl Shapes {
    pub fn parse(schema: &str, parts: &[String]) -> Result<Self, BadSchema> {
        // The parser walks a schema by recursion, and its parts may nest as deeply as there are parts: they come from outside.
        std::thread::scope(|scope| {
            let parse = || Self::parse_here(schema, parts);
            let parser = std::thread::Builder::new().stack_size(PARSER_STACK).spawn_scoped(scope, parse);
            let parser = parser.map_err(|error| BadSchema(format!("no thread to read it on: {error}")))?;
            parser.join().unwrap_or_else(|_| Err(BadSchema("it cannot be read".into())))
        })
    }

    fn parse_here(schema: &str, parts: &[String]) -> Result<Self, BadSchema> {
        let parsed = Schema::parse_str_with_list(schema, parts);
        let (parsed, defined) = parsed.map_err(|error| BadSchema(error.to_string()))?;
        let mut compiler = Compiler { types: Vec::new(), named: HashMap::new(), defined, depth: 0 };
        let root = compiler.compile(&parsed, None)?;
        Ok(Self { types: compiler.types, root })
    }

    /// Types, fields and symbols: what they cost in memory.
    pub fn size(&self) -> usize {
        let of = |shape: &Shape| match shape {
            Shape::Record(fields) => fields.len(),
            Shape::Enum(symbols) => symbols.len(),
            Shape::Union(branches) => branches.len(),
            _ => 0,
        };
        self.types.iter().map(|shape| 1 + of(shape)).sum()
    }

    /// The most fields that a record has.
    pub fn most_fields(&self) -> usize {
        let fields = |shape: &Shape| if let Shape::Record(fields) = shape { fields.len() } else { 0 };
        self.types.iter().map(fields).max().unwrap_or(0)
    }

    pub fn root(&self) -> TypeId {
        self.root
    }

    /// Whether something in the schema leads to `field`.
    ///
    /// # Errors
    /// When unions of unions have more branches to look into than any schema of records.
    pub fn leads_to(&self, field: &Field) -> Result<bool, BadSchema> {
        let mut left = MOST_PLACES;
        let found = self.leads(self.root, &field.pointer, field.elements, &mut left);
        if left == 0 {
            let message = format!("its unions lead to attributes from more than {MOST_PLACES} places");
            return Err(BadSchema(message));
        }
        Ok(found)
    }

    /// `elements`: after this many segments comes the array of the elements. False if nothing is `left` to look at more places.
    fn leads(&self, id: TypeId, pointer: &[String], elements: Option<usize>, left: &mut usize) -> bool {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return false;
        }
        match (self.get(id), elements, pointer.split_first()) {
            (Shape::Union(branches), ..) => branches.iter().any(|branch| self.leads(*branch, pointer, elements, left)),
            (Shape::Array(items), Some(0), _) => self.leads(*items, pointer, None, left),
            (_, Some(0), _) => false,
            (_, _, None) => true,
            (of, _, Some((segment, rest))) => {
                let inner = match of {
                    Shape::Record(fields) => fields.iter().find(|(name, _)| name == segment).map(|(_, id)| *id),
                    Shape::Array(items) => index(segment).map(|_| *items),
                    Shape::Map(values) => Some(*values),
                    _ => None,
                };
                inner.is_some_and(|inner| self.leads(inner, rest, elements.map(|segments| segments - 1), left))
            }
        }
    }

    #[inline]
    pub fn get(&self, id: TypeId) -> &Shape {
        &self.types[id]
    }
}

/// For the recursion of the parser: 64 parts of what JSON may nest. Memory that is not used is not taken.
const PARSER_STACK: usize = 256 << 20;

/// Branches of unions that are looked into for the way to one attribute.
const MOST_PLACES: usize = 1 << 16;

/// Types inside types. Records may nest as deeply as `source.max_depth` says, which is less.
const MOST_DEEP: usize = 500;

struct Compiler {
    depth: usize,
    types: Vec<Shape>,
    /// By full name.
    named: HashMap<String, TypeId>,
    /// The parts of the schema, not compiled yet.
    defined: Vec<Schema>,
}

impl Compiler {
    fn add(&mut self, shape: Shape) -> TypeId {
        self.types.push(shape);
        self.types.len() - 1
    }

    /// Adds a type that other places may name.
    fn define(&mut self, name: &Name, namespace: Option<&str>, shape: Shape) -> TypeId {
        let id = self.add(shape);
        self.named.insert(name.fullname(namespace), id);
        id
    }

    fn compile(&mut self, schema: &Schema, namespace: Option<&str>) -> Result<TypeId, BadSchema> {
        if self.depth >= MOST_DEEP {
            return Err(BadSchema(format!("it nests more than {MOST_DEEP} types")));
        }
        self.depth += 1;
        let compiled = self.compile_here(schema, namespace);
        self.depth -= 1;
        compiled
    }

    fn compile_here(&mut self, schema: &Schema, namespace: Option<&str>) -> Result<TypeId, BadSchema> {
        let shape = match schema {
            Schema::Null => Shape::Null,
            Schema::Boolean => Shape::Boolean,
            Schema::Int => Shape::Int,
            Schema::Long => Shape::Long,
            Schema::Float => Shape::Float,
            Schema::Double => Shape::Double,
            Schema::Bytes | Schema::BigDecimal => Shape::Bytes,
            Schema::String | Schema::Uuid(UuidSchema::String) => Shape::String,
            Schema::Date => Shape::Date,
            Schema::TimeMillis => Shape::Time(Ticks::Millis),
            Schema::TimeMicros => Shape::Time(Ticks::Micros),
            Schema::TimestampMillis | Schema::LocalTimestampMillis => Shape::Moment(Ticks::Millis),
            Schema::TimestampMicros | Schema::LocalTimestampMicros => Shape::Moment(Ticks::Micros),
            Schema::TimestampNanos | Schema::LocalTimestampNanos => Shape::Moment(Ticks::Nanos),
            Schema::Uuid(UuidSchema::Bytes) => Shape::Uuid,
            Schema::Uuid(UuidSchema::Fixed(fixed)) | Schema::Duration(fixed) | Schema::Fixed(fixed) => {
                return Ok(self.define(&fixed.name, namespace, Shape::Fixed(fixed.size)));
            }
            Schema::Decimal(decimal) => {
                let scale = u32::try_from(decimal.scale).map_err(|_| BadSchema("a scale of a decimal".into()))?;
                match &decimal.inner {
                    InnerDecimalSchema::Bytes => Shape::Decimal { scale, size: None },
                    InnerDecimalSchema::Fixed(fixed) => {
                        let shape = Shape::Decimal { scale, size: Some(fixed.size) };
                        return Ok(self.define(&fixed.name, namespace, shape));
                    }
                }
            }
            Schema::Enum(symbols) => {
                return Ok(self.define(&symbols.name, namespace, Shape::Enum(symbols.symbols.clone())));
            }
            Schema::Array(array) => Shape::Array(self.compile(&array.items, namespace)?),
            Schema::Map(map) => Shape::Map(self.compile(&map.types, namespace)?),
            Schema::Union(union) => {
                let branches = union.variants().iter().map(|branch| self.compile(branch, namespace));
                Shape::Union(branches.collect::<Result<_, _>>()?)
            }
            Schema::Record(record) => {
                // The record is known before its fields are: it may hold itself.
                let id = self.define(&record.name, namespace, Shape::Null);
                let full = record.name.fullname(namespace);
                let inner = full.rsplit_once('.').map(|(namespace, _)| namespace.to_owned());
                let mut fields = Vec::with_capacity(record.fields.len());
                for field in &record.fields {
                    fields.push((field.name.clone(), self.compile(&field.schema, inner.as_deref())?));
                }
                self.types[id] = Shape::Record(fields);
                return Ok(id);
            }
            Schema::Ref { name } => {
                let full = name.fullname(namespace);
                if let Some(known) = self.named.get(&full) {
                    return Ok(*known);
                }
                // It is defined in some part, at its top or inside.
                while let Some(part) = self.defined.pop() {
                    self.compile(&part, None)?;
                    if let Some(known) = self.named.get(&full) {
                        return Ok(*known);
                    }
                }
                return Err(BadSchema(format!("no type {full:?}")));
            }
        };
        Ok(self.add(shape))
    }
}
