//! Keys under which the ledger knows people who are to be erased.

use super::delta::LedgerDelta;
use super::said::{Said, said_key};
use super::supporters::{Supporters, supporter_key};
use std::collections::BTreeSet;

/// People who are to be erased.
pub struct ErasedKeys {
    /// Their digests.
    pub subjects: BTreeSet<u64>,
    /// Keys of their lines in the release log.
    pub said: BTreeSet<u128>,
    /// Keys of the classes that they support.
    pub supporters: BTreeSet<u128>,
}

impl ErasedKeys {
    /// Derives the keys of `subjects`; `turns` and `bases` name the groups in the release log and among classes.
    #[must_use]
    pub fn new(subjects: BTreeSet<u64>, turns: &[u128], bases: &[u128]) -> Self {
        let each = |groups: &[u128], key: fn(u128, u64) -> u128| -> BTreeSet<u128> {
            groups.iter().flat_map(|group| subjects.iter().map(move |subject| key(*group, *subject))).collect()
        };
        let (said, supporters) = (each(turns, said_key), each(bases, supporter_key));
        Self { subjects, said, supporters }
    }

    /// Removes the people from a shard of tenure and budgets as the state has it; returns it and the number of entries removed. None
    /// where the bytes are not a shard.
    #[must_use]
    pub fn erase_supporters(&self, shard: usize, bytes: &[u8]) -> Option<(Vec<u8>, u64)> {
        Supporters::shard_without(shard, bytes, |s| self.subjects.contains(&s), |key| self.supporters.contains(&key))
    }

    /// Does the same for a shard of the release log.
    #[must_use]
    pub fn erase_said(&self, bytes: &[u8]) -> Option<(Vec<u8>, u64)> {
        Said::shard_without(bytes, |key| self.said.contains(&key))
    }

    /// Does the same for what a batch adds to the ledger; the numbers are those of entries of tenure and budgets, and of lines.
    #[must_use]
    pub fn erase_delta(&self, bytes: &[u8]) -> Option<(Vec<u8>, [u64; 2])> {
        let mut delta = LedgerDelta::from_bytes(bytes)?;
        let people = delta.support.people.extract_if(.., |subject| self.subjects.contains(subject)).count();
        let pairs = delta.support.pairs.extract_if(.., |(_, subject, _)| self.subjects.contains(subject)).count();
        let lines = delta.said.0.extract_if(.., |(key, _)| self.said.contains(key)).count();
        Some((delta.to_bytes(), [(people + pairs) as u64, lines as u64]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::SHARDS;
    use crate::ledger::per_subject::Ledger;
    use crate::ledger::said::SaidDelta;
    use crate::ledger::supporters::{SupportDelta, SupportLimits};
    use proptest::prelude::*;

    const GROUPS: [u128; 2] = [11 << 100, 13 << 90];

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        let limits = SupportLimits { window_ms: 1_000_000, min_tenure: 2, max_classes: 9, max_entries: 1_000 };
        ledger.supporters = Some(Supporters::new(limits));
        ledger.said = Some(Said::new(1_000_000, 1_000));
        ledger
    }

    /// A batch in which each of `people` is in a class and says a line.
    fn delta(sequence: u64, people: &[(u64, u128)]) -> LedgerDelta {
        let all: BTreeSet<u64> = people.iter().map(|(subject, _)| *subject).collect();
        let mut pairs: Vec<(u128, u64, u128)> = people.iter().map(|(s, c)| (GROUPS[0], *s, *c << 120)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut said: Vec<(u128, i64)> = all.iter().map(|s| (said_key(GROUPS[1], *s), 900_000)).collect();
        said.sort_unstable();
        LedgerDelta {
            support: SupportDelta {
                sequence,
                time_ms: sequence as i64 * 1000,
                people: all.into_iter().collect(),
                pairs,
            },
            said: SaidDelta(said),
        }
    }

    fn bytes(ledger: &Ledger) -> Vec<[Vec<u8>; 2]> {
        let said = ledger.said.as_ref().expect("kept");
        (0..SHARDS).map(|shard| [ledger.shard_to_bytes(shard), said.shard_to_bytes(shard)]).collect()
    }

    proptest! {
        #[test]
        fn erased_ledger_equals_one_that_never_saw_the_person(
            batches in prop::collection::vec(prop::collection::btree_set((1u64..7, 0u128..5), 1..9), 1..6),
            cut in 0usize..6,
        ) {
            let gone = 3_u64;
            let erased = ErasedKeys::new([gone].into(), &GROUPS, &GROUPS);
            let (mut seen, mut never, mut read) = (ledger(), ledger(), ledger());
            let cut = cut.min(batches.len());
            for (number, people) in (1..).zip(&batches[..cut]) {
                let people: Vec<(u64, u128)> = people.iter().copied().collect();
                seen.apply(&delta(number, &people));
            }
            for (number, [shard, said]) in bytes(&seen).into_iter().enumerate() {
                let (shard, _) = erased.erase_supporters(number, &shard).expect("a shard");
                prop_assert!(read.merge_shard(&shard).is_some());
                let (said, _) = erased.erase_said(&said).expect("a shard");
                prop_assert!(read.said.as_mut().expect("kept").merge_shard(&said).is_some());
            }
            for (number, people) in (1..).zip(&batches) {
                let people: Vec<(u64, u128)> = people.iter().copied().collect();
                if number > cut as u64 {
                    let (bytes, _) = erased.erase_delta(&delta(number, &people).to_bytes()).expect("a delta");
                    read.apply(&LedgerDelta::from_bytes(&bytes).expect("a delta"));
                }
                let others: Vec<(u64, u128)> = people.into_iter().filter(|(subject, _)| *subject != gone).collect();
                never.apply(&delta(number, &others));
            }
            prop_assert_eq!(bytes(&read), bytes(&never));
        }
    }

    #[test]
    fn shard_that_cannot_be_read_is_refused() {
        let erased = ErasedKeys::new([1].into(), &GROUPS, &GROUPS);
        assert!(erased.erase_supporters(0, &[1, 0, 0, 0, 9]).is_none());
        assert!(erased.erase_said(&[1; 23]).is_none());
        assert!(erased.erase_delta(&[1; 5]).is_none());
    }
}
