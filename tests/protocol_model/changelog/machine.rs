//! The states of the changelog protocol, and every step that leads from one to another.

mod faults;
mod transaction;

use super::super::Machine;

const PROCESSES: usize = 2;
const PARTITIONS: usize = 2;
const RECORDS: usize = 4;

/// A record by number: partition times length plus offset. Sets of records are bits.
pub type Record = u8;

/// The rules that can be switched off, to show that the search notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    Nothing,
    /// Produces before the attempt record is acknowledged.
    AttemptRecord,
    /// Attempt records do not name the start that wrote them.
    StartRecord,
    /// A new epoch is taken without a look at the last start record.
    LookingAfterTakingTheId,
    /// One producer epoch for all transactions of a process.
    NewEpochs,
    /// A start leaves the older process and its open transaction alone.
    Fencing,
    /// Offsets are sent before the changelog entries are acknowledged.
    ChangelogBeforeOffsets,
    /// Changelog entries are written after the commit, not in the transaction.
    ChangelogInTransaction,
    /// Offsets are committed without the generation of the group.
    GenerationCheck,
    /// Restores up to the first open transaction and goes on.
    WaitingForOpenTransactions,
    /// A local copy is used without a look at the end of the changelog.
    PositionCheck,
    /// Reads from the offsets of the group, not from the progress in the changelog.
    StartingAtProgress,
    /// A partition is given up while its batch is under way.
    FinishBeforeRevocation,
    /// Offsets ahead of the changelog are accepted.
    ComparingOffsets,
    /// The offsets of the group are read after the end of the changelog.
    ReadingOffsetsFirst,
    /// The offsets that the broker gives to changelog entries are not looked at.
    WatchingTheEnd,
}

/// What may go wrong beside crashes, aborts and rebalances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    LateCommit,
    LateAbort,
    LateProduce,
    LateOffsets,
    LateAttempt,
    /// An unclean leader election drops the newest entry of a changelog partition.
    LostEntry,
    /// The newest offset of the group is lost.
    LostOffset,
    /// A process keeps local copies, and loses its directory.
    LocalCopies,
    /// What is drawn for a batch differs from attempt to attempt.
    OtherDraws,
}

#[derive(Clone, Copy)]
pub struct World {
    pub without: Without,
    pub partitions: usize,
    /// Records a partition.
    pub length: u8,
    /// Both processes have one transactional id.
    pub one_name: bool,
    pub faults: fn(Fault) -> bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Down,
    /// `init_transactions` is done; the attempt records are not read yet.
    Opened,
    Idle,
    /// The attempt record is acknowledged.
    Attempted(Attempt),
    /// Outputs are produced.
    Begun(Attempt),
    OffsetsSent(Attempt),
    Logged(Attempt),
    CommitAsked(Attempt),
    /// The changelog has lost entries: an operator decides.
    Refused,
}

/// A batch as it is treated: its record, what was drawn for it, and what its process remembered of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Attempt {
    record: Record,
    draw: bool,
    memory: u8,
}

/// A transaction as the broker has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Transaction {
    attempt: Attempt,
    /// Outputs by record, two bits each.
    outputs: u32,
    logged: bool,
    offsets: bool,
    asked: bool,
    /// Offsets behind this record came after its own.
    rewound: Option<Record>,
}

/// A request that the client has repeated, or given up, and that has not reached the broker yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Late {
    Commit,
    Abort,
    Produce(Record),
    Offsets(Record),
}

/// What a process has of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Share {
    None,
    Assigned,
    /// The entries up to the end of the changelog at one moment, and the processes whose transactions were open there.
    /// The offset of the group was read before that.
    Restoring {
        memory: u8,
        waits: u8,
        offset: u8,
    },
    Ready {
        memory: u8,
        next: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Epoch {
    Fresh,
    /// A transaction has had it.
    Used,
    /// Taken; who had the id meanwhile is not known yet.
    Taken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Process {
    step: Step,
    /// The broker takes its producer for the latest of its id.
    current: bool,
    /// The last start record of its name is its own.
    started_last: bool,
    epoch: Epoch,
    late: Option<Late>,
    member: bool,
    shares: [Share; PARTITIONS],
    /// Local copies on the disk.
    copies: [Option<u8>; PARTITIONS],
    /// Attempts that are to be repeated as they were.
    pending: [Option<Attempt>; PARTITIONS],
    transaction: Option<Transaction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    processes: [Process; PROCESSES],
    owner: [Option<u8>; PARTITIONS],
    /// Offsets of the group.
    offset: [u8; PARTITIONS],
    /// Entries of the changelog, committed.
    log: [u8; PARTITIONS],
    /// What was committed, whatever has been lost since.
    truth: [u8; PARTITIONS],
    /// Committed outputs by record, two bits each.
    effects: u32,
    /// Attempt records by name, those of the last start.
    attempts: [[Option<Attempt>; PARTITIONS]; PROCESSES],
    /// An attempt record on its way, of a process that has crashed.
    late_attempt: [Option<Attempt>; PROCESSES],
    /// What readers of everything have seen of a record: the draw and the name.
    shown: [Option<(bool, u8)>; RECORDS],
    /// What an unclean election has lost, at most once.
    lost: Option<Fault>,
    broken: Option<&'static str>,
}

impl Machine for World {
    type State = State;

    fn start(&self) -> State {
        let down = Process {
            step: Step::Down,
            current: false,
            started_last: false,
            epoch: Epoch::Fresh,
            late: None,
            member: false,
            shares: [Share::None; PARTITIONS],
            copies: [None; PARTITIONS],
            pending: [None; PARTITIONS],
            transaction: None,
        };
        State {
            processes: [down; PROCESSES],
            owner: [None; PARTITIONS],
            offset: [0; PARTITIONS],
            log: [0; PARTITIONS],
            truth: [0; PARTITIONS],
            effects: 0,
            attempts: [[None; PARTITIONS]; PROCESSES],
            late_attempt: [None; PROCESSES],
            shown: [None; RECORDS],
            lost: None,
            broken: None,
        }
    }

    fn next(&self, s: &State) -> Vec<(String, State)> {
        let mut all = Vec::new();
        for i in 0..PROCESSES {
            self.steps_of(s, i, &mut |name, next| all.push((format!("{name} {i}"), next)));
        }
        self.broker_faults(s, &mut |name, next| all.push((name.to_owned(), next)));
        all
    }

    fn broken(&self, s: &State) -> Option<&'static str> {
        if s.broken.is_some() {
            return s.broken;
        }
        for partition in 0..self.partitions {
            for at in 0..self.length {
                let effects = (s.effects >> (2 * self.record(partition, at))) & 3;
                if effects > 1 {
                    return Some("twice");
                }
                if effects == 0 && (s.truth[partition] >> at) & 1 == 1 {
                    return Some("lost");
                }
            }
        }
        let refused = s.processes.iter().any(|p| p.step == Step::Refused);
        (refused && s.lost != Some(Fault::LostEntry)).then_some("refused, and nothing was lost")
    }

    fn done(&self, s: &State) -> bool {
        let all = (1u8 << self.length) - 1;
        s.truth[..self.partitions].iter().all(|truth| *truth == all)
            || s.processes.iter().any(|p| p.step == Step::Refused)
    }
}

impl World {
    fn name(&self, process: usize) -> usize {
        if self.one_name { 0 } else { process }
    }

    fn place(&self, record: Record) -> (usize, u8) {
        (usize::from(record / self.length), record % self.length)
    }

    fn record(&self, partition: usize, at: u8) -> Record {
        partition as u8 * self.length + at
    }

    fn may(&self, fault: Fault) -> bool {
        (self.faults)(fault)
    }

    fn keeps(&self, rule: Without) -> bool {
        self.without != rule
    }

    fn steps_of(&self, s: &State, i: usize, to: &mut dyn FnMut(&str, State)) {
        let me = s.processes[i];
        self.accidents(s, i, to);
        match me.step {
            Step::Down => to("starts", changed(s, |n| self.open(n, i))),
            Step::Opened => to("writes its start record", changed(s, |n| self.begin(n, i))),
            Step::Idle => self.idle(s, i, to),
            // The next epoch is taken while the batch is treated.
            Step::Attempted(_) if me.epoch != Epoch::Fresh => self.renew(s, i, to),
            Step::Attempted(attempt) => to("produces outputs", changed(s, |n| self.produce(n, i, attempt))),
            Step::Begun(attempt) => {
                self.aborts(s, i, attempt, to);
                if self.keeps(Without::ChangelogBeforeOffsets) {
                    to("writes to the changelog", changed(s, |n| self.log(n, i, attempt)));
                } else {
                    to("sends offsets", changed(s, |n| self.send_offsets(n, i, attempt)));
                }
            }
            Step::Logged(attempt) => {
                self.aborts(s, i, attempt, to);
                if self.keeps(Without::ChangelogBeforeOffsets) {
                    to("sends offsets", changed(s, |n| self.send_offsets(n, i, attempt)));
                } else {
                    to("asks to commit", changed(s, |n| Self::ask(n, i, attempt)));
                }
            }
            Step::OffsetsSent(attempt) => {
                self.aborts(s, i, attempt, to);
                if self.keeps(Without::ChangelogBeforeOffsets) {
                    to("asks to commit", changed(s, |n| Self::ask(n, i, attempt)));
                } else {
                    to("writes to the changelog", changed(s, |n| self.log(n, i, attempt)));
                }
            }
            // A time-out tells nothing: it asks again until it is told, or fenced.
            Step::CommitAsked(attempt) => {
                if !me.current {
                    to("is told that it is fenced", changed(s, |n| n.leave(i, Step::Down)));
                } else if me.transaction.is_none() {
                    self.commits(s, i, attempt, to);
                }
            }
            Step::Refused => {}
        }
        if !matches!(me.step, Step::Down | Step::Opened | Step::Refused) {
            self.rebalances(s, i, to);
        }
    }

    fn idle(&self, s: &State, i: usize, to: &mut dyn FnMut(&str, State)) {
        let me = s.processes[i];
        self.renew(s, i, to);
        for (partition, share) in me.shares.iter().enumerate() {
            match *share {
                Share::None => {}
                Share::Assigned => {
                    to("looks up the end of the changelog", changed(s, |n| self.look_up(n, i, partition)));
                }
                Share::Restoring { memory, waits: 0, offset } => {
                    to("has restored", changed(s, |n| self.restore(n, i, partition, memory, offset)));
                }
                Share::Restoring { .. } => {}
                Share::Ready { memory, next } => {
                    if next < self.length {
                        self.attempt(s, i, self.record(partition, next), memory, to);
                    }
                    if self.may(Fault::LocalCopies) && me.copies[partition] != Some(memory) {
                        to("writes its copy", changed(s, |n| n.processes[i].copies[partition] = Some(memory)));
                    }
                }
            }
        }
        if !me.member {
            to(
                "joins again",
                changed(s, |n| {
                    n.processes[i].member = true;
                    n.processes[i].shares = [Share::None; PARTITIONS];
                }),
            );
        }
    }

    /// An attempt that was made before is repeated; another one is written down first.
    fn attempt(&self, s: &State, i: usize, record: Record, memory: u8, to: &mut dyn FnMut(&str, State)) {
        let (partition, _) = self.place(record);
        if let Some(before) = s.processes[i].pending[partition].filter(|before| before.record == record) {
            let again = Attempt { memory, ..before };
            to("repeats an attempt", changed(s, |n| n.processes[i].step = Step::Attempted(again)));
            return;
        }
        for draw in [false, true].into_iter().filter(|draw| !draw || self.may(Fault::OtherDraws)) {
            let attempt = Attempt { record, draw, memory };
            let written = Attempt { memory: 0, ..attempt };
            let heard = s.processes[i].started_last || !self.keeps(Without::StartRecord);
            to(
                "writes an attempt",
                changed(s, |n| {
                    n.processes[i].step = Step::Attempted(attempt);
                    n.processes[i].pending[partition] = Some(written);
                    if heard && self.keeps(Without::AttemptRecord) {
                        n.attempts[self.name(i)][partition] = Some(written);
                    }
                }),
            );
            if self.may(Fault::LateAttempt) && heard && s.late_attempt[self.name(i)].is_none() {
                to(
                    "crashes with an attempt record on its way",
                    changed(s, |n| {
                        n.leave(i, Step::Down);
                        n.late_attempt[self.name(i)] = Some(written);
                    }),
                );
            }
        }
    }

    fn rebalances(&self, s: &State, i: usize, to: &mut dyn FnMut(&str, State)) {
        let me = s.processes[i];
        for partition in 0..self.partitions {
            if me.member && s.owner[partition].is_none() {
                to(
                    "is assigned a partition",
                    changed(s, |n| {
                        n.owner[partition] = Some(i as u8);
                        n.processes[i].shares[partition] = Share::Assigned;
                    }),
                );
            }
            let finished = me.step == Step::Idle || !self.keeps(Without::FinishBeforeRevocation);
            if s.owner[partition] == Some(i as u8) && finished {
                to(
                    "gives up a partition",
                    changed(s, |n| {
                        n.owner[partition] = None;
                        n.processes[i].shares[partition] = Share::None;
                    }),
                );
            }
        }
    }

    /// `init_transactions`: whoever had this id is fenced, and its transaction aborted.
    fn open(&self, n: &mut State, i: usize) {
        if self.keeps(Without::Fencing) {
            self.take(n, i);
        }
        let me = &mut n.processes[i];
        (me.current, me.step, me.epoch, me.started_last) = (true, Step::Opened, Epoch::Fresh, false);
    }

    /// The broker gives out a new epoch, and refuses whatever comes under an older one.
    fn take(&self, n: &mut State, i: usize) {
        for other in (0..PROCESSES).filter(|other| self.name(*other) == self.name(i)) {
            n.fence(other);
        }
        n.processes[i].current = true;
    }

    /// Reads the attempt records to their end, and commits a start record with them in it: earlier ones count no more.
    fn begin(&self, n: &mut State, i: usize) {
        if !n.processes[i].current {
            return n.leave(i, Step::Down);
        }
        let name = self.name(i);
        for other in (0..PROCESSES).filter(|other| self.name(*other) == name) {
            n.processes[other].started_last = false;
        }
        if self.keeps(Without::StartRecord) {
            n.late_attempt[name] = None;
        }
        let pending = n.attempts[name];
        let me = &mut n.processes[i];
        (me.started_last, me.pending, me.step) = (true, pending, Step::Idle);
        (me.member, me.shares) = (true, [Share::None; PARTITIONS]);
    }

    /// Takes the id from whoever has it, then looks who that was, before anything begins.
    fn renew(&self, s: &State, i: usize, to: &mut dyn FnMut(&str, State)) {
        match s.processes[i].epoch {
            Epoch::Fresh => {}
            Epoch::Used => to(
                "takes a new epoch",
                changed(s, |n| {
                    self.take(n, i);
                    let looks = self.keeps(Without::LookingAfterTakingTheId);
                    n.processes[i].epoch = if looks { Epoch::Taken } else { Epoch::Fresh };
                }),
            ),
            Epoch::Taken => to(
                "looks who had the id",
                changed(s, |n| {
                    if n.processes[i].started_last {
                        n.processes[i].epoch = Epoch::Fresh;
                    } else {
                        n.leave(i, Step::Down);
                    }
                }),
            ),
        }
    }

    fn look_up(&self, n: &mut State, i: usize, partition: usize) {
        let mut waits = 0;
        if self.keeps(Without::WaitingForOpenTransactions) {
            for (other, process) in n.processes.iter().enumerate() {
                let open = process.transaction.filter(|t| t.logged && self.place(t.attempt.record).0 == partition);
                waits |= u8::from(open.is_some()) << other;
            }
        }
        n.processes[i].shares[partition] =
            Share::Restoring { memory: n.log[partition], waits, offset: n.offset[partition] };
    }

    fn restore(&self, n: &mut State, i: usize, partition: usize, memory: u8, before: u8) {
        let progress = highest(memory);
        let offset = if self.keeps(Without::ReadingOffsetsFirst) { before } else { n.offset[partition] };
        if offset > progress && self.keeps(Without::ComparingOffsets) {
            return n.leave(i, Step::Refused);
        }
        let next = if self.keeps(Without::StartingAtProgress) { progress } else { n.offset[partition] };
        let me = &mut n.processes[i];
        let memory = match me.copies[partition] {
            Some(copy) if !self.keeps(Without::PositionCheck) => copy,
            _ => memory,
        };
        me.shares[partition] = Share::Ready { memory, next };
    }
}

impl State {
    fn end_transaction(&mut self, i: usize) {
        self.processes[i].transaction = None;
        for process in &mut self.processes {
            for share in &mut process.shares {
                if let Share::Restoring { waits, .. } = share {
                    *waits &= !(1 << i);
                }
            }
        }
    }

    fn expel(&mut self, i: usize) {
        self.processes[i].member = false;
        for owner in self.owner.iter_mut().filter(|o| **o == Some(i as u8)) {
            *owner = None;
        }
    }

    /// The process ends. Its transaction stays open at the broker, an asked commit may still arrive.
    fn leave(&mut self, i: usize, step: Step) {
        self.expel(i);
        let me = &mut self.processes[i];
        (me.step, me.shares, me.pending) = (step, [Share::None; PARTITIONS], [None; PARTITIONS]);
        me.epoch = Epoch::Fresh;
    }

    /// Whatever comes under the epoch of this process is refused from now on.
    fn fence(&mut self, i: usize) {
        self.end_transaction(i);
        self.processes[i].current = false;
        self.processes[i].late = None;
    }
}

/// The number of the highest record of a set, counted from 1; 0 where it is empty.
fn highest(records: u8) -> u8 {
    (u8::BITS - records.leading_zeros()) as u8
}

fn changed(s: &State, change: impl FnOnce(&mut State)) -> State {
    let mut next = *s;
    change(&mut next);
    next
}
