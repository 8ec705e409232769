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
//! | `release` | what they are run on, and how hard is tried |
//! | `trials` | hits, rates and their intervals |

mod homogeneity;
mod joining;
mod linkage;
mod release;
mod trials;

pub use release::{Effort, Release};
pub use trials::Yield;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Runs every attack. Groups without a lineage are passed over: nobody could say whether an attack was right.
#[must_use]
pub fn run(release: &Release<'_>, effort: Effort) -> Vec<Yield> {
    let mut dice = ChaCha8Rng::seed_from_u64(effort.seed);
    let mut yields = linkage::run(release, effort, &mut dice);
    yields.extend(joining::run(release, effort, &mut dice));
    yields.extend(homogeneity::run(release));
    yields
}
