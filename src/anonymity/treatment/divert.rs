//! Where the sensitive cells of a class cannot hide among its own people: its lines go on to a coarser class.
//!
//! The whole class goes, not only the lines that have something to hide: who goes then says no more than that somebody of
//! the class had. Coarser classes count the people of this batch alone, as cells hide among those alone.

use super::crowd::{Floor, NO_SUBJECT};
use super::recode::{Assignment, AtNode, QuasiColumns, UNRELEASED};
use crate::anonymity::plan::Node;
use crate::records::digest::BuildClassKeyHash;
use hashbrown::{HashMap, HashSet};

/// The subjects of this batch by class, up to k of each.
struct InBatch(HashMap<u128, Vec<u64>, BuildClassKeyHash>);

impl InBatch {
    fn join(&mut self, class: u128, subject: u64, k: usize) {
        let known = self.0.entry(class).or_default();
        if subject != NO_SUBJECT && known.len() < k && !known.contains(&subject) {
            known.push(subject);
        }
    }

    /// Writes those of `class` to the front of `out`, as many as fit; gives their number.
    fn subjects(&self, class: u128, out: &mut [u64]) -> usize {
        let known = self.0.get(&class).into_iter().flatten();
        known.zip(out).map(|(subject, out)| *out = *subject).count()
    }
}

/// Takes the `failing` rows, whole classes of `assignment`, to the first node after their own at which the people of
/// their class in this batch are k. `from` is the first node that each row may take still, and rises.
pub(super) fn divert(
    columns: &QuasiColumns<'_>,
    ladder: &[Node],
    assignment: &mut Assignment,
    failing: &[u32],
    from: &mut [u32],
    k: usize,
) {
    let gone: HashSet<u32> = failing.iter().copied().collect();
    let mut people = InBatch(HashMap::default());
    for (row, (&node, &class)) in (0u32..).zip(assignment.node.iter().zip(&assignment.class)) {
        if node != UNRELEASED && !gone.contains(&row) {
            people.join(class, columns.subject(row), k);
        }
    }
    for &row in failing {
        from[row as usize] = assignment.node[row as usize].saturating_add(1);
        assignment.node[row as usize] = UNRELEASED;
    }
    let mut left = failing.to_vec();
    left.sort_unstable();
    let mut at_node = AtNode::new(Floor { k, batch: 0 }, left.len());
    for (index, node) in (0u32..).zip(ladder) {
        let here: Vec<u32> = left.iter().copied().filter(|&row| from[row as usize] <= index).collect();
        if here.is_empty() {
            continue;
        }
        at_node.gather(columns, node, &here, |class, out| people.subjects(class, out));
        for ((&row, &key), &class) in here.iter().zip(&at_node.keys).zip(&at_node.classes) {
            if key != columns.suppressed_key() && at_node.may_leave(class) {
                assignment.node[row as usize] = index;
                assignment.class[row as usize] = key;
                people.join(key, columns.subject(row), k);
            }
        }
        left.retain(|&row| assignment.node[row as usize] == UNRELEASED);
    }
}
