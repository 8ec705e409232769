//! The aggregation of a window, kept while records come and go.
//!
//! The nodes that the records of the window cannot tell apart form one class; each record splits every class that it
//! has in part (partition refinement). So the record that breaks a certainty splits its node before it is counted, and
//! the counts of both halves are those of the whole: up to then every record had both. A record that leaves had its
//! classes whole. What it alone told apart becomes one again, which the counts say: n(C, D) = n(C) = n(D).

use super::counts::{Counts, Node};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// The classes of nodes with the same records, and the counts between them. At any time what would be found in the
/// window anew.
///
/// Implications one way are not followed here: [`Exact::of`](super::Exact::of) of the coarse counts finds them and all
/// further levels.
///
/// Memory: two entries a coarse edge and one a value of the window; what has left it leaves nothing behind.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// For each attribute, the class of each code in the window.
    class: Vec<HashMap<u32, usize>>,
    /// Freed numbers are used again.
    classes: Vec<Class>,
    free: Vec<usize>,
    splits: u64,
    merges: u64,
}

/// A value of an attribute: both numbers.
type Value = (u32, u32);

#[derive(Clone, Debug, Default)]
struct Class {
    members: Vec<Value>,
    records: u32,
    /// Records with another class, above zero.
    with: HashMap<usize, u32>,
}

impl Stream {
    /// An empty window of `width` attributes.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self { class: vec![HashMap::new(); width], ..Self::default() }
    }

    /// A record comes: a code an attribute. A missing value is a code like any other.
    ///
    /// Time: pairs of the record's classes, and the neighbours of a class that is split.
    ///
    /// # Panics
    /// If the record has another width.
    pub fn add(&mut self, codes: &[u32]) {
        assert_eq!(codes.len(), self.class.len(), "a record has a code for each attribute");
        let mut met: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
        let mut fresh = Vec::new();
        for (attribute, (code, classes)) in (0..).zip(codes.iter().zip(&self.class)) {
            match classes.get(code) {
                Some(class) => met.entry(*class).or_default().push((attribute, *code)),
                None => fresh.push((attribute, *code)),
            }
        }
        let mut here = Vec::with_capacity(met.len() + 1);
        for (class, members) in met {
            let whole = members.len() == self.classes[class].members.len();
            here.push(if whole { class } else { self.split(class, members) });
        }
        if !fresh.is_empty() {
            here.push(self.found(Class { members: fresh, ..Class::default() }));
        }
        for (at, &class) in here.iter().enumerate() {
            self.classes[class].records += 1;
            for &other in &here[at + 1..] {
                *self.classes[class].with.entry(other).or_insert(0) += 1;
                *self.classes[other].with.entry(class).or_insert(0) += 1;
            }
        }
    }

    /// A record that had come goes.
    ///
    /// Time: pairs of the record's classes, and the neighbours of each.
    ///
    /// # Panics
    /// If no such record has come, as far as the counts can tell.
    pub fn expire(&mut self, codes: &[u32]) {
        assert_eq!(codes.len(), self.class.len(), "a record has a code for each attribute");
        let class_of = |(code, classes): (&u32, &HashMap<u32, usize>)| *classes.get(code).expect("the record has come");
        let mut here: Vec<usize> = codes.iter().zip(&self.class).map(class_of).collect();
        here.sort_unstable();
        here.dedup();
        for (at, &class) in here.iter().enumerate() {
            self.classes[class].records -= 1;
            for &other in &here[at + 1..] {
                self.forget(class, other);
                self.forget(other, class);
            }
        }
        for class in here {
            if self.classes[class].records == 0 {
                self.dissolve(class);
            } else {
                self.merge(class);
            }
        }
    }

    /// Aggregated nodes of the window: classes, each with its values as (attribute, code), ascending.
    #[must_use]
    pub fn classes(&self) -> Vec<Vec<Value>> {
        let values = |class: &Class| {
            let mut values = class.members.clone();
            values.sort_unstable();
            values
        };
        let mut classes: Vec<Vec<Value>> = self.classes.iter().filter(|c| c.records > 0).map(values).collect();
        classes.sort_unstable();
        classes
    }

    /// The coarse counts, a node for each of [`classes`](Self::classes) in its order, and the attribute of each: that of
    /// its first value.
    #[must_use]
    pub fn counts(&self) -> (Counts, Vec<u32>) {
        let first = |(number, class): (usize, &Class)| Some((*class.members.iter().min()?, number));
        let mut order: Vec<(Value, usize)> = self.classes.iter().enumerate().filter_map(first).collect();
        order.sort_unstable();
        let number: HashMap<usize, Node> = order.iter().map(|(_, class)| *class).zip(0..).collect();
        let nodes = order.iter().map(|(_, class)| self.classes[*class].records).collect();
        let pairs = order.iter().flat_map(|(_, class)| {
            let u = number[class];
            let with = self.classes[*class].with.iter().map(|(other, n)| (number[other], *n));
            with.filter(move |(v, _)| u < *v).map(move |(v, n)| (u, v, n)).collect::<Vec<_>>()
        });
        (Counts::new(nodes, pairs), order.iter().map(|((attribute, _), _)| *attribute).collect())
    }

    /// Classes split and merged so far.
    #[must_use]
    pub fn changes(&self) -> (u64, u64) {
        (self.splits, self.merges)
    }

    /// A class of its own, under the number that comes back.
    fn found(&mut self, class: Class) -> usize {
        let number = self.free.pop().unwrap_or(self.classes.len());
        self.assign(&class.members, number);
        if number == self.classes.len() {
            self.classes.push(class);
        } else {
            self.classes[number] = class;
        }
        number
    }

    fn assign(&mut self, members: &[Value], number: usize) {
        for (attribute, code) in members {
            self.class[*attribute as usize].insert(*code, number);
        }
    }

    /// Takes members out of a class; until now both halves were in the same records.
    fn split(&mut self, class: usize, members: Vec<Value>) -> usize {
        self.splits += 1;
        let whole = &mut self.classes[class];
        whole.members.retain(|value| !members.contains(value));
        let half = Class { members, records: whole.records, with: whole.with.clone() };
        let number = self.found(half);
        let neighbours: Vec<(usize, u32)> = self.classes[number].with.iter().map(|(other, n)| (*other, *n)).collect();
        for (other, n) in neighbours {
            self.classes[other].with.insert(number, n);
        }
        let records = self.classes[class].records;
        self.classes[class].with.insert(number, records);
        self.classes[number].with.insert(class, records);
        number
    }

    /// One record less with both.
    fn forget(&mut self, class: usize, other: usize) {
        let with = self.classes[class].with.get_mut(&other).expect("the record has come");
        *with -= 1;
        if *with == 0 {
            self.classes[class].with.remove(&other);
        }
    }

    /// Its last record has gone, and with it every edge.
    fn dissolve(&mut self, class: usize) {
        let gone = std::mem::take(&mut self.classes[class]);
        for (attribute, code) in gone.members {
            self.class[attribute as usize].remove(&code);
        }
        self.free.push(class);
    }

    /// Joins to a class whatever now has the same records.
    fn merge(&mut self, class: usize) {
        let records = self.classes[class].records;
        let same =
            |(other, n): (&usize, &u32)| (*n == records && self.classes[*other].records == records).then_some(*other);
        let others: Vec<usize> = self.classes[class].with.iter().filter_map(same).collect();
        for other in others {
            self.merges += 1;
            let gone = std::mem::take(&mut self.classes[other]);
            self.assign(&gone.members, class);
            self.classes[class].members.extend(gone.members);
            gone.with.into_keys().for_each(|neighbour| {
                self.classes[neighbour].with.remove(&other);
            });
            self.free.push(other);
        }
    }
}
