//! What happens to processes and at the broker by itself.

use super::{Fault, PARTITIONS, PROCESSES, State, Step, Without, World, changed, highest};

impl World {
    /// What happens to a process and to its transaction, whatever it does.
    pub(super) fn accidents(&self, s: &State, i: usize, to: &mut dyn FnMut(&str, State)) {
        let me = s.processes[i];
        if me.step != Step::Down {
            to("crashes", changed(s, |n| n.leave(i, Step::Down)));
        } else if me.copies != [None; PARTITIONS] && self.may(Fault::LocalCopies) {
            to("loses its directory", changed(s, |n| n.processes[i].copies = [None; PARTITIONS]));
        }
        if let Some(t) = me.transaction {
            if t.asked && (me.current || !self.keeps(Without::Fencing)) {
                to("is committed by the broker", changed(s, |n| self.commit(n, i, t)));
            }
            to("times out its transaction", changed(s, |n| n.fence(i)));
        }
        if let Some(late) = me.late {
            to("is overtaken by a late request", changed(s, |n| self.arrive(n, i, late)));
        }
        if me.member {
            to("is expelled", changed(s, |n| n.expel(i)));
        }
    }

    /// What happens at the broker by itself.
    pub(super) fn broker_faults(&self, s: &State, to: &mut dyn FnMut(&str, State)) {
        for name in 0..PROCESSES {
            if let Some(late) = s.late_attempt[name] {
                to(
                    "a late attempt record arrives",
                    changed(s, |n| {
                        n.late_attempt[name] = None;
                        n.attempts[name][self.place(late.record).0] = Some(late);
                    }),
                );
            }
        }
        for partition in 0..self.partitions {
            let open = s.processes.iter().any(|p| p.transaction.is_some());
            if self.may(Fault::LostEntry) && s.lost.is_none() && !open && s.log[partition] != 0 {
                to(
                    "the newest changelog entry is lost",
                    changed(s, |n| {
                        n.lost = Some(Fault::LostEntry);
                        n.log[partition] &= !(1 << (highest(s.log[partition]) - 1));
                    }),
                );
            }
            if self.may(Fault::LostOffset) && s.lost.is_none() && !open && s.offset[partition] != 0 {
                to(
                    "the newest offset is lost",
                    changed(s, |n| {
                        n.lost = Some(Fault::LostOffset);
                        n.offset[partition] -= 1;
                    }),
                );
            }
        }
    }
}
