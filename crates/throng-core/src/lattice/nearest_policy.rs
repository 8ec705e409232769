//! Finds the policy that suppresses least.

use super::policy::LatticePolicy;
use super::policy_check::{PolicyChecker, PolicyTerms};
use super::recoding_passes::LocalRecodingError;
use super::search::LatticeStrategy;
use super::search_deadline::SearchDeadline;
use super::strategies::search_lattice;
use super::table::LatticeTable;

/// Policy nearest to the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestPolicy {
    /// Policy and suppressed records; none if all policies suppress everything.
    pub best: Option<(LatticePolicy, u64)>,
    /// True if the suppression is least.
    pub proved: bool,
}

/// Finds the least suppression above the limit of `terms` by binary search: feasibility is monotone in the limit.
///
/// # Errors
/// As [`search_lattice`].
pub fn find_nearest_policy(
    table: &LatticeTable,
    terms: &PolicyTerms,
    until: SearchDeadline<'_>,
) -> Result<NearestPolicy, LocalRecodingError> {
    let mut checker = PolicyChecker::new(table, terms)?;
    let mut impossible = checker.limit();
    let mut known = None;
    let mut possible = table.records();
    let mut proved = true;
    while impossible + 1 < possible {
        let middle = u64::midpoint(impossible, possible);
        checker.set_suppression_limit(middle);
        let found = search_lattice(&checker, LatticeStrategy::Bfs, until, &|_| {})?;
        match found.best {
            Some(best) => {
                possible = best.suppressed;
                known = Some((best.policy, best.suppressed));
            }
            None if found.complete => impossible = middle,
            None => {
                proved = false;
                break;
            }
        }
    }
    Ok(NearestPolicy { best: known, proved })
}
