//! Which raw tuples an observer can exclude from a class (docs/methods.md §11.4).
//!
//! *Excludable.* A raw tuple is excludable from a fragment of node ν when, had one more record with it and of somebody
//! new been in this batch, that record would have left at a node before ν: because its class there leaves in this very
//! batch, or because the class is *open*, that is, the earlier releases in it whose raw tuples are not excludable
//! there have at least k − 1 distinct subjects. The first such node is the tuple's *exit*. A class that a population
//! refuses takes nobody, and is the exit of nothing.
//!
//! Exits are computed only for the tuples and only as far as somebody asks. The exit of a tuple asks for the openness of
//! classes at earlier nodes, which asks for exits before those nodes: it always ends, without recursion.

use super::recode::QuasiColumns;
use crate::anonymity::plan::Node;
use crate::ledger::at::WitnessesAt;
use crate::records::digest::BuildClassKeyHash;
use hashbrown::{HashMap, HashSet};

/// How far a raw tuple has been followed: it leaves at no node before `next`, and at `next` if `exited`.
#[derive(Clone, Copy, Default)]
struct Walk {
    next: u32,
    exited: bool,
}

/// Which raw tuples are excludable, in one group of one batch: their exits, as far as they are known.
pub struct Exclusion<'a> {
    columns: &'a QuasiColumns<'a>,
    ladder: &'a [Node],
    k: usize,
    witnessed: WitnessesAt<'a>,
    /// Classes that leave in this batch.
    left: HashSet<u128, BuildClassKeyHash>,
    /// Classes by openness. One coverage has one openness: the cheapest node that prints it decides, later ones only
    /// see fewer tuples.
    open: HashMap<u128, bool, BuildClassKeyHash>,
    walks: HashMap<u32, Walk>,
}

/// What is needed before a class can be judged: how far this tuple walks.
struct Unsettled(u32);

impl<'a> Exclusion<'a> {
    /// Nothing is known yet of the tuples in `columns`, the quasi attributes of a group with `ladder`.
    #[must_use]
    pub fn new(columns: &'a QuasiColumns<'a>, ladder: &'a [Node], k: usize, witnessed: WitnessesAt<'a>) -> Self {
        Self {
            columns,
            ladder,
            k,
            witnessed,
            left: HashSet::default(),
            open: HashMap::default(),
            walks: HashMap::new(),
        }
    }

    /// Notes that `class` leaves in this batch.
    pub fn leaves(&mut self, class: u128) {
        self.left.insert(class);
    }

    /// Distinct subjects, at most k, of earlier releases in `class` whose raw tuple cannot be excluded at node number
    /// `node`. All nodes before it must have been settled.
    pub fn survivors(&mut self, class: u128, node: u32) -> Vec<u64> {
        let mut subjects = Vec::new();
        for witness in self.witnessed.of_class(class) {
            if subjects.len() >= self.k {
                break;
            }
            if !subjects.contains(&witness.subject) && self.witnessed.is_fresh(witness) {
                self.walk(witness.raw, node);
                if self.survives(witness.raw, node) == Some(true) {
                    subjects.push(witness.subject);
                }
            }
        }
        subjects
    }

    /// Whether a tuple has no exit before `node`, as far as it has been followed.
    fn survives(&self, raw: u32, node: u32) -> Option<bool> {
        let walk = self.walks.get(&raw).copied().unwrap_or_default();
        if walk.next >= node {
            Some(true)
        } else if walk.exited {
            Some(false)
        } else {
            None
        }
    }

    /// Follows a tuple to its exit, or to `until`.
    fn walk(&mut self, raw: u32, until: u32) {
        let mut stack = vec![(raw, until)];
        while let Some(&(raw, until)) = stack.last() {
            let mut walk = self.walks.get(&raw).copied().unwrap_or_default();
            let codes = self.witnessed.raw_tuple(raw);
            let mut first = None;
            while !walk.exited && walk.next < until {
                let levels = &self.ladder[walk.next as usize].levels;
                match self.takes(self.columns.key_of(codes, levels), walk.next) {
                    Ok(true) if self.columns.is_tuple_populous(codes, levels) => walk.exited = true,
                    Ok(_) => walk.next += 1,
                    Err(Unsettled(other)) => {
                        first = Some((other, walk.next));
                        break;
                    }
                }
            }
            self.walks.insert(raw, walk);
            match first {
                Some(before) => stack.push(before),
                None => {
                    stack.pop();
                }
            }
        }
    }

    /// Whether `class` would take one more record at `node`.
    fn takes(&mut self, class: u128, node: u32) -> Result<bool, Unsettled> {
        if self.left.contains(&class) {
            return Ok(true);
        }
        let witnesses = self.witnessed.of_class(class);
        if witnesses.len() + 1 < self.k || class == self.columns.suppressed_key() {
            return Ok(false);
        }
        if let Some(&open) = self.open.get(&class) {
            return Ok(open);
        }
        let mut subjects: Vec<u64> = Vec::with_capacity(self.k);
        for witness in witnesses {
            if subjects.len() + 1 >= self.k {
                break;
            }
            if !subjects.contains(&witness.subject) && self.witnessed.is_fresh(witness) {
                match self.survives(witness.raw, node) {
                    Some(true) => subjects.push(witness.subject),
                    Some(false) => {}
                    None => return Err(Unsettled(witness.raw)),
                }
            }
        }
        let open = subjects.len() + 1 >= self.k;
        self.open.insert(class, open);
        Ok(open)
    }
}
