//! Change rates within a subject. Fails closed: without evidence, an attribute is static. Missing cells are no changes.

use hashbrown::HashMap;
use rayon::prelude::*;
use throng_core::plan::AttributeChangeRate;
use throng_core::values::codebook::{ABSENT, Code, NULL};
use throng_core::values::record_window::RecordWindow;
use throng_core::values::schema::{ChangeFrequency, Role, Schema};
use throng_core::values::subject_digest::NO_SUBJECT;

/// Upper shares for "never" and "slowly" (docs/internals/methods.md §12.4).
const MAX_NEVER_SHARE: f32 = 0.001;
const MAX_SLOW_SHARE: f32 = 0.05;

const MIN_CHANGE_PAIRS: u64 = 100;

/// Returns change rates: declared in `schema`, otherwise measured in `window`.
///
/// A share is the median over subjects without the `colluders` that change most; a change needs at least `crowd`
/// subjects. An undeclared sensitive attribute never changes.
pub fn measure_change_rates(
    schema: &Schema,
    attributes: &[usize],
    window: &RecordWindow,
    crowd: usize,
    colluders: usize,
) -> Vec<AttributeChangeRate> {
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
            return AttributeChangeRate { attribute, changes, declared: true, share: None };
        }
        if schema.attributes[attribute].role == Role::Sensitive {
            return AttributeChangeRate { attribute, changes: ChangeFrequency::Never, declared: false, share: None };
        }
        let seen = ObservedChanges::of(&people, numbers.len(), window.codes(attribute), colluders);
        AttributeChangeRate {
            attribute,
            changes: seen.change_frequency(crowd),
            declared: false,
            share: seen.change_share(),
        }
    };
    attributes.par_iter().map(of).collect()
}

/// Measured changes of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnChanges {
    /// Change frequency; "never" also without enough subjects that change.
    pub changes: ChangeFrequency,
    /// Share of changes of the median subject.
    pub share: f32,
    /// Subjects with successive records.
    pub subjects: u64,
    /// Subjects with a change.
    pub changed_subjects: u64,
}

/// Too few record pairs to measure changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewSteps {
    /// Successive records of a subject with values.
    pub steps: u64,
    /// Subjects with such records.
    pub subjects: u64,
}

impl TooFewSteps {
    /// Required pairs.
    pub const NEEDED: u64 = MIN_CHANGE_PAIRS;
}

/// Returns the changes in `codes`; `people` are below `count`.
///
/// # Errors
///
/// When there are too few pairs.
pub fn measure_column_changes(
    people: &[Option<u32>],
    count: usize,
    codes: impl Iterator<Item = Option<Code>>,
    crowd: usize,
) -> Result<ColumnChanges, TooFewSteps> {
    // Two codes mean missing.
    let seen = ObservedChanges::of(people, count, codes.map(|code| code.map_or(ABSENT, |code| code + NULL + 1)), 0);
    let (subjects, changed_subjects) = (seen.subjects_with_pairs, seen.changed_subjects);
    let measured =
        |share: f32| ColumnChanges { changes: seen.change_frequency(crowd), share, subjects, changed_subjects };
    seen.change_share().map(measured).ok_or(TooFewSteps { steps: seen.pairs, subjects })
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ObservedChanges {
    /// Records after an earlier value.
    pairs: u64,
    subjects_with_pairs: u64,
    changed_subjects: u64,
    /// Per subject, without colluders.
    median_change_share: f64,
}

impl ObservedChanges {
    fn of(people: &[Option<u32>], count: usize, codes: impl Iterator<Item = Code>, colluders: usize) -> Self {
        let mut last = vec![ABSENT; count];
        // Pairs and changes.
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
            subjects_with_pairs: shares.len() as u64,
            changed_subjects: shares.iter().filter(|share| **share > 0.0).count() as u64,
            // More than half have at least this share.
            median_change_share: honest.len().checked_sub(1).map_or(0.0, |last| honest[last / 2]),
        }
    }

    fn change_share(&self) -> Option<f32> {
        (self.pairs >= MIN_CHANGE_PAIRS).then_some(self.median_change_share as f32)
    }

    fn change_frequency(&self, crowd: usize) -> ChangeFrequency {
        let enough_people = self.changed_subjects >= crowd as u64;
        match self.change_share() {
            Some(share) if share > MAX_SLOW_SHARE && enough_people => ChangeFrequency::Always,
            Some(share) if share > MAX_NEVER_SHARE && enough_people => ChangeFrequency::Slowly,
            _ => ChangeFrequency::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn change_counts_match_backward_search(
            rows in prop::collection::vec((prop::option::weighted(0.9, 0u32..5), prop_oneof![Just(ABSENT), Just(NULL), 2u32..5]), 0..300),
            colluders in 0usize..4,
        ) {
            let people: Vec<Option<u32>> = rows.iter().map(|r| r.0).collect();
            let has = |row: &(Option<u32>, Code)| row.0.is_some() && row.1 != ABSENT && row.1 != NULL;
            let mut own = std::collections::BTreeMap::<Option<u32>, Vec<bool>>::new();
            for (at, row) in rows.iter().enumerate().filter(|(_, row)| has(row)) {
                if let Some(before) = rows[..at].iter().rev().find(|other| has(other) && other.0 == row.0) {
                    own.entry(row.0).or_default().push(before.1 != row.1);
                }
            }
            let share = |changes: &Vec<bool>| changes.iter().filter(|c| **c).count() as f64 / changes.len() as f64;
            // For the worst colluders.
            let median = |out: u32| {
                let left: Vec<f64> = own.iter().filter(|(p, _)| out >> p.unwrap_or(0) & 1 == 0).map(|(_, c)| share(c)).collect();
                let reached = |&least: &f64| 2 * left.iter().filter(|s| **s >= least).count() > left.len();
                left.iter().copied().filter(reached).fold(0.0, f64::max)
            };
            let least = (0_u32..1 << 5).filter(|out| out.count_ones() as usize <= colluders).map(median).fold(f64::MAX, f64::min);
            let seen = ObservedChanges::of(&people, 5, rows.iter().map(|r| r.1), colluders);
            prop_assert_eq!(seen.pairs, own.values().map(|c| c.len() as u64).sum::<u64>());
            prop_assert_eq!(seen.subjects_with_pairs, own.len() as u64);
            prop_assert_eq!(seen.changed_subjects, own.values().filter(|c| c.contains(&true)).count() as u64);
            prop_assert!((seen.median_change_share - least).abs() < 1e-9, "{} for {}", seen.median_change_share, least);
        }
    }

    #[test]
    fn change_frequency_without_enough_evidence_is_never() {
        let seen = |pairs, changed, median| {
            ObservedChanges { pairs, subjects_with_pairs: 50, changed_subjects: changed, median_change_share: median }
                .change_frequency(5)
        };
        assert_eq!(seen(99, 50, 1.0), ChangeFrequency::Never, "too few pairs");
        assert_eq!(seen(100, 4, 1.0), ChangeFrequency::Never, "too few people");
        assert_eq!(seen(100, 5, 0.052), ChangeFrequency::Always);
        assert_eq!(seen(100, 5, 0.05), ChangeFrequency::Slowly);
        assert_eq!(seen(1000, 5, 0.001), ChangeFrequency::Never);
        assert_eq!(seen(1000, 5, 0.0012), ChangeFrequency::Slowly);
    }

    /// `honest` subjects repeat a record; `invented` ones change it 400 times.
    fn frequency_with_invented_subjects(honest: u32, invented: u32, colluders: usize) -> ChangeFrequency {
        let mut rows: Vec<(u32, Code)> = (0..3).flat_map(|_| (0..honest).map(|p| (p, 7))).collect();
        rows.extend((0..400).flat_map(|n| (0..invented).map(move |p| (honest + p, 10 + n))));
        let people: Vec<Option<u32>> = rows.iter().map(|r| Some(r.0)).collect();
        let count = (honest + invented) as usize;
        ObservedChanges::of(&people, count, rows.iter().map(|r| r.1), colluders).change_frequency(5 + colluders)
    }

    #[test]
    fn change_frequency_resists_minority_of_invented_subjects() {
        for honest in [20, 33, 71, 200] {
            for (invented, colluders) in [(5, 0), (9, 0), (10, 4), (honest - 1, 0), (honest + 3, 4)] {
                assert_eq!(
                    frequency_with_invented_subjects(honest, invented, colluders),
                    ChangeFrequency::Never,
                    "{invented} invented beside {honest}, {colluders} colluders"
                );
            }
            assert_eq!(
                frequency_with_invented_subjects(honest, honest + 1, 0),
                ChangeFrequency::Always,
                "more than half of all"
            );
        }
    }
}
