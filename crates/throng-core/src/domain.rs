//! Dense codes of attribute values and their cells on each hierarchy level.

/// One hierarchy level; 0 holds the values, the last one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct HierarchyLevel {
    /// Cell of each value.
    pub cell_of: Vec<u32>,
    /// Loss (docs/internals/methods.md §9) of each cell, in [0, 1].
    pub loss: Vec<f64>,
}

impl HierarchyLevel {
    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.loss.len()
    }
}

/// Hierarchy of one attribute. Each level only merges cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    name: String,
    levels: Vec<HierarchyLevel>,
    uninformative_cells: Vec<Option<u32>>,
}

/// Error in the levels of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the variants and their fields")]
pub enum DomainError {
    #[error("attribute \"{attribute}\" has {levels} levels; a policy supports 2 to 255")]
    Levels { attribute: String, levels: usize },
    #[error(
        "attribute \"{attribute}\": level {level} covers {found} of {values} values; give every value a cell on every level"
    )]
    Values { attribute: String, level: usize, found: usize, values: usize },
    #[error("attribute \"{attribute}\": level {level} splits a cell of the level below; levels may only merge")]
    Splits { attribute: String, level: usize },
    #[error(
        "attribute \"{attribute}\": a loss of level {level} is not between 0 and 1, or is below the loss of the cell one level lower"
    )]
    Loss { attribute: String, level: usize },
    #[error("attribute \"{attribute}\": the last level has {cells} cells, but is the root and must have one")]
    Root { attribute: String, cells: usize },
}

impl Domain {
    /// Creates the domain of `name`.
    ///
    /// # Errors
    /// Level count outside 2 to 255, a value without a cell, a split cell, several roots, or a loss outside [0, 1] or
    /// below that of the previous level.
    pub fn new(name: impl Into<String>, levels: Vec<HierarchyLevel>) -> Result<Self, DomainError> {
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
        Ok(Self { name: attribute, levels, uninformative_cells: silent })
    }

    /// Sets the cell of each level that reveals nothing.
    #[must_use]
    pub fn with_uninformative_cells(self, below: Vec<Option<u32>>) -> Self {
        debug_assert_eq!(below.len(), self.levels.len());
        Self { uninformative_cells: below, ..self }
    }

    /// Checks if the cell of a value reveals nothing.
    pub fn is_uninformative(&self, level: u8, value: u32) -> bool {
        let level = usize::from(level);
        self.uninformative_cells[level] == Some(self.levels[level].cell_of[value as usize])
    }

    /// Name of the attribute.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Levels, from the values to the root.
    pub fn levels(&self) -> &[HierarchyLevel] {
        &self.levels
    }

    /// Number of values.
    pub fn values(&self) -> usize {
        self.levels[0].cell_of.len()
    }

    /// Position of the root.
    pub fn top(&self) -> u8 {
        u8::try_from(self.levels.len() - 1).expect("checked when the domain was made")
    }

    /// Parents of the cells below, by level.
    pub fn parents(&self) -> Vec<Vec<u32>> {
        let above = |pair: &[HierarchyLevel]| {
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

    fn level(cell_of: &[u32], loss: &[f64]) -> HierarchyLevel {
        HierarchyLevel { cell_of: cell_of.to_vec(), loss: loss.to_vec() }
    }

    #[test]
    fn domain_with_invalid_levels_names_level_and_attribute() {
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
