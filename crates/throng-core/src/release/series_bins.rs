//! Recount of interval shares (docs/internals/methods.md §13).

use crate::values::decimal::exact;
use crate::values::hierarchy::{LevelCuts, Ruler};

/// Value, and true if it is carried over.
pub(super) type BinMember = (f64, bool);

struct BinInterval {
    low: i128,
    high: i128,
    is_closed: bool,
}

/// Requires intervals of one level with all members and `crowd` each.
pub(super) fn verify_bins(
    members: &[BinMember],
    rows: &[(&str, f64)],
    intervals: &Ruler,
    crowd: usize,
) -> Result<(), &'static str> {
    if rows.len() < 2 {
        return Err("one interval holds all members");
    }
    let read = |(label, _): &(&str, f64)| interval(label, intervals);
    let bins: Option<Vec<BinInterval>> = rows.iter().map(read).collect();
    let bins = bins.ok_or("a label is not an interval of the hierarchy")?;
    if !intervals.cuts().iter().any(|cuts| bins.iter().all(|bin| is_of_level(bin, cuts, intervals))) {
        return Err("intervals are not of one level of the hierarchy");
    }
    let starts: std::collections::BTreeSet<i128> = bins.iter().map(|bin| bin.low).collect();
    if starts.len() < bins.len() {
        return Err("an interval is published twice");
    }
    if !members.iter().all(|member| bins.iter().any(|bin| bin.may_hold(*member, intervals))) {
        return Err("a member is in no published interval");
    }
    for (bin, (_, share)) in bins.iter().zip(rows) {
        let certain = members.iter().filter(|member| bin.holds_for_certain(**member, intervals)).count();
        let possible = members.iter().filter(|member| bin.may_hold(**member, intervals)).count();
        let is_share = |people: usize| (people as f64 / members.len() as f64 - share).abs() <= 0.005_000_1;
        let is_whole = (share * 100.0 - (share * 100.0).round()).abs() < 1e-6;
        if possible < crowd {
            return Err("an interval has fewer members than required");
        }
        if !is_whole || !(certain.max(crowd)..=possible).any(is_share) {
            return Err("a share does not match the members");
        }
    }
    Ok(())
}

/// Reads `30-34`, `30`, `[30,35)` or `[95,100]`.
fn interval(label: &str, ruler: &Ruler) -> Option<BinInterval> {
    let ((_, max), decimals) = ruler.domain_in_ticks();
    if ruler.is_integer() {
        let dash = label.char_indices().skip(1).find(|(_, letter)| *letter == '-').map(|(at, _)| at);
        let (low, high) = dash.map_or((label, label), |at| (&label[..at], &label[at + 1..]));
        let (low, last) = (exact(low, decimals)?, exact(high, decimals)?);
        let is_closed = last == max;
        return Some(BinInterval { low, high: if is_closed { max } else { last + 1 }, is_closed });
    }
    let inner = label.strip_prefix('[')?;
    let is_closed = inner.ends_with(']');
    let (low, high) = inner.strip_suffix([']', ')'])?.split_once(',')?;
    Some(BinInterval { low: exact(low, decimals)?, high: exact(high, decimals)?, is_closed })
}

fn is_of_level(bin: &BinInterval, cuts: &LevelCuts, ruler: &Ruler) -> bool {
    let ((min, max), _) = ruler.domain_in_ticks();
    let (is_cut, next) = match cuts {
        LevelCuts::Width { origin, width } => {
            let next = (bin.low - origin).div_euclid(*width) * width + origin + width;
            ((bin.low - origin) % width == 0, Some(next).filter(|next| *next < max))
        }
        LevelCuts::Points(points) => (points.contains(&bin.low), points.iter().copied().find(|point| *point > bin.low)),
    };
    let starts = bin.low == min || is_cut && bin.low > min && bin.low <= max;
    starts && bin.high == next.unwrap_or(max) && bin.is_closed == next.is_none()
}

impl BinInterval {
    fn ends(&self, ruler: &Ruler) -> (f64, f64) {
        let (_, decimals) = ruler.domain_in_ticks();
        let scale = 10f64.powi(decimals.cast_signed());
        (self.low as f64 / scale, self.high as f64 / scale)
    }

    fn holds(&self, value: f64, ruler: &Ruler) -> bool {
        let (low, high) = self.ends(ruler);
        value >= low && (value < high || self.is_closed && value <= high)
    }

    fn may_hold(&self, member: BinMember, ruler: &Ruler) -> bool {
        let (value, error) = (member.0, tolerance(member, ruler));
        self.holds(value, ruler) || self.holds(value - error, ruler) || self.holds(value + error, ruler)
    }

    fn holds_for_certain(&self, member: BinMember, ruler: &Ruler) -> bool {
        let (value, error) = (member.0, tolerance(member, ruler));
        let (min, max) = ruler.domain_bounds();
        self.holds((value - error).max(min), ruler) && self.holds((value + error).min(max), ruler)
    }
}

fn tolerance((value, is_carried): BinMember, ruler: &Ruler) -> f64 {
    let (low, high) = ruler.domain_bounds();
    if is_carried { value.abs() * 1e-9 + (high - low) * 1e-12 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::canonical::Rounding;

    fn widths() -> Ruler {
        Ruler::from_widths(true, Rounding::None, (-10.0, 40.0), 0.0, &[5.0, 10.0]).expect("widths")
    }

    fn check(values: &[f64], rows: &[(&str, f64)], ruler: &Ruler) -> Result<(), &'static str> {
        let members: Vec<BinMember> = values.iter().map(|value| (*value, false)).collect();
        verify_bins(&members, rows, ruler, 2)
    }

    #[test]
    fn correct_shares_are_accepted_at_edges_and_below_zero() {
        let values = [-10.0, -5.5, -5.0, -0.5, 35.0, 40.0];
        let third = 0.33;
        check(&values, &[("-10--6", third), ("-5--1", third), ("35-40", third)], &widths()).expect("sound");
        let bounds = Ruler::from_bounds(false, Rounding::None, (0.0, 1.0), &[vec![0.3, 0.7]]).expect("bounds");
        check(
            &[0.29, 0.0, 0.3, 0.7, 1.0, 0.5],
            &[("[0,0.3)", third), ("[0.3,0.7)", third), ("[0.7,1]", third)],
            &bounds,
        )
        .expect("sound");
        let last = Ruler::from_bounds(true, Rounding::None, (0.0, 2.0), &[vec![1.0, 2.0]]).expect("bounds");
        check(&[1.0, 1.5, 2.0, 2.0], &[("1", 0.5), ("2", 0.5)], &last).expect("sound");
    }

    #[test]
    fn forged_shares_are_refused() {
        let values = [0.0, 4.0, 5.0, 9.5, 10.0, 11.0];
        let third = 0.33;
        check(&values, &[("0-4", third), ("5-9", third), ("10-14", third)], &widths()).expect("sound");
        for (rows, what) in [
            (vec![("0-4", third), ("5-9", third), ("10-14", 0.34)], "share"),
            (vec![("0-4", 0.333), ("5-9", third), ("10-14", third)], "rounding"),
            (vec![("0-4", third), ("5-9", third)], "an interval left out"),
            (vec![("0-4", third), ("5-9", third), ("10-14", third), ("0-4", third)], "twice"),
            (vec![("0-4", third), ("5-9", third), ("10-19", third)], "two levels"),
            (vec![("0-5", 0.5), ("6-9", 0.17), ("10-14", third)], "other edges"),
            (vec![("-10-40", 1.0)], "one interval"),
            (vec![("0-4", third), ("5-9", third), ("10-14", third), ("15-19", 0.0)], "an empty interval"),
            (vec![("0-4", third), ("five", third), ("10-14", third)], "no label"),
        ] {
            assert!(check(&values, &rows, &widths()).is_err(), "{what}");
        }
        assert!(check(&[0.0, 4.0, 5.0], &[("0-4", 0.67), ("5-9", third)], &widths()).is_err(), "one member alone");
        assert!(
            check(&[0.0, 4.0, 5.0, 9.0], &[("0-4", 0.25), ("5-9", 0.75)], &widths()).is_err(),
            "wrong side of an edge"
        );
    }

    #[test]
    fn carried_value_at_edge_counts_on_either_side() {
        let members = [(1.0, false), (2.0, false), (5.0 - 1e-12, true), (6.0, false), (7.0, false)];
        for shares in [[0.6, 0.4], [0.4, 0.6]] {
            let rows = [("0-4", shares[0]), ("5-9", shares[1])];
            verify_bins(&members, &rows, &widths(), 2).expect("within floating-point error");
        }
        assert!(verify_bins(&members, &[("0-4", 0.2), ("5-9", 0.8)], &widths(), 2).is_err());
    }
}
