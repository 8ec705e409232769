//! Attributes of records: role, position and type.

use crate::values::canonical::{AttributeType, ValueTyping};
use crate::values::date_formats::TimeBase;
use crate::values::hierarchy::Hierarchy;

/// Role of an attribute (docs/internals/methods.md §1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// Direct identifier, never released.
    Identifier,
    /// Identifies the subject; never released.
    Subject,
    /// Quasi-identifier, which may single out a subject in combination. The default.
    Quasi,
    /// Quasi-identifier that is a point in time.
    Time,
    /// Sensitive attribute, released next to the class and protected by the support of its values.
    Sensitive,
    /// Explicit opt-out: released unchanged.
    Insensitive,
}

impl Role {
    /// Returns the name in schema files.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Checks that cells of this role may be released.
    pub fn is_releasable(self) -> bool {
        !matches!(self, Self::Identifier | Self::Subject)
    }

    /// Checks that the attribute is part of the equivalence class.
    pub fn is_quasi(self) -> bool {
        matches!(self, Self::Quasi | Self::Time)
    }
}

/// Frequency of changes between consecutive records of a subject (docs/internals/methods.md §12.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ChangeFrequency {
    /// Changes between at most 0.1 % of the records.
    Never,
    /// Changes between at most 5 % of the records.
    Slowly,
    /// Changes from record to record.
    Always,
}

impl ChangeFrequency {
    /// Returns the name in schema files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Treatment of a quasi-identifier if its class is too small (\[POD] §6.2). It is set in the configuration, not in the
/// schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AttributeTreatment {
    /// Generalizes along the hierarchy, up to `*`.
    #[default]
    Generalize,
    /// Releases the exact value or `*`.
    SuppressCell,
    /// Releases the exact value or drops the record.
    SuppressRecord,
    /// Replaces a number by the closest one with a large enough class, if any.
    Perturb,
    /// Replaces a number by the median of a large enough class, if any.
    Aggregate,
}

impl AttributeTreatment {
    /// Checks that the treatment may replace a number by that of another subject.
    pub fn is_untruthful(self) -> bool {
        matches!(self, Self::Perturb | Self::Aggregate)
    }

    /// Checks that the attribute may be released at `level`, with `*` at level `top`.
    pub fn allows(self, level: usize, top: usize) -> bool {
        match self {
            Self::Generalize | Self::Perturb | Self::Aggregate => level <= top,
            Self::SuppressCell => level == 0 || level == top,
            Self::SuppressRecord => level == 0,
        }
    }
}

/// Source of an attribute: a part of the message, or data joined to it. Records of files have only a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AttributeOrigin {
    /// Value of the message: the record.
    #[default]
    Value,
    /// Key of the message.
    Key,
    /// Header with this name, as text.
    Header(String),
    /// Timestamp of the message.
    Timestamp,
    /// Name of the topic.
    Topic,
    /// Profile of the record's subject in the join with this name.
    Join(String),
}

impl AttributeOrigin {
    /// Returns the name in schema files.
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

    /// Returns the origin with a name from a schema file.
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

    /// Returns the name of the join, if the origin is a join.
    pub fn join(&self) -> Option<&str> {
        match self {
            Self::Join(name) => Some(name),
            _ => None,
        }
    }

    /// Checks that the origin has fields, so that an attribute can have a column or pointer in it.
    pub fn has_fields(&self) -> bool {
        matches!(self, Self::Value | Self::Key | Self::Join(_))
    }
}

/// Position of an attribute in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributePlace {
    /// Column, or key of the top-level object.
    Column(String),
    /// JSON pointer (RFC 6901); `""` is the complete message key. After the pointer of the exploded array, `*` means
    /// every element.
    Pointer(String),
}

/// Attribute of a schema.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Name in the release.
    pub name: String,
    /// Part of the message that contains it.
    pub from: AttributeOrigin,
    /// Position in that part.
    pub place: AttributePlace,
    /// For an attribute of the elements of an exploded array: the number of pointer segments up to the array. The
    /// next segment is the element.
    pub elements: Option<usize>,
    /// Role of the attribute.
    pub role: Role,
    /// Unit, for documentation only.
    pub unit: Option<String>,
    /// Typing of its values.
    pub typing: ValueTyping,
    /// Base of its times, if they are relative to another attribute.
    pub base: Option<TimeBase>,
    /// Hierarchy of its values.
    pub hierarchy: Hierarchy,
    /// Releases values outside the hierarchy as `*`; a data set with such values is then accepted.
    pub suppresses_uncovered: bool,
    /// Frequency of changes within a subject; measured if not given.
    pub changes: Option<ChangeFrequency>,
    /// Treatment of values with too small a class.
    pub treatment: AttributeTreatment,
    /// Accepts records with a writer schema that lacks this field.
    pub optional: bool,
}

impl Attribute {
    /// Returns the type of its values.
    pub fn kind(&self) -> AttributeType {
        self.typing.kind
    }

    /// Returns the attribute for released data, in which the values are canonical texts.
    #[must_use]
    pub fn for_released_values(&self) -> Self {
        Self { typing: self.typing.for_released_values(), ..self.clone() }
    }

    /// Returns the column in flat formats: the column, the last pointer segment (unescaped), or otherwise the name.
    pub fn column(&self) -> String {
        match &self.place {
            AttributePlace::Column(column) => column.clone(),
            AttributePlace::Pointer(_) => self.segments().pop().unwrap_or_else(|| self.name.clone()),
        }
    }

    /// Returns the keys from the top of a nested record to the cell, unescaped; none if the cell is the complete
    /// part.
    pub fn segments(&self) -> Vec<String> {
        match &self.place {
            AttributePlace::Column(column) => vec![column.clone()],
            AttributePlace::Pointer(pointer) => segments(pointer),
        }
    }
}

/// Returns the keys in a JSON pointer, unescaped.
pub fn segments(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect()
}
