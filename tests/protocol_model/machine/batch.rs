//! Batches of the protocol model: new attempts and retries.

use super::{
    Attempt, Directory, NO_AUTHOR, PARTITIONS, RELEASED, Share, State, Step, Steps, UNREAD, WAITING, Without, World,
    status, with_status,
};

impl World {
    pub(super) fn range_in(&self, attempt: Attempt, partition: usize) -> Option<u8> {
        attempt.range.map(|record| self.place(record)).filter(|(of, _)| *of == partition).map(|(_, at)| at)
    }

    pub(super) fn settles_in(&self, attempt: Attempt, partition: usize) -> bool {
        (0..self.length).any(|at| attempt.settles >> self.record(partition, at) & 1 == 1)
    }

    pub(super) fn is_place(&self, attempt: Attempt, partition: usize) -> bool {
        self.range_in(attempt, partition).is_some() || self.settles_in(attempt, partition)
    }

    pub(super) fn progress_places(&self, attempt: Attempt, partition: usize) -> bool {
        self.is_place(attempt, partition)
            && (self.keeps(Without::ProgressOfSettled) || self.range_in(attempt, partition).is_some())
    }

    pub(super) fn sends_offset(&self, attempt: Attempt, partition: usize) -> bool {
        let only_range = match attempt.range {
            Some(_) => !self.keeps(Without::OffsetsOfAllPlaces),
            None => !self.keeps(Without::OffsetsOfSettled),
        };
        self.is_place(attempt, partition) && (!only_range || self.range_in(attempt, partition).is_some())
    }

    pub(super) fn offset_after(&self, attempt: Attempt, partition: usize) -> u8 {
        match self.range_in(attempt, partition) {
            Some(at) => at + 1,
            None => (0..self.length).filter(|at| status(attempt.memory[partition], *at) != UNREAD).count() as u8,
        }
    }

    pub(super) fn memory_after(&self, attempt: Attempt, partition: usize, mut memory: u8) -> u8 {
        for at in 0..self.length {
            let record = self.record(partition, at);
            if attempt.range == Some(record) {
                memory = with_status(memory, at, if self.is_waiting(record) { WAITING } else { RELEASED });
            }
            if attempt.settles >> record & 1 == 1 {
                memory = with_status(memory, at, RELEASED);
            }
        }
        memory
    }

    pub(super) fn outputs(&self, attempt: Attempt) -> u8 {
        let read = attempt.range.filter(|record| !self.is_waiting(*record)).map_or(0, |record| 1 << record);
        (0..self.partitions as u8 * self.length)
            .filter(|record| (read | attempt.settles) >> record & 1 == 1)
            .fold(0, |outputs, record| outputs + (1 << (2 * record)))
    }

    pub(super) fn treats(&self, s: &State, i: usize, to: &mut Steps) {
        let me = &s.processes[i];
        let (mut memory, mut waiting) = ([0; PARTITIONS], 0u8);
        let mut ranges = vec![None];
        for partition in 0..self.partitions {
            let entries = match me.shares[partition] {
                Share::Ready(entries) => {
                    if entries.next < self.length {
                        ranges.push(Some(self.record(partition, entries.next)));
                    }
                    entries
                }
                _ if !self.keeps(Without::DroppingWaiting) => me.kept[partition].unwrap_or_default(),
                _ => continue,
            };
            memory[partition] = entries.memory;
            for at in (0..self.length).filter(|at| status(entries.memory, *at) == WAITING) {
                waiting |= 1 << self.record(partition, at);
            }
        }
        for range in ranges {
            for settles in (0..=waiting).filter(|settles| settles & !waiting == 0) {
                if range.is_none() && settles == 0 {
                    continue;
                }
                let number = self.new_number(s);
                let mut attempt = Attempt { range, settles, sequence: me.sequence + 1, number, memory };
                for partition in 0..PARTITIONS {
                    if partition >= self.partitions || !self.is_place(attempt, partition) {
                        attempt.memory[partition] = 0;
                    }
                }
                let name = match (range, settles) {
                    (None, _) => "intends to settle waiting records",
                    (_, 0) => "intends to read a record",
                    _ => "intends to read a record and to settle waiting ones",
                };
                to.step(name, |n| {
                    let process = &mut n.processes[i];
                    (process.step, process.attempt) = (Step::Intended { afresh: true }, Some(attempt));
                    if self.keeps(Without::Intent) {
                        process.disk = Directory { sequence: me.sequence, intent: Some(attempt) };
                    }
                    if self.merges_steps() {
                        self.produce(n, i, true);
                    }
                });
            }
        }
    }

    /// Returns the smallest attempt number that is unknown everywhere; 0 without copies.
    fn new_number(&self, s: &State) -> u8 {
        if !self.copy {
            return 0;
        }
        let attempts = s.processes.iter().flat_map(|process| [process.attempt, process.disk.intent]);
        let sent = s.transactions.iter().map(|t| t.map(|t| t.attempt));
        let mut known: Vec<u8> = attempts.chain(sent).flatten().map(|attempt| attempt.number).collect();
        known.extend(s.processes.iter().map(|process| process.marker.number));
        known.extend(s.markers.iter().chain(&s.shown).map(|marker| marker.number));
        (0..u8::MAX).find(|number| !known.contains(number)).unwrap_or_default()
    }

    /// Retries if all partitions of the attempt are unchanged, and gives the attempt up if they cannot be.
    pub(super) fn retries(&self, s: &State, i: usize, attempt: Attempt, to: &mut Steps) {
        let me = &s.processes[i];
        let places = (0..self.partitions).filter(|p| {
            self.is_place(attempt, *p)
                && (self.keeps(Without::AllPlaces) || attempt.range.is_none() || self.range_in(attempt, *p).is_some())
        });
        let (mut ready, mut here, mut same) = (true, true, true);
        for partition in places {
            let Share::Ready(entries) = me.shares[partition] else {
                (ready, here) = (false, here && me.shares[partition] != Share::None);
                continue;
            };
            let author = entries.author == NO_AUTHOR || entries.author == self.author(i);
            let range = self.range_in(attempt, partition).is_none_or(|at| at == entries.next);
            same &= (author || !self.keeps(Without::AuthorCheck)) && (range || !self.keeps(Without::RangeCheck));
        }
        if ready && same {
            to.step("repeats its batch", |n| {
                n.processes[i].step = Step::Intended { afresh: false };
                if self.merges_steps() {
                    self.produce(n, i, false);
                }
            });
        } else if ready || !here && self.keeps(Without::GivingUp) {
            to.step("gives its batch up", |n| n.processes[i].give_up());
        }
    }
}
