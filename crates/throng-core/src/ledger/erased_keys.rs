//! Ledger keys of subjects to erase.

use super::release_log::release_log_key;
use super::supporters::{SupportDelta, SupportShard, supporter_key};
use std::collections::BTreeSet;

/// Keys of subjects to erase.
pub struct ErasedKeys {
    /// Subject digests.
    pub subjects: BTreeSet<u64>,
    /// Release log keys.
    pub release_log_keys: BTreeSet<u128>,
    /// Keys of supported classes.
    pub supporter_keys: BTreeSet<u128>,
}

impl ErasedKeys {
    /// Derives the keys from group digests: `turns` of the release log, `bases` of the supporters.
    #[must_use]
    pub fn new(subjects: BTreeSet<u64>, turns: &[u128], bases: &[u128]) -> Self {
        let each = |groups: &[u128], key: fn(u128, u64) -> u128| -> BTreeSet<u128> {
            groups.iter().flat_map(|group| subjects.iter().map(move |subject| key(*group, *subject))).collect()
        };
        let (said, supporters) = (each(turns, release_log_key), each(bases, supporter_key));
        Self { subjects, release_log_keys: said, supporter_keys: supporters }
    }

    /// Erases the subjects from a shard, and returns the number of removed entries.
    pub fn erase_supporters(&self, shard: &mut SupportShard) -> u64 {
        let people = shard.people.extract_if(.., |(subject, _)| self.subjects.contains(subject)).count();
        let classes = shard.classes.extract_if(.., |(key, ..)| self.supporter_keys.contains(key)).count();
        (people + classes) as u64
    }

    /// Erases the subjects from a shard or delta, and returns the number of removed entries.
    pub fn erase_releases(&self, lines: &mut Vec<(u128, i64)>) -> u64 {
        lines.extract_if(.., |(key, _)| self.release_log_keys.contains(key)).count() as u64
    }

    /// Erases the subjects from a batch, and returns the number of removed entries.
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
    use crate::ledger::ledger_delta::LedgerDelta;
    use crate::ledger::release_log::{ReleaseLog, ReleaseLogDelta};
    use crate::ledger::subject_ledger::SubjectLedger;
    use crate::ledger::supporters::{SupportLimits, SupporterTable};
    use proptest::prelude::*;

    const GROUPS: [u128; 2] = [11 << 100, 13 << 90];

    fn ledger() -> SubjectLedger {
        let mut ledger = SubjectLedger::default();
        let limits = SupportLimits { window_ms: 1_000_000, min_tenure: 2, max_classes: 9, max_entries: 1_000 };
        ledger.supporters = Some(SupporterTable::new(limits));
        ledger.release_log = Some(ReleaseLog::new(1_000_000, 1_000));
        ledger
    }

    fn delta(sequence: u64, people: &[(u64, u128)]) -> LedgerDelta {
        let all: BTreeSet<u64> = people.iter().map(|(subject, _)| *subject).collect();
        let mut pairs: Vec<(u128, u64, u128)> = people.iter().map(|(s, c)| (GROUPS[0], *s, *c << 120)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut said: Vec<(u128, i64)> = all.iter().map(|s| (release_log_key(GROUPS[1], *s), 900_000)).collect();
        said.sort_unstable();
        LedgerDelta {
            support: SupportDelta {
                sequence,
                time_ms: sequence as i64 * 1000,
                people: all.into_iter().collect(),
                pairs,
            },
            said: ReleaseLogDelta(said),
        }
    }

    fn shards(ledger: &SubjectLedger) -> Vec<(SupportShard, Vec<(u128, i64)>)> {
        let (supporters, said) =
            (ledger.supporters.as_ref().expect("kept"), ledger.release_log.as_ref().expect("kept"));
        (0..SHARDS).map(|shard| (supporters.shard(shard), said.shard(shard))).collect()
    }

    proptest! {
        #[test]
        fn erasure_equals_ledger_without_the_subject(
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
                erased.erase_releases(&mut said);
                read.supporters.as_mut().expect("kept").merge(&supporters);
                read.release_log.as_mut().expect("kept").merge(&said);
            }
            for (number, batch) in (1..).zip(&batches) {
                if number > cut as u64 {
                    let mut delta = delta(number, &people(batch));
                    erased.erase_support(&mut delta.support);
                    erased.erase_releases(&mut delta.said.0);
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
