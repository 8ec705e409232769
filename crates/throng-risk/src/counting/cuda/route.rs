//! How each candidate is counted.
//!
//! By its cells and what else would hold its counts:
//!
//! | route | counts | where |
//! |---|---|---|
//! | small | records, or (judging) sets of at most k subjects | shared memory, several candidates a block |
//! | dense | a counter a cell, or (judging people) a set of at most k subjects a cell | global memory |
//! | sparse | a counter a class met | behind hash tables in global memory |
//! | sliced | pairs alone: bits that two bitmaps of rows share, a cell a thread | global memory |

use crate::counting::AttributeSet;

/// Words of private counts of a block, at most.
const PRIVATE_WORDS: u64 = 4 << 10;

/// Bytes of shared memory for each of them: the rest is for the tile, whose columns are at most as many as the cells have
/// bits.
const SHARED_BYTES: u64 = 12;

/// Words of private counts up to which a candidate gets replicas of them.
const REPLICATED_WORDS: u64 = 256;

/// Cells of a pair up to which slices are less work than counters: a cell takes a count of bits for 32 rows, of which a
/// multiprocessor makes 16 a cycle; a counter takes an addition a row, of which it makes at most 32 a cycle.
pub(super) const SLICED_CELLS: u64 = 16;

/// Keys stay below this.
const LARGEST_KEY: u64 = 1 << 62;

/// What is asked of a batch of candidates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) k: u32,
    /// Yes or no is enough.
    pub(super) judging: bool,
    /// Rows of the whole table.
    pub(super) rows: u64,
    /// Subjects, where people are counted.
    pub(super) people: Option<u64>,
    /// Shared memory of a block.
    pub(super) shared_bytes: u32,
    /// Rows of a tile of `small.cu`.
    pub(super) tile: u64,
    /// Threads of a block.
    pub(super) threads: u32,
}

impl Ask {
    pub(super) fn private_words(&self) -> u64 {
        (u64::from(self.shared_bytes) / SHARED_BYTES).min(PRIVATE_WORDS)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Route {
    Small,
    SmallCrowds,
    Dense,
    DenseCrowds,
    Sparse,
    Sliced,
}

impl Route {
    /// Counts that are sets of at most k subjects.
    pub(super) fn crowds(self) -> bool {
        matches!(self, Self::SmallCrowds | Self::DenseCrowds)
    }

    pub(super) fn small(self) -> bool {
        matches!(self, Self::Small | Self::SmallCrowds)
    }
}

/// A candidate and what it needs.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    /// Its place among the sets asked for.
    pub(super) at: usize,
    pub(super) route: Route,
    pub(super) columns: Vec<u32>,
    pub(super) cells: u64,
    /// Words of counts.
    pub(super) counts: u64,
    /// Stages: columns taken, and slots.
    pub(super) stages: Vec<(usize, u64)>,
    /// Words of the bitmap of pairs; 0 where there is none.
    pub(super) seen_words: u64,
    /// Slots of the table of pairs; 0 where there is none.
    pub(super) seen_slots: u64,
    /// Words of the bitmap of exposed subjects.
    pub(super) exposed: u64,
}

/// Slots of a table for so many keys: at most half of them are ever taken.
fn slots(keys: u64) -> u64 {
    (2 * keys + 2).next_power_of_two()
}

impl Planned {
    /// A plan for a set of columns with these radices (a radix a column of the table). `None` where no key can stand for
    /// a (class, subject) pair.
    pub(super) fn new(at: usize, set: &AttributeSet, radices: &[u64], ask: &Ask) -> Option<Self> {
        // A column of one value splits nothing.
        let columns: Vec<u32> = set.iter().filter(|c| radices[*c] > 1).map(|column| column as u32).collect();
        let cells = columns.iter().try_fold(1_u64, |cells, c| cells.checked_mul(radices[*c as usize]));
        let table = slots(ask.rows);
        // A cell of a table takes three words, so does its candidate's share of a dense array.
        let dense = cells.filter(|cells| *cells <= 3 * table);
        let crowd_words = |cells: u64| cells.saturating_mul(u64::from(ask.k));
        let crowds = dense.filter(|cells| ask.people.is_some() && ask.judging && crowd_words(*cells) <= 5 * table);
        let route = match (dense, crowds, ask.people) {
            (_, Some(cells), _) if crowd_words(cells) <= ask.private_words() => Route::SmallCrowds,
            (_, Some(_), _) => Route::DenseCrowds,
            (Some(cells), None, None) if cells <= ask.private_words() => Route::Small,
            (Some(_), ..) => Route::Dense,
            (None, ..) => Route::Sparse,
        };
        let mut planned = Self {
            at,
            route,
            columns,
            cells: cells.unwrap_or(u64::MAX),
            counts: 0,
            stages: Vec::new(),
            seen_words: 0,
            seen_slots: 0,
            exposed: 0,
        };
        if route == Route::Sparse {
            planned.chain(radices, ask.rows);
            planned.cells = planned.stages.last().map_or(1, |(_, slots)| *slots);
        }
        planned.counts = if route.crowds() { crowd_words(planned.cells) } else { planned.cells };
        if let Some(people) = ask.people.filter(|_| !route.crowds()) {
            let pairs = planned.cells.checked_mul(people).filter(|pairs| *pairs < LARGEST_KEY)?;
            if pairs.div_ceil(32) <= 2 * table {
                planned.seen_words = pairs.div_ceil(32);
            } else {
                planned.seen_slots = table;
            }
            planned.exposed = if ask.judging { 0 } else { people.div_ceil(32) };
        }
        Some(planned)
    }

    /// A plan that keeps every cell in an array, whatever would be cheaper.
    pub(super) fn dense(at: usize, set: &AttributeSet, radices: &[u64], ask: &Ask) -> Option<Self> {
        let planned = Self::new(at, set, radices, ask)?;
        if planned.route != Route::Sparse {
            return Some(planned);
        }
        let cells = planned.columns.iter().try_fold(1_u64, |cells, c| cells.checked_mul(radices[*c as usize]))?;
        Some(Self { route: Route::Dense, cells, counts: cells, stages: Vec::new(), ..planned })
    }

    /// The same pair of columns by slices, where its domain is so tiny that this is less work.
    pub(super) fn sliced(self) -> Self {
        let tiny = self.columns.len() == 2 && self.cells <= SLICED_CELLS;
        if tiny { Self { route: Route::Sliced, ..self } } else { self }
    }

    /// As many columns a stage as its keys have room for.
    fn chain(&mut self, radices: &[u64], rows: u64) {
        let (mut taken, mut domain) = (0, 1_u64);
        for column in &self.columns {
            let radix = radices[*column as usize].max(1);
            if domain.saturating_mul(radix) > LARGEST_KEY {
                let table = slots(rows.min(domain));
                self.stages.push((taken, table));
                (taken, domain) = (0, table);
            }
            (taken, domain) = (taken + 1, domain * radix);
        }
        self.stages.push((taken, slots(rows.min(domain))));
    }

    /// Bytes of scratch on the device.
    pub(super) fn bytes(&self) -> u64 {
        let tables: u64 = self.stages.iter().map(|(_, slots)| slots).sum::<u64>() + self.seen_slots;
        4 * (self.counts + self.seen_words + self.exposed) + 8 * tables + 256 + 24 * self.columns.len() as u64
    }

    /// Sets that share all but the last column stand together.
    pub(super) fn order(&self) -> (Route, usize, &[u32]) {
        (self.route, self.columns.len(), &self.columns)
    }

    /// All rows are one class.
    pub(super) fn splits_nothing(&self) -> bool {
        self.columns.is_empty()
    }

    /// The columns that split something, ascending.
    pub(super) fn columns(&self) -> &[u32] {
        &self.columns
    }

    pub(super) fn family(&self) -> &[u32] {
        &self.columns[..self.columns.len().saturating_sub(1)]
    }

    pub(super) fn replicas(&self) -> u32 {
        if self.route == Route::Small { (REPLICATED_WORDS / self.cells.max(1)).max(1).ilog2().min(5) } else { 0 }
    }

    /// Words of private counts.
    pub(super) fn private_words(&self) -> u64 {
        self.counts << self.replicas()
    }
}
