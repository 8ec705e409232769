//! Local recoding: every record takes the cheapest node of a ladder at which its class has support.

use super::crowd::{CrowdTable, Floor};
use super::population::Population;
use crate::anonymity::plan::Node;
use crate::ledger::at::LedgerAt;
use crate::records::codebook::{Code, Codebook, SUPPRESSED};
use std::collections::BTreeMap;

/// One quasi attribute of a batch: its codes by row, and the coverage digests by level and code.
struct Column<'a> {
    /// Position in the schema.
    attribute: usize,
    codes: &'a [Code],
    digests: Vec<&'a [u128]>,
    /// Digest of the suppressed cell.
    suppressed: u128,
}

/// The quasi attributes of one group over the rows of a batch.
///
/// The key of a row's class at a node is the sum (mod 2^128) of the group's digest and of one keyed coverage digest
/// an attribute (docs/methods.md §11.2): equal exactly when the printed tuples are equal, up to a collision of 128
/// keyed bits.
pub struct QuasiColumns<'a> {
    base: u128,
    suppressed: u128,
    columns: Vec<Column<'a>>,
    subjects: &'a [u64],
    /// People of whom each class needs enough beside its own subjects.
    populations: &'a [Population],
}

/// `node` of a row that no node of the ladder supports.
pub const UNRELEASED: u32 = u32::MAX;

/// Where the rows of a batch ended up, in one group.
pub struct Assignment {
    /// Index into the ladder, by row of the batch; [`UNRELEASED`] where there was none.
    pub node: Vec<u32>,
    /// Class key, by row of the batch.
    pub class: Vec<u128>,
    /// What counts toward the classes, where recoding was strict.
    pub counted: Option<Counted>,
    /// Rows whose protected sensitive cells stay suppressed, by row; empty where none do for that reason.
    pub silent: Vec<bool>,
    /// Rows that count for nobody here, by row: their subjects have spent their budgets. Empty where none has.
    pub muted: Vec<bool>,
}

impl Assignment {
    /// Nothing is released of `rows` rows.
    #[must_use]
    pub fn nothing(rows: usize) -> Self {
        Self {
            node: vec![UNRELEASED; rows],
            class: vec![0; rows],
            counted: None,
            silent: Vec::new(),
            muted: Vec::new(),
        }
    }
}

/// What counts toward the classes of an [`Assignment`].
pub struct Counted {
    /// Subjects of earlier releases whose raw tuples count, by class that leaves; at most k.
    pub earlier: BTreeMap<u128, Vec<u64>>,
    /// Rows of the batch that support nobody, by row.
    pub excluded: Vec<bool>,
}

impl<'a> QuasiColumns<'a> {
    /// `columns` and `subjects` are the batch's (all attributes, all rows); `base` names the set of attributes.
    #[must_use]
    pub fn new(
        base: u128,
        attributes: &[usize],
        columns: &'a [Vec<Code>],
        subjects: &'a [u64],
        books: &'a [Codebook],
    ) -> Self {
        let mut suppressed = base;
        let columns = attributes
            .iter()
            .map(|&a| {
                let book = &books[a];
                let of_suppressed = book.digest(SUPPRESSED);
                suppressed = suppressed.wrapping_add(of_suppressed);
                let digests = (0..book.levels()).map(|level| book.digests(level)).collect();
                Column { attribute: a, codes: &columns[a], digests, suppressed: of_suppressed }
            })
            .collect();
        Self { base, suppressed, columns, subjects, populations: &[] }
    }

    /// The same, where a class may leave only if every one of `populations` accepts it.
    #[must_use]
    pub fn among(self, populations: &'a [Population]) -> Self {
        Self { populations, ..self }
    }

    /// Whether every population accepts the class of `row` at `levels`; it does where there is none.
    #[must_use]
    pub fn is_populous(&self, row: u32, levels: &[u8]) -> bool {
        self.accepted(levels, |column, _| column.codes[row as usize])
    }

    /// As [`is_populous`](Self::is_populous), of the raw tuple `codes`.
    #[must_use]
    pub fn is_tuple_populous(&self, codes: &[Code], levels: &[u8]) -> bool {
        self.accepted(levels, |_, at| codes[at])
    }

    fn accepted(&self, levels: &[u8], code: impl Fn(&Column<'_>, usize) -> Code) -> bool {
        self.populations.iter().all(|population| {
            let cells = self.columns.iter().enumerate().zip(levels);
            population.accepts(cells.filter_map(|((at, column), &level)| {
                let cell = column.digests[level as usize][code(column, at) as usize];
                (cell != column.suppressed).then_some((column.attribute, cell))
            }))
        })
    }

    /// Class key of `row` at `levels`, one level an attribute.
    #[inline]
    #[must_use]
    pub fn key(&self, row: u32, levels: &[u8]) -> u128 {
        let mut key = self.base;
        for (column, &level) in self.columns.iter().zip(levels) {
            key = key.wrapping_add(column.digests[level as usize][column.codes[row as usize] as usize]);
        }
        key
    }

    /// Class keys of `rows` at `levels`, in their order. Attribute after attribute, so that only one table of digests at a
    /// time competes for the cache.
    fn keys(&self, rows: &[u32], levels: &[u8], keys: &mut Vec<u128>) {
        keys.clear();
        keys.resize(rows.len(), self.base);
        for (column, &level) in self.columns.iter().zip(levels) {
            let (digests, codes) = (&column.digests[level as usize], column.codes);
            for (key, &row) in keys.iter_mut().zip(rows) {
                *key = key.wrapping_add(digests[codes[row as usize] as usize]);
            }
        }
    }

    /// Class key of the raw tuple `codes`, one code an attribute, at `levels`.
    #[must_use]
    pub fn key_of(&self, codes: &[Code], levels: &[u8]) -> u128 {
        let cells = self.columns.iter().zip(codes).zip(levels);
        cells.fold(self.base, |key, ((column, &code), &level)| {
            key.wrapping_add(column.digests[level as usize][code as usize])
        })
    }

    /// Key of the tuple in which every cell is suppressed: a fragment that says nothing and never leaves.
    #[must_use]
    pub fn suppressed_key(&self) -> u128 {
        self.suppressed
    }

    /// The subject of a row.
    #[must_use]
    pub fn subject(&self, row: u32) -> u64 {
        self.subjects[row as usize]
    }

    pub(super) fn rows(&self) -> usize {
        self.subjects.len()
    }
}

/// Assigns each of `rows` the first node of `ladder` at which its class has the crowd of `floor`, counting the rows that
/// reached this node and what the ledger knows, and enough people in every population. Rows that took a finer node do not
/// count: their printed tuple is another one.
///
/// Time: O(Σ over nodes of the rows left × attributes); memory: O(rows × k).
#[must_use]
pub fn recode(
    columns: &QuasiColumns<'_>,
    ladder: &[Node],
    rows: &[u32],
    floor: Floor,
    ledger: &LedgerAt<'_>,
) -> Assignment {
    let mut assignment = Assignment::nothing(columns.rows());
    let mut left = rows.to_vec();
    let mut at_node = AtNode::new(floor, left.len());
    for (index, node) in ladder.iter().enumerate() {
        if left.is_empty() {
            break;
        }
        at_node.gather_with(columns, node, &left, ledger);
        let mut at = 0;
        left.retain(|&row| {
            let here = at;
            at += 1;
            if at_node.keys[here] == columns.suppressed || !at_node.may_leave(at_node.classes[here]) {
                return true;
            }
            assignment.node[row as usize] = u32::try_from(index).expect("a ladder is short");
            assignment.class[row as usize] = at_node.keys[here];
            false
        });
    }
    assignment
}

/// The rows that have reached one node: their classes there and the crowds of these.
pub(super) struct AtNode {
    pub crowds: CrowdTable,
    /// Key of each row's class.
    pub keys: Vec<u128>,
    /// Number of each row's class in `crowds`.
    pub classes: Vec<u32>,
    /// By class that has support: whether every population accepts it. Empty where there is none.
    populous: Vec<bool>,
}

impl AtNode {
    pub fn new(floor: Floor, rows: usize) -> Self {
        Self {
            crowds: CrowdTable::new(floor, rows),
            keys: Vec::with_capacity(rows),
            classes: Vec::with_capacity(rows),
            populous: Vec::new(),
        }
    }

    /// Whether a class has its crowd, and enough people in every population.
    #[inline]
    pub fn may_leave(&self, class: u32) -> bool {
        self.crowds.supported(class) && self.populous.get(class as usize).is_none_or(|populous| *populous)
    }

    /// Forgets the node before and takes `rows` to `node`, where classes have the earlier releases that `ledger` knows.
    pub fn gather_with(&mut self, columns: &QuasiColumns<'_>, node: &Node, rows: &[u32], ledger: &LedgerAt<'_>) {
        self.gather(columns, node, rows, |class, out| ledger.fresh_subjects(class, out));
    }

    /// Forgets the node before and takes `rows` to `node`, where classes have `others`, too (see [`CrowdTable::complete`]).
    pub fn gather(
        &mut self,
        columns: &QuasiColumns<'_>,
        node: &Node,
        rows: &[u32],
        others: impl Fn(u128, &mut [u64]) -> usize,
    ) {
        self.crowds.restart();
        columns.keys(rows, &node.levels, &mut self.keys);
        self.classes.clear();
        for (&key, &row) in self.keys.iter().zip(rows) {
            self.classes.push(self.crowds.add(key, columns.subject(row)));
        }
        self.crowds.complete(others);
        self.populous.clear();
        if columns.populations.is_empty() {
            return;
        }
        for (&class, &row) in self.classes.iter().zip(rows) {
            // Classes are numbered as they come: each is asked for with its first row.
            if class as usize == self.populous.len() {
                let populous = self.crowds.supported(class) && columns.is_populous(row, &node.levels);
                self.populous.push(populous);
            }
        }
    }
}
