//! An older copy of a state directory is noticed by the marker beside the output files, and refused; an honest crash is not.
#![cfg(feature = "failpoints")]

mod support;

use std::fs;
use std::path::Path;

use support::binary::{Outcome, Place, Process};
use support::crash_points;
use support::schemas::VISITS;

const GROUPS: &str =
    "[[group]]\nname = \"a\"\nattributes = [\"city\"]\n[[group]]\nname = \"b\"\nattributes = [\"ward\"]\n";
const MARKER: &str = ".out.ndjson.marker";

fn crowd(city: &str) -> String {
    (0..4).map(|n| format!("{{\"person\":\"{city}{n}\",\"city\":\"{city}\",\"ward\":\"north\"}}\n")).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let (path, name) = entry.map(|e| (e.path(), e.file_name())).expect("an entry");
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).expect("a copy");
        }
    }
}

fn replace_state(place: &Place, from: &str) {
    fs::remove_dir_all(place.path("state")).expect("removed");
    copy(&place.path(from), &place.path("state"));
}

fn run(place: &Place, arguments: &[&str], faults: &str) -> Outcome {
    let mut command = place.command(&[], arguments);
    command.env("FAILPOINTS", faults);
    Process::spawn(command, place.port).wait()
}

/// Expects a refusal by name that leaves every output as it is.
#[track_caller]
fn refused(place: &Place, message: &str) {
    let outputs = |place: &Place| -> Vec<_> {
        let all = place.files("").into_iter();
        all.filter(|(path, _)| path.to_string_lossy().contains("out.")).collect()
    };
    let before = outputs(place);
    assert!(!before.is_empty(), "there are outputs");
    let outcome = place.run(&[]).expect(2);
    assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--accept-rewind"), "a remedy: {}", outcome.stderr);
    assert_eq!(outputs(place), before, "nothing has changed");
}

/// Three batches, and the states before each of them: `state0` to `state3`.
fn grown(more: &str) -> Place {
    let place = Place::new(VISITS, more);
    let mut input = String::new();
    for (number, city) in ["Zug", "Bern", "Chur"].into_iter().enumerate() {
        input += &crowd(city);
        place.write("in.ndjson", &input);
        place.run(&[]).expect(0);
        copy(&place.path("state"), &place.path(&format!("state{}", number + 1)));
    }
    place
}

#[test]
fn a_state_directory_that_was_rolled_back_is_refused() {
    for more in ["", GROUPS] {
        let place = grown(more);
        let whole = place.files("");
        for older in ["state1", "state2"] {
            replace_state(&place, older);
            refused(&place, "the state directory is an older copy");
        }
        replace_state(&place, "state3");
        place.write("in.ndjson", crowd("Zug") + &crowd("Bern") + &crowd("Chur") + &crowd("Sion"));
        assert_eq!(place.run(&[]).expect(0).account().released, 16, "the newest one goes on");
        assert!(whole.len() > 5);
    }
}

#[test]
fn a_rolled_back_state_is_accepted_by_name() {
    let place = grown("");
    replace_state(&place, "state1");
    assert_eq!(run(&place, &["--accept-rewind"], "").expect(0).account().released, 12);
    assert_eq!(place.lines("out.ndjson").len(), 12);
    // From here on it is the state of these files, and the other one is not.
    place.run(&[]).expect(0);
    replace_state(&place, "state3");
    refused(&place, "the state directory is an older copy");
}

#[test]
fn a_marker_that_is_missing_or_damaged_is_refused() {
    let place = grown("");
    let marker = place.read(MARKER);
    fs::remove_file(place.path(MARKER)).expect("removed");
    refused(&place, ".marker is missing, damaged or of another state");
    assert!(!place.path(MARKER).exists());
    for damaged in [vec![], marker[..100].to_vec(), vec![b' '; marker.len()]] {
        place.write(MARKER, &damaged);
        // Of two lines the first may be whole, and older than the state.
        refused(&place, ".marker");
    }
    place.write(MARKER, &marker);
    place.run(&[]).expect(0);
    fs::remove_file(place.path(MARKER)).expect("removed");
    run(&place, &["--accept-rewind"], "").expect(0);
    place.write("in.ndjson", crowd("Zug") + &crowd("Bern") + &crowd("Chur") + &crowd("Sion"));
    run(&place, &["--accept-rewind"], "").expect(0);
    place.run(&[]).expect(0);
}

#[test]
fn parquet_segments_of_a_newer_state_are_refused_to_an_older_one() {
    let place = Place::new(VISITS, "");
    let parquet = [("SINK__PATH", "out.parquet"), ("SINK__DEAD_LETTER_PATH", "letters.ndjson")];
    place.write("in.ndjson", crowd("Zug"));
    place.run(&parquet).expect(0);
    copy(&place.path("state"), &place.path("state1"));
    place.write("in.ndjson", crowd("Zug") + &crowd("Bern"));
    place.run(&parquet).expect(0);
    replace_state(&place, "state1");
    let outcome = place.run(&parquet).expect(2);
    assert!(outcome.stderr.contains(".out.parquet.marker says that batch"), "{}", outcome.stderr);
}

/// A state that is killed between any two steps goes on, and an older copy of it is refused, whenever it was taken.
#[test]
fn a_kill_at_any_point_is_no_rollback_and_a_copy_from_before_is_one() {
    for first in crash_points::FILE {
        let place = Place::new(VISITS, "");
        place.write("in.ndjson", crowd("Zug"));
        place.run(&[]).expect(0);
        copy(&place.path("state"), &place.path("before"));
        place.write("in.ndjson", crowd("Zug") + &crowd("Bern"));
        // Twice at the same point, then once at each other one: every attempt has a number of its own.
        for point in [first].iter().chain(&[first]).chain(&crash_points::FILE) {
            assert_ne!(run(&place, &[], &format!("{point}=return")).code, Some(2), "{first}, {point}");
        }
        copy(&place.path("state"), &place.path("during"));
        let marked = place.read(MARKER);
        let account = place.run(&[]).expect(0).account();
        assert_eq!((account.consumed, account.released), (8, 8), "{first}");
        assert_eq!(place.lines("out.ndjson").len(), 8, "{first}");
        assert_ne!(place.read(MARKER), marked, "the last attempt has a number of its own");
        for older in ["before", "during"] {
            replace_state(&place, older);
            refused(&place, "the state directory is an older copy");
        }
    }
}

/// Standard output and measuring runs have no files and no marker.
#[test]
fn sinks_without_files_have_no_marker() {
    let place = Place::new(VISITS, "");
    place.write("in.ndjson", crowd("Zug"));
    place.run(&[("SINK__KIND", "none")]).expect(0);
    place.write("in.ndjson", crowd("Zug") + &crowd("Bern"));
    place.run(&[]).expect(0);
    assert!(place.path(MARKER).exists());
    let other = Place::new(VISITS, "");
    other.write("in.ndjson", crowd("Zug"));
    let outcome = other.run(&[("SINK__PATH", "-")]).expect(0);
    assert_eq!(String::from_utf8(outcome.stdout).expect("text").lines().count(), 4);
    assert!(!other.path(MARKER).exists() && !other.path(".-.marker").exists());
}

/// Between a crash and the next start of the outputs the risk is measured: that settles the batch, and the marker beside the
/// outputs says still what the crash has left there. Neither is an older copy of the state.
#[test]
fn a_measuring_run_after_a_crash_makes_no_older_copy() {
    for point in ["intent-flushed", "file-unmarked", "file-marked", "file-appended", "delivered"] {
        let place = Place::new(VISITS, "");
        place.write("in.ndjson", crowd("Zug"));
        place.run(&[]).expect(0);
        copy(&place.path("state"), &place.path("before"));
        place.write("in.ndjson", crowd("Zug") + &crowd("Bern"));
        run(&place, &[], &format!("{point}=return"));
        // Killed while it measures, then twice to the end.
        for faults in ["delivered=return", "", ""] {
            let mut command = place.command(&[("SINK__KIND", "none")], &[]);
            command.env("FAILPOINTS", faults);
            Process::spawn(command, place.port).wait();
        }
        place.write("in.ndjson", crowd("Zug") + &crowd("Bern") + &crowd("Chur"));
        let account = place.run(&[]).expect(0).account();
        assert_eq!((account.consumed, account.released, account.suppressed), (12, 8, 4), "{point}");
        assert_eq!(place.lines("out.ndjson").len(), 8, "{point}: what was measured has not left");
        copy(&place.path("state"), &place.path("after"));
        replace_state(&place, "before");
        refused(&place, "the state directory is an older copy");
        replace_state(&place, "after");
        place.run(&[]).expect(0);
    }
}
