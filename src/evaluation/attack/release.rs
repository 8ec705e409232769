//! What attacks are run on, and how hard is tried.

use crate::anonymity::planner::GroupShape;
use crate::evaluation::facts::AttributeFacts;
use crate::evaluation::original::Original;
use crate::evaluation::released::ReleasedGroup;

/// What attacks are run on.
pub struct Release<'a> {
    /// The records before.
    pub original: &'a Original,
    /// What cells stand for, by attribute.
    pub facts: &'a [AttributeFacts],
    /// The groups of the configuration.
    pub shapes: &'a [GroupShape],
    /// The lines, each with its origin.
    pub groups: &'a [ReleasedGroup],
    /// Crowd in the support window, and in a batch; 0: none asked for.
    pub crowds: [usize; 2],
}

/// How hard is tried.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Targets of each attack.
    pub targets: usize,
    /// The most attributes that an outsider knows of a person.
    pub known: usize,
    /// Fixes every draw.
    pub seed: u64,
}
