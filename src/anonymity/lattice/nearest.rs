//! Where no policy is admissible: the one that suppresses least.

use super::check::{Checker, Terms};
use super::passes::PassesError;
use super::policy::Policy;
use super::search::Strategy;
use super::strategies::search;
use super::table::Table;
use super::until::Until;

/// What comes nearest to the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The policy, and the records that it suppresses; none if all suppress everything.
    pub best: Option<(Policy, u64)>,
    /// Whether no policy suppresses fewer.
    pub proved: bool,
}

/// Halves the limits above that of `terms` until no policy suppresses fewer records, or as long as `until` says.
///
/// Whether some policy keeps within a limit is monotone in the limit, whatever the models.
///
/// # Errors
/// As a search.
pub fn nearest(table: &Table, terms: &Terms, until: Until<'_>) -> Result<Nearest, PassesError> {
    let mut checker = Checker::new(table, terms)?;
    let mut impossible = checker.limit();
    let mut known = None;
    let mut possible = table.records();
    let mut proved = true;
    while impossible + 1 < possible {
        let middle = u64::midpoint(impossible, possible);
        checker.limit_to(middle);
        let found = search(&checker, Strategy::Bfs, until, &|_| {})?;
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
    Ok(Nearest { best: known, proved })
}
