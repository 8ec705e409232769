//! Reads whole classes from the table, as witnesses.
//!
//! A set without a kept class in a subset is counted on the table.

use super::witnesses::{MAX_SPLIT_ROWS, MAX_WITNESS_CLASSES, WitnessJudgement, WitnessStore};
use crate::counting::cpu::{ClassSize, SetVerdict, map_in_threads};
use crate::counting::{AttributeSet, ComputeError, CpuCounter};

const MAX_WITNESS_RECORDS: u32 = 1 << 14;

pub(super) struct TableClasses<'a> {
    pub counter: &'a CpuCounter<'a>,
    pub k: u32,
    pub max_witness_bytes: u64,
}

struct WitnessCandidate {
    at: usize,
    columns: Vec<usize>,
    codes: Vec<u32>,
    records: u32,
}

impl TableClasses<'_> {
    /// Judges each column and adds its smallest classes to `witnesses`.
    pub fn judge_columns(
        &self,
        columns: &[usize],
        witnesses: &mut WitnessStore,
    ) -> Result<Vec<WitnessJudgement>, ComputeError> {
        let mut sights = Vec::with_capacity(columns.len());
        let mut candidates = Vec::new();
        for (at, sizes) in self.value_sizes(columns)?.into_iter().enumerate() {
            if sizes.iter().any(|size| size.support < self.k) {
                sights.push(WitnessJudgement::Qid);
                continue;
            }
            sights.push(WitnessJudgement::Tentative(Vec::new()));
            let mut smallest: Vec<(u32, u32)> = (0..).zip(&sizes).map(|(code, size)| (size.records, code)).collect();
            smallest.sort_unstable();
            let mut sum = 0;
            for (place, (records, code)) in smallest.into_iter().take(MAX_WITNESS_CLASSES).enumerate() {
                sum += records as usize;
                if place == 0 || sum <= MAX_SPLIT_ROWS {
                    candidates.push(WitnessCandidate { at, columns: vec![columns[at]], codes: vec![code], records });
                }
            }
        }
        self.keep_smallest(candidates, witnesses, &mut sights)?;
        Ok(sights)
    }

    /// Judges sets; returns a class of each if small enough to keep.
    ///
    /// Sets not reached before `stop` are tentative, without a class.
    pub fn judge_sets_on_table(
        &self,
        sets: &[AttributeSet],
        witnesses: &mut WitnessStore,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<WitnessJudgement>, ComputeError> {
        let (mut sights, mut candidates) = (Vec::with_capacity(sets.len()), Vec::new());
        for (at, look) in self.counter.judge_with_smallest_class(sets, self.k, stop)?.into_iter().enumerate() {
            sights.push(if matches!(look, SetVerdict::Qid) {
                WitnessJudgement::Qid
            } else {
                WitnessJudgement::Tentative(Vec::new())
            });
            if let SetVerdict::NotQid(Some(class)) = look {
                let columns = sets[at].iter().collect();
                candidates.push(WitnessCandidate { at, columns, codes: class.codes, records: class.records });
            }
        }
        self.keep_smallest(candidates, witnesses, &mut sights)?;
        Ok(sights)
    }

    /// A row takes 4 bytes per cell while read, the row, and its number.
    fn keep_smallest(
        &self,
        mut candidates: Vec<WitnessCandidate>,
        witnesses: &mut WitnessStore,
        sights: &mut [WitnessJudgement],
    ) -> Result<(), ComputeError> {
        candidates.retain(|class| class.records <= MAX_WITNESS_RECORDS);
        candidates.sort_by_key(|class| (class.records, class.at));
        let row = 12 * self.counter.table().width() as u64 + 16;
        let mut room = self.max_witness_bytes.saturating_sub(witnesses.stored_bytes()) / row;
        candidates.retain(|class| {
            let fits = u64::from(class.records) <= room;
            room -= if fits { u64::from(class.records) } else { 0 };
            fits
        });
        if candidates.is_empty() {
            return Ok(());
        }
        let (at, asked): (Vec<usize>, Vec<(Vec<usize>, Vec<u32>)>) =
            candidates.into_iter().map(|class| (class.at, (class.columns, class.codes))).unzip();
        let rows = self.counter.class_rows(&asked)?;
        for (at, class) in at.into_iter().zip(witnesses.add(rows)) {
            if let WitnessJudgement::Tentative(classes) = &mut sights[at] {
                classes.push(class);
            }
        }
        Ok(())
    }

    fn value_sizes(&self, columns: &[usize]) -> Result<Vec<Vec<ClassSize>>, ComputeError> {
        let values = |at: usize| self.counter.column_value_sizes(columns[at]);
        map_in_threads(self.counter.threads(), columns.len(), &values).into_iter().collect()
    }
}
