//! Record schemas.

mod attribute;
mod attribute_keys;
mod described;
mod hierarchy_table;
mod message_selection;
mod read;
#[cfg(test)]
mod tests;

pub use crate::values::canonical::{AttributeType, CellError, MissingSpellings, Rounding, ValueTyping};
pub use crate::values::table_reader::{SchemaError, SchemaProblem};
pub use attribute::{
    Attribute, AttributeOrigin, AttributePlace, AttributeTreatment, ChangeFrequency, MessageSelection, Role,
    TopicPlace, UnitSource, segments,
};
pub use described::{json_schema, reference_markdown};

use crate::values::hierarchy::Hierarchy;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Attribute with subjects.
#[derive(Clone, Debug)]
pub struct SubjectAttribute {
    /// Index in the schema.
    pub position: usize,
    /// Attribute.
    pub attribute: Arc<Attribute>,
}

/// Checked record schema.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Schema name.
    pub name: String,
    /// Attributes in file and output order.
    pub attributes: Vec<Arc<Attribute>>,
    /// Index of the subject attribute.
    pub subject: Option<usize>,
    /// Each record has another subject.
    pub is_one_record_each: bool,
    /// JSON pointer (RFC 6901) of the array of records.
    pub explode: Option<String>,
}

impl Schema {
    /// Returns the subject attribute.
    pub fn subject_attribute(&self) -> Option<SubjectAttribute> {
        self.subject.map(|position| SubjectAttribute { position, attribute: Arc::clone(&self.attributes[position]) })
    }

    /// Returns true if attributes differ between topics.
    pub fn differs_by_topic(&self) -> bool {
        self.attributes.iter().any(|a| a.selection.differs_by_topic())
    }

    /// Returns the topics that attributes name, with the attribute.
    pub fn named_topics(&self) -> impl Iterator<Item = (&str, &str)> {
        self.attributes.iter().flat_map(|a| {
            let places = a.selection.places.iter().map(|place| &place.topic);
            a.selection.topics.iter().chain(places).map(|topic| (a.name.as_str(), topic.as_str()))
        })
    }

    /// Returns warnings about repeated hierarchy rows.
    pub fn warnings(&self) -> Vec<String> {
        let of = |attribute: &Arc<Attribute>| match &attribute.hierarchy {
            Hierarchy::Tree(tree) => {
                let name = &attribute.name;
                tree.repeated_rows().iter().map(|row| format!("hierarchy of attribute {name:?}: {row}")).collect()
            }
            _ => Vec::new(),
        };
        self.attributes.iter().flat_map(of).collect()
    }

    /// Returns the releasable attributes in order.
    pub fn releasable(&self) -> impl Iterator<Item = usize> + '_ {
        self.attributes.iter().enumerate().filter(|(_, a)| a.role.is_releasable()).map(|(i, _)| i)
    }

    /// Returns the schema with these treatments.
    #[must_use]
    pub fn with_treatments(&self, treated: &[(usize, AttributeTreatment)]) -> Self {
        let mut schema = self.clone();
        for &(attribute, treatment) in treated {
            Arc::make_mut(&mut schema.attributes[attribute]).treatment = treatment;
        }
        schema
    }

    /// Returns the releasable attributes of a join.
    pub fn attributes_of_join(&self, name: &str) -> Vec<usize> {
        self.releasable().filter(|a| self.attributes[*a].from.join() == Some(name)).collect()
    }

    /// Returns the attributes of all joins.
    pub fn joined_attributes(&self) -> Vec<usize> {
        let joined = self.attributes.iter().enumerate().filter(|(_, a)| a.from.join().is_some());
        joined.map(|(i, _)| i).collect()
    }

    /// Returns the index of an attribute.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|a| a.name == name)
    }

    /// Returns the SHA-256 in hex of the rules for reading and generalizing.
    ///
    /// Includes hierarchy files; excludes units, `changes` and treatments. Contains Debug output: renaming types,
    /// fields or variants changes it.
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
            if attribute.from != AttributeOrigin::Value {
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
            if let Some(units) = &attribute.units {
                add("unit_from");
                add(&units.attribute);
                add(&units.unit);
                add(&format!("{:?}", units.raw.missing.listed()));
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
            if attribute.selection != MessageSelection::default() {
                add(&format!("{:?}", attribute.selection));
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
