//! What the ledger has written of somebody, taken out of it.
//!
//! Everything here works on bytes as the state keeps them, whatever is configured now, and changes nothing of anybody else. What
//! is taken out only understates: support, tenure, and values under distinct diversity. Values of attributes whose models must
//! know everything that was shown stay, under a number drawn for one class and one erasure: readers still see them, and what is
//! judged beside them must not forget that (docs/erasure.md).

use super::bytes::Reader;
use super::delta::LedgerDelta;
use super::said::said_key;
use super::supporters::supporter_key;
use crate::records::digest::{DigestKey, Keyed};
use std::collections::{BTreeMap, BTreeSet};

/// Who is erased.
pub struct Erased {
    subjects: BTreeSet<u64>,
    /// Keys of lines that groups have said of them.
    said: BTreeSet<u128>,
    /// Keys of the classes of a group that they support.
    supporters: BTreeSet<u128>,
    /// Draws the numbers of what stays without them. Nothing of it outlives the erasure.
    draws: Keyed,
}

/// What was taken out of the ledger, in entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerErased {
    /// Pairs of a class and somebody.
    pub entries: u64,
    /// Sensitive values that were shown beside a class.
    pub shown: u64,
    /// Those that stay without the name of whoever has shown them.
    pub unnamed: u64,
    /// People, and classes that they support, kept for tenure and budgets.
    pub supporters: u64,
    /// Lines that were said.
    pub said: u64,
}

impl Erased {
    /// `subjects` by their digests; `turns` and `bases` name the groups among what was said and among classes.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn new(subjects: BTreeSet<u64>, turns: &[u128], bases: &[u128]) -> Result<Self, std::io::Error> {
        let each = |groups: &[u128], key: fn(u128, u64) -> u128| -> BTreeSet<u128> {
            groups.iter().flat_map(|group| subjects.iter().map(move |subject| key(*group, *subject))).collect()
        };
        let (said, supporters) = (each(turns, said_key), each(bases, supporter_key));
        let draws = DigestKey::of_this_run()?.keyed("throng erased");
        Ok(Self { subjects, said, supporters, draws })
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

    /// A number in place of somebody beside one class and attribute; the same for the same within this erasure.
    fn unnamed(&self, attribute: u32, class: u128, subject: u64) -> u64 {
        let mut place = Vec::with_capacity(28);
        place.extend_from_slice(&attribute.to_le_bytes());
        place.extend_from_slice(&class.to_le_bytes());
        place.extend_from_slice(&subject.to_le_bytes());
        ((self.draws.digest(&place) >> 64) as u64).max(1)
    }

    /// A shard of the ledger without them; none where the bytes are not a shard.
    #[must_use]
    pub fn shard(&self, bytes: &[u8], out: &mut LedgerErased) -> Option<Vec<u8>> {
        let mut reader = Reader(bytes);
        let (mut classes, mut kept) = (0_u32, Vec::with_capacity(bytes.len()));
        for _ in 0..reader.u32()? {
            let class = reader.u128()?;
            let mut entries = Vec::new();
            for _ in 0..reader.u32()? {
                let (time, subject) = (reader.u32()?, reader.u64()?);
                if self.is(subject) {
                    out.entries += 1;
                } else {
                    entries.push((time, subject));
                }
            }
            if entries.is_empty() {
                continue;
            }
            classes += 1;
            kept.extend_from_slice(&class.to_le_bytes());
            kept.extend_from_slice(&u32::try_from(entries.len()).ok()?.to_le_bytes());
            for (time, subject) in entries {
                kept.extend_from_slice(&time.to_le_bytes());
                kept.extend_from_slice(&subject.to_le_bytes());
            }
        }
        let mut shard = classes.to_le_bytes().to_vec();
        shard.append(&mut kept);
        if !reader.is_empty() {
            self.supporters(&mut reader, &mut shard, out)?;
        }
        Some(shard)
    }

    /// The part of a shard that says who supports what.
    fn supporters(&self, reader: &mut Reader<'_>, shard: &mut Vec<u8>, out: &mut LedgerErased) -> Option<()> {
        let (mut people, mut kept) = (0_u32, Vec::new());
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
        shard.extend_from_slice(&people.to_le_bytes());
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
        Some(())
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

    /// A shard of the tally without them; none where the bytes are not one. `few` are the attributes of which a few values a class
    /// are enough: theirs go.
    #[must_use]
    pub fn tally(&self, bytes: &[u8], few: &BTreeSet<u32>, out: &mut LedgerErased) -> Option<Vec<u8>> {
        let (mut reader, mut kept) = (Reader(bytes), Vec::with_capacity(bytes.len()));
        while !reader.is_empty() {
            let (attribute, class) = (reader.u32()?, reader.u128()?);
            // By value and subject, as they are read back.
            let mut entries = BTreeMap::new();
            for _ in 0..reader.u32()? {
                let (value, subject, rest) = (reader.u64()?, reader.u64()?, reader.take::<16>()?);
                if let Some(subject) = self.showing(attribute, class, subject, few, out) {
                    entries.insert((value, subject), rest);
                }
            }
            if entries.is_empty() {
                continue;
            }
            kept.extend_from_slice(&attribute.to_le_bytes());
            kept.extend_from_slice(&class.to_le_bytes());
            kept.extend_from_slice(&u32::try_from(entries.len()).ok()?.to_le_bytes());
            for ((value, subject), rest) in entries {
                kept.extend_from_slice(&value.to_le_bytes());
                kept.extend_from_slice(&subject.to_le_bytes());
                kept.extend_from_slice(&rest);
            }
        }
        Some(kept)
    }

    /// Who has shown a value from here on; none where that goes.
    fn showing(
        &self,
        attribute: u32,
        class: u128,
        subject: u64,
        few: &BTreeSet<u32>,
        out: &mut LedgerErased,
    ) -> Option<u64> {
        if !self.is(subject) {
            return Some(subject);
        }
        if few.contains(&attribute) {
            out.shown += 1;
            return None;
        }
        out.unnamed += 1;
        Some(self.unnamed(attribute, class, subject))
    }

    /// A delta without them; none where the bytes are not one.
    #[must_use]
    pub fn delta(&self, bytes: &[u8], few: &BTreeSet<u32>, out: &mut LedgerErased) -> Option<Vec<u8>> {
        let mut delta = LedgerDelta::from_bytes(bytes)?;
        let mut subjects = Vec::with_capacity(delta.subjects.len());
        let mut rest = delta.subjects.as_slice();
        for (_, count) in &mut delta.classes {
            let (of_class, behind) = rest.split_at_checked(*count as usize)?;
            rest = behind;
            let before = subjects.len();
            subjects.extend(of_class.iter().copied().filter(|subject| !self.is(*subject)));
            let left = subjects.len() - before;
            out.entries += (of_class.len() - left) as u64;
            *count = u32::try_from(left).ok()?;
        }
        delta.classes.retain(|(_, count)| *count > 0);
        delta.subjects = subjects;
        let (people, pairs) = (delta.support.people.len(), delta.support.pairs.len());
        delta.support.people.retain(|subject| !self.is(*subject));
        delta.support.pairs.retain(|(_, subject, _)| !self.is(*subject));
        out.supporters += (people - delta.support.people.len() + pairs - delta.support.pairs.len()) as u64;
        let said = delta.said.0.len();
        delta.said.0.retain(|(key, _)| !self.said.contains(key));
        out.said += (said - delta.said.0.len()) as u64;
        let showings = &mut delta.tally.showings;
        let mut kept = std::mem::take(showings);
        kept.retain_mut(|showing| match self.showing(showing.attribute, showing.class, showing.subject, few, out) {
            Some(subject) => {
                showing.subject = subject;
                true
            }
            None => false,
        });
        kept.sort_unstable();
        *showings = kept;
        Some(delta.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::SHARDS;
    use crate::ledger::classes::Ledger;
    use crate::ledger::said::{Said, SaidDelta};
    use crate::ledger::supporters::{SupportDelta, SupportLimits, Supporters};
    use crate::ledger::tally::{Keeps, Showing, Tally, TallyDelta};
    use proptest::prelude::*;

    const GROUPS: [u128; 2] = [11 << 100, 13 << 90];

    fn ledger() -> Ledger {
        let mut ledger = Ledger::new(3, 1_000, 1_000);
        ledger.keep_tally(Tally::new(1_000_000, 1_000, &[(1, Keeps::Few { l: 2 }), (2, Keeps::Everything)]));
        let limits = SupportLimits { window_ms: 1_000_000, min_tenure: 2, max_classes: 9, max_entries: 1_000 };
        ledger.keep_supporters(Supporters::new(limits));
        ledger.keep_said(Said::new(1_000_000, 1_000));
        ledger
    }

    /// A batch in which each of `people` is in a class and says a line; of class 1 the values of both attributes are shown.
    fn delta(sequence: u64, people: &[(u64, u128)]) -> LedgerDelta {
        let mut classes: BTreeMap<u128, BTreeSet<u64>> = BTreeMap::new();
        for (subject, class) in people {
            classes.entry(*class << 120).or_default().insert(*subject);
        }
        let all: BTreeSet<u64> = people.iter().map(|(subject, _)| *subject).collect();
        let mut pairs: Vec<(u128, u64, u128)> = people.iter().map(|(s, c)| (GROUPS[0], *s, *c << 120)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut showings: Vec<Showing> = people
            .iter()
            .flat_map(|(subject, class)| {
                [1, 2].map(|attribute| Showing {
                    attribute,
                    class: *class << 120,
                    value: subject % 2,
                    subject: *subject,
                })
            })
            .collect();
        showings.sort_unstable();
        showings.dedup();
        let mut said: Vec<(u128, i64)> = all.iter().map(|s| (said_key(GROUPS[1], *s), 900_000)).collect();
        said.sort_unstable();
        LedgerDelta {
            time: sequence as u32,
            classes: classes.iter().map(|(class, subjects)| (*class, subjects.len() as u32)).collect(),
            subjects: classes.values().flatten().copied().collect(),
            support: SupportDelta {
                sequence,
                time_ms: sequence as i64 * 1000,
                people: all.into_iter().collect(),
                pairs,
            },
            said: SaidDelta(said),
            tally: TallyDelta { time_ms: sequence as i64 * 1000, sequence, showings },
        }
    }

    fn bytes(ledger: &Ledger) -> Vec<[Vec<u8>; 3]> {
        let (tally, said) = (ledger.tally().expect("kept"), ledger.said().expect("kept"));
        (0..SHARDS).map(|s| [ledger.shard_to_bytes(s), tally.shard_to_bytes(s), said.shard_to_bytes(s)]).collect()
    }

    proptest! {
        /// What is erased of shards and of deltas is what a ledger has that never saw the person, but for values without a name.
        #[test]
        fn what_remains_is_what_a_ledger_has_that_never_saw_the_person(
            batches in prop::collection::vec(prop::collection::btree_set((1u64..7, 0u128..5), 1..9), 1..6),
            cut in 0usize..6,
        ) {
            let gone = 3_u64;
            let erased = Erased::new([gone].into(), &GROUPS, &GROUPS).expect("random bytes");
            let few: BTreeSet<u32> = [1].into();
            let (mut counts, mut seen, mut never) = (LedgerErased::default(), ledger(), ledger());
            let mut read = ledger();
            let cut = cut.min(batches.len());
            for (number, people) in (1..).zip(&batches[..cut]) {
                let people: Vec<(u64, u128)> = people.iter().copied().collect();
                seen.apply(&delta(number, &people));
            }
            for [shard, tally, said] in bytes(&seen) {
                prop_assert!(read.merge_shard(&erased.shard(&shard, &mut counts).expect("a shard")).is_some());
                let tally = erased.tally(&tally, &few, &mut counts).expect("a shard");
                prop_assert!(read.tally_mut().expect("kept").merge_shard(&tally).is_some());
                let said = erased.said(&said, &mut counts).expect("a shard");
                prop_assert!(read.said_mut().expect("kept").merge_shard(&said).is_some());
            }
            for (number, people) in (1..).zip(&batches) {
                let people: Vec<(u64, u128)> = people.iter().copied().collect();
                if number > cut as u64 {
                    let bytes = erased.delta(&delta(number, &people).to_bytes(), &few, &mut counts).expect("a delta");
                    read.apply(&LedgerDelta::from_bytes(&bytes).expect("a delta"));
                }
                let others: Vec<(u64, u128)> = people.into_iter().filter(|(subject, _)| *subject != gone).collect();
                never.apply(&delta(number, &others));
            }
            // Who is latest among those that a class keeps may differ: it had to make room for the one who is gone. With three
            // places nobody is missing that counts beyond k.
            let mut out = [0; 3];
            for class in 0..5_u128 {
                let now = 100_000;
                let (found, wanted) = (read.at(now).fresh_subjects(class << 120, &mut out), never.at(now).fresh_subjects(class << 120, &mut [0; 3]));
                prop_assert!(found <= wanted, "support is never overstated");
                prop_assert!(!out[..found].contains(&gone));
                let pairs = |of: &Ledger, attribute| {
                    let mut pairs = Vec::new();
                    of.tally().expect("kept").pairs(attribute, class << 120, now, &mut pairs);
                    pairs
                };
                prop_assert!(pairs(&read, 1).iter().all(|pair| pairs(&never, 1).contains(pair)));
                let (named, all) = (pairs(&never, 2), pairs(&read, 2));
                prop_assert!(named.iter().all(|pair| all.contains(pair)), "everything stays known");
                let shown = batches.iter().any(|people| people.contains(&(gone, class)));
                prop_assert_eq!(all.len(), named.len() + usize::from(shown), "and hers without her");
                prop_assert!(all.iter().all(|(_, subject)| *subject != gone));
            }
            for shard in bytes(&read).concat() {
                prop_assert!(!shard.windows(8).any(|window| window == gone.to_le_bytes() && gone > 1 << 32));
            }
            let (said, whole) = (read.said().expect("kept").entries(), never.said().expect("kept").entries());
            prop_assert_eq!(said, whole);
            prop_assert_eq!(read.supporters().expect("kept").entries(), never.supporters().expect("kept").entries());
        }
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        let erased = Erased::new([1].into(), &GROUPS, &GROUPS).expect("random bytes");
        let mut counts = LedgerErased::default();
        assert!(erased.shard(&[1, 0, 0, 0, 9], &mut counts).is_none());
        assert!(erased.tally(&[1], &BTreeSet::new(), &mut counts).is_none());
        assert!(erased.said(&[1; 23], &mut counts).is_none());
        assert!(erased.delta(&[1; 5], &BTreeSet::new(), &mut counts).is_none());
    }
}
