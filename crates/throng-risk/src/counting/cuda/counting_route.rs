//! Choice of the counting method of each candidate.
//!
//! It depends on the number of cells and on the size of the alternatives. A crowd is a set of at most k subjects.
//!
//! | route | counts | location |
//! |---|---|---|
//! | small | records, or (judging) crowds | shared memory, several candidates per block |
//! | dense | one counter per cell, or (judging subjects) one crowd per cell | global memory |
//! | sparse | one counter per class that occurs | behind hash tables in global memory |
//! | sliced | pairs only: common bits of two row bitmaps, one cell per thread | global memory |

use crate::counting::AttributeSet;

/// Maximum words of private counts per block.
const MAX_PRIVATE_WORDS: u64 = 4 << 10;

/// Bytes of shared memory per word of private counts. The rest is for the tile, which has at most as many columns as
/// the cell number has bits.
const SHARED_BYTES_PER_WORD: u64 = 12;

/// Maximum words of private counts for which a candidate is replicated.
const MAX_REPLICATED_WORDS: u64 = 256;

/// Maximum cells of a pair for which slices need less work than counters. A cell takes one bit count for 32 rows; a
/// multiprocessor executes 16 per cycle. A counter takes one addition per row; a multiprocessor executes at most 32
/// per cycle.
pub(super) const MAX_SLICED_CELLS: u64 = 16;

/// Exclusive bound of keys.
const KEY_BOUND: u64 = 1 << 62;

/// Query for a batch of candidates.
#[derive(Clone, Copy, Debug)]
pub(super) struct CandidateQuery {
    pub(super) k: u32,
    /// Only decides if some class is below k.
    pub(super) judge_only: bool,
    pub(super) rows: u64,
    /// Number of subjects, if subjects are counted.
    pub(super) subjects: Option<u64>,
    /// Shared memory per block, in bytes.
    pub(super) shared_bytes: u32,
    /// Rows of a tile of `is_small.cu`.
    pub(super) tile: u64,
    /// Threads per block.
    pub(super) threads: u32,
}

impl CandidateQuery {
    pub(super) fn private_words(&self) -> u64 {
        (u64::from(self.shared_bytes) / SHARED_BYTES_PER_WORD).min(MAX_PRIVATE_WORDS)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CountingRoute {
    Small,
    SmallCrowds,
    Dense,
    DenseCrowds,
    Sparse,
    Sliced,
}

impl CountingRoute {
    /// Returns true if the counts are crowds: sets of at most k subjects.
    pub(super) fn counts_crowds(self) -> bool {
        matches!(self, Self::SmallCrowds | Self::DenseCrowds)
    }

    pub(super) fn is_small(self) -> bool {
        matches!(self, Self::Small | Self::SmallCrowds)
    }
}

/// Candidate and its memory needs.
#[derive(Clone, Debug)]
pub(super) struct PlannedCandidate {
    /// Index among the requested sets.
    pub(super) at: usize,
    pub(super) route: CountingRoute,
    pub(super) columns: Vec<u32>,
    pub(super) cells: u64,
    pub(super) counts: u64,
    /// Stages: number of columns, and slots.
    pub(super) stages: Vec<(usize, u64)>,
    /// Words of the bitmap of (class, subject) pairs; 0 if there is none.
    pub(super) seen_words: u64,
    /// Slots of the table of (class, subject) pairs; 0 if there is none.
    pub(super) seen_slots: u64,
    /// Words of the bitmap of exposed subjects.
    pub(super) exposed: u64,
}

/// Returns the slots of a table for the given number of keys. At most half of them are used.
fn slots(keys: u64) -> u64 {
    (2 * keys + 2).next_power_of_two()
}

impl PlannedCandidate {
    /// Plans a set of columns; `radices` has one radix per column of the table. Returns `None` if no key can
    /// represent a (class, subject) pair.
    pub(super) fn new(at: usize, set: &AttributeSet, radices: &[u64], ask: &CandidateQuery) -> Option<Self> {
        // A column of one value does not split any class.
        let columns: Vec<u32> = set.iter().filter(|c| radices[*c] > 1).map(|column| column as u32).collect();
        let cells = columns.iter().try_fold(1_u64, |cells, c| cells.checked_mul(radices[*c as usize]));
        let table = slots(ask.rows);
        // An entry of a table takes three words, so a candidate may use the same number of words for a dense array.
        let dense = cells.filter(|cells| *cells <= 3 * table);
        let crowd_words = |cells: u64| cells.saturating_mul(u64::from(ask.k));
        let crowds = dense.filter(|cells| ask.subjects.is_some() && ask.judge_only && crowd_words(*cells) <= 5 * table);
        let route = match (dense, crowds, ask.subjects) {
            (_, Some(cells), _) if crowd_words(cells) <= ask.private_words() => CountingRoute::SmallCrowds,
            (_, Some(_), _) => CountingRoute::DenseCrowds,
            (Some(cells), None, None) if cells <= ask.private_words() => CountingRoute::Small,
            (Some(_), ..) => CountingRoute::Dense,
            (None, ..) => CountingRoute::Sparse,
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
        if route == CountingRoute::Sparse {
            planned.plan_stages(radices, ask.rows);
            planned.cells = planned.stages.last().map_or(1, |(_, slots)| *slots);
        }
        planned.counts = if route.counts_crowds() { crowd_words(planned.cells) } else { planned.cells };
        if let Some(people) = ask.subjects.filter(|_| !route.counts_crowds()) {
            let pairs = planned.cells.checked_mul(people).filter(|pairs| *pairs < KEY_BOUND)?;
            if pairs.div_ceil(32) <= 2 * table {
                planned.seen_words = pairs.div_ceil(32);
            } else {
                planned.seen_slots = table;
            }
            planned.exposed = if ask.judge_only { 0 } else { people.div_ceil(32) };
        }
        Some(planned)
    }

    /// Plans a set with every cell in an array, even if another route is cheaper.
    pub(super) fn dense(at: usize, set: &AttributeSet, radices: &[u64], ask: &CandidateQuery) -> Option<Self> {
        let planned = Self::new(at, set, radices, ask)?;
        if planned.route != CountingRoute::Sparse {
            return Some(planned);
        }
        let cells = planned.columns.iter().try_fold(1_u64, |cells, c| cells.checked_mul(radices[*c as usize]))?;
        Some(Self { route: CountingRoute::Dense, cells, counts: cells, stages: Vec::new(), ..planned })
    }

    /// Switches a pair of columns to slices, if its domain is small enough.
    pub(super) fn sliced(self) -> Self {
        let tiny = self.columns.len() == 2 && self.cells <= MAX_SLICED_CELLS;
        if tiny { Self { route: CountingRoute::Sliced, ..self } } else { self }
    }

    /// Splits the columns into stages, with as many columns per stage as its keys can represent.
    fn plan_stages(&mut self, radices: &[u64], rows: u64) {
        let (mut taken, mut domain) = (0, 1_u64);
        for column in &self.columns {
            let radix = radices[*column as usize].max(1);
            if domain.saturating_mul(radix) > KEY_BOUND {
                let table = slots(rows.min(domain));
                self.stages.push((taken, table));
                (taken, domain) = (0, table);
            }
            (taken, domain) = (taken + 1, domain * radix);
        }
        self.stages.push((taken, slots(rows.min(domain))));
    }

    pub(super) fn bytes(&self) -> u64 {
        let tables: u64 = self.stages.iter().map(|(_, slots)| slots).sum::<u64>() + self.seen_slots;
        4 * (self.counts + self.seen_words + self.exposed) + 8 * tables + 256 + 24 * self.columns.len() as u64
    }

    /// Returns the sort key. Sets that share all but the last column are adjacent.
    pub(super) fn sort_key(&self) -> (CountingRoute, usize, &[u32]) {
        (self.route, self.columns.len(), &self.columns)
    }

    pub(super) fn is_single_class(&self) -> bool {
        self.columns.is_empty()
    }

    pub(super) fn columns(&self) -> &[u32] {
        &self.columns
    }

    pub(super) fn family(&self) -> &[u32] {
        &self.columns[..self.columns.len().saturating_sub(1)]
    }

    pub(super) fn replicas(&self) -> u32 {
        if self.route == CountingRoute::Small {
            (MAX_REPLICATED_WORDS / self.cells.max(1)).max(1).ilog2().min(5)
        } else {
            0
        }
    }

    pub(super) fn private_words(&self) -> u64 {
        self.counts << self.replicas()
    }
}
