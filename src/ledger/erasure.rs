//! What the ledger has written of somebody, taken out of it.
//!
//! Everything here works on bytes as the state keeps them, whatever is configured now, and changes nothing of anybody else
//! (docs/erasure.md).

use super::bytes::Reader;
use super::delta::LedgerDelta;
use super::said::said_key;
use super::supporters::supporter_key;
use std::collections::BTreeSet;

/// Who is erased.
pub struct Erased {
    subjects: BTreeSet<u64>,
    /// Keys of lines that groups have said of them.
    said: BTreeSet<u128>,
    /// Keys of the classes of a group that they support.
    supporters: BTreeSet<u128>,
}

/// What was taken out of the ledger, in entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerErased {
    /// People, and classes that they support, kept for tenure and budgets.
    pub supporters: u64,
    /// Lines that were said.
    pub said: u64,
}

impl Erased {
    /// `subjects` by their digests; `turns` and `bases` name the groups among what was said and among classes.
    #[must_use]
    pub fn new(subjects: BTreeSet<u64>, turns: &[u128], bases: &[u128]) -> Self {
        let each = |groups: &[u128], key: fn(u128, u64) -> u128| -> BTreeSet<u128> {
            groups.iter().flat_map(|group| subjects.iter().map(move |subject| key(*group, *subject))).collect()
        };
        let (said, supporters) = (each(turns, said_key), each(bases, supporter_key));
        Self { subjects, said, supporters }
    }

    /// Whether a digest is one of theirs.
    #[must_use]
    pub fn is(&self, subject: u64) -> bool {
        self.subjects.contains(&subject)
    }

    /// How many they are.
    #[must_use]
    pub fn people(&self) -> usize {
        self.subjects.len()
    }

    /// A shard of tenure and budgets without them; none where the bytes are not a shard.
    #[must_use]
    pub fn shard(&self, bytes: &[u8], out: &mut LedgerErased) -> Option<Vec<u8>> {
        if bytes.is_empty() {
            return Some(Vec::new());
        }
        let mut reader = Reader(bytes);
        let (mut people, mut kept) = (0_u32, Vec::with_capacity(bytes.len()));
        for _ in 0..reader.u32()? {
            let (subject, rest) = (reader.u64()?, reader.take::<20>()?);
            if self.is(subject) {
                out.supporters += 1;
                continue;
            }
            people += 1;
            kept.extend_from_slice(&subject.to_le_bytes());
            kept.extend_from_slice(&rest);
        }
        let mut shard = people.to_le_bytes().to_vec();
        shard.append(&mut kept);
        while !reader.is_empty() {
            let (key, rest) = (reader.u128()?, reader.take::<24>()?);
            if self.supporters.contains(&key) {
                out.supporters += 1;
                continue;
            }
            shard.extend_from_slice(&key.to_le_bytes());
            shard.extend_from_slice(&rest);
        }
        Some(shard)
    }

    /// A shard of what was said without them; none where the bytes are not one.
    #[must_use]
    pub fn said(&self, bytes: &[u8], out: &mut LedgerErased) -> Option<Vec<u8>> {
        let (mut reader, mut kept) = (Reader(bytes), Vec::with_capacity(bytes.len()));
        while !reader.is_empty() {
            let (key, until) = (reader.u128()?, reader.take::<8>()?);
            if self.said.contains(&key) {
                out.said += 1;
                continue;
            }
            kept.extend_from_slice(&key.to_le_bytes());
            kept.extend_from_slice(&until);
        }
        Some(kept)
    }

    /// A delta without them; none where the bytes are not one.
    #[must_use]
    pub fn delta(&self, bytes: &[u8], out: &mut LedgerErased) -> Option<Vec<u8>> {
        let mut delta = LedgerDelta::from_bytes(bytes)?;
        let (people, pairs) = (delta.support.people.len(), delta.support.pairs.len());
        delta.support.people.retain(|subject| !self.is(*subject));
        delta.support.pairs.retain(|(_, subject, _)| !self.is(*subject));
        out.supporters += (people - delta.support.people.len() + pairs - delta.support.pairs.len()) as u64;
        let said = delta.said.0.len();
        delta.said.0.retain(|(key, _)| !self.said.contains(key));
        out.said += (said - delta.said.0.len()) as u64;
        Some(delta.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::SHARDS;
    use crate::ledger::per_subject::Ledger;
    use crate::ledger::said::{Said, SaidDelta};
    use crate::ledger::supporters::{SupportDelta, SupportLimits, Supporters};
    use proptest::prelude::*;

    const GROUPS: [u128; 2] = [11 << 100, 13 << 90];

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        let limits = SupportLimits { window_ms: 1_000_000, min_tenure: 2, max_classes: 9, max_entries: 1_000 };
        ledger.keep_supporters(Supporters::new(limits));
        ledger.keep_said(Said::new(1_000_000, 1_000));
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
        let said = ledger.said().expect("kept");
        (0..SHARDS).map(|shard| [ledger.shard_to_bytes(shard), said.shard_to_bytes(shard)]).collect()
    }

    proptest! {
        /// What is erased of shards and of deltas is what a ledger has that never saw the person.
        #[test]
        fn what_remains_is_what_a_ledger_has_that_never_saw_the_person(
            batches in prop::collection::vec(prop::collection::btree_set((1u64..7, 0u128..5), 1..9), 1..6),
            cut in 0usize..6,
        ) {
            let gone = 3_u64;
            let erased = Erased::new([gone].into(), &GROUPS, &GROUPS);
            let (mut counts, mut seen, mut never) = (LedgerErased::default(), ledger(), ledger());
            let mut read = ledger();
            let cut = cut.min(batches.len());
            for (number, people) in (1..).zip(&batches[..cut]) {
                let people: Vec<(u64, u128)> = people.iter().copied().collect();
                seen.apply(&delta(number, &people));
            }
            for [shard, said] in bytes(&seen) {
                prop_assert!(read.merge_shard(&erased.shard(&shard, &mut counts).expect("a shard")).is_some());
                let said = erased.said(&said, &mut counts).expect("a shard");
                prop_assert!(read.said_mut().expect("kept").merge_shard(&said).is_some());
            }
            for (number, people) in (1..).zip(&batches) {
                let people: Vec<(u64, u128)> = people.iter().copied().collect();
                if number > cut as u64 {
                    let bytes = erased.delta(&delta(number, &people).to_bytes(), &mut counts).expect("a delta");
                    read.apply(&LedgerDelta::from_bytes(&bytes).expect("a delta"));
                }
                let others: Vec<(u64, u128)> = people.into_iter().filter(|(subject, _)| *subject != gone).collect();
                never.apply(&delta(number, &others));
            }
            prop_assert_eq!(bytes(&read), bytes(&never));
        }
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        let erased = Erased::new([1].into(), &GROUPS, &GROUPS);
        let mut counts = LedgerErased::default();
        assert!(erased.shard(&[1, 0, 0, 0, 9], &mut counts).is_none());
        assert!(erased.said(&[1; 23], &mut counts).is_none());
        assert!(erased.delta(&[1; 5], &mut counts).is_none());
    }
}
