//! Structures of [PRU] Table 1, with the same queries and inserts: policies whose weighted sum of levels exceeds a
//! threshold.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Instant;
use throng_core::lattice::antichain::{Antichain, InheritanceDirection};
use throng_core::lattice::policy::{LatticePolicy, is_same_or_specialization};

trait Known {
    fn covers(&self, policy: &[u8]) -> bool;
    fn insert(&mut self, policy: &[u8]);
    fn len(&self) -> usize;
}

#[derive(Default)]
struct List {
    policies: Vec<LatticePolicy>,
    /// Removes the policies covered by a new one.
    antichain: bool,
}

impl Known for List {
    fn covers(&self, policy: &[u8]) -> bool {
        self.policies.iter().any(|known| is_same_or_specialization(known, policy))
    }

    fn insert(&mut self, policy: &[u8]) {
        if self.antichain {
            self.policies.retain(|known| !is_same_or_specialization(policy, known));
        }
        self.policies.push(policy.into());
    }

    fn len(&self) -> usize {
        self.policies.len()
    }
}

#[derive(Default)]
struct Tree {
    children: Vec<(u8, Tree)>,
    len: usize,
}

impl Tree {
    fn find(&self, policy: &[u8]) -> bool {
        let Some((&level, rest)) = policy.split_first() else { return true };
        self.children.iter().any(|(at, child)| *at <= level && child.find(rest))
    }

    fn remove(&mut self, policy: &[u8]) -> (usize, bool) {
        let Some((&level, rest)) = policy.split_first() else { return (1, true) };
        let mut removed = 0;
        self.children.retain_mut(|(at, child)| {
            if *at < level {
                return true;
            }
            let (count, empty) = child.remove(rest);
            removed += count;
            !empty
        });
        (removed, self.children.is_empty())
    }

    fn add(&mut self, policy: &[u8]) {
        let Some((&level, rest)) = policy.split_first() else { return };
        match self.children.iter().position(|(at, _)| *at == level) {
            Some(at) => self.children[at].1.add(rest),
            None => {
                let mut child = Tree::default();
                child.add(rest);
                self.children.push((level, child));
            }
        }
    }
}

impl Known for Tree {
    fn covers(&self, policy: &[u8]) -> bool {
        self.len > 0 && self.find(policy)
    }

    fn insert(&mut self, policy: &[u8]) {
        self.len -= self.remove(policy).0;
        self.add(policy);
        self.len += 1;
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl Known for Antichain {
    fn covers(&self, policy: &[u8]) -> bool {
        Antichain::covers(self, policy)
    }

    fn insert(&mut self, policy: &[u8]) {
        Antichain::insert(self, policy);
    }

    fn len(&self) -> usize {
        Antichain::len(self)
    }
}

pub fn run() {
    println!("antichains: the same 20,000 random policies for each");
    for (name, tops) in [
        ("ADULT, 8 attributes", &[1u8, 4, 1, 2, 3, 2, 2, 1][..]),
        ("IHIS, 8 attributes", &[5, 2, 2, 3, 4, 2, 1, 1]),
        ("MACH, 16 attributes", &[4, 3, 1, 2, 2, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]),
    ] {
        let mut dice = ChaCha8Rng::seed_from_u64(3);
        let weights: Vec<f64> = tops.iter().map(|_| dice.random_range(0.2..1.0)).collect();
        let policies: Vec<(LatticePolicy, bool)> = (0..20_000)
            .map(|_| {
                let policy: LatticePolicy = tops.iter().map(|&top| dice.random_range(0..=top)).collect();
                let share = |(level, weight): (u8, &f64)| f64::from(level) * weight;
                let reached: f64 = policy.iter().copied().zip(&weights).map(share).sum();
                let whole: f64 = tops.iter().copied().zip(&weights).map(share).sum();
                (policy, reached > 0.45 * whole)
            })
            .collect();
        let variants: [(&str, Box<dyn Known>); 4] = [
            ("list", Box::new(List::default())),
            ("list, antichain", Box::new(List { antichain: true, ..List::default() })),
            ("tree, antichain", Box::new(Tree::default())),
            ("tree, antichain, ranks", Box::new(Antichain::new(InheritanceDirection::Upward, tops.len()))),
        ];
        for (variant, mut known) in variants {
            let begun = Instant::now();
            let mut hits = 0;
            for (policy, marked) in &policies {
                if known.covers(policy) {
                    hits += 1;
                } else if *marked {
                    known.insert(policy);
                }
            }
            println!(
                "  {name:20} {variant:24} {:9.2} ms, {hits} hits, {} kept",
                begun.elapsed().as_secs_f64() * 1e3,
                known.len()
            );
        }
    }
}
