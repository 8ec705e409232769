//! Local recoding: full-domain generalization, then once more for the records that it left, and so on.
//!
//! A pass searches the policy of least cost for the records before it. What sends a record on to the next pass is the
//! size of its class alone ([`Fate::TooSmall`]), or that the class says nothing: facts of the quasi attributes. A class that has
//! its crowd and fails a model of values is suppressed for good: in a later pass it would tell whoever knows the
//! policies that its own class had failed (minimality, [WON]).
//!
//! Classes of different passes never cover the same values. All records whose values a tuple of cells covers are in one
//! class of a policy; once that class has left, no later pass has any of them. Every record of a raw tuple takes
//! the same way, so the release is a function of raw tuples and each class has its own members only. Two passes may
//! print the same only where a hierarchy leads to `*` below its root, and where cells are aggregates; what a reader then
//! takes for one class satisfies what both do, since every model but a δ-presence is closed under the union of classes of
//! different records (counts add, tails are superadditive, entropy is concave, the distance convex).
//!
//! The population of a pass are the members whose class has not been settled before it: others could not be behind what it
//! releases. The distribution that t-closeness compares with stays that of all records.

use super::check::{Account, Checker, Terms, TermsError};
use super::policy::Policy;
use super::search::{Found, Progress, SearchError, Strategy};
use super::settle::{Fate, SettledClass};
use super::strategies::search;
use super::table::Table;
use super::until::Until;
use crate::anonymity::privacy::Ratio;
use crate::anonymity::quality::{ClassSums, Part, Worth};
use std::time::Duration;

/// How records are recoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passes {
    /// Passes at most; 1 is full-domain generalization.
    pub most: u8,
    /// Share of the records that the first of several may leave, in [0, 1]. Later ones take what they can, and the last
    /// keeps the limit of the terms.
    pub leaves: f64,
    /// How each pass searches.
    pub strategy: Strategy,
}

/// Records that cannot be recoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum PassesError {
    #[error(transparent)]
    Terms(#[from] TermsError),
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error("what the first pass may leave is no share; give 0 to 1")]
    Leaves,
}

/// One pass that released something.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// The policy that it released by.
    pub policy: Policy,
    /// Records to be released that it began with.
    pub records: u64,
    /// Of those: records that leave by it.
    pub released: u64,
    /// Records that it suppressed for good.
    pub refused: u64,
    /// Equivalence classes that leave by it.
    pub classes: u64,
    /// The measure over its own records, as shown.
    pub quality: f64,
    /// The search that found the policy.
    pub found: Found,
}

/// What records became.
#[derive(Clone, Debug)]
pub struct Recoded {
    /// Those that released something, in order; empty if none could.
    pub passes: Vec<Pass>,
    /// The classes that a pass has settled for good, each with the position of that pass in `passes`: a record that is in none of the first
    /// pass may be in one of the second, and so on. Rows are those of the table.
    pub classes: Vec<(u8, SettledClass)>,
    /// Every search, those of passes that released nothing included; at least one.
    pub searches: Vec<Found>,
    /// Over all records after the first pass, where there were more.
    pub after_first: Option<Account>,
    /// Over all records.
    pub account: Account,
    /// Every measure of the records as they are.
    pub before: Worth,
    /// Records that may be suppressed.
    pub limit: u64,
    /// Why passes were not searched to their end, if they were not.
    pub cut: Option<Cut>,
}

/// What ended the passes before they were through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The time for the search was up.
    Time,
    /// Somebody stopped the search.
    Stopped,
}

impl Recoded {
    /// Whether every pass took the best policy for the records before it: the optimum where there is one pass.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.cut.is_none() && self.searches.iter().all(|found| found.complete)
    }

    /// Policies checked by all searches.
    #[must_use]
    pub fn checked(&self) -> u64 {
        self.searches.iter().map(|found| found.checked).sum()
    }
}

/// How long some policy that keeps the limit is looked for after a stop, where the passes so far do not keep it.
const GRACE: Duration = Duration::from_secs(2);

/// Recodes the records of `table`.
///
/// No record leaves that is not in a class which satisfies every model of `terms` in its pass. The limit of `terms` is
/// that of the result. It is not kept where no last pass can keep it: compare [`Account::suppressed`] with
/// [`Recoded::limit`].
///
/// `until` is the end of all passes together. Where the first may leave more than the limit and time is limited, up to a
/// quarter of it goes into a single search first: what that finds leaves if the passes, cut short, do not keep the limit.
/// Of what is left then each pass has half, and the last quarter is kept for the last pass.
///
/// # Errors
/// See [`PassesError`].
pub fn recode(
    table: &Table,
    terms: &Terms,
    passes: Passes,
    until: Until<'_>,
    watch: &(dyn Fn(&Progress) + Sync),
) -> Result<Recoded, PassesError> {
    let mut whole = Checker::new(table, terms)?;
    let limit = whole.limit();
    let leaves = Ratio::of(passes.leaves).filter(|share| share.value() <= 1.0).ok_or(PassesError::Leaves)?;
    let mut recoding = Recoding::new(table);
    let mut searches: Vec<Found> = Vec::new();
    let mut last = passes.most <= 1;
    let needs_spare = !last && leaves.floor_of(table.records()) > limit;
    let single = |whole: &Checker<'_>, until: Until<'_>| search(whole, passes.strategy, until, watch);
    let spare = if needs_spare && until.left().is_some() { Some(single(&whole, until.share(0.25))?) } else { None };
    let early = until.share(0.75);
    let mut cut = false;
    loop {
        let part = recoding.open.as_ref().map(|open| table.only(open));
        let records = part.as_ref().unwrap_or(table).records();
        let refused: u64 = recoding.passes.iter().map(|pass| pass.refused).sum();
        let over = records + refused > limit;
        let allowed = match last && over {
            // What earlier passes refused is suppressed already.
            true => limit.saturating_sub(refused),
            false if searches.is_empty() => leaves.floor_of(records),
            false => records,
        };
        let mut of_part = part.as_ref().map(|part| Checker::new(part, terms)).transpose()?;
        match &mut of_part {
            Some(checker) => checker.limit_to(allowed),
            None => whole.limit_to(allowed),
        }
        let checker: &Checker<'_> = of_part.as_ref().unwrap_or(&whole);
        let time = if last { until } else { until.share(0.5).no_later_than(&early) };
        let pass = searches.len() + 1;
        let numbered = |progress: &Progress| watch(&Progress { pass, ..progress.clone() });
        let found = search(checker, passes.strategy, time, &numbered)?;
        cut |= !found.complete;
        let released = recoding.settle(checker, &found);
        searches.push(found);
        let ended = recoding.is_empty() || recoding.passes.len() >= usize::from(passes.most);
        if last || ended || !released && !over {
            break;
        }
        if until.is_over() {
            cut = true;
            break;
        }
        // A pass that releases nothing is followed by the last, and so is the last but one.
        last = !released || recoding.passes.len() + 1 >= usize::from(passes.most);
    }
    whole.limit_to(limit);
    let reason = if until.is_stopped() { Cut::Stopped } else { Cut::Time };
    if cut && needs_spare && recoding.account(&whole, recoding.passes.len()).suppressed > limit {
        let spare = match spare {
            None if !recoding.passes.is_empty() => Some(single(&whole, until.despite_stop(GRACE))?),
            spare => spare,
        };
        if let Some(spare) = spare.filter(|spare| spare.best.is_some()) {
            recoding = Recoding::new(table);
            recoding.settle(&whole, &spare);
            searches = vec![spare];
        }
    }
    let account = |passes: usize| recoding.account(&whole, passes);
    Ok(Recoded {
        after_first: (recoding.passes.len() > 1).then(|| account(1)),
        account: account(recoding.passes.len()),
        before: whole.raw_worth(&table.lattice().bottom()),
        limit,
        cut: cut.then_some(reason),
        searches,
        passes: recoding.passes,
        classes: recoding.classes,
    })
}

/// The passes so far.
struct Recoding<'a> {
    table: &'a Table,
    passes: Vec<Pass>,
    sums: Vec<Released>,
    classes: Vec<(u8, SettledClass)>,
    /// By row: the pass it leaves by.
    by: Vec<Option<u8>>,
    /// Rows that the next pass may release, and the population that could be behind them; none: all.
    open: Option<Vec<u32>>,
}

/// What the classes of one pass add up to.
#[derive(Clone, Copy, Debug)]
struct Released {
    classes: ClassSums,
    smallest: u64,
    risk: f64,
}

impl<'a> Recoding<'a> {
    fn new(table: &'a Table) -> Self {
        let by = vec![None; table.distinct_rows()];
        Self { table, passes: Vec::new(), sums: Vec::new(), classes: Vec::new(), by, open: None }
    }

    /// Whether no row is open.
    fn is_empty(&self) -> bool {
        self.open.as_ref().map_or(self.by.is_empty(), Vec::is_empty)
    }

    /// Settles the open rows, which are those of the checker's table, by what was `found` for them; whether any leaves.
    fn settle(&mut self, checker: &Checker<'_>, found: &Found) -> bool {
        let Some(best) = &found.best else { return false };
        let rows = &checker.table().rows;
        let settled = checker.settle_rows(&best.policy, rows);
        if settled.kept.classes == 0 {
            return false;
        }
        let number = self.passes.len() as u8;
        let before = self.open.take();
        let row_of = |at: u32| before.as_ref().map_or(at, |open| open[at as usize]);
        let (mut released, mut refused) = (0, 0);
        let mut open = Vec::new();
        for ((at, fate), &records) in (0..).zip(&settled.fates).zip(&rows.count) {
            let (row, records) = (row_of(at), u64::from(records));
            match fate {
                Fate::Kept => {
                    self.by[row as usize] = Some(number);
                    released += records;
                }
                Fate::Refused => refused += records,
                Fate::Silent | Fate::TooSmall => open.push(row),
            }
        }
        self.open = Some(open);
        let in_table = |class: SettledClass| (number, SettledClass { row: row_of(class.row), ..class });
        self.classes.extend(settled.classes.into_iter().map(in_table));
        self.sums.push(Released { classes: settled.kept, smallest: settled.smallest, risk: settled.risk });
        self.passes.push(Pass {
            policy: best.policy.clone(),
            records: checker.table().records(),
            released,
            refused,
            classes: settled.kept.classes,
            quality: checker.measure().shown(best.cost, best.policy.len()),
            found: found.clone(),
        });
        true
    }

    /// The account over all records if the first `passes` had been all.
    fn account(&self, whole: &Checker<'_>, passes: usize) -> Account {
        let table = self.table;
        let top: Policy = table.lattice().top().into();
        let empty = || -> Vec<Vec<u64>> { table.domains().iter().map(|domain| vec![0; domain.values()]).collect() };
        let mut parts: Vec<Part> =
            self.passes[..passes].iter().map(|pass| Part { levels: pass.policy.clone(), counts: empty() }).collect();
        // A suppressed record counts as the first pass met it.
        let first = parts.first().map_or(top, |part| part.levels.clone());
        let mut gone = Part { levels: first, counts: empty() };
        let mut suppressed = 0;
        let mut values = vec![0; table.domains().len()];
        for ((row, by), &records) in (0..).zip(&self.by).zip(&table.rows.count) {
            let records = u64::from(records);
            let part = match by {
                Some(pass) if usize::from(*pass) < passes => &mut parts[usize::from(*pass)],
                _ => {
                    suppressed += records;
                    &mut gone
                }
            };
            table.values(row, &mut values);
            part.counts.iter_mut().zip(&values).for_each(|(counts, &value)| counts[value as usize] += records);
        }
        let sums = &self.sums[..passes];
        let mut kept = ClassSums::default();
        for released in sums {
            kept.join(released.classes);
        }
        let left = table.records() - suppressed;
        let risk: f64 = sums.iter().map(|released| released.risk).sum();
        Account {
            suppressed,
            classes: kept.classes,
            smallest: sums.iter().map(|released| released.smallest).min().unwrap_or(0),
            average_risk: if left > 0 { risk / left as f64 } else { 0.0 },
            worth: whole.meter().worth_of_parts(table.domains(), table.counts(), &parts, &gone, kept),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymity::domain::{Domain, Level};
    use crate::anonymity::lattice::search::Strategy;
    use crate::anonymity::lattice::table::{Allowance, NOBODY, Records};
    use crate::anonymity::privacy::{Model, Requirement};
    use crate::anonymity::quality::Measure;
    use proptest::prelude::*;

    /// Values 0 to 7, halved level by level.
    fn domain() -> Domain {
        let level = |shift: u32| {
            let cells = 8 >> shift;
            Level { cell_of: (0..8).map(|value| value >> shift).collect(), loss: vec![f64::from(shift) / 3.0; cells] }
        };
        Domain::new("a", (0..4).map(level).collect()).expect("a hierarchy")
    }

    proptest! {
        #[test]
        fn a_search_that_may_hold_little_finds_the_same(
            rows in prop::collection::vec((0u32..8, 0u32..8, 0u32..4, prop_oneof![4 => 0u32..9, 1 => Just(NOBODY)]), 1..60),
            (k, l, most, named) in (1u64..5, 0usize..4, 1u8..4, any::<bool>()),
            making in 0usize..2000,
            limit in prop_oneof![Just(0.0), Just(0.1), Just(0.4), Just(1.0)],
        ) {
            let records = Records {
                quasi: vec![rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()],
                sensitive: vec![(rows.iter().map(|row| row.2).collect(), 4)],
                subjects: named.then(|| rows.iter().map(|row| row.3).collect()),
                ..Records::default()
            };
            let mut models = vec![Model::KAnonymity { k }];
            models.extend((l > 0).then_some(Model::Sensitive { attribute: 0, of: Requirement::Distinct { l } }));
            let terms = Terms { models, limit, measure: Measure::Loss };
            let passes = Passes { most, leaves: 0.5, strategy: Strategy::Bfs };
            let table = Table::new(vec![domain(), domain()], &records).expect("a table");
            let recoded = recode(&table, &terms, passes, Until::proved(), &|_| {}).expect("a recoding");
            let scarce = table.clone().allowing(Allowance { anchors: 64, making, cells_a_row: 1 });
            let checker = Checker::new(&scarce, &terms).expect("terms");
            for policy in checker.lattice().iter() {
                checker.check(&policy);
            }
            prop_assert!(checker.anchors.bytes() < 64 + making.max(1), "{} and {making}", checker.anchors.bytes());
            let again = recode(&scarce, &terms, passes, Until::proved(), &|_| {}).expect("a recoding");
            prop_assert_eq!(&again.account, &recoded.account);
            prop_assert_eq!(&again.before, &recoded.before);
            let leaves = recoded.classes.iter().filter(|(_, class)| class.leaves).map(|(_, class)| class.records);
            prop_assert_eq!(leaves.sum::<u64>(), recoded.passes.iter().map(|pass| pass.released).sum::<u64>());
        }
    }
}
