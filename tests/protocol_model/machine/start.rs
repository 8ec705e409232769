//! Process start and acquisition of its transactional id.

use super::{Directory, Epoch, PARTITIONS, PROCESSES, Share, State, Step, Steps, Without, World};

impl World {
    pub(super) fn starts(&self, s: &State, i: usize, to: &mut Steps) {
        if self.copy && i == 1 && !s.copied {
            to.step("gets a copy of the other directory", |n| {
                n.copied = true;
                let original = n.processes[0];
                n.processes[1].disk = original.disk;
                n.processes[1].owes_retry = original.owes_retry && original.disk.intent.is_some();
            });
        } else {
            to.step("starts", |n| self.open(n, i));
        }
    }

    /// Models `init_transactions`: fences the older process of this id and aborts its transaction.
    fn open(&self, n: &mut State, i: usize) {
        if self.keeps(Without::Fencing) {
            self.take(n, i);
        }
        let me = &mut n.processes[i];
        (me.current, me.step, me.epoch) = (true, Step::Opened, Epoch::Fresh);
    }

    /// The broker refuses requests under older epochs.
    fn take(&self, n: &mut State, i: usize) {
        for other in (0..PROCESSES).filter(|other| self.name(*other) == self.name(i)) {
            self.fence(n, other);
        }
        n.processes[i].current = true;
    }

    pub(super) fn recover(&self, n: &mut State, i: usize) {
        let id = self.name(i);
        let marker = if n.hidden[id] { n.shown[id] } else { n.markers[id] };
        let me = &mut n.processes[i];
        me.sequence = me.disk.sequence;
        me.attempt = me.disk.intent;
        if let Some(intent) = me.disk.intent {
            let same_attempt = marker.number == intent.number || !self.keeps(Without::MarkerAttempt);
            if marker.sequence == intent.sequence && same_attempt && self.keeps(Without::Marker) {
                (me.sequence, me.attempt) = (intent.sequence, None);
            }
        }
        let is_copy = marker.sequence > me.sequence;
        if is_copy && self.keeps(Without::RefusingCopies) && self.keeps(Without::Marker) {
            return n.leave(i, Step::Refused);
        }
        me.marker = marker;
        if me.attempt.is_none() {
            me.disk = Directory { sequence: me.sequence, intent: None };
        }
        (me.step, me.member, me.shares) = (Step::Idle, true, [Share::None; PARTITIONS]);
    }

    /// Takes a new epoch, then checks the markers of its id.
    pub(super) fn renew(&self, s: &State, i: usize, to: &mut Steps) {
        match s.processes[i].epoch {
            Epoch::Fresh => {}
            Epoch::Used => to.step("takes a new epoch", |n| {
                self.take(n, i);
                let looks = self.keeps(Without::LookingAfterTakingTheId);
                n.processes[i].epoch = if looks { Epoch::Taken } else { Epoch::Fresh };
            }),
            Epoch::Taken => to.step("looks at the markers", |n| {
                if n.markers[self.name(i)] == n.processes[i].marker {
                    n.processes[i].epoch = Epoch::Fresh;
                } else {
                    n.leave(i, Step::Down);
                }
            }),
        }
    }
}
