//! A state directory that is not ours, not whole, or not for this secret is refused, and left as it was.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use support::daemon::{Daemon, Dice, configure, payload, scratch, state};

const LINES: usize = 400;

/// A finished run from file to file with its state.
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
        let mut daemon = Daemon::start(&self.dir.path().join("only.toml"), &[], None);
        let status = daemon.wait();
        (status.code(), daemon.said())
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("only")
    }

    /// Every file but the logs of the tests.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(self.dir.path(), &mut found);
        found.retain(|path, _| !path.to_string_lossy().contains(".log-"));
        found
    }

    /// Starts again, expects a refusal, and that no file has changed.
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
fn another_secret_is_refused() {
    let run = Finished::new();
    fs::write(run.dir.path().join("key"), "another secret of the same length or so").expect("a secret");
    run.refused(2, "the secret does not belong to state directory");
}

#[test]
fn a_directory_with_something_else_in_it_is_refused() {
    let run = Finished::new();
    fs::remove_dir_all(run.state()).expect("removed");
    fs::create_dir(run.state()).expect("a directory");
    fs::write(run.state().join("notes.txt"), "not a state").expect("a file");
    run.refused(2, "is not empty and holds no throng state");
}

#[test]
fn another_format_is_refused() {
    let run = Finished::new();
    fs::write(run.state().join("format"), "throng-state 99\n").expect("a file");
    run.refused(2, "has format throng-state 99, this throng reads format 3");
}

#[test]
fn output_files_without_their_state_are_refused() {
    let run = Finished::new();
    fs::remove_dir_all(run.state()).expect("removed");
    let before = fs::read(run.dir.path().join("out.ndjson.trace")).expect("the output");
    let (code, said) = run.run();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("this state has never written to it"), "{said}");
    assert_eq!(fs::read(run.dir.path().join("out.ndjson.trace")).expect("the output"), before);
}

#[test]
fn another_sink_is_refused() {
    let run = Finished::new();
    let file = run.dir.path().join("only.toml");
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, text.replace("/out.ndjson", "/other.ndjson")).expect("the configuration");
    let (code, said) = run.run();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("has released to another topic or file"), "{said}");
    assert!(!run.dir.path().join("other.ndjson.trace").exists());
    fs::write(&file, text).expect("the configuration");
    let (code, said) = run.run();
    assert_eq!(code, Some(0), "{said}");
}

/// A start that was killed leaves things half-written; the next one is none the worse for it.
#[test]
fn what_a_killed_start_has_left_half_written_is_no_damage() {
    let run = Finished::new();
    let output = fs::read(run.dir.path().join("out.ndjson.trace")).expect("the output");
    let db = run.state().join("db");
    for bytes in [&b""[..], b"half a snapshot"] {
        fs::write(db.join("snap.00000000000FFFFF.generating"), bytes).expect("a file");
        let (code, said) = run.run();
        assert_eq!(code, Some(0), "{said}");
    }
    assert_eq!(fs::read(run.dir.path().join("out.ndjson.trace")).expect("the output"), output);
    // A state that has lost its format is none that was being made: nothing of it is given up.
    fs::remove_file(run.state().join("format")).expect("removed");
    let (code, said) = run.run();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("state recovered sequence=11"), "{said}");
    assert_eq!(fs::read(run.dir.path().join("out.ndjson.trace")).expect("the output"), output);
}

#[test]
fn a_state_that_was_being_made_is_made() {
    let run = Finished::new();
    let output = fs::read(run.dir.path().join("out.ndjson.trace")).expect("the output");
    let secret = fs::read(run.state().join("secret")).ok();
    let half: [(&str, &[(&str, &str)]); 5] = [
        ("nothing", &[]),
        ("the mark", &[("making", "")]),
        ("half a check value", &[("making", ""), ("check.new", "ab")]),
        ("half a database", &[("making", ""), ("db/conf", "half")]),
        ("a database that is cut short", &[("making", ""), ("db/conf", "half"), ("db/db", "x"), ("format.new", "thr")]),
    ];
    for (what, files) in half {
        for folder in ["only", "out.ndjson.trace", "out.ndjson.visit", "out.ndjson"] {
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
        assert!(!run.state().join("making").exists(), "{what}");
        if secret.is_none() {
            assert!(output == fs::read(run.dir.path().join("out.ndjson.trace")).expect("the output"), "{what}");
        }
    }
}

/// Whatever is done to the database: either it is refused, or nothing of it is missing.
#[test]
fn a_damaged_database_is_refused_and_never_taken_for_a_fresh_one() {
    let run = Finished::new();
    let wanted = state(&run.state()).progress;
    let database = run.state().join("db").join("db");
    let whole = fs::read(&database).expect("the database");
    let used = whole.iter().rposition(|b| *b != 0).expect("a database with something in it");
    let kept: BTreeMap<PathBuf, Vec<u8>> = run.files();
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
            assert_eq!(state(&run.state()).progress, wanted, "{how}: something was lost without a word\n{said}");
        } else {
            assert_eq!(code, Some(1), "{how}: {said}");
            assert!(said.contains("is damaged") || said.contains("the database failed"), "{how}: {said}");
            refused += 1;
        }
        eprintln!("{how}: exit code {code:?}");
        for entry in fs::read_dir(run.state().join("db")).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
        }
        for (path, bytes) in &kept {
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, bytes).expect("restored");
        }
    }
    assert!(refused >= 4, "only {refused} damages were noticed");
}
