//! The sensitive cells that leave beside a class: each where its own value has support, and where models protect the
//! attribute, where the whole class satisfies them.
//!
//! A class shows what this batch adds of a protected attribute as a whole, or shows nothing of it. Leaving out single
//! rows until a model holds would tell what they are: the most frequent value.

use super::crowd::Floor;
use super::hide::Models;
use super::recode::{QuasiColumns, UNRELEASED};
use super::strict::recode_as_kept;
use crate::anonymity::plan::Node;
use crate::anonymity::privacy::Room;
use crate::anonymity::privacy::protection::ClassJudge;
use crate::ledger::at::LedgerAt;
use crate::records::codebook::{CellId, Codebook, SUPPRESSED};
use crate::records::digest::{BuildClassKeyHash, value_number};
use crate::records::table::Batch;
use hashbrown::{HashMap, HashSet};

/// A sensitive attribute that models protect.
#[derive(Clone, Debug)]
pub struct Protected {
    /// Its position in the schema.
    pub attribute: usize,
    /// None as long as there is no distribution to compare with: nothing is shown.
    pub judge: Option<ClassJudge>,
}

/// What the sensitive cells of one batch depend on.
pub(super) struct SensitiveCells<'a> {
    pub batch: &'a Batch,
    pub books: &'a [Codebook],
    pub floor: Floor,
    /// Digest of "this attribute, beside a class", by attribute.
    pub bases: &'a [u128],
}

impl SensitiveCells<'_> {
    /// Each of `rows` at the finest level below `levels` at which its value has support among them.
    pub fn supported(&self, attribute: usize, levels: usize, rows: &[u32], ledger: &LedgerAt<'_>) -> Vec<CellId> {
        let (book, base) = (&self.books[attribute], self.bases[attribute]);
        let levels = u8::try_from(levels).expect("hierarchies are low");
        let ladder: Vec<Node> = (0..levels).map(|level| Node { levels: vec![level], loss: 0.0 }).collect();
        let columns = QuasiColumns::new(base, &[attribute], &self.batch.columns, &self.batch.subjects, self.books);
        let assignment = recode_as_kept(&columns, &ladder, rows, self.floor, ledger);
        let cell = |(row, &node): (usize, &u32)| match node {
            UNRELEASED => SUPPRESSED,
            node => book.cell(self.batch.columns[attribute][row], node as usize),
        };
        assignment.node.iter().enumerate().map(cell).collect()
    }

    /// What a row would show: class, value, subject.
    pub fn showing(&self, attribute: usize, class: u128, row: u32) -> (u128, u64, u64) {
        let code = self.batch.columns[attribute][row as usize];
        let coverage = self.books[attribute].digests(0)[code as usize];
        (class, value_number(coverage), self.batch.subjects[row as usize])
    }
}

/// Judges classes by what they show and have shown.
pub(super) struct ModelCheck<'a> {
    judge: &'a ClassJudge,
    floor: Floor,
    ledger: LedgerAt<'a>,
    /// What has been shown, by class that somebody asked about.
    earlier: HashMap<u128, Vec<(u64, u64)>, BuildClassKeyHash>,
    pairs: Vec<(u64, u64)>,
    room: Room,
}

impl<'a> ModelCheck<'a> {
    pub fn new(judge: &'a ClassJudge, floor: Floor, ledger: LedgerAt<'a>) -> Self {
        Self { judge, floor, ledger, earlier: HashMap::default(), pairs: Vec::new(), room: Room::default() }
    }

    /// The classes of `showings` (class, value, subject) that may not show them.
    pub fn refused(&mut self, showings: &mut [(u128, u64, u64)]) -> HashSet<u128, BuildClassKeyHash> {
        showings.sort_unstable();
        let of_classes = showings.chunk_by(|a, b| a.0 == b.0);
        of_classes.filter(|of_class| !self.accepts(of_class)).map(|of_class| of_class[0].0).collect()
    }

    /// Whether one class may show `showings`, at least one: together with what it has shown, and by themselves where
    /// readers see the batch arrive.
    pub fn accepts(&mut self, showings: &[(u128, u64, u64)]) -> bool {
        let Self { judge, floor, ledger, earlier, pairs, room } = self;
        let class = showings[0].0;
        let earlier = earlier.entry(class).or_insert_with(|| {
            let mut pairs = Vec::new();
            if let Some(shown) = ledger.shown() {
                shown.pairs(judge.attribute, class, &mut pairs);
            }
            pairs
        });
        pairs.clear();
        pairs.extend(showings.iter().map(|&(_, value, subject)| (value, subject)));
        if floor.batch > 0 && !earlier.is_empty() && !judge.accepts(pairs, room) {
            return false;
        }
        pairs.extend_from_slice(earlier);
        judge.accepts(pairs, room)
    }
}

/// The models of a stream: each protected attribute with its judge.
pub(super) struct StreamModels<'a> {
    cells: SensitiveCells<'a>,
    checks: Vec<(usize, ModelCheck<'a>)>,
}

impl<'a> StreamModels<'a> {
    pub fn new(
        cells: SensitiveCells<'a>,
        protected: impl Iterator<Item = &'a Protected>,
        ledger: LedgerAt<'a>,
    ) -> Self {
        let floor = cells.floor;
        let check =
            |p: &'a Protected| p.judge.as_ref().map(|judge| (p.attribute, ModelCheck::new(judge, floor, ledger)));
        Self { cells, checks: protected.filter_map(check).collect() }
    }
}

impl Models for StreamModels<'_> {
    fn refused(&mut self, attribute: usize, showing: &[(u128, u32)]) -> Vec<u128> {
        let Some((_, check)) = self.checks.iter_mut().find(|(of, _)| *of == attribute) else {
            // Nobody can say that it holds.
            return showing.iter().map(|(class, _)| *class).collect();
        };
        let mut showings: Vec<(u128, u64, u64)> =
            showing.iter().map(|&(class, row)| self.cells.showing(attribute, class, row)).collect();
        check.refused(&mut showings).into_iter().collect()
    }
}
