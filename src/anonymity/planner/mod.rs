//! The planner: from a sample of the stream to a [`Plan`]. It decides what is worth trying, never what is safe.
//!
//! Planning is a function of the sample, the schema and the settings, bounded by a count of evaluations and not by
//! time, so that the same stream gets the same plans on every machine.

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
pub mod shared;

use crate::anonymity::plan::shared::in_several;
use crate::anonymity::plan::{Group, Plan};
use ladder::build_ladder;
use rayon::prelude::*;
use sample::Sample;
pub use sample::{LadderLimits, PlannerSettings};
use std::collections::BTreeSet;
use throng_core::values::codebook::Codebook;

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
    /// Classes show their own ranges, and not the levels of a ladder.
    pub ranges: bool,
}

impl GroupShape {
    /// The group as a plan names it, before any ladder.
    pub fn without_ladder(&self) -> Group {
        Group {
            name: self.name.clone(),
            quasi: self.quasi.clone(),
            sensitive: self.sensitive.clone(),
            insensitive: self.insensitive.clone(),
            ladder: Vec::new(),
            ranges: self.ranges,
        }
    }
}

/// The quasi and sensitive attributes of all groups, each once, ascending.
pub fn guarded(shapes: &[GroupShape]) -> Vec<usize> {
    let all: BTreeSet<usize> = shapes.iter().flat_map(|s| s.quasi.iter().chain(&s.sensitive)).copied().collect();
    all.into_iter().collect()
}

/// Makes plan number `version` from what `sample` shows; an empty sample gives a plan from schema and hierarchies alone.
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
            let ladder =
                if shape.ranges { Vec::new() } else { build_ladder(&own, &identifiers, sample, books, &settings) };
            Group { ladder: shared.beside(&shape.quasi, ladder), ..shape.without_ladder() }
        })
        .collect();
    Plan { version, identifiers, groups, rows: sample.rows() as u64, primed: false, paces: Vec::new() }
}
