//! The commit protocol of `docs/exactly-once.md` as a small abstract machine, walked through completely: two processes,
//! every order of their steps, a crash, an abort, an expulsion from the group, a request that arrives late at any of them.
//!
//! A batch is one record here. What the model leaves out (bytes, sizes, held records) the scenario tests look at.

mod changelog;
mod machine;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};

use machine::{Late, Without, World};

/// A protocol with faults: its states and the steps between them.
trait Machine {
    type State: Copy + Eq + Hash;

    fn start(&self) -> Self::State;
    /// Every state that one step leads to, with what happens.
    fn next(&self, s: &Self::State) -> Vec<(String, Self::State)>;
    /// The promise that this state breaks.
    fn broken(&self, s: &Self::State) -> Option<&'static str>;
    /// Nothing is left to do.
    fn done(&self, s: &Self::State) -> bool;
}

/// A hasher for millions of small states; nobody chooses them to collide.
#[derive(Default)]
struct Fast(u64);

impl Hasher for Fast {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// How many states there are and from how many the end cannot be reached, or the shortest way to a broken one.
fn walk<M: Machine>(world: &M) -> Result<(usize, usize), Vec<String>> {
    let first = world.start();
    let mut numbers: HashMap<_, _, BuildHasherDefault<Fast>> = HashMap::default();
    numbers.insert(first, 0usize);
    let mut from: Vec<(usize, String)> = vec![(0, String::new())];
    let mut backward: Vec<Vec<u32>> = vec![Vec::new()];
    let mut reaches = vec![false];
    let mut open = VecDeque::from([first]);
    while let Some(state) = open.pop_front() {
        let at = numbers[&state];
        for (step, next) in world.next(&state) {
            let number = *numbers.entry(next).or_insert_with(|| {
                from.push((at, step.clone()));
                backward.push(Vec::new());
                reaches.push(world.done(&next));
                open.push_back(next);
                from.len() - 1
            });
            backward[number].push(at as u32);
            if let Some(what) = world.broken(&next) {
                let mut way = vec![what.to_owned(), step];
                let mut back = at;
                while back != 0 {
                    way.push(from[back].1.clone());
                    back = from[back].0;
                }
                way.reverse();
                return Err(way);
            }
        }
    }
    let mut ending: Vec<usize> = (0..reaches.len()).filter(|n| reaches[*n]).collect();
    while let Some(number) = ending.pop() {
        for &before in &backward[number] {
            if !std::mem::replace(&mut reaches[before as usize], true) {
                ending.push(before as usize);
            }
        }
    }
    Ok((reaches.len(), reaches.iter().filter(|r| !**r).count()))
}

fn world(without: Without) -> World {
    World { without, partitions: 2, length: 1, copy: false, late: |_| true }
}

fn holds<M: Machine>(world: &M, at_least: usize) {
    let (states, stuck) = walk(world).unwrap_or_else(|way| panic!("{}", way.join("\n")));
    eprintln!("{states} states, {stuck} from which the end cannot be reached");
    assert!(states >= at_least, "only {states} states: the walk has become smaller than it was");
    assert_eq!(stuck, 0);
}

#[test]
fn two_instances_on_one_partition() {
    holds(&World { partitions: 1, length: 3, ..world(Without::Nothing) }, 10_000);
}

#[test]
fn two_instances_on_two_partitions() {
    holds(&world(Without::Nothing), 10_000);
}

#[test]
fn a_copied_state_directory() {
    holds(&World { partitions: 1, length: 3, copy: true, ..world(Without::Nothing) }, 1_000);
}

/// Each rule carries weight: without it the walk finds a way into a broken state.
#[test]
fn every_rule_is_needed() {
    let ways = [
        (Without::Marker, false, "the state differs from what was committed"),
        (Without::Fencing, false, "the state differs from what was committed"),
        (Without::FinishBeforeAcknowledging, false, "twice"),
        (Without::Intent, false, "a state is refused that nobody has copied"),
        (Without::OffsetsInTransaction, false, "twice"),
        (Without::StableOffsets, false, "twice"),
        (Without::WaitingForHiddenMarkers, false, "the state differs from what was committed"),
        (Without::RefusingOlderCopies, true, "the state differs from what was committed"),
        (Without::AttemptInMarker, true, "the state differs from what was committed"),
        (Without::NewEpochs, false, "lost"),
        (Without::LookingAfterTakingTheId, true, "the state differs from what was committed"),
    ];
    for (without, copy, expected) in ways {
        let way = walk(&World { copy, ..world(without) }).expect_err(&format!("{without:?} is not needed"));
        eprintln!("without {without:?}: {}", way.join(", "));
        assert_eq!(way.last().map(String::as_str), Some(expected), "{without:?}: {way:?}");
    }
}

/// With one epoch for all transactions each kind of late request breaks something.
#[test]
fn a_late_request_of_any_kind_needs_a_new_epoch() {
    let kinds: [(fn(Late) -> bool, &str); 4] = [
        (|late| late == Late::Commit, "a part of a batch was committed"),
        (|late| late == Late::Abort, "lost"),
        (|late| matches!(late, Late::Produce(_)), "twice"),
        (|late| matches!(late, Late::Offsets(_)), "twice"),
    ];
    for (late, expected) in kinds {
        let world = World { partitions: 1, length: 3, late, ..world(Without::NewEpochs) };
        let way = walk(&world).expect_err("an epoch for each transaction is not needed");
        eprintln!("with one epoch: {}", way.join(", "));
        assert_eq!(way.last().map(String::as_str), Some(expected), "{way:?}");
    }
}
