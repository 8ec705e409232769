//! The schema's pointers as a tree, so that a record is walked once whatever the number of attributes.

use hashbrown::HashMap;

use super::Field;

/// One step on the way to some attributes.
#[derive(Clone, Debug, Default)]
pub(super) struct PathNode {
    /// Attributes that end here: usually one, none on the way to a nested attribute.
    pub attributes: Vec<usize>,
    /// Distinguishes the children of one parent in the check for duplicate keys.
    pub ordinal: usize,
    children: HashMap<Box<str>, PathNode>,
}

impl PathNode {
    /// The tree of all `fields`; an attribute is known by its position in the list.
    pub fn root(fields: &[Field]) -> Self {
        Self::of(fields.iter().enumerate())
    }

    /// The tree of fields with the numbers of their attributes.
    pub fn of<'f>(fields: impl Iterator<Item = (usize, &'f Field)>) -> Self {
        let mut root = Self::default();
        for (attribute, field) in fields {
            let mut node = &mut root;
            for segment in &field.pointer {
                let ordinal = node.children.len();
                node =
                    node.children.entry(segment.as_str().into()).or_insert_with(|| Self { ordinal, ..Self::default() });
            }
            node.attributes.push(attribute);
        }
        root
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
