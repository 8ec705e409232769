//! The protocol of one log (decision 0073), before it is built: state in a changelog that is partitioned like the source, attempt
//! records, start records. Searched completely, as the present protocol is: two processes, every order of their steps, with faults.
//!
//! A batch is one record of one partition. What a process remembers of a partition is the set of its records.

mod machine;

use super::{holds, walk};
use machine::{Fault, Without, World};

fn world(without: Without) -> World {
    World { without, partitions: 1, length: 2, one_name: false, faults: |_| false }
}

fn late(fault: Fault) -> bool {
    !matches!(fault, Fault::LostEntry | Fault::LostOffset | Fault::LocalCopies)
}

#[test]
fn two_instances_of_one_partition_with_late_requests() {
    holds(&World { faults: late, ..world(Without::Nothing) }, 500_000);
}

#[test]
#[ignore = "takes a minute and 3 GiB"]
fn two_instances_of_two_partitions() {
    holds(&World { partitions: 2, length: 1, ..world(Without::Nothing) }, 1_000_000);
}

#[test]
fn two_processes_of_one_name() {
    holds(&World { one_name: true, faults: late, ..world(Without::Nothing) }, 100_000);
}

#[test]
fn local_copies_and_lost_directories() {
    holds(&World { faults: |fault| fault == Fault::LocalCopies, ..world(Without::Nothing) }, 500_000);
}

#[test]
fn unclean_elections() {
    let lost = |fault| matches!(fault, Fault::LostEntry | Fault::LostOffset);
    holds(&World { length: 3, faults: lost, ..world(Without::Nothing) }, 500_000);
}

/// Each rule carries weight: without it the search finds a way into a broken state.
#[test]
fn every_rule_is_needed() {
    let none: fn(Fault) -> bool = |_| false;
    let draws: fn(Fault) -> bool = |fault| fault == Fault::OtherDraws;
    let lost: fn(Fault) -> bool = |fault| matches!(fault, Fault::LostEntry | Fault::LostOffset);
    let copies: fn(Fault) -> bool = |fault| fault == Fault::LocalCopies;
    let ways: [(Without, bool, fn(Fault) -> bool, &str); 15] = [
        (Without::AttemptRecord, false, draws, "a record was drawn again"),
        (Without::StartRecord, true, draws, "a record was drawn again"),
        (Without::LookingAfterTakingTheId, true, draws, "a record was drawn again"),
        (Without::Fencing, true, draws, "a record was drawn again"),
        (Without::NewEpochs, false, late, "lost"),
        (Without::ChangelogBeforeOffsets, false, none, "released without the memory of its partition"),
        (Without::ChangelogInTransaction, false, none, "refused, and nothing was lost"),
        (Without::GenerationCheck, false, none, "released without the memory of its partition"),
        (Without::WaitingForOpenTransactions, false, none, "released without the memory of its partition"),
        (Without::FinishBeforeRevocation, false, none, "released without the memory of its partition"),
        (Without::PositionCheck, false, copies, "released without the memory of its partition"),
        (Without::StartingAtProgress, false, lost, "twice"),
        (Without::ComparingOffsets, false, lost, "released without the memory of its partition"),
        (Without::ReadingOffsetsFirst, false, none, "refused, and nothing was lost"),
        (Without::WatchingTheEnd, false, lost, "released without the memory of its partition"),
    ];
    for (without, one_name, faults, expected) in ways {
        let length = if without == Without::WatchingTheEnd { 3 } else { 2 };
        let way = walk(&World { length, one_name, faults, ..world(without) })
            .expect_err(&format!("{without:?} is not needed"));
        eprintln!("without {without:?}: {}", way.join(", "));
        assert_eq!(way.last().map(String::as_str), Some(expected), "{without:?}: {way:?}");
    }
}

/// With one epoch for all transactions each kind of late request breaks something, except late offsets: nobody reads from them.
#[test]
fn a_late_request_needs_a_new_epoch() {
    let kinds: [(fn(Fault) -> bool, &str); 3] = [
        (|fault| fault == Fault::LateCommit, "a part of a batch was committed"),
        (|fault| fault == Fault::LateAbort, "lost"),
        (|fault| fault == Fault::LateProduce, "twice"),
    ];
    for (faults, expected) in kinds {
        let way = walk(&World { faults, ..world(Without::NewEpochs) })
            .expect_err("an epoch for each transaction is not needed");
        eprintln!("with one epoch: {}", way.join(", "));
        assert_eq!(way.last().map(String::as_str), Some(expected), "{way:?}");
    }
    holds(&World { faults: |fault| fault == Fault::LateOffsets, ..world(Without::NewEpochs) }, 1_000);
}
