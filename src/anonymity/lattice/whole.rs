//! Full-domain generalization of a table whose records are not there: what [`passes`](super::passes) does in one pass, over distinct
//! rows.

use super::check::{Account, Checker, Terms};
use super::passes::{Cut, Pass, Passes, PassesError, Recoded};
use super::search::{Progress, search_until};
use super::table::Table;
use super::until::Until;
use crate::anonymity::privacy::Ratio;
use crate::anonymity::quality::{ClassSums, Part, Worth};

/// What one policy makes of the rows of a table.
struct Settled {
    /// Over the classes that leave.
    kept: ClassSums,
    /// Records of the smallest class that leaves; 0 when none does.
    smallest: u64,
    /// Σ records / subjects over the classes that leave.
    risk: f64,
    /// Records of classes that have their crowd and that a model refuses.
    refused: u64,
    /// Records that leave.
    released: u64,
    /// By attribute and value: records that leave, and the others.
    counts: [Vec<Vec<u64>>; 2],
}

/// Hears of a class that leaves: the policy, the value of each attribute in one of its rows, and its records.
pub type KeptClass<'a> = &'a mut dyn FnMut(&[u8], &[u32], u64);

impl Checker<'_> {
    /// Settles the distinct rows by `policy`; `each` hears of every class that leaves.
    fn settle_rows(&self, policy: &[u8], each: KeptClass<'_>) -> Settled {
        let table = self.table();
        let (domains, composites) = (table.domains(), table.composites());
        self.judge_rows(policy, |rows, bench, satisfied| {
            let mut values = vec![0u32; domains.len()];
            let read = |row: usize, values: &mut [u32]| {
                for (composite, codes) in composites.iter().zip(&rows.codes) {
                    composite.values(codes[row], values);
                }
            };
            let empty = || -> Vec<Vec<u64>> { domains.iter().map(|domain| vec![0; domain.values()]).collect() };
            let mut settled = Settled {
                kept: ClassSums::default(),
                smallest: u64::MAX,
                risk: 0.0,
                refused: 0,
                released: 0,
                counts: [empty(), empty()],
            };
            let mut leaves = vec![false; bench.grouping.cells.len()];
            for &(class, records, subjects) in satisfied {
                read(bench.grouping.cells[class as usize].row as usize, &mut values);
                let mut cells = values.iter().zip(domains).zip(policy);
                if cells.all(|((value, domain), &level)| domain.is_silent(level, *value)) {
                    continue;
                }
                leaves[class as usize] = true;
                settled.kept.add(records);
                settled.kept.add_bits(records);
                settled.smallest = settled.smallest.min(records);
                settled.risk += records as f64 / subjects.max(1) as f64;
                each(policy, &values, records);
            }
            if settled.kept.classes == 0 {
                settled.smallest = 0;
            }
            for &class in &bench.refused {
                settled.refused += u64::from(bench.grouping.cells[class as usize].records);
            }
            for (row, &class) in bench.grouping.class_of.iter().enumerate() {
                let records = u64::from(rows.count[row]);
                let leaves = leaves[class as usize];
                settled.released += if leaves { records } else { 0 };
                read(row, &mut values);
                for (counts, &value) in settled.counts[usize::from(!leaves)].iter_mut().zip(&values) {
                    counts[value as usize] += records;
                }
            }
            settled
        })
    }
}

/// What was found of a table.
#[derive(Debug)]
pub struct Whole {
    /// As [`recode`](super::passes::recode) gives it, but that it says nothing of single records.
    pub recoded: Recoded,
    /// Every measure of the records as they are.
    pub before: Worth,
}

/// Recodes the records of `table` in one pass. `each` hears of every class that leaves by the policy that was found.
///
/// What is promised is what [`recode`](super::passes::recode) promises, with one pass.
///
/// # Errors
/// See [`PassesError`].
pub fn recode_whole(
    table: &Table,
    terms: &Terms,
    passes: Passes,
    until: Until<'_>,
    watch: &(dyn Fn(&Progress) + Sync),
    each: KeptClass<'_>,
) -> Result<Whole, PassesError> {
    let checker = Checker::new(table, terms)?;
    let limit = checker.limit();
    let leaves = Ratio::of(passes.leaves).filter(|share| share.value() <= 1.0).ok_or(PassesError::Leaves)?;
    // As many as the only pass may suppress; fewer records than that may all go.
    let allowed = if table.records() > limit { limit } else { leaves.floor_of(table.records()) };
    let checker = checker.limited_to(allowed);
    let found = search_until(&checker, passes.strategy, until, watch)?;
    let best = found.best.as_ref().map(|best| (best, checker.settle_rows(&best.policy, each)));
    let top = || table.lattice().top().into();
    let levels =
        best.as_ref().filter(|(_, settled)| settled.kept.classes > 0).map_or_else(top, |(best, _)| best.policy.clone());
    let reason = if until.is_stopped() { Cut::Stopped } else { Cut::Time };
    let mut recoded = Recoded {
        passes: Vec::new(),
        by: Vec::new(),
        searches: vec![found.clone()],
        after_first: None,
        account: Account {
            suppressed: table.records(),
            classes: 0,
            smallest: 0,
            average_risk: 0.0,
            worth: Worth(Vec::new()),
        },
        limit,
        cut: (!found.complete).then_some(reason),
    };
    let gone = |counts| Part { levels: levels.clone(), counts };
    let meter = checker.meter();
    let worth =
        |parts: &[Part], gone: &Part, kept| meter.worth_of_parts(table.domains(), table.counts(), parts, gone, kept);
    match best.filter(|(_, settled)| settled.kept.classes > 0) {
        None => recoded.account.worth = worth(&[], &gone(table.counts().to_vec()), ClassSums::default()),
        Some((best, settled)) => {
            let [kept, lost] = settled.counts;
            let part = Part { levels: levels.clone(), counts: kept };
            recoded.account = Account {
                suppressed: table.records() - settled.released,
                classes: settled.kept.classes,
                smallest: settled.smallest,
                average_risk: if settled.released > 0 { settled.risk / settled.released as f64 } else { 0.0 },
                worth: worth(&[part], &gone(lost), settled.kept),
            };
            recoded.passes.push(Pass {
                policy: best.policy.clone(),
                records: table.records(),
                released: settled.released,
                refused: settled.refused,
                classes: settled.kept.classes,
                quality: checker.measure().shown(best.cost, best.policy.len()),
                found: found.clone(),
            });
        }
    }
    Ok(Whole { recoded, before: checker.raw_worth(&table.lattice().bottom()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymity::domain::{Domain, Level};
    use crate::anonymity::lattice::passes::recode;
    use crate::anonymity::lattice::search::Strategy;
    use crate::anonymity::lattice::table::{Allowance, NOBODY, Records};
    use crate::anonymity::privacy::Model;
    use crate::anonymity::quality::Measure;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

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
        fn distinct_rows_tell_what_records_tell(
            rows in prop::collection::vec((0u32..8, 0u32..8, 0u32..4, prop_oneof![4 => 0u32..9, 1 => Just(NOBODY)]), 1..60),
            (k, l, named) in (1u64..5, 0usize..4, any::<bool>()),
            making in 0usize..2000,
            limit in prop_oneof![Just(0.0), Just(0.1), Just(0.4), Just(1.0)],
        ) {
            let records = Records {
                quasi: vec![rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()],
                sensitive: vec![(rows.iter().map(|row| row.2).collect(), 4)],
                subjects: named.then(|| rows.iter().map(|row| row.3).collect()),
                ..Records::default()
            };
            let domains = vec![domain(), domain()];
            let mut models = vec![Model::KAnonymity { k }];
            models.extend((l > 0).then_some(Model::DistinctDiversity { attribute: 0, l }));
            let terms = Terms { models, limit, measure: Measure::Loss };
            let passes = Passes { most: 1, leaves: 0.5, strategy: Strategy::Bfs };
            let by_records = recode(&domains, &records, &terms, passes, Until::proved(), &|_| {}).expect("a recoding");
            let table = Table::new(domains.clone(), &records).expect("a table");
            let mut classes = BTreeSet::new();
            let mut note = |_: &[u8], values: &[u32], records: u64| {
                classes.insert((values.to_vec(), records));
            };
            let whole = recode_whole(&table, &terms, passes, Until::proved(), &|_| {}, &mut note).expect("a recoding");
            let scarce = Allowance { anchors: 64, making, cells_a_row: 1 };
            let scarce = table.clone().allowing(scarce);
            let checker = Checker::new(&scarce, &terms).expect("terms");
            checker.lattice().iter().for_each(|policy| drop(checker.check(&policy)));
            prop_assert!(checker.anchor_bytes() < 64 + making.max(1), "{} and {making}", checker.anchor_bytes());
            let again = recode_whole(&scarce, &terms, passes, Until::proved(), &|_| {}, &mut |_, _, _| {});
            prop_assert_eq!(again.expect("a recoding").recoded.account, whole.recoded.account.clone());
            let told = |recoded: &Recoded| {
                let passes = recoded.passes.iter().map(|p| (p.policy.clone(), p.records, p.released, p.refused, p.classes));
                let Account { suppressed, classes, smallest, .. } = recoded.account;
                (passes.collect::<Vec<_>>(), suppressed, classes, smallest, recoded.limit, recoded.cut)
            };
            prop_assert_eq!(told(&whole.recoded), told(&by_records));
            prop_assert_eq!(&whole.recoded.account.worth, &by_records.account.worth);
            let difference = whole.recoded.account.average_risk - by_records.account.average_risk;
            prop_assert!(difference.abs() < 1e-12);
            let leaves = by_records.by.iter().filter(|by| by.is_some()).count() as u64;
            prop_assert_eq!(classes.iter().map(|(_, records)| records).sum::<u64>(), leaves);
        }
    }
}
