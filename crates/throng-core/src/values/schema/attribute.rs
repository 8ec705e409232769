//! An attribute of the records: its role, its place, its type.

use crate::values::canonical::{Type, Typing};
use crate::values::dates::Base;
use crate::values::hierarchy::Hierarchy;

/// The role of an attribute (docs/methods.md §1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// Never leaves.
    Identifier,
    /// Counts people; never leaves.
    Subject,
    /// May single people out in combination: the default.
    Quasi,
    /// A quasi attribute that is a point in time.
    Time,
    /// Leaves beside the class, guarded by its own support.
    Sensitive,
    /// An explicit opt-out: leaves as it is.
    Insensitive,
}

impl Role {
    /// The name that a schema uses.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether cells of this role may leave at all.
    pub fn is_releasable(self) -> bool {
        !matches!(self, Self::Identifier | Self::Subject)
    }

    /// Whether the attribute is part of the tuple whose support is counted.
    pub fn is_quasi(self) -> bool {
        matches!(self, Self::Quasi | Self::Time)
    }
}

/// How often an attribute changes from one record of a subject to the next (docs/methods.md §12.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Changes {
    /// Between at most 0.1 % of the records.
    Never,
    /// Between at most 5 %.
    Slowly,
    /// From record to record.
    Always,
}

impl Changes {
    /// The name that a schema uses.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What is done to a quasi attribute where its value has no crowd ([POD] §6.2). The configuration says so, not the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Treatment {
    /// It becomes coarser along its hierarchy, at last `*`.
    #[default]
    Generalize,
    /// It leaves exact or as `*`.
    SuppressCell,
    /// It leaves exact, or the line does not leave.
    SuppressRecord,
    /// A number gives way to the closest with a crowd, where there is one.
    Perturb,
    /// A number gives way to the median of a crowd, where there is one.
    Aggregate,
}

impl Treatment {
    /// Whether a number may give way to one that is not its person's.
    pub fn is_untruthful(self) -> bool {
        matches!(self, Self::Perturb | Self::Aggregate)
    }

    /// Whether the attribute may leave at `level`, where `top` is that of `*`.
    pub fn allows(self, level: usize, top: usize) -> bool {
        match self {
            Self::Generalize | Self::Perturb | Self::Aggregate => level <= top,
            Self::SuppressCell => level == 0 || level == top,
            Self::SuppressRecord => level == 0,
        }
    }
}

/// The part of a message that has an attribute, or what stands beside all messages. Records of files are values alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The message's value: the record itself.
    #[default]
    Value,
    /// The message's key.
    Key,
    /// The header of this name, as text.
    Header(String),
    /// The message's timestamp.
    Timestamp,
    /// The name of the topic.
    Topic,
    /// The profile that the join of this name keeps of the record's subject.
    Join(String),
}

impl Origin {
    /// What a schema writes for it.
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

    /// The origin that a schema calls `name`.
    pub fn of_name(name: &str) -> Option<Self> {
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

    /// The join that brings it, where one does.
    pub fn join(&self) -> Option<&str> {
        match self {
            Self::Join(name) => Some(name),
            _ => None,
        }
    }

    /// Whether an attribute stands somewhere inside of it.
    pub fn has_fields(&self) -> bool {
        matches!(self, Self::Value | Self::Key | Self::Join(_))
    }
}

/// Where an attribute is in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A column, or a key of the top-level object.
    Column(String),
    /// A JSON pointer (RFC 6901); `""` is all of a message's key. Behind the pointer of the array that the schema explodes, `*`
    /// stands for every element.
    Pointer(String),
}

/// One attribute of a schema.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The name under which it leaves.
    pub name: String,
    /// The part of a message that has it.
    pub from: Origin,
    /// Where that part has it.
    pub place: Place,
    /// Where it is in each element of the array that the schema explodes: so many segments of its pointer lead to the array, and
    /// the next one stands for every element.
    pub elements: Option<usize>,
    /// What it is for.
    pub role: Role,
    /// For documentation only.
    pub unit: Option<String>,
    /// How its values are read.
    pub typing: Typing,
    /// What its times count from, where that is another attribute.
    pub base: Option<Base>,
    /// What its values may become.
    pub hierarchy: Hierarchy,
    /// Values that its hierarchy does not cover are meant to leave as `*`: a data set that has some is not refused.
    pub suppresses_uncovered: bool,
    /// How often it changes within a subject; measured where it is not given.
    pub changes: Option<Changes>,
    /// What is done to it where its value has no crowd.
    pub treatment: Treatment,
    /// Records may have been written under a schema of theirs that has no field of it.
    pub optional: bool,
}

impl Attribute {
    /// The type of its values.
    pub fn kind(&self) -> Type {
        self.typing.kind
    }

    /// The same attribute in what has left: its values are canonical texts.
    #[must_use]
    pub fn released(&self) -> Self {
        Self { typing: self.typing.released(), ..self.clone() }
    }

    /// The column of flat formats: the column, or the last segment of the pointer, unescaped, or the name where there is none.
    pub fn column(&self) -> String {
        match &self.place {
            Place::Column(column) => column.clone(),
            Place::Pointer(_) => self.segments().pop().unwrap_or_else(|| self.name.clone()),
        }
    }

    /// The keys from the top of a nested record down to the cell, unescaped; none where the cell is the whole.
    pub fn segments(&self) -> Vec<String> {
        match &self.place {
            Place::Column(column) => vec![column.clone()],
            Place::Pointer(pointer) => segments(pointer),
        }
    }
}

/// The keys that a JSON pointer names, unescaped.
pub fn segments(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect()
}
