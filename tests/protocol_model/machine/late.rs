//! Requests that reach the broker late, and the new epoch that makes it refuse them.

use super::{Record, State, Step, Without, World, changed};

/// A request that the client has repeated, or given up, and that has not reached the broker yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Late {
    Commit,
    Abort,
    /// With this record.
    Produce(Record),
    /// With the offset behind this record.
    Offsets(Record),
}

/// What has become of the epoch that a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Epoch {
    Fresh,
    /// A transaction has had it.
    Used,
    /// Taken, and who had the id meanwhile not yet known.
    Taken,
}

impl World {
    /// Aborts, with or without a request that is on its way still.
    pub(super) fn aborts(&self, s: &State, i: usize, record: Record, to: &mut dyn FnMut(&str, State)) {
        to("aborts", changed(s, |n| self.abort(n, i)));
        for late in [Late::Abort, Late::Produce(record)].into_iter().filter(|late| (self.late)(*late)) {
            let aborted = changed(s, |n| {
                self.abort(n, i);
                n.processes[i].late = Some(late);
            });
            to(&format!("aborts, {late:?} still on its way,"), aborted);
        }
    }

    /// A late request reaches the broker under the epoch that the process still has. Where no transaction is open it does
    /// nothing: there is nothing to commit or to abort, and a record or an offset belongs to no transaction that the
    /// coordinator knows of.
    pub(super) fn arrive(&self, n: &mut State, i: usize, late: Late) {
        n.processes[i].late = None;
        let Some(t) = n.processes[i].transaction.as_mut().filter(|t| !t.asked) else { return };
        match late {
            // Its records are visible, whatever was still to follow. The process will be told that it has no transaction.
            Late::Commit => {
                n.effects += 1 << (2 * t.attempt.record);
                n.torn = true;
                n.end_transaction(i);
                n.leave(i, Step::Stopped);
            }
            Late::Abort => t.beheaded = true,
            Late::Produce(record) => t.stray = Some(record),
            Late::Offsets(record) if t.offsets => t.rewound = Some(record),
            Late::Offsets(_) => {}
        }
    }

    /// Takes the id from whoever has it, then looks who that was, before anything begins.
    pub(super) fn renew(&self, s: &State, i: usize, to: &mut dyn FnMut(&str, State)) {
        match s.processes[i].epoch {
            Epoch::Fresh => {}
            Epoch::Used => to(
                "takes a new epoch",
                changed(s, |n| {
                    self.take(n, i);
                    let looks = self.without != Without::LookingAfterTakingTheId;
                    n.processes[i].epoch = if looks { Epoch::Taken } else { Epoch::Fresh };
                }),
            ),
            Epoch::Taken => to(
                "looks who had the id",
                changed(s, |n| {
                    if n.marker[self.id(i)] == n.processes[i].last {
                        n.processes[i].epoch = Epoch::Fresh;
                    } else {
                        n.leave(i, Step::Stopped);
                    }
                }),
            ),
        }
    }
}
