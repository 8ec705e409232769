//! Where witnesses come from: whole classes of some sets, read from the table.
//!
//! The descent begins with the smallest classes of each column. A class of a large table may have more rows than are kept; where every class
//! of the parts of a set has, the set is counted on the table itself, level by level, until its smallest class is small enough.

use super::witnesses::{KEPT, LOOKED_AT, Sight, Witnesses};
use crate::counting::cpu::{ClassSize, Look, map_in_threads};
use crate::counting::{AttributeSet, ComputeError, CpuCounter};

/// Records of a class that is kept, at most.
const KEPT_RECORDS: u32 = 1 << 14;

/// Looks at the whole table.
pub(super) struct TableClasses<'a> {
    pub counter: &'a CpuCounter<'a>,
    pub k: u32,
    /// Bytes of rows that may be held as witnesses.
    pub kept: u64,
}

/// A class of a set: the place of the set, the columns and their codes, and the records.
struct Candidate {
    at: usize,
    columns: Vec<usize>,
    codes: Vec<u32>,
    records: u32,
}

impl TableClasses<'_> {
    /// What each column is, and its smallest classes; `witnesses` get their rows.
    pub fn of_columns(&self, columns: &[usize], witnesses: &mut Witnesses) -> Result<Vec<Sight>, ComputeError> {
        let mut sights = Vec::with_capacity(columns.len());
        let mut candidates = Vec::new();
        for (at, sizes) in self.sizes(columns)?.into_iter().enumerate() {
            if sizes.iter().any(|size| size.support < self.k) {
                sights.push(Sight::Qid);
                continue;
            }
            sights.push(Sight::Tentative(Vec::new()));
            let mut smallest: Vec<(u32, u32)> = (0..).zip(&sizes).map(|(code, size)| (size.records, code)).collect();
            smallest.sort_unstable();
            let mut sum = 0;
            for (place, (records, code)) in smallest.into_iter().take(KEPT).enumerate() {
                sum += records as usize;
                if place == 0 || sum <= LOOKED_AT {
                    candidates.push(Candidate { at, columns: vec![columns[at]], codes: vec![code], records });
                }
            }
        }
        self.keep(candidates, witnesses, &mut sights)?;
        Ok(sights)
    }

    /// What each set is, and a class of it where one is small enough to be kept. Sets that `stop` came before are tentative, without a
    /// class.
    pub fn of_sets(
        &self,
        sets: &[AttributeSet],
        witnesses: &mut Witnesses,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Sight>, ComputeError> {
        let (mut sights, mut candidates) = (Vec::with_capacity(sets.len()), Vec::new());
        for (at, look) in self.counter.look(sets, self.k, stop)?.into_iter().enumerate() {
            sights.push(if matches!(look, Look::Qid) { Sight::Qid } else { Sight::Tentative(Vec::new()) });
            if let Look::Fine(Some(class)) = look {
                let columns = sets[at].iter().collect();
                candidates.push(Candidate { at, columns, codes: class.codes, records: class.records });
            }
        }
        self.keep(candidates, witnesses, &mut sights)?;
        Ok(sights)
    }

    /// Keeps the smallest classes, as long as there is room: 4 bytes a cell while they are read, the row itself, its number.
    fn keep(
        &self,
        mut candidates: Vec<Candidate>,
        witnesses: &mut Witnesses,
        sights: &mut [Sight],
    ) -> Result<(), ComputeError> {
        candidates.retain(|class| class.records <= KEPT_RECORDS);
        candidates.sort_by_key(|class| (class.records, class.at));
        let row = 12 * self.counter.table().width() as u64 + 16;
        let mut room = self.kept.saturating_sub(witnesses.held()) / row;
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
        let rows = self.counter.rows_of(&asked)?;
        for (at, class) in at.into_iter().zip(witnesses.add(rows)) {
            if let Sight::Tentative(classes) = &mut sights[at] {
                classes.push(class);
            }
        }
        Ok(())
    }

    /// Support and records of each value of the columns.
    fn sizes(&self, columns: &[usize]) -> Result<Vec<Vec<ClassSize>>, ComputeError> {
        let values = |at: usize| self.counter.values(columns[at]);
        map_in_threads(self.counter.threads(), columns.len(), &values).into_iter().collect()
    }
}
