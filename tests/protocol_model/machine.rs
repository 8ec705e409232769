//! States of the protocol, and the steps that lead from one to another.

mod batch;
mod faults;
mod rebalance;
mod restore;
mod start;
mod transaction;

use super::{Machine, Move};

const PROCESSES: usize = 2;
const PARTITIONS: usize = 2;

/// Slot of a transaction whose transactional id no process has any more.
const ORPHAN: usize = 2;

/// Author of a progress entry: none, the states 1 and 2, or a state whose directory was lost.
const NO_AUTHOR: u8 = 0;
const LOST_AUTHOR: u8 = 3;

/// Faults that may happen.
pub type Faults = fn(Fault) -> bool;

/// Record by number: partition times length plus offset. Sets of records and of partitions are bits.
pub type Record = u8;

/// Rules that can be switched off, to show that the search notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// Produces before the intent is on the disk.
    Intent,
    /// A start keeps every intent for a retry.
    Marker,
    /// The marker names the sequence, not the attempt.
    MarkerAttempt,
    /// A start goes on where the marker is ahead of its state.
    RefusingCopies,
    /// The marker is read up to the first open transaction.
    WaitingForHiddenMarkers,
    /// A start leaves the older process and its open transaction alone.
    Fencing,
    /// A new epoch is taken without a look at the markers.
    LookingAfterTakingTheId,
    /// One producer epoch for all transactions of a process.
    NewEpochs,
    /// A retry does not look for the author of the last progress entry.
    AuthorCheck,
    /// A retry does not compare its ranges with the offsets.
    RangeCheck,
    /// A retry needs the partition of its range only.
    AllPlaces,
    /// A retry outlives the loss of a place, and is given up with the next batch.
    GiveUpAtRevocation,
    /// A retry waits until its places are back.
    GivingUp,
    /// A batch without a range sends no offsets.
    OffsetsOfSettled,
    /// A batch with a range sends only the offset of that.
    OffsetsOfAllPlaces,
    /// Progress is written only for the partition of the range.
    ProgressOfSettled,
    /// Offsets are sent before the changelog entries are acknowledged.
    EntriesBeforeOffsets,
    /// Changelog entries are written after the commit.
    ChangelogInTransaction,
    /// Offsets are committed after the transaction.
    OffsetsInTransaction,
    /// Offsets are accepted from a process that the group has expelled.
    GenerationCheck,
    /// A partition is given up while its batch is in flight.
    FinishBeforeRevocation,
    /// A partition is given up before the next epoch is taken.
    RenewBeforeRevocation,
    /// Waiting records of a partition that was given up stay in memory, and are settled.
    DroppingWaiting,
    /// Memory of a partition that was here before is used instead of the changelog.
    Restoring,
    /// Reads the changelog up to the first open transaction.
    WaitingForOpenTransactions,
    /// The offsets of the group are read after the end of the changelog was looked up.
    ReadOffsetsFirst,
    /// Offsets behind the progress are those that were read first.
    ReadOffsetsAgain,
    /// Offsets of undecided transactions are not waited for.
    StableOffsets,
    /// Offsets that differ from the progress are accepted.
    ComparingOffsets,
}

/// Faults besides crashes, aborts, expulsions and rebalances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    LateCommit,
    LateAbort,
    LateProduce,
    LateOffsets,
    /// A commit reaches changelog and offsets one after the other.
    SlowCommit,
    /// The state after a batch is written to the disk before the next intent.
    Flush,
    LostDirectory,
    /// Whoever restores a partition ends the transaction of the other process.
    EndedByOthers,
    /// An unclean leader election drops the newest entries of a partition that no process has read.
    LostEntry,
    /// The same under a process that has read the partition.
    LostEntryOfOwner,
    /// The newest offset of the group is lost.
    LostOffset,
    /// The newest marker is lost.
    LostMarker,
}

#[derive(Clone, Copy)]
pub struct World {
    pub without: &'static [Without],
    pub partitions: usize,
    /// Records per partition.
    pub length: u8,
    /// Records that wait when they are read, and are released by a later batch.
    pub waits: u8,
    /// The second process has a copy of the state directory of the first.
    pub copy: bool,
    pub faults: Faults,
    /// Processes that crash, abort, are expelled and have late requests. All give partitions back.
    pub fallible: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Down,
    /// `init_transactions` is done; the marker is not read yet.
    Opened,
    /// Between two batches. An attempt is one to be repeated.
    Idle,
    Intended {
        afresh: bool,
    },
    /// Outputs, changelog entries and marker are sent.
    Begun,
    OffsetsSent,
    CommitAsked,
    /// Marker or changelog do not fit: an operator decides.
    Refused,
}

/// A batch as it was treated, with the memory of its partitions at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Attempt {
    range: Option<Record>,
    settles: u8,
    sequence: u8,
    /// Random in the program, another one for each attempt here.
    number: u8,
    memory: [u8; PARTITIONS],
}

/// Transaction at the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Transaction {
    attempt: Attempt,
    /// Outputs by record, two bits each.
    outputs: u8,
    logged: bool,
    offsets: bool,
    asked: bool,
    commit: Commit,
    /// Offsets of an earlier attempt came after its own.
    rewound: Option<Attempt>,
}

/// Progress of a commit at the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Commit {
    Undecided,
    Decided,
    /// Changelog and marker are readable, offsets are not.
    InChangelog,
    /// Offsets are readable, changelog and marker are not.
    InOffsets,
}

/// A request that the client has repeated, or given up, and that has not reached the broker yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Late {
    Commit,
    Abort,
    Produce(Attempt),
    Offsets(Attempt),
}

/// State of a partition: its records (two bits each: unread, waiting, released) and the last progress entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Entries {
    memory: u8,
    author: u8,
    next: u8,
}

/// A partition as a process has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Share {
    None,
    /// Assigned, and the offset of the group is known.
    Asked(u8),
    /// The end of the changelog is known, and the transactions that were open there.
    Restoring {
        offset: u8,
        waits: u8,
        entries: Entries,
    },
    Ready(Entries),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Epoch {
    Fresh,
    /// A transaction has had it.
    Used,
    /// Taken; the markers have not been looked at.
    Taken,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Marker {
    sequence: u8,
    number: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Directory {
    sequence: u8,
    intent: Option<Attempt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Process {
    step: Step,
    /// The broker takes its producer for the latest of its id.
    current: bool,
    epoch: Epoch,
    late: Option<Late>,
    member: bool,
    shares: [Share; PARTITIONS],
    /// Memory of partitions that were given up, where a rule is switched off.
    kept: [Option<Entries>; PARTITIONS],
    /// The batch in flight or to be repeated.
    attempt: Option<Attempt>,
    sequence: u8,
    /// The last marker that it knows.
    marker: Marker,
    disk: Directory,
    /// Readers of everything have seen an attempt that this directory can still repeat.
    owes_retry: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    processes: [Process; PROCESSES],
    transactions: [Option<Transaction>; PROCESSES + 1],
    owner: [Option<u8>; PARTITIONS],
    /// Offsets of the group.
    offset: [u8; PARTITIONS],
    /// Committed entries of the changelog.
    log: [Entries; PARTITIONS],
    /// Entries before the last batch, where they can be lost.
    before: [Entries; PARTITIONS],
    /// Records as they were committed, before losses.
    truth: [u8; PARTITIONS],
    /// Committed outputs by record, two bits each.
    effects: u8,
    markers: [Marker; PROCESSES],
    /// The marker before, and whether an open transaction hides the last one.
    shown: [Marker; PROCESSES],
    hidden: [bool; PROCESSES],
    copied: bool,
    lost: Option<Fault>,
    broken: Option<&'static str>,
}

const UNREAD: u8 = 0;
const WAITING: u8 = 1;
const RELEASED: u8 = 2;

fn status(memory: u8, at: u8) -> u8 {
    (memory >> (2 * at)) & 3
}

fn with_status(memory: u8, at: u8, status: u8) -> u8 {
    memory & !(3 << (2 * at)) | status << (2 * at)
}

impl Entries {
    /// These entries with those of a batch.
    fn after(self, world: &World, attempt: Attempt, author: u8, partition: usize) -> Self {
        let mut after = Self { memory: world.memory_after(attempt, partition, self.memory), ..self };
        if !world.progress_places(attempt, partition) {
            return after;
        }
        after.author = author;
        if let Some(at) = world.range_in(attempt, partition) {
            after.next = at + 1;
        }
        after
    }
}

impl World {
    fn name(&self, process: usize) -> usize {
        if self.copy { 0 } else { process }
    }

    fn author(&self, slot: usize) -> u8 {
        if slot == ORPHAN { LOST_AUTHOR } else { self.name(slot) as u8 + 1 }
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

    /// Without copies, late requests and slow commits nothing depends on the epoch of a running process.
    fn needs_epochs(&self) -> bool {
        let needs = [Fault::SlowCommit, Fault::LateCommit, Fault::LateAbort, Fault::LateProduce, Fault::LateOffsets];
        self.copy || needs.into_iter().any(|fault| self.may(fault))
    }

    /// Intent and outputs are one step, as are offsets and the request to commit: a crash between them leaves nothing that another
    /// crash does not leave.
    fn merges_steps(&self) -> bool {
        let rules = [Without::EntriesBeforeOffsets, Without::FinishBeforeRevocation];
        !self.needs_epochs() && rules.into_iter().all(|rule| self.keeps(rule))
    }

    fn keeps(&self, rule: Without) -> bool {
        !self.without.contains(&rule)
    }

    fn is_waiting(&self, record: Record) -> bool {
        self.waits >> record & 1 == 1
    }

    /// Counts the batches of each id from the oldest that matters: only differences do.
    fn renumber(&self, s: &mut State) {
        if !self.keeps(Without::WaitingForHiddenMarkers) || self.may(Fault::LostMarker) {
            return;
        }
        for id in 0..PROCESSES {
            let mut known = vec![&mut s.markers[id].sequence];
            for (i, (process, t)) in s.processes.iter_mut().zip(&mut s.transactions).enumerate() {
                if self.name(i) != id || self.copy && i == 1 && !s.copied {
                    continue;
                }
                known.push(&mut process.disk.sequence);
                known.extend(process.disk.intent.as_mut().map(|intent| &mut intent.sequence));
                if !matches!(process.step, Step::Down | Step::Opened | Step::Refused) {
                    known.extend([&mut process.sequence, &mut process.marker.sequence]);
                }
                known.extend(process.attempt.as_mut().map(|attempt| &mut attempt.sequence));
                known.extend(t.as_mut().map(|t| &mut t.attempt.sequence));
            }
            let oldest = known.iter().map(|sequence| **sequence).min().unwrap_or(0);
            known.into_iter().for_each(|sequence| *sequence -= oldest);
        }
    }
}

impl Machine for World {
    type State = State;

    fn start(&self) -> State {
        let down = Process {
            step: Step::Down,
            current: false,
            epoch: Epoch::Fresh,
            late: None,
            member: false,
            shares: [Share::None; PARTITIONS],
            kept: [None; PARTITIONS],
            attempt: None,
            sequence: 0,
            marker: Marker::default(),
            disk: Directory::default(),
            owes_retry: false,
        };
        State {
            processes: [down; PROCESSES],
            transactions: [None; PROCESSES + 1],
            owner: [None; PARTITIONS],
            offset: [0; PARTITIONS],
            log: [Entries::default(); PARTITIONS],
            before: [Entries::default(); PARTITIONS],
            truth: [0; PARTITIONS],
            effects: 0,
            markers: [Marker::default(); PROCESSES],
            shown: [Marker::default(); PROCESSES],
            hidden: [false; PROCESSES],
            copied: false,
            lost: None,
            broken: None,
        }
    }

    fn next(&self, s: &State) -> Vec<Move<State>> {
        let mut all = Steps { world: *self, of: *s, process: 0, moves: Vec::new() };
        for i in 0..PROCESSES {
            all.process = i;
            self.steps_of(s, i, &mut all);
        }
        all.process = ORPHAN;
        self.broker_steps(s, ORPHAN, &mut all);
        self.broker_faults(s, &mut all);
        all.moves
    }

    fn broken(&self, s: &State) -> Option<&'static str> {
        for partition in 0..self.partitions {
            for at in 0..self.length {
                let effects = s.effects >> (2 * self.record(partition, at)) & 3;
                if effects > 1 {
                    return Some("twice");
                }
                if effects == 0 && status(s.truth[partition], at) == RELEASED {
                    return Some("lost");
                }
            }
        }
        if s.broken.is_some() {
            return s.broken;
        }
        let refused = s.processes.iter().any(|p| p.step == Step::Refused);
        (refused && !self.copy && s.lost.is_none()).then_some("refused, and nothing was lost or copied")
    }

    fn done(&self, s: &State) -> bool {
        let released = |(partition, at)| status(s.truth[partition], at) == RELEASED;
        (0..self.partitions).all(|partition| (0..self.length).all(|at| released((partition, at))))
            || s.lost.is_some() && s.processes.iter().any(|p| p.step == Step::Refused)
    }
}

/// Collects the steps that lead away from a state.
struct Steps {
    world: World,
    of: State,
    process: usize,
    moves: Vec<Move<State>>,
}

impl Steps {
    /// A step that is certain to happen if nothing else does.
    fn step(&mut self, name: &'static str, change: impl FnOnce(&mut State)) {
        self.push(name, false, change);
    }

    fn fault(&mut self, name: &'static str, change: impl FnOnce(&mut State)) {
        if self.process < self.world.fallible || self.process == ORPHAN {
            self.push(name, true, change);
        }
    }

    fn rebalance(&mut self, name: &'static str, change: impl FnOnce(&mut State)) {
        self.push(name, true, change);
    }

    fn push(&mut self, name: &'static str, is_fault: bool, change: impl FnOnce(&mut State)) {
        let mut state = self.of;
        change(&mut state);
        self.world.renumber(&mut state);
        self.moves.push(Move { name, process: self.process, is_fault, state });
    }
}

impl World {
    fn steps_of(&self, s: &State, i: usize, to: &mut Steps) {
        let me = &s.processes[i];
        self.accidents(s, i, to);
        self.broker_steps(s, i, to);
        match me.step {
            Step::Down => self.starts(s, i, to),
            Step::Opened => {
                if !s.hidden[self.name(i)] || !self.keeps(Without::WaitingForHiddenMarkers) {
                    to.step("reads its marker", |n| self.recover(n, i));
                }
            }
            Step::Idle => self.idle(s, i, to),
            // The next epoch is taken while the batch is treated.
            Step::Intended { .. } if me.epoch != Epoch::Fresh => self.renew(s, i, to),
            Step::Intended { afresh } => {
                // Without a new epoch the broker refuses records until the last commit is complete.
                if s.transactions[i].is_none() || !me.current {
                    to.step("produces", |n| self.produce(n, i, afresh));
                }
            }
            Step::Begun => {
                self.aborts(s, i, to);
                to.step("sends offsets", |n| self.send_offsets(n, i));
            }
            Step::OffsetsSent => {
                self.aborts(s, i, to);
                to.step("asks for the commit", |n| self.ask(n, i));
            }
            // A time-out answers nothing: it asks again until it gets an answer, or is fenced.
            Step::CommitAsked => self.answers(s, i, to),
            Step::Refused => {}
        }
        if !matches!(me.step, Step::Down | Step::Opened | Step::Refused) {
            self.rebalances(s, i, to);
        }
    }

    fn idle(&self, s: &State, i: usize, to: &mut Steps) {
        let me = &s.processes[i];
        self.renew(s, i, to);
        for (partition, share) in me.shares.iter().enumerate() {
            self.restores(s, i, partition, *share, to);
        }
        match me.attempt {
            Some(attempt) => self.retries(s, i, attempt, to),
            None => self.treats(s, i, to),
        }
        if self.may(Fault::Flush) && me.disk.intent.is_some_and(|intent| intent.sequence <= me.sequence) {
            to.step("writes its state", |n| {
                n.processes[i].disk = Directory { sequence: me.sequence, intent: None };
            });
        }
        if !me.member {
            to.step("notices the expulsion and joins again", |n| self.join_again(n, i));
        }
    }
}

impl Process {
    /// The retry is dropped, its records are treated afresh.
    fn give_up(&mut self) {
        (self.attempt, self.owes_retry) = (None, false);
    }
}

impl State {
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
        (me.step, me.shares, me.kept) = (step, [Share::None; PARTITIONS], [None; PARTITIONS]);
        (me.attempt, me.sequence, me.marker, me.epoch) = (None, 0, Marker::default(), Epoch::Fresh);
    }
}
