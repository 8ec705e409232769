//! The search over a table that is larger than memory: the same descent and verification, with witnesses that are whole classes read
//! from the files.
//!
//! Single columns of a large table have no class that is small enough to be held. Sets are then counted on the table, level by level,
//! until their smallest classes are; from there on the descent sees as it does in memory.

use super::border;
use super::deeper::Deeper;
use super::question::{Borders, Clock, Progress, Question, Run, Strategy};
use super::witnesses::{Sight, Witnesses};
use super::{exhaustive, greedy};
use crate::counting::cpu::Matrix;
use crate::counting::spilled::{Look, Smallest};
use crate::counting::{AttributeSet, ComputeError, SpilledCounter};
use crate::risk::multigrid::Attributes;
use std::time::Instant;

/// Records of a class that is kept, at most.
const KEPT_RECORDS: u32 = 1 << 14;

/// Searches the border of a table in files. `kept` bytes of its rows may be held as witnesses.
///
/// # Errors
/// When the files cannot be read.
pub fn search_spilled(
    counter: &SpilledCounter<'_>,
    question: &Question,
    kept: u64,
    progress: &dyn Fn(Progress),
) -> Result<Borders, ComputeError> {
    let table = counter.table();
    let asked = match question.settled(table.width(), table.rows(), table.support()) {
        Ok(borders) => return Ok(borders),
        Err(asked) => asked,
    };
    let begun = Instant::now();
    let clock = Clock { budget: asked.budget, elapsed: &|| begun.elapsed() };
    let cardinalities: Vec<usize> = (0..table.width()).map(|column| table.cardinality(column)).collect();
    let run = Run { cardinalities: &cardinalities, counter, question: &asked, clock: &clock, progress };
    match asked.strategy {
        Strategy::Border => {
            let cardinality = |column: usize| cardinalities[column];
            let attributes = Attributes::by(&asked.columns, &cardinality, &mut |a, b| counter.implies(a, b))?;
            let matrix = Matrix::none(&cardinalities, table.subjects());
            let witnesses = Witnesses::of_some(matrix, attributes.kept());
            border::search(&run, &attributes, witnesses, Some(&OnTable { counter, k: asked.k, kept }))
        }
        Strategy::Greedy => greedy::search(&run),
        Strategy::Exhaustive => exhaustive::search(&run),
    }
}

/// Counts sets on the table.
struct OnTable<'a> {
    counter: &'a SpilledCounter<'a>,
    k: u32,
    kept: u64,
}

impl Deeper for OnTable<'_> {
    fn look(
        &self,
        sets: &[AttributeSet],
        witnesses: &mut Witnesses<'_>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Sight>, ComputeError> {
        let looks = self.counter.look(sets, self.k, stop)?;
        // The smallest first, as long as there is room: 4 bytes a cell while they are read, the row itself, its number.
        let mut chosen: Vec<(usize, &Smallest)> = Vec::new();
        for (at, look) in looks.iter().enumerate() {
            if let Look::Fine(Some(smallest)) = look
                && smallest.records <= KEPT_RECORDS
            {
                chosen.push((at, smallest));
            }
        }
        chosen.sort_by_key(|(at, smallest)| (smallest.records, *at));
        let row = 12 * self.counter.table().width() as u64 + 16;
        let mut room = self.kept.saturating_sub(witnesses.held()) / row;
        chosen.retain(|(_, smallest)| {
            let records = u64::from(smallest.records);
            let fits = records <= room;
            room -= if fits { records } else { 0 };
            fits
        });
        let of_set = |(at, smallest): &(usize, &Smallest)| (sets[*at].iter().collect(), smallest.codes.clone());
        let classes: Vec<(Vec<usize>, Vec<u32>)> = chosen.iter().map(of_set).collect();
        let rows = if classes.is_empty() { Vec::new() } else { self.counter.rows_of(&classes)? };
        let mut sights: Vec<Sight> = looks
            .iter()
            .map(|look| match look {
                Look::Qid => Sight::Qid,
                Look::Fine(_) | Look::Stopped => Sight::Tentative(Vec::new()),
            })
            .collect();
        for ((at, _), (codes, people)) in chosen.into_iter().zip(rows) {
            sights[at] = Sight::Tentative(vec![witnesses.add(&codes, &people)]);
        }
        Ok(sights)
    }
}
