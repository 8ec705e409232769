//! Anchors: classes of a few fixed policies, kept so that others are rolled up from them instead of from the rows.
//!
//! The anchor of a policy generalizes only the attributes with the most values, to the policy's own levels: it is a
//! specialisation, so its classes only need merging, and it is shared by all policies that differ elsewhere. Anchors
//! are made when first asked for, each from the one a level below.

use super::grouping::Grouping;
use super::policy::Policy;
use super::table::{Allowance, Rows, Table};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Anchors at most.
const MOST: usize = 256;
/// An anchor is kept if it has at most this share of its parent's rows; else the parent stands in for it.
const SHRINKS: f64 = 0.9;

/// Of a class: its first row, its records, its population.
type First = (u32, u32, u32);

#[derive(Debug)]
pub(super) struct Anchors {
    base: Arc<Rows>,
    /// The attributes that anchors generalize, and the levels of each.
    attributes: Vec<(usize, usize)>,
    kept: Vec<OnceLock<Arc<Rows>>>,
    bytes: AtomicUsize,
    allowed: Allowance,
}

impl Anchors {
    /// Anchors over `base`, the classes of the raw policy.
    pub fn new(table: &Table, base: Rows) -> Self {
        let domains = table.domains();
        let mut order: Vec<usize> = (0..domains.len()).collect();
        order.sort_by_key(|&a| (std::cmp::Reverse(domains[a].values()), a));
        let mut attributes = Vec::new();
        let mut anchors = 1;
        for attribute in order {
            let levels = domains[attribute].levels().len();
            if anchors * levels > MOST {
                break;
            }
            anchors *= levels;
            attributes.push((attribute, levels));
        }
        let kept = (0..anchors).map(|_| OnceLock::new()).collect();
        Self { base: Arc::new(base), attributes, kept, bytes: AtomicUsize::new(0), allowed: table.allowed }
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Rows from which the classes of `policy` can be rolled up.
    pub fn below(&self, policy: &[u8], table: &Table, grouping: &mut Grouping) -> Arc<Rows> {
        let levels: Vec<u8> = self.attributes.iter().map(|&(attribute, _)| policy[attribute]).collect();
        self.anchor(levels, policy.len(), table, grouping)
    }

    fn anchor(&self, mut levels: Vec<u8>, width: usize, table: &Table, grouping: &mut Grouping) -> Arc<Rows> {
        let Some(last) = levels.iter().rposition(|&level| level > 0) else { return Arc::clone(&self.base) };
        let position =
            levels.iter().zip(&self.attributes).fold(0, |at, (&level, &(_, height))| at * height + usize::from(level));
        if let Some(known) = self.kept[position].get() {
            return Arc::clone(known);
        }
        let mut policy: Policy = vec![0; width].into();
        for (&level, &(attribute, _)) in levels.iter().zip(&self.attributes) {
            policy[attribute] = level;
        }
        levels[last] -= 1;
        let parent = self.anchor(levels, width, table, grouping);
        // At most as many classes as rows come of it.
        let making = parent.bytes() + parent.len() * size_of::<First>();
        if self.bytes() >= self.allowed.anchors || making > self.allowed.making {
            return parent;
        }
        let made = || {
            let rows = Self::classes(&parent, table, &policy, grouping);
            if rows.len() as f64 > parent.len() as f64 * SHRINKS {
                return Arc::clone(&parent);
            }
            self.bytes.fetch_add(rows.bytes(), Ordering::Relaxed);
            Arc::new(rows)
        };
        Arc::clone(self.kept[position].get_or_init(made))
    }

    /// The rows merged by `policy`, sensitive value and subject: one row stands for each class of them.
    pub fn classes(rows: &Rows, table: &Table, policy: &[u8], grouping: &mut Grouping) -> Rows {
        grouping.group(rows, &table.composites, policy);
        let mut merged = Rows {
            codes: vec![Vec::new(); rows.codes.len()],
            sensitive: vec![Vec::new(); rows.sensitive.len()],
            ..Rows::default()
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
        let mut first: Vec<First> = vec![(u32::MAX, 0, 0); classes as usize];
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
