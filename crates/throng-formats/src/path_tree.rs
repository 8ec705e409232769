//! The schema's JSON pointers as a tree. A record is walked once for any number of attributes.

use super::FieldPath;
use hashbrown::HashMap;
use std::sync::OnceLock;

/// Parses an array index as JSON pointers write it: no sign, no leading zeros.
pub(super) fn index(segment: &str) -> Option<usize> {
    segment.parse().ok().filter(|index: &usize| index.to_string() == segment)
}

/// Fields in the elements of an array.
#[derive(Clone, Debug)]
pub(super) struct ElementPaths {
    /// Paths from an element downward.
    pub root: PathNode,
    /// Depth of an element; the record is depth 1.
    pub depth: usize,
}

/// One step on the path to some attributes.
#[derive(Clone, Debug, Default)]
pub(super) struct PathNode {
    /// Attributes with a path that ends here: usually one, none on an inner step.
    pub attributes: Vec<usize>,
    /// This node is the array of records.
    pub is_array: bool,
    /// Index among the children of one parent, used to detect duplicate keys.
    pub ordinal: usize,
    children: Vec<PathNode>,
    ordinals: HashMap<Box<str>, usize>,
    /// Children by field number, for the first record type read at this node.
    binding: OnceLock<FieldBinding>,
}

/// Ordinal of the child for each field of a record type.
#[derive(Clone, Debug)]
struct FieldBinding {
    record: usize,
    ordinals: Box<[Option<u32>]>,
}

impl PathNode {
    /// Builds the tree of fields with attribute numbers. Fields in array elements contribute only the path to the
    /// array.
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

    /// Builds the tree of the fields in each array element, from the element downward. Returns `None` if no field is
    /// in an array.
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

    /// Prepares [`field`](Self::field) for the fields `names` of the record type `record`. A node is bound once:
    /// other record types of a union are looked up by name.
    pub fn bind<'n>(&self, record: usize, names: impl Iterator<Item = &'n str>) {
        self.binding.get_or_init(|| {
            let ordinal = |name| self.ordinals.get(name).and_then(|ordinal| u32::try_from(*ordinal).ok());
            FieldBinding { record, ordinals: names.map(ordinal).collect() }
        });
    }

    /// Returns the child for field number `field`, called `name`, of the record type `record`.
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

    /// Returns the bytes of all bindings for record types of at most `fields` fields.
    pub fn binding_bytes(&self, fields: usize) -> usize {
        let own = if self.is_leaf() { 0 } else { fields * size_of::<Option<u32>>() };
        own + self.children.iter().map(|child| child.binding_bytes(fields)).sum::<usize>()
    }

    /// Returns the next steps in unspecified order.
    pub fn children(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.ordinals.iter().map(|(segment, ordinal)| (segment.as_ref(), &self.children[*ordinal]))
    }

    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }
}
