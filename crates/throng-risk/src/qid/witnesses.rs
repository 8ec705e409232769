//! Witnesses: a few whole classes of a set, kept by their rows.
//!
//! A class of X, split by one more column c, gives whole classes of X ∪ {c}. So a set is proved a QID without a look at
//! the table where a class of one of its subsets splits into one below k, and otherwise inherits the smallest parts.
//! That no part is below k proves nothing: the set is then a *tentative* non-QID.

use crate::counting::cpu::{ClassRows, Field, Matrix};

/// Classes kept of a set.
pub(super) const KEPT: usize = 6;

/// Rows of the classes looked at for one set, unless the first class alone has more.
pub(super) const LOOKED_AT: usize = 1 << 9;

/// Splits classes of the searched columns.
pub(super) struct Witnesses {
    /// The rows that classes are made of.
    matrix: Matrix,
    /// Of the searched columns.
    fields: Vec<Field>,
}

/// A class of some set: its rows, ascending.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) rows: Vec<u32>,
}

/// What the classes of the subsets say about a set.
#[derive(Clone, Debug)]
pub(super) enum Sight {
    Qid,
    /// The smallest classes seen, smallest first.
    Tentative(Vec<Class>),
}

/// Counters of one thread.
#[derive(Default)]
pub(super) struct Scratch {
    codes: Vec<u32>,
    supports: Vec<u32>,
    last: Vec<u32>,
    subject: Vec<u32>,
    subjects: Vec<u32>,
    seen: Vec<u32>,
}

impl Witnesses {
    /// None so far, of a table whose rows `matrix` takes.
    pub(super) fn new(matrix: Matrix, columns: &[usize]) -> Self {
        let fields = columns.iter().map(|c| matrix.fields[*c]).collect();
        Self { matrix, fields }
    }

    /// Bytes of the rows that are here.
    pub(super) fn held(&self) -> u64 {
        self.matrix.bytes.len() as u64
    }

    /// Adds the rows of whole classes.
    pub(super) fn add(&mut self, rows: ClassRows) -> impl Iterator<Item = Class> + use<> {
        let first = self.matrix.rows as u32;
        self.matrix.append(&rows.codes, &rows.people);
        rows.classes.into_iter().map(move |rows| Class { rows: rows.into_iter().map(|row| first + row).collect() })
    }

    /// What classes of subsets, each with the one column that is missing there, say about the set.
    pub(super) fn of_parents(&self, parents: &[(&Class, usize)], k: u32, scratch: &mut Scratch) -> Sight {
        let mut order: Vec<usize> = (0..parents.len()).collect();
        order.sort_by_key(|at| parents[*at].0.rows.len());
        // Support, parent, code, and the first row: a class is known by any of its rows.
        let mut smallest: Vec<(u32, usize, u32, u32)> = Vec::new();
        let mut looked_at = 0;
        for at in order {
            let (class, column) = parents[at];
            if looked_at > 0 && looked_at + class.rows.len() > LOOKED_AT {
                break;
            }
            looked_at += class.rows.len();
            self.split(class, column, scratch);
            for &code in &scratch.seen {
                let support = std::mem::take(&mut scratch.supports[code as usize]);
                smallest.push((support, at, code, scratch.last[code as usize]));
            }
            if smallest.iter().any(|part| part.0 < k) {
                return Sight::Qid;
            }
            smallest.sort_unstable_by_key(|(support, parent, _, row)| (*support, *row, *parent));
            smallest.dedup_by_key(|(support, _, _, row)| (*support, *row));
            smallest.truncate(KEPT);
        }
        // Classes that nobody would look at are not kept.
        let mut rows = 0;
        smallest.retain(|(support, ..)| {
            rows += *support as usize;
            rows <= LOOKED_AT || rows == *support as usize
        });
        let kept = smallest.into_iter().map(|(_, parent, code, _)| {
            let (class, column) = parents[parent];
            self.matrix.gather(self.fields[column], &class.rows, &mut scratch.codes);
            let rows = class.rows.iter().zip(&scratch.codes).filter(|(_, c)| **c == code).map(|(row, _)| *row);
            Class { rows: rows.collect() }
        });
        Sight::Tentative(kept.collect())
    }

    /// Leaves the supports of the parts, the codes seen, and for each code the part's last row.
    fn split(&self, class: &Class, column: usize, scratch: &mut Scratch) {
        let cardinality = self.fields[column].cardinality;
        if scratch.supports.len() < cardinality {
            scratch.supports.resize(cardinality, 0);
            scratch.last.resize(cardinality, 0);
            scratch.subject.resize(cardinality, 0);
        }
        self.matrix.gather(self.fields[column], &class.rows, &mut scratch.codes);
        scratch.seen.clear();
        if let Some(subject) = self.matrix.subject {
            self.matrix.gather(subject, &class.rows, &mut scratch.subjects);
        }
        for (at, (&code, &row)) in scratch.codes.iter().zip(&class.rows).enumerate() {
            let support = &mut scratch.supports[code as usize];
            if *support == 0 {
                scratch.seen.push(code);
            }
            if self.matrix.subject.is_none() {
                *support += 1;
            } else {
                let before = std::mem::replace(&mut scratch.subject[code as usize], scratch.subjects[at]);
                *support += u32::from(*support == 0 || before != scratch.subjects[at]);
            }
            scratch.last[code as usize] = row;
        }
    }
}
