//! What is fetched ahead of a reader: everything once, and never more than is said.

use std::collections::BTreeSet;
use std::ops::Range;

use throng::io::store::plan::{AT_MOST, Plan};

const MIB: u64 = 1 << 20;

/// Row groups of so many columns of so many bytes, one behind the other.
fn groups(count: u64, columns: u64, bytes: u64) -> (Vec<Vec<Range<u64>>>, u64) {
    let column = |group: u64, column: u64| {
        let start = 4 + (group * columns + column) * bytes;
        start..start + bytes
    };
    let groups = (0..count).map(|group| (0..columns).map(|at| column(group, at)).collect()).collect();
    (groups, 4 + count * columns * bytes)
}

/// Reads all columns of each group, some bytes of each in turn, as a reader of rows does: the most that was held, the pieces that were
/// fetched, and those fetched more than once.
fn walk(plan: &Plan, groups: &[Vec<Range<u64>>], at_a_time: u64) -> (u64, usize, usize) {
    let mut held: BTreeSet<usize> = BTreeSet::new();
    let (mut most, mut fetched, mut again) = (0, BTreeSet::new(), 0);
    let longest = groups.iter().flatten().map(|bytes| bytes.end - bytes.start).max().unwrap_or(0);
    for group in groups {
        for step in 0..longest.div_ceil(at_a_time) {
            for column in group {
                let at = column.start + step * at_a_time;
                for at in [at, (at + at_a_time).min(column.end) - 1].into_iter().filter(|at| column.contains(at)) {
                    let read = plan.at(at).expect("it is planned");
                    held.retain(|piece| plan.is_kept(*piece, read));
                    for wanted in plan.wanted(read) {
                        if held.insert(wanted) && !fetched.insert(wanted) {
                            again += 1;
                        }
                    }
                    let size = |piece: &usize| plan.piece(*piece).bytes.end - plan.piece(*piece).bytes.start;
                    most = most.max(held.iter().map(size).sum());
                }
            }
        }
    }
    (most, fetched.len(), again)
}

#[test]
fn no_more_than_said_is_held_and_nothing_is_fetched_twice() {
    for (count, columns, bytes) in [
        (1, 1, 1),
        (40, 7, 3000),
        (9, 60, 50_000),
        (5, 10, 2 * MIB),
        (3, 10, 40 * MIB),
        (2, 1, 300 * MIB),
        (3, 1024, 300_000),
        (2, 1024, 5000),
    ] {
        let (groups, length) = groups(count, columns, bytes);
        let plan = Plan::of_groups(&groups, length);
        let (most, fetched, again) = walk(&plan, &groups, (bytes / 9).max(1));
        assert!(most <= AT_MOST, "{most} held of {count} x {columns} x {bytes}");
        assert_eq!(again, 0, "{count} x {columns} x {bytes}");
        let fewest = (count * columns * bytes).div_ceil(8 * MIB) as usize;
        let is_small = columns * bytes <= AT_MOST / 3;
        // Small row groups are a few requests, whatever their columns.
        assert!(
            !is_small || fetched <= fewest + count as usize,
            "{fetched} requests for {count} x {columns} x {bytes}"
        );
    }
}

#[test]
fn columns_that_nobody_reads_are_passed_over() {
    let (all, length) = groups(4, 50, 2 * MIB);
    let few: Vec<Vec<Range<u64>>> = all.iter().map(|group| vec![group[3].clone(), group[40].clone()]).collect();
    let plan = Plan::of_groups(&few, length);
    assert!(plan.at(all[0][4].start).is_none());
    assert_eq!(plan.piece(plan.at(all[1][40].start).expect("read")).bytes, all[1][40]);
    let (most, fetched, again) = walk(&plan, &few, MIB / 2);
    assert_eq!((fetched, again), (8, 0));
    assert!(most <= 12 * MIB, "{most}");
}

#[test]
fn a_text_is_read_with_one_piece_ahead() {
    let plan = Plan::of_text(100 * MIB + 5);
    let mut at = 0;
    while at < 100 * MIB + 5 {
        let read = plan.at(at).expect("all of it is planned");
        assert_eq!(plan.piece(read).bytes.start, at);
        assert!(plan.wanted(read).len() <= 2);
        assert!(read == 0 || !plan.is_kept(read - 1, read));
        at = plan.piece(read).bytes.end;
    }
    assert_eq!(at, 100 * MIB + 5);
    assert!(plan.at(at).is_none() && Plan::of_text(0).at(0).is_none());
}

#[test]
fn what_a_damaged_footer_says_is_not_planned() {
    let odd = Range { start: 9, end: 4 };
    for groups in
        [vec![vec![0..10, 5..15]], vec![vec![0..10, 90..101]], vec![vec![odd]], vec![vec![u64::MAX..u64::MAX]], vec![]]
    {
        assert!(Plan::of_groups(&groups, 100).at(0).is_none(), "{groups:?}");
    }
}
