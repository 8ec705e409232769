//! Strict local recoding: a class counts only raw tuples that an observer of ledger and ladder cannot exclude.
//!
//! Claim. Every class that [`recode_strictly`] assigns at a node has at least k distinct subjects over (a) the rows of
//! this batch that reach the node with it and (b) earlier fresh releases in it, each of a raw tuple that is not
//! excludable there ([`super::exclusion`]). It also has the plain support that [`super::recode`] asks for, so strict
//! recoding releases nothing that the ladder would not be allowed to release.
//!
//! *Where the batch alone must have the crowd (`batch_crowd` = k) the ladder keeps this promise by itself*, and nothing has
//! to be remembered for it. Proof. Earlier releases complete no class then, so that a raw tuple is excludable from a class E
//! of node ν only where its class C at a node μ before ν leaves in this batch. Let r be a row that leaves in E. It has
//! reached μ and was refused there. A level of a hierarchy is a partition, so a row is in C at one node exactly if it is
//! in C at every node that prints C's coverage: the rows that are in C at a node after μ are some of those that were in C at
//! μ, where all of them together were too few, so C does not leave after μ; and had C left before μ, r would have left with
//! it. So C does not leave in this batch, no raw tuple of E is excludable, and the k subjects of E in the batch all
//! count. Records that wait, and classes that the guard between groups withdraws as a whole, only make fewer classes leave.
//! `release::narrowing` recounts it all the same.

use super::crowd::{Floor, NO_SUBJECT};
use super::exclusion::Exclusion;
use super::recode::{Assignment, AtNode, Counted, QuasiColumns, recode};
use crate::anonymity::plan::Node;
use crate::ledger::at::{LedgerAt, WitnessesAt};
use std::collections::BTreeMap;

/// Recodes by the rule that `ledger` is kept for: strictly where it remembers raw tuples, by the ladder otherwise.
#[must_use]
pub fn recode_as_kept(
    columns: &QuasiColumns<'_>,
    ladder: &[Node],
    rows: &[u32],
    floor: Floor,
    ledger: &LedgerAt<'_>,
) -> Assignment {
    match ledger.witnesses().filter(|_| floor.asks_the_window()) {
        None => recode(columns, ladder, rows, floor, ledger),
        Some(witnessed) => recode_strictly(columns, ladder, rows, floor, ledger, witnessed),
    }
}

/// The rows of one class at one node.
struct ClassAtNode {
    key: u128,
    /// One of the rows.
    row: u32,
    /// Distinct subjects of rows whose raw tuple cannot be excluded; at most k.
    subjects: Vec<u64>,
}

impl ClassAtNode {
    fn add(&mut self, subject: u64, k: usize) {
        if self.subjects.len() < k && subject != NO_SUBJECT && !self.subjects.contains(&subject) {
            self.subjects.push(subject);
        }
    }
}

/// What becomes of the rows of a class at a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// They go on to the next node.
    Refused,
    /// They go on, but somebody new would have been taken: an observer excludes their raw tuples from here on, so they
    /// need the cover of others. It happens where one subject sends many records.
    Excluded,
    Taken,
}

/// As [`recode`], with the support of a class counted strictly.
///
/// Time: that of `recode`, and for every class that has plain support the walks of its earlier raw tuples, each tuple
/// walking at most once a batch.
#[must_use]
pub fn recode_strictly(
    columns: &QuasiColumns<'_>,
    ladder: &[Node],
    rows: &[u32],
    floor: Floor,
    ledger: &LedgerAt<'_>,
    witnessed: WitnessesAt<'_>,
) -> Assignment {
    let k = floor.k;
    let mut earlier = BTreeMap::new();
    let mut assignment = Assignment::nothing(columns.rows());
    let mut exclusion = Exclusion::new(columns, ladder, k, witnessed);
    let mut excluded = vec![false; columns.rows()];
    let mut left = rows.to_vec();
    let mut at_node = AtNode::new(floor, left.len());
    for (index, node) in (0u32..).zip(ladder) {
        if left.is_empty() {
            break;
        }
        at_node.gather_with(columns, node, &left, ledger);
        let AtNode { crowds: table, keys, classes, .. } = &at_node;
        let mut crowds: BTreeMap<u32, ClassAtNode> = BTreeMap::new();
        // A class that could take one more record matters even where it takes none of these.
        let mut matters: Vec<bool> = Vec::with_capacity(table.classes());
        for ((&row, &key), &class) in left.iter().zip(keys).zip(classes) {
            if class as usize == matters.len() {
                let enough = table.count(class) + 1 >= k || witnessed.of_class(key).len() + 1 >= k;
                matters.push(enough && key != columns.suppressed_key());
            }
            if matters[class as usize] {
                let crowd = crowds.entry(class).or_insert_with(|| ClassAtNode { key, row, subjects: Vec::new() });
                if !excluded[row as usize] {
                    crowd.add(columns.subject(row), k);
                }
            }
        }
        let mut verdicts = vec![Verdict::Refused; table.classes()];
        for (class, mut crowd) in crowds {
            // Where a population has too few people nobody is taken, so that nothing can be excluded either.
            if !columns.is_populous(crowd.row, &node.levels) {
                continue;
            }
            let survivors = exclusion.survivors(crowd.key, index);
            for &subject in &survivors {
                crowd.add(subject, k);
            }
            verdicts[class as usize] = if crowd.subjects.len() >= k && table.supported(class) {
                earlier.insert(crowd.key, survivors);
                Verdict::Taken
            } else if survivors.len() + 1 >= k {
                Verdict::Excluded
            } else {
                Verdict::Refused
            };
        }
        let mut at = 0;
        left.retain(|&row| {
            let here = at;
            at += 1;
            match verdicts[classes[here] as usize] {
                Verdict::Taken => {
                    assignment.node[row as usize] = index;
                    assignment.class[row as usize] = keys[here];
                    exclusion.leaves(keys[here]);
                    return false;
                }
                Verdict::Excluded => excluded[row as usize] = true,
                Verdict::Refused => {}
            }
            true
        });
    }
    assignment.counted = Some(Counted { earlier, excluded });
    assignment
}
