//! The values of one attribute of a table, and what they become on each level of its hierarchy.
//!
//! Values are dense codes; so are the cells of every level. Level 0 holds the values, the last level one cell.

/// One level.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The cell of each value.
    pub cell_of: Vec<u32>,
    /// Loss (docs/methods.md §9) of each cell, in [0, 1].
    pub loss: Vec<f64>,
}

impl Level {
    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.loss.len()
    }
}

/// The levels of one attribute, each checked to merge cells of the one before.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    name: String,
    levels: Vec<Level>,
    /// By level: the cell that says nothing of the value, if there is one.
    silent: Vec<Option<u32>>,
}

/// Levels that are no hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum DomainError {
    #[error("attribute \"{attribute}\" has {levels} levels; a policy chooses between 2 and 255")]
    Levels { attribute: String, levels: usize },
    #[error(
        "attribute \"{attribute}\": level {level} knows {found} of {values} values; give every value a cell on every level"
    )]
    Values { attribute: String, level: usize, found: usize, values: usize },
    #[error("attribute \"{attribute}\": level {level} splits a cell of the level below; levels may only merge")]
    Splits { attribute: String, level: usize },
    #[error(
        "attribute \"{attribute}\": a loss of level {level} is not between 0 and 1, or below that of the cell under it"
    )]
    Loss { attribute: String, level: usize },
    #[error("attribute \"{attribute}\": the last level has {cells} cells; it is the root and has one")]
    Root { attribute: String, cells: usize },
}

impl Domain {
    /// The domain of the attribute `name`.
    ///
    /// # Errors
    /// When the levels are no hierarchy: fewer than 2 or more than 255, a value without a cell, a level that splits a cell,
    /// a loss outside [0, 1] or falling from a level to the next, more than one root.
    pub fn new(name: impl Into<String>, levels: Vec<Level>) -> Result<Self, DomainError> {
        let attribute = name.into();
        if !(2..=255).contains(&levels.len()) {
            return Err(DomainError::Levels { attribute, levels: levels.len() });
        }
        let values = levels[0].cell_of.len();
        for (index, level) in levels.iter().enumerate() {
            if level.cell_of.len() != values || level.cell_of.iter().any(|&cell| cell as usize >= level.cells()) {
                return Err(DomainError::Values { attribute, level: index, found: level.cell_of.len(), values });
            }
            if level.loss.iter().any(|loss| !(0.0..=1.0).contains(loss)) {
                return Err(DomainError::Loss { attribute, level: index });
            }
            let Some(below) = index.checked_sub(1).map(|below| &levels[below]) else { continue };
            let mut above = vec![None; below.cells()];
            for (&from, &to) in below.cell_of.iter().zip(&level.cell_of) {
                if *above[from as usize].get_or_insert(to) != to {
                    return Err(DomainError::Splits { attribute, level: index });
                }
                if level.loss[to as usize] < below.loss[from as usize] {
                    return Err(DomainError::Loss { attribute, level: index });
                }
            }
        }
        let cells = levels[levels.len() - 1].cells();
        if cells > 1 {
            return Err(DomainError::Root { attribute, cells });
        }
        let mut silent = vec![None; levels.len()];
        silent[levels.len() - 1] = Some(0);
        Ok(Self { name: attribute, levels, silent })
    }

    /// The same domain, where levels below the root may have a cell that says nothing either: by level, root included.
    #[must_use]
    pub fn with_silent(self, below: Vec<Option<u32>>) -> Self {
        debug_assert_eq!(below.len(), self.levels.len());
        Self { silent: below, ..self }
    }

    /// Whether a value leaves as a cell that says nothing of it on `level`.
    pub fn is_silent(&self, level: u8, value: u32) -> bool {
        let level = usize::from(level);
        self.silent[level] == Some(self.levels[level].cell_of[value as usize])
    }

    /// The name of the attribute.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The levels, the values first, the root last.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Number of values.
    pub fn values(&self) -> usize {
        self.levels[0].cell_of.len()
    }

    /// The position of the root among the levels.
    pub fn top(&self) -> u8 {
        u8::try_from(self.levels.len() - 1).expect("checked when the domain was made")
    }

    /// For each level above the values, the cell that each cell of the level below becomes: a ground tree.
    pub fn parents(&self) -> Vec<Vec<u32>> {
        let above = |pair: &[Level]| {
            let mut parents = vec![0; pair[0].cells()];
            for (&from, &to) in pair[0].cell_of.iter().zip(&pair[1].cell_of) {
                parents[from as usize] = to;
            }
            parents
        };
        self.levels.windows(2).map(above).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(cell_of: &[u32], loss: &[f64]) -> Level {
        Level { cell_of: cell_of.to_vec(), loss: loss.to_vec() }
    }

    #[test]
    fn what_is_no_hierarchy_is_refused_and_says_where() {
        let raw = level(&[0, 1, 2], &[0.0; 3]);
        let pair = level(&[0, 0, 1], &[0.5, 0.0]);
        let root = level(&[0, 0, 0], &[1.0]);
        let sound = Domain::new("a", vec![raw.clone(), pair.clone(), root.clone()]).unwrap();
        assert_eq!((sound.top(), sound.values(), sound.parents()), (2, 3, vec![vec![0, 0, 1], vec![0, 0]]));
        let name = || "a".to_owned();
        let cases = [
            (vec![raw.clone()], DomainError::Levels { attribute: name(), levels: 1 }),
            (vec![raw.clone(), pair.clone()], DomainError::Root { attribute: name(), cells: 2 }),
            (
                vec![raw.clone(), pair.clone(), level(&[0, 1, 1], &[0.5, 0.5]), root.clone()],
                DomainError::Splits { attribute: name(), level: 2 },
            ),
            (
                vec![raw.clone(), level(&[0, 0], &[0.5]), root.clone()],
                DomainError::Values { attribute: name(), level: 1, found: 2, values: 3 },
            ),
            (vec![raw.clone(), pair, level(&[0, 0, 0], &[0.4])], DomainError::Loss { attribute: name(), level: 2 }),
            (vec![raw, level(&[0, 0, 0], &[1.1])], DomainError::Loss { attribute: name(), level: 1 }),
        ];
        for (levels, error) in cases {
            assert_eq!(Domain::new("a", levels), Err(error));
        }
    }
}
