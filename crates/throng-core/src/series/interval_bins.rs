//! Interval shares for dominated sums.

use crate::values::hierarchy::Ruler;
use std::collections::BTreeMap;

/// Significant digits of carried values, so that floating-point error crosses no boundary.
const CARRIED_DIGITS: usize = 12;

/// Value of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MemberValue {
    pub value: f64,
    pub is_carried: bool,
}

/// Shares of occupied intervals, ascending, at the finest level with at least two of at least `crowd` members each.
pub(super) fn shares_by_interval(
    values: &[MemberValue],
    intervals: &Ruler,
    crowd: usize,
) -> Option<Vec<(String, f64)>> {
    let members = values.len() as f64;
    let shares = |level: usize| -> Option<Vec<(String, f64)>> {
        let mut bins: BTreeMap<i128, (String, usize)> = BTreeMap::new();
        for member in values {
            let value = if member.is_carried { round_to_carried_digits(member.value) } else { member.value };
            let (start, label) = intervals.labelled_interval(level, value)?;
            bins.entry(start).or_insert((label, 0)).1 += 1;
        }
        let is_safe = bins.len() > 1 && bins.values().all(|(_, people)| *people >= crowd);
        let share = |people: usize| (people as f64 / members * 100.0).round() / 100.0;
        is_safe.then(|| bins.into_values().map(|(label, people)| (label, share(people))).collect())
    };
    (0..intervals.cuts().len()).find_map(shares)
}

fn round_to_carried_digits(value: f64) -> f64 {
    format!("{value:.*e}", CARRIED_DIGITS - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::canonical::Rounding;

    fn of(values: &[f64], crowd: usize) -> Option<Vec<(String, f64)>> {
        let intervals =
            Ruler::from_widths(true, Rounding::None, (-10.0, 40.0), 0.0, &[5.0, 10.0, 20.0]).expect("widths");
        let members: Vec<MemberValue> =
            values.iter().map(|value| MemberValue { value: *value, is_carried: false }).collect();
        shares_by_interval(&members, &intervals, crowd)
    }

    #[test]
    fn shares_use_finest_level_with_crowd_in_every_interval() {
        let fine = of(&[0.0, 1.0, 4.9, 5.0, 7.0, 9.0], 3);
        assert_eq!(fine, Some(vec![("0-4".to_owned(), 0.5), ("5-9".to_owned(), 0.5)]));
        let coarse = of(&[0.0, 1.0, 6.0, 11.0, 12.0, 19.0], 3);
        assert_eq!(coarse, Some(vec![("0-9".to_owned(), 0.5), ("10-19".to_owned(), 0.5)]));
        let negative = of(&[-0.5, -10.0, 3.0, 4.0, 20.0, 40.0], 2);
        assert_eq!(negative.map(|bins| bins.len()), Some(3), "below zero, up to twenty, and above");
    }

    #[test]
    fn shares_with_one_or_a_small_interval_are_withheld() {
        assert_eq!(of(&[0.0; 6], 3), None, "all in one");
        assert_eq!(of(&[0.0, 0.0, 0.0, 0.0, 0.0, 30.0], 2), None, "one person is alone on every level");
    }

    #[test]
    fn carried_value_near_boundary_keeps_its_interval() {
        let intervals = Ruler::from_widths(true, Rounding::None, (0.0, 40.0), 0.0, &[20.0]).expect("widths");
        let carried = MemberValue { value: 20.0 - 1e-14 * 200.0, is_carried: true };
        let low = MemberValue { value: 3.0, is_carried: false };
        let bins = shares_by_interval(&[carried, carried, low, low], &intervals, 2);
        assert_eq!(bins, Some(vec![("0-19".to_owned(), 0.5), ("20-40".to_owned(), 0.5)]));
    }
}
