//! Whatever the wall clock says, a line stands for its subject until the release window has passed, and no longer.
#![cfg(feature = "failpoints")]

mod support;

use support::binary::{Place, Process};
use support::schemas::schema;

const SCHEMA: &str = schema!("visits"; person, text "city");

const HOUR: i64 = 3_600_000;

/// A crowd in Chur.
fn crowd() -> String {
    (0..3).map(|n| format!("{{\"person\":\"p{n}\",\"city\":\"Chur\"}}\n")).collect()
}

/// The same crowd once more, among a crowd of Bern.
fn again() -> String {
    let bern: String = (0..3).map(|n| format!("{{\"person\":\"b{n}\",\"city\":\"Bern\"}}\n")).collect();
    bern + &crowd()
}

/// Places where nobody moves.
fn place() -> Place {
    Place::new(&SCHEMA.replace("name = \"city\"\n", "name = \"city\"\nchanges = \"never\"\n"), "")
}

const WINDOW: [(&str, &str); 3] =
    [("PRIVACY__RELEASE_WINDOW", "3s"), ("PRIVACY__MAX_LINES_PER_SUBJECT", "1"), ("PRIVACY__MAX_HOLD_BATCHES", "0")];

fn in_chur(place: &Place) -> usize {
    place.lines("out.ndjson").iter().filter(|line| line.contains("Chur")).count()
}

/// Whether the lines of the first batch stand for those of the second.
fn stand(place: &Place) -> bool {
    match in_chur(place) {
        3 => true,
        6 => false,
        other => panic!("{other} lines of Chur"),
    }
}

fn start(place: &Place, faults: &str) -> Process {
    let mut command = place.command(&WINDOW, &[]);
    command.env("FAILPOINTS", faults);
    Process::spawn(command, place.port)
}

/// Shifts of the clocks, in milliseconds, from their `n`th reading on. The first reading is the start's, then one a batch.
fn faults(n: usize, wall: i64, running: i64) -> String {
    format!("wall-clock={n}*off->return({wall});running-clock={n}*off->return({running})")
}

/// Two batches of one process, the second after `running` milliseconds, while the wall clock says `wall` more than it did.
fn stand_while_running(wall: i64, running: i64) -> bool {
    let place = place();
    let overrides = [&WINDOW[..], &[("SOURCE__PATH", "-"), ("BATCH__MAX_WAIT", "50ms")]].concat();
    let mut command = place.command(&overrides, &[]);
    command.env("FAILPOINTS", faults(2, wall, running));
    let mut process = Process::spawn(command, place.port);
    process.feed(crowd());
    process.until("the crowd has left", |status| status["totals"]["released"] == 3);
    process.feed(again());
    process.until("the second batch has left", |status| status["totals"]["consumed"] == 9);
    process.wait().expect(0);
    stand(&place)
}

/// The same over a restart.
fn stand_over_a_restart(wall: i64, running: i64, machine: Option<u64>) -> bool {
    let place = place();
    place.write("in.ndjson", crowd());
    start(&place, "").wait().expect(0);
    let first = in_chur(&place);
    assert_eq!(first, 3);
    place.write("in.ndjson", again());
    let machine = machine.map_or(String::new(), |n| format!(";machine-started=return({n})"));
    start(&place, &format!("wall-clock=return({wall});running-clock=return({running}){machine}")).wait().expect(0);
    // A job replaces its output.
    in_chur(&place) == 0
}

#[test]
fn a_wall_clock_set_back_while_running_prolongs_no_window() {
    assert!(stand_while_running(0, 0), "lines stand inside the window");
    assert!(!stand_while_running(5000, 5000), "and not behind it");
    assert!(!stand_while_running(-2 * HOUR, 5000), "set back by two hours, five seconds ago");
    assert!(stand_while_running(-2 * HOUR, 0), "ages go by the time that has passed");
}

#[test]
fn a_wall_clock_set_back_over_a_restart_prolongs_no_window() {
    // A process that is slow to start is older than the window.
    assert!(!stand_over_a_restart(5000, 5000, None), "behind the window");
    assert!(!stand_over_a_restart(-2 * HOUR, 5000, None), "set back by two hours, five seconds ago");
    assert!(!stand_over_a_restart(-2 * HOUR, -1000, Some(9)), "another start of the machine, whose time nobody knows");
}

#[test]
fn a_wall_clock_set_ahead_ends_the_window() {
    assert!(!stand_while_running(2 * HOUR, 0));
}

/// The state counts 32 bits of seconds, from its making.
#[test]
fn after_2106_windows_end_as_before() {
    // To the year 2200, before the state is made.
    let century = 174 * 365 * 24 * HOUR;
    let place = place();
    place.write("in.ndjson", crowd());
    start(&place, &format!("wall-clock=return({century})")).wait().expect(0);
    place.write("in.ndjson", again());
    let later = century + 5000;
    start(&place, &format!("wall-clock=return({later});running-clock=return(5000)")).wait().expect(0);
    assert_eq!(in_chur(&place), 3, "five seconds are more than three, in every century");
}
