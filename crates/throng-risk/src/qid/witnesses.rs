//! Witnesses: a few complete classes of a set, stored as rows.
//!
//! A class of X, split by c, gives classes of X ∪ {c}. A part below k proves a QID; otherwise the set is a *tentative*
//! non-QID.

use crate::counting::cpu::{ClassRows, RowField, RowMatrix};

pub(super) const MAX_WITNESS_CLASSES: usize = 6;

/// The first class may have more.
pub(super) const MAX_SPLIT_ROWS: usize = 1 << 9;

pub(super) struct WitnessStore {
    matrix: RowMatrix,
    fields: Vec<RowField>,
}

#[derive(Clone, Debug)]
pub(super) struct WitnessClass {
    pub(super) rows: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) enum WitnessJudgement {
    Qid,
    /// Smallest first.
    Tentative(Vec<WitnessClass>),
}

#[derive(Default)]
pub(super) struct WitnessScratch {
    codes: Vec<u32>,
    supports: Vec<u32>,
    last: Vec<u32>,
    subject: Vec<u32>,
    subjects: Vec<u32>,
    seen: Vec<u32>,
}

impl WitnessStore {
    pub(super) fn new(matrix: RowMatrix, columns: &[usize]) -> Self {
        let fields = columns.iter().map(|c| matrix.fields[*c]).collect();
        Self { matrix, fields }
    }

    pub(super) fn stored_bytes(&self) -> u64 {
        self.matrix.bytes.len() as u64
    }

    pub(super) fn add(&mut self, rows: ClassRows) -> impl Iterator<Item = WitnessClass> + use<> {
        let first = self.matrix.rows as u32;
        self.matrix.append(&rows.codes, &rows.subjects);
        rows.classes
            .into_iter()
            .map(move |rows| WitnessClass { rows: rows.into_iter().map(|row| first + row).collect() })
    }

    /// Each class comes with the column that its subset lacks.
    pub(super) fn judge_by_parents(
        &self,
        parents: &[(&WitnessClass, usize)],
        k: u32,
        scratch: &mut WitnessScratch,
    ) -> WitnessJudgement {
        let mut order: Vec<usize> = (0..parents.len()).collect();
        order.sort_by_key(|at| parents[*at].0.rows.len());
        // Support, parent, code and last row.
        let mut smallest: Vec<(u32, usize, u32, u32)> = Vec::new();
        let mut looked_at = 0;
        for at in order {
            let (class, column) = parents[at];
            if looked_at > 0 && looked_at + class.rows.len() > MAX_SPLIT_ROWS {
                break;
            }
            looked_at += class.rows.len();
            self.split(class, column, scratch);
            for &code in &scratch.seen {
                let support = std::mem::take(&mut scratch.supports[code as usize]);
                smallest.push((support, at, code, scratch.last[code as usize]));
            }
            if smallest.iter().any(|part| part.0 < k) {
                return WitnessJudgement::Qid;
            }
            smallest.sort_unstable_by_key(|(support, parent, _, row)| (*support, *row, *parent));
            smallest.dedup_by_key(|(support, _, _, row)| (*support, *row));
            smallest.truncate(MAX_WITNESS_CLASSES);
        }
        // Drops classes beyond the limit of split rows.
        let mut rows = 0;
        smallest.retain(|(support, ..)| {
            rows += *support as usize;
            rows <= MAX_SPLIT_ROWS || rows == *support as usize
        });
        let kept = smallest.into_iter().map(|(_, parent, code, _)| {
            let (class, column) = parents[parent];
            self.matrix.gather(self.fields[column], &class.rows, &mut scratch.codes);
            let rows = class.rows.iter().zip(&scratch.codes).filter(|(_, c)| **c == code).map(|(row, _)| *row);
            WitnessClass { rows: rows.collect() }
        });
        WitnessJudgement::Tentative(kept.collect())
    }

    fn split(&self, class: &WitnessClass, column: usize, scratch: &mut WitnessScratch) {
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
