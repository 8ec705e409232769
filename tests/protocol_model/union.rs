//! Instances that share a ledger, as an abstract machine of its own: what is heard late, not at all, twice, with other clocks, and
//! over crashes and aborts, in every order. At every commit the class in which a batch is released has k people in the union of all
//! that readers see; and a batch that is repeated is what it was.
//!
//! There is one class here. A batch is a crowd of k people, or one person whom only others can support. The commit protocol itself
//! is the other machine's.

use std::collections::{BTreeSet, HashSet, VecDeque};

const INSTANCES: usize = 2;
const PEOPLE: usize = 3;
const K: usize = 2;
/// Ticks that a release supports others for.
const WINDOW: i8 = 3;
/// Ticks that the clocks may be apart.
const SKEW: i8 = 1;
/// The machine ends here.
const LAST_TICK: i8 = 3;
/// Batches by the people in them.
const BATCHES: [&[usize]; 2] = [&[0, 1], &[2]];
/// Records of the ledger topic at most.
const MOST_TOLD: usize = 2;

/// The rules that can be switched off, to show that the walk would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    /// What is told of open and aborted transactions is heard.
    ReadCommitted,
    /// Stamps are believed to the second.
    Allowance,
    /// What is heard is taken to be of now.
    Stamps,
    /// Others are taken in while a batch is to be repeated.
    WaitingForTheRepetition,
    /// What was taken in is written after the intent of the batch that has seen it.
    WritingWithTheIntent,
}

/// By person: when he was released last, by the clock that counts.
type Known = [Option<i8>; PEOPLE];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Intent {
    batch: usize,
    /// When it was made: the clock of the batch.
    at: i8,
    /// What it releases, as it was decided at first.
    released: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Idle,
    Intended,
    /// Its lines and its record are in the topics, undecided.
    Produced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Instance {
    step: Step,
    known: Known,
    /// Records of the topic that it has passed.
    heard: usize,
    /// The same on the disk.
    disk: (Known, usize),
    /// On the disk, and to be repeated where it has not left.
    intent: Option<Intent>,
}

/// A record of the ledger topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Told {
    by: usize,
    batch: usize,
    stamp: i8,
    /// None while it is undecided.
    committed: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    now: i8,
    instances: [Instance; INSTANCES],
    topic: Vec<Told>,
    /// What readers see: by person, when he was released last.
    seen: Known,
    broken: Option<&'static str>,
}

#[derive(Clone, Copy)]
struct World {
    without: Without,
    /// What each clock says more than the time; a batch's stamp is that of its instance.
    clocks: [i8; INSTANCES],
}

fn fresh(known: Known, now: i8) -> BTreeSet<usize> {
    (0..PEOPLE).filter(|person| known[*person].is_some_and(|at| now - at < WINDOW)).collect()
}

impl State {
    /// What an instance knows of those who are past supports nobody ever again; states that differ in it alone are one.
    fn forget(&mut self) {
        let now = self.now;
        for instance in &mut self.instances {
            for known in [&mut instance.known, &mut instance.disk.0] {
                known.iter_mut().for_each(|at| *at = at.filter(|at| now - at < WINDOW));
            }
        }
    }
}

fn note(known: &mut Known, batch: usize, at: i8) {
    for &person in BATCHES[batch] {
        known[person] = known[person].max(Some(at));
    }
}

/// Whether a batch has its crowd with what is known.
fn has_crowd(known: Known, batch: usize, now: i8) -> bool {
    let mut people = fresh(known, now);
    people.extend(BATCHES[batch]);
    people.len() >= K
}

impl World {
    fn start() -> State {
        let none = [None; PEOPLE];
        let instance = Instance { step: Step::Idle, known: none, heard: 0, disk: (none, 0), intent: None };
        State { now: 0, instances: [instance; INSTANCES], topic: Vec::new(), seen: none, broken: None }
    }

    fn next(self, s: &State) -> Vec<(String, State)> {
        let mut all = Vec::new();
        let mut to = |name: String, change: &dyn Fn(&mut State)| {
            let mut next = s.clone();
            change(&mut next);
            next.forget();
            all.push((name, next));
        };
        if s.now < LAST_TICK {
            to("a tick".to_owned(), &|n| n.now += 1);
        }
        for i in 0..INSTANCES {
            let me = s.instances[i];
            // Whatever happens while it is down may as well happen before it does something again.
            to(format!("{i} crashes and starts"), &|n| {
                // Its transaction is aborted at the next start, or by its time-out.
                for told in n.topic.iter_mut().filter(|told| told.by == i && told.committed.is_none()) {
                    told.committed = Some(false);
                }
                self.recover(n, i);
            });
            match me.step {
                Step::Idle => {
                    if me.intent.is_some() {
                        to(format!("{i} repeats"), &|n| self.intend(n, i, me.intent.expect("to be repeated").batch));
                    } else {
                        for batch in 0..BATCHES.len() {
                            to(format!("{i} intends {batch}"), &|n| self.intend(n, i, batch));
                        }
                    }
                    if me.intent.is_none() || self.without == Without::WaitingForTheRepetition {
                        self.hears(s, i, &mut to);
                    }
                }
                Step::Intended if s.topic.len() < MOST_TOLD => to(format!("{i} produces"), &|n| {
                    let intent = me.intent.expect("intended");
                    // The lesser of the batch's clock and the present one.
                    let stamp = intent.at + self.clocks[i];
                    if intent.released {
                        n.topic.push(Told { by: i, batch: intent.batch, stamp, committed: None });
                    }
                    n.instances[i].step = Step::Produced;
                }),
                Step::Produced => {
                    to(format!("{i} commits"), &|n| self.commit(n, i));
                    to(format!("{i} aborts"), &|n| {
                        decide(n, i, false);
                        n.instances[i].step = Step::Idle;
                    });
                }
                Step::Intended => {}
            }
        }
        all
    }

    /// The next record is heard; one that is undecided hides itself and all behind it.
    fn hears(self, s: &State, i: usize, to: &mut dyn FnMut(String, &dyn Fn(&mut State))) {
        let Some(told) = s.topic.get(s.instances[i].heard) else { return };
        if told.committed.is_none() && self.without != Without::ReadCommitted {
            return;
        }
        let counts = told.by != i && (told.committed == Some(true) || self.without == Without::ReadCommitted);
        let since = (s.now + self.clocks[i] - told.stamp).max(0);
        let at = match self.without {
            Without::Stamps => s.now,
            Without::Allowance => s.now - since,
            _ => s.now - since - SKEW,
        };
        to(format!("{i} hears"), &|n| {
            n.instances[i].heard += 1;
            if counts {
                note(&mut n.instances[i].known, told.batch, at);
            }
        });
    }

    fn intend(self, n: &mut State, i: usize, batch: usize) {
        let (now, me) = (n.now, &mut n.instances[i]);
        let again = me.intent.filter(|intent| intent.batch == batch);
        // A repetition keeps the clock of its first attempt, as long as its crowd has not grown too old since.
        let at = again
            .map_or(now, |intent| if has_crowd(me.known, batch, now) || !intent.released { intent.at } else { now });
        let released = has_crowd(me.known, batch, at) && has_crowd(me.known, batch, now);
        if let Some(first) = again.filter(|first| first.at == at)
            && first.released != released
        {
            n.broken = Some("a repetition differs from its first attempt");
        }
        me.intent = Some(Intent { batch, at, released });
        if self.without == Without::WritingWithTheIntent {
            // Written with the next one.
            me.disk.1 = me.disk.1.min(me.heard);
        } else {
            me.disk = (me.known, me.heard);
        }
        me.step = Step::Intended;
    }

    fn commit(self, n: &mut State, i: usize) {
        decide(n, i, true);
        let now = n.now;
        let me = &mut n.instances[i];
        let intent = me.intent.take().expect("intended");
        (me.step, me.disk) = (Step::Idle, (me.known, me.heard));
        if !intent.released {
            return;
        }
        note(&mut n.seen, intent.batch, now);
        let me = &mut n.instances[i];
        // Of its own it knows the clock of the batch, which is not later.
        note(&mut me.known, intent.batch, intent.at);
        me.disk.0 = me.known;
        // By the clock of the batch, as everywhere.
        if fresh(n.seen, intent.at).len() < K {
            n.broken = Some("a class has fewer than k people in the union");
        }
    }

    fn recover(self, n: &mut State, i: usize) {
        let me = &mut n.instances[i];
        (me.known, me.heard) = me.disk;
        me.step = Step::Idle;
    }
}

fn decide(n: &mut State, i: usize, committed: bool) {
    if let Some(told) = n.topic.iter_mut().find(|told| told.by == i && told.committed.is_none()) {
        told.committed = Some(committed);
    }
}

/// How many states there are, or the shortest way to a broken one.
fn walk(world: World) -> Result<usize, Vec<String>> {
    let mut seen = HashSet::from([World::start()]);
    let mut open = VecDeque::from([(World::start(), 0usize)]);
    // Where each state was come from, and by which step.
    let mut from: Vec<(usize, String)> = vec![(0, String::new())];
    while let Some((state, at)) = open.pop_front() {
        for (step, next) in world.next(&state) {
            if let Some(broken) = next.broken {
                let (mut way, mut back) = (vec![broken.to_owned(), step], at);
                while back != 0 {
                    way.push(from[back].1.clone());
                    back = from[back].0;
                }
                way.reverse();
                return Err(way);
            }
            if seen.insert(next.clone()) {
                from.push((at, step));
                open.push_back((next, from.len() - 1));
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn the_union_has_k_people_at_every_commit_whatever_the_clocks() {
    for clocks in [[0, 0], [SKEW, 0], [0, SKEW]] {
        let states =
            walk(World { without: Without::Nothing, clocks }).unwrap_or_else(|way| panic!("{}", way.join("\n")));
        eprintln!("clocks {clocks:?}: {states} states");
        assert!(states > 10_000, "only {states} states");
    }
}

/// Each rule carries weight: without it the walk finds a way into a broken state.
#[test]
fn every_rule_of_sharing_is_needed() {
    let few = "a class has fewer than k people in the union";
    let differs = "a repetition differs from its first attempt";
    for (without, clocks, expected) in [
        (Without::ReadCommitted, [0, 0], few),
        (Without::Allowance, [SKEW, 0], few),
        (Without::Stamps, [0, 0], few),
        (Without::WaitingForTheRepetition, [0, 0], differs),
        (Without::WritingWithTheIntent, [0, 0], differs),
    ] {
        let way = walk(World { without, clocks }).expect_err(&format!("{without:?} is not needed"));
        eprintln!("without {without:?}: {}", way.join(", "));
        assert_eq!(way.last().map(String::as_str), Some(expected), "{without:?}: {way:?}");
    }
}
