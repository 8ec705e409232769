//! Attacks on series (docs/internals/methods.md §14.3).

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

/// Runs every attack and first reports its name.
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
