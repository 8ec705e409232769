//! The adjacency on the coarse level: pairs are counted between the attributes that no other determines.
//!
//! Where A → B, each value of B is the disjoint union of the values of A that go with it, so n(v, w) is the sum of
//! n(u, w) over them, and B need not be counted. The first record with another value of B ends that: B is put back with
//! the counts that it would have had, before the record is counted.

use super::attributes::Attributes;
use crate::adjacency::{Adjacency, AdjacencyError, Limits, MAX_CODES, ValueNode};
use crate::counting::{AttributeSet, ColumnsError, CountedTable};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::Code;

/// No value has been seen.
const UNSEEN: Code = Code::MAX;

/// Why a window cannot be counted coarsely. It is then as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum CoarseError {
    #[error(transparent)]
    Adjacency(#[from] AdjacencyError),
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(
        "a window of {rows} records is not the one of {counted} that is counted: give what was added and not subtracted"
    )]
    Window { rows: usize, counted: u64 },
}

/// What is counted no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merging {
    /// Whatever another attribute determines: the fewest pairs.
    Determined,
    /// Attributes that split the records alike, but for one of them. Where there is room for so many edges only, this leaves out
    /// no pair that would have been counted otherwise: the pairs of both have the same edges. What is determined
    /// by an attribute of more values has fewer edges than that one, and would be left out with it.
    Identical,
}

/// The adjacency of a window, counted between some of its attributes and known between all.
#[derive(Clone, Debug)]
pub struct CoarseAdjacency {
    counted: Adjacency,
    derived: BTreeMap<usize, Derived>,
}

/// An attribute that another one determines.
#[derive(Clone, Debug)]
struct Derived {
    /// Counted.
    host: usize,
    /// The value beside each code of the host; of codes that no record holds it means nothing.
    of: Vec<Code>,
    /// Records of each value.
    n: Vec<u32>,
}

impl CoarseAdjacency {
    /// An empty window over these attributes of the schema, ascending. All of them are counted until
    /// [`coarsen`](Self::coarsen) finds what determines them.
    ///
    /// # Errors
    /// When the attributes do not ascend.
    pub fn new(attributes: &[usize], limits: Limits) -> Result<Self, AdjacencyError> {
        Ok(Self { counted: Adjacency::new(attributes, limits)?, derived: BTreeMap::new() })
    }

    /// A window that goes on where another one ended, before its records are added again: attributes that were not counted,
    /// each with the one that determines it, and pairs that were left out. What takes no part is ignored.
    pub fn resume(
        attributes: &[usize],
        limits: Limits,
        derived: &[(usize, usize)],
        left_out: &[(usize, usize)],
    ) -> Result<Self, AdjacencyError> {
        let mut window = Self::new(attributes, limits)?;
        let takes_part = |attribute: &usize| attributes.contains(attribute);
        for (attribute, host) in derived.iter().filter(|(a, host)| takes_part(a) && takes_part(host) && a != host) {
            window.counted.forget(*attribute);
            window.derived.insert(*attribute, Derived { host: *host, of: Vec::new(), n: Vec::new() });
        }
        let counted: Vec<usize> = window.counted.attributes().to_vec();
        window.derived.retain(|_, derived| counted.contains(&derived.host));
        window.counted.leave_out(left_out);
        Ok(window)
    }

    /// Looks for attributes that others determine in the whole window, given as every column of the schema, and counts
    /// those no more that `merging` says. Gives how many these are. The window is what is counted; before anything is, it may be what will be.
    ///
    /// Time: rows · attributes, and for each pair of attributes the rows up to the first that tells them apart.
    ///
    /// # Errors
    /// When the columns are no table, or not the window.
    pub fn coarsen<C: AsRef<[Code]>>(&mut self, window: &[C], merging: Merging) -> Result<usize, CoarseError> {
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
        let found = Attributes::of(&table, &AttributeSet::first(table.width()));
        let roots = found.roots();
        // A host with few values gives short sums.
        let host_of = |number: usize| {
            let implies = |root: &&usize| **root == number || found.implied(**root).contains(&number);
            roots.iter().filter(implies).min_by_key(|root| table.cardinality(found.kept()[**root])).copied()
        };
        let before = self.derived.len();
        let mut deriving: Vec<(usize, usize)> = Vec::new();
        for number in 0..found.kept().len() {
            let root = match merging {
                Merging::Determined => host_of(number),
                Merging::Identical => Some(number),
            };
            let Some(root) = root else { continue };
            let host = found.kept()[root];
            let others = found.twins(number).iter().filter(|column| **column != host);
            deriving.extend(others.map(|column| (attributes[*column], attributes[host])));
        }
        let hosts: BTreeMap<usize, usize> = deriving.iter().copied().collect();
        for (attribute, host) in deriving {
            let mut of = Vec::new();
            learn(&mut of, window[host].as_ref(), window[attribute].as_ref());
            let n = self.counted.counts_of(attribute);
            self.derived.insert(attribute, Derived { host, of, n });
            self.counted.forget(attribute);
        }
        // What had one of these for its host is determined by that one's.
        for derived in self.derived.values_mut() {
            if let Some(host) = hosts.get(&derived.host) {
                let beside = window[derived.host].as_ref().iter().map(|code| derived.of[*code as usize]);
                let values: Vec<Code> = beside.collect();
                (derived.host, derived.of) = (*host, Vec::new());
                learn(&mut derived.of, window[*host].as_ref(), &values);
            }
        }
        Ok(self.derived.len() - before)
    }

    /// Counts the records of a batch, given as every column of the schema. What its first record breaks is split before
    /// anything is counted. Gives the attributes that were, ascending.
    ///
    /// # Errors
    /// When the columns are not a batch of this schema, or the model is full.
    pub fn add<C: AsRef<[Code]>>(&mut self, columns: &[C]) -> Result<Vec<usize>, CoarseError> {
        self.check(columns)?;
        let mut broken = Vec::new();
        for (attribute, derived) in &mut self.derived {
            let host = derived.host;
            let is_held = |code| self.counted.n(ValueNode { attribute: host, code }) > 0;
            if !derived.admits(columns[host].as_ref(), columns[*attribute].as_ref(), is_held) {
                broken.push(*attribute);
            }
        }
        for attribute in &broken {
            if let Some(derived) = self.derived.remove(attribute) {
                self.counted.derive(*attribute, derived.host, &derived.of)?;
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

    /// Takes back records that were added, given as every column of the schema. No certainty ends by
    /// that.
    ///
    /// # Errors
    /// When the columns are not a batch of this schema, or the model does not count such records.
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

    /// Renumbers the codes of one attribute of the schema, as its codebook was; `map` is old → new, and no two values that
    /// records hold become one.
    ///
    /// # Errors
    /// When a value that records still hold is forgotten.
    pub fn remap(&mut self, attribute: usize, map: &[Code]) -> Result<(), CoarseError> {
        let new = |code: Code| map.get(code as usize).copied().unwrap_or(UNSEEN);
        if let Some(derived) = self.derived.get_mut(&attribute) {
            let mut n = Vec::new();
            for (code, records) in (0..).zip(&derived.n).filter(|(_, records)| **records > 0) {
                let code = new(code);
                if code >= MAX_CODES {
                    return Err(AdjacencyError::Forgets { attribute, records: u64::from(*records) }.into());
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
                    learn(&mut derived.of, &[code], &[value]);
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

    /// The model between the attributes that are counted.
    pub fn counted(&self) -> &Adjacency {
        &self.counted
    }

    /// Attributes that are not counted, each with the one that determines it.
    pub fn derived(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.derived.iter().map(|(attribute, derived)| (*attribute, derived.host))
    }

    /// `n(u)`.
    pub fn n(&self, node: ValueNode) -> u64 {
        match self.derived.get(&node.attribute) {
            Some(derived) => derived.n.get(node.code as usize).map_or(0, |n| u64::from(*n)),
            None => self.counted.n(node),
        }
    }

    /// Values that some record holds.
    pub fn node_count(&self) -> u64 {
        let derived = self.derived.values().flat_map(|derived| &derived.n).filter(|n| **n > 0).count();
        self.counted.node_count() + derived as u64
    }

    /// How many pairs of all attributes are not known, since those that stand for them are left out.
    pub fn left_out(&self) -> usize {
        let mut stands_for: BTreeMap<usize, usize> = BTreeMap::new();
        self.derived.values().for_each(|derived| *stands_for.entry(derived.host).or_default() += 1);
        let of = |attribute: usize| 1 + stands_for.get(&attribute).copied().unwrap_or(0);
        self.counted.left_out_pairs().into_iter().map(|(a, b)| of(a) * of(b)).sum()
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let derived =
            self.derived.values().map(|derived| (derived.of.capacity() + derived.n.capacity()) * size_of::<u32>());
        self.counted.bytes() + derived.sum::<usize>()
    }

    /// `n(u,v)`; `None` where both are of one attribute, or the pair is left out of the counted model. Time: the codes of
    /// both hosts, and each pair of those that go with u and v.
    pub fn n_both(&self, u: ValueNode, v: ValueNode) -> Option<u64> {
        if u.attribute == v.attribute {
            return None;
        }
        let (of_u, of_v) = (self.parts(u), self.parts(v));
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

    /// The counted values whose records, all disjoint, are those of a value.
    fn parts(&self, node: ValueNode) -> Vec<ValueNode> {
        let Some(derived) = self.derived.get(&node.attribute) else { return vec![node] };
        let beside = (0..).zip(&derived.of).filter(|(_, value)| **value == node.code);
        let parts = beside.map(|(code, _)| ValueNode { attribute: derived.host, code });
        parts.filter(|part| self.counted.n(*part) > 0).collect()
    }

    /// The model between all attributes: what would have been counted without the coarse level.
    ///
    /// # Errors
    /// None but for a window that has been broken by an error before.
    pub fn prolonged(&self) -> Result<Adjacency, AdjacencyError> {
        let mut fine = self.counted.clone();
        for (attribute, derived) in &self.derived {
            fine.derive(*attribute, derived.host, &derived.of)?;
        }
        Ok(fine)
    }
}

/// Notes the value beside each code of the host.
fn learn(of: &mut Vec<Code>, host: &[Code], values: &[Code]) {
    for (code, value) in host.iter().zip(values) {
        let at = *code as usize;
        if of.len() <= at {
            of.resize(at + 1, UNSEEN);
        }
        of[at] = *value;
    }
}

impl Derived {
    /// Does each code of the host still go with one value? What no record holds may go with any, once.
    fn admits(&mut self, host: &[Code], values: &[Code], is_held: impl Fn(Code) -> bool) -> bool {
        let mut fresh = BTreeSet::new();
        host.iter().zip(values).all(|(code, value)| {
            if self.of.get(*code as usize) == Some(value) {
                // What an expired record left behind is settled only now.
                if !is_held(*code) {
                    fresh.insert(*code);
                }
                return true;
            }
            let is_new = !is_held(*code) && fresh.insert(*code);
            if is_new {
                learn(&mut self.of, &[*code], &[*value]);
            }
            is_new
        })
    }
}

#[cfg(test)]
mod tests;
