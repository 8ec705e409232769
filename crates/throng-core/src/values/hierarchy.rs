//! Generalization hierarchies: what a value may become on its way to `*`.
//!
//! Level 0 is the canonical value, the top level is `*`; a hierarchy says what lies between. On every level the
//! values are partitioned, and a higher level only merges. A cell is identified by the **set of values it covers**;
//! sets that are equal print the same text, and different sets print different texts, whatever their levels.

mod calendar;
mod grid;
mod prefix;
mod ruler;
mod tree;

pub use calendar::Calendar;
pub use grid::Grid;
pub use prefix::Prefix;
pub use ruler::{Cuts, MAX_POSITIONS, Ruler};
pub use tree::{Row, Tree};

/// What a value becomes on one level.
#[derive(Clone, Debug, PartialEq)]
pub enum Cover {
    /// `*`.
    Root,
    /// Itself: the cell covers this value alone.
    Value,
    /// Several values.
    Set {
        /// The JSON text that leaves.
        text: String,
        /// The set of values covered, spelled so that equal sets are equal bytes.
        set: String,
        /// Loss (docs/methods.md §9) in [0, 1]; none where the domain is open, so that the level decides.
        loss: Option<f64>,
    },
}

impl Cover {
    /// The loss of a value on a level of a hierarchy whose root is at `top`: where the domain is open, the level decides.
    pub fn loss(&self, level: usize, top: usize) -> f64 {
        match self {
            Self::Root => 1.0,
            Self::Value => 0.0,
            Self::Set { loss, .. } => loss.unwrap_or(level as f64 / top as f64),
        }
    }
}

/// A problem of a hierarchy: the key or row it is at, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Where: a row, a level or a key.
    pub place: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Flaw {
    /// Creates a flaw at `place`.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

/// The hierarchy of one attribute.
#[derive(Clone, Debug)]
pub enum Hierarchy {
    /// The value, then `*`.
    Flat,
    /// Listed values (files and inline trees).
    Tree(Tree),
    /// Intervals of numbers.
    Ruler(Ruler),
    /// The first characters of a string.
    Prefix(Prefix),
    /// Calendar units.
    Calendar(Calendar),
    /// Cells of latitude and longitude.
    Grid(Grid),
}

impl Hierarchy {
    /// Number of levels, the raw one and `*` counted: at least 2.
    pub fn levels(&self) -> usize {
        2 + match self {
            Self::Flat => 0,
            Self::Tree(tree) => tree.between(),
            Self::Ruler(ruler) => ruler.between(),
            Self::Prefix(prefix) => prefix.between(),
            Self::Calendar(calendar) => calendar.between(),
            Self::Grid(grid) => grid.between(),
        }
    }

    /// The intervals, of a hierarchy of intervals.
    pub fn ruler(&self) -> Option<&Ruler> {
        if let Self::Ruler(ruler) = self { Some(ruler) } else { None }
    }

    /// What the canonical value becomes on each level between the raw one and `*`; none if the hierarchy misses it,
    /// or if its own text could be mistaken for that of a generalized cell.
    pub fn covers(&self, canonical: &str) -> Option<Vec<Cover>> {
        match self {
            Self::Flat => Some(Vec::new()),
            Self::Tree(tree) => tree.covers(canonical),
            Self::Ruler(ruler) => ruler.covers(canonical),
            Self::Prefix(prefix) => prefix.covers(canonical),
            Self::Calendar(calendar) => calendar.covers(canonical),
            Self::Grid(grid) => grid.covers(canonical),
        }
    }

    /// Mean loss by level, the raw one and `*` counted, if all values of the domain were equally frequent: what can be
    /// expected before any data has been seen. Open domains lose level/(levels − 1).
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

    /// What a level shows of a value, in a few words.
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

    /// A text that changes exactly when the hierarchy does.
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

/// The texts of covers, without their quotes.
#[cfg(test)]
fn texts(covers: Option<Vec<Cover>>) -> Vec<String> {
    let text = |cover| match cover {
        Cover::Set { text, .. } => text.trim_matches('"').to_owned(),
        Cover::Value => "VALUE".into(),
        Cover::Root => "ROOT".into(),
    };
    covers.expect("a value of the domain").into_iter().map(text).collect()
}
