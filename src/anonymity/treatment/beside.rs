//! The sensitive cells that leave beside a class: each where its own value has support, and where models protect the
//! attribute, where the whole class satisfies them.
//!
//! A class shows what this batch adds of a protected attribute as a whole, or shows nothing of it. Leaving out single
//! rows until a model holds would tell what they are: the most frequent value.

use super::crowd::{Floor, NO_SUBJECT, Released};
use super::recode::{Columns, UNRELEASED};
use super::strict::recode_as_kept;
use crate::anonymity::plan::Node;
use crate::anonymity::privacy::Room;
use crate::anonymity::privacy::protection::ClassJudge;
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
pub(super) struct Beside<'a> {
    pub batch: &'a Batch,
    pub books: &'a [Codebook],
    pub floor: Floor,
    /// Digest of "this attribute, beside a class", by attribute.
    pub bases: &'a [u128],
}

impl Beside<'_> {
    /// Each of `rows` at the finest level below `levels` at which its value has support among them.
    pub fn supported(&self, attribute: usize, levels: usize, rows: &[u32], released: &impl Released) -> Vec<CellId> {
        let (book, base) = (&self.books[attribute], self.bases[attribute]);
        let levels = u8::try_from(levels).expect("hierarchies are low");
        let ladder: Vec<Node> = (0..levels).map(|level| Node { levels: vec![level], loss: 0.0 }).collect();
        let columns = Columns::new(base, &[attribute], &self.batch.columns, &self.batch.subjects, self.books);
        let assignment = recode_as_kept(&columns, &ladder, rows, self.floor, released);
        let cell = |(row, &node): (usize, &u32)| match node {
            UNRELEASED => SUPPRESSED,
            node => book.cell(self.batch.columns[attribute][row], node as usize),
        };
        assignment.node.iter().enumerate().map(cell).collect()
    }

    /// The cells of a protected attribute for `rows`, whose classes are `class` (by row of the batch). They leave exactly
    /// or not at all: two generalized cells may cover the same value, and would be counted as two.
    pub fn protected(
        &self,
        protected: &Protected,
        class: &[u128],
        rows: &[u32],
        released: &impl Released,
    ) -> Vec<CellId> {
        let attribute = protected.attribute;
        let nothing = || vec![SUPPRESSED; self.batch.rows()];
        let open = released.shown().is_none_or(|shown| shown.is_open(attribute, self.batch.rows()));
        let Some(judge) = protected.judge.as_ref().filter(|_| open) else { return nothing() };
        // Who names nobody counts for nobody, so no model could count what is shown of him.
        let named = |row: &u32| self.batch.subjects[*row as usize] != NO_SUBJECT;
        let mut rows: Vec<u32> = rows.iter().copied().filter(named).collect();
        let mut classes = Judged::new(judge, self.floor, released);
        loop {
            // A value that a class no longer shows may lack the support that it lent to others, and so on; every turn
            // takes a class away, so it ends.
            let column = self.supported(attribute, 1, &rows, released);
            let showing = |row: &&u32| column[**row as usize] != SUPPRESSED;
            let mut by_class: Vec<(u128, u64, u64)> =
                rows.iter().filter(showing).map(|&row| self.showing(attribute, class[row as usize], row)).collect();
            let refused = classes.refused(&mut by_class);
            if refused.is_empty() {
                return column;
            }
            rows.retain(|&row| !refused.contains(&class[row as usize]));
        }
    }

    /// What a row would show: class, value, subject.
    pub fn showing(&self, attribute: usize, class: u128, row: u32) -> (u128, u64, u64) {
        let code = self.batch.columns[attribute][row as usize];
        let coverage = self.books[attribute].digests(0)[code as usize];
        (class, value_number(coverage), self.batch.subjects[row as usize])
    }
}

/// Judges classes by what they show and have shown.
pub(super) struct Judged<'a, R: Released> {
    judge: &'a ClassJudge,
    floor: Floor,
    released: &'a R,
    /// What has been shown, by class that somebody asked about.
    earlier: HashMap<u128, Vec<(u64, u64)>, BuildClassKeyHash>,
    pairs: Vec<(u64, u64)>,
    room: Room,
}

impl<'a, R: Released> Judged<'a, R> {
    pub fn new(judge: &'a ClassJudge, floor: Floor, released: &'a R) -> Self {
        Self { judge, floor, released, earlier: HashMap::default(), pairs: Vec::new(), room: Room::default() }
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
        let Self { judge, floor, released, earlier, pairs, room } = self;
        let class = showings[0].0;
        let earlier = earlier.entry(class).or_insert_with(|| {
            let mut pairs = Vec::new();
            if let Some(shown) = released.shown() {
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
