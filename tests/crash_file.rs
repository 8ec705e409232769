//! Kills a job over files at every step. The next run writes the bytes of an undisturbed one.
#![cfg(feature = "failpoints")]

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use support::crash_points::{self, kill_at};
use support::daemon::{Dice, TestDaemon, configure, conserved, payload, scratch, sound};
use support::invariants::timeless;

const BATCH: usize = 40;
/// The last batch is partial.
const LINES: usize = 14 * BATCH + 17;

struct Run {
    dir: tempfile::TempDir,
}

const MODELS: &str = r#"
[[privacy.model]]
kind = "l_diversity"
diversity = "recursive"
attribute = "ward"
c = 6.0
l = 2
[[privacy.model]]
kind = "t_closeness"
attribute = "ward"
t = 0.6
ground = "hierarchical"
"#;

impl Run {
    fn new(hold: usize) -> Self {
        Self::over(hold, LINES)
    }

    fn over(hold: usize, lines: usize) -> Self {
        let dir = scratch();
        fs::write(dir.path().join("in.ndjson"), input(lines)).expect("the input");
        let ends = r#"
[source]
kind = "file"
path = "@/in.ndjson"
[sink]
kind = "file"
path = "@/out.ndjson"
dead_letter_path = "@/out.letters"
"#;
        configure(dir.path(), "only", &ends.replace('@', &dir.path().to_string_lossy()), hold, BATCH, "1h");
        Self { dir }
    }

    fn with(self, from: &str, to: &str) -> Self {
        let config = self.dir.path().join("only.toml");
        let text = fs::read_to_string(&config).expect("the configuration");
        assert!(text.contains(from), "{from}");
        fs::write(&config, text.replace(from, to)).expect("the configuration");
        self
    }

    fn without_state(self) -> Self {
        let path = format!("path = \"{}\"\nsecret_file", self.dir.path().join("only").display());
        self.with(&path, "secret_file")
    }

    fn with_models(hold: usize) -> Self {
        let run = Self::new(hold);
        let (schema, config) = (run.dir.path().join("visits.toml"), run.dir.path().join("only.toml"));
        let text = fs::read_to_string(&schema).expect("the schema");
        let ward = "name = \"ward\"\ntype = \"string\"\n";
        assert!(text.contains(ward));
        fs::write(&schema, text.replace(ward, &format!("{ward}role = \"sensitive\"\n"))).expect("the schema");
        let text = fs::read_to_string(&config).expect("the configuration");
        fs::write(&config, text + MODELS).expect("the configuration");
        run
    }

    fn waiting() -> Self {
        let run = Self::new(0).with("max_lines_per_subject = 0", "max_lines_per_subject = 1");
        run.with("max_delay = \"0s\"", "max_delay = \"1s\"")
    }

    fn in_many_files() -> Self {
        let run = Self::new(2);
        let at = |name: &str| run.dir.path().join(name);
        let text = fs::read_to_string(at("in.ndjson")).expect("the input");
        fs::remove_file(at("in.ndjson")).expect("the input");
        fs::create_dir(at("in")).expect("a folder");
        for (number, lines) in text.split_inclusive('\n').collect::<Vec<_>>().chunks(53).enumerate() {
            let lines = lines.concat();
            let (name, content) = match number % 3 {
                0 => ("gz", gzip(lines.as_bytes())),
                1 => ("zst", zstd::encode_all(lines.as_bytes(), 3).expect("it is compressed")),
                // The last line of a file may lack its line break.
                _ => ("json", lines.trim_end().as_bytes().to_vec()),
            };
            fs::write(at(&format!("in/{number:02}.ndjson.{name}")), content).expect("a file");
        }
        run.with("/in.ndjson\"", "/in\"")
    }

    fn start(&self, crash: Option<&str>) -> TestDaemon {
        let lineage = self.dir.path().join("out.lineage");
        let lineage = lineage.to_string_lossy();
        TestDaemon::start(&self.dir.path().join("only.toml"), &["--lineage", &lineage], crash)
    }

    fn outputs(&self) -> BTreeMap<String, String> {
        let place = self.dir.path().to_string_lossy().into_owned();
        outputs(self.dir.path()).into_iter().map(|(name, text)| (name, text.replace(&place, ""))).collect()
    }

    fn finish(&self) -> BTreeMap<String, String> {
        let mut daemon = self.start(None);
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.said());
        assert!(daemon.said().contains(&format!("consumed {LINES} = ")), "{}", daemon.said());
        let state = self.dir.path().join("only");
        if state.exists() {
            assert_eq!(conserved(&state), LINES as u64);
        }
        let left =
            fs::read_dir(self.dir.path()).expect("a directory").map(|entry| entry.expect("an entry").file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().ends_with(".unfinished")).collect();
        assert!(left.is_empty(), "{left:?}");
        self.outputs()
    }

    /// Over outputs of an earlier run.
    fn is_killed_at(
        &self,
        points: impl Iterator<Item = &'static str>,
        undisturbed: &BTreeMap<String, String>,
        seed: u64,
    ) {
        let mut dice = Dice::new(seed);
        for point in points {
            let crash = kill_at(point, &mut dice);
            for name in undisturbed.keys() {
                fs::write(self.dir.path().join(name), "of before\n").expect("an output");
            }
            self.start(Some(&crash)).crashes(&crash);
            let found = self.outputs();
            let is_renamed = matches!(point, "file-renamed" | "job-unkept");
            for (name, text) in undisturbed {
                let is_new = found[name] == *text;
                assert!(is_new || found[name] == "of before\n", "{crash}: {name} is neither old nor new");
                assert!(is_renamed || !is_new, "{crash}: {name} was replaced before the end");
                assert!(!point.starts_with("job-") || is_new, "{crash}: {name} was not replaced");
            }
        }
        same(&self.finish(), undisturbed, "killed at every point");
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).expect("it is compressed");
    encoder.finish().expect("it is compressed")
}

fn input(lines: usize) -> Vec<u8> {
    let mut dice = Dice::new(5);
    let payloads = (0..).filter_map(|n| payload(n, &mut dice)).take(lines);
    payloads.flat_map(|line| [line, b"\n".to_vec()].concat()).collect()
}

fn outputs(dir: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(dir).expect("a directory").map(|e| e.expect("an entry"));
    let named = entries.map(|e| (e.file_name().to_string_lossy().into_owned(), e.path()));
    let written = named.filter(|(name, _)| name.starts_with("out."));
    let read = |name: &str, path| {
        let text = fs::read_to_string(path).expect("text");
        if name.ends_with(".lineage") { timeless(&text) } else { text }
    };
    written.map(|(name, path)| (name.clone(), read(&name, path))).collect()
}

fn same(found: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>, how: &str) {
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (name, text) in wanted {
        assert!(found[name] == *text, "{how}: {name} differs");
    }
}

#[test]
fn file_kill_at_any_point_keeps_outputs_whole_and_identical() {
    for hold in [0, 2] {
        let undisturbed = Run::new(hold).finish();
        let fragments: Vec<String> = undisturbed
            .iter()
            .filter(|(name, _)| name.ends_with(".ndjson"))
            .flat_map(|(_, text)| text.lines().map(str::to_owned))
            .collect();
        let lines = sound(fragments.iter());
        assert!(lines > LINES / 2, "{lines} fragments of {LINES} records say little");
        Run::new(hold).is_killed_at(crash_points::all_of_files(), &undisturbed, hold as u64);
        let stateless = Run::new(hold).without_state();
        same(&stateless.finish(), &undisturbed, "without a state");
        Run::new(hold).without_state().is_killed_at(crash_points::FILE.into_iter(), &undisturbed, 7);
    }
}

fn shown(outputs: &BTreeMap<String, String>) -> usize {
    let lines = outputs["out.visit.ndjson"].lines();
    lines.filter(|line| line.contains("\"ward\":") && !line.contains("\"ward\":\"*\"")).count()
}

#[test]
fn file_kill_with_models_keeps_outputs_identical() {
    let undisturbed = Run::with_models(2).finish();
    let shown = shown(&undisturbed);
    assert!(shown > LINES / 10 && shown < LINES, "{shown} wards of {LINES} records");
    Run::with_models(2).is_killed_at(crash_points::all_of_files(), &undisturbed, 17);
}

/// Delayed lines of a job are released at its end.
#[test]
fn file_kill_with_delayed_lines_keeps_outputs_identical() {
    let undisturbed = Run::waiting().finish();
    let traces = undisturbed["out.trace.ndjson"].lines().count();
    assert!(traces > LINES / 4, "{traces} lines have waited for the end");
    let slow = Run::waiting();
    let mut daemon = slow.start(Some("file-appended=sleep(150)"));
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.said());
    same(&slow.outputs(), &undisturbed, "a slow job");
    Run::waiting().is_killed_at(crash_points::all_of_files(), &undisturbed, 24);
}

#[test]
fn many_input_files_give_the_output_of_one() {
    let one = Run::new(2).finish();
    let undisturbed = Run::in_many_files().finish();
    for group in ["out.visit.ndjson", "out.trace.ndjson"] {
        assert!(undisturbed[group] == one[group], "{group}");
    }
    let letters = undisturbed["out.letters"].replace("/in\"", "/in.ndjson\"");
    assert_eq!(letters, one["out.letters"], "dead letters are numbered over all files");
    Run::in_many_files().is_killed_at(crash_points::all_of_files(), &undisturbed, 40);
}

#[test]
fn file_kill_with_joined_rows_keeps_outputs_identical() {
    let joined = || Run::new(0).with("[sink]\n", "[sink]\nrows = \"joined\"\n");
    let undisturbed = joined().finish();
    assert_eq!(undisturbed.keys().filter(|name| name.ends_with(".ndjson")).count(), 1);
    let lines = undisturbed["out.ndjson"].lines().count();
    assert!(lines > LINES, "{lines} rows of two groups");
    joined().is_killed_at(crash_points::all_of_files(), &undisturbed, 41);
}

#[test]
fn unfinished_job_replaces_no_output() {
    let run = Run::new(0);
    let undisturbed = run.finish();
    fs::create_dir(run.dir.path().join("in")).expect("a folder");
    let packed = gzip(&input(LINES));
    fs::write(run.dir.path().join("in/0.ndjson"), input(LINES)).expect("a file");
    fs::write(run.dir.path().join("in/1.ndjson.gz"), &packed[..packed.len() - 20]).expect("a file");
    let run = run.with("/in.ndjson\"", "/in\"");
    let mut broken = run.start(None);
    assert_eq!(broken.wait().code(), Some(1), "{}", broken.said());
    assert!(broken.said().contains("truncated"), "{}", broken.said());
    same(&run.outputs(), &undisturbed, "a broken input");
    fs::remove_file(run.dir.path().join("in/1.ndjson.gz")).expect("a file");
    let mut stopped = run.start(Some("file-appended=sleep(300)"));
    std::thread::sleep(std::time::Duration::from_secs(2));
    stopped.signal(rustix::process::Signal::TERM);
    assert_eq!(stopped.wait().code(), Some(1), "{}", stopped.said());
    assert!(stopped.said().contains("no output was replaced"), "{}", stopped.said());
    same(&run.outputs(), &undisturbed, "a job that was told to end");
}

#[test]
fn release_log_continues_with_the_next_file() {
    let visits = |run: Run| {
        let run = run.with("max_lines_per_subject = 0", "max_lines_per_subject = 1");
        let run = run.with("max_delay = \"0s\"", "max_delay = \"1s\"");
        run.finish();
        let first = run.outputs()["out.trace.ndjson"].lines().count();
        let has_state = run.dir.path().join("only").exists();
        if has_state {
            // A second run would withhold the released lines.
            let mut again = run.start(None);
            assert_eq!(again.wait().code(), Some(2), "{}", again.said());
            assert!(again.said().contains("already has this input"), "{}", again.said());
            assert_eq!(run.outputs()["out.trace.ndjson"].lines().count(), first);
        }
        let next = run.dir.path().join("next.ndjson");
        // Equal content would count as the same input.
        let text = String::from_utf8_lossy(&input(LINES)).into_owned();
        fs::write(next, text.lines().rev().map(|line| format!("{line}\n")).collect::<String>()).expect("the next file");
        let run = run.with("/in.ndjson\"", "/next.ndjson\"");
        let mut daemon = run.start(None);
        // Every subject's line is already released: an empty release fails.
        assert_eq!(daemon.wait().code(), Some(i32::from(has_state)), "{}", daemon.said());
        (first, daemon.said().contains("every record was lost"), run.outputs()["out.trace.ndjson"].lines().count())
    };
    let (first, is_lost, second) = visits(Run::new(0));
    assert!(first > LINES / 4 && is_lost && second == first, "{first} lines of the first file, {second} afterwards");
    let (first, is_lost, second) = visits(Run::new(0).without_state());
    assert!(first > LINES / 4 && !is_lost && second > LINES / 4, "{first} and {second}");
}

fn interfered(run: &Run, point: &str, has_begun: impl Fn(&Path) -> bool, meanwhile: impl FnOnce(&Path)) -> TestDaemon {
    let daemon = run.start(Some(&format!("{point}=1*sleep(3000)->off")));
    while !has_begun(run.dir.path()) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    meanwhile(run.dir.path());
    daemon
}

fn is_open(dir: &Path) -> bool {
    dir.join(".out.visit.ndjson.unfinished").exists()
}

#[test]
fn output_path_taken_during_a_job_is_reported() {
    let undisturbed = Run::new(0).finish();
    for (point, code) in [("file-synced", 2), ("file-renamed", 1)] {
        let run = Run::new(0);
        for name in undisturbed.keys() {
            fs::write(run.dir.path().join(name), "of before\n").expect("an output");
        }
        let is_renamed = |dir: &Path| fs::read(dir.join("out.letters")).is_ok_and(|text| text != b"of before\n");
        let has_begun = |dir: &Path| if point == "file-renamed" { is_renamed(dir) } else { is_open(dir) };
        let mut daemon = interfered(&run, point, has_begun, |dir| {
            fs::remove_file(dir.join("out.visit.ndjson")).expect("an output");
            fs::create_dir(dir.join("out.visit.ndjson")).expect("a folder");
        });
        assert_eq!(daemon.wait().code(), Some(code), "{point}: {}", daemon.said());
        assert!(daemon.said().contains("out.visit.ndjson is not a regular file"), "{}", daemon.said());
        fs::remove_dir(run.dir.path().join("out.visit.ndjson")).expect("a folder");
        let found = run.outputs();
        let replaced = found.iter().filter(|(name, text)| undisturbed[*name] == **text);
        let replaced: Vec<&str> = replaced.map(|(name, _)| name.as_str()).collect();
        assert_eq!(replaced.is_empty(), point == "file-synced", "{point}: {replaced:?}");
        for name in replaced {
            let said = daemon.said();
            let told = said.split("already replaced: ").nth(1).expect("what was replaced");
            assert!(told.contains(name), "{name}: {said}");
        }
        same(&run.finish(), &undisturbed, point);
    }
}

#[test]
fn input_changed_while_read_is_refused() {
    let append = |path: &Path| {
        let mut file = fs::OpenOptions::new().append(true).open(path.join("in.ndjson")).expect("the input");
        file.write_all(&input(3)).expect("more of it");
    };
    let truncate = |path: &Path| {
        fs::File::options().write(true).open(path.join("in.ndjson")).expect("it").set_len(9).expect("less");
    };
    let replace = |path: &Path| {
        fs::copy(path.join("in.ndjson"), path.join("new")).expect("a copy");
        fs::rename(path.join("new"), path.join("in.ndjson")).expect("the input");
    };
    let ways: [(&str, &dyn Fn(&Path)); 3] = [("append", &append), ("truncate", &truncate), ("replace", &replace)];
    for (how, change) in ways {
        let run = Run::new(0);
        let mut daemon = interfered(&run, "file-appended", is_open, change);
        assert_eq!(daemon.wait().code(), Some(1), "{how}: {}", daemon.said());
        assert!(daemon.said().contains("in.ndjson has changed while it was read"), "{how}: {}", daemon.said());
        assert!(run.outputs().is_empty(), "{how}");
    }
}
