//! Conservation of records.

use super::RecordTotals;

/// Checks conservation (docs/internals/architecture.md rule 2):
/// `consumed = released + suppressed + held + dead-lettered + dropped + moved`.
#[must_use]
pub fn is_conserved(totals: &RecordTotals, held: u64) -> bool {
    let RecordTotals { consumed, released, suppressed, dead_lettered, dropped, moved } = *totals;
    let terms = [released, suppressed, dead_lettered, dropped, moved, held];
    terms.into_iter().try_fold(0u64, u64::checked_add) == Some(consumed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conservation_holds_only_for_matching_totals() {
        let totals = RecordTotals { consumed: 10, released: 4, suppressed: 3, dead_lettered: 1, dropped: 1, moved: 0 };
        assert!(is_conserved(&totals, 1) && !is_conserved(&totals, 0) && !is_conserved(&totals, 2));
        let too_many = RecordTotals { released: u64::MAX, ..totals };
        assert!(!is_conserved(&too_many, 1));
        let mut gone = totals;
        gone.count_held_as_moved();
        assert!(gone.moved == 1 && is_conserved(&gone, 0));
        gone.count_held_as_moved();
        assert_eq!(gone.moved, 1, "nothing is left to go");
    }
}
