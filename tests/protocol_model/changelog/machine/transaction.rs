//! The transaction of a batch, from its first output to the answer of the commit, and what reaches it late.

use super::{Attempt, Epoch, Fault, Late, Share, State, Step, Transaction, Without, World, changed};

impl World {
    pub(super) fn produce(&self, n: &mut State, i: usize, attempt: Attempt) {
        if !n.processes[i].current {
            return n.leave(i, Step::Down);
        }
        n.processes[i].step = Step::Begun(attempt);
        n.processes[i].transaction = Some(Transaction {
            attempt,
            outputs: 1 << (2 * attempt.record),
            logged: false,
            offsets: false,
            asked: false,
            rewound: None,
        });
        let shown = &mut n.shown[usize::from(attempt.record)];
        let name = self.name(i) as u8;
        if shown.is_some_and(|(draw, by)| by == name && draw != attempt.draw) {
            n.broken = Some("a record was drawn again");
        }
        *shown = Some((attempt.draw, name));
    }

    pub(super) fn log(&self, n: &mut State, i: usize, attempt: Attempt) {
        if !n.processes[i].current {
            return n.leave(i, Step::Down);
        }
        let (partition, _) = self.place(attempt.record);
        // The broker gives the entry an offset below the end that this process has seen.
        if n.log[partition] & attempt.memory != attempt.memory && self.keeps(Without::WatchingTheEnd) {
            return n.leave(i, Step::Refused);
        }
        n.processes[i].step = Step::Logged(attempt);
        if self.keeps(Without::ChangelogInTransaction) {
            n.processes[i].transaction.as_mut().expect("begun").logged = true;
        }
    }

    pub(super) fn send_offsets(&self, n: &mut State, i: usize, attempt: Attempt) {
        let me = n.processes[i];
        if !me.current {
            n.leave(i, Step::Down);
        } else if !me.member && self.keeps(Without::GenerationCheck) {
            self.abort(n, i);
        } else {
            n.processes[i].step = Step::OffsetsSent(attempt);
            n.processes[i].transaction.as_mut().expect("begun").offsets = true;
        }
    }

    pub(super) fn ask(n: &mut State, i: usize, attempt: Attempt) {
        if n.processes[i].current {
            n.processes[i].step = Step::CommitAsked(attempt);
            n.processes[i].transaction.as_mut().expect("begun").asked = true;
        } else {
            n.leave(i, Step::Down);
        }
    }

    pub(super) fn commit(&self, n: &mut State, i: usize, t: Transaction) {
        let record = t.attempt.record;
        let (partition, at) = self.place(record);
        if t.attempt.memory != n.truth[partition] {
            n.broken = Some("released without the memory of its partition");
        }
        n.effects += t.outputs;
        n.truth[partition] |= 1 << at;
        // Nobody repeats what has left.
        for known in n.attempts.iter_mut().map(|of| &mut of[partition]).chain(&mut n.late_attempt) {
            *known = known.filter(|attempt| attempt.record != record);
        }
        if t.logged {
            n.log[partition] |= 1 << at;
            for process in &mut n.processes {
                if let Share::Restoring { memory, waits, .. } = &mut process.shares[partition] {
                    *memory |= u8::from((*waits >> i) & 1 == 1) << at;
                }
            }
        }
        if t.offsets {
            n.offset[partition] = at + 1;
        }
        if let Some((partition, at)) = t.rewound.map(|record| self.place(record)) {
            n.offset[partition] = at + 1;
        }
        n.end_transaction(i);
    }

    pub(super) fn commits(&self, s: &State, i: usize, attempt: Attempt, to: &mut dyn FnMut(&str, State)) {
        to("is told of the commit", changed(s, |n| self.learn(n, i, attempt)));
        let late = [(Fault::LateCommit, Late::Commit), (Fault::LateOffsets, Late::Offsets(attempt.record))];
        for (_, late) in late.into_iter().filter(|(fault, _)| self.may(*fault)) {
            let told = changed(s, |n| {
                self.learn(n, i, attempt);
                n.processes[i].late = Some(late);
            });
            to(&format!("is told of the commit, {late:?} still on its way,"), told);
        }
    }

    pub(super) fn learn(&self, n: &mut State, i: usize, attempt: Attempt) {
        let (partition, at) = self.place(attempt.record);
        if !self.keeps(Without::ChangelogInTransaction) {
            n.log[partition] |= 1 << at;
        }
        let used = self.used();
        let me = &mut n.processes[i];
        (me.step, me.epoch, me.pending[partition]) = (Step::Idle, used, None);
        if let Share::Ready { memory, next } = &mut me.shares[partition] {
            *memory |= 1 << at;
            *next = at + 1;
        }
    }

    pub(super) fn aborts(&self, s: &State, i: usize, attempt: Attempt, to: &mut dyn FnMut(&str, State)) {
        to("aborts", changed(s, |n| self.abort(n, i)));
        let late = [(Fault::LateAbort, Late::Abort), (Fault::LateProduce, Late::Produce(attempt.record))];
        for (_, late) in late.into_iter().filter(|(fault, _)| self.may(*fault)) {
            let aborted = changed(s, |n| {
                self.abort(n, i);
                n.processes[i].late = Some(late);
            });
            to(&format!("aborts, {late:?} still on its way,"), aborted);
        }
    }

    pub(super) fn abort(&self, n: &mut State, i: usize) {
        if !n.processes[i].current {
            return n.leave(i, Step::Down);
        }
        n.end_transaction(i);
        (n.processes[i].step, n.processes[i].epoch) = (Step::Idle, self.used());
    }

    pub(super) fn used(&self) -> Epoch {
        if self.keeps(Without::NewEpochs) { Epoch::Used } else { Epoch::Fresh }
    }

    /// A late request reaches the broker under the epoch that the process still has. Where no transaction is open it does nothing.
    pub(super) fn arrive(&self, n: &mut State, i: usize, late: Late) {
        n.processes[i].late = None;
        let Some(t) = n.processes[i].transaction.as_mut().filter(|t| !t.asked) else { return };
        match late {
            // Its records are visible, whatever was still to follow.
            Late::Commit => {
                n.broken = Some("a part of a batch was committed");
                n.leave(i, Step::Down);
            }
            // What was sent so far is gone, what follows begins another transaction.
            Late::Abort => (t.outputs, t.logged, t.offsets) = (0, false, false),
            Late::Produce(record) => t.outputs += 1 << (2 * record),
            Late::Offsets(record) if t.offsets => t.rewound = Some(record),
            Late::Offsets(_) => {}
        }
    }
}
