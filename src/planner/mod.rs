//! Planner: a [`Plan`] depends only on sample, schema and settings, and does not decide safety. Evaluations, not time,
//! limit the work.

pub mod attribute_rarity;
pub mod change_rates;
pub mod closeness_counts;
pub mod compartments;
pub mod drift;
pub mod evidence;
pub mod group_merging;
pub mod ladder;
mod node_scorer;
pub mod planner_sample;
pub mod sample_identifiers;
pub mod shared_level_choice;

use ladder::build_ladder;
use planner_sample::PlannerSample;
pub use planner_sample::{LadderLimits, PlannerSettings};
use rayon::prelude::*;
use std::collections::BTreeSet;
use throng_core::plan::plan_shared_attributes::find_shared_attributes;
use throng_core::plan::{GroupShape, Plan, PlanGroup};
use throng_core::values::codebook::Codebook;

/// Returns grouped attributes, ascending.
pub fn grouped_attributes(shapes: &[GroupShape]) -> Vec<usize> {
    let all: BTreeSet<usize> = shapes.iter().flat_map(|s| s.quasi.iter().chain(&s.sensitive)).copied().collect();
    all.into_iter().collect()
}

/// Makes plan number `version`, even for an empty sample.
pub fn make_plan(
    version: u64,
    shapes: &[GroupShape],
    sample: &PlannerSample,
    books: &[Codebook],
    settings: &PlannerSettings,
) -> Plan {
    let attributes = grouped_attributes(shapes);
    let identifiers =
        sample_identifiers::find_sample_identifiers(sample, &attributes, books, settings.identifier_cardinality);
    let attributes = find_shared_attributes(shapes.iter().map(|shape| shape.quasi.as_slice()));
    let sharing = shapes.iter().filter(|shape| shape.quasi.iter().any(|a| attributes.contains(a)));
    let own = |shape: &GroupShape| shape.quasi.iter().copied().filter(|a| !attributes.contains(a)).collect();
    let beside: Vec<Vec<usize>> = sharing.map(own).collect();
    let shared = shared_level_choice::choose_shared_levels(&attributes, &identifiers, &beside, sample, books, settings);
    let groups = shapes
        .par_iter()
        .map(|shape| {
            let own: Vec<usize> = own(shape);
            let settings =
                if own.len() < shape.quasi.len() { shared.settings_within_parts(*settings) } else { *settings };
            let ladder =
                if shape.ranges { Vec::new() } else { build_ladder(&own, &identifiers, sample, books, &settings) };
            PlanGroup { ladder: shared.insert_shared_levels(&shape.quasi, ladder), ..shape.without_ladder() }
        })
        .collect();
    Plan { version, identifiers, groups, rows: sample.rows() as u64, primed: false, paces: Vec::new() }
}
