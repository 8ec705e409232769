//! Attacks of outsiders on a release, run by its custodian.
//!
//! Each attack sees the attacker's view: lines, their order, their batch, and the knowledge that it assumes. The
//! lineage then decides if a guess is right. A rate comes with its confidence interval, with the rate of pure chance,
//! and with the bound of the guarantee.
//!
//! | file | attack |
//! |---|---|
//! | `linkage` | find a subject's line by 1 … n known values |
//! | `joining`, `values`, `covariance` | join fragments of a record by order, time and counts, by values, over the batches |
//! | `presence` | find a subject's class by the moments at which it sent |
//! | `attendance` | estimate the cells of each subject from its presence in batches |
//! | `sequences` | follow a subject by the measurements of its device |
//! | `crowds` | reduce the class size: arrival times, invented subjects |
//! | `exclusion`, `downcoding` | undo generalization |
//! | `composition` | combine several releases of a subject |
//! | `homogeneity`, `minimality` | learn a sensitive value that a class shares or that is hidden |
//! | `doubles` | other subjects, as the chance baseline |
//! | `release` | input and effort of the attacks |
//! | [`series`] | attacks on series of cohorts: levels, values and members |
//! | `trials` | hits, rates and their intervals |

mod attack_input;
mod attendance;
mod batch_classes;
mod composition;
mod covariance;
mod downcoding;
mod exclusion;
mod homogeneity;
mod joining;
mod linkage;
mod minimality;
mod presence;
mod sequences;
pub mod series;
mod subject_exchange;
#[cfg(test)]
pub(crate) mod test_release;
#[cfg(test)]
mod tests;
mod trials;
mod values;

pub use attack_input::{AttackEffort, AttackInput, ReleaseGuarantees};
pub use trials::{AttackYield, GroupYield, YieldCriterion};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Returns the yield with the 95 % interval that begins furthest above chance, so that one lucky guess does not
/// count. None without trials; the first of equal ones. Another random draw of targets or cohorts can change the
/// result.
#[must_use]
pub fn furthest_above_chance(yields: &[AttackYield]) -> Option<&AttackYield> {
    let tried = yields.iter().filter(|found| found.trials > 0);
    tried.reduce(|best, other| if other.above_chance() > best.above_chance() { other } else { best })
}

/// Runs every attack and reports its name to the callback before it starts. Skips groups without a lineage, because
/// no guess can be checked for them.
pub fn run(release: &AttackInput<'_>, effort: AttackEffort, tell: &dyn Fn(&'static str)) -> Vec<AttackYield> {
    let mut dice = ChaCha8Rng::seed_from_u64(effort.seed);
    tell("linkage");
    let mut yields = linkage::run(release, effort, &mut dice);
    tell("arrival and invented people");
    yields.extend(batch_classes::run(release));
    tell("joining");
    let known = release.linked_groups();
    let meetings = joining::draw_group_pairs(&known, effort, &mut dice);
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
