//! Assignment and revocation of partitions.

use super::{Epoch, PARTITIONS, Share, State, Step, Steps, Without, World};

impl World {
    pub(super) fn rebalances(&self, s: &State, i: usize, to: &mut Steps) {
        let me = &s.processes[i];
        for partition in 0..self.partitions {
            let free = s.owner[partition].is_none() && self.is_stable(s, partition);
            if me.member && free && me.shares[partition] == Share::None {
                let name =
                    ["is assigned p0 and asks for its offset", "is assigned p1 and asks for its offset"][partition];
                to.step(name, |n| {
                    n.owner[partition] = Some(i as u8);
                    let process = &mut n.processes[i];
                    process.shares[partition] = match process.kept[partition] {
                        Some(kept) if !self.keeps(Without::Restoring) => Share::Ready(kept),
                        _ => Share::Asked(n.offset[partition]),
                    };
                });
            }
            let finished = me.step == Step::Idle || !self.keeps(Without::FinishBeforeRevocation);
            let renewed = me.epoch == Epoch::Fresh
                || !self.keeps(Without::RenewBeforeRevocation)
                || !self.keeps(Without::FinishBeforeRevocation);
            if s.owner[partition] == Some(i as u8) && finished && renewed {
                to.rebalance(["gives p0 back", "gives p1 back"][partition], |n| {
                    n.owner[partition] = None;
                    self.release(n, i, partition);
                });
            }
        }
    }

    /// The expulsion took all partitions of the process.
    pub(super) fn join_again(&self, n: &mut State, i: usize) {
        for partition in 0..PARTITIONS {
            self.release(n, i, partition);
        }
        n.processes[i].member = true;
    }

    fn release(&self, n: &mut State, i: usize, partition: usize) {
        let me = &mut n.processes[i];
        let share = std::mem::replace(&mut me.shares[partition], Share::None);
        if let Share::Ready(entries) = share
            && !(self.keeps(Without::Restoring) && self.keeps(Without::DroppingWaiting))
        {
            me.kept[partition] = Some(entries);
        }
        let is_retry = me.step == Step::Idle && share != Share::None;
        let gives_up = self.keeps(Without::GiveUpAtRevocation) && self.keeps(Without::GivingUp);
        if is_retry && gives_up && me.attempt.is_some_and(|attempt| self.is_place(attempt, partition)) {
            me.give_up();
        }
    }
}
