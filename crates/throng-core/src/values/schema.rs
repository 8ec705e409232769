//! The schema: which attributes a record has, where they are, what they mean and how they generalize.

mod attribute;
mod attribute_keys;
mod described;
mod generalized;
mod read;
#[cfg(test)]
mod tests;

pub use crate::values::canonical::{CellError, Missing, Rounding, Type, Typing};
pub use crate::values::keys::{Problem, SchemaError};
pub use attribute::{Attribute, Changes, Origin, Place, Role, Treatment, segments};
pub use described::{json_schema, reference_markdown};

use crate::values::hierarchy::Hierarchy;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The attribute that names subjects.
#[derive(Clone, Debug)]
pub struct SubjectAttribute {
    /// Its position in the schema.
    pub position: usize,
    /// How it is read.
    pub attribute: Arc<Attribute>,
}

/// A checked schema.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The name of the schema.
    pub name: String,
    /// In the order of the file, which is the order of output.
    pub attributes: Vec<Arc<Attribute>>,
    /// The attribute that counts people, if there is one.
    pub subject: Option<usize>,
    /// Declares that each record is of another person, so that a missing subject is no doubt.
    pub is_one_record_each: bool,
    /// The pointer (RFC 6901) of the array whose elements are the records.
    pub explode: Option<String>,
}

impl Schema {
    /// The attribute that names subjects.
    pub fn subject_attribute(&self) -> Option<SubjectAttribute> {
        self.subject.map(|position| SubjectAttribute { position, attribute: Arc::clone(&self.attributes[position]) })
    }

    /// What is no flaw and worth a word: rows of hierarchies that say again what others have said.
    pub fn warnings(&self) -> Vec<String> {
        let of = |attribute: &Arc<Attribute>| match &attribute.hierarchy {
            Hierarchy::Tree(tree) => {
                let name = &attribute.name;
                tree.repeated().iter().map(|row| format!("hierarchy of attribute {name:?}: {row}")).collect()
            }
            _ => Vec::new(),
        };
        self.attributes.iter().flat_map(of).collect()
    }

    /// The indices of the attributes that may leave, in order.
    pub fn releasable(&self) -> impl Iterator<Item = usize> + '_ {
        self.attributes.iter().enumerate().filter(|(_, a)| a.role.is_releasable()).map(|(i, _)| i)
    }

    /// The same schema with attributes treated as `treated` says.
    #[must_use]
    pub fn with_treatments(&self, treated: &[(usize, Treatment)]) -> Self {
        let mut schema = self.clone();
        for &(attribute, treatment) in treated {
            Arc::make_mut(&mut schema.attributes[attribute]).treatment = treatment;
        }
        schema
    }

    /// The attributes that the join called `name` brings and that may leave, in order.
    pub fn joined_by(&self, name: &str) -> Vec<usize> {
        self.releasable().filter(|a| self.attributes[*a].from.join() == Some(name)).collect()
    }

    /// The attributes that any join brings, in order.
    pub fn joined(&self) -> Vec<usize> {
        let joined = self.attributes.iter().enumerate().filter(|(_, a)| a.from.join().is_some());
        joined.map(|(i, _)| i).collect()
    }

    /// The index of the attribute called `name`.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|a| a.name == name)
    }

    /// SHA-256, in lower-case hex, of everything that decides how records are read and generalized (hierarchy files
    /// by their content; units, `changes` and treatments left out): a state written under one schema is refused under another.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        };
        add("throng schema 2");
        add(&self.name);
        if let Some(array) = &self.explode {
            add("explode");
            add(array);
        }
        for attribute in &self.attributes {
            add(&attribute.name);
            add(&format!("{:?}", attribute.place));
            if attribute.from != Origin::Value {
                add(&attribute.from.name());
            }
            add(attribute.role.name());
            add(attribute.kind().name());
            add(&format!("{:?}", attribute.typing.rounding));
            add(&format!("{:?}", attribute.typing.missing.listed()));
            add(&format!("{:?}", attribute.typing.spelling));
            add(&attribute.typing.dates.description());
            if let Some(base) = &attribute.base {
                add(&base.attribute);
                add(&base.span.description());
            }
            add(&attribute.hierarchy.description());
            if let Some(zone) = attribute.typing.zone {
                add(zone.name());
            }
            if attribute.typing.decimal_comma {
                add(",");
            }
            if let Some(conversion) = attribute.typing.conversion {
                add(&format!("{conversion:?}"));
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
