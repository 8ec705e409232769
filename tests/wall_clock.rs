//! Whatever the wall clock says, support ends when its time has passed, and no later.
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

/// One more in Chur, whom only that crowd can cover, among a crowd of Bern.
fn one_more(number: i64) -> String {
    let bern: String = (0..3).map(|n| format!("{{\"person\":\"b{n}\",\"city\":\"Bern\"}}\n")).collect();
    format!("{bern}{{\"person\":\"late{number}\",\"city\":\"Chur\"}}\n")
}

fn in_chur(place: &Place) -> usize {
    place.lines("out.ndjson").iter().filter(|line| line.contains("Chur")).count()
}

fn start(place: &Place, faults: &str) -> Process {
    let window = [("PRIVACY__SUPPORT_WINDOW", "3s"), ("PRIVACY__MAX_HOLD_BATCHES", "0")];
    let mut command = place.command(&window, &[]);
    command.env("FAILPOINTS", faults);
    Process::spawn(command, place.port)
}

/// Shifts of the clocks, in milliseconds, from their `n`th reading on. The first reading is the start's, then one a batch.
fn faults(n: usize, wall: i64, running: i64) -> String {
    format!("wall-clock={n}*off->return({wall});running-clock={n}*off->return({running})")
}

/// Two batches of one process, the second after `running` milliseconds, while the wall clock says `wall` more than it did.
/// True if the first still supports the second.
fn supports_while_running(wall: i64, running: i64) -> bool {
    let place = Place::new(SCHEMA, "");
    let window = [
        ("PRIVACY__SUPPORT_WINDOW", "3s"),
        ("PRIVACY__MAX_HOLD_BATCHES", "0"),
        ("SOURCE__PATH", "-"),
        ("BATCH__MAX_WAIT", "50ms"),
    ];
    let mut command = place.command(&window, &[]);
    command.env("FAILPOINTS", faults(2, wall, running));
    let mut process = Process::spawn(command, place.port);
    process.feed(crowd());
    process.until("the crowd has left", |status| status["totals"]["released"] == 3);
    process.feed(one_more(1));
    process.until("the second batch has left", |status| status["totals"]["consumed"] == 7);
    process.wait().expect(0);
    match in_chur(&place) {
        3 => false,
        4 => true,
        other => panic!("{other} lines of Chur"),
    }
}

/// The same over a restart.
fn supports_over_a_restart(wall: i64, running: i64, machine: Option<u64>) -> bool {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", crowd());
    start(&place, "").wait().expect(0);
    assert_eq!(in_chur(&place), 3);
    place.write("in.ndjson", crowd() + &one_more(1));
    let machine = machine.map_or(String::new(), |n| format!(";machine-started=return({n})"));
    start(&place, &format!("wall-clock=return({wall});running-clock=return({running}){machine}")).wait().expect(0);
    match in_chur(&place) {
        3 => false,
        4 => true,
        other => panic!("{other} lines of Chur"),
    }
}

#[test]
fn a_wall_clock_set_back_while_running_keeps_no_support_alive() {
    assert!(supports_while_running(0, 0), "a crowd supports inside the window");
    assert!(!supports_while_running(5000, 5000), "and not behind it");
    assert!(!supports_while_running(-2 * HOUR, 5000), "set back by two hours, five seconds ago");
    assert!(supports_while_running(-2 * HOUR, 0), "ages go by the time that has passed");
}

#[test]
fn a_wall_clock_set_back_over_a_restart_keeps_no_support_alive() {
    // A process that is slow to start is older than the window.
    assert!(!supports_over_a_restart(5000, 5000, None), "behind the window");
    assert!(!supports_over_a_restart(-2 * HOUR, 5000, None), "set back by two hours, five seconds ago");
    assert!(
        !supports_over_a_restart(-2 * HOUR, -1000, Some(9)),
        "another start of the machine, whose time nobody knows"
    );
}

/// Early is safe: a crowd that is not used harms nobody.
#[test]
fn a_wall_clock_set_ahead_ends_support() {
    assert!(!supports_while_running(2 * HOUR, 0));
}

/// The ledger counts 32 bits of seconds, from the making of the state.
#[test]
fn after_2106_support_ends_as_before() {
    // To the year 2200, before the state is made.
    let century = 174 * 365 * 24 * HOUR;
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", crowd());
    start(&place, &format!("wall-clock=return({century})")).wait().expect(0);
    place.write("in.ndjson", crowd() + &one_more(1));
    let later = century + 5000;
    start(&place, &format!("wall-clock=return({later});running-clock=return(5000)")).wait().expect(0);
    assert_eq!(in_chur(&place), 3, "five seconds are more than three, in every century");
}
