//! Transaction of a batch, from its first output to the commit response.

use super::{
    Attempt, Commit, Epoch, Fault, Late, Marker, ORPHAN, PROCESSES, Share, State, Step, Steps, Transaction, Without,
    World,
};

impl World {
    pub(super) fn produce(&self, n: &mut State, i: usize, afresh: bool) {
        let me = &mut n.processes[i];
        let Some(attempt) = me.attempt.filter(|_| me.current) else { return n.leave(i, Step::Down) };
        if afresh && me.owes_retry {
            n.broken = Some("drawn again");
        }
        (me.step, me.owes_retry) = (Step::Begun, true);
        n.transactions[i] = Some(Transaction {
            attempt,
            outputs: self.outputs(attempt),
            logged: self.keeps(Without::EntriesBeforeOffsets) && self.keeps(Without::ChangelogInTransaction),
            offsets: false,
            asked: false,
            commit: Commit::Undecided,
            rewound: None,
        });
    }

    /// The group accepts offsets only from its members.
    pub(super) fn send_offsets(&self, n: &mut State, i: usize) {
        let me = n.processes[i];
        if !me.current {
            return n.leave(i, Step::Down);
        }
        let transaction = n.transactions[i].as_mut().expect("begun");
        let sends = (0..self.partitions).any(|partition| self.sends_offset(transaction.attempt, partition));
        if sends && !me.member && self.keeps(Without::GenerationCheck) {
            return self.abort(n, i);
        }
        transaction.offsets = self.keeps(Without::OffsetsInTransaction);
        n.processes[i].step = Step::OffsetsSent;
        if self.merges_steps() {
            self.ask(n, i);
        }
    }

    pub(super) fn ask(&self, n: &mut State, i: usize) {
        if !n.processes[i].current {
            return n.leave(i, Step::Down);
        }
        let transaction = n.transactions[i].as_mut().expect("begun");
        if !transaction.logged && !self.keeps(Without::EntriesBeforeOffsets) {
            transaction.logged = true;
            return;
        }
        transaction.asked = true;
        n.processes[i].step = Step::CommitAsked;
    }

    pub(super) fn answers(&self, s: &State, i: usize, to: &mut Steps) {
        let me = &s.processes[i];
        let is_decided = s.transactions[i].is_none_or(|t| t.commit != Commit::Undecided);
        if !me.current {
            to.step("hears that it is fenced", |n| n.leave(i, Step::Down));
        } else if let Some(attempt) = me.attempt.filter(|_| is_decided) {
            to.step("hears of the commit", |n| self.learn(n, i, attempt));
            let late = [
                (Fault::LateCommit, Late::Commit, "hears of the commit, a late commit on its way"),
                (
                    Fault::LateOffsets,
                    Late::Offsets(Attempt { sequence: 0, ..attempt }),
                    "hears of the commit, late offsets on their way",
                ),
            ];
            for (_, late, name) in late.into_iter().filter(|(fault, ..)| self.may(*fault)) {
                to.fault(name, |n| {
                    self.learn(n, i, attempt);
                    n.processes[i].late = Some(late);
                });
            }
        }
    }

    fn learn(&self, n: &mut State, i: usize, attempt: Attempt) {
        let author = self.author(i);
        for partition in (0..self.partitions).filter(|p| self.is_place(attempt, *p)) {
            if !self.keeps(Without::ChangelogInTransaction) {
                n.log[partition] = n.log[partition].after(self, attempt, author, partition);
            }
            if !self.keeps(Without::OffsetsInTransaction) {
                n.offset[partition] = self.offset_after(attempt, partition);
            }
            let me = &mut n.processes[i];
            if let Share::Ready(entries) = &mut me.shares[partition] {
                *entries = entries.after(self, attempt, author, partition);
            }
            if let Some(kept) = &mut me.kept[partition] {
                *kept = kept.after(self, attempt, author, partition);
            }
        }
        let epoch = self.used();
        let me = &mut n.processes[i];
        (me.step, me.epoch, me.attempt) = (Step::Idle, epoch, None);
        (me.sequence, me.marker) = (attempt.sequence, Marker { sequence: attempt.sequence, number: attempt.number });
    }

    pub(super) fn aborts(&self, s: &State, i: usize, to: &mut Steps) {
        to.fault("aborts", |n| self.abort(n, i));
        let Some(attempt) = s.processes[i].attempt else { return };
        let late = [
            (Fault::LateAbort, Late::Abort, "aborts, a late abort on its way"),
            (Fault::LateProduce, Late::Produce(Attempt { sequence: 0, ..attempt }), "aborts, a late output on its way"),
        ];
        for (_, late, name) in late.into_iter().filter(|(fault, ..)| self.may(*fault)) {
            to.fault(name, |n| {
                self.abort(n, i);
                n.processes[i].late = Some(late);
            });
        }
    }

    fn abort(&self, n: &mut State, i: usize) {
        if !n.processes[i].current {
            return n.leave(i, Step::Down);
        }
        n.end_transaction(i);
        (n.processes[i].step, n.processes[i].epoch) = (Step::Idle, self.used());
        // A partition of the attempt was revoked while the batch was in flight.
        let is_lost = |attempt: Attempt| {
            (0..self.partitions).any(|p| self.is_place(attempt, p) && n.processes[i].shares[p] == Share::None)
        };
        if n.processes[i].attempt.is_some_and(is_lost) {
            n.processes[i].give_up();
        }
    }

    fn used(&self) -> Epoch {
        if self.keeps(Without::NewEpochs) && self.needs_epochs() { Epoch::Used } else { Epoch::Fresh }
    }

    /// Decides the commit, which may become visible in one topic before the other.
    pub(super) fn commit(&self, n: &mut State, slot: usize) {
        let Some(mut t) = n.transactions[slot] else { return };
        for partition in (0..self.partitions).filter(|p| self.is_place(t.attempt, *p)) {
            if t.attempt.memory[partition] != n.truth[partition] {
                n.broken = Some("released without the memory of its partition");
            }
            n.truth[partition] = self.memory_after(t.attempt, partition, n.truth[partition]);
            for process in &mut n.processes {
                let intent = process.disk.intent.or(process.attempt);
                if intent.is_some_and(|intent| self.is_place(intent, partition)) {
                    process.owes_retry = false;
                }
            }
        }
        if slot != ORPHAN {
            n.processes[slot].owes_retry = false;
        }
        n.effects += t.outputs;
        t.commit = Commit::Decided;
        n.transactions[slot] = Some(t);
        if !self.may(Fault::SlowCommit) {
            self.show(n, slot, Commit::InChangelog);
            self.show(n, slot, Commit::InOffsets);
        }
    }

    pub(super) fn show(&self, n: &mut State, slot: usize, place: Commit) {
        let Some(t) = n.transactions[slot] else { return };
        for partition in (0..self.partitions).filter(|p| self.is_place(t.attempt, *p)) {
            if place == Commit::InChangelog && t.logged {
                self.show_entries(n, slot, t.attempt, partition);
            }
            if place == Commit::InOffsets && t.offsets && self.sends_offset(t.attempt, partition) {
                n.offset[partition] = self.offset_after(t.attempt, partition);
            }
        }
        if place == Commit::InOffsets {
            if let Some((attempt, partition)) = t.rewound.and_then(|a| Some((a, self.place(a.range?).0))) {
                n.offset[partition] = self.offset_after(attempt, partition);
            }
        } else {
            n.stop_waiting(slot);
        }
        if place == Commit::InChangelog && slot != ORPHAN {
            let id = self.name(slot);
            n.shown[id] = if self.keeps(Without::WaitingForHiddenMarkers) { Marker::default() } else { n.markers[id] };
            n.markers[id] = Marker { sequence: t.attempt.sequence, number: t.attempt.number };
            n.hidden[id] = n
                .transactions
                .iter()
                .enumerate()
                .any(|(other, t)| other != slot && t.is_some_and(|t| t.commit != Commit::InChangelog));
        }
        if t.commit == Commit::Decided {
            n.transactions[slot] = Some(Transaction { commit: place, ..t });
        } else {
            n.end_transaction(slot);
        }
    }

    fn show_entries(&self, n: &mut State, slot: usize, attempt: Attempt, partition: usize) {
        let author = self.author(slot);
        if self.may(Fault::LostEntry) || self.may(Fault::LostEntryOfOwner) {
            n.before[partition] = n.log[partition];
        }
        n.log[partition] = n.log[partition].after(self, attempt, author, partition);
        for process in &mut n.processes {
            if let Share::Restoring { entries, waits, .. } = &mut process.shares[partition]
                && (*waits >> slot) & 1 == 1
            {
                *entries = entries.after(self, attempt, author, partition);
            }
        }
    }

    /// Refuses further requests under this epoch. A decided commit is completed.
    pub(super) fn fence(&self, n: &mut State, i: usize) {
        match n.transactions[i].map(|t| t.commit) {
            None => {}
            Some(Commit::Undecided) => n.end_transaction(i),
            Some(Commit::Decided) => {
                self.show(n, i, Commit::InChangelog);
                self.show(n, i, Commit::InOffsets);
            }
            Some(Commit::InChangelog) => self.show(n, i, Commit::InOffsets),
            Some(Commit::InOffsets) => self.show(n, i, Commit::InChangelog),
        }
        (n.processes[i].current, n.processes[i].late) = (false, None);
    }
}

impl State {
    fn stop_waiting(&mut self, slot: usize) {
        for process in &mut self.processes {
            for share in &mut process.shares {
                if let Share::Restoring { waits, .. } = share {
                    *waits &= !(1 << slot);
                }
            }
        }
    }

    pub(super) fn end_transaction(&mut self, slot: usize) {
        self.transactions[slot] = None;
        self.stop_waiting(slot);
        if self.transactions.iter().all(Option::is_none) {
            self.hidden = [false; PROCESSES];
        }
    }
}
