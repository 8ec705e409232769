//! Anchors: kept classes of a few policies, merged into those of others.
//!
//! An anchor generalizes only the attributes with the most values. It is built on first use from the one a level below.

use super::policy::LatticePolicy;
use super::row_grouping::RowGrouping;
use super::table::{CodedRows, LatticeTable, SearchMemoryLimits};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

const MAX_ANCHORS: usize = 256;
/// Larger anchors are replaced by their parent.
const MAX_ANCHOR_ROW_SHARE: f64 = 0.9;

/// First row, records and population of a class.
type ClassFirstRow = (u32, u32, u32);

#[derive(Debug)]
pub(super) struct AnchorCache {
    base: Arc<CodedRows>,
    /// Generalized attributes with their number of levels.
    attributes: Vec<(usize, usize)>,
    cached_anchors: Vec<OnceLock<Arc<CodedRows>>>,
    bytes: AtomicUsize,
    allowed: SearchMemoryLimits,
}

impl AnchorCache {
    pub fn new(table: &LatticeTable, base: CodedRows) -> Self {
        let domains = table.domains();
        let mut order: Vec<usize> = (0..domains.len()).collect();
        order.sort_by_key(|&a| (std::cmp::Reverse(domains[a].values()), a));
        let mut attributes = Vec::new();
        let mut anchors = 1;
        for attribute in order {
            let levels = domains[attribute].levels().len();
            if anchors * levels > MAX_ANCHORS {
                break;
            }
            anchors *= levels;
            attributes.push((attribute, levels));
        }
        let kept = (0..anchors).map(|_| OnceLock::new()).collect();
        Self {
            base: Arc::new(base),
            attributes,
            cached_anchors: kept,
            bytes: AtomicUsize::new(0),
            allowed: table.search_memory,
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn rows_for_policy(&self, policy: &[u8], table: &LatticeTable, grouping: &mut RowGrouping) -> Arc<CodedRows> {
        let levels: Vec<u8> = self.attributes.iter().map(|&(attribute, _)| policy[attribute]).collect();
        self.find_or_build_anchor(levels, policy.len(), table, grouping)
    }

    fn find_or_build_anchor(
        &self,
        mut levels: Vec<u8>,
        width: usize,
        table: &LatticeTable,
        grouping: &mut RowGrouping,
    ) -> Arc<CodedRows> {
        let Some(last) = levels.iter().rposition(|&level| level > 0) else { return Arc::clone(&self.base) };
        let position =
            levels.iter().zip(&self.attributes).fold(0, |at, (&level, &(_, height))| at * height + usize::from(level));
        if let Some(known) = self.cached_anchors[position].get() {
            return Arc::clone(known);
        }
        let mut policy: LatticePolicy = vec![0; width].into();
        for (&level, &(attribute, _)) in levels.iter().zip(&self.attributes) {
            policy[attribute] = level;
        }
        levels[last] -= 1;
        let parent = self.find_or_build_anchor(levels, width, table, grouping);
        // At most as many classes as rows.
        let making = parent.bytes() + parent.len() * size_of::<ClassFirstRow>();
        if self.bytes() >= self.allowed.anchor_bytes || making > self.allowed.anchor_build_bytes {
            return parent;
        }
        let made = || {
            let rows = Self::merge_policy_classes(&parent, table, &policy, grouping);
            if rows.len() as f64 > parent.len() as f64 * MAX_ANCHOR_ROW_SHARE {
                return Arc::clone(&parent);
            }
            self.bytes.fetch_add(rows.bytes(), Ordering::Relaxed);
            Arc::new(rows)
        };
        Arc::clone(self.cached_anchors[position].get_or_init(made))
    }

    /// Merges rows by `policy`, sensitive value and subject.
    pub fn merge_policy_classes(
        rows: &CodedRows,
        table: &LatticeTable,
        policy: &[u8],
        grouping: &mut RowGrouping,
    ) -> CodedRows {
        grouping.group(rows, &table.composites, policy);
        let mut merged = CodedRows {
            codes: vec![Vec::new(); rows.codes.len()],
            sensitive: vec![Vec::new(); rows.sensitive.len()],
            ..CodedRows::default()
        };
        let mut push = |row: usize, count: u32, population: u32| {
            for (to, from) in merged.codes.iter_mut().zip(&rows.codes) {
                to.push(from[row]);
            }
            for (to, from) in merged.sensitive.iter_mut().zip(&rows.sensitive) {
                to.push(from[row]);
            }
            if !rows.subject.is_empty() {
                merged.subject.push(rows.subject[row]);
            }
            if !rows.population.is_empty() {
                merged.population.push(population);
            }
            merged.count.push(count);
        };
        if rows.sensitive.is_empty() && rows.subject.is_empty() && rows.population.is_empty() {
            for &class in &grouping.occupied {
                let cell = grouping.cells[class as usize];
                push(cell.row as usize, cell.records, 0);
            }
            return merged;
        }
        let mut classes = grouping.cells.len() as u32;
        for column in rows.sensitive.iter().chain([&rows.subject]).filter(|column| !column.is_empty()) {
            classes = grouping.refine(column);
        }
        let mut first: Vec<ClassFirstRow> = vec![(u32::MAX, 0, 0); classes as usize];
        for (row, &class) in grouping.class_of.iter().enumerate() {
            let entry = &mut first[class as usize];
            entry.0 = entry.0.min(row as u32);
            entry.1 += rows.count[row];
            entry.2 += rows.population.get(row).copied().unwrap_or(0);
        }
        for (row, count, population) in first.into_iter().filter(|&(row, ..)| row != u32::MAX) {
            push(row as usize, count, population);
        }
        merged
    }
}
