//! Axis of one attribute: the ranks of its values, and the loss of an extent.

use crate::values::codebook::{ABSENT, CellId, Code, Codebook, NULL, SUPPRESSED, UNCOVERED};

/// Rank of a row's value, or one of the three constants below.
pub(super) type RankedCell = u32;
const NULL_CELL: RankedCell = u32::MAX;
const ABSENT_CELL: RankedCell = u32::MAX - 1;
/// Outside the hierarchy; suppressed.
const UNCOVERED_CELL: RankedCell = u32::MAX - 2;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AxisExtent {
    /// Ranks; `low` is above `high` if no row has a value.
    low: u32,
    high: u32,
    /// Rows with a value, shown or hidden, which suppression would lose.
    present: u32,
    missing: bool,
    omitted: bool,
    hidden: bool,
}

impl Default for AxisExtent {
    fn default() -> Self {
        Self { low: u32::MAX, high: 0, present: 0, missing: false, omitted: false, hidden: false }
    }
}

impl AxisExtent {
    #[inline]
    pub fn add(&mut self, cell: RankedCell) {
        match cell {
            NULL_CELL => self.missing = true,
            ABSENT_CELL => self.omitted = true,
            UNCOVERED_CELL => (self.hidden, self.present) = (true, self.present + 1),
            rank => {
                self.low = self.low.min(rank);
                self.high = self.high.max(rank);
                self.present += 1;
            }
        }
    }

    #[inline]
    pub fn merge(&mut self, other: &Self) {
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
        self.present += other.present;
        self.missing |= other.missing;
        self.omitted |= other.omitted;
        self.hidden |= other.hidden;
    }

    fn has_values(&self) -> bool {
        self.low <= self.high
    }

    /// Returns the number of kinds of cells that no label covers together.
    fn kinds(&self) -> u8 {
        u8::from(self.missing) + u8::from(self.omitted) + u8::from(self.has_values())
    }

    fn is_suppressed(&self) -> bool {
        self.hidden || self.kinds() != 1
    }
}

/// Values, ranked so that every cell of the hierarchy covers consecutive ranks.
pub(super) struct Axis {
    attribute: usize,
    /// By rank.
    codes: Vec<Code>,
    order: AxisOrder,
}

enum AxisOrder {
    Suppressed,
    /// By rank: the position, and the interval bounds as shares of the domain.
    Grid(Vec<(u32, f64, f64)>),
    /// By level and rank: the cell and its loss.
    Labels(Vec<Vec<(CellId, f64)>>),
}

/// Part number of each row of the class.
pub(super) enum AxisParts {
    /// Each part with enough subjects becomes a class.
    Separate(Vec<u32>),
    /// Cuts between two consecutive parts, ascending along the axis.
    Consecutive(Vec<u32>),
}

/// Suppressed cells: always in the rest, even with enough subjects.
pub(super) const SUPPRESSED_PART: u32 = u32::MAX;
/// Parts of missing cells, absent cells, and all values together.
const MISSING_PART: u32 = u32::MAX - 1;
const OMITTED_PART: u32 = u32::MAX - 2;
const VALUES_PART: u32 = u32::MAX - 3;

impl Axis {
    /// Creates the axis from the codes by row of the batch; also returns the cells of `rows`.
    pub fn from_codes(
        attribute: usize,
        suppressed: bool,
        book: &Codebook,
        column: &[Code],
        rows: &[u32],
    ) -> (Self, Vec<RankedCell>) {
        let mut codes: Vec<Code> = rows.iter().map(|&row| column[row as usize]).collect();
        codes.sort_unstable();
        codes.dedup();
        codes.retain(|code| !matches!(*code, ABSENT | NULL | UNCOVERED));
        let positions: Option<Vec<u32>> = codes.iter().map(|&code| book.position(code)).collect();
        let order = match positions {
            _ if suppressed => AxisOrder::Suppressed,
            Some(_) if !codes.is_empty() => {
                codes.sort_by_key(|&code| book.position(code));
                let interval = |&code: &Code| {
                    let position = book.position(code).unwrap_or(0);
                    let (low, high) = book.interval_shares(position).unwrap_or((0.0, 1.0));
                    (position, low, high)
                };
                AxisOrder::Grid(codes.iter().map(interval).collect())
            }
            _ => {
                let path =
                    |code: &Code| (0..book.levels()).rev().map(|level| book.cell(*code, level)).collect::<Vec<_>>();
                codes.sort_by_cached_key(path);
                let cell = |code: &Code, level: usize| {
                    (book.cell(*code, level), f64::from(book.losses(level)[*code as usize]))
                };
                AxisOrder::Labels(
                    (0..book.levels()).map(|level| codes.iter().map(|code| cell(code, level)).collect()).collect(),
                )
            }
        };
        let mut ranks = hashbrown::HashMap::<Code, RankedCell>::with_capacity(codes.len());
        ranks.extend(codes.iter().copied().zip(0..));
        let cell = |&row: &u32| match column[row as usize] {
            NULL => NULL_CELL,
            ABSENT => ABSENT_CELL,
            code => ranks.get(&code).copied().unwrap_or(UNCOVERED_CELL),
        };
        let cells = rows.iter().map(cell).collect();
        (Self { attribute, codes, order }, cells)
    }

    /// Returns the Loss summed over present cells.
    pub fn loss(&self, extent: &AxisExtent) -> f64 {
        let present = f64::from(extent.present);
        if extent.present == 0
            || extent.low == extent.high && !extent.is_suppressed() && !matches!(self.order, AxisOrder::Suppressed)
        {
            return 0.0;
        }
        let (low, high) = (extent.low as usize, extent.high as usize);
        match &self.order {
            AxisOrder::Suppressed => present,
            _ if extent.is_suppressed() => present,
            AxisOrder::Grid(intervals) => present * (intervals[high].2 - intervals[low].1),
            AxisOrder::Labels(levels) => {
                let common = levels.iter().find(|cells| cells[low].0 == cells[high].0);
                present * common.map_or(1.0, |cells| cells[low].1)
            }
        }
    }

    /// Returns the cell that a class shows.
    pub fn shown(&self, extent: &AxisExtent, books: &[Codebook]) -> CellId {
        let book = &books[self.attribute];
        if extent.is_suppressed() || matches!(self.order, AxisOrder::Suppressed) {
            return SUPPRESSED;
        }
        if !extent.has_values() {
            return book.cell(if extent.missing { NULL } else { ABSENT }, 0);
        }
        let (low, high) = (extent.low as usize, extent.high as usize);
        if low == high {
            return book.cell(self.codes[low], 0);
        }
        match &self.order {
            AxisOrder::Suppressed => SUPPRESSED,
            AxisOrder::Grid(intervals) => book.range(intervals[low].0, intervals[high].0),
            AxisOrder::Labels(levels) => {
                let common = levels.iter().find(|cells| cells[low].0 == cells[high].0);
                common.map_or(SUPPRESSED, |cells| cells[low].0)
            }
        }
    }

    /// Returns the possible cuts of a class, if any.
    pub fn possible_parts(&self, extent: &AxisExtent, cells: impl Iterator<Item = RankedCell>) -> Option<AxisParts> {
        let (low, high) = (extent.low as usize, extent.high as usize);
        if matches!(self.order, AxisOrder::Suppressed) {
            return None;
        }
        let kinds = extent.kinds() + u8::from(extent.hidden);
        if !extent.has_values() || low == high && kinds == 1 {
            return (kinds > 1)
                .then(|| AxisParts::Separate(cells.map(|cell| part_of_cell(cell, |_| VALUES_PART)).collect()));
        }
        match &self.order {
            AxisOrder::Suppressed => None,
            AxisOrder::Grid(_) if kinds > 1 => {
                Some(AxisParts::Separate(cells.map(|cell| part_of_cell(cell, |_| VALUES_PART)).collect()))
            }
            AxisOrder::Grid(intervals) if intervals[low].0 == intervals[high].0 => {
                Some(AxisParts::Separate(cells.collect()))
            }
            AxisOrder::Grid(intervals) => {
                Some(AxisParts::Consecutive(cells.map(|rank| intervals[rank as usize].0).collect()))
            }
            AxisOrder::Labels(levels) => {
                let common = levels.iter().position(|cells| cells[low].0 == cells[high].0)?;
                // Values with only `*` in common are divided directly; `*` is for the rest.
                if kinds > 1 && levels[common][low].0 != SUPPRESSED {
                    return Some(AxisParts::Separate(cells.map(|cell| part_of_cell(cell, |_| VALUES_PART)).collect()));
                }
                let below = &levels[common.checked_sub(1)?];
                let label = |rank: RankedCell| match below[rank as usize].0 {
                    SUPPRESSED => SUPPRESSED_PART,
                    label => label,
                };
                Some(AxisParts::Separate(cells.map(|cell| part_of_cell(cell, label)).collect()))
            }
        }
    }
}

fn part_of_cell(cell: RankedCell, of: impl Fn(RankedCell) -> u32) -> u32 {
    match cell {
        NULL_CELL => MISSING_PART,
        ABSENT_CELL => OMITTED_PART,
        UNCOVERED_CELL => SUPPRESSED_PART,
        rank => of(rank),
    }
}
