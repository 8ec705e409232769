//! Faults of processes and brokers, and commits that the broker completes.

use super::{
    Commit, Directory, Fault, LOST_AUTHOR, Late, Marker, ORPHAN, PARTITIONS, Share, State, Step, Steps, Without, World,
};

impl World {
    pub(super) fn broker_steps(&self, s: &State, slot: usize, to: &mut Steps) {
        let Some(t) = s.transactions[slot] else { return };
        let is_latest = slot == ORPHAN || s.processes[slot].current || !self.keeps(Without::Fencing);
        match t.commit {
            Commit::Undecided => {
                if t.asked && is_latest {
                    to.step("is committed by the broker", |n| self.commit(n, slot));
                }
                if slot == ORPHAN {
                    to.step("times out", |n| n.end_transaction(slot));
                } else if slot < self.fallible {
                    to.step("times out its transaction", |n| self.fence(n, slot));
                }
            }
            Commit::Decided => {
                to.step("has its commit in the changelog", |n| self.show(n, slot, Commit::InChangelog));
                to.step("has its commit in the offsets", |n| self.show(n, slot, Commit::InOffsets));
            }
            Commit::InChangelog => {
                to.step("has its commit in the offsets", |n| self.show(n, slot, Commit::InOffsets));
            }
            Commit::InOffsets => {
                to.step("has its commit in the changelog", |n| self.show(n, slot, Commit::InChangelog));
            }
        }
    }

    pub(super) fn accidents(&self, s: &State, i: usize, to: &mut Steps) {
        let me = &s.processes[i];
        if me.step != Step::Down {
            to.fault("crashes", |n| n.leave(i, Step::Down));
        } else if self.may(Fault::LostDirectory) && self.has_something(s, i) && s.transactions[ORPHAN].is_none() {
            to.fault("loses its directory", |n| self.lose_directory(n, i));
        }
        if let Some(late) = me.late {
            to.fault("is overtaken by a late request", |n| self.arrive(n, i, late));
        }
        if me.member {
            to.fault("is expelled", |n| n.expel(i));
        }
    }

    fn has_something(&self, s: &State, i: usize) -> bool {
        let id = self.author(i);
        s.processes[i].disk != Directory::default() || s.log.iter().any(|entries| entries.author == id)
    }

    /// The next start has another id, so the old transaction is not fenced.
    fn lose_directory(&self, n: &mut State, i: usize) {
        let id = self.author(i);
        let forget = |author: &mut u8| {
            if *author == id {
                *author = LOST_AUTHOR;
            }
        };
        for entries in n.log.iter_mut().chain(&mut n.before) {
            forget(&mut entries.author);
        }
        for process in &mut n.processes {
            for share in &mut process.shares {
                if let Share::Restoring { entries, waits, .. } = share {
                    forget(&mut entries.author);
                    let moved = *waits >> i & 1;
                    *waits = *waits & !(1 << i) | moved << ORPHAN;
                } else if let Share::Ready(entries) = share {
                    forget(&mut entries.author);
                }
            }
        }
        n.transactions[ORPHAN] = n.transactions[i].take();
        // No process looks for its marker any more.
        if let Some(t) = &mut n.transactions[ORPHAN] {
            t.attempt.sequence = 0;
        }
        let me = &mut n.processes[i];
        (me.disk, me.owes_retry, me.current, me.late) = (Directory::default(), false, false, None);
        (n.markers[i], n.shown[i], n.hidden[i]) = (Marker::default(), Marker::default(), false);
    }

    /// Delivers a late request under the current epoch, with effect only on an open transaction before its commit
    /// request.
    fn arrive(&self, n: &mut State, i: usize, late: Late) {
        n.processes[i].late = None;
        let Some(t) = n.transactions[i].as_mut().filter(|t| !t.asked) else { return };
        match late {
            // The records so far become visible without the rest of the batch.
            Late::Commit => {
                n.broken = Some("a part of a batch was committed");
                n.leave(i, Step::Down);
            }
            // The records so far are aborted; later ones begin another transaction.
            Late::Abort => (t.outputs, t.logged, t.offsets) = (0, false, false),
            Late::Produce(attempt) => t.outputs += self.outputs(attempt),
            Late::Offsets(attempt) if t.offsets => t.rewound = Some(attempt),
            Late::Offsets(_) => {}
        }
    }

    /// At most one unclean leader election per run.
    pub(super) fn broker_faults(&self, s: &State, to: &mut Steps) {
        if s.lost.is_some() || s.transactions.iter().any(Option::is_some) {
            return;
        }
        for partition in 0..PARTITIONS {
            let is_read = |share| matches!(share, Share::Restoring { .. } | Share::Ready(_));
            let fault = if s.processes.iter().any(|p| is_read(p.shares[partition])) {
                Fault::LostEntryOfOwner
            } else {
                Fault::LostEntry
            };
            if self.may(fault) && s.log[partition] != s.before[partition] {
                to.fault("the newest changelog entries are lost", |n| {
                    (n.lost, n.log[partition]) = (Some(fault), n.before[partition]);
                });
            }
            if self.may(Fault::LostOffset) && s.offset[partition] != 0 {
                to.fault("the newest offset is lost", |n| {
                    n.lost = Some(Fault::LostOffset);
                    n.offset[partition] -= 1;
                });
            }
        }
        for id in 0..s.markers.len() {
            if self.may(Fault::LostMarker) && s.markers[id].sequence != 0 {
                to.fault("the newest marker is lost", |n| {
                    n.lost = Some(Fault::LostMarker);
                    n.markers[id].sequence -= 1;
                });
            }
        }
    }
}
