//! How each candidate is counted, and which share a launch.
//!
//! By its cells and what else would hold its counts:
//!
//! | route | counts | where |
//! |---|---|---|
//! | small | records, or (judging) sets of at most k subjects | shared memory, several candidates a block |
//! | dense | a counter a cell, or (judging people) a set of at most k subjects a cell | global memory |
//! | sparse | a counter a class met | behind hash tables in global memory |
//! | sliced | pairs alone: bits that two bitmaps of rows share, a cell a thread | global memory |

use super::slices::Slicing;
use super::tables::{Candidate, Group, Stage, Term};
use crate::counting::AttributeSet;

/// Words of private counts of a block, at most.
const PRIVATE_WORDS: u64 = 4 << 10;

/// Bytes of shared memory for each of them: the rest is for the tile, whose columns are at most as many as the cells have
/// bits.
const SHARED_BYTES: u64 = 12;

/// Words of private counts up to which a candidate gets replicas of them.
const REPLICATED_WORDS: u64 = 256;

/// Candidates of a group: a bit each in one word.
const GROUP: usize = 32;

/// Words of state in a block of `small.cu`.
const STATE_WORDS: u64 = 34;

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
    fn private_words(&self) -> u64 {
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
    columns: Vec<u32>,
    cells: u64,
    /// Words of counts.
    counts: u64,
    /// Stages: columns taken, and slots.
    stages: Vec<(usize, u64)>,
    /// Words of the bitmap of pairs; 0 where there is none.
    seen_words: u64,
    /// Slots of the table of pairs; 0 where there is none.
    seen_slots: u64,
    /// Words of the bitmap of exposed subjects.
    exposed: u64,
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

    fn family(&self) -> &[u32] {
        &self.columns[..self.columns.len().saturating_sub(1)]
    }

    fn replicas(&self) -> u32 {
        if self.route == Route::Small { (REPLICATED_WORDS / self.cells.max(1)).max(1).ilog2().min(5) } else { 0 }
    }

    /// Words of private counts.
    fn private_words(&self) -> u64 {
        self.counts << self.replicas()
    }
}

/// Candidates of one launch, with their tables. Offsets count words (counts, seen) and slots (tables) from the start of
/// their regions.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) route: Route,
    /// The places of the candidates among the sets asked for.
    pub(super) places: Vec<usize>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) terms: Vec<Term>,
    pub(super) stages: Vec<Stage>,
    pub(super) groups: Vec<Group>,
    /// The columns of the tiles.
    pub(super) slots: Vec<u32>,
    pub(super) counts: u64,
    pub(super) table_slots: u64,
    pub(super) seen_words: u64,
    /// Words of exposed subjects for each candidate.
    pub(super) exposed: u64,
    pub(super) shared_bytes: u32,
    /// Slices and who reads which.
    pub(super) slicing: Slicing,
}

/// Splits planned candidates, ordered by [`Planned::order`], into batches of one route within `bytes` of scratch.
pub(super) fn batches<'a>(
    mut planned: &'a [Planned],
    bytes: u64,
    most: usize,
    radices: &'a [u64],
    ask: &'a Ask,
) -> impl Iterator<Item = Batch> + 'a {
    std::iter::from_fn(move || {
        let route = planned.first()?.route;
        let mut sum = 0;
        let fits = |p: &&Planned| {
            sum += p.bytes();
            p.route == route && sum <= bytes
        };
        let count = planned.iter().take(most).take_while(fits).count().max(1);
        let (now, later) = planned.split_at(count);
        planned = later;
        Some(Batch::new(now, radices, ask))
    })
}

impl Batch {
    fn new(planned: &[Planned], radices: &[u64], ask: &Ask) -> Self {
        let mut batch = Self {
            route: planned[0].route,
            places: planned.iter().map(|p| p.at).collect(),
            candidates: Vec::with_capacity(planned.len()),
            terms: Vec::new(),
            stages: Vec::new(),
            groups: Vec::new(),
            slots: Vec::new(),
            counts: 0,
            table_slots: 0,
            seen_words: 0,
            exposed: planned.iter().map(|p| p.exposed).max().unwrap_or(0),
            shared_bytes: 64,
            slicing: Slicing::default(),
        };
        let mut family = 0;
        for (at, p) in planned.iter().enumerate() {
            family += u32::from(at == 0 || p.family() != planned[at - 1].family());
            batch.add(p, family, radices, ask);
        }
        if batch.route.small() {
            batch.group(planned, ask);
        }
        if batch.route == Route::Sliced {
            let counts = batch.candidates.iter().map(|candidate| candidate.counts);
            batch.slicing = Slicing::new(planned, counts, radices, ask);
            batch.shared_bytes = batch.slicing.shared_bytes;
        }
        batch
    }

    fn add(&mut self, p: &Planned, family: u32, radices: &[u64], ask: &Ask) {
        let first = self.terms.len() as u32;
        let term = |column: &u32| Term { column: *column, radix: radices[*column as usize] as u32, slot: 0 };
        self.terms.extend(p.columns.iter().map(term));
        let mut candidate = Candidate {
            cells: p.cells,
            counts: self.counts,
            first,
            terms: p.columns.len() as u32,
            stage: self.stages.len() as u32,
            stages: p.stages.len() as u32,
            replicas: p.replicas(),
            family,
            // Classes of at least k subjects each take k rows each.
            most: (ask.rows / u64::from(ask.k.max(1))) as u32,
            ..Candidate::default()
        };
        self.counts += p.counts;
        let mut taken = first;
        for (terms, slots) in &p.stages {
            let terms = *terms as u32;
            self.stages.push(Stage { keys: self.table_slots, mask: slots - 1, first: taken, terms });
            self.table_slots += slots;
            taken += terms;
        }
        if p.seen_slots > 0 {
            (candidate.seen, candidate.seen_mask) = (self.table_slots, p.seen_slots - 1);
            self.table_slots += p.seen_slots;
        } else {
            candidate.seen = self.seen_words;
            self.seen_words += p.seen_words;
        }
        self.candidates.push(candidate);
    }

    /// Groups neighbours as long as their tile and their private counts fit a block.
    fn group(&mut self, planned: &[Planned], ask: &Ask) {
        let (tile, shared_bytes) = (ask.tile, u64::from(ask.shared_bytes));
        let words = |slots: usize, private: u64| {
            let people = if self.route == Route::SmallCrowds { tile } else { 0 };
            slots as u64 * tile / 2 + people + STATE_WORDS + private
        };
        let (mut start, mut columns, mut private, mut largest) = (0, Vec::new(), 0, 0);
        let mut groups = Vec::new();
        for at in 0..=planned.len() {
            let next = planned.get(at).map(|p| {
                let new: Vec<u32> = p.columns.iter().copied().filter(|c| !columns.contains(c)).collect();
                (p.private_words(), new)
            });
            let fits = next.as_ref().is_some_and(|(more, new)| {
                at - start < GROUP
                    && private + more <= ask.private_words()
                    && 4 * words(columns.len() + new.len(), private + more) <= shared_bytes
            });
            if !fits && at > start {
                largest = largest.max(words(columns.len(), private));
                groups.push((start..at, std::mem::take(&mut columns)));
                (start, private) = (at, 0);
            }
            if let Some(p) = planned.get(at) {
                self.candidates[at].shared = private as u32;
                private += p.private_words();
                let new: Vec<u32> = p.columns.iter().copied().filter(|c| !columns.contains(c)).collect();
                columns.extend(new);
            }
        }
        self.shared_bytes = (4 * largest) as u32;
        for (range, columns) in groups {
            let slot = self.slots.len() as u32;
            self.groups.push(Group {
                first: range.start as u32,
                candidates: range.len() as u32,
                slot,
                slots: columns.len() as u32,
            });
            for candidate in &self.candidates[range] {
                let terms = candidate.first as usize..(candidate.first + candidate.terms) as usize;
                for term in &mut self.terms[terms] {
                    let place = columns.iter().position(|c| *c == term.column);
                    term.slot = place.expect("the group holds the columns of its candidates") as u32;
                }
            }
            self.slots.extend(columns);
        }
    }
}
