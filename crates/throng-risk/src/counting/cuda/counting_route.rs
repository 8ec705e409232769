//! Choice of the counting method of each candidate (docs/internals/gpu.md).

use crate::counting::AttributeSet;

const MAX_PRIVATE_WORDS: u64 = 4 << 10;

/// Includes the tile: at most one column per bit of the cell number.
const SHARED_BYTES_PER_WORD: u64 = 12;

const MAX_REPLICATED_WORDS: u64 = 256;

/// Bit counts take one step per cell and 32 rows (16 per cycle); counters take one per row (32 per cycle).
pub(super) const MAX_SLICED_CELLS: u64 = 16;

const KEY_BOUND: u64 = 1 << 62;

#[derive(Clone, Copy, Debug)]
pub(super) struct CandidateQuery {
    pub(super) k: u32,
    /// Only decides if some class is below k.
    pub(super) judge_only: bool,
    pub(super) rows: u64,
    pub(super) subjects: Option<u64>,
    /// Per block, in bytes.
    pub(super) shared_bytes: u32,
    /// Rows of a tile of `small.cu`.
    pub(super) tile: u64,
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
    /// Crowds are sets of at most k subjects.
    pub(super) fn counts_crowds(self) -> bool {
        matches!(self, Self::SmallCrowds | Self::DenseCrowds)
    }

    pub(super) fn is_small(self) -> bool {
        matches!(self, Self::Small | Self::SmallCrowds)
    }
}

#[derive(Clone, Debug)]
pub(super) struct PlannedCandidate {
    pub(super) at: usize,
    pub(super) route: CountingRoute,
    pub(super) columns: Vec<u32>,
    pub(super) cells: u64,
    pub(super) counts: u64,
    /// Columns and slots per stage.
    pub(super) stages: Vec<(usize, u64)>,
    /// Words of the bitmap of (class, subject) pairs, or 0.
    pub(super) seen_words: u64,
    /// Slots of the table of (class, subject) pairs, or 0.
    pub(super) seen_slots: u64,
    /// Words of the bitmap of exposed subjects.
    pub(super) exposed: u64,
}

/// At most half are used.
fn slots(keys: u64) -> u64 {
    (2 * keys + 2).next_power_of_two()
}

impl PlannedCandidate {
    /// `radices` are by column. `None` if no key can represent a (class, subject) pair.
    pub(super) fn new(at: usize, set: &AttributeSet, radices: &[u64], ask: &CandidateQuery) -> Option<Self> {
        // A column of one value splits no class.
        let columns: Vec<u32> = set.iter().filter(|c| radices[*c] > 1).map(|column| column as u32).collect();
        let cells = columns.iter().try_fold(1_u64, |cells, c| cells.checked_mul(radices[*c as usize]));
        let table = slots(ask.rows);
        // A table entry takes three words.
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

    pub(super) fn dense(at: usize, set: &AttributeSet, radices: &[u64], ask: &CandidateQuery) -> Option<Self> {
        let planned = Self::new(at, set, radices, ask)?;
        if planned.route != CountingRoute::Sparse {
            return Some(planned);
        }
        let cells = planned.columns.iter().try_fold(1_u64, |cells, c| cells.checked_mul(radices[*c as usize]))?;
        Some(Self { route: CountingRoute::Dense, cells, counts: cells, stages: Vec::new(), ..planned })
    }

    pub(super) fn sliced(self) -> Self {
        let tiny = self.columns.len() == 2 && self.cells <= MAX_SLICED_CELLS;
        if tiny { Self { route: CountingRoute::Sliced, ..self } } else { self }
    }

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

    /// Sets that share all but the last column are adjacent.
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
