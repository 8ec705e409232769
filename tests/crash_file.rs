//! From file to file: killed at any step, the run continues where it stopped and ends with the same bytes.
#![cfg(feature = "failpoints")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use support::crash_points::{self, kill_at};
use support::daemon::{Daemon, Dice, configure, conserved, payload, scratch, sound};

const BATCH: usize = 40;
/// The last batch is not full.
const LINES: usize = 14 * BATCH + 17;

struct Run {
    dir: tempfile::TempDir,
}

/// Wards as sensitive values beside the age, under models of every kind of memory.
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

    /// The same stream with wards as sensitive values.
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

    /// The same stream into one file of joined rows.
    fn joined() -> Self {
        let run = Self::new(0);
        let config = run.dir.path().join("only.toml");
        let text = fs::read_to_string(&config).expect("the configuration");
        assert!(text.contains("[sink]\n"));
        fs::write(&config, text.replace("[sink]\n", "[sink]\nrows = \"joined\"\n")).expect("the configuration");
        run
    }

    /// The same stream, where what does not change waits for a delay that no run sees the end of.
    fn waiting(hold: usize) -> Self {
        let run = Self::new(hold);
        let config = run.dir.path().join("only.toml");
        let text = fs::read_to_string(&config).expect("the configuration");
        let (lines, delay) = ("max_lines_per_subject = 0", "max_delay = \"0s\"");
        assert!(text.contains(lines) && text.contains(delay));
        let text = text.replace(lines, "max_lines_per_subject = 1");
        let text = text.replace(delay, "max_delay = \"26280h\"\nsupport_window = \"26280h\"");
        fs::write(&config, text).expect("the configuration");
        run
    }

    /// The same stream from a folder of files, most of them compressed, into files that are rotated.
    fn in_many_files(hold: usize) -> Self {
        let run = Self::new(hold);
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
        let text = fs::read_to_string(at("only.toml")).expect("the configuration");
        let text = text.replace("/in.ndjson\"", "/in\"") + "[sink.rotate]\nsize = \"2KiB\"\n";
        fs::write(at("only.toml"), text).expect("the configuration");
        run
    }

    fn start(&self, crash: Option<&str>) -> Daemon {
        let lineage = self.dir.path().join("out.lineage");
        let lineage = lineage.to_string_lossy();
        Daemon::start(&self.dir.path().join("only.toml"), &["--lineage", &lineage], crash)
    }

    /// The bytes of everything that was written, by name. The input's own place is named in dead letters.
    fn finish(&self) -> BTreeMap<String, String> {
        self.finish_after(LINES)
    }

    fn finish_after(&self, lines: usize) -> BTreeMap<String, String> {
        let mut daemon = self.start(None);
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.said());
        assert_eq!(conserved(&self.dir.path().join("only")), lines as u64);
        let place = self.dir.path().to_string_lossy().into_owned();
        outputs(self.dir.path()).into_iter().map(|(name, text)| (name, text.replace(&place, ""))).collect()
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).expect("it is compressed");
    encoder.finish().expect("it is compressed")
}

/// The first lines of the stream.
fn input(lines: usize) -> Vec<u8> {
    let mut dice = Dice::new(5);
    let payloads = (0..).filter_map(|n| payload(n, &mut dice)).take(lines);
    payloads.flat_map(|line| [line, b"\n".to_vec()].concat()).collect()
}

fn outputs(dir: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(dir).expect("a directory").map(|e| e.expect("an entry"));
    let named = entries.map(|e| (e.file_name().to_string_lossy().into_owned(), e.path()));
    let written = named.filter(|(name, _)| name.starts_with("out."));
    written.map(|(name, path)| (name, fs::read_to_string(path).expect("text"))).collect()
}

fn same(found: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>, how: &str) {
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (name, text) in wanted {
        assert!(found[name] == *text, "{how}: {name} differs");
    }
}

fn killed_at_every_point(hold: usize) {
    let undisturbed = Run::new(hold).finish();
    let fragments: Vec<String> = undisturbed
        .iter()
        .filter(|(name, _)| name.ends_with(".ndjson"))
        .flat_map(|(_, text)| text.lines().map(str::to_owned))
        .collect();
    let lines = sound(fragments.iter());
    assert!(lines > LINES / 2, "{lines} fragments of {LINES} records say little");
    let run = Run::new(hold);
    let mut dice = Dice::new(hold as u64);
    for point in crash_points::all_of_files() {
        let crash = kill_at(point, &mut dice);
        run.start(Some(&crash)).crashes(&crash);
    }
    same(&run.finish(), &undisturbed, "killed at every point");
}

/// Wards that are shown by age; those beside `*` are not.
fn shown(outputs: &BTreeMap<String, String>) -> usize {
    let lines = outputs["out.visit.ndjson"].lines();
    lines.filter(|line| line.contains("\"ward\":") && !line.contains("\"ward\":\"*\"")).count()
}

#[test]
fn a_kill_at_any_point_changes_no_byte_under_models() {
    for hold in [0, 2] {
        let undisturbed = Run::with_models(hold).finish();
        let shown = shown(&undisturbed);
        assert!(shown > LINES / 10 && shown < LINES, "{shown} wards of {LINES} records");
        let run = Run::with_models(hold);
        let mut dice = Dice::new(17 + hold as u64);
        for point in crash_points::FILE.into_iter().chain([crash_points::SETTLED]) {
            let crash = kill_at(point, &mut dice);
            run.start(Some(&crash)).crashes(&crash);
        }
        same(&run.finish(), &undisturbed, "killed at every point, under models");
    }
}

/// Everybody comes in most batches, and counts for others from the third one on: how long somebody has been here is counted
/// batch by batch, and a start must count it as the batches came. Together with what else is remembered of people.
#[test]
fn a_restart_after_every_batch_changes_no_byte_of_who_has_been_here_for_long() {
    const BATCHES: usize = 9;
    let run = || {
        let run = Run::with_models(0);
        let config = run.dir.path().join("only.toml");
        let text = fs::read_to_string(&config).expect("the configuration");
        let (lines, delay) = ("max_lines_per_subject = 0", "max_delay = \"0s\"");
        assert!(text.contains(lines) && text.contains(delay));
        let text = text.replace(lines, "max_lines_per_subject = 1\nmin_tenure = 3\nmax_classes_per_subject = 6");
        let text = text.replace(delay, "max_delay = \"26280h\"\nsupport_window = \"26280h\"");
        fs::write(&config, text).expect("the configuration");
        let mut dice = Dice::new(31);
        let line = |n: usize, age: u64, ward: u64| {
            let ward = ["north", "south", "east"][ward as usize];
            format!("{{\"person\":\"p{n}\",\"lot\":\"L{}\",\"age\":{age},\"ward\":\"{ward}\"}}\n", n % 4)
        };
        let lines = (0..BATCHES * BATCH).map(|n| line(n % 45, 30 + dice.roll(4), dice.roll(3)));
        fs::write(run.dir.path().join("in.ndjson"), lines.collect::<String>()).expect("the input");
        run
    };
    let undisturbed = run().finish_after(BATCHES * BATCH);
    let lines = undisturbed["out.visit.ndjson"].lines().count();
    assert!(lines > BATCHES * BATCH / 3, "{lines} lines leave once people have been here for long");
    let killed = run();
    for _ in 1..BATCHES {
        // Each start repeats the batch before, and dies behind the next one.
        killed.start(Some("applied=1*off->return")).crashes("applied");
    }
    same(&killed.finish_after(BATCHES * BATCH), &undisturbed, "a restart after every batch");
}

/// Lots never change within a person, so they wait. A delay or a window may end while the test runs, a minute of three
/// years for each of 600 lines: once in two thousand runs of the test.
#[test]
fn a_kill_at_any_point_changes_no_byte_while_lines_wait() {
    let undisturbed = Run::waiting(0).finish();
    let traces = undisturbed["out.trace.ndjson"].lines().count();
    assert!(traces > LINES / 4, "{traces} lines have waited for the end");
    let run = Run::waiting(0);
    let mut dice = Dice::new(24);
    for point in crash_points::all_of_files() {
        let crash = kill_at(point, &mut dice);
        run.start(Some(&crash)).crashes(&crash);
    }
    same(&run.finish(), &undisturbed, "killed at every point while lines wait");
}

/// Killed at any point, compressed files are resumed within, and rotated ones cut back and continued: the bytes are those of a run
/// from one plain file into one.
#[test]
fn a_kill_at_any_point_changes_no_byte_of_many_files() {
    for hold in [0, 2] {
        let one = Run::new(hold).finish();
        let undisturbed = Run::in_many_files(hold).finish();
        let together = |group: &str| -> (usize, String) {
            let of = |name: &str| name.starts_with(&format!("out.{group}.0")) && name.ends_with(".ndjson");
            let files: Vec<&str> =
                undisturbed.iter().filter(|(name, _)| of(name)).map(|(_, text)| text.as_str()).collect();
            assert!(files[..files.len() - 1].iter().all(|text| text.len() >= 2048), "each but the last is full");
            (files.len(), files.concat())
        };
        for group in ["visit", "trace"] {
            let (files, lines) = together(group);
            assert!(files > 3, "{files} files of {group}");
            assert!(lines == one[&format!("out.{group}.ndjson")], "{group}: many files hold what one holds");
        }
        assert_eq!(
            undisturbed["out.letters"].replace("/in\"", "/in.ndjson\""),
            one["out.letters"],
            "dead letters are numbered over all files"
        );
        let run = Run::in_many_files(hold);
        let mut dice = Dice::new(40 + hold as u64);
        for point in crash_points::all_of_files() {
            let crash = kill_at(point, &mut dice);
            run.start(Some(&crash)).crashes(&crash);
        }
        same(&run.finish(), &undisturbed, "killed at every point, in many files");
    }
}

#[test]
fn a_kill_at_any_point_changes_no_byte_of_joined_rows() {
    let undisturbed = Run::joined().finish();
    assert_eq!(undisturbed.keys().filter(|name| name.ends_with(".ndjson")).count(), 1);
    let lines = undisturbed["out.ndjson"].lines().count();
    assert!(lines > LINES, "{lines} rows of two groups");
    let run = Run::joined();
    let mut dice = Dice::new(41);
    for point in crash_points::all_of_files() {
        let crash = kill_at(point, &mut dice);
        run.start(Some(&crash)).crashes(&crash);
    }
    same(&run.finish(), &undisturbed, "killed at every point, joined");
}

#[test]
fn a_kill_at_any_point_changes_no_byte() {
    killed_at_every_point(0);
}

#[test]
fn a_kill_at_any_point_changes_no_byte_while_records_are_held() {
    killed_at_every_point(2);
}

/// The last batch settles what is held, and must do so again when it is repeated.
#[test]
fn a_kill_in_the_last_batch_changes_no_byte() {
    for hold in [0, 2] {
        let undisturbed = Run::new(hold).finish();
        for point in ["rows-laid", "intent-flushed", "file-marked", "file-appended", "file-synced", "applied"] {
            let run = Run::new(hold);
            let crash = format!("{point}=14*off->return");
            run.start(Some(&crash)).crashes(&crash);
            same(&run.finish(), &undisturbed, &crash);
        }
    }
}

/// The stream ends with a full batch, so that what is held is settled by itself. The file grows before the settling is repeated:
/// what somebody may have read comes again, and the new records come behind it.
#[test]
fn a_settling_is_repeated_before_what_has_come_since() {
    let full = 4 * BATCH;
    for point in ["intent-flushed", "file-synced", "applied"] {
        let undisturbed = Run::over(3, full).finish_after(full);
        let run = Run::over(3, full);
        let crash = format!("{point}=4*off->return");
        run.start(Some(&crash)).crashes(&crash);
        let place = run.dir.path().to_string_lossy().into_owned();
        let seen: BTreeMap<String, String> =
            outputs(run.dir.path()).into_iter().map(|(name, text)| (name, text.replace(&place, ""))).collect();
        if point != "intent-flushed" {
            same(&seen, &undisturbed, "the settling had left");
        }
        fs::write(run.dir.path().join("in.ndjson"), input(full + BATCH + 5)).expect("the input");
        let grown = run.finish_after(full + BATCH + 5);
        for (name, text) in &undisturbed {
            assert!(grown[name].starts_with(text.as_str()), "{crash}: {name} has changed");
        }
        assert!(grown["out.lineage"].len() > undisturbed["out.lineage"].len(), "the new records leave too");
    }
}

/// A batch that was begun is read again from the same files, or not at all: what it has shown cannot be taken back.
#[test]
fn a_batch_that_was_begun_is_repeated_from_the_files_that_it_was_read_from() {
    let lines = 10 * BATCH;
    let run = Run::over(0, lines);
    let at = |name: &str| run.dir.path().join(name);
    let text = fs::read_to_string(at("in.ndjson")).expect("the input");
    fs::remove_file(at("in.ndjson")).expect("the input");
    fs::create_dir(at("in")).expect("a folder");
    let files: Vec<String> =
        text.split_inclusive('\n').collect::<Vec<_>>().chunks(BATCH / 2).map(<[_]>::concat).collect();
    for (number, lines) in files.iter().enumerate() {
        fs::write(at(&format!("in/{number:02}.ndjson")), lines).expect("a file");
    }
    let config = fs::read_to_string(at("only.toml")).expect("the configuration");
    fs::write(at("only.toml"), config.replace("/in.ndjson\"", "/in\"")).expect("the configuration");
    // The second batch has been written, and its intent is all that the state knows of it.
    run.start(Some("file-synced=1*off->return")).crashes("file-synced");
    let refused = |says: &str| {
        let before = outputs(run.dir.path());
        let mut daemon = run.start(None);
        assert_eq!(daemon.wait().code(), Some(1), "{}", daemon.said());
        assert!(daemon.said().contains(says), "{says:?} in {}", daemon.said());
        assert_eq!(outputs(run.dir.path()), before, "nothing is cut");
    };
    for file in ["in/02.ndjson", "in/03.ndjson"] {
        let content = fs::read(at(file)).expect("a file");
        fs::remove_file(at(file)).expect("a file");
        refused("is gone, and the batch that was read there");
        fs::write(at(file), &content[..content.len() / 2]).expect("a file");
        refused("is another one than before, and the batch");
        fs::write(at(file), content).expect("a file");
    }
    fs::write(at("in/025.ndjson"), &files[0]).expect("a file");
    refused("is new, and stands before files of the last batch");
    fs::remove_file(at("in/025.ndjson")).expect("a file");
    // What comes behind it may come, and what was read before it may go.
    fs::remove_file(at("in/00.ndjson")).expect("a file");
    let mut daemon = run.start(None);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.said());
    assert_eq!(conserved(&at("only")), lines as u64);
}

/// An input that breaks behind batches that have left takes none of them back.
#[test]
fn a_broken_input_takes_no_batch_back() {
    let run = Run::over(0, 2 * BATCH);
    let at = |name: &str| run.dir.path().join(name);
    let text = fs::read(at("in.ndjson")).expect("the input");
    fs::remove_file(at("in.ndjson")).expect("the input");
    fs::create_dir(at("in")).expect("a folder");
    fs::write(at("in/0.ndjson"), &text).expect("a file");
    let packed = gzip(&text);
    fs::write(at("in/1.ndjson.gz"), &packed[..packed.len() - 20]).expect("a file");
    let config = fs::read_to_string(at("only.toml")).expect("the configuration");
    fs::write(at("only.toml"), config.replace("/in.ndjson\"", "/in\"")).expect("the configuration");
    let mut daemon = run.start(None);
    assert_eq!(daemon.wait().code(), Some(1), "{}", daemon.said());
    let committed = daemon.said().matches("batch committed").count();
    assert!(committed >= 2, "{}", daemon.said());
    let mut again = run.start(None);
    assert_eq!(again.wait().code(), Some(1), "{}", again.said());
    let said = again.said();
    let recovered = said.split("sequence=").nth(1).and_then(|rest| rest.split([' ', '\n']).next()).expect("a sequence");
    assert_eq!(recovered.trim_matches('"'), committed.to_string(), "{said}");
}
