//! What outsiders try on a release, tried by its custodian.
//!
//! Each attack sees what an outsider sees: lines, their order and the batch that they came with, and what the outsider is said to
//! know. The lineage says afterwards how often it was right. A figure comes with its interval, with what pure chance gives,
//! and with what the guarantee promises of it.
//!
//! | file | what is tried |
//! |---|---|
//! | `linkage` | to find a person's line by 1 … n known values |
//! | `joining` | to join fragments of a record by their order and by their counts |
//! | `homogeneity` | to learn a sensitive value of a whole class |
//! | `trials` | hits, rates and their intervals |

mod homogeneity;
mod joining;
mod linkage;
mod trials;

pub use trials::Yield;

use super::facts::AttributeFacts;
use super::original::Original;
use super::released::ReleasedGroup;
use crate::anonymity::planner::GroupShape;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

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

/// Runs every attack. Groups without a lineage are passed over: nobody could say whether an attack was right.
#[must_use]
pub fn run(release: &Release<'_>, effort: Effort) -> Vec<Yield> {
    let mut dice = ChaCha8Rng::seed_from_u64(effort.seed);
    let mut yields = linkage::run(release, effort, &mut dice);
    yields.extend(joining::run(release, effort, &mut dice));
    yields.extend(homogeneity::run(release));
    yields
}
