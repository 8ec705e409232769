//! Restore of a partition from its changelog before records are read.

use super::{Commit, Entries, Fault, PROCESSES, Share, State, Step, Steps, Transaction, Without, World};

impl World {
    pub(super) fn restores(&self, s: &State, i: usize, partition: usize, share: Share, to: &mut Steps) {
        let stable = self.is_stable(s, partition);
        let is_wanted = matches!(share, Share::Asked(_) | Share::Restoring { .. });
        if self.may(Fault::EndedByOthers) && is_wanted {
            // Independent of the other process's state.
            for other in (0..PROCESSES).filter(|other| self.name(*other) != self.name(i)) {
                if s.processes[other].current {
                    to.rebalance("takes the transactional id of the other", |n| self.fence(n, other));
                }
            }
        }
        match share {
            Share::None | Share::Ready(_) => {}
            Share::Asked(offset) => to.step(["looks up the end of p0", "looks up the end of p1"][partition], |n| {
                let (waits, entries) = (self.open_in(n, partition), n.log[partition]);
                n.processes[i].shares[partition] = Share::Restoring { offset, waits, entries };
            }),
            Share::Restoring { offset, waits: 0, entries } => {
                if stable {
                    to.step(["has restored p0", "has restored p1"][partition], |n| {
                        self.restore(n, i, partition, offset, entries);
                    });
                }
            }
            Share::Restoring { .. } => {}
        }
    }

    pub(super) fn is_stable(&self, s: &State, partition: usize) -> bool {
        let undecided =
            |t: &Transaction| t.offsets && t.commit != Commit::InOffsets && self.sends_offset(t.attempt, partition);
        !self.keeps(Without::StableOffsets) || !s.transactions.iter().flatten().any(undecided)
    }

    fn open_in(&self, s: &State, partition: usize) -> u8 {
        let mut open = 0;
        if self.keeps(Without::WaitingForOpenTransactions) {
            for (slot, transaction) in s.transactions.iter().enumerate() {
                let is_open = transaction.is_some_and(|t| {
                    t.logged && t.commit != Commit::InChangelog && self.is_place(t.attempt, partition)
                });
                open |= u8::from(is_open) << slot;
            }
        }
        open
    }

    fn restore(&self, n: &mut State, i: usize, partition: usize, first: u8, entries: Entries) {
        let now = n.offset[partition];
        let before = if self.keeps(Without::ReadOffsetsFirst) { first } else { now };
        let after = if self.keeps(Without::ReadOffsetsAgain) { now } else { first };
        let differs = before > entries.next || after < entries.next;
        if differs && self.keeps(Without::ComparingOffsets) {
            return n.leave(i, Step::Refused);
        }
        let next = if self.keeps(Without::ComparingOffsets) { entries.next } else { now };
        n.processes[i].shares[partition] = Share::Ready(Entries { next, ..entries });
    }
}
