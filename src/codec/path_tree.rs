//! The schema's pointers as a tree, so that a record is walked once whatever the number of attributes.

use hashbrown::HashMap;

use super::Field;

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
    children: HashMap<Box<str>, PathNode>,
}

impl PathNode {
    /// The tree of all `fields`; an attribute is known by its position in the list.
    pub fn root(fields: &[Field]) -> Self {
        Self::of(fields.iter().enumerate())
    }

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
            let ordinal = node.children.len();
            node.children.entry(segment.as_str().into()).or_insert_with(|| Self { ordinal, ..Self::default() })
        })
    }

    #[inline]
    pub fn child(&self, key: &str) -> Option<&Self> {
        self.children.get(key)
    }

    /// The next steps, in no order.
    pub fn children(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.children.iter().map(|(segment, child)| (segment.as_ref(), child))
    }

    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }
}
