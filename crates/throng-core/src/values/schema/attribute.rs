//! Attributes of records.

use crate::values::canonical::{AttributeType, ValueTyping};
use crate::values::date_formats::TimeBase;
use crate::values::hierarchy::Hierarchy;
use crate::values::units::Conversion;

/// Role of an attribute (docs/internals/methods.md §1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// Direct identifier, never released.
    Identifier,
    /// Subject, never released.
    Subject,
    /// Quasi-identifier; the default.
    Quasi,
    /// Quasi-identifier that is a point in time.
    Time,
    /// Sensitive value, protected by support.
    Sensitive,
    /// Value released unchanged.
    Insensitive,
}

impl Role {
    /// Returns the name in schemas.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Checks for a releasable role.
    pub fn is_releasable(self) -> bool {
        !matches!(self, Self::Identifier | Self::Subject)
    }

    /// Checks for a quasi-identifier.
    pub fn is_quasi(self) -> bool {
        matches!(self, Self::Quasi | Self::Time)
    }
}

/// Frequency of changes within a subject (docs/internals/methods.md §12.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ChangeFrequency {
    /// At most 0.1 % of the records.
    Never,
    /// At most 5 % of the records.
    Slowly,
    /// Record to record.
    Always,
}

impl ChangeFrequency {
    /// Returns the name in schemas.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Configured treatment of a quasi-identifier with too small a class (\[POD] §6.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AttributeTreatment {
    /// Generalizes up to `*`.
    #[default]
    Generalize,
    /// Releases the exact value or `*`.
    SuppressCell,
    /// Releases the exact value or no record.
    SuppressRecord,
    /// Replaces a number by the closest one with a large enough class.
    Perturb,
    /// Replaces a number by the median of a large enough class.
    Aggregate,
}

impl AttributeTreatment {
    /// Checks for numbers of other subjects.
    pub fn is_untruthful(self) -> bool {
        matches!(self, Self::Perturb | Self::Aggregate)
    }

    /// Checks that `level` may be released, with `*` at `top`.
    pub fn allows(self, level: usize, top: usize) -> bool {
        match self {
            Self::Generalize | Self::Perturb | Self::Aggregate => level <= top,
            Self::SuppressCell => level == 0 || level == top,
            Self::SuppressRecord => level == 0,
        }
    }
}

/// Origin: a message part or a join.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AttributeOrigin {
    /// Message value.
    #[default]
    Value,
    /// Message key.
    Key,
    /// Header with this name.
    Header(String),
    /// Message timestamp.
    Timestamp,
    /// Topic name.
    Topic,
    /// Profile of the subject in the join with this name.
    Join(String),
}

impl AttributeOrigin {
    /// Returns the name in schemas.
    pub fn name(&self) -> String {
        match self {
            Self::Value => "value".to_owned(),
            Self::Key => "key".to_owned(),
            Self::Header(name) => format!("header:{name}"),
            Self::Timestamp => "timestamp".to_owned(),
            Self::Topic => "topic".to_owned(),
            Self::Join(name) => format!("join:{name}"),
        }
    }

    /// Parses the name in schemas.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "value" => Self::Value,
            "key" => Self::Key,
            "timestamp" => Self::Timestamp,
            "topic" => Self::Topic,
            _ => {
                let (part, of) = name.split_once(':').filter(|(_, of)| !of.is_empty())?;
                match part {
                    "header" => Self::Header(of.to_owned()),
                    "join" => Self::Join(of.to_owned()),
                    _ => return None,
                }
            }
        })
    }

    /// Returns the join name.
    pub fn join(&self) -> Option<&str> {
        match self {
            Self::Join(name) => Some(name),
            _ => None,
        }
    }

    /// Checks for columns and pointers.
    pub fn has_fields(&self) -> bool {
        matches!(self, Self::Value | Self::Key | Self::Join(_))
    }
}

/// Position of an attribute in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributePlace {
    /// Column or top-level key.
    Column(String),
    /// JSON pointer (RFC 6901); `*` is an element of the exploded array.
    Pointer(String),
}

/// Attribute of the record that contains the unit of a number.
#[derive(Clone, Debug)]
pub struct UnitSource {
    /// Name of that attribute.
    pub attribute: String,
    /// Unit of the converted numbers.
    pub unit: String,
    /// Typing of the raw numbers, without conversion.
    pub raw: ValueTyping,
}

impl UnitSource {
    /// Returns the typing of raw numbers in `unit`, `None` if they cannot be converted.
    pub fn typing_of(&self, unit: &str) -> Option<ValueTyping> {
        let conversion = if unit == self.unit { Conversion::IDENTITY } else { Conversion::between(unit, &self.unit)? };
        Some(ValueTyping { conversion: Some(conversion), ..self.raw.clone() })
    }
}

/// Place of an attribute in the messages of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPlace {
    /// Topic.
    pub topic: String,
    /// JSON pointer in its messages.
    pub place: AttributePlace,
    /// Pointer segments before the element of an exploded array.
    pub elements: Option<usize>,
}

/// Messages that have an attribute, and values that a record must have to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageSelection {
    /// Topics with the attribute; empty for all.
    pub topics: Vec<String>,
    /// Topics in which the attribute is at another place.
    pub places: Vec<TopicPlace>,
    /// Values of records that are read, as spelled; empty for all records.
    pub only: Vec<String>,
}

impl MessageSelection {
    /// Returns true if topics differ in the attribute.
    pub fn differs_by_topic(&self) -> bool {
        !self.topics.is_empty() || !self.places.is_empty()
    }
}

/// Attribute of a schema.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Name in the release.
    pub name: String,
    /// Part of the message.
    pub from: AttributeOrigin,
    /// Position in that part.
    pub place: AttributePlace,
    /// Pointer segments before the element of an exploded array.
    pub elements: Option<usize>,
    /// Role in the anonymization.
    pub role: Role,
    /// Unit for documentation.
    pub unit: Option<String>,
    /// Typing of the values.
    pub typing: ValueTyping,
    /// Base of relative times.
    pub base: Option<TimeBase>,
    /// Attribute with the units of the numbers.
    pub units: Option<UnitSource>,
    /// Generalization hierarchy.
    pub hierarchy: Hierarchy,
    /// Releases uncovered values as `*`.
    pub suppresses_uncovered: bool,
    /// Configured change frequency.
    pub changes: Option<ChangeFrequency>,
    /// Treatment of values with too small a class.
    pub treatment: AttributeTreatment,
    /// Accepts writer schemas without this field.
    pub optional: bool,
    /// Messages and records with this attribute.
    pub selection: MessageSelection,
}

impl Attribute {
    /// Returns the data type.
    pub fn kind(&self) -> AttributeType {
        self.typing.kind
    }

    /// Returns the attribute that is read with this one: its base or its unit.
    pub fn companion(&self) -> Option<&str> {
        let base = self.base.as_ref().map(|base| base.attribute.as_str());
        base.or(self.units.as_ref().map(|units| units.attribute.as_str()))
    }

    /// Returns the attribute as it is in the messages of `topic`, `None` if they do not have it.
    pub fn in_topic(&self, topic: &str) -> Option<Self> {
        let MessageSelection { topics, places, .. } = &self.selection;
        if !topics.is_empty() && !topics.iter().any(|listed| listed == topic) {
            return None;
        }
        let mut attribute = self.clone();
        if let Some(other) = places.iter().find(|place| place.topic == topic) {
            attribute.place = other.place.clone();
            attribute.elements = other.elements;
        }
        Some(attribute)
    }

    /// Returns the attribute with canonical texts as input.
    #[must_use]
    pub fn for_released_values(&self) -> Self {
        Self { typing: self.typing.for_released_values(), ..self.clone() }
    }

    /// Returns the column, the last pointer segment, or the name.
    pub fn column(&self) -> String {
        match &self.place {
            AttributePlace::Column(column) => column.clone(),
            AttributePlace::Pointer(_) => self.segments().pop().unwrap_or_else(|| self.name.clone()),
        }
    }

    /// Returns the unescaped keys from the top of a record to the cell.
    pub fn segments(&self) -> Vec<String> {
        match &self.place {
            AttributePlace::Column(column) => vec![column.clone()],
            AttributePlace::Pointer(pointer) => segments(pointer),
        }
    }
}

/// Returns the unescaped keys of a JSON pointer.
pub fn segments(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect()
}
