//! Launches of candidates.

use super::counting_route::{CandidateQuery, CountingRoute, PlannedCandidate};
use super::kernel_tables::{CandidateEntry, GroupEntry, StageEntry, TermEntry};
use super::sliced_pairs::SlicedPairPlan;

/// One bit each in one word.
const MAX_GROUP_CANDIDATES: usize = 32;

/// State words per block in `small.cu`.
const STATE_WORDS: u64 = 34;

/// Offsets count words (counts, seen) and slots (tables) of their regions.
#[derive(Debug)]
pub(super) struct LaunchBatch {
    pub(super) route: CountingRoute,
    pub(super) set_indexes: Vec<usize>,
    pub(super) candidates: Vec<CandidateEntry>,
    pub(super) terms: Vec<TermEntry>,
    pub(super) stages: Vec<StageEntry>,
    pub(super) groups: Vec<GroupEntry>,
    pub(super) slots: Vec<u32>,
    pub(super) counts: u64,
    pub(super) table_slots: u64,
    pub(super) seen_words: u64,
    pub(super) exposed: u64,
    pub(super) shared_bytes: u32,
    pub(super) slicing: SlicedPairPlan,
}

/// Splits candidates, sorted by [`PlannedCandidate::sort_key`], into batches of one route.
pub(super) fn launch_batches<'a>(
    mut planned: &'a [PlannedCandidate],
    bytes: u64,
    most: usize,
    radices: &'a [u64],
    ask: &'a CandidateQuery,
) -> impl Iterator<Item = LaunchBatch> + 'a {
    std::iter::from_fn(move || {
        let route = planned.first()?.route;
        let mut sum = 0;
        let fits = |p: &&PlannedCandidate| {
            sum += p.bytes();
            p.route == route && sum <= bytes
        };
        let count = planned.iter().take(most).take_while(fits).count().max(1);
        let (now, later) = planned.split_at(count);
        planned = later;
        Some(LaunchBatch::new(now, radices, ask))
    })
}

impl LaunchBatch {
    fn new(planned: &[PlannedCandidate], radices: &[u64], ask: &CandidateQuery) -> Self {
        let mut batch = Self {
            route: planned[0].route,
            set_indexes: planned.iter().map(|p| p.at).collect(),
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
            slicing: SlicedPairPlan::default(),
        };
        let mut family = 0;
        for (at, p) in planned.iter().enumerate() {
            family += u32::from(at == 0 || p.family() != planned[at - 1].family());
            batch.add(p, family, radices, ask);
        }
        if batch.route.is_small() {
            batch.assign_groups(planned, ask);
        }
        if batch.route == CountingRoute::Sliced {
            let counts = batch.candidates.iter().map(|candidate| candidate.counts);
            batch.slicing = SlicedPairPlan::new(planned, counts, radices, ask);
            batch.shared_bytes = batch.slicing.shared_bytes;
        }
        batch
    }

    fn add(&mut self, p: &PlannedCandidate, family: u32, radices: &[u64], ask: &CandidateQuery) {
        let first = self.terms.len() as u32;
        let term = |column: &u32| TermEntry { column: *column, radix: radices[*column as usize] as u32, slot: 0 };
        self.terms.extend(p.columns.iter().map(term));
        let mut candidate = CandidateEntry {
            cells: p.cells,
            counts: self.counts,
            first,
            terms: p.columns.len() as u32,
            stage: self.stages.len() as u32,
            stages: p.stages.len() as u32,
            replicas: p.replicas(),
            family,
            // A class of at least k subjects has at least k rows.
            most: (ask.rows / u64::from(ask.k.max(1))) as u32,
            ..CandidateEntry::default()
        };
        self.counts += p.counts;
        let mut taken = first;
        for (terms, slots) in &p.stages {
            let terms = *terms as u32;
            self.stages.push(StageEntry { keys: self.table_slots, mask: slots - 1, first: taken, terms });
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

    fn assign_groups(&mut self, planned: &[PlannedCandidate], ask: &CandidateQuery) {
        let (tile, shared_bytes) = (ask.tile, u64::from(ask.shared_bytes));
        let words = |slots: usize, private: u64| {
            let people = if self.route == CountingRoute::SmallCrowds { tile } else { 0 };
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
                at - start < MAX_GROUP_CANDIDATES
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
            self.groups.push(GroupEntry {
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
