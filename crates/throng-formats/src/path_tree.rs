//! The schema's pointers as a tree, so that a record is walked once whatever the number of attributes.

use super::Field;
use hashbrown::HashMap;
use std::sync::OnceLock;

/// An index as JSON pointers write them: no sign, no leading zeros.
pub(super) fn index(segment: &str) -> Option<usize> {
    segment.parse().ok().filter(|index: &usize| index.to_string() == segment)
}

/// The fields in the elements of an array.
#[derive(Clone, Debug)]
pub(super) struct Elements {
    /// From an element downward.
    pub root: PathNode,
    /// Depth of an element; the record is 1.
    pub depth: usize,
}

/// One step on the way to some attributes.
#[derive(Clone, Debug, Default)]
pub(super) struct PathNode {
    /// Attributes that end here: usually one, none on the way to a nested attribute.
    pub attributes: Vec<usize>,
    /// Whether this is the array whose elements are records.
    pub is_array: bool,
    /// Distinguishes the children of one parent in the check for duplicate keys.
    pub ordinal: usize,
    children: Vec<PathNode>,
    /// Ordinals of the children by their segments.
    ordinals: HashMap<Box<str>, usize>,
    /// Children by field of the first record type that was read here.
    binding: OnceLock<Binding>,
}

/// The ordinal of the child that each field of a record type leads to.
#[derive(Clone, Debug)]
struct Binding {
    record: usize,
    ordinals: Box<[Option<u32>]>,
}

impl PathNode {
    /// The tree of fields with the numbers of their attributes. Those that are in elements of an array lead to the array alone.
    pub fn of<'f>(fields: impl Iterator<Item = (usize, &'f Field)>) -> Self {
        let mut root = Self::default();
        for (attribute, field) in fields {
            match field.elements {
                None => root.reach(&field.pointer).attributes.push(attribute),
                Some(array) => root.reach(&field.pointer[..array]).is_array = true,
            }
        }
        root
    }

    /// The tree of the fields that are in each element of an array, from the element downward; none where there is no array.
    pub fn of_elements<'f>(fields: impl Iterator<Item = (usize, &'f Field)>) -> Option<Elements> {
        let mut found: Option<Elements> = None;
        for (attribute, field) in fields {
            let Some(array) = field.elements else { continue };
            let elements = found.get_or_insert_with(|| Elements { root: Self::default(), depth: array + 2 });
            elements.root.reach(&field.pointer[array..]).attributes.push(attribute);
        }
        found
    }

    fn reach(&mut self, pointer: &[String]) -> &mut Self {
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

    /// Prepares [`field`](Self::field) for the fields called `names` of the record type `record`. A node is bound once: where a union has
    /// several record types, the others are looked up by name.
    pub fn bind<'n>(&self, record: usize, names: impl Iterator<Item = &'n str>) {
        self.binding.get_or_init(|| {
            let ordinal = |name| self.ordinals.get(name).and_then(|ordinal| u32::try_from(*ordinal).ok());
            Binding { record, ordinals: names.map(ordinal).collect() }
        });
    }

    /// The child that field number `field` of the record type `record`, called `name`, leads to.
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

    /// Bytes of all bindings, where a record type has at most so many fields.
    pub fn binding_bytes(&self, fields: usize) -> usize {
        let own = if self.is_leaf() { 0 } else { fields * size_of::<Option<u32>>() };
        own + self.children.iter().map(|child| child.binding_bytes(fields)).sum::<usize>()
    }

    /// The next steps, in no order.
    pub fn children(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.ordinals.iter().map(|(segment, ordinal)| (segment.as_ref(), &self.children[*ordinal]))
    }

    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }
}
