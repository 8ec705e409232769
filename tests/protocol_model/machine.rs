//! States of the commit protocol and the steps between them.

mod batch;
mod faults;
mod rebalance;
mod restore;
mod start;
mod transaction;

use super::{Machine, Move};

const PROCESSES: usize = 2;
const PARTITIONS: usize = 2;

/// Transaction whose transactional id belongs to no process any more.
const ORPHAN: usize = 2;

/// Author of a progress entry: none, state 1 or 2, or a state with a lost directory.
const NO_AUTHOR: u8 = 0;
const LOST_AUTHOR: u8 = 3;

pub type Faults = fn(Fault) -> bool;

/// Partition times length plus offset. Sets of records and of partitions are bit masks.
pub type Record = u8;

/// Rules that a test can disable; each variant describes the disabled behavior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// Produces before the intent is on disk.
    Intent,
    /// Keeps every intent at a start.
    Marker,
    /// Marks the sequence, not the attempt.
    MarkerAttempt,
    /// Continues although the marker is ahead of the state.
    RefusingCopies,
    /// Reads the marker only up to an open transaction.
    WaitingForHiddenMarkers,
    /// Does not fence the older process at a start.
    Fencing,
    /// Takes a new epoch without checking the markers.
    LookingAfterTakingTheId,
    /// Uses one producer epoch per process.
    NewEpochs,
    /// Ignores the author of the last progress entry.
    AuthorCheck,
    /// Does not compare the ranges of a retry with the offsets.
    RangeCheck,
    /// Requires only the partition of its range for a retry.
    AllPlaces,
    /// Gives up a retry late after a revocation.
    GiveUpAtRevocation,
    /// Waits with a retry until its partitions are assigned again.
    GivingUp,
    /// Sends no offsets with a batch without a range.
    OffsetsOfSettled,
    /// Sends only the offset of the range.
    OffsetsOfAllPlaces,
    /// Writes progress only for the partition of the range.
    ProgressOfSettled,
    /// Sends offsets before the changelog entries are acknowledged.
    EntriesBeforeOffsets,
    /// Writes changelog entries after the commit.
    ChangelogInTransaction,
    /// Commits offsets after the transaction.
    OffsetsInTransaction,
    /// Accepts offsets from an expelled process.
    GenerationCheck,
    /// Gives a partition back while its batch is in flight.
    FinishBeforeRevocation,
    /// Gives a partition back before the next epoch.
    RenewBeforeRevocation,
    /// Keeps waiting records of a revoked partition.
    DroppingWaiting,
    /// Reuses memory instead of the changelog.
    Restoring,
    /// Reads the changelog only up to an open transaction.
    WaitingForOpenTransactions,
    /// Reads offsets after the end of the changelog.
    ReadOffsetsFirst,
    /// Compares the progress only with the first offsets.
    ReadOffsetsAgain,
    /// Does not wait for undecided offsets.
    StableOffsets,
    /// Accepts offsets that differ from the progress.
    ComparingOffsets,
}

/// Faults other than crashes, aborts, expulsions and rebalances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    LateCommit,
    LateAbort,
    LateProduce,
    LateOffsets,
    /// A commit becomes visible in changelog and offsets at different times.
    SlowCommit,
    /// The state is written to disk before the next intent.
    Flush,
    LostDirectory,
    /// A process that restores a partition ends the transaction of the other process.
    EndedByOthers,
    /// The newest entries of a partition that no process has read are lost.
    LostEntry,
    /// The same loss for a partition that a process has read.
    LostEntryOfOwner,
    LostOffset,
    LostMarker,
}

#[derive(Clone, Copy)]
pub struct World {
    pub without: &'static [Without],
    pub partitions: usize,
    pub length: u8,
    /// Bit mask of records that wait when read.
    pub waits: u8,
    /// The second process has a copy of the first one's state directory.
    pub copy: bool,
    pub faults: Faults,
    /// Number of processes that can fail. All processes give partitions back.
    pub fallible: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Down,
    /// `init_transactions` has completed; the marker has not been read.
    Opened,
    /// A present attempt is a pending retry.
    Idle,
    Intended {
        afresh: bool,
    },
    /// Outputs, changelog entries and marker are sent.
    Begun,
    OffsetsSent,
    CommitAsked,
    /// The marker or changelog does not match; an operator must decide.
    Refused,
}

/// Treated batch with the memory of its partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Attempt {
    range: Option<Record>,
    settles: u8,
    sequence: u8,
    /// Random in the product, unique per attempt in the model.
    number: u8,
    memory: [u8; PARTITIONS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Transaction {
    attempt: Attempt,
    /// Outputs by record, two bits each.
    outputs: u8,
    logged: bool,
    offsets: bool,
    asked: bool,
    commit: Commit,
    /// Offsets of an earlier attempt that arrived late.
    rewound: Option<Attempt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Commit {
    Undecided,
    Decided,
    /// Changelog and marker are readable; offsets are not.
    InChangelog,
    /// Offsets are readable; changelog and marker are not.
    InOffsets,
}

/// Request that the client has retried or abandoned, still under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Late {
    Commit,
    Abort,
    Produce(Attempt),
    Offsets(Attempt),
}

/// Records of a partition (two bits each: unread, waiting, released) and the last progress entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Entries {
    memory: u8,
    author: u8,
    next: u8,
}

/// Partition from the perspective of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Share {
    None,
    /// Assigned; the group's offset is known.
    Asked(u8),
    /// The end of the changelog and its open transactions are known.
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
    /// A transaction has used the epoch.
    Used,
    /// A new epoch was taken; the markers have not been checked.
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
    /// The broker regards its producer as the latest of its id.
    current: bool,
    epoch: Epoch,
    late: Option<Late>,
    member: bool,
    shares: [Share; PARTITIONS],
    /// Memory of revoked partitions, used when a rule is disabled.
    kept: [Option<Entries>; PARTITIONS],
    attempt: Option<Attempt>,
    sequence: u8,
    marker: Marker,
    disk: Directory,
    /// Uncommitted readers have seen an attempt that this directory can retry.
    owes_retry: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    processes: [Process; PROCESSES],
    transactions: [Option<Transaction>; PROCESSES + 1],
    owner: [Option<u8>; PARTITIONS],
    offset: [u8; PARTITIONS],
    log: [Entries; PARTITIONS],
    /// Entries before the last batch, if entries can be lost.
    before: [Entries; PARTITIONS],
    /// Committed record states, independent of losses.
    truth: [u8; PARTITIONS],
    /// Committed outputs by record, two bits each.
    effects: u8,
    markers: [Marker; PROCESSES],
    /// Previous marker; `hidden`: an open transaction hides the last one.
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

    /// The result can depend on the epoch of a running process only with copies, late requests or slow commits.
    fn needs_epochs(&self) -> bool {
        let needs = [Fault::SlowCommit, Fault::LateCommit, Fault::LateAbort, Fault::LateProduce, Fault::LateOffsets];
        self.copy || needs.into_iter().any(|fault| self.may(fault))
    }

    /// Intent and outputs can be one step, as can offsets and the commit request.
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

    /// Subtracts the oldest relevant sequence of each id, because only differences matter.
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

struct Steps {
    world: World,
    of: State,
    process: usize,
    moves: Vec<Move<State>>,
}

impl Steps {
    /// Adds a step that must eventually happen if no other step does.
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
            // The client repeats the commit request until it gets a response or is fenced.
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
    /// Drops the retry; its records are treated as a new batch.
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

    /// Ends the process. Its transaction stays open, and a requested commit may still be decided.
    fn leave(&mut self, i: usize, step: Step) {
        self.expel(i);
        let me = &mut self.processes[i];
        (me.step, me.shares, me.kept) = (step, [Share::None; PARTITIONS], [None; PARTITIONS]);
        (me.attempt, me.sequence, me.marker, me.epoch) = (None, 0, Marker::default(), Epoch::Fresh);
    }
}
