//! The abstract machine: its states, and every step that leads from one to another.

mod late;

use super::Machine;
use late::Epoch;
pub use late::Late;

const PROCESSES: usize = 2;
const PARTITIONS: usize = 2;

/// A record by number: partition times length plus offset. Sets of records are bits.
pub type Record = u8;

/// The rules that can be switched off, to show that the walk would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    Nothing,
    /// A start decides on a pending intent by the group's offset.
    Marker,
    /// A start leaves the older self and its open transaction alone.
    Fencing,
    /// A partition is let go while its batch is under way.
    FinishBeforeAcknowledging,
    /// Produced before anything is on disk.
    Intent,
    /// Offsets are committed after the transaction, not in it.
    OffsetsInTransaction,
    /// A new owner does not wait for offsets in open transactions.
    StableOffsets,
    /// The marker is read up to the first open transaction, whosever it is.
    WaitingForHiddenMarkers,
    /// A state that ends before its own marker may start.
    RefusingOlderCopies,
    /// The marker names the batch, not the attempt at it.
    AttemptInMarker,
    /// One epoch for all transactions of a process.
    NewEpochs,
    /// A new epoch is taken without a look at who has had the id meanwhile.
    LookingAfterTakingTheId,
}

#[derive(Clone, Copy)]
pub struct World {
    pub without: Without,
    pub partitions: usize,
    /// Records a partition.
    pub length: u8,
    /// The second process is a copy of the first one's state directory, under the same transactional id.
    pub copy: bool,
    /// Which requests may be late.
    pub late: fn(Late) -> bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Down,
    /// `init_transactions` is done, the marker not yet read.
    Opened,
    Idle,
    Intended(Record),
    Begun(Record),
    OffsetsSent(Record),
    CommitAsked(Record),
    /// Fenced: ended by itself, until somebody starts it again.
    Stopped,
    /// Another self has gone on with a copy of this state.
    Refused,
}

/// An attempt at a batch: what it consumes, its number, and who makes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Attempt {
    record: Record,
    sequence: u8,
    by: u8,
}

/// A transaction as the broker has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Transaction {
    attempt: Attempt,
    offsets: bool,
    asked: bool,
    /// What it had first was aborted under it.
    beheaded: bool,
    /// A record that another transaction has sent.
    stray: Option<Record>,
    /// Offsets behind this record came after its own.
    rewound: Option<Record>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Process {
    step: Step,
    /// Whether the broker takes its producer for the latest of its id.
    current: bool,
    epoch: Epoch,
    /// On its way under that epoch.
    late: Option<Late>,
    /// The marker as it last knew it.
    last: Attempt,
    member: bool,
    /// Next offset by partition that it believes to own.
    reading: [Option<u8>; PARTITIONS],
    applied: u8,
    disk_applied: u8,
    disk_intent: Option<Attempt>,
    transaction: Option<Transaction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    processes: [Process; PROCESSES],
    owner: [Option<u8>; PARTITIONS],
    offset: [u8; PARTITIONS],
    /// Committed effects by record, two bits each.
    effects: u32,
    /// By transactional id: its marker, the records committed under it, whether another's open transaction hides the
    /// last marker.
    marker: [Attempt; PROCESSES],
    /// The marker before that.
    shown: [Attempt; PROCESSES],
    committed: [u8; PROCESSES],
    hidden: [bool; PROCESSES],
    copied: bool,
    /// A transaction was committed that nobody had finished.
    torn: bool,
}

impl World {
    fn id(&self, process: usize) -> usize {
        if self.copy { 0 } else { process }
    }

    fn place(&self, record: Record) -> (usize, u8) {
        (usize::from(record / self.length), record % self.length)
    }

    fn initial() -> State {
        let down = Process {
            step: Step::Down,
            current: false,
            epoch: Epoch::Fresh,
            late: None,
            last: Attempt::default(),
            member: false,
            reading: [None; PARTITIONS],
            applied: 0,
            disk_applied: 0,
            disk_intent: None,
            transaction: None,
        };
        State {
            processes: [down; PROCESSES],
            owner: [None; PARTITIONS],
            offset: [0; PARTITIONS],
            effects: 0,
            marker: [Attempt::default(); PROCESSES],
            shown: [Attempt::default(); PROCESSES],
            committed: [0; PROCESSES],
            hidden: [false; PROCESSES],
            copied: false,
            torn: false,
        }
    }

    fn steps_of(&self, s: &State, i: usize, to: &mut dyn FnMut(&str, State)) {
        let me = s.processes[i];
        self.accidents(s, i, to);
        match me.step {
            Step::Down => {
                if !self.copy || i == 0 || s.copied {
                    to("starts", changed(s, |n| self.open(n, i)));
                } else if s.processes[0].step != Step::Down {
                    to(
                        "is copied and starts",
                        changed(s, |n| {
                            n.copied = true;
                            n.processes[1].disk_applied = s.processes[0].disk_applied;
                            n.processes[1].disk_intent = s.processes[0].disk_intent;
                            self.open(n, 1);
                        }),
                    );
                }
            }
            Step::Opened => {
                if !s.hidden[self.id(i)] || self.without == Without::WaitingForHiddenMarkers {
                    to("recovers", changed(s, |n| self.recover(n, i)));
                }
            }
            Step::Idle => self.idle(s, i, to),
            // It has the next epoch made while it treats the next batch.
            Step::Intended(_) if me.epoch != Epoch::Fresh => self.renew(s, i, to),
            Step::Intended(record) => to(
                "begins",
                changed(s, |n| {
                    let attempt = Self::attempt(&me, i, record);
                    let process = &mut n.processes[i];
                    if me.current {
                        process.step = Step::Begun(record);
                        process.transaction = Some(Transaction::of(attempt));
                    } else {
                        n.leave(i, Step::Stopped);
                    }
                }),
            ),
            Step::Begun(record) => {
                self.aborts(s, i, record, to);
                to(
                    "sends offsets",
                    changed(s, |n| match (me.current, me.member) {
                        (false, _) => n.leave(i, Step::Stopped),
                        (true, false) => self.abort(n, i),
                        (true, true) => {
                            n.processes[i].step = Step::OffsetsSent(record);
                            n.processes[i].transaction.as_mut().expect("begun").offsets = true;
                        }
                    }),
                );
            }
            Step::OffsetsSent(record) => {
                self.aborts(s, i, record, to);
                to(
                    "asks to commit",
                    changed(s, |n| {
                        if me.current {
                            n.processes[i].step = Step::CommitAsked(record);
                            n.processes[i].transaction.as_mut().expect("begun").asked = true;
                        } else {
                            n.leave(i, Step::Stopped);
                        }
                    }),
                );
            }
            // A time-out tells nothing: it asks again until it is told, or fenced.
            Step::CommitAsked(record) => {
                if !me.current {
                    to("is told that it is fenced", changed(s, |n| n.leave(i, Step::Stopped)));
                } else if me.transaction.is_none() {
                    to("is told of the commit", changed(s, |n| self.learn(n, i, record)));
                    for late in [Late::Commit, Late::Offsets(record)].into_iter().filter(|late| (self.late)(*late)) {
                        let told = changed(s, |n| {
                            self.learn(n, i, record);
                            n.processes[i].late = Some(late);
                        });
                        to(&format!("is told of the commit, {late:?} still on its way,"), told);
                    }
                }
            }
            Step::Stopped | Step::Refused => {}
        }
        if matches!(
            me.step,
            Step::Idle | Step::Intended(_) | Step::Begun(_) | Step::OffsetsSent(_) | Step::CommitAsked(_)
        ) {
            self.rebalances(s, i, to);
        }
    }

    /// What happens to a process and to its transaction, whatever it does.
    fn accidents(&self, s: &State, i: usize, to: &mut dyn FnMut(&str, State)) {
        let me = s.processes[i];
        if me.step != Step::Down {
            to("crashes", changed(s, |n| n.leave(i, Step::Down)));
        }
        if let Some(t) = me.transaction {
            if t.asked && (me.current || self.without == Without::Fencing) {
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

    fn idle(&self, s: &State, i: usize, to: &mut dyn FnMut(&str, State)) {
        let me = s.processes[i];
        self.renew(s, i, to);
        for (partition, at) in me.reading.iter().enumerate() {
            let Some(at) = at.filter(|at| *at < self.length) else { continue };
            let record = partition as u8 * self.length + at;
            to(
                "intends",
                changed(s, |n| {
                    let process = &mut n.processes[i];
                    process.step = Step::Intended(record);
                    if self.without != Without::Intent {
                        process.disk_applied = me.applied;
                        process.disk_intent = Some(Self::attempt(&me, i, record));
                    }
                }),
            );
        }
        if me.disk_applied != me.applied {
            to(
                "flushes",
                changed(s, |n| {
                    n.processes[i].disk_applied = me.applied;
                    n.processes[i].disk_intent = None;
                }),
            );
        }
        if !me.member {
            to(
                "joins again",
                changed(s, |n| {
                    n.processes[i].member = true;
                    n.processes[i].reading = [None; PARTITIONS];
                }),
            );
        }
    }

    fn rebalances(&self, s: &State, i: usize, to: &mut dyn FnMut(&str, State)) {
        let me = s.processes[i];
        for partition in 0..self.partitions {
            let undecided = s
                .processes
                .iter()
                .filter_map(|p| p.transaction)
                .any(|t| t.offsets && self.place(t.attempt.record).0 == partition);
            let stable = !undecided || self.without == Without::StableOffsets;
            if me.member && s.owner[partition].is_none() && stable {
                to(
                    "is assigned a partition",
                    changed(s, |n| {
                        n.owner[partition] = Some(i as u8);
                        n.processes[i].reading[partition] = Some(s.offset[partition]);
                    }),
                );
            }
            let finished = me.step == Step::Idle || self.without == Without::FinishBeforeAcknowledging;
            if s.owner[partition] == Some(i as u8) && finished {
                to(
                    "lets a partition go",
                    changed(s, |n| {
                        n.owner[partition] = None;
                        n.processes[i].reading[partition] = None;
                    }),
                );
            }
        }
    }

    /// `init_transactions`: whoever had this id is fenced, and its transaction aborted.
    fn open(&self, n: &mut State, i: usize) {
        if self.without == Without::Fencing {
            n.processes[i].current = true;
        } else {
            self.take(n, i);
        }
        n.processes[i].step = Step::Opened;
        n.processes[i].epoch = Epoch::Fresh;
    }

    /// The broker gives out a new epoch, and refuses whatever comes under an older one.
    fn take(&self, n: &mut State, i: usize) {
        for other in (0..PROCESSES).filter(|o| self.id(*o) == self.id(i)) {
            n.fence(other);
        }
        n.processes[i].current = true;
    }

    fn recover(&self, n: &mut State, i: usize) {
        let id = self.id(i);
        let marker = if n.hidden[id] { n.shown[id] } else { n.marker[id] };
        let me = &mut n.processes[i];
        me.applied = me.disk_applied;
        me.last = marker;
        // What has not left stays there until another intent takes its place.
        let mut decided = me.disk_intent;
        if let Some(intent) = me.disk_intent {
            let (partition, at) = self.place(intent.record);
            let left = match self.without {
                Without::Marker => n.offset[partition] > at,
                Without::AttemptInMarker | Without::RefusingOlderCopies => intent.sequence <= marker.sequence,
                _ => intent == marker,
            };
            if left {
                me.applied |= 1 << intent.record;
                decided = None;
            }
        }
        let older = u32::from(marker.sequence) > me.applied.count_ones();
        if older && self.without != Without::RefusingOlderCopies {
            me.step = Step::Refused;
            return;
        }
        (me.disk_applied, me.disk_intent) = (me.applied, decided);
        me.step = Step::Idle;
        me.member = true;
        me.reading = [None; PARTITIONS];
    }

    fn commit(&self, n: &mut State, i: usize, t: Transaction) {
        let record = t.attempt.record;
        let (partition, at) = self.place(record);
        for record in (!t.beheaded).then_some(record).into_iter().chain(t.stray) {
            n.effects += 1 << (2 * record);
        }
        if self.without != Without::OffsetsInTransaction {
            n.offset[partition] = at + 1;
            if let Some((partition, at)) = t.rewound.map(|record| self.place(record)) {
                n.offset[partition] = at + 1;
            }
        }
        let id = self.id(i);
        n.shown[id] = n.marker[id];
        n.marker[id] = t.attempt;
        n.committed[id] |= 1 << record;
        n.end_transaction(i);
        n.hidden[id] = n.processes.iter().any(|p| p.transaction.is_some());
    }

    fn learn(&self, n: &mut State, i: usize, record: Record) {
        let (partition, at) = self.place(record);
        if self.without == Without::OffsetsInTransaction {
            n.offset[partition] = at + 1;
        }
        let used = self.used();
        let me = &mut n.processes[i];
        me.last = Self::attempt(me, i, record);
        me.applied |= 1 << record;
        (me.step, me.epoch) = (Step::Idle, used);
        if let Some(reading) = &mut me.reading[partition] {
            *reading = at + 1;
        }
    }

    /// Rolled back: memory is as it was, and reads go back to where the batch began.
    fn abort(&self, n: &mut State, i: usize) {
        if !n.processes[i].current {
            return n.leave(i, Step::Stopped);
        }
        n.end_transaction(i);
        (n.processes[i].step, n.processes[i].epoch) = (Step::Idle, self.used());
    }

    fn used(&self) -> Epoch {
        if self.without == Without::NewEpochs { Epoch::Fresh } else { Epoch::Used }
    }

    fn attempt(me: &Process, i: usize, record: Record) -> Attempt {
        Attempt { record, sequence: (me.applied.count_ones() + 1) as u8, by: i as u8 }
    }

    /// What must hold in every state.
    fn broken_promise(&self, s: &State) -> Option<&'static str> {
        if s.torn {
            return Some("a part of a batch was committed");
        }
        for partition in 0..self.partitions {
            for at in 0..self.length {
                let effects = (s.effects >> (2 * (partition as u8 * self.length + at))) & 3;
                if effects > 1 {
                    return Some("twice");
                }
                if effects == 0 && at < s.offset[partition] {
                    return Some("lost");
                }
            }
        }
        if !self.copy && s.processes.iter().any(|p| p.step == Step::Refused) {
            return Some("a state is refused that nobody has copied");
        }
        let exact = |i: usize| s.processes[i].applied == s.committed[self.id(i)];
        let knows = |i: usize| s.processes[i].current && s.processes[i].epoch != Epoch::Taken;
        let settled = |i: usize| s.processes[i].step == Step::Idle && knows(i);
        (0..PROCESSES).any(|i| settled(i) && !exact(i)).then_some("the state differs from what was committed")
    }
}

impl Machine for World {
    type State = State;

    fn start(&self) -> State {
        Self::initial()
    }

    fn next(&self, s: &State) -> Vec<(String, State)> {
        let mut all = Vec::new();
        for i in 0..PROCESSES {
            self.steps_of(s, i, &mut |name, next| all.push((format!("{name} {i}"), next)));
        }
        all
    }

    fn broken(&self, s: &State) -> Option<&'static str> {
        self.broken_promise(s)
    }

    fn done(&self, s: &State) -> bool {
        s.offset[..self.partitions].iter().all(|at| *at == self.length)
    }
}

impl State {
    fn end_transaction(&mut self, i: usize) {
        self.processes[i].transaction = None;
        if self.processes.iter().all(|p| p.transaction.is_none()) {
            self.hidden = [false; PROCESSES];
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
        (me.step, me.applied, me.reading) = (step, 0, [None; PARTITIONS]);
    }

    /// Whatever comes under the epoch of this process is refused from now on.
    fn fence(&mut self, i: usize) {
        self.end_transaction(i);
        self.processes[i].current = false;
        self.processes[i].late = None;
    }
}

impl Transaction {
    fn of(attempt: Attempt) -> Self {
        Self { attempt, offsets: false, asked: false, beheaded: false, stray: None, rewound: None }
    }
}

fn changed(s: &State, change: impl FnOnce(&mut State)) -> State {
    let mut next = *s;
    change(&mut next);
    next
}
