//! Policies and their lattice (\[PRU] "Preliminaries"), which is never materialized.

/// One level per attribute; 0 is the raw value.
pub type LatticePolicy = Box<[u8]>;

/// Returns true if `x` is `y` or a specialization.
pub fn is_same_or_specialization(x: &[u8], y: &[u8]) -> bool {
    x.iter().zip(y).all(|(a, b)| a <= b)
}

/// Sum of the levels.
pub fn policy_rank(x: &[u8]) -> u32 {
    x.iter().map(|&level| u32::from(level)).sum()
}

/// All policies up to `top`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lattice {
    top: LatticePolicy,
}

impl Lattice {
    /// Creates the lattice with the top policy.
    pub fn new(top: impl Into<LatticePolicy>) -> Self {
        Self { top: top.into() }
    }

    /// Most general policy.
    pub fn top(&self) -> &[u8] {
        &self.top
    }

    /// Policy that generalizes nothing.
    pub fn bottom(&self) -> LatticePolicy {
        vec![0; self.top.len()].into()
    }

    /// Number of attributes.
    pub fn width(&self) -> usize {
        self.top.len()
    }

    /// Number of policies, within 128 bits.
    pub fn size(&self) -> Option<u128> {
        self.top.iter().try_fold(1u128, |size, &top| size.checked_mul(u128::from(top) + 1))
    }

    /// Approximate number of policies.
    pub fn approximate_size(&self) -> f64 {
        self.top.iter().map(|&top| f64::from(top) + 1.0).product()
    }

    /// Policies one level above `x`.
    pub fn generalizations<'a>(&'a self, x: &'a [u8]) -> impl Iterator<Item = LatticePolicy> + 'a {
        (0..x.len()).filter(|&i| x[i] < self.top[i]).map(move |i| change_attribute_level(x, i, 1))
    }

    /// Policies one level below `x`.
    pub fn one_level_specializations<'a>(&'a self, x: &'a [u8]) -> impl Iterator<Item = LatticePolicy> + 'a {
        (0..x.len()).filter(|&i| x[i] > 0).map(move |i| change_attribute_level(x, i, -1))
    }

    /// Lexicographic position, within 128 bits.
    pub fn position(&self, x: &[u8]) -> Option<u128> {
        let mut position = 0u128;
        let mut size = 1u128;
        for (&level, &top) in x.iter().zip(&self.top) {
            let width = u128::from(top) + 1;
            size = size.checked_mul(width)?;
            position = position * width + u128::from(level);
        }
        Some(position)
    }

    /// Policies in lexicographic order.
    pub fn iter(&self) -> impl Iterator<Item = LatticePolicy> + '_ {
        let mut next = Some(self.bottom());
        std::iter::from_fn(move || {
            let now = next.take()?;
            next = (0..now.len()).rev().find(|&i| now[i] < self.top[i]).map(|i| {
                let mut after = change_attribute_level(&now, i, 1);
                after[i + 1..].fill(0);
                after
            });
            Some(now)
        })
    }
}

fn change_attribute_level(x: &[u8], attribute: usize, by: i8) -> LatticePolicy {
    let mut next: LatticePolicy = x.into();
    next[attribute] = next[attribute].wrapping_add_signed(by);
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn lattice_iteration_visits_every_policy_in_order() {
        let lattice = Lattice::new(vec![1, 2, 0, 3]);
        let all: Vec<LatticePolicy> = lattice.iter().collect();
        assert_eq!(all.len() as u128, lattice.size().unwrap());
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for (position, policy) in all.iter().enumerate() {
            assert_eq!(lattice.position(policy), Some(position as u128));
            assert!(
                is_same_or_specialization(policy, lattice.top())
                    && is_same_or_specialization(&lattice.bottom(), policy)
            );
            let up: BTreeSet<LatticePolicy> = lattice.generalizations(policy).collect();
            let twin: BTreeSet<LatticePolicy> = all
                .iter()
                .filter(|y| is_same_or_specialization(policy, y) && policy_rank(y) == policy_rank(policy) + 1)
                .cloned()
                .collect();
            assert_eq!(up, twin);
            assert!(up.iter().all(|y| lattice.one_level_specializations(y).any(|x| x == *policy)));
        }
    }

    #[test]
    fn lattice_size_above_128_bits_is_none() {
        assert_eq!(Lattice::new(vec![4; 40]).size(), Some(5u128.pow(40)));
        assert!(5u128.pow(40) > u128::from(u64::MAX));
        let huge = Lattice::new(vec![9; 300]);
        assert_eq!((huge.size(), huge.position(&huge.bottom())), (None, None));
        assert!(huge.approximate_size() > 9e299);
        assert_eq!(huge.iter().take(3).map(|x| policy_rank(&x)).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
