//! The schema: which attributes a record has, where they are, what they mean and how they generalize.

mod read;
mod spelled;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use crate::records::canonical::{CellError, Missing, Rounding, Type, Typing};
use crate::records::hierarchy::Hierarchy;
pub use crate::records::keys::Problem;

/// The role of an attribute (docs/methods.md §1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
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
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Identifier => "identifier",
            Self::Subject => "subject",
            Self::Quasi => "quasi",
            Self::Time => "time",
            Self::Sensitive => "sensitive",
            Self::Insensitive => "insensitive",
        }
    }

    /// Whether cells of this role may leave at all.
    #[must_use]
    pub fn is_releasable(self) -> bool {
        !matches!(self, Self::Identifier | Self::Subject)
    }

    /// Whether the attribute is part of the tuple whose support is counted.
    #[must_use]
    pub fn is_quasi(self) -> bool {
        matches!(self, Self::Quasi | Self::Time)
    }
}

/// How often an attribute changes from one record of a subject to the next (docs/methods.md §12.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Changes {
    /// Between at most 0.1 % of the records.
    Never,
    /// Between at most 5 %.
    Slowly,
    Always,
}

impl Changes {
    /// The name that a schema uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Slowly => "slowly",
            Self::Always => "always",
        }
    }
}

/// Where an attribute is in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A column, or a key of the top-level object.
    Column(String),
    /// A JSON pointer (RFC 6901).
    Pointer(String),
}

/// One attribute of a schema.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The name under which it leaves.
    pub name: String,
    pub place: Place,
    pub role: Role,
    /// For documentation only.
    pub unit: Option<String>,
    pub typing: Typing,
    pub hierarchy: Hierarchy,
    /// How often it changes within a subject; measured where it is not given.
    pub changes: Option<Changes>,
}

impl Attribute {
    #[must_use]
    pub fn kind(&self) -> Type {
        self.typing.kind
    }

    /// The column of flat formats: the column, or the last segment of the pointer, unescaped.
    #[must_use]
    pub fn column(&self) -> String {
        match &self.place {
            Place::Column(column) => column.clone(),
            Place::Pointer(_) => self.segments().pop().unwrap_or_default(),
        }
    }

    /// The keys from the top of a nested record down to the cell, unescaped; at least one.
    #[must_use]
    pub fn segments(&self) -> Vec<String> {
        match &self.place {
            Place::Column(column) => vec![column.clone()],
            Place::Pointer(pointer) => {
                pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect()
            }
        }
    }
}

/// Everything that is wrong with a schema, at once.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SchemaError {
    /// In the order of the file; at least one.
    pub problems: Vec<Problem>,
}

/// A checked schema.
#[derive(Clone, Debug)]
pub struct Schema {
    pub name: String,
    /// In the order of the file, which is the order of output.
    pub attributes: Vec<Arc<Attribute>>,
    /// The attribute that counts people, if there is one.
    pub subject: Option<usize>,
}

impl Schema {
    /// What is no flaw and worth a word: rows of hierarchies that say again what others have said.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let of = |attribute: &std::sync::Arc<Attribute>| match &attribute.hierarchy {
            Hierarchy::Tree(tree) => {
                let name = &attribute.name;
                tree.repeated().iter().map(|row| format!("hierarchy of attribute {name:?}: {row}")).collect()
            }
            _ => Vec::new(),
        };
        self.attributes.iter().flat_map(of).collect()
    }

    /// Reads a schema file and the hierarchy files that it names, relative to its folder.
    ///
    /// # Errors
    /// Every problem of all the files: unreadable or malformed files, unknown or missing keys, contradictions.
    pub fn load(path: &Path) -> Result<Self, SchemaError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!("cannot be read ({error}): check the path");
            SchemaError { problems: vec![Problem { file: file.clone(), place: String::new(), message }] }
        })?;
        Self::parse(&text, &file, path.parent().unwrap_or(Path::new("")))
    }

    /// The hierarchy files that a schema file names, whether or not they are there and it is sound. Empty where it cannot
    /// be read, which [`load`](Self::load) tells.
    #[must_use]
    pub fn hierarchy_files(path: &Path) -> Vec<PathBuf> {
        let Some(table) = std::fs::read_to_string(path).ok().and_then(|text| text.parse::<toml::Table>().ok()) else {
            return Vec::new();
        };
        let attributes = table.get("attribute").and_then(toml::Value::as_array).into_iter().flatten();
        let files = attributes.filter_map(|attribute| attribute.get("hierarchy")?.get("path")?.as_str());
        files.map(|file| path.parent().unwrap_or(Path::new("")).join(file)).collect()
    }

    /// Reads a schema from text; `file` names it in messages, hierarchy files are looked for in `folder`.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(text: &str, file: &str, folder: &Path) -> Result<Self, SchemaError> {
        read::schema(text, file, folder)
    }

    /// The indices of the attributes that may leave, in order.
    pub fn releasable(&self) -> impl Iterator<Item = usize> + '_ {
        self.attributes.iter().enumerate().filter(|(_, a)| a.role.is_releasable()).map(|(i, _)| i)
    }

    /// The index of the attribute called `name`.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|a| a.name == name)
    }

    /// SHA-256, in lower-case hex, of everything that decides how records are read and generalized (hierarchy files
    /// by their content; units and `changes` left out): a state written under one schema is refused under another.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        };
        add("throng schema 2");
        add(&self.name);
        for attribute in &self.attributes {
            add(&attribute.name);
            add(&format!("{:?}", attribute.place));
            add(attribute.role.name());
            add(attribute.kind().name());
            add(&format!("{:?}", attribute.typing.rounding));
            add(&format!("{:?}", attribute.typing.missing.listed()));
            add(&format!("{:?}", attribute.typing.spelling));
            add(&attribute.typing.dates.description());
            add(&attribute.hierarchy.description());
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests;
