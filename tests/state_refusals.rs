//! Tests that a state directory that is foreign, damaged, or of another secret is refused and left unchanged.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use support::binary::{Outcome, Place, Process};
use support::daemon::{Dice, TestDaemon, configure, payload, scratch, state};
use support::schemas::VISITS;
use throng::daemon::state::directory::STATE_FORMAT;

const LINES: usize = 400;

struct Finished {
    dir: tempfile::TempDir,
}

impl Finished {
    fn new() -> Self {
        let dir = scratch();
        let mut dice = Dice::new(5);
        let lines: Vec<Vec<u8>> = (0..).filter_map(|n| payload(n, &mut dice)).take(LINES).collect();
        let mut input = lines.join(&b'\n');
        input.push(b'\n');
        fs::write(dir.path().join("in.ndjson"), input).expect("the input");
        let ends = r#"
[source]
kind = "file"
path = "@/in.ndjson"
[sink]
kind = "file"
path = "@/out.ndjson"
"#;
        configure(dir.path(), "only", &ends.replace('@', &dir.path().to_string_lossy()), 2, 40, "1h");
        let finished = Self { dir };
        let (code, said) = finished.run();
        assert_eq!(code, Some(0), "{said}");
        finished
    }

    fn run(&self) -> (Option<i32>, String) {
        let mut daemon = TestDaemon::start(&self.dir.path().join("only.toml"), &[], None);
        let status = daemon.wait();
        (status.code(), daemon.said())
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("only")
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(self.dir.path(), &mut found);
        found.retain(|path, _| !path.to_string_lossy().contains(".log-"));
        found
    }

    fn refused(&self, code: i32, message: &str) {
        let before = self.files();
        let (found, said) = self.run();
        assert_eq!(found, Some(code), "{said}");
        assert!(said.contains(message), "{said}");
        let after = self.files();
        for path in before.keys().chain(after.keys()) {
            assert!(before.get(path) == after.get(path), "{} has changed", path.display());
        }
    }
}

fn collect(dir: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.insert(path.clone(), fs::read(&path).expect("a readable file"));
        }
    }
}

#[test]
fn state_with_another_secret_is_refused() {
    let run = Finished::new();
    fs::write(run.dir.path().join("key"), "another secret of the same length or so").expect("a secret");
    run.refused(2, "the secret does not belong to state directory");
}

#[test]
fn state_directory_with_other_files_is_refused() {
    let run = Finished::new();
    fs::remove_dir_all(run.state()).expect("removed");
    fs::create_dir(run.state()).expect("a directory");
    fs::write(run.state().join("notes.txt"), "not a state").expect("a file");
    run.refused(2, "is not empty and holds no throng state");
}

#[test]
fn state_with_another_format_is_refused() {
    let run = Finished::new();
    fs::write(run.state().join("format"), "throng-state 99\n").expect("a file");
    run.refused(2, &format!("has format throng-state 99, this throng reads format {STATE_FORMAT}"));
}

#[test]
fn state_with_partial_files_of_a_killed_start_is_recovered() {
    let run = Finished::new();
    let recovered = |batches: u64| {
        let (code, said) = run.run();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains(&format!("state recovered sequence={batches}")), "{said}");
    };
    recovered(11);
    let db = run.state().join(fs::read_to_string(run.state().join("database")).expect("a name").trim());
    fs::write(db.join("snap.00000000000FFFFF.generating"), b"half a snapshot").expect("a file");
    recovered(22);
    // The database copy of a killed job is deleted.
    fs::create_dir(run.state().join("db.99")).expect("a directory");
    recovered(33);
    assert!(!run.state().join("db.99").exists());
    // A state without its format file is not treated as unfinished.
    fs::remove_file(run.state().join("format")).expect("removed");
    run.refused(2, "is not empty and holds no throng state");
    fs::write(run.state().join("format"), format!("throng-state {STATE_FORMAT}\n")).expect("a file");
    recovered(44);
}

#[test]
fn state_creation_is_completed_after_a_kill() {
    let run = Finished::new();
    let output = fs::read(run.dir.path().join("out.trace.ndjson")).expect("the output");
    let secret = fs::read(run.state().join("secret")).ok();
    let half: [(&str, &[(&str, &str)]); 6] = [
        ("nothing", &[]),
        ("the mark", &[("making", "")]),
        ("half a check value", &[("making", ""), ("check.new", "ab")]),
        ("half a database", &[("making", ""), ("db/conf", "half")]),
        ("a question to a disk that did not answer", &[("making", ""), ("db/conf", "half"), ("probe.new", "00")]),
        ("a database that is cut short", &[("making", ""), ("db/conf", "half"), ("db/db", "x"), ("format.new", "thr")]),
    ];
    for (what, files) in half {
        for folder in ["only", "out.trace.ndjson", "out.visit.ndjson", "out.ndjson"] {
            let path = run.dir.path().join(folder);
            let (Ok(()) | Err(_)) = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
        for (name, text) in files {
            let path = run.state().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let (code, said) = run.run();
        assert_eq!(code, Some(0), "{what}: {said}");
        assert!(["making", "probe.new"].iter().all(|left| !run.state().join(left).exists()), "{what}");
        if secret.is_none() {
            assert!(output == fs::read(run.dir.path().join("out.trace.ndjson")).expect("the output"), "{what}");
        }
    }
}

#[test]
fn damaged_database_is_refused_or_complete() {
    let run = Finished::new();
    let kept: BTreeMap<PathBuf, Vec<u8>> = run.files();
    let name = fs::read_to_string(run.state().join("database")).expect("a name");
    let folder = run.state().join(name.trim());
    let database = folder.join("db");
    let whole = fs::read(&database).expect("the database");
    let used = whole.iter().rposition(|b| *b != 0).expect("a database with something in it");
    let mut refused = 0;
    let mut damages: Vec<(String, Vec<u8>)> = vec![
        ("emptied".to_owned(), Vec::new()),
        ("cut in half".to_owned(), whole[..used / 2].to_vec()),
        ("overwritten".to_owned(), vec![0xa5; whole.len()]),
        ("zeroed".to_owned(), vec![0; whole.len()]),
    ];
    let mut dice = Dice::new(1);
    for _ in 0..8 {
        let at = dice.roll(used as u64) as usize;
        let mut flipped = whole.clone();
        flipped[at] ^= 0x40;
        damages.push((format!("flipped at {at} of {used}"), flipped));
    }
    for (how, bytes) in damages {
        fs::write(&database, bytes).expect("damaged");
        let (code, said) = run.run();
        if code == Some(0) {
            assert!(said.contains("state recovered sequence=11"), "{how}: {said}");
            assert_eq!(state(&run.state()).progress.sequence, 22, "{how}");
        } else {
            // The database is a log: a truncated one is an older copy of itself.
            let is_damaged = said.contains("is damaged") || said.contains("the database failed");
            assert!(code == Some(1) && is_damaged, "{how}: {code:?} {said}");
            for (path, bytes) in kept.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "ndjson")) {
                let same = fs::read(path).expect("an input or an output") == *bytes;
                assert!(same, "{how}: {} has changed", path.display());
            }
            refused += 1;
        }
        eprintln!("{how}: exit code {code:?}");
        fs::remove_dir_all(run.state()).expect("removed");
        for (path, bytes) in &kept {
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, bytes).expect("restored");
        }
    }
    assert!(refused >= 4, "only {refused} damages were noticed");
}

const GROUPS: &str = r#"
[[group]]
name = "a"
attributes = ["city"]
[[group]]
name = "b"
attributes = ["ward"]
"#;

fn crowd(city: &str) -> String {
    let person = |i| format!("{{\"person\":\"{city} {i}\",\"city\":\"{city}\",\"ward\":\"north\"}}\n");
    (0..4).map(person).collect::<Vec<_>>().concat()
}

#[track_caller]
fn refused(place: &Place, overrides: &[(&str, &str)], arguments: &[&str], code: i32, message: &str) {
    let files = || {
        let outside = |(path, _): &(PathBuf, Vec<u8>)| !path.starts_with(place.path("state"));
        place.files("").into_iter().filter(outside).collect::<BTreeMap<_, _>>()
    };
    let before = files();
    let outcome = Process::spawn(place.command(overrides, arguments), place.port).wait().expect(code);
    assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    let after = files();
    for path in before.keys().chain(after.keys()) {
        assert!(before.get(path) == after.get(path), "{} has changed", path.display());
    }
}

fn run(place: &Place, arguments: &[&str]) -> Outcome {
    Process::spawn(place.command(&[], arguments), place.port).wait()
}

#[test]
fn output_path_that_is_the_source_is_refused() {
    for more in ["", GROUPS] {
        let place = Place::new(VISITS, more);
        place.write("in.ndjson", crowd("Zug"));
        fs::create_dir(place.path("folder")).expect("a directory");
        let extension = if more.is_empty() { "ndjson" } else { "b.ndjson" };
        let of_group = |path: &str| path.replace("ndjson", extension);
        let links = ["soft.ndjson", "hard.ndjson"].map(|name| place.path(&of_group(name)));
        symlink("in.ndjson", &links[0]).expect("a link");
        fs::hard_link(place.path("in.ndjson"), &links[1]).expect("a link");
        let mut spellings = vec!["soft.ndjson", "hard.ndjson"];
        if more.is_empty() {
            spellings.extend(["in.ndjson", "./in.ndjson", "folder/../in.ndjson"]);
        }
        for measured in [false, true] {
            if measured {
                place.run(&[("SINK__KIND", "none")]).expect(0);
            }
            for spelling in &spellings {
                refused(
                    &place,
                    &[("SINK__PATH", spelling)],
                    &[],
                    2,
                    "THRONG__SINK__PATH: the sink would overwrite the source",
                );
                let beside = of_group(spelling);
                let message = format!("THRONG__SINK__DEAD_LETTER_PATH: {beside} is also a file of source.path");
                refused(&place, &[("SINK__DEAD_LETTER_PATH", &beside)], &[], 2, &message);
                let message = format!("--lineage: {beside} is also a file of source.path");
                refused(&place, &[], &["--lineage", &beside], 2, &message);
            }
        }
        assert_eq!(String::from_utf8(place.read("in.ndjson")).expect("text"), crowd("Zug"));
    }
}

#[test]
fn output_with_two_names_is_refused() {
    let place = Place::new(VISITS, GROUPS);
    place.write("in.ndjson", crowd("Zug"));
    fs::create_dir(place.path("folder")).expect("a directory");
    place.write("out.a.ndjson", "");
    symlink("out.a.ndjson", place.path("link")).expect("a link");
    for (lineage, other) in [
        ("out.a.ndjson", "sink.path"),
        ("folder/../out.b.ndjson", "sink.path"),
        ("link", "sink.path"),
        ("./dead.ndjson", "sink.dead_letter_path"),
    ] {
        let message = format!("error: command line: --lineage: {lineage} is also a file of {other}");
        refused(&place, &[], &["--lineage", lineage], 2, &message);
    }
    let message = "THRONG__SINK__DEAD_LETTER_PATH: out.b.ndjson is also a file of sink.path";
    refused(&place, &[("SINK__DEAD_LETTER_PATH", "out.b.ndjson")], &[], 2, message);
    assert!(!place.path("state").exists(), "nothing was opened");
    run(&place, &["--lineage", "lineage.ndjson"]).expect(0);
}

#[test]
fn output_of_another_daemon_is_refused() {
    let place = Place::new(VISITS, "");
    place.write("in.ndjson", crowd("Zug"));
    let mut first = place.start(&[("SOURCE__PATH", "-")]);
    // Created after the output is locked.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !place.path("dead.ndjson").exists() {
        assert!(std::time::Instant::now() < deadline, "the outputs are made before the first record");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let other = [("STATE__PATH", "folder"), ("TELEMETRY__LISTEN", "127.0.0.1:0")];
    let second = place.run(&other).expect(1);
    assert!(second.stderr.contains("is locked by another process"), "{}", second.stderr);
    first.feed(crowd("Bern"));
    assert_eq!(first.wait().expect(0).account().released, 4);
    assert!(place.lines("out.ndjson").iter().all(|line| line.contains("Bern")));
}
