//! The secret of a state is exchanged: the stream goes on with the very bytes that it would have had, and what is on the disk opens with
//! the new secret alone, wherever the exchange was killed.
#![cfg(feature = "failpoints")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use support::binary::{Outcome, Place, Process};
use support::copies;
use support::schemas::VISITS;
use throng::daemon::state::seal::{Keys, Sealer};

const CITIES: [&str; 3] = ["Zug", "Bern", "Chur"];
const OLD: &str = "a secret of the tests, and of nobody else";
const NEW: &str = "another secret of the tests, drawn later";

fn crowds(cities: &[&str]) -> String {
    let crowd = |city: &&str| -> String {
        (0..4).map(|n| format!("{{\"person\":\"{city}{n}\",\"city\":\"{city}\",\"ward\":\"north\"}}\n")).collect()
    };
    cities.iter().map(crowd).collect()
}

fn begun() -> Place {
    let place = Place::new(VISITS, "");
    place.write("in.ndjson", crowds(&CITIES[..2]));
    place.run(&[]).expect(0);
    place.write("in.ndjson", crowds(&CITIES));
    place.write("new", NEW);
    fs::set_permissions(place.path("new"), fs::Permissions::from_mode(0o600)).expect("a file of ours");
    place
}

fn throng(place: &Place, arguments: &[&str], overrides: &[(&str, &str)], faults: &str) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.args(arguments);
    place.surround(&mut command, overrides);
    command.env("FAILPOINTS", faults);
    Process::spawn(command, place.port).wait()
}

fn rekey(place: &Place, faults: &str) -> Outcome {
    throng(place, &["state", "rekey", "-c", "throng.toml", "--new-secret-file", "new"], &[], faults)
}

/// Values on the disk that open with `sealer`, of all of them, in every database of the directory.
fn opening(place: &Place, sealer: &Sealer) -> (usize, usize) {
    let (mut opened, mut all) = (0, 0);
    for entry in fs::read_dir(place.path("state")).expect("a directory") {
        let path = entry.expect("an entry").path();
        let is_database = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("db"));
        if !path.is_dir() || !is_database {
            continue;
        }
        copies::look(&path, |db| {
            for tree in ["throng", "window"] {
                for value in &db.open_tree(tree).expect("a tree") {
                    let (key, value) = value.expect("a value");
                    all += 1;
                    opened += usize::from(sealer.open(&key, &value).is_some());
                }
            }
        });
    }
    (opened, all)
}

/// Opens with exactly one of the secrets; `true`: the new one.
fn is_new(place: &Place) -> bool {
    let opens = |secret: &str| {
        place.write("secret", secret);
        throng(place, &["state", "verify", "-c", "throng.toml"], &[], "").code == Some(0)
    };
    let (old, new) = (opens(OLD), opens(NEW));
    assert!(old != new, "one of the two opens it: old {old}, new {new}");
    place.write("secret", if new { NEW } else { OLD });
    new
}

#[test]
fn a_stream_goes_on_under_another_secret_with_the_same_bytes() {
    for faults in ["", "intent-flushed=return", "file-appended=return"] {
        let undisturbed = begun();
        undisturbed.run(&[]).expect(0);
        let place = begun();
        if !faults.is_empty() {
            throng(&place, &["run", "-c", "throng.toml"], &[], faults);
        }
        rekey(&place, "").expect(0);
        let said = place.run(&[]).expect(2).stderr;
        assert!(said.contains("the secret does not belong to state directory"), "{said}");
        assert!(is_new(&place));
        let (old, new) = (Keys::derive(OLD.as_bytes()).sealer(), Keys::derive(NEW.as_bytes()).sealer());
        assert_eq!(opening(&place, &old).0, 0, "nothing opens with the old secret");
        let (opened, all) = opening(&place, &new);
        assert_eq!(opened + 1, all, "all but the check value opens with the new one");
        let account = place.run(&[]).expect(0).account();
        assert_eq!((account.consumed, account.released), (12, 12), "{faults}");
        assert_eq!(place.read("out.ndjson"), undisturbed.read("out.ndjson"), "{faults}");
    }
}

#[test]
fn a_killed_exchange_leaves_one_secret_and_everything_else() {
    const POINTS: [&str; 6] =
        ["rekey-begun", "rekey-copied", "rekey-expected", "rekey-named", "rekey-cleared", "state-file-unnamed"];
    let undisturbed = begun();
    undisturbed.run(&[]).expect(0);
    for point in POINTS {
        let place = begun();
        assert_ne!(rekey(&place, &format!("{point}=return")).code, Some(0), "{point}");
        let new = is_new(&place);
        assert_eq!(new, matches!(point, "rekey-named" | "rekey-cleared"), "{point}");
        if !new {
            rekey(&place, "").expect(0);
            assert!(is_new(&place), "{point}");
        }
        let databases = fs::read_dir(place.path("state")).expect("a directory").filter_map(Result::ok);
        let databases = databases.filter(|e| e.path().is_dir()).count();
        assert_eq!(databases, 1, "{point}: no other database stays");
        assert_eq!(opening(&place, &Keys::derive(OLD.as_bytes()).sealer()).0, 0, "{point}");
        assert_eq!(place.run(&[]).expect(0).account().released, 12, "{point}");
        assert_eq!(place.read("out.ndjson"), undisturbed.read("out.ndjson"), "{point}");
    }
}

#[test]
fn a_state_that_keeps_its_own_secret_is_given_one_and_may_be_given_another() {
    let place = begun();
    fs::remove_dir_all(place.path("state")).expect("anew");
    fs::remove_file(place.path("out.ndjson")).expect("anew");
    for marker in place.files("").into_iter().filter(|(path, _)| path.to_string_lossy().contains(".marker")) {
        fs::remove_file(marker.0).expect("anew");
    }
    let with_secret = String::from_utf8(place.read("throng.toml")).expect("text");
    let own = with_secret.replace("secret_file = \"secret\"\n", "");
    place.write("throng.toml", own);
    place.write("in.ndjson", crowds(&CITIES[..2]));
    place.run(&[]).expect(0);
    assert!(place.path("state/secret").exists());
    rekey(&place, "").expect(0);
    assert!(!place.path("state/secret").exists(), "the old secret is gone");
    let said = place.run(&[]).expect(2).stderr;
    assert!(said.contains("the secret does not belong"), "it draws no other: {said}");
    place.write("throng.toml", with_secret);
    place.write("secret", NEW);
    let third = "a third secret of the tests, drawn last";
    place.write("new", third);
    rekey(&place, "").expect(0);
    let again = rekey(&place, "").expect(2).stderr;
    assert!(again.contains("the secret does not belong"), "{again}");
    place.write("secret", third);
    let same = rekey(&place, "").expect(2).stderr;
    assert!(same.contains("this is the secret of the state already"), "{same}");
    place.write("in.ndjson", crowds(&CITIES));
    // Somebody who has left before is known: her lines are no new people.
    assert_eq!(place.run(&[]).expect(0).account().released, 12);
    place.write("new", "short");
    assert!(rekey(&place, "").expect(2).stderr.contains("--new-secret-file new: the secret has 5 bytes"));
    // An archive of it opens with the secret of now.
    throng(&place, &["state", "export", "-c", "throng.toml", "-o", "archive"], &[], "").expect(0);
    let elsewhere = [("STATE__PATH", "moved")];
    throng(&place, &["state", "import", "archive", "-c", "throng.toml"], &elsewhere, "").expect(0);
    place.write("in.ndjson", crowds(&CITIES) + &crowds(&["Sion"]));
    assert_eq!(place.run(&elsewhere).expect(0).account().released, 16);
}

/// The database of a state that has grown is written anew at a start (here because a test asks for it).
#[test]
fn a_database_that_is_written_anew_holds_the_same() {
    let undisturbed = begun();
    undisturbed.run(&[]).expect(0);
    for kill in ["", "compaction-copied=return", "compaction-named=return"] {
        for pending in ["", "intent-flushed=return"] {
            let place = begun();
            if !pending.is_empty() {
                throng(&place, &["run", "-c", "throng.toml"], &[], pending);
            }
            let faults = format!("state-compacts=return;{kill}");
            let outcome = throng(&place, &["run", "-c", "throng.toml"], &[], faults.trim_end_matches(';'));
            if kill.is_empty() {
                assert_eq!(outcome.expect(0).account().released, 12, "{pending}");
                assert_eq!(place.read("state/database"), b"db.1\n", "it took the place of the first");
                assert!(!place.path("state/db").exists(), "and the first is gone");
            } else {
                assert_ne!(outcome.code, Some(0), "{kill}");
                assert_eq!(place.run(&[]).expect(0).account().released, 12, "{kill} {pending}");
            }
            throng(&place, &["state", "verify", "-c", "throng.toml"], &[], "").expect(0);
            assert_eq!(place.read("out.ndjson"), undisturbed.read("out.ndjson"), "{kill} {pending}");
        }
    }
}
