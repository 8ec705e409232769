//! The shared attributes of a plan, as the treatment sees them (docs/methods.md §10.6).

use crate::anonymity::plan::Plan;

/// The shared attributes of a plan.
pub(super) struct Shared {
    /// Positions in the schema, ascending, each with its level: the finest that any group shows.
    levels: Vec<(usize, u8)>,
    /// By group: those that it shows.
    shown: Vec<Vec<usize>>,
}

impl Shared {
    /// Those of `plan`.
    pub fn of(plan: &Plan) -> Self {
        let levels = plan.shared_levels();
        let shown = |group: usize| {
            let has = |a: &usize| plan.groups[group].quasi.contains(a) && plan.shows(group, *a);
            levels.iter().map(|(a, _)| *a).filter(has).collect()
        };
        Self { shown: (0..plan.groups.len()).map(shown).collect(), levels }
    }

    /// The shared attributes and their levels.
    pub fn levels(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.levels.iter().map(|&(a, level)| (a, usize::from(level)))
    }

    /// Whether an attribute is shared.
    pub fn has(&self, attribute: usize) -> bool {
        self.levels.iter().any(|(a, _)| *a == attribute)
    }

    /// Whether a group shows anything of an attribute that is.
    pub fn is_shown(&self, group: usize, attribute: usize) -> bool {
        self.shown[group].contains(&attribute)
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }
}
