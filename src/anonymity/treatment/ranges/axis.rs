//! One attribute of the rows that are divided: the order of its values, and the loss of an extent.

use throng_core::values::codebook::{ABSENT, CellId, Code, Codebook, NULL, SUPPRESSED, UNCOVERED};

/// What a row has of an attribute: the rank of its value among those of the rows, or one of the three below.
pub(super) type Cell = u32;
/// The cell is null.
const MISSING: Cell = u32::MAX;
/// The cell is not there.
const OMITTED: Cell = u32::MAX - 1;
/// The hierarchy does not cover the value: it is suppressed.
const HIDDEN: Cell = u32::MAX - 2;

/// What some rows have of one attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extent {
    /// Lowest and highest rank; the lowest is above the highest where no row has a value.
    low: u32,
    high: u32,
    /// Rows that lose something when the cell is suppressed: those with a value, shown or hidden.
    present: u32,
    missing: bool,
    omitted: bool,
    hidden: bool,
}

impl Default for Extent {
    fn default() -> Self {
        Self { low: u32::MAX, high: 0, present: 0, missing: false, omitted: false, hidden: false }
    }
}

impl Extent {
    #[inline]
    pub fn add(&mut self, cell: Cell) {
        match cell {
            MISSING => self.missing = true,
            OMITTED => self.omitted = true,
            HIDDEN => (self.hidden, self.present) = (true, self.present + 1),
            rank => {
                self.low = self.low.min(rank);
                self.high = self.high.max(rank);
                self.present += 1;
            }
        }
    }

    /// Takes in the rows of another extent.
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

    /// Kinds of cells that no label covers together.
    fn kinds(&self) -> u8 {
        u8::from(self.missing) + u8::from(self.omitted) + u8::from(self.has_values())
    }

    fn is_suppressed(&self) -> bool {
        self.hidden || self.kinds() != 1
    }
}

/// The values of one attribute, ranked so that every cell of its hierarchy covers neighbours.
pub(super) struct Axis {
    attribute: usize,
    /// By rank, its code.
    codes: Vec<Code>,
    order: Order,
}

enum Order {
    /// It identifies by itself: nothing is shown.
    Suppressed,
    /// Numbers on a grid: by rank the position, and the bounds of the interval as shares of the domain.
    Grid(Vec<(u32, f64, f64)>),
    /// Labels: by level and rank the cell and its loss.
    Labels(Vec<Vec<(CellId, f64)>>),
}

/// How a class may be cut along an axis.
pub(super) enum Parts {
    /// Each part by itself, and those without a crowd together: by row of the class the number of its part.
    Apart(Vec<u32>),
    /// Between any two neighbouring parts: by row of the class the number of its part, ascending along the axis.
    Between(Vec<u32>),
}

/// The part of rows whose cells are suppressed by themselves: they are among those without a crowd, however many they are.
pub(super) const SUPPRESSED_PART: u32 = u32::MAX;
/// Parts of missing and absent cells, and of all values together.
const MISSING_PART: u32 = u32::MAX - 1;
const OMITTED_PART: u32 = u32::MAX - 2;
const VALUES_PART: u32 = u32::MAX - 3;

impl Axis {
    /// The axis of an attribute with this codebook and these codes by row of the batch, and the cells of `rows`.
    pub fn of(attribute: usize, suppressed: bool, book: &Codebook, column: &[Code], rows: &[u32]) -> (Self, Vec<Cell>) {
        let mut codes: Vec<Code> = rows.iter().map(|&row| column[row as usize]).collect();
        codes.sort_unstable();
        codes.dedup();
        codes.retain(|code| !matches!(*code, ABSENT | NULL | UNCOVERED));
        let positions: Option<Vec<u32>> = codes.iter().map(|&code| book.position(code)).collect();
        let order = match positions {
            _ if suppressed => Order::Suppressed,
            Some(_) if !codes.is_empty() => {
                codes.sort_by_key(|&code| book.position(code));
                let interval = |&code: &Code| {
                    let position = book.position(code).unwrap_or(0);
                    let (low, high) = book.interval_shares(position).unwrap_or((0.0, 1.0));
                    (position, low, high)
                };
                Order::Grid(codes.iter().map(interval).collect())
            }
            _ => {
                let path =
                    |code: &Code| (0..book.levels()).rev().map(|level| book.cell(*code, level)).collect::<Vec<_>>();
                codes.sort_by_cached_key(path);
                let cell = |code: &Code, level: usize| {
                    (book.cell(*code, level), f64::from(book.losses(level)[*code as usize]))
                };
                Order::Labels(
                    (0..book.levels()).map(|level| codes.iter().map(|code| cell(code, level)).collect()).collect(),
                )
            }
        };
        let mut ranks = hashbrown::HashMap::<Code, Cell>::with_capacity(codes.len());
        ranks.extend(codes.iter().copied().zip(0..));
        let cell = |&row: &u32| match column[row as usize] {
            NULL => MISSING,
            ABSENT => OMITTED,
            code => ranks.get(&code).copied().unwrap_or(HIDDEN),
        };
        let cells = rows.iter().map(cell).collect();
        (Self { attribute, codes, order }, cells)
    }

    /// The Loss of the cells of a class, summed over its present ones.
    pub fn loss(&self, extent: &Extent) -> f64 {
        let present = f64::from(extent.present);
        if extent.present == 0
            || extent.low == extent.high && !extent.is_suppressed() && !matches!(self.order, Order::Suppressed)
        {
            return 0.0;
        }
        let (low, high) = (extent.low as usize, extent.high as usize);
        match &self.order {
            Order::Suppressed => present,
            _ if extent.is_suppressed() => present,
            Order::Grid(intervals) => present * (intervals[high].2 - intervals[low].1),
            Order::Labels(levels) => {
                let common = levels.iter().find(|cells| cells[low].0 == cells[high].0);
                present * common.map_or(1.0, |cells| cells[low].1)
            }
        }
    }

    /// The cell that a class shows.
    pub fn shown(&self, extent: &Extent, books: &[Codebook]) -> CellId {
        let book = &books[self.attribute];
        if extent.is_suppressed() || matches!(self.order, Order::Suppressed) {
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
            Order::Suppressed => SUPPRESSED,
            Order::Grid(intervals) => book.range(intervals[low].0, intervals[high].0),
            Order::Labels(levels) => {
                let common = levels.iter().find(|cells| cells[low].0 == cells[high].0);
                common.map_or(SUPPRESSED, |cells| cells[low].0)
            }
        }
    }

    /// How a class of this extent may be cut; `cells` are those of its rows. None where all of it must stay together.
    pub fn parts(&self, extent: &Extent, cells: impl Iterator<Item = Cell>) -> Option<Parts> {
        let (low, high) = (extent.low as usize, extent.high as usize);
        if matches!(self.order, Order::Suppressed) {
            return None;
        }
        let kinds = extent.kinds() + u8::from(extent.hidden);
        if !extent.has_values() || low == high && kinds == 1 {
            return (kinds > 1).then(|| Parts::Apart(cells.map(|cell| kind(cell, |_| VALUES_PART)).collect()));
        }
        match &self.order {
            Order::Suppressed => None,
            Order::Grid(_) if kinds > 1 => Some(Parts::Apart(cells.map(|cell| kind(cell, |_| VALUES_PART)).collect())),
            Order::Grid(intervals) if intervals[low].0 == intervals[high].0 => Some(Parts::Apart(cells.collect())),
            Order::Grid(intervals) => Some(Parts::Between(cells.map(|rank| intervals[rank as usize].0).collect())),
            Order::Labels(levels) => {
                let common = levels.iter().position(|cells| cells[low].0 == cells[high].0)?;
                // Values that nothing but `*` covers together are parted at once: `*` is for those without a crowd.
                if kinds > 1 && levels[common][low].0 != SUPPRESSED {
                    return Some(Parts::Apart(cells.map(|cell| kind(cell, |_| VALUES_PART)).collect()));
                }
                let below = &levels[common.checked_sub(1)?];
                let label = |rank: Cell| match below[rank as usize].0 {
                    SUPPRESSED => SUPPRESSED_PART,
                    label => label,
                };
                Some(Parts::Apart(cells.map(|cell| kind(cell, label)).collect()))
            }
        }
    }
}

/// The part of a cell; of values `of` decides.
fn kind(cell: Cell, of: impl Fn(Cell) -> u32) -> u32 {
    match cell {
        MISSING => MISSING_PART,
        OMITTED => OMITTED_PART,
        HIDDEN => SUPPRESSED_PART,
        rank => of(rank),
    }
}
