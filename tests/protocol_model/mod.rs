//! Exhaustive model check of the commit protocol in `docs/internals/exactly-once.md`: every interleaving of two
//! processes with crashes, aborts, expulsions, rebalances, late requests, and lost or copied directories.

mod machine;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use machine::{Fault, Faults, Without, World};

trait Machine {
    type State: Copy + Eq + Hash;

    fn start(&self) -> Self::State;
    fn next(&self, s: &Self::State) -> Vec<Move<Self::State>>;
    /// Returns the guarantee that this state breaks.
    fn broken(&self, s: &Self::State) -> Option<&'static str>;
    fn done(&self, s: &Self::State) -> bool;
}

struct Move<S> {
    name: &'static str,
    process: usize,
    /// Progress cannot rely on an optional step.
    is_fault: bool,
    state: S,
}

#[derive(Default)]
struct FastHasher(u64);

impl Hasher for FastHasher {
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

/// In order of discovery, with the step that reached each state.
struct Found<S> {
    states: Vec<S>,
    from: Vec<(u32, &'static str, u8)>,
}

impl<S> Found<S> {
    fn way_to(&self, number: usize, promise: &str) -> Vec<String> {
        let mut way = vec![promise.to_owned()];
        let mut at = number;
        while at != 0 {
            let (before, name, process) = self.from[at];
            way.push(format!("{process} {name}"));
            at = before as usize;
        }
        way.reverse();
        way
    }
}

/// Returns the number of states.
///
/// # Errors
/// The shortest path to a state that breaks a guarantee, or from which only a fault can lead to completion.
fn walk<M: Machine>(world: &M) -> Result<usize, Vec<String>> {
    let mut found = Found { states: vec![world.start()], from: vec![(0, "", 0)] };
    let mut numbers: HashMap<_, u32, BuildHasherDefault<FastHasher>> = HashMap::default();
    numbers.insert(world.start(), 0);
    let mut steps: Vec<(u32, u32)> = Vec::new();
    let mut at = 0;
    while let Some(state) = found.states.get(at).copied() {
        for Move { name, process, is_fault, state } in world.next(&state) {
            let number = *numbers.entry(state).or_insert_with(|| {
                found.states.push(state);
                found.from.push((at as u32, name, process as u8));
                found.states.len() as u32 - 1
            });
            if number as usize == found.states.len() - 1
                && let Some(promise) = world.broken(&state)
            {
                return Err(found.way_to(number as usize, promise));
            }
            if !is_fault {
                steps.push((number, at as u32));
            }
        }
        at += 1;
    }
    drop(numbers);
    let ends = ending(&found.states.iter().map(|s| world.done(s)).collect::<Vec<_>>(), steps);
    match ends.iter().position(|ends| !ends) {
        None => Ok(found.states.len()),
        Some(stuck) => Err(found.way_to(stuck, "the end cannot be reached")),
    }
}

/// `steps` are (target, source) pairs.
fn ending(done: &[bool], mut steps: Vec<(u32, u32)>) -> Vec<bool> {
    steps.sort_unstable();
    let mut ends = done.to_vec();
    let mut open: Vec<usize> = (0..done.len()).filter(|number| done[*number]).collect();
    while let Some(number) = open.pop() {
        let first = steps.partition_point(|(to, _)| (*to as usize) < number);
        for (_, before) in steps[first..].iter().take_while(|(to, _)| *to as usize == number) {
            if !std::mem::replace(&mut ends[*before as usize], true) {
                open.push(*before as usize);
            }
        }
    }
    ends
}

/// The second record waits and is released by a batch that may read the first.
const TWO_PARTITIONS: World =
    World { without: &[], partitions: 2, length: 1, waits: 0b10, copy: false, fallible: 1, faults: |_| false };

const ONE_PARTITION: World = World { partitions: 1, length: 2, waits: 0b01, ..TWO_PARTITIONS };

const LATE_REQUESTS: World = World { faults: is_late, ..ONE_PARTITION };

const SLOW_COMMITS: World = World { faults: |fault| fault == Fault::SlowCommit, ..ONE_PARTITION };

const COPY: World = World { copy: true, fallible: 0, faults: |fault| fault == Fault::Flush, ..ONE_PARTITION };

const COPY_OF_TWO: World = World { copy: true, fallible: 0, ..TWO_PARTITIONS };

const LOST_OFFSETS: World = World { faults: |fault| fault == Fault::LostOffset, ..ONE_PARTITION };

/// Every batch has a range, so the offsets reveal the loss.
const LOST_ENTRIES: World = World { waits: 0, faults: |fault| fault == Fault::LostEntry, ..ONE_PARTITION };

const LOST_MARKERS: World = World { waits: 0, faults: |fault| fault == Fault::LostMarker, ..ONE_PARTITION };

fn is_late(fault: Fault) -> bool {
    matches!(fault, Fault::LateCommit | Fault::LateAbort | Fault::LateProduce | Fault::LateOffsets)
}

fn holds(world: &World, at_least: usize) {
    let begun = std::time::Instant::now();
    let states = walk(world).unwrap_or_else(|way| panic!("{}", way.join("\n")));
    eprintln!("{states} states, {:?}", begun.elapsed());
    assert!(states >= at_least, "only {states} states: the search has become smaller than it was");
}

fn breaks(world: &World, expected: &str) {
    let way = walk(world).expect_err(&format!("{:?} is not needed", world.without));
    eprintln!("without {:?}: {}", world.without, way.join(", "));
    assert_eq!(way.last().map(String::as_str), Some(expected), "{:?}: {way:?}", world.without);
}

#[test]
fn protocol_with_one_partition_keeps_guarantees() {
    holds(&World { fallible: 2, ..ONE_PARTITION }, 100_000);
}

#[test]
fn protocol_with_two_partitions_keeps_guarantees() {
    holds(&TWO_PARTITIONS, 200_000);
}

#[test]
#[ignore = "takes a minute and 2 GiB"]
fn protocol_with_two_failing_instances_keeps_guarantees() {
    holds(&World { fallible: 2, ..TWO_PARTITIONS }, 2_000_000);
}

#[test]
fn protocol_with_settled_records_of_two_partitions_keeps_guarantees() {
    holds(&World { waits: 0b11, ..TWO_PARTITIONS }, 500_000);
}

#[test]
fn late_requests_break_no_protocol_guarantee() {
    holds(&LATE_REQUESTS, 50_000);
}

#[test]
#[ignore = "takes a minute and 1 GiB"]
fn late_requests_of_two_instances_break_no_protocol_guarantee() {
    holds(&World { fallible: 2, ..LATE_REQUESTS }, 1_000_000);
}

#[test]
fn slow_commit_visibility_breaks_no_protocol_guarantee() {
    holds(&SLOW_COMMITS, 50_000);
}

#[test]
fn copied_directory_breaks_no_protocol_guarantee() {
    holds(&COPY, 100_000);
}

#[test]
#[ignore = "takes a minute and 1 GiB"]
fn copied_directory_of_failing_instance_breaks_no_protocol_guarantee() {
    holds(&World { fallible: 1, ..COPY }, 1_000_000);
}

#[test]
fn copied_directory_with_two_partitions_breaks_no_protocol_guarantee() {
    holds(&COPY_OF_TWO, 500_000);
}

#[test]
fn lost_directories_break_no_protocol_guarantee() {
    let lost = |fault| fault == Fault::LostDirectory;
    holds(&World { fallible: 2, faults: lost, ..ONE_PARTITION }, 300_000);
    holds(&World { faults: lost, ..TWO_PARTITIONS }, 300_000);
}

#[test]
fn transactions_ended_by_other_process_break_no_protocol_guarantee() {
    let ended = |fault| fault == Fault::EndedByOthers;
    holds(&World { fallible: 2, faults: ended, ..ONE_PARTITION }, 100_000);
    holds(&World { faults: ended, ..TWO_PARTITIONS }, 200_000);
    let slow = |fault| matches!(fault, Fault::EndedByOthers | Fault::SlowCommit);
    holds(&World { faults: slow, ..ONE_PARTITION }, 50_000);
}

#[test]
fn unclean_elections_are_detected_by_protocol() {
    holds(&LOST_OFFSETS, 30_000);
    holds(&World { length: 3, ..LOST_ENTRIES }, 5_000);
    holds(&LOST_MARKERS, 3_000);
}

#[test]
fn protocol_without_any_single_rule_breaks() {
    const REFUSED: &str = "refused, and nothing was lost or copied";
    let ways: [(&[Without], World, &str); 28] = [
        (&[Without::Intent], World { fallible: 1, ..COPY }, "drawn again"),
        (&[Without::Marker], TWO_PARTITIONS, "twice"),
        (&[Without::MarkerAttempt], World { fallible: 1, ..COPY_OF_TWO }, "drawn again"),
        (&[Without::RefusingCopies], COPY, "twice"),
        (&[Without::WaitingForHiddenMarkers], TWO_PARTITIONS, "twice"),
        (&[Without::Fencing], TWO_PARTITIONS, "twice"),
        (&[Without::LookingAfterTakingTheId], COPY_OF_TWO, "twice"),
        (&[Without::AuthorCheck], TWO_PARTITIONS, "twice"),
        (&[Without::AllPlaces], TWO_PARTITIONS, "twice"),
        (&[Without::GivingUp], TWO_PARTITIONS, "the end cannot be reached"),
        (&[Without::OffsetsOfSettled], TWO_PARTITIONS, "twice"),
        (&[Without::ProgressOfSettled], TWO_PARTITIONS, "twice"),
        (&[Without::ChangelogInTransaction], TWO_PARTITIONS, REFUSED),
        (&[Without::OffsetsInTransaction], TWO_PARTITIONS, REFUSED),
        (&[Without::GenerationCheck], TWO_PARTITIONS, "twice"),
        (&[Without::GenerationCheck], ONE_PARTITION, "released without the memory of its partition"),
        (&[Without::FinishBeforeRevocation], TWO_PARTITIONS, "twice"),
        (&[Without::DroppingWaiting], TWO_PARTITIONS, "twice"),
        (&[Without::Restoring], TWO_PARTITIONS, "twice"),
        (&[Without::WaitingForOpenTransactions], SLOW_COMMITS, REFUSED),
        (&[Without::StableOffsets], SLOW_COMMITS, REFUSED),
        (&[Without::ReadOffsetsFirst], TWO_PARTITIONS, REFUSED),
        (&[Without::ReadOffsetsAgain], TWO_PARTITIONS, REFUSED),
        (&[Without::ComparingOffsets], LOST_OFFSETS, "twice"),
        (&[Without::ComparingOffsets], LOST_ENTRIES, "released without the memory of its partition"),
        (&[Without::RangeCheck], LOST_MARKERS, "twice"),
        // Either of these two rules is sufficient.
        (&[Without::EntriesBeforeOffsets, Without::StableOffsets], TWO_PARTITIONS, "twice"),
        (&[Without::EntriesBeforeOffsets, Without::OffsetsOfAllPlaces], TWO_PARTITIONS, "twice"),
    ];
    for (without, world, expected) in ways {
        breaks(&World { without, ..world }, expected);
    }
}

/// The author check of progress entries and the wait for open transactions cover these rules.
#[test]
fn redundant_protocol_rules_can_be_disabled() {
    holds(&World { without: &[Without::GiveUpAtRevocation], ..TWO_PARTITIONS }, 100_000);
    for world in [SLOW_COMMITS, LATE_REQUESTS] {
        holds(&World { without: &[Without::RenewBeforeRevocation], ..world }, 10_000);
    }
}

#[test]
fn late_request_of_any_kind_requires_new_epoch() {
    let kinds: [(Faults, &str); 4] = [
        (|fault| fault == Fault::LateCommit, "a part of a batch was committed"),
        (|fault| fault == Fault::LateAbort, "lost"),
        (|fault| fault == Fault::LateProduce, "twice"),
        (|fault| fault == Fault::LateOffsets, "refused, and nothing was lost or copied"),
    ];
    for (faults, expected) in kinds {
        breaks(&World { without: &[Without::NewEpochs], waits: 0b10, faults, ..LATE_REQUESTS }, expected);
    }
}

/// A batch without a range does not change the offset, and an owner does not read its changelog again.
#[test]
fn undetected_losses_break_protocol() {
    breaks(&World { waits: 0b01, ..LOST_ENTRIES }, "twice");
    let memory = "released without the memory of its partition";
    breaks(&World { length: 3, faults: |fault| fault == Fault::LostEntryOfOwner, ..LOST_ENTRIES }, memory);
    breaks(&World { waits: 0b01, ..LOST_MARKERS }, "twice");
}
