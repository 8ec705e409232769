//! Checks that the recount detects each kind of violation.

use crate::scale_out::people::{Stream, Visit};
use crate::scale_out::recount::{Found, Promise, Recount};
use crate::scale_out::seen::{Batches, Seen};
use std::collections::BTreeMap;

const STREAM: Stream = Stream(7);
const PROMISE: Promise = Promise { k: 3, lines: 2 };

/// Instance, and lines (record number, shown city, shown illness).
type Of<'a> = (&'a str, &'a [(usize, &'a str, &'a str)]);

fn records(city: &str, illness: &str) -> Vec<usize> {
    let mut of_person: BTreeMap<u64, usize> = BTreeMap::new();
    for number in 0..40_000 {
        if let Some(visit) = STREAM.visit(number).filter(|visit| visit.city == city && visit.illness == illness) {
            of_person.entry(visit.person).or_insert(number);
        }
    }
    of_person.into_values().collect()
}

fn again(number: usize, not: &[usize]) -> usize {
    let of = |n: &usize| STREAM.visit(*n).map(|Visit { person, city, .. }| (person, city));
    let found = (0..40_000).find(|n| !not.contains(n) && of(n) == of(&number));
    found.expect("the stream is long")
}

fn recounted(batches: &[Of<'_>]) -> Result<Found, String> {
    let (mut seen, mut by) = (Vec::new(), Batches::new());
    for (stamp, (name, lines)) in (0..).zip(batches) {
        by.insert(stamp, vec![(*name).to_owned()]);
        for (number, city, illness) in *lines {
            let text = format!("{{\"city\":\"{city}\",\"illness\":\"{illness}\",\"n\":{number}}}");
            let offset = i64::try_from(seen.len()).expect("few lines");
            seen.push(Seen { offset, stamp, text });
        }
    }
    let mut recount = Recount::new(STREAM, PROMISE);
    recount.go_on(&seen, i64::MAX, &by)?;
    Ok(recount.found)
}

#[track_caller]
fn breaks(what: &str, batches: &[Of<'_>]) {
    let found = recounted(batches).expect_err(what);
    assert!(found.contains(what), "{found}");
}

#[test]
fn recount_accepts_valid_batches() {
    let flu = records("C00", "flu");
    let (a, b, c, d) = (flu[0], flu[1], flu[2], flu[3]);
    let whole: &[_] = &[(a, "C00", "*"), (b, "R0", "*"), (c, "C00", "*"), (d, "C00", "*")];
    breaks("class R0 has 1 people", &[("one", whole)]);
    let crowd: &[_] = &[(a, "C00", "*"), (b, "C00", "*"), (c, "C00", "*")];
    let found =
        recounted(&[("one", crowd), ("two", &[(flu[4], "C00", "*"), (flu[5], "C00", "*"), (flu[6], "C00", "*")])]);
    assert_eq!(found.expect("two crowds").classes, 2);
}

#[test]
fn recount_detects_class_below_k() {
    let flu = records("C00", "flu");
    let crowd: &[_] = &[(flu[0], "C00", "*"), (flu[1], "C00", "*"), (flu[2], "C00", "*")];
    let two: &[_] = &[(flu[3], "C00", "*"), (flu[4], "C00", "*")];
    breaks("has 2 people in the batch", &[("one", two)]);
    breaks("has 1 people in the batch", &[("one", crowd), ("two", &two[..1])]);
    // Earlier batches do not count towards the class size.
    breaks("has 2 people in the batch", &[("one", crowd), ("one", two)]);
    let more = [again(flu[3], &flu), again(flu[4], &flu)];
    let same: &[_] = &[(more[0], "C00", "*"), (more[1], "C00", "*")];
    breaks("has 2 people in the batch", &[("one", &[two, same].concat())]);
}

#[test]
fn recount_detects_duplicate_excess_and_false_lines() {
    let flu = records("C00", "flu");
    let crowd: &[_] = &[(flu[0], "C00", "*"), (flu[1], "C00", "*"), (flu[2], "C00", "*")];
    breaks("has left twice", &[("one", crowd), ("two", crowd)]);
    breaks("is not what", &[("one", &[(flu[0], "C01", "*")])]);
    breaks("is not what", &[("one", &[(flu[0], "C00", "cold")])]);
    breaks("is not what", &[("one", &[(flu[0], "*", "*")])]);
    breaks("there is no record", &[("one", &[(5, "C00", "*")])]);
    let second = again(flu[0], &flu);
    let third = again(flu[0], &[&flu[..], &[second]].concat());
    let often: &[_] = &[(second, "C00", "*"), (third, "C00", "*")];
    breaks("3 lines of person", &[("one", &[crowd, often].concat())]);
}

#[test]
fn recount_detects_rare_values_and_undiverse_classes() {
    let [flu, cold] = ["flu", "cold"].map(|illness| records("C00", illness));
    let shown: &[_] = &[(flu[0], "C00", "flu"), (flu[1], "C00", "flu"), (flu[2], "C00", "flu")];
    breaks("is not diverse", &[("one", shown)]);
    let other = |number| (number, "C00", "cold");
    let [a, b, c, ..] = cold[..] else { panic!("few records") };
    breaks("cold has 1 people in the batch", &[("one", &[shown, &[other(a)]].concat())]);
    breaks("cold has 2 people in the batch", &[("one", &[shown, &[other(a), other(b)]].concat())]);
    let found = recounted(&[("one", &[shown, &[other(a), other(b), other(c)]].concat())]).expect("diverse");
    assert_eq!(found.values, 6);
}

/// After a clock was set back, consecutive batches can have the same timestamp.
#[test]
fn recount_separates_batches_of_one_timestamp_by_order() {
    let flu = records("C00", "flu");
    let line = |(offset, number): (i64, usize)| {
        let text = format!("{{\"city\":\"C00\",\"illness\":\"*\",\"n\":{number}}}");
        Seen { offset, stamp: 1, text }
    };
    let mut numbers: Vec<usize> = flu[..4].to_vec();
    // Sorted as in two batches: three subjects, then one.
    numbers.sort_by_key(ToString::to_string);
    numbers.rotate_left(1);
    let seen: Vec<Seen> = (0..).zip(numbers).map(line).collect();
    let by = |names: &[&str]| Batches::from([(1, names.iter().map(|name| (*name).to_owned()).collect())]);
    let judged = |names: &[&str]| Recount::new(STREAM, PROMISE).go_on(&seen, i64::MAX, &by(names));
    assert_eq!(judged(&["one"]), Ok(()), "one batch");
    assert_eq!(judged(&["one", "two"]), Ok(()), "not to be told apart");
    assert!(judged(&["one", "one"]).is_err(), "two batches, of which one is a single person");
}
