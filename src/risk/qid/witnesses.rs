//! Witnesses: a few whole classes of a set, kept by their rows.
//!
//! A class of X, split by one more column c, gives whole classes of X ∪ {c}. So a set is proved a QID without a look at
//! the table where a class of one of its subsets splits into one below k, and otherwise inherits the smallest parts.
//! That no part is below k proves nothing: the set is then a *tentative* non-QID.

use crate::counting::cpu::{Field, Matrix};

/// Classes kept of a set.
const KEPT: usize = 6;

/// Rows of the classes looked at for one set, unless the first class alone has more.
const LOOKED_AT: usize = 1 << 9;

/// Splits classes of the searched columns.
pub(super) struct Witnesses<'a> {
    matrix: Rows<'a>,
    /// Of the searched columns.
    fields: Vec<Field>,
}

/// The rows that classes are made of.
enum Rows<'a> {
    /// Those of the whole table.
    All(&'a Matrix),
    /// Whole classes of it.
    Some(Matrix),
}

impl std::ops::Deref for Rows<'_> {
    type Target = Matrix;

    fn deref(&self) -> &Matrix {
        match self {
            Self::All(matrix) => matrix,
            Self::Some(matrix) => matrix,
        }
    }
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

impl<'a> Witnesses<'a> {
    pub(super) fn new(matrix: &'a Matrix, columns: &[usize]) -> Self {
        Self { matrix: Rows::All(matrix), fields: columns.iter().map(|c| matrix.fields[*c]).collect() }
    }

    /// Classes of a table that is not here: none so far.
    pub(super) fn of_some(matrix: Matrix, columns: &[usize]) -> Self {
        let fields = columns.iter().map(|c| matrix.fields[*c]).collect();
        Self { matrix: Rows::Some(matrix), fields }
    }

    /// Bytes of the rows that are here.
    pub(super) fn held(&self) -> u64 {
        self.matrix.bytes.len() as u64
    }

    /// Adds rows, a whole class of some set: codes by column, and their people, ascending.
    pub(super) fn add(&mut self, codes: &[Vec<u32>], people: &[u32]) -> Class {
        let Rows::Some(matrix) = &mut self.matrix else { return Class { rows: Vec::new() } };
        let first = matrix.rows as u32;
        matrix.append(codes, people);
        Class { rows: (first..matrix.rows as u32).collect() }
    }

    /// The classes of one column, from all its supports.
    pub(super) fn of_column(&self, column: usize, k: u32, scratch: &mut Scratch) -> Sight {
        let (field, matrix) = (self.fields[column], &*self.matrix);
        let mut supports = vec![0_u32; field.cardinality];
        let mut sizes = vec![0_usize; field.cardinality];
        let rows = || 0..matrix.rows;
        field.each(&matrix.bytes, matrix.stride, rows(), |code| sizes[code as usize] += 1);
        match matrix.subject {
            None => supports.iter_mut().zip(&sizes).for_each(|(support, size)| *support = *size as u32),
            Some(subject) => {
                scratch.subjects.clear();
                subject.each(&matrix.bytes, matrix.stride, rows(), |subject| scratch.subjects.push(subject));
                let mut last = vec![u32::MAX; field.cardinality];
                let mut row = 0;
                field.each(&matrix.bytes, matrix.stride, rows(), |code| {
                    let before = std::mem::replace(&mut last[code as usize], scratch.subjects[row]);
                    supports[code as usize] += u32::from(before != scratch.subjects[row]);
                    row += 1;
                });
            }
        }
        if supports.iter().any(|support| *support < k) {
            return Sight::Qid;
        }
        let mut smallest: Vec<usize> = (0..field.cardinality).collect();
        smallest.sort_by_key(|code| (sizes[*code], *code));
        let mut sum = 0;
        let mut kept = vec![usize::MAX; field.cardinality];
        let mut classes = Vec::new();
        for code in smallest.into_iter().take(KEPT) {
            sum += sizes[code];
            if classes.is_empty() || sum <= LOOKED_AT {
                kept[code] = classes.len();
                classes.push(Class { rows: Vec::with_capacity(sizes[code]) });
            }
        }
        let mut row = 0;
        field.each(&matrix.bytes, matrix.stride, rows(), |code| {
            if let Some(class) = classes.get_mut(kept[code as usize]) {
                class.rows.push(row);
            }
            row += 1;
        });
        Sight::Tentative(classes)
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
