//! Checks that subjects are remembered exactly until the release window has passed, for any wall clock.
#![cfg(feature = "failpoints")]

use crate::support;

use support::binary::{Place, Process};
use support::schemas::schema;

const SCHEMA: &str = schema!("visits"; person, text "city");

const HOUR: i64 = 3_600_000;

fn crowd() -> String {
    (0..3).map(|n| format!("{{\"person\":\"p{n}\",\"city\":\"Chur\"}}\n")).collect()
}

fn again() -> String {
    let bern: String = (0..3).map(|n| format!("{{\"person\":\"b{n}\",\"city\":\"Bern\"}}\n")).collect();
    bern + &crowd()
}

/// A subject without an earlier batch supports no class.
const WINDOW: [(&str, &str); 3] =
    [("PRIVACY__RELEASE_WINDOW", "3s"), ("PRIVACY__MIN_TENURE", "1"), ("PRIVACY__MAX_HOLD_BATCHES", "0")];

fn in_chur(place: &Place) -> usize {
    place.lines("out.ndjson").iter().filter(|line| line.contains("Chur")).count()
}

/// No subject counted in the first batch. A run without a release has exit code 1.
fn is_known(place: &Place, process: Process) -> bool {
    let outcome = process.wait();
    let known = match in_chur(place) {
        0 => false,
        3 => true,
        other => panic!("{other} lines of Chur"),
    };
    outcome.expect(i32::from(!known));
    known
}

fn start(place: &Place, faults: &str) -> Process {
    let mut command = place.command(&WINDOW, &[]);
    command.env("FAILPOINTS", faults);
    Process::spawn(command, place.port)
}

/// Shifts the clocks, in milliseconds, from their `n`th reading on: one at the start, then one per batch.
fn faults(n: usize, wall: i64, running: i64) -> String {
    format!("wall-clock={n}*off->return({wall});running-clock={n}*off->return({running})")
}

/// The second batch comes after `running` milliseconds, with the wall clock shifted by `wall`.
fn known_while_running(wall: i64, running: i64) -> bool {
    let place = Place::new(SCHEMA, "");
    let overrides = [&WINDOW[..], &[("SOURCE__PATH", "-"), ("BATCH__MAX_WAIT", "50ms")]].concat();
    let mut command = place.command(&overrides, &[]);
    command.env("FAILPOINTS", faults(2, wall, running));
    let mut process = Process::spawn(command, place.port);
    process.feed(crowd());
    process.until("the crowd has come", |status| status["totals"]["consumed"] == 3);
    process.feed(again());
    process.until("the second batch has left", |status| status["totals"]["consumed"] == 9);
    is_known(&place, process)
}

fn known_over_a_restart(wall: i64, running: i64, machine: Option<u64>) -> bool {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", crowd());
    start(&place, "").wait().expect(1);
    place.write("in.ndjson", again());
    let machine = machine.map_or(String::new(), |n| format!(";machine-started=return({n})"));
    is_known(&place, start(&place, &format!("wall-clock=return({wall});running-clock=return({running}){machine}")))
}

#[test]
fn wall_clock_set_back_while_running_does_not_extend_the_window() {
    assert!(known_while_running(0, 0), "people are known inside the window");
    assert!(!known_while_running(5000, 5000), "and not behind it");
    assert!(!known_while_running(-2 * HOUR, 5000), "set back by two hours, five seconds ago");
    assert!(known_while_running(-2 * HOUR, 0), "ages go by the time that has passed");
}

#[test]
fn wall_clock_set_back_over_a_restart_does_not_extend_the_window() {
    // A process with a slow start would exceed the window.
    assert!(!known_over_a_restart(5000, 5000, None), "behind the window");
    assert!(!known_over_a_restart(-2 * HOUR, 5000, None), "set back by two hours, five seconds ago");
    assert!(!known_over_a_restart(-2 * HOUR, -1000, Some(9)), "another start of the machine, whose time nobody knows");
}

#[test]
fn wall_clock_set_ahead_ends_the_window() {
    assert!(!known_while_running(2 * HOUR, 0));
}

/// The state counts seconds in 32 bits, from its creation.
#[test]
fn window_after_2106_ends_as_before() {
    // Year 2200, before the state is created.
    let century = 174 * 365 * 24 * HOUR;
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", crowd());
    start(&place, &format!("wall-clock=return({century})")).wait().expect(1);
    place.write("in.ndjson", again());
    let later = century + 5000;
    let process = start(&place, &format!("wall-clock=return({later});running-clock=return(5000)"));
    assert!(!is_known(&place, process), "five seconds are more than three, in every century");
}
