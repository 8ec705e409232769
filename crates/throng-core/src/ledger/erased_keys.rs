//! Keys under which the ledger knows people who are to be erased.

use super::said::said_key;
use super::supporters::{SupportDelta, SupportShard, supporter_key};
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

    /// Removes the people from a shard of tenure and budgets; returns the number of entries removed.
    pub fn erase_supporters(&self, shard: &mut SupportShard) -> u64 {
        let people = shard.people.extract_if(.., |(subject, _)| self.subjects.contains(subject)).count();
        let classes = shard.classes.extract_if(.., |(key, ..)| self.supporters.contains(key)).count();
        (people + classes) as u64
    }

    /// Removes their lines from a shard of the release log, or from what a batch adds to it; returns their number.
    pub fn erase_said(&self, lines: &mut Vec<(u128, i64)>) -> u64 {
        lines.extract_if(.., |(key, _)| self.said.contains(key)).count() as u64
    }

    /// Removes them from what a batch adds to tenure and budgets; returns the number of entries removed.
    pub fn erase_support(&self, delta: &mut SupportDelta) -> u64 {
        let people = delta.people.extract_if(.., |subject| self.subjects.contains(subject)).count();
        let pairs = delta.pairs.extract_if(.., |(_, subject, _)| self.subjects.contains(subject)).count();
        (people + pairs) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::SHARDS;
    use crate::ledger::delta::LedgerDelta;
    use crate::ledger::per_subject::Ledger;
    use crate::ledger::said::{Said, SaidDelta};
    use crate::ledger::supporters::{SupportLimits, Supporters};
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

    fn shards(ledger: &Ledger) -> Vec<(SupportShard, Vec<(u128, i64)>)> {
        let (supporters, said) = (ledger.supporters.as_ref().expect("kept"), ledger.said.as_ref().expect("kept"));
        (0..SHARDS).map(|shard| (supporters.shard(shard), said.shard(shard))).collect()
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
            let people = |people: &BTreeSet<(u64, u128)>| people.iter().copied().collect::<Vec<_>>();
            let cut = cut.min(batches.len());
            for (number, batch) in (1..).zip(&batches[..cut]) {
                seen.apply(&delta(number, &people(batch)));
            }
            for (mut supporters, mut said) in shards(&seen) {
                erased.erase_supporters(&mut supporters);
                erased.erase_said(&mut said);
                read.supporters.as_mut().expect("kept").merge(&supporters);
                read.said.as_mut().expect("kept").merge(&said);
            }
            for (number, batch) in (1..).zip(&batches) {
                if number > cut as u64 {
                    let mut delta = delta(number, &people(batch));
                    erased.erase_support(&mut delta.support);
                    erased.erase_said(&mut delta.said.0);
                    read.apply(&delta);
                }
                let mut others = people(batch);
                others.retain(|(subject, _)| *subject != gone);
                never.apply(&delta(number, &others));
            }
            prop_assert_eq!(shards(&read), shards(&never));
        }
    }
}
