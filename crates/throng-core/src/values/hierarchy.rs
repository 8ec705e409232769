//! Generalization hierarchies of attributes.
//!
//! Level 0 is the canonical value, the top level is `*`, and levels nest. Equal sets of values have equal texts,
//! different sets different texts, on all levels.

mod calendar;
mod grid;
mod prefix;
mod ruler;
mod tree;

pub use calendar::Calendar;
pub use grid::Grid;
pub use prefix::Prefix;
pub use ruler::{LevelCuts, MAX_POSITIONS, Ruler};
pub use tree::{HierarchyRow, ListedTree};

/// Generalized value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueCover {
    /// Suppressed value, `*`.
    Root,
    /// This value only.
    Value,
    /// Several values.
    Set {
        /// JSON text.
        text: String,
        /// Text that identifies the set.
        set: String,
        /// Loss in [0, 1] (docs/internals/methods.md §9); none in an open domain.
        loss: Option<f64>,
    },
}

impl ValueCover {
    /// Returns the loss on `level`, with the root at `top`.
    pub fn loss(&self, level: usize, top: usize) -> f64 {
        match self {
            Self::Root => 1.0,
            Self::Value => 0.0,
            Self::Set { loss, .. } => loss.unwrap_or(level as f64 / top as f64),
        }
    }
}

/// Mistake in a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HierarchyFlaw {
    /// Row, level or key.
    pub place: String,
    /// Mistake and correction.
    pub message: String,
}

impl HierarchyFlaw {
    /// Creates a flaw at `place`.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

/// Generalization hierarchy of an attribute.
#[derive(Clone, Debug)]
pub enum Hierarchy {
    /// Value and `*` only.
    Flat,
    /// Listed values.
    Tree(ListedTree),
    /// Numeric intervals.
    Ruler(Ruler),
    /// First characters of a string.
    Prefix(Prefix),
    /// Calendar units.
    Calendar(Calendar),
    /// Grid cells.
    Grid(Grid),
}

impl Hierarchy {
    /// Returns the number of levels, including raw and `*`.
    pub fn levels(&self) -> usize {
        2 + match self {
            Self::Flat => 0,
            Self::Tree(tree) => tree.inner_levels(),
            Self::Ruler(ruler) => ruler.inner_levels(),
            Self::Prefix(prefix) => prefix.inner_levels(),
            Self::Calendar(calendar) => calendar.inner_levels(),
            Self::Grid(grid) => grid.inner_levels(),
        }
    }

    /// Returns the numeric intervals.
    pub fn ruler(&self) -> Option<&Ruler> {
        if let Self::Ruler(ruler) = self { Some(ruler) } else { None }
    }

    /// Returns the cells between value and `*`; none for uncovered or ambiguous texts.
    pub fn covers(&self, canonical: &str) -> Option<Vec<ValueCover>> {
        match self {
            Self::Flat => Some(Vec::new()),
            Self::Tree(tree) => tree.covers(canonical),
            Self::Ruler(ruler) => ruler.covers(canonical),
            Self::Prefix(prefix) => prefix.covers(canonical),
            Self::Calendar(calendar) => calendar.covers(canonical),
            Self::Grid(grid) => grid.covers(canonical),
        }
    }

    /// Returns the mean loss by level of equally frequent values.
    pub fn expected_losses(&self) -> Vec<f64> {
        let top = self.levels() - 1;
        let by_level = |level: usize| level as f64 / top as f64;
        let examples = match self {
            Self::Tree(tree) => tree.examples(),
            Self::Ruler(ruler) => ruler.examples(),
            Self::Flat | Self::Prefix(_) | Self::Calendar(_) | Self::Grid(_) => Vec::new(),
        };
        if examples.is_empty() {
            return (0..=top).map(by_level).collect();
        }
        let mean = |level: usize| {
            examples.iter().map(|covers| covers[level - 1].loss(level, top)).sum::<f64>() / examples.len() as f64
        };
        (0..=top).map(|level| if level == 0 || level == top { by_level(level) } else { mean(level) }).collect()
    }

    /// Describes a level.
    pub fn label(&self, level: usize) -> String {
        let top = self.levels() - 1;
        if level == 0 {
            return "exact".to_owned();
        }
        if level >= top {
            return "not shown".to_owned();
        }
        let index = level - 1;
        match self {
            Self::Flat => String::new(),
            Self::Tree(tree) => tree.label(index),
            Self::Ruler(ruler) => ruler.label(index),
            Self::Prefix(prefix) => prefix.label(index),
            Self::Calendar(calendar) => calendar.label(index),
            Self::Grid(grid) => grid.label(index),
        }
    }

    /// Returns the fingerprint text, with Debug output: renaming types or fields changes it.
    pub fn description(&self) -> String {
        match self {
            Self::Flat => "flat".into(),
            Self::Tree(tree) => tree.description(),
            Self::Ruler(ruler) => format!("{ruler:?}"),
            Self::Prefix(prefix) => format!("{prefix:?}"),
            Self::Calendar(calendar) => format!("{calendar:?}"),
            Self::Grid(grid) => format!("{grid:?}"),
        }
    }
}

#[cfg(test)]
fn texts(covers: Option<Vec<ValueCover>>) -> Vec<String> {
    let text = |cover| match cover {
        ValueCover::Set { text, .. } => text.trim_matches('"').to_owned(),
        ValueCover::Value => "VALUE".into(),
        ValueCover::Root => "ROOT".into(),
    };
    covers.expect("a value of the domain").into_iter().map(text).collect()
}
