//! What instances of one group tell each other of their releases (docs/scale.md).
//!
//! Told are supports alone: classes, the subjects released in them, and when. Sensitive values that were shown, raw tuples,
//! budgets and what was said stay with the instance that knows them (decision 0054).
//!
//! Ages go by the clock of each state, which nobody else knows; so a delta carries the wall clock of its batch, and whoever takes
//! it in turns that into a time of his own. Claim: if the wall clocks of both differ by `skew_ms` at most when something is released, the
//! time that [`own_time`] gives is not later than the release. Proof: with the batch at the true moment r and the reading at the true
//! moment n ≥ r, the stamp says r + a, and the reader's clock said r + b at r, where |a − b| ≤ skew. It may have been set back since; so
//! the reader goes by the [`Highest`] that its clock has been above its age, and says at least n + b. So now − stamp ≥ n − r − skew, and age
//! − max(0, now − stamp) − skew ≤ age − (n − r): the age of the reader's state at r, which counts no second less than has passed.

use super::bytes::Reader;
use super::delta::LedgerDelta;
use serde::{Deserialize, Serialize};

/// What other instances are told of one batch, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedDelta {
    /// Wall clock of whoever has released it, at the latest when it left: milliseconds since 1970.
    pub stamp_ms: i64,
    /// Class keys, each with the number of its subjects in `subjects`.
    pub classes: Vec<(u128, u32)>,
    /// The subjects of all classes, one class after the other.
    pub subjects: Vec<u64>,
}

/// Bytes of a class, and of a subject, in a delta.
const CLASS: usize = 20;
const SUBJECT: usize = 8;

/// What both clocks of a state say at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// Wall clock, milliseconds since 1970.
    pub wall_ms: i64,
    /// Age of the state, milliseconds.
    pub age_ms: i64,
}

/// The highest that a wall clock has been above the age of its state, of the last one to two periods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Highest {
    /// Number of the period; none where nothing has been seen.
    period: Option<i64>,
    /// Of this period and of the one before, milliseconds.
    here: i64,
    before: i64,
}

impl Highest {
    /// A rise that need not be kept over a restart; [`present`](Self::present) allows for it.
    const SLACK_MS: i64 = 100;

    /// Takes into account what both clocks said at a moment; nothing is forgotten before `period_ms` of age have passed.
    pub fn see(&mut self, moment: Present, period_ms: i64) {
        let above = moment.wall_ms.saturating_sub(moment.age_ms);
        let period = moment.age_ms.div_euclid(period_ms.max(1));
        match self.period.map(|known| period.saturating_sub(known)) {
            Some(0) => self.here = self.here.max(above),
            Some(1) => (self.period, self.before, self.here) = (Some(period), self.here, above),
            Some(-1) => self.before = self.before.max(above),
            Some(..-1) => {}
            Some(_) | None => (self.period, self.before, self.here) = (Some(period), above, above),
        }
    }

    /// The wall clock as it would be had it not been set back since then.
    #[must_use]
    pub fn present(&self, now: Present) -> Present {
        let wall_ms = now.age_ms.saturating_add(self.here.max(self.before)).saturating_add(Self::SLACK_MS);
        Present { wall_ms: now.wall_ms.max(wall_ms), ..now }
    }

    /// By how much the clock has been set back since, milliseconds, where it says `now`.
    #[must_use]
    pub fn set_back(&self, now: Present) -> i64 {
        self.present(now).wall_ms.saturating_sub(now.wall_ms)
    }

    /// Whether this says more than `other` by so much that it must be kept, or says it of a later period.
    #[must_use]
    pub fn exceeds(&self, other: &Self) -> bool {
        self.period.is_some()
            && (self.period != other.period
                || self.here.max(self.before) > other.here.max(other.before).saturating_add(Self::SLACK_MS))
    }
}

/// When something that was stamped `stamp_ms` by another instance left, by the age of this state in whole seconds, rounded down:
/// never later than it did, if the wall clocks of both differ by `skew_ms` at most. Where the stamp lies in the future by more
/// than that, they differ by more.
#[must_use]
pub fn own_time(now: Present, stamp_ms: i64, skew_ms: i64) -> OwnTime {
    let since = now.wall_ms.saturating_sub(stamp_ms);
    if since < skew_ms.saturating_neg() {
        return OwnTime::Future;
    }
    let left = now.age_ms.saturating_sub(since.max(0)).saturating_sub(skew_ms);
    u32::try_from(left.div_euclid(1000)).map_or(OwnTime::Before, OwnTime::At)
}

/// See [`own_time`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnTime {
    /// In seconds of the state's age.
    At(u32),
    /// Before the age of the state began to count, or so late that it cannot be counted: it supports nothing here.
    Before,
    /// The clock of the other instance is ahead by more than may be.
    Future,
}

impl SharedDelta {
    /// What is to be told of `delta`, in parts of about `most` bytes. At least one class is in each; no part where there is none.
    #[must_use]
    pub fn parts(delta: &LedgerDelta, stamp_ms: i64, most: usize) -> Vec<Self> {
        let new = || Self { stamp_ms, ..Self::default() };
        let (mut parts, mut part, mut bytes, mut at) = (Vec::new(), new(), 0, 0);
        for &(class, count) in &delta.classes {
            let subjects = &delta.subjects[at..at + count as usize];
            at += count as usize;
            let more = CLASS + SUBJECT * subjects.len();
            if bytes + more > most && !part.classes.is_empty() {
                parts.push(std::mem::replace(&mut part, new()));
                bytes = 0;
            }
            bytes += more;
            part.classes.push((class, count));
            part.subjects.extend_from_slice(subjects);
        }
        if !part.classes.is_empty() {
            parts.push(part);
        }
        parts
    }

    /// The same as a delta of this state's ledger, released at `time`.
    #[must_use]
    pub fn at(self, time: u32) -> LedgerDelta {
        LedgerDelta { time, classes: self.classes, subjects: self.subjects, ..LedgerDelta::default() }
    }

    /// Number of entries: pairs of a class and a subject.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.subjects.len()
    }

    /// The delta as it is told.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(12 + self.classes.len() * CLASS + self.subjects.len() * SUBJECT);
        out.extend_from_slice(&self.stamp_ms.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.classes.len()).expect("bounded by the batch").to_le_bytes());
        for (class, subjects) in &self.classes {
            out.extend_from_slice(&class.to_le_bytes());
            out.extend_from_slice(&subjects.to_le_bytes());
        }
        self.subjects.iter().for_each(|subject| out.extend_from_slice(&subject.to_le_bytes()));
        out
    }

    /// `None` when `bytes` do not begin with what [`to_bytes`](Self::to_bytes) writes; whatever follows is padding.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let mut delta = Self { stamp_ms: i64::from_le_bytes(reader.take()?), ..Self::default() };
        let mut total = 0usize;
        for _ in 0..reader.u32()? {
            let (class, count) = (reader.u128()?, reader.u32()?);
            total = total.checked_add(count as usize)?;
            delta.classes.push((class, count));
        }
        for _ in 0..total {
            delta.subjects.push(reader.u64()?);
        }
        Some(delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn deltas() -> impl Strategy<Value = LedgerDelta> {
        prop::collection::btree_map(any::<u128>(), prop::collection::vec(any::<u64>(), 0..9), 0..40).prop_map(|all| {
            let mut delta = LedgerDelta::default();
            for (class, subjects) in all {
                delta.classes.push((class, u32::try_from(subjects.len()).expect("few")));
                delta.subjects.extend(subjects);
            }
            delta
        })
    }

    fn classes(parts: &[SharedDelta]) -> BTreeMap<u128, Vec<u64>> {
        let mut all = BTreeMap::new();
        for part in parts {
            let mut at = 0;
            for &(class, count) in &part.classes {
                assert!(all.insert(class, part.subjects[at..at + count as usize].to_vec()).is_none());
                at += count as usize;
            }
            assert_eq!(at, part.subjects.len());
        }
        all
    }

    proptest! {
        #[test]
        fn parts_are_the_whole_and_no_larger_than_asked(delta in deltas(), stamp in any::<i64>(), most in 1usize..400) {
            let parts = SharedDelta::parts(&delta, stamp, most);
            let whole = SharedDelta { stamp_ms: stamp, classes: delta.classes.clone(), subjects: delta.subjects.clone() };
            prop_assert_eq!(classes(&parts), classes(&[whole]));
            for part in &parts {
                let bytes = part.classes.len() * CLASS + part.subjects.len() * SUBJECT;
                prop_assert!(part.stamp_ms == stamp && (bytes <= most || part.classes.len() == 1));
                let mut written = part.to_bytes();
                prop_assert_eq!(SharedDelta::from_bytes(&written), Some(part.clone()));
                prop_assert_eq!(SharedDelta::from_bytes(&written[..written.len() - 1]), None);
                written.extend([0; 7]);
                prop_assert_eq!(SharedDelta::from_bytes(&written), Some(part.clone()));
            }
        }

        /// Whatever the two clocks say, within what is allowed between them.
        #[test]
        fn nothing_looks_younger_than_it_is(
            released in 0i64..10_000_000, passed in 0i64..10_000_000, born in -10_000_000i64..0,
            off in -60_000i64..60_000, apart in -30_000i64..=30_000, skew in 30_000i64..60_000,
        ) {
            let now = Present { wall_ms: released + passed + off + apart, age_ms: released + passed - born };
            match own_time(now, released + off, skew) {
                OwnTime::At(time) => prop_assert!(i64::from(time) * 1000 <= released - born),
                OwnTime::Before => prop_assert!(released - born < 2 * skew + 1000),
                OwnTime::Future => prop_assert!(false, "the clocks differ by no more than may be"),
            }
        }
    }

    proptest! {
        /// Both clocks are set together, by any steps, as by one source of time; heard is whenever: as long as the steps are less than a
        /// window, nothing that has left it counts, and nothing looks younger than it is while the period lasts.
        #[test]
        fn a_clock_that_is_set_back_makes_nothing_younger(
            steps in prop::collection::vec((1i64..40_000, -30_000i64..30_000), 1..12),
            released in any::<prop::sample::Index>(), apart in -1_000i64..=1_000, restarts in prop::collection::vec(any::<bool>(), 12),
        ) {
            const SKEW: i64 = 1_000;
            const PERIOD: i64 = 10_000_000;
            let released = released.index(steps.len());
            let (mut now, mut wall, mut highest, mut kept) = (50_000, 1_000_000, Highest::default(), Highest::default());
            let (mut left, mut stamp) = (0, 0);
            for (at, (passes, step)) in steps.into_iter().enumerate() {
                (now, wall) = (now + passes, wall + passes);
                let present = Present { wall_ms: wall, age_ms: now };
                highest.see(present, PERIOD);
                if highest.exceeds(&kept) {
                    kept = highest;
                }
                if at == released {
                    (left, stamp) = (now, wall + apart);
                }
                if restarts[at] {
                    highest = kept;
                }
                wall += step;
            }
            let present = Present { wall_ms: wall, age_ms: now };
            highest.see(present, PERIOD);
            match own_time(highest.present(present), stamp, SKEW) {
                OwnTime::At(time) => prop_assert!(i64::from(time) * 1000 <= left, "{time} s, and it left at {left}"),
                OwnTime::Before | OwnTime::Future => {}
            }
        }
    }

    #[test]
    fn what_is_long_past_is_forgotten() {
        let at = |wall_ms, age_ms| Present { wall_ms, age_ms };
        let mut highest = Highest::default();
        highest.see(at(9_000, 10), 1_000);
        assert_eq!(highest.set_back(at(9_000, 10)), Highest::SLACK_MS);
        highest.see(at(5_500, 510), 1_000);
        assert_eq!(highest.set_back(at(5_500, 510)), 4_000 + Highest::SLACK_MS);
        highest.see(at(6_500, 1_510), 1_000);
        assert_eq!(highest.set_back(at(6_500, 1_510)), 4_000 + Highest::SLACK_MS, "the period before counts");
        highest.see(at(8_990, 5), 1_000);
        assert_eq!(highest.set_back(at(6_500, 1_510)), 4_000 + Highest::SLACK_MS);
        highest.see(at(7_500, 2_510), 1_000);
        assert_eq!(highest.set_back(at(7_500, 2_510)), Highest::SLACK_MS, "over");
    }

    #[test]
    fn clocks_that_differ_by_more_are_told_where_it_can_be_seen() {
        let now = Present { wall_ms: 1_000_000, age_ms: 500_000 };
        assert_eq!(own_time(now, 1_060_000, 60_000), OwnTime::At(440), "at the edge");
        assert_eq!(own_time(now, 1_060_001, 60_000), OwnTime::Future);
        assert_eq!(own_time(now, 1_000_000, 60_000), OwnTime::At(440), "the allowance always counts");
        assert_eq!(own_time(now, 990_000, 60_000), OwnTime::At(430));
        assert_eq!(own_time(now, 0, 60_000), OwnTime::Before);
        assert_eq!(own_time(now, i64::MIN, 60_000), OwnTime::Before);
        assert_eq!(own_time(now, i64::MAX, 60_000), OwnTime::Future);
    }
}
