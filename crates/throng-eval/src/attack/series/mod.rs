//! Attacks on series: statistics of cohorts over time (docs/internals/methods.md §14.3).
//!
//! The attacker reads every row, knows the members of all sets and the presence of each subject, and guesses levels,
//! values and members.
//!
//! | file | attack |
//! |---|---|
//! | `panel` | input: values of subjects over time, and published means of sets of them |
//! | `evidence` | conversion of a run's release to that input |
//! | `isolation` | the smallest group that a combination of rows depends on (G1) |
//! | `members` | attribution of a history (G2); the cohort of a subject with known values |
//! | `averaging` | a value from the mean of the unknown members (G3) |
//! | `best_guess`, `differencing` | levels and values from differences of rows, and from the best combination of all |
//! | `quartiles` | the level of a subject that has stopped, from quartiles that repeat |
//! | `reconstruction` | values of one bucket: linear program, exact sums, largest value |
//! | [`baseline`] | releases by simpler rules, for comparison |
//! | `explained` | share of the variance that guesses explain |

mod averaging;
pub mod baseline;
mod best_guess;
mod differencing;
mod explained_variance;
mod isolation;
mod members;
#[cfg(test)]
mod moments_tests;
mod panel;
mod panel_builder;
mod quartiles;
mod reconstruction;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;

pub use panel::{FillMode, Panel, PublishedSetMean, SignalChannel};

use super::attack_input::AttackEffort;
use super::trials::AttackYield;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Runs every attack on series and reports its name to the callback before it starts.
pub fn run(panel: &Panel, effort: AttackEffort, tell: &dyn Fn(&'static str)) -> Vec<AttackYield> {
    let mut dice = ChaCha8Rng::seed_from_u64(effort.seed);
    tell("isolation");
    let mut yields = vec![isolation::run(panel)];
    tell("whose history");
    yields.push(members::attribution(panel, effort.targets, &mut dice));
    tell("averaging");
    yields.extend(averaging::run(panel, &mut dice));
    tell("differencing");
    yields.extend(differencing::run(panel, &mut dice));
    tell("quartiles");
    yields.push(quartiles::run(panel));
    tell("membership");
    yields.extend(members::membership(panel, effort.targets, &mut dice));
    tell("reconstruction");
    yields.extend(reconstruction::run(panel, &mut dice));
    yields
}
