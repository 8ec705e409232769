//! The schema: which attributes a record has, where they are, what they mean and how they generalize.

mod attribute;
mod read;
mod spelled;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use crate::records::canonical::{CellError, Missing, Rounding, Type, Typing};
use crate::records::hierarchy::Hierarchy;
pub use crate::records::keys::Problem;
pub use attribute::{Attribute, Changes, Place, Role};

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
