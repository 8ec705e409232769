//! Local recoding: repeated full-domain generalization of the unreleased records (docs/internals/lattice.md).
//!
//! Only too small or uninformative classes reach the next pass. A large class that fails a model of values is
//! suppressed for good, against minimality attacks \[WON].
//!
//! All records of a raw tuple take the same pass. Two passes may print equal cells; every model except δ-presence is
//! closed under such unions. t-closeness always compares with all records.

use super::policy::LatticePolicy;
use super::policy_check::{PolicyChecker, PolicyFigures, PolicyTerms, PolicyTermsError};
use super::row_decisions::{DecidedClass, RowDecision};
use super::search::{LatticeSearchError, LatticeSearchProgress, LatticeSearchResult, LatticeStrategy};
use super::search_deadline::SearchDeadline;
use super::strategies::search_lattice;
use super::table::LatticeTable;
use crate::privacy::DecimalRatio;
use crate::quality::{ClassSums, LevelPart, QualityValues};
use std::time::Duration;

/// Settings of local recoding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalRecodingSettings {
    /// Maximum number of passes; 1 is full-domain generalization.
    pub max_passes: u8,
    /// Maximum share, in [0, 1], that the first of several passes leaves unreleased; later ones have no limit, the last
    /// that of the terms.
    pub first_pass_unreleased_share: f64,
    /// Search strategy.
    pub strategy: LatticeStrategy,
}

/// Reasons why records cannot be recoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the variants and their fields")]
pub enum LocalRecodingError {
    #[error(transparent)]
    Terms(#[from] PolicyTermsError),
    #[error(transparent)]
    Search(#[from] LatticeSearchError),
    #[error("the share that the first pass may leave unreleased is out of range; give 0 to 1")]
    FirstPassShare,
}

/// Pass with a released class.
#[derive(Clone, Debug, PartialEq)]
pub struct RecodingPass {
    /// Policy of the pass.
    pub policy: LatticePolicy,
    /// Records at the start.
    pub records: u64,
    /// Released records.
    pub released: u64,
    /// Records suppressed for good.
    pub refused: u64,
    /// Released classes.
    pub classes: u64,
    /// Displayed measure.
    pub quality: f64,
    /// Search that found the policy.
    pub found: LatticeSearchResult,
}

/// Result of local recoding.
#[derive(Clone, Debug)]
pub struct LocalRecodingResult {
    /// Passes with a release, in order.
    pub passes: Vec<RecodingPass>,
    /// Classes decided for good, with the position of their pass in `passes` and rows of the table.
    pub classes: Vec<(u8, DecidedClass)>,
    /// All searches; at least one.
    pub searches: Vec<LatticeSearchResult>,
    /// Figures after the first of several passes.
    pub first_pass_figures: Option<PolicyFigures>,
    /// Figures over all records.
    pub overall_figures: PolicyFigures,
    /// Measures of the raw records.
    pub raw_quality: QualityValues,
    /// Maximum suppressed records.
    pub limit: u64,
    /// Reason for an early end.
    pub early_end_reason: Option<EarlyEndReason>,
}

/// Reason why passes ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyEndReason {
    /// Time limit.
    Time,
    /// Stop request.
    Stopped,
}

impl LocalRecodingResult {
    /// Returns true if each pass used its best policy.
    #[must_use]
    pub fn is_proved_optimal(&self) -> bool {
        self.early_end_reason.is_none() && self.searches.iter().all(|found| found.complete)
    }

    /// Number of checked policies.
    #[must_use]
    pub fn checked_policy_count(&self) -> u64 {
        self.searches.iter().map(|found| found.checked).sum()
    }
}

const SEARCH_STOP_GRACE: Duration = Duration::from_secs(2);

/// Recodes the records of `table`; released classes satisfy all models of `terms` in their pass.
///
/// [`PolicyFigures::suppressed`] may exceed [`LocalRecodingResult::limit`]. `until` ends all passes together.
///
/// # Errors
/// See [`LocalRecodingError`].
pub fn recode_locally(
    table: &LatticeTable,
    terms: &PolicyTerms,
    passes: LocalRecodingSettings,
    until: SearchDeadline<'_>,
    watch: &(dyn Fn(&LatticeSearchProgress) + Sync),
) -> Result<LocalRecodingResult, LocalRecodingError> {
    let mut whole = PolicyChecker::new(table, terms)?;
    let limit = whole.limit();
    let leaves = DecimalRatio::from_decimal_text(passes.first_pass_unreleased_share)
        .filter(|share| share.value() <= 1.0)
        .ok_or(LocalRecodingError::FirstPassShare)?;
    let mut recoding = RecodingState::new(table);
    let mut searches: Vec<LatticeSearchResult> = Vec::new();
    let mut last = passes.max_passes <= 1;
    let needs_spare = !last && leaves.floor_of(table.records()) > limit;
    let single =
        |whole: &PolicyChecker<'_>, until: SearchDeadline<'_>| search_lattice(whole, passes.strategy, until, watch);
    let spare =
        if needs_spare && until.remaining_time().is_some() { Some(single(&whole, until.share(0.25))?) } else { None };
    let early = until.share(0.75);
    let mut cut = false;
    loop {
        let part = recoding.undecided_rows.as_ref().map(|open| table.select_distinct_rows(open));
        let records = part.as_ref().unwrap_or(table).records();
        let refused: u64 = recoding.passes.iter().map(|pass| pass.refused).sum();
        let over = records + refused > limit;
        let allowed = match last && over {
            // Refused records are suppressed already.
            true => limit.saturating_sub(refused),
            false if searches.is_empty() => leaves.floor_of(records),
            false => records,
        };
        let mut of_part = part.as_ref().map(|part| PolicyChecker::new(part, terms)).transpose()?;
        match &mut of_part {
            Some(checker) => checker.set_suppression_limit(allowed),
            None => whole.set_suppression_limit(allowed),
        }
        let checker: &PolicyChecker<'_> = of_part.as_ref().unwrap_or(&whole);
        let time = if last { until } else { until.share(0.5).no_later_than(&early) };
        let pass = searches.len() + 1;
        let numbered = |progress: &LatticeSearchProgress| watch(&LatticeSearchProgress { pass, ..progress.clone() });
        let found = search_lattice(checker, passes.strategy, time, &numbered)?;
        cut |= !found.complete;
        let released = recoding.apply_pass_policy(checker, &found);
        searches.push(found);
        let ended = recoding.is_empty() || recoding.passes.len() >= usize::from(passes.max_passes);
        if last || ended || !released && !over {
            break;
        }
        if until.must_stop_now() {
            cut = true;
            break;
        }
        last = !released || recoding.passes.len() + 1 >= usize::from(passes.max_passes);
    }
    whole.set_suppression_limit(limit);
    let reason = if until.is_stopped() { EarlyEndReason::Stopped } else { EarlyEndReason::Time };
    if cut && needs_spare && recoding.figures_after_passes(&whole, recoding.passes.len()).suppressed > limit {
        let spare = match spare {
            None if !recoding.passes.is_empty() => Some(single(&whole, until.with_stop_grace(SEARCH_STOP_GRACE))?),
            spare => spare,
        };
        if let Some(spare) = spare.filter(|spare| spare.best.is_some()) {
            recoding = RecodingState::new(table);
            recoding.apply_pass_policy(&whole, &spare);
            searches = vec![spare];
        }
    }
    let account = |passes: usize| recoding.figures_after_passes(&whole, passes);
    Ok(LocalRecodingResult {
        first_pass_figures: (recoding.passes.len() > 1).then(|| account(1)),
        overall_figures: account(recoding.passes.len()),
        raw_quality: whole.unsuppressed_quality(&table.lattice().bottom()),
        limit,
        early_end_reason: cut.then_some(reason),
        searches,
        passes: recoding.passes,
        classes: recoding.classes,
    })
}

struct RecodingState<'a> {
    table: &'a LatticeTable,
    passes: Vec<RecodingPass>,
    sums_by_pass: Vec<RecodingPassSums>,
    classes: Vec<(u8, DecidedClass)>,
    pass_by_row: Vec<Option<u8>>,
    /// None: all.
    undecided_rows: Option<Vec<u32>>,
}

#[derive(Clone, Copy, Debug)]
struct RecodingPassSums {
    classes: ClassSums,
    smallest: u64,
    risk: f64,
}

impl<'a> RecodingState<'a> {
    fn new(table: &'a LatticeTable) -> Self {
        let by = vec![None; table.distinct_rows()];
        Self {
            table,
            passes: Vec::new(),
            sums_by_pass: Vec::new(),
            classes: Vec::new(),
            pass_by_row: by,
            undecided_rows: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.undecided_rows.as_ref().map_or(self.pass_by_row.is_empty(), Vec::is_empty)
    }

    fn apply_pass_policy(&mut self, checker: &PolicyChecker<'_>, found: &LatticeSearchResult) -> bool {
        let Some(best) = &found.best else { return false };
        let rows = &checker.table().rows;
        let settled = checker.decide_packed_rows(&best.policy, rows);
        if settled.released_class_sums.classes == 0 {
            return false;
        }
        let number = self.passes.len() as u8;
        let before = self.undecided_rows.take();
        let row_of = |at: u32| before.as_ref().map_or(at, |open| open[at as usize]);
        let (mut released, mut refused) = (0, 0);
        let mut open = Vec::new();
        for ((at, fate), &records) in (0..).zip(&settled.decision_by_row).zip(&rows.count) {
            let (row, records) = (row_of(at), u64::from(records));
            match fate {
                RowDecision::ClassReleased => {
                    self.pass_by_row[row as usize] = Some(number);
                    released += records;
                }
                RowDecision::Refused => refused += records,
                RowDecision::Uninformative | RowDecision::TooSmall => open.push(row),
            }
        }
        self.undecided_rows = Some(open);
        let in_table = |class: DecidedClass| (number, DecidedClass { row: row_of(class.row), ..class });
        self.classes.extend(settled.classes.into_iter().map(in_table));
        self.sums_by_pass.push(RecodingPassSums {
            classes: settled.released_class_sums,
            smallest: settled.smallest_released_class,
            risk: settled.prosecutor_risk_sum,
        });
        self.passes.push(RecodingPass {
            policy: best.policy.clone(),
            records: checker.table().records(),
            released,
            refused,
            classes: settled.released_class_sums.classes,
            quality: checker.measure().shown(best.cost, best.policy.len()),
            found: found.clone(),
        });
        true
    }

    fn figures_after_passes(&self, whole: &PolicyChecker<'_>, passes: usize) -> PolicyFigures {
        let table = self.table;
        let top: LatticePolicy = table.lattice().top().into();
        let empty = || -> Vec<Vec<u64>> { table.domains().iter().map(|domain| vec![0; domain.values()]).collect() };
        let mut parts: Vec<LevelPart> = self.passes[..passes]
            .iter()
            .map(|pass| LevelPart { levels: pass.policy.clone(), counts: empty() })
            .collect();
        // Suppressed records have the levels of the first pass.
        let first = parts.first().map_or(top, |part| part.levels.clone());
        let mut gone = LevelPart { levels: first, counts: empty() };
        let mut suppressed = 0;
        let mut values = vec![0; table.domains().len()];
        for ((row, by), &records) in (0..).zip(&self.pass_by_row).zip(&table.rows.count) {
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
        let sums = &self.sums_by_pass[..passes];
        let mut kept = ClassSums::default();
        for released in sums {
            kept.add_class_sums(released.classes);
        }
        let left = table.records() - suppressed;
        let risk: f64 = sums.iter().map(|released| released.risk).sum();
        PolicyFigures {
            suppressed,
            classes: kept.classes,
            smallest: sums.iter().map(|released| released.smallest).min().unwrap_or(0),
            average_risk: if left > 0 { risk / left as f64 } else { 0.0 },
            policy_quality: whole.meter().quality_of_parts(table.domains(), table.counts(), &parts, &gone, kept),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Domain, HierarchyLevel};
    use crate::lattice::search::LatticeStrategy;
    use crate::lattice::table::{SearchMemoryLimits, TableRecords, UNCOUNTED_SUBJECT};
    use crate::privacy::{ClassPrivacyModel, ValueRequirement};
    use crate::quality::QualityMeasure;
    use proptest::prelude::*;

    /// Values 0 to 7, halved on each level.
    fn domain() -> Domain {
        let level = |shift: u32| {
            let cells = 8 >> shift;
            HierarchyLevel {
                cell_of: (0..8).map(|value| value >> shift).collect(),
                loss: vec![f64::from(shift) / 3.0; cells],
            }
        };
        Domain::new("a", (0..4).map(level).collect()).expect("a hierarchy")
    }

    proptest! {
        #[test]
        fn recoding_with_little_memory_gives_equal_figures(
            rows in prop::collection::vec((0u32..8, 0u32..8, 0u32..4, prop_oneof![4 => 0u32..9, 1 => Just(UNCOUNTED_SUBJECT)]), 1..60),
            (k, l, most, named) in (1u64..5, 0usize..4, 1u8..4, any::<bool>()),
            making in 0usize..2000,
            limit in prop_oneof![Just(0.0), Just(0.1), Just(0.4), Just(1.0)],
        ) {
            let records = TableRecords {
                quasi: vec![rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()],
                sensitive: vec![(rows.iter().map(|row| row.2).collect(), 4)],
                subjects: named.then(|| rows.iter().map(|row| row.3).collect()),
                ..TableRecords::default()
            };
            let mut models = vec![ClassPrivacyModel::KAnonymity { k }];
            models.extend((l > 0).then_some(ClassPrivacyModel::Sensitive { attribute: 0, of: ValueRequirement::Distinct { l } }));
            let terms = PolicyTerms { models, limit, measure: QualityMeasure::Loss };
            let passes = LocalRecodingSettings { max_passes: most, first_pass_unreleased_share: 0.5, strategy: LatticeStrategy::Bfs };
            let table = LatticeTable::new(vec![domain(), domain()], &records).expect("a table");
            let recoded = recode_locally(&table, &terms, passes, SearchDeadline::without_deadline(), &|_| {}).expect("a recoding");
            let scarce = table.clone().with_search_memory(SearchMemoryLimits { anchor_bytes: 64, anchor_build_bytes: making, max_array_classes_per_row: 1 });
            let checker = PolicyChecker::new(&scarce, &terms).expect("terms");
            for policy in checker.lattice().iter() {
                checker.check(&policy);
            }
            prop_assert!(checker.anchors.bytes() < 64 + making.max(1), "{} and {making}", checker.anchors.bytes());
            let again = recode_locally(&scarce, &terms, passes, SearchDeadline::without_deadline(), &|_| {}).expect("a recoding");
            prop_assert_eq!(&again.overall_figures, &recoded.overall_figures);
            prop_assert_eq!(&again.raw_quality, &recoded.raw_quality);
            let leaves = recoded.classes.iter().filter(|(_, class)| class.is_class_released).map(|(_, class)| class.records);
            prop_assert_eq!(leaves.sum::<u64>(), recoded.passes.iter().map(|pass| pass.released).sum::<u64>());
        }
    }
}
