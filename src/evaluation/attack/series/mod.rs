//! Attacks on series: statistics of cohorts over time (docs/methods.md §14.3).
//!
//! The attacker reads every row, knows the members of all sets and when each person sent, and guesses levels, values and members.
//!
//! | file | attack |
//! |---|---|
//! | `panel` | input: values of people over time, and published means of sets of them |
//! | `evidence` | the release of a run as that input |
//! | `isolation` | the smallest group of which a combination of rows tells something (G1) |
//! | `members` | whose history is whose (G2); the cohort of somebody whose values are known |
//! | `averaging` | a value by the mean of the members who are not known (G3) |
//! | `best_guess`, `differencing` | levels and values by differences of rows, and by the best combination of all |
//! | `quartiles` | the level of somebody who has stopped, by quartiles that repeat |
//! | `reconstruction` | values of one bucket: a linear programme, exact sums, the largest value |
//! | [`baseline`] | releases by simpler rules, for comparison |
//! | `explained` | share of the variance that guesses explain |

mod averaging;
pub mod baseline;
mod best_guess;
mod differencing;
mod evidence;
mod explained;
mod isolation;
mod members;
#[cfg(test)]
mod moments_tests;
mod panel;
mod quartiles;
mod reconstruction;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;

pub use panel::{Channel, Fill, Panel, Sum};

use super::release::Effort;
use super::trials::Yield;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Runs every attack on series; `tell` is called with the name of each before it runs.
pub fn run(panel: &Panel, effort: Effort, tell: &dyn Fn(&'static str)) -> Vec<Yield> {
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
