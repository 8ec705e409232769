//! Adjacency that counts pairs only between attributes that no other determines.
//!
//! If A → B, n(v, w) is the sum of n(u, w) over the values u of A that occur with v. A contradicted B is restored with
//! its counts.

use super::attribute_aggregation::AttributeAggregation;
use crate::adjacency::{Adjacency, AdjacencyError, AdjacencyLimits, MAX_CODES, ValueNode};
use crate::counting::{AttributeSet, ColumnsError, CountedTable};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::Code;

const UNKNOWN_CODE: Code = Code::MAX;

/// Error of a coarse window; counts are unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum CoarseError {
    #[error(transparent)]
    Adjacency(#[from] AdjacencyError),
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(
        "the window has {rows} records, but {counted} are counted: pass the records that were added and not subtracted"
    )]
    Window { rows: usize, counted: u64 },
}

/// Attributes that are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergePolicy {
    /// Every attribute that another determines.
    Determined,
    /// All but one of the attributes that split the records equally.
    ///
    /// Under an edge limit, no pair is lost, because both attributes have the same edges.
    Identical,
}

/// Adjacency counted between some attributes and known between all.
#[derive(Clone, Debug)]
pub struct CoarseAdjacency {
    counted: Adjacency,
    derived: BTreeMap<usize, DerivedAttribute>,
}

#[derive(Clone, Debug)]
struct DerivedAttribute {
    host: usize,
    /// By code of the host; meaningless for unused codes.
    of: Vec<Code>,
    n: Vec<u32>,
}

impl CoarseAdjacency {
    /// Creates an empty window over ascending attributes; all are counted until [`coarsen`](Self::coarsen).
    ///
    /// # Errors
    /// If the attributes do not ascend.
    pub fn new(attributes: &[usize], limits: AdjacencyLimits) -> Result<Self, AdjacencyError> {
        Ok(Self { counted: Adjacency::new(attributes, limits)?, derived: BTreeMap::new() })
    }

    /// Creates a window that continues an earlier one, before its records are added again.
    ///
    /// `derived` lists attributes with their hosts; `left_out` lists pairs. Unknown attributes are ignored.
    pub fn resume(
        attributes: &[usize],
        limits: AdjacencyLimits,
        derived: &[(usize, usize)],
        left_out: &[(usize, usize)],
    ) -> Result<Self, AdjacencyError> {
        let mut window = Self::new(attributes, limits)?;
        let takes_part = |attribute: &usize| attributes.contains(attribute);
        for (attribute, host) in derived.iter().filter(|(a, host)| takes_part(a) && takes_part(host) && a != host) {
            window.counted.remove_attribute(*attribute);
            window.derived.insert(*attribute, DerivedAttribute { host: *host, of: Vec::new(), n: Vec::new() });
        }
        let counted: Vec<usize> = window.counted.attributes().to_vec();
        window.derived.retain(|_, derived| counted.contains(&derived.host));
        window.counted.exclude_pairs(left_out);
        Ok(window)
    }

    /// Stops counting determined attributes, as `merging` requires; returns their number.
    ///
    /// `window` holds all schema columns of the counted records, or, before any, of those to count. Time: rows ·
    /// attributes, and rows up to a counterexample per pair.
    ///
    /// # Errors
    /// If the columns are not a table, or not the window.
    pub fn coarsen<C: AsRef<[Code]>>(&mut self, window: &[C], merging: MergePolicy) -> Result<usize, CoarseError> {
        let attributes = self.counted.attributes().to_vec();
        let columns = attributes.iter().map(|a| window.get(*a).map(|c| c.as_ref().to_vec()).unwrap_or_default());
        let table = CountedTable::new(columns.collect(), None)?;
        let (rows, counted) = (table.rows(), self.counted.records());
        if counted != 0 && counted != rows as u64 {
            return Err(CoarseError::Window { rows, counted });
        }
        if rows == 0 {
            return Ok(0);
        }
        let found = AttributeAggregation::of(&table, &AttributeSet::first(table.width()));
        let roots = found.roots();
        // A host of few values gives short sums.
        let host_of = |number: usize| {
            let implies = |root: &&usize| **root == number || found.implied(**root).contains(&number);
            roots.iter().filter(implies).min_by_key(|root| table.cardinality(found.kept()[**root])).copied()
        };
        let before = self.derived.len();
        let mut deriving: Vec<(usize, usize)> = Vec::new();
        for number in 0..found.kept().len() {
            let root = match merging {
                MergePolicy::Determined => host_of(number),
                MergePolicy::Identical => Some(number),
            };
            let Some(root) = root else { continue };
            let host = found.kept()[root];
            let others = found.twins(number).iter().filter(|column| **column != host);
            deriving.extend(others.map(|column| (attributes[*column], attributes[host])));
        }
        let hosts: BTreeMap<usize, usize> = deriving.iter().copied().collect();
        for (attribute, host) in deriving {
            let mut of = Vec::new();
            record_host_values(&mut of, window[host].as_ref(), window[attribute].as_ref());
            let n = self.counted.counts_of(attribute);
            self.derived.insert(attribute, DerivedAttribute { host, of, n });
            self.counted.remove_attribute(attribute);
        }
        for derived in self.derived.values_mut() {
            if let Some(host) = hosts.get(&derived.host) {
                let beside = window[derived.host].as_ref().iter().map(|code| derived.of[*code as usize]);
                let values: Vec<Code> = beside.collect();
                (derived.host, derived.of) = (*host, Vec::new());
                record_host_values(&mut derived.of, window[*host].as_ref(), &values);
            }
        }
        Ok(self.derived.len() - before)
    }

    /// Counts a batch, given as all schema columns.
    ///
    /// First restores the attributes with a contradicted dependency, and returns them, ascending.
    ///
    /// # Errors
    /// If the columns are not a batch of this schema, or the model is full.
    pub fn add<C: AsRef<[Code]>>(&mut self, columns: &[C]) -> Result<Vec<usize>, CoarseError> {
        self.check(columns)?;
        let mut broken = Vec::new();
        for (attribute, derived) in &mut self.derived {
            let host = derived.host;
            let is_held = |code| self.counted.n(ValueNode { attribute: host, code }) > 0;
            if !derived.accepts_batch(columns[host].as_ref(), columns[*attribute].as_ref(), is_held) {
                broken.push(*attribute);
            }
        }
        for attribute in &broken {
            if let Some(derived) = self.derived.remove(attribute) {
                self.counted.add_derived_attribute(*attribute, derived.host, &derived.of)?;
            }
        }
        self.counted.add(columns)?;
        for (attribute, derived) in &mut self.derived {
            for code in columns[*attribute].as_ref() {
                let at = *code as usize;
                if derived.n.len() <= at {
                    derived.n.resize(at + 1, 0);
                }
                derived.n[at] += 1;
            }
        }
        Ok(broken)
    }

    /// Subtracts added records, given as all schema columns; dependencies remain.
    ///
    /// # Errors
    /// If the columns are not a batch of this schema, or not counted.
    pub fn subtract<C: AsRef<[Code]>>(&mut self, columns: &[C]) -> Result<(), CoarseError> {
        self.check(columns)?;
        let mut rest = Vec::with_capacity(self.derived.len());
        for (attribute, derived) in &self.derived {
            let mut n = derived.n.clone();
            for code in columns[*attribute].as_ref() {
                let held = n.get_mut(*code as usize).filter(|n| **n > 0);
                *held.ok_or(AdjacencyError::NotCounted { attribute: *attribute })? -= 1;
            }
            rest.push(n);
        }
        self.counted.subtract(columns)?;
        self.derived.values_mut().zip(rest).for_each(|(derived, n)| derived.n = n);
        Ok(())
    }

    /// Renumbers the codes of an attribute; `map` (old → new) must not merge values in use.
    ///
    /// # Errors
    /// If `map` drops a value in use.
    pub fn remap(&mut self, attribute: usize, map: &[Code]) -> Result<(), CoarseError> {
        let new = |code: Code| map.get(code as usize).copied().unwrap_or(UNKNOWN_CODE);
        if let Some(derived) = self.derived.get_mut(&attribute) {
            let mut n = Vec::new();
            for (code, records) in (0..).zip(&derived.n).filter(|(_, records)| **records > 0) {
                let code = new(code);
                if code >= MAX_CODES {
                    return Err(AdjacencyError::DropsUsedValue { attribute, records: u64::from(*records) }.into());
                }
                if n.len() <= code as usize {
                    n.resize(code as usize + 1, 0);
                }
                n[code as usize] += *records;
            }
            derived.n = n;
            derived.of.iter_mut().for_each(|value| *value = new(*value));
            return Ok(());
        }
        self.counted.remap(attribute, map)?;
        for derived in self.derived.values_mut().filter(|derived| derived.host == attribute) {
            let of = std::mem::take(&mut derived.of);
            for (code, value) in (0..).zip(of) {
                let code = new(code);
                if code < MAX_CODES && value < MAX_CODES {
                    record_host_values(&mut derived.of, &[code], &[value]);
                }
            }
        }
        Ok(())
    }

    fn check<C: AsRef<[Code]>>(&self, columns: &[C]) -> Result<(), AdjacencyError> {
        let mut expected = None;
        for &attribute in self.counted.attributes().iter().chain(self.derived.keys()) {
            let column = columns.get(attribute).map(AsRef::as_ref);
            let column = column.ok_or(AdjacencyError::Width { attribute, columns: columns.len() })?;
            let (found, expected) = (column.len(), *expected.get_or_insert(column.len()));
            if found != expected {
                return Err(AdjacencyError::Ragged { attribute, found, expected });
            }
            if let Some(code) = column.iter().copied().max().filter(|code| *code >= MAX_CODES) {
                return Err(AdjacencyError::Code { attribute, code });
            }
        }
        Ok(())
    }

    /// Returns the counted model.
    pub fn counted(&self) -> &Adjacency {
        &self.counted
    }

    /// Uncounted attributes, each with its host.
    pub fn derived(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.derived.iter().map(|(attribute, derived)| (*attribute, derived.host))
    }

    /// Returns `n(u)`.
    pub fn n(&self, node: ValueNode) -> u64 {
        match self.derived.get(&node.attribute) {
            Some(derived) => derived.n.get(node.code as usize).map_or(0, |n| u64::from(*n)),
            None => self.counted.n(node),
        }
    }

    /// Number of values in use.
    pub fn node_count(&self) -> u64 {
        let derived = self.derived.values().flat_map(|derived| &derived.n).filter(|n| **n > 0).count();
        self.counted.node_count() + derived as u64
    }

    /// Number of unknown attribute pairs.
    pub fn unknown_pair_count(&self) -> usize {
        let mut stands_for: BTreeMap<usize, usize> = BTreeMap::new();
        self.derived.values().for_each(|derived| *stands_for.entry(derived.host).or_default() += 1);
        let of = |attribute: usize| 1 + stands_for.get(&attribute).copied().unwrap_or(0);
        self.counted.left_out_pairs().into_iter().map(|(a, b)| of(a) * of(b)).sum()
    }

    /// Allocated bytes.
    pub fn bytes(&self) -> usize {
        let derived =
            self.derived.values().map(|derived| (derived.of.capacity() + derived.n.capacity()) * size_of::<u32>());
        self.counted.bytes() + derived.sum::<usize>()
    }

    /// Returns `n(u,v)`; `None` for one attribute or a left-out pair.
    ///
    /// Time: the codes of both hosts, and each pair of host values of u and v.
    pub fn n_both(&self, u: ValueNode, v: ValueNode) -> Option<u64> {
        if u.attribute == v.attribute {
            return None;
        }
        let (of_u, of_v) = (self.host_values(u), self.host_values(v));
        let mut sum = 0;
        for i in &of_u {
            for j in &of_v {
                sum += match (i.attribute == j.attribute, i == j) {
                    (true, true) => self.counted.n(*i),
                    (true, false) => 0,
                    (false, _) => self.counted.n_both(*i, *j)?,
                };
            }
        }
        Some(sum)
    }

    fn host_values(&self, node: ValueNode) -> Vec<ValueNode> {
        let Some(derived) = self.derived.get(&node.attribute) else { return vec![node] };
        let beside = (0..).zip(&derived.of).filter(|(_, value)| **value == node.code);
        let parts = beside.map(|(code, _)| ValueNode { attribute: derived.host, code });
        parts.filter(|part| self.counted.n(*part) > 0).collect()
    }

    /// Returns the model between all attributes, as counted without the coarse level.
    ///
    /// # Errors
    /// Only after an error that damaged the window.
    pub fn to_fine_adjacency(&self) -> Result<Adjacency, AdjacencyError> {
        let mut fine = self.counted.clone();
        for (attribute, derived) in &self.derived {
            fine.add_derived_attribute(*attribute, derived.host, &derived.of)?;
        }
        Ok(fine)
    }
}

fn record_host_values(of: &mut Vec<Code>, host: &[Code], values: &[Code]) {
    for (code, value) in host.iter().zip(values) {
        let at = *code as usize;
        if of.len() <= at {
            of.resize(at + 1, UNKNOWN_CODE);
        }
        of[at] = *value;
    }
}

impl DerivedAttribute {
    /// Returns true if each host code still has one value. An unused code may get a new one once.
    fn accepts_batch(&mut self, host: &[Code], values: &[Code], is_held: impl Fn(Code) -> bool) -> bool {
        let mut fresh = BTreeSet::new();
        host.iter().zip(values).all(|(code, value)| {
            if self.of.get(*code as usize) == Some(value) {
                // Mappings of expired records become fixed with this batch.
                if !is_held(*code) {
                    fresh.insert(*code);
                }
                return true;
            }
            let is_new = !is_held(*code) && fresh.insert(*code);
            if is_new {
                record_host_values(&mut self.of, &[*code], &[*value]);
            }
            is_new
        })
    }
}

#[cfg(test)]
mod tests;
