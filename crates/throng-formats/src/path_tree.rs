//! Tree of the schema's JSON pointers, so that a record is walked once.

use super::FieldPath;
use hashbrown::HashMap;
use std::sync::OnceLock;

/// Parses an index without sign or leading zeros.
pub(super) fn index(segment: &str) -> Option<usize> {
    segment.parse().ok().filter(|index: &usize| index.to_string() == segment)
}

#[derive(Clone, Debug)]
pub(super) struct ElementPaths {
    pub root: PathNode,
    /// Depth of an element; the record has depth 1.
    pub depth: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PathNode {
    /// Attributes whose path ends here.
    pub attributes: Vec<usize>,
    pub is_array: bool,
    /// Index among siblings, to detect duplicate keys.
    pub ordinal: usize,
    children: Vec<PathNode>,
    ordinals: HashMap<Box<str>, usize>,
    /// Children by field number, for the first record type.
    binding: OnceLock<FieldBinding>,
}

/// Ordinal of the child per field.
#[derive(Clone, Debug)]
struct FieldBinding {
    record: usize,
    ordinals: Box<[Option<u32>]>,
}

impl PathNode {
    /// Fields in elements contribute only the path to the array.
    pub fn from_fields<'f>(fields: impl Iterator<Item = (usize, &'f FieldPath)>) -> Self {
        let mut root = Self::default();
        for (attribute, field) in fields {
            match field.elements {
                None => root.insert_pointer(&field.pointer).attributes.push(attribute),
                Some(array) => root.insert_pointer(&field.pointer[..array]).is_array = true,
            }
        }
        root
    }

    /// Returns the tree below an array element, if any.
    pub fn element_paths<'f>(fields: impl Iterator<Item = (usize, &'f FieldPath)>) -> Option<ElementPaths> {
        let mut found: Option<ElementPaths> = None;
        for (attribute, field) in fields {
            let Some(array) = field.elements else { continue };
            let elements = found.get_or_insert_with(|| ElementPaths { root: Self::default(), depth: array + 2 });
            elements.root.insert_pointer(&field.pointer[array..]).attributes.push(attribute);
        }
        found
    }

    fn insert_pointer(&mut self, pointer: &[String]) -> &mut Self {
        pointer.iter().fold(self, |node, segment| {
            let ordinal = *node.ordinals.entry(segment.as_str().into()).or_insert(node.children.len());
            if ordinal == node.children.len() {
                node.children.push(Self { ordinal, ..Self::default() });
            }
            &mut node.children[ordinal]
        })
    }

    #[inline]
    pub fn child(&self, key: &str) -> Option<&Self> {
        self.ordinals.get(key).map(|ordinal| &self.children[*ordinal])
    }

    /// Prepares [`field`](Self::field). A node is bound once; other types of a union are looked up by name.
    pub fn bind<'n>(&self, record: usize, names: impl Iterator<Item = &'n str>) {
        self.binding.get_or_init(|| {
            let ordinal = |name| self.ordinals.get(name).and_then(|ordinal| u32::try_from(*ordinal).ok());
            FieldBinding { record, ordinals: names.map(ordinal).collect() }
        });
    }

    #[inline]
    pub fn field(&self, record: usize, field: usize, name: &str) -> Option<&Self> {
        match self.binding.get() {
            Some(bound) if bound.record == record => {
                bound.ordinals[field].map(|ordinal| &self.children[ordinal as usize])
            }
            _ => self.unbound_field(name),
        }
    }

    #[cold]
    fn unbound_field(&self, name: &str) -> Option<&Self> {
        self.child(name)
    }

    /// Returns the bytes, for at most `fields` fields per type.
    pub fn binding_bytes(&self, fields: usize) -> usize {
        let own = if self.is_leaf() { 0 } else { fields * size_of::<Option<u32>>() };
        own + self.children.iter().map(|child| child.binding_bytes(fields)).sum::<usize>()
    }

    pub fn children(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.ordinals.iter().map(|(segment, ordinal)| (segment.as_ref(), &self.children[*ordinal]))
    }

    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }
}
