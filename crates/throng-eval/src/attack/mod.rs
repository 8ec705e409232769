//! Attacks of outsiders on a release (docs/internals/methods.md §14.3). Attacks see only the attacker's view; the
//! lineage judges each guess.

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

/// Returns the first yield with the interval furthest above chance, which depends on random draws.
#[must_use]
pub fn furthest_above_chance(yields: &[AttackYield]) -> Option<&AttackYield> {
    let tried = yields.iter().filter(|found| found.trials > 0);
    tried.reduce(|best, other| if other.above_chance() > best.above_chance() { other } else { best })
}

/// Runs every attack, announced by name; skips groups without a lineage.
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
