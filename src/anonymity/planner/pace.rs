//! How often the attributes of a stream change within a person, measured on the window of its last records.
//!
//! Fail closed: until enough was seen, an attribute does not change. A change is counted between a value and the value
//! that the subject had when it last had one: a cell that is missing now and then is not a change.

use crate::anonymity::plan::Pace;
use crate::records::codebook::{ABSENT, Code, NULL};
use crate::records::schema::{Changes, Schema};
use crate::records::subject::NO_SUBJECT;
use crate::records::window::Window;
use hashbrown::HashMap;
use rayon::prelude::*;

/// Shares of changes up to which an attribute never changes, and changes slowly (docs/methods.md §12.4).
const NEVER: f32 = 0.001;
const SLOWLY: f32 = 0.05;

/// Pairs of records of one subject that make a share.
const ENOUGH: u64 = 100;

/// The paces of `attributes`: as `schema` declares them, else as `window` shows them. An attribute changes always only
/// if at least `k` people were seen to change it: fewer could be somebody's invention.
#[must_use]
pub fn paces(schema: &Schema, attributes: &[usize], window: &Window, k: usize) -> Vec<Pace> {
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let (older, newer) = window.subjects();
    let people: Vec<Option<u32>> = older
        .iter()
        .chain(newer)
        .map(|&subject| {
            let next = numbers.len() as u32;
            (subject != NO_SUBJECT).then(|| *numbers.entry(subject).or_insert(next))
        })
        .collect();
    let of = |&attribute: &usize| {
        if let Some(changes) = schema.attributes[attribute].changes {
            return Pace { attribute, changes, declared: true, share: None };
        }
        let seen = Seen::of(&people, numbers.len(), window.codes(attribute));
        Pace { attribute, changes: seen.judge(k), declared: false, share: seen.share() }
    };
    attributes.par_iter().map(of).collect()
}

/// What was seen of one attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Records with a value whose subject had one before.
    pairs: u64,
    changes: u64,
    /// Subjects that have changed it.
    changed: u64,
}

impl Seen {
    /// `people` are the subjects of the rows by number, below `count`; nobody is none.
    fn of(people: &[Option<u32>], count: usize, codes: impl Iterator<Item = Code>) -> Self {
        let mut last = vec![ABSENT; count];
        let mut has_changed = vec![false; count];
        let mut seen = Self::default();
        for (person, code) in people.iter().zip(codes) {
            let Some(person) = person.map(|person| person as usize).filter(|_| !matches!(code, ABSENT | NULL)) else {
                continue;
            };
            let before = std::mem::replace(&mut last[person], code);
            if before != ABSENT {
                seen.pairs += 1;
                if before != code {
                    seen.changes += 1;
                    seen.changed += u64::from(!std::mem::replace(&mut has_changed[person], true));
                }
            }
        }
        seen
    }

    fn share(&self) -> Option<f32> {
        (self.pairs >= ENOUGH).then(|| self.changes as f32 / self.pairs as f32)
    }

    fn judge(&self, k: usize) -> Changes {
        match self.share() {
            Some(share) if share > SLOWLY && self.changed >= k as u64 => Changes::Always,
            Some(share) if share > NEVER => Changes::Slowly,
            _ => Changes::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn changes_are_counted_as_by_looking_back(
            rows in prop::collection::vec((prop::option::weighted(0.9, 0u32..5), prop_oneof![Just(ABSENT), Just(NULL), 2u32..5]), 0..300),
        ) {
            let people: Vec<Option<u32>> = rows.iter().map(|r| r.0).collect();
            let seen = Seen::of(&people, 5, rows.iter().map(|r| r.1));
            let mut slow = Seen::default();
            let mut changed = std::collections::BTreeSet::new();
            let has = |row: &(Option<u32>, Code)| row.0.is_some() && row.1 != ABSENT && row.1 != NULL;
            for (at, row) in rows.iter().enumerate().filter(|(_, row)| has(row)) {
                let before = rows[..at].iter().rev().find(|other| has(other) && other.0 == row.0);
                slow.pairs += u64::from(before.is_some());
                if before.is_some_and(|before| before.1 != row.1) {
                    slow.changes += 1;
                    changed.insert(row.0);
                }
            }
            slow.changed = changed.len() as u64;
            prop_assert_eq!(seen, slow);
        }
    }

    #[test]
    fn little_evidence_is_no_change() {
        let seen = |pairs, changes, changed| Seen { pairs, changes, changed }.judge(5);
        assert_eq!(seen(99, 99, 50), Changes::Never, "too few pairs");
        assert_eq!(seen(100, 99, 4), Changes::Slowly, "too few people");
        assert_eq!(seen(100, 6, 5), Changes::Always);
        assert_eq!(seen(100, 5, 5), Changes::Slowly);
        assert_eq!(seen(1000, 1, 1), Changes::Never);
        assert_eq!(seen(1000, 2, 2), Changes::Slowly);
    }
}
