//! Policies and the lattice that they form ([PRU] "Preliminaries"): never materialised, whatever its size.

/// A level for each attribute; 0 is the raw value.
pub type Policy = Box<[u8]>;

/// Whether `x` is `y` or a specialisation of it.
pub fn is_below(x: &[u8], y: &[u8]) -> bool {
    x.iter().zip(y).all(|(a, b)| a <= b)
}

/// The sum of the levels.
pub fn rank(x: &[u8]) -> u32 {
    x.iter().map(|&level| u32::from(level)).sum()
}

/// All policies between the raw one and `top`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lattice {
    top: Policy,
}

impl Lattice {
    /// The lattice whose most general policy is `top`.
    pub fn new(top: impl Into<Policy>) -> Self {
        Self { top: top.into() }
    }

    /// The highest level of each attribute: the most general policy.
    pub fn top(&self) -> &[u8] {
        &self.top
    }

    /// The policy that generalizes nothing.
    pub fn bottom(&self) -> Policy {
        vec![0; self.top.len()].into()
    }

    /// Number of attributes.
    pub fn width(&self) -> usize {
        self.top.len()
    }

    /// Number of policies, as far as 128 bits count; none beyond.
    pub fn size(&self) -> Option<u128> {
        self.top.iter().try_fold(1u128, |size, &top| size.checked_mul(u128::from(top) + 1))
    }

    /// Number of policies, roughly where 128 bits do not count them.
    pub fn approximate_size(&self) -> f64 {
        self.top.iter().map(|&top| f64::from(top) + 1.0).product()
    }

    /// The policies one level above `x`, by attribute.
    pub fn generalizations<'a>(&'a self, x: &'a [u8]) -> impl Iterator<Item = Policy> + 'a {
        (0..x.len()).filter(|&i| x[i] < self.top[i]).map(move |i| step(x, i, 1))
    }

    /// The policies one level below `x`, by attribute.
    pub fn specialisations<'a>(&'a self, x: &'a [u8]) -> impl Iterator<Item = Policy> + 'a {
        (0..x.len()).filter(|&i| x[i] > 0).map(move |i| step(x, i, -1))
    }

    /// The position of `x` in lexicographic order; none where 128 bits do not hold that of every policy.
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

    /// Every policy, in lexicographic order.
    pub fn iter(&self) -> impl Iterator<Item = Policy> + '_ {
        let mut next = Some(self.bottom());
        std::iter::from_fn(move || {
            let now = next.take()?;
            next = (0..now.len()).rev().find(|&i| now[i] < self.top[i]).map(|i| {
                let mut after = step(&now, i, 1);
                after[i + 1..].fill(0);
                after
            });
            Some(now)
        })
    }
}

fn step(x: &[u8], attribute: usize, by: i8) -> Policy {
    let mut next: Policy = x.into();
    next[attribute] = next[attribute].wrapping_add_signed(by);
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_iteration_is_the_lattice() {
        let lattice = Lattice::new(vec![1, 2, 0, 3]);
        let all: Vec<Policy> = lattice.iter().collect();
        assert_eq!(all.len() as u128, lattice.size().unwrap());
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for (position, policy) in all.iter().enumerate() {
            assert_eq!(lattice.position(policy), Some(position as u128));
            assert!(is_below(policy, lattice.top()) && is_below(&lattice.bottom(), policy));
            let up: BTreeSet<Policy> = lattice.generalizations(policy).collect();
            let twin: BTreeSet<Policy> =
                all.iter().filter(|y| is_below(policy, y) && rank(y) == rank(policy) + 1).cloned().collect();
            assert_eq!(up, twin);
            assert!(up.iter().all(|y| lattice.specialisations(y).any(|x| x == *policy)));
        }
    }

    #[test]
    fn a_lattice_may_be_larger_than_64_bits_and_larger_than_128() {
        assert_eq!(Lattice::new(vec![4; 40]).size(), Some(5u128.pow(40)));
        assert!(5u128.pow(40) > u128::from(u64::MAX));
        let huge = Lattice::new(vec![9; 300]);
        assert_eq!((huge.size(), huge.position(&huge.bottom())), (None, None));
        assert!(huge.approximate_size() > 9e299);
        assert_eq!(huge.iter().take(3).map(|x| rank(&x)).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
