//! What outsiders try on a release, tried by its custodian.
//!
//! Each attack sees what an outsider sees: lines, their order and the batch that they came with, and what the outsider is said to
//! know. The lineage says afterwards how often it was right. A figure comes with its interval, with what pure chance gives,
//! and with what the guarantee promises of it.
//!
//! | file | what is tried |
//! |---|---|
//! | `linkage` | to find a person's line by 1 … n known values |
//! | `joining`, `values`, `covariance` | to join fragments of a record by order, time and counts, by values, over the batches |
//! | `presence` | to find a person's class by the moments at which it sent |
//! | `attendance` | to solve for the cells of each person, by who sent in which batch |
//! | `sequences` | to follow a person by what its device measured |
//! | `crowds` | to see smaller crowds: arrival times, invented people |
//! | `exclusion`, `downcoding` | to undo generalization |
//! | `composition` | to join several releases of a person |
//! | `homogeneity`, `minimality` | to learn a sensitive value: of a whole class, or that hides |
//! | `doubles` | other people, for what chance gives |
//! | `release` | what they are run on, and how hard is tried |
//! | [`series`] | series of cohorts: levels, values and members |
//! | `trials` | hits, rates and their intervals |

mod attendance;
mod composition;
mod covariance;
mod crowds;
mod doubles;
mod downcoding;
mod exclusion;
mod homogeneity;
mod joining;
mod linkage;
mod minimality;
mod presence;
mod release;
mod sequences;
pub mod series;
#[cfg(test)]
pub(in crate::evaluation) mod stage;
#[cfg(test)]
mod tests;
mod trials;
mod values;

pub use release::{Effort, Promises, Release};
pub use trials::{GroupYield, Judgement, Yield};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The yield whose 95 % interval begins furthest above chance: one lucky guess is no attack. None where nothing was tried. Of equal ones the
/// first. Another draw of targets or cohorts can put another one first.
#[must_use]
pub fn furthest_above_chance(yields: &[Yield]) -> Option<&Yield> {
    let tried = yields.iter().filter(|found| found.trials > 0);
    tried.reduce(|best, other| if other.above_chance() > best.above_chance() { other } else { best })
}

/// Runs every attack; `tell` is told which, before it runs. Groups without a lineage are passed over: nobody could say whether
/// an attack was right.
pub fn run(release: &Release<'_>, effort: Effort, tell: &dyn Fn(&'static str)) -> Vec<Yield> {
    let mut dice = ChaCha8Rng::seed_from_u64(effort.seed);
    tell("linkage");
    let mut yields = linkage::run(release, effort, &mut dice);
    tell("arrival and invented people");
    yields.extend(crowds::run(release));
    tell("joining");
    let known = release.known();
    let meetings = joining::meetings(&known, effort, &mut dice);
    yields.extend(joining::run(release, &meetings));
    yields.extend(values::run(release, &meetings, effort));
    tell("covariance");
    yields.extend(covariance::run(release, &mut dice));
    tell("presence");
    yields.extend(presence::run(release, effort.targets, &mut dice));
    tell("attendance");
    yields.extend(attendance::run(release, effort.targets, &mut dice));
    tell("sequences");
    yields.extend(sequences::run(release, effort, &mut dice));
    tell("composition");
    yields.extend(composition::run(release, effort, &mut dice));
    tell("exclusion and downcoding");
    yields.extend(exclusion::run(release));
    yields.extend(downcoding::run(release));
    tell("sensitive values");
    yields.extend(homogeneity::run(release));
    yields.extend(minimality::run(release, effort, &mut dice));
    yields
}
