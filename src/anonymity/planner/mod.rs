//! The planner: from a sample of the stream to a [`Plan`]. It decides what is worth trying, never what is safe.
//!
//! Planning is a function of the sample, the schema and the settings, bounded by a count of evaluations and not by
//! time, so that the same stream gets the same plans on every machine.
//!
//! | file | what it holds |
//! |---|---|
//! | [`sample`] | the rows that plans are made from |
//! | [`identifiers`], [`pace`] | attributes that never leave, and how often the others change within a person |
//! | [`dependence`], [`coverage`] | what attributes say of each other; how much of one must change |
//! | [`grouping`], [`compartments`], [`wishes`] | which of them leave together |
//! | [`shared`] | the level of attributes that stand in several groups |
//! | [`ladder`], `scorer` | the nodes of a group, and what each is worth to the sample |
//! | [`reference`] | the distributions that t-closeness compares with |
//! | [`drift`] | when the values have changed enough for a new plan |
//! | [`evidence`] | what speaks for a plan; it decides nothing |
//! | `settings` | what the planner is told |

pub mod compartments;
pub mod coverage;
pub mod dependence;
pub mod drift;
pub mod evidence;
pub mod grouping;
pub mod identifiers;
pub mod ladder;
pub mod pace;
pub mod reference;
pub mod sample;
mod scorer;
mod settings;
pub mod shared;
pub mod wishes;

use crate::anonymity::plan::shared::in_several;
use crate::anonymity::plan::{Group, Plan};
use crate::records::codebook::Codebook;
use ladder::build_ladder;
use rayon::prelude::*;
use sample::Sample;
pub use settings::{LadderLimits, PlannerSettings};
use std::collections::BTreeSet;

/// The attributes of one group, before any ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupShape {
    /// Its name in the configuration.
    pub name: String,
    /// Attributes that form the class (positions in the schema, ascending).
    pub quasi: Vec<usize>,
    /// Attributes that leave beside the class.
    pub sensitive: Vec<usize>,
    /// Attributes that leave as they are.
    pub insensitive: Vec<usize>,
}

impl GroupShape {
    /// The group as a plan names it, before any ladder.
    #[must_use]
    pub fn without_ladder(&self) -> Group {
        Group {
            name: self.name.clone(),
            quasi: self.quasi.clone(),
            sensitive: self.sensitive.clone(),
            insensitive: self.insensitive.clone(),
            ladder: Vec::new(),
        }
    }
}

/// The quasi and sensitive attributes of all groups, each once, ascending.
#[must_use]
pub fn guarded(shapes: &[GroupShape]) -> Vec<usize> {
    let all: BTreeSet<usize> = shapes.iter().flat_map(|s| s.quasi.iter().chain(&s.sensitive)).copied().collect();
    all.into_iter().collect()
}

/// Makes plan number `version` from what `sample` shows; an empty sample gives a plan from schema and hierarchies alone.
#[must_use]
pub fn make_plan(
    version: u64,
    shapes: &[GroupShape],
    sample: &Sample,
    books: &[Codebook],
    settings: &PlannerSettings,
) -> Plan {
    let attributes = guarded(shapes);
    let identifiers = identifiers::found_in(sample, &attributes, books, settings.identifier_cardinality);
    let attributes = in_several(shapes.iter().map(|shape| shape.quasi.as_slice()));
    let sharing = shapes.iter().filter(|shape| shape.quasi.iter().any(|a| attributes.contains(a)));
    let own = |shape: &GroupShape| shape.quasi.iter().copied().filter(|a| !attributes.contains(a)).collect();
    let beside: Vec<Vec<usize>> = sharing.map(own).collect();
    let shared = shared::choose(&attributes, &identifiers, &beside, sample, books, settings);
    let groups = shapes
        .par_iter()
        .map(|shape| {
            let own: Vec<usize> = own(shape);
            let settings = if own.len() < shape.quasi.len() { shared.within(*settings) } else { *settings };
            let ladder = build_ladder(&own, &identifiers, sample, books, &settings);
            Group { ladder: shared.beside(&shape.quasi, ladder), ..shape.without_ladder() }
        })
        .collect();
    Plan { version, identifiers, groups, rows: sample.rows() as u64, primed: false, paces: Vec::new() }
}
