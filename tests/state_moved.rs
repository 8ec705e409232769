//! A state is looked into, checked, written to one file and made again of it; whatever is wrong is refused by name, and a stream that
//! moves goes on with the very bytes that it would have had.
#![cfg(feature = "failpoints")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;
use support::binary::{Outcome, Place, Process};
use support::copies;
use support::schemas::VISITS;

const CITIES: [&str; 3] = ["Zug", "Bern", "Chur"];

fn crowd(city: &str) -> String {
    (0..4).map(|n| format!("{{\"person\":\"{city}{n}\",\"city\":\"{city}\",\"ward\":\"north\"}}\n")).collect()
}

fn crowds(cities: &[&str]) -> String {
    cities.iter().map(|city| crowd(city)).collect()
}

/// `throng state …`, with overrides of the configuration.
fn state(place: &Place, overrides: &[(&str, &str)], faults: &str, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.arg("state").args(arguments);
    place.surround(&mut command, overrides);
    command.env("FAILPOINTS", faults);
    Process::spawn(command, place.port).wait()
}

fn inspect(place: &Place, overrides: &[(&str, &str)]) -> Value {
    let outcome = state(place, overrides, "", &["inspect", "-c", "throng.toml", "--json"]).expect(0);
    serde_json::from_slice(&outcome.stdout).expect("JSON")
}

fn run(place: &Place, overrides: &[(&str, &str)], faults: &str) -> Outcome {
    let mut command = place.command(overrides, &[]);
    command.env("FAILPOINTS", faults);
    Process::spawn(command, place.port).wait()
}

/// A place whose first two crowds have left; the third is in its input.
fn begun() -> Place {
    let place = Place::new(VISITS, "");
    place.write("in.ndjson", crowds(&CITIES[..2]));
    place.run(&[]).expect(0);
    place.write("in.ndjson", crowds(&CITIES));
    place
}

const ELSEWHERE: [(&str, &str); 1] = [("STATE__PATH", "moved")];

fn export(place: &Place) {
    state(place, &[], "", &["export", "-c", "throng.toml", "-o", "archive"]).expect(0);
}

fn import(place: &Place, faults: &str) -> Outcome {
    state(place, &ELSEWHERE, faults, &["import", "archive", "-c", "throng.toml"])
}

#[test]
fn the_figures_are_those_of_the_run() {
    let place = begun();
    let found = inspect(&place, &[]);
    assert_eq!(
        (&found["totals"]["consumed"], &found["totals"]["released"], &found["held"]),
        (&8.into(), &8.into(), &0.into())
    );
    assert_eq!((&found["batches"], &found["pending"]), (&1.into(), &Value::Null), "{found}");
    assert_eq!(found["positions"][0]["offset"], 8);
    assert!(found["ledger_classes"].as_u64().is_some_and(|classes| classes >= 2), "{found}");
    assert_eq!(found["outputs"][0]["bytes"].as_u64(), Some(place.read("out.ndjson").len() as u64));
    let outcome = state(&place, &[], "", &["inspect", "-c", "throng.toml"]).expect(0);
    let text = String::from_utf8(outcome.stdout).expect("text");
    assert!(text.contains("consumed 8 = released 8 + suppressed 0 + held 0 + dead-lettered 0 + dropped 0"), "{text}");
    assert!(CITIES.iter().all(|city| !text.contains(city) && !found.to_string().contains(city)), "no value is printed");
    // A batch that was about to leave.
    run(&place, &[], "intent-flushed=return");
    let found = inspect(&place, &[]);
    assert_eq!(
        (&found["pending"]["batch"], &found["pending"]["records"], &found["totals"]["consumed"]),
        (&2.into(), &4.into(), &8.into())
    );
    state(&place, &[], "", &["verify", "-c", "throng.toml"]).expect(0);
    place.run(&[]).expect(0);
    assert_eq!(place.lines("out.ndjson").len(), 12, "looking changes nothing");
}

#[test]
fn a_stream_goes_on_from_an_archive_with_the_same_bytes() {
    for faults in ["", "intent-flushed=return", "file-appended=return"] {
        let undisturbed = begun();
        undisturbed.run(&[]).expect(0);
        let place = begun();
        if !faults.is_empty() {
            run(&place, &[], faults);
        }
        export(&place);
        let mode = fs::metadata(place.path("archive")).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        import(&place, "").expect(0);
        fs::remove_dir_all(place.path("state")).expect("the old one goes");
        assert_eq!(inspect(&place, &ELSEWHERE)["format"], 4);
        state(&place, &ELSEWHERE, "", &["verify", "-c", "throng.toml"]).expect(0);
        let account = place.run(&ELSEWHERE).expect(0).account();
        assert_eq!((account.consumed, account.released), (12, 12), "{faults}");
        assert_eq!(place.read("out.ndjson"), undisturbed.read("out.ndjson"), "{faults}");
    }
}

/// What was exported before the last batch is an older copy, which the marker beside the outputs refuses.
#[test]
fn an_old_archive_is_an_older_copy() {
    let place = begun();
    export(&place);
    place.run(&[]).expect(0);
    import(&place, "").expect(0);
    let outcome = place.run(&ELSEWHERE).expect(2);
    assert!(outcome.stderr.contains("the state directory is an older copy"), "{}", outcome.stderr);
}

#[test]
fn a_changed_archive_is_refused_and_nothing_is_made() {
    let place = begun();
    export(&place);
    let whole = place.read("archive");
    let refused = |bytes: &[u8], what: &str| {
        place.write("archive", bytes);
        let outcome = import(&place, "").expect(2);
        assert!(!place.path("moved").exists(), "{what}: nothing was made");
        outcome.stderr
    };
    let heading = whole.iter().position(|byte| *byte == b'\n').expect("a heading") + 1;
    for cut in
        [0, 1, heading, heading + 31, heading + 32, heading + 40, whole.len() / 2, whole.len() - 33, whole.len() - 1]
    {
        let said = refused(&whole[..cut], "cut short");
        assert!(said.contains("is no archive of") || said.contains("cut short"), "{cut}: {said}");
    }
    for at in (heading + 32..whole.len()).step_by(whole.len() / 40) {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        let said = refused(&changed, "changed");
        assert!(said.contains("is damaged"), "{at}: {said}");
    }
    let more = [&whole[..], b"x"].concat();
    assert!(refused(&more, "longer").contains("something follows its end"));
    let other = String::from_utf8_lossy(&whole[..heading]).replace("format 4", "format 3");
    let said = refused(&[other.as_bytes(), &whole[heading..]].concat(), "another format");
    assert!(said.contains("state format 3") && said.contains("this throng reads format 4"), "{said}");
    // Of two states.
    let another = begun();
    fs::write(another.path("secret"), place.read("secret")).expect("the same secret");
    export(&another);
    let foreign = another.read("archive");
    let half = whole.len().min(foreign.len()) / 2;
    refused(&[&whole[..half], &foreign[half..]].concat(), "of two");
    place.write("archive", &whole);
    place.write("secret", "quite another secret, of the tests");
    let said = import(&place, "").expect(2).stderr;
    assert!(said.contains("the secret does not belong to the archive"), "{said}");
    assert!(!place.path("moved").exists());
}

#[test]
fn nothing_is_written_over_and_a_running_state_is_left_alone() {
    let place = begun();
    export(&place);
    let before = place.read("archive");
    let said = state(&place, &[], "", &["export", "-c", "throng.toml", "-o", "archive"]).expect(2).stderr;
    assert!(said.contains("is there already"), "{said}");
    assert_eq!(place.read("archive"), before);
    let occupied = state(&place, &[], "", &["import", "archive", "-c", "throng.toml"]).expect(2).stderr;
    assert!(occupied.contains("has a state in it already"), "{occupied}");
    for command in [["inspect"].as_slice(), &["verify"], &["export", "-o", "nothing"]] {
        let arguments = [command, &["-c", "throng.toml"]].concat();
        let missing = state(&place, &[("STATE__PATH", "nowhere")], "", &arguments).expect(2).stderr;
        assert!(missing.contains("there is no throng state in nowhere"), "{missing}");
        assert!(!place.path("nowhere").exists() && !place.path("nothing").exists(), "nothing is made");
    }
    // While a daemon has it.
    let mut running = Process::spawn(
        place.command(&[("SOURCE__PATH", "-"), ("STATE__PATH", "busy"), ("SINK__PATH", "busy.ndjson")], &[]),
        place.port,
    );
    running.feed(crowd("Zug"));
    running.until("it has its state", |_| place.path("busy/format").exists());
    for command in [["inspect"].as_slice(), &["verify"], &["export", "-o", "nothing"]] {
        let arguments = [command, &["-c", "throng.toml"]].concat();
        let busy = state(&place, &[("STATE__PATH", "busy")], "", &arguments).expect(1).stderr;
        assert!(busy.contains("in use by a running throng"), "{busy}");
        assert!(!place.path("nothing").exists(), "nothing is left");
    }
    running.wait().expect(0);
}

/// A killed import is no state, or all of it; the next one begins anew.
#[test]
fn a_killed_import_is_never_taken_for_a_state() {
    let place = begun();
    export(&place);
    for point in ["state-file-unnamed", "state-importing", "state-import-unmarked"] {
        assert_ne!(import(&place, &format!("{point}=return")).code, Some(0), "{point}");
        let outcome = place.run(&ELSEWHERE);
        if point == "state-import-unmarked" {
            let account = outcome.expect(0).account();
            assert_eq!((account.consumed, account.released), (12, 12), "all of it was there");
            break;
        }
        if point == "state-file-unnamed" {
            // Nothing but an unnamed file: no throng state.
            assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
            fs::remove_dir_all(place.path("moved")).expect("cleared by hand");
            continue;
        }
        let said = outcome.expect(2).stderr;
        assert!(said.contains("has not come to its end") && said.contains("run `throng state import` again"), "{said}");
        let found = state(&place, &ELSEWHERE, "", &["verify", "-c", "throng.toml"]).expect(2).stderr;
        assert!(found.contains("there is no throng state in"), "{found}");
        import(&place, "").expect(0);
        fs::remove_dir_all(place.path("moved")).expect("again");
    }
}

/// Two imports at once, and one beside a start: whoever comes second is refused, and the first is not disturbed.
#[test]
fn an_import_has_its_directory_to_itself() {
    let place = begun();
    export(&place);
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.args(["state", "import", "archive", "-c", "throng.toml"]);
    place.surround(&mut command, &ELSEWHERE);
    // It stays where it is, with all values written and nothing marked.
    let first = Process::spawn(command_with(command, "state-importing=pause"), place.port);
    until("the first import is under way", || place.path("moved/importing").exists());
    let said = import(&place, "").expect(1).stderr;
    assert!(said.contains("in use by a running throng"), "{said}");
    let said = place.run(&ELSEWHERE).expect(2).stderr;
    assert!(said.contains("has not come to its end"), "no start takes it for a state: {said}");
    assert!(place.path("moved/importing").exists() && !place.path("moved/format").exists(), "it was not disturbed");
    first.kill();
    import(&place, "").expect(0);
    let account = place.run(&ELSEWHERE).expect(0).account();
    assert_eq!((account.consumed, account.released), (12, 12));

    // A start that makes its directory in this moment.
    let beside = [("STATE__PATH", "beside"), ("SINK__PATH", "beside.ndjson")];
    let command = command_with(place.command(&beside, &[]), "state-unmarked=sleep(3000)");
    let start = Process::spawn(command, place.port);
    until("the start makes its directory", || place.path("beside/lock").exists());
    let refused = state(&place, &beside[..1], "", &["import", "archive", "-c", "throng.toml"]);
    assert!(matches!(refused.code, Some(1 | 2)), "{}", refused.stderr);
    let in_use = refused.stderr.contains("in use by a running throng");
    assert!(in_use || refused.stderr.contains("has a state in it already"), "{}", refused.stderr);
    let account = start.wait().expect(0).account();
    assert_eq!((account.consumed, account.released), (12, 12), "the start was not disturbed");
}

fn command_with(mut command: Command, faults: &str) -> Command {
    command.env("FAILPOINTS", faults);
    command
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "it did not come to pass that {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_state_with_its_own_secret_gives_it_to_a_file_apart() {
    let place = Place::new(VISITS, "");
    let text = String::from_utf8(place.read("throng.toml")).expect("text").replace("secret_file = \"secret\"\n", "");
    place.write("throng.toml", text);
    place.write("in.ndjson", crowds(&CITIES[..2]));
    place.run(&[]).expect(0);
    let said = state(&place, &[], "", &["export", "-c", "throng.toml", "-o", "archive"]).expect(2).stderr;
    assert!(said.contains("--secret-to FILE") && !place.path("archive").exists(), "{said}");
    state(&place, &[], "", &["export", "-c", "throng.toml", "-o", "archive", "--secret-to", "kept"]).expect(0);
    let secret = place.read("state/secret");
    assert_eq!(place.read("kept"), secret);
    assert!(!place.read("archive").windows(secret.len()).any(|bytes| bytes == secret), "not in the archive");
    let said = import(&place, "").expect(2).stderr;
    assert!(said.contains("--secret-from FILE"), "{said}");
    state(&place, &ELSEWHERE, "", &["import", "archive", "-c", "throng.toml", "--secret-from", "kept"]).expect(0);
    place.write("in.ndjson", crowds(&CITIES));
    assert_eq!(place.run(&ELSEWHERE).expect(0).account().released, 12);
    assert_eq!(place.lines("out.ndjson").len(), 12);
}

#[test]
fn damage_is_counted_by_kind_and_fails() {
    let place = begun();
    let outcome = state(&place, &[], "", &["verify", "-c", "throng.toml"]).expect(0);
    let text = String::from_utf8(outcome.stdout).expect("text");
    assert!(text.contains("every value opens"), "{text}");
    copies::change(&place.path("state/db"), |db| {
        let window = db.open_tree("window").expect("the tree");
        let (key, mut value) = window.first().expect("a look").map(|(k, v)| (k, v.to_vec())).expect("rows");
        value[40] ^= 1;
        window.insert(key, value).expect("a write");
    });
    let outcome = state(&place, &[], "", &["verify", "-c", "throng.toml", "--json"]).expect(1);
    assert!(outcome.stderr.contains("1 of 1 values of kind `rows` do not open"), "{}", outcome.stderr);
    let found: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
    assert_eq!((&found["sound"], &found["kinds"]["rows"]["sealed_otherwise"]), (&false.into(), &1.into()));
    place.write("secret", "quite another secret, of the tests");
    let said = state(&place, &[], "", &["verify", "-c", "throng.toml"]).expect(2).stderr;
    assert!(said.contains("the secret does not belong"), "{said}");
}
