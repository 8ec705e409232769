//! How often the attributes of a stream change within a person, measured on the window of its last records.
//!
//! Fail closed: until enough was seen, an attribute does not change. A change is counted between a value and the value
//! that the subject had when it last had one: a cell that is missing now and then is not a change. A sensitive attribute is
//! never measured: it changes only where the schema declares it.

use crate::anonymity::plan::Pace;
use hashbrown::HashMap;
use rayon::prelude::*;
use throng_core::values::codebook::{ABSENT, Code, NULL};
use throng_core::values::schema::{Changes, Role, Schema};
use throng_core::values::subject::NO_SUBJECT;
use throng_core::values::window::Window;

/// Shares of changes up to which an attribute never changes, and changes slowly (docs/methods.md §12.4).
const NEVER: f32 = 0.001;
const SLOWLY: f32 = 0.05;

/// Pairs of records of one subject that make a share.
const ENOUGH: u64 = 100;

/// Returns the paces of `attributes`: as `schema` declares them, else as `window` shows them. Each person counts once,
/// regardless of the number of records: the share is the median of the people's own shares of changes, without the
/// `colluders` who change it most. An attribute changes only if at least a `crowd` (k and the colluders) changes it. So no
/// minority of invented people decides that an attribute changes. A sensitive attribute that the schema does not declare
/// never changes.
pub fn paces(schema: &Schema, attributes: &[usize], window: &Window, crowd: usize, colluders: usize) -> Vec<Pace> {
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
        if schema.attributes[attribute].role == Role::Sensitive {
            return Pace { attribute, changes: Changes::Never, declared: false, share: None };
        }
        let seen = Seen::of(&people, numbers.len(), window.codes(attribute), colluders);
        Pace { attribute, changes: seen.changes(crowd), declared: false, share: seen.share() }
    };
    attributes.par_iter().map(of).collect()
}

/// Too few successive records of people to measure how an attribute changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewSteps {
    /// Steps from a record of a person to their next one, both with a value.
    pub steps: u64,
}

impl TooFewSteps {
    /// Steps that are needed.
    pub const NEEDED: u64 = ENOUGH;
}

/// Returns the pace of one column of `codes` and the share of changes. A row without a value has no code; `people` are those of the rows,
/// by number below `count`.
///
/// # Errors
/// Where too few steps were seen.
pub fn pace_of(
    people: &[Option<u32>],
    count: usize,
    codes: impl Iterator<Item = Option<Code>>,
    crowd: usize,
) -> Result<(Changes, f32), TooFewSteps> {
    // Two codes say that nothing is there; values come after them.
    let seen = Seen::of(people, count, codes.map(|code| code.map_or(ABSENT, |code| code + NULL + 1)), 0);
    seen.share().map(|share| (seen.changes(crowd), share)).ok_or(TooFewSteps { steps: seen.pairs })
}

/// What was seen of one attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    /// Records with a value whose subject had one before.
    pairs: u64,
    /// Subjects that have such a record: seen at least twice.
    people: u64,
    /// Of them, those that have changed it.
    changed: u64,
    /// The median of the people's own shares of changes, without those of the colluders.
    median: f64,
}

impl Seen {
    /// `people` are the subjects of the rows by number, below `count`; nobody is none.
    fn of(people: &[Option<u32>], count: usize, codes: impl Iterator<Item = Code>, colluders: usize) -> Self {
        let mut last = vec![ABSENT; count];
        // By person: pairs, and changes among them.
        let mut of_person = vec![(0_u32, 0_u32); count];
        for (person, code) in people.iter().zip(codes) {
            let Some(person) = person.map(|person| person as usize).filter(|_| !matches!(code, ABSENT | NULL)) else {
                continue;
            };
            let before = std::mem::replace(&mut last[person], code);
            if before != ABSENT {
                of_person[person].0 += 1;
                of_person[person].1 += u32::from(before != code);
            }
        }
        let twice = of_person.iter().filter(|(pairs, _)| *pairs > 0);
        let mut shares: Vec<f64> =
            twice.clone().map(|&(pairs, changes)| f64::from(changes) / f64::from(pairs)).collect();
        shares.sort_unstable_by(f64::total_cmp);
        let honest = &shares[..shares.len().saturating_sub(colluders)];
        Self {
            pairs: twice.map(|(pairs, _)| u64::from(*pairs)).sum(),
            people: shares.len() as u64,
            changed: shares.iter().filter(|share| **share > 0.0).count() as u64,
            // Of an even number of people the lower of the two in the middle: more than half have this share or more.
            median: honest.len().checked_sub(1).map_or(0.0, |last| honest[last / 2]),
        }
    }

    fn share(&self) -> Option<f32> {
        (self.pairs >= ENOUGH).then_some(self.median as f32)
    }

    fn changes(&self, crowd: usize) -> Changes {
        let enough_people = self.changed >= crowd as u64;
        match self.share() {
            Some(share) if share > SLOWLY && enough_people => Changes::Always,
            Some(share) if share > NEVER && enough_people => Changes::Slowly,
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
            colluders in 0usize..4,
        ) {
            let people: Vec<Option<u32>> = rows.iter().map(|r| r.0).collect();
            // By person, looked back from each record.
            let has = |row: &(Option<u32>, Code)| row.0.is_some() && row.1 != ABSENT && row.1 != NULL;
            let mut own = std::collections::BTreeMap::<Option<u32>, Vec<bool>>::new();
            for (at, row) in rows.iter().enumerate().filter(|(_, row)| has(row)) {
                if let Some(before) = rows[..at].iter().rev().find(|other| has(other) && other.0 == row.0) {
                    own.entry(row.0).or_default().push(before.1 != row.1);
                }
            }
            let share = |changes: &Vec<bool>| changes.iter().filter(|c| **c).count() as f64 / changes.len() as f64;
            // The largest share that more than half of the people reach, in the least favourable choice of colluders.
            let median = |out: u32| {
                let left: Vec<f64> = own.iter().filter(|(p, _)| out >> p.unwrap_or(0) & 1 == 0).map(|(_, c)| share(c)).collect();
                let reached = |&least: &f64| 2 * left.iter().filter(|s| **s >= least).count() > left.len();
                left.iter().copied().filter(reached).fold(0.0, f64::max)
            };
            let least = (0_u32..1 << 5).filter(|out| out.count_ones() as usize <= colluders).map(median).fold(f64::MAX, f64::min);
            let seen = Seen::of(&people, 5, rows.iter().map(|r| r.1), colluders);
            prop_assert_eq!(seen.pairs, own.values().map(|c| c.len() as u64).sum::<u64>());
            prop_assert_eq!(seen.people, own.len() as u64);
            prop_assert_eq!(seen.changed, own.values().filter(|c| c.contains(&true)).count() as u64);
            prop_assert!((seen.median - least).abs() < 1e-9, "{} for {}", seen.median, least);
        }
    }

    #[test]
    fn little_evidence_is_no_change() {
        let seen = |pairs, changed, median| Seen { pairs, people: 50, changed, median }.changes(5);
        assert_eq!(seen(99, 50, 1.0), Changes::Never, "too few pairs");
        assert_eq!(seen(100, 4, 1.0), Changes::Never, "too few people");
        assert_eq!(seen(100, 5, 0.052), Changes::Always);
        assert_eq!(seen(100, 5, 0.05), Changes::Slowly);
        assert_eq!(seen(1000, 5, 0.001), Changes::Never);
        assert_eq!(seen(1000, 5, 0.0012), Changes::Slowly);
    }

    /// The pace where each of `honest` people has three records with one value, and each of `invented` people 400
    /// records, all different.
    fn pace_with_invented_people(honest: u32, invented: u32, colluders: usize) -> Changes {
        let mut rows: Vec<(u32, Code)> = (0..3).flat_map(|_| (0..honest).map(|p| (p, 7))).collect();
        rows.extend((0..400).flat_map(|n| (0..invented).map(move |p| (honest + p, 10 + n))));
        let people: Vec<Option<u32>> = rows.iter().map(|r| Some(r.0)).collect();
        let count = (honest + invented) as usize;
        Seen::of(&people, count, rows.iter().map(|r| r.1), colluders).changes(5 + colluders)
    }

    #[test]
    fn invented_people_change_no_pace_below_half_of_the_people() {
        for honest in [20, 33, 71, 200] {
            for (invented, colluders) in [(5, 0), (9, 0), (10, 4), (honest - 1, 0), (honest + 3, 4)] {
                assert_eq!(
                    pace_with_invented_people(honest, invented, colluders),
                    Changes::Never,
                    "{invented} invented beside {honest}, {colluders} colluders"
                );
            }
            assert_eq!(pace_with_invented_people(honest, honest + 1, 0), Changes::Always, "more than half of all");
        }
    }
}
