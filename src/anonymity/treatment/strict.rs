//! Strict local recoding: a class counts only raw tuples that an observer of ledger and ladder cannot exclude.
//!
//! Claim. Every class that [`recode_strictly`] assigns at a node has at least k distinct subjects over (a) the rows of
//! this batch that reach the node with it and (b) earlier fresh releases in it, each of a raw tuple that is not
//! excludable there ([`super::exits`]). It also has the plain support that [`super::recode`] asks for, so strict
//! recoding releases nothing that the ladder would not be allowed to release.

use super::crowd::{NO_SUBJECT, Released};
use super::exits::{Exits, Witnessed};
use super::recode::{Assignment, AtNode, Columns, Counted, recode};
use crate::anonymity::plan::Node;
use std::collections::BTreeMap;

/// Recodes by the rule that `released` is kept for: strictly where it remembers raw tuples, by the ladder otherwise.
#[must_use]
pub fn recode_as_kept(
    columns: &Columns<'_>,
    ladder: &[Node],
    rows: &[u32],
    k: usize,
    released: &impl Released,
) -> Assignment {
    match released.witnessed() {
        None => recode(columns, ladder, rows, k, released),
        Some(witnessed) => recode_strictly(columns, ladder, rows, k, released, witnessed),
    }
}

/// The rows of one class at one node.
struct Crowd {
    key: u128,
    /// One of the rows.
    row: u32,
    /// Distinct subjects of rows whose raw tuple cannot be excluded; at most k.
    subjects: Vec<u64>,
}

impl Crowd {
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
    columns: &Columns<'_>,
    ladder: &[Node],
    rows: &[u32],
    k: usize,
    released: &impl Released,
    witnessed: &dyn Witnessed,
) -> Assignment {
    let mut earlier = BTreeMap::new();
    let mut assignment = Assignment::nothing(columns.rows());
    let mut exits = Exits::new(columns, ladder, k, witnessed);
    let mut excluded = vec![false; columns.rows()];
    let mut left = rows.to_vec();
    let mut at_node = AtNode::new(k, left.len());
    for (index, node) in (0u32..).zip(ladder) {
        if left.is_empty() {
            break;
        }
        at_node.gather(columns, node, &left, released);
        let AtNode { crowds: table, keys, classes, .. } = &at_node;
        let mut crowds: BTreeMap<u32, Crowd> = BTreeMap::new();
        for ((&row, &key), &class) in left.iter().zip(keys).zip(classes) {
            if key != columns.suppressed_key() && table.count(class) + 1 >= k {
                let crowd = crowds.entry(class).or_insert_with(|| Crowd { key, row, subjects: Vec::new() });
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
            let survivors = exits.survivors(crowd.key, index);
            for &subject in &survivors {
                crowd.add(subject, k);
            }
            verdicts[class as usize] = if crowd.subjects.len() >= k && table.supported(class) {
                earlier.insert(crowd.key, also_in_ledger(&survivors, crowd.key, k, released));
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
                    exits.leaves(keys[here]);
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

/// Of `survivors`, those that verification will find too: support counted from them is support by either count.
fn also_in_ledger(survivors: &[u64], class: u128, k: usize, released: &impl Released) -> Vec<u64> {
    let mut known = vec![0u64; k];
    let count = released.fresh_subjects(class, &mut known);
    survivors.iter().copied().filter(|s| known[..count].contains(s)).collect()
}
