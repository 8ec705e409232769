//! Shares of a contributor set in the intervals of a signal's hierarchy, for sums that one or two members dominate.

use std::collections::BTreeMap;
use throng_core::values::hierarchy::Ruler;

/// Significant digits of a carried value: floating-point error must not move it over the edge of an interval.
const CARRIED_DIGITS: usize = 12;

/// Value of a member of a contributor set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MemberValue {
    pub value: f64,
    /// The member has no value in the bucket: the value is carried over.
    pub is_carried: bool,
}

/// Label and share of each interval that holds a member, in their order, on the finest level where every such interval holds at
/// least `crowd` members; none where no level has two of them.
pub(super) fn binned(values: &[MemberValue], intervals: &Ruler, crowd: usize) -> Option<Vec<(String, f64)>> {
    let members = values.len() as f64;
    let shares = |level: usize| -> Option<Vec<(String, f64)>> {
        let mut bins: BTreeMap<i128, (String, usize)> = BTreeMap::new();
        for member in values {
            let value = if member.is_carried { shortened(member.value) } else { member.value };
            let (start, label) = intervals.interval_of(level, value)?;
            bins.entry(start).or_insert((label, 0)).1 += 1;
        }
        let is_safe = bins.len() > 1 && bins.values().all(|(_, people)| *people >= crowd);
        let share = |people: usize| (people as f64 / members * 100.0).round() / 100.0;
        is_safe.then(|| bins.into_values().map(|(label, people)| (label, share(people))).collect())
    };
    (0..intervals.cuts().len()).find_map(shares)
}

fn shortened(value: f64) -> f64 {
    format!("{value:.*e}", CARRIED_DIGITS - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::values::canonical::Rounding;

    fn of(values: &[f64], crowd: usize) -> Option<Vec<(String, f64)>> {
        let intervals = Ruler::of_widths(true, Rounding::None, (-10.0, 40.0), 0.0, &[5.0, 10.0, 20.0]).expect("widths");
        let members: Vec<MemberValue> =
            values.iter().map(|value| MemberValue { value: *value, is_carried: false }).collect();
        binned(&members, &intervals, crowd)
    }

    #[test]
    fn the_finest_level_with_a_crowd_in_every_bin_is_chosen() {
        let fine = of(&[0.0, 1.0, 4.9, 5.0, 7.0, 9.0], 3);
        assert_eq!(fine, Some(vec![("0-4".to_owned(), 0.5), ("5-9".to_owned(), 0.5)]));
        let coarse = of(&[0.0, 1.0, 6.0, 11.0, 12.0, 19.0], 3);
        assert_eq!(coarse, Some(vec![("0-9".to_owned(), 0.5), ("10-19".to_owned(), 0.5)]));
        let negative = of(&[-0.5, -10.0, 3.0, 4.0, 20.0, 40.0], 2);
        assert_eq!(negative.map(|bins| bins.len()), Some(3), "below zero, up to twenty, and above");
    }

    #[test]
    fn one_bin_or_a_small_one_is_withheld() {
        assert_eq!(of(&[0.0; 6], 3), None, "all in one");
        assert_eq!(of(&[0.0, 0.0, 0.0, 0.0, 0.0, 30.0], 2), None, "one person is alone on every level");
    }

    #[test]
    fn a_carried_value_stays_on_its_side_of_an_edge() {
        let intervals = Ruler::of_widths(true, Rounding::None, (0.0, 40.0), 0.0, &[20.0]).expect("widths");
        let carried = MemberValue { value: 20.0 - 1e-14 * 200.0, is_carried: true };
        let low = MemberValue { value: 3.0, is_carried: false };
        let bins = binned(&[carried, carried, low, low], &intervals, 2);
        assert_eq!(bins, Some(vec![("0-19".to_owned(), 0.5), ("20-40".to_owned(), 0.5)]));
    }
}
