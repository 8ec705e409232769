//! Random exchange of subjects, as chance baseline.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

const EXCHANGE_BLOCK: usize = 20;

/// Exchanges subjects of similar `lines`, because more lines match more by chance. A single subject maps to itself.
pub fn exchange_subjects(lines: &[usize], dice: &mut ChaCha8Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..lines.len() as u32).collect();
    order.sort_by_key(|&person| (lines[person as usize], person));
    let (people, blocks) = (lines.len(), (lines.len() / EXCHANGE_BLOCK).max(1));
    let mut double = vec![0; people];
    for at in 0..blocks {
        let block = &mut order[people * at / blocks..people * (at + 1) / blocks];
        block.shuffle(dice);
        for (at, &person) in block.iter().enumerate() {
            double[person as usize] = block[(at + 1) % block.len()];
        }
    }
    double
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;

    proptest! {
        #[test]
        fn subject_exchange_is_permutation_without_fixed_points(lines in prop::collection::vec(0_usize..9, 0..200), seed: u64) {
            let mut double = exchange_subjects(&lines, &mut ChaCha8Rng::seed_from_u64(seed));
            prop_assert!(lines.len() < 2 || (0_u32..).zip(&double).all(|(person, other)| person != *other));
            double.sort_unstable();
            prop_assert_eq!(double, (0..lines.len() as u32).collect::<Vec<_>>());
        }
    }
}
