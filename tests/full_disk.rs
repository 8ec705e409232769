//! Tests full, read-only and unresponsive disks: the next start continues without loss or duplicates.
#![cfg(feature = "failpoints")]

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use support::binary::{Place, Process};
use support::daemon::{Dice, TestDaemon, configure, conserved, payload, scratch};
use support::schemas::schema;
use support::small_disk::SmallDisk;

const LINES: usize = 6000;
const BATCH: usize = 200;

/// Longer than the wait after a disk error, and shorter than the wait for an unresponsive disk.
const SOON: Duration = Duration::from_secs(40);

struct Run {
    dir: tempfile::TempDir,
}

impl Run {
    /// `out` is the directory of outputs and dead letters.
    fn new(state: &str, out: &str) -> Self {
        let dir = scratch();
        let mut dice = Dice::new(5);
        let lines = (0..).filter_map(|n| payload(n, &mut dice)).take(LINES);
        let input: Vec<u8> = lines.flat_map(|line| [line, b"\n".to_vec()].concat()).collect();
        fs::write(dir.path().join("in.ndjson"), input).expect("the input");
        let place = dir.path().display();
        let ends = format!(
            "[source]\nkind = \"file\"\npath = \"{place}/in.ndjson\"\n[sink]\nkind = \"file\"\n\
             path = \"{place}/{out}out.ndjson\"\ndead_letter_path = \"{place}/{out}out.letters\"\n"
        );
        let file = configure(dir.path(), "only", &ends, 2, BATCH, "1h");
        let text = fs::read_to_string(&file).expect("the configuration");
        let own = format!("{place}/only\"");
        assert!(text.contains(&own));
        fs::write(&file, text.replace(&own, &format!("{place}/{state}\""))).expect("the configuration");
        Self { dir }
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn start(&self, faults: Option<&str>) -> TestDaemon {
        TestDaemon::start(&self.at("only.toml"), &[], faults)
    }

    fn fails(&self, faults: Option<&str>, words: &[&str]) {
        let begun = Instant::now();
        let mut daemon = self.start(faults);
        let code = daemon.wait().code();
        assert_eq!(code, Some(1), "{}", daemon.said());
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        let said = daemon.said();
        let error = said.lines().find(|line| line.starts_with("error: ")).expect("an error");
        for word in words {
            assert!(error.contains(word), "{word}: {error}");
        }
    }

    fn finish(&self, state: &str, out: &str) -> BTreeMap<String, String> {
        let mut daemon = self.start(None);
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.said());
        assert_eq!(conserved(&self.at(state)), LINES as u64);
        let place = self.dir.path().to_string_lossy().into_owned();
        let entries = fs::read_dir(self.at(out)).expect("a directory").map(|e| e.expect("an entry").path());
        let named = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
        let outputs = entries.filter(|path| named(path).starts_with("out."));
        outputs.map(|path| (named(&path), fs::read_to_string(path).expect("text").replace(&place, ""))).collect()
    }
}

fn undisturbed() -> BTreeMap<String, String> {
    Run::new("only", "").finish("only", "")
}

#[test]
fn full_state_disk_is_refused_at_startup() {
    let run = Run::new("small/state", "");
    let Some(disk) = SmallDisk::mount(&run.at("small"), "1m") else { return };
    run.fails(None, &["small/state", "its disk is full", "free disk space"]);
    assert!(!run.at("out.trace.ndjson").exists() || fs::read(run.at("out.trace.ndjson")).expect("a file").is_empty());
    disk.remount("size=64m");
    assert_eq!(run.finish("small/state", ""), undisturbed());
}

#[test]
fn filling_state_disk_stops_the_run_without_loss() {
    let run = Run::new("small/state", "");
    let Some(_disk) = SmallDisk::mount(&run.at("small"), "64m") else { return };
    let mut daemon = run.start(Some("applied=4*off->return"));
    daemon.crashes("applied");
    // Space for a start and little more.
    let leave = throng::daemon::state::disk::required_bytes(64 << 10);
    let free = throng::daemon::state::disk::free_bytes(&run.at("small")).expect("a size");
    fs::write(run.at("small/ballast"), vec![0; usize::try_from(free - leave).expect("a small disk")]).expect("ballast");
    run.fails(None, &["small/state", "its disk is full", "free disk space"]);
    fs::remove_file(run.at("small/ballast")).expect("room");
    assert_eq!(run.finish("small/state", ""), undisturbed());
}

/// The database fails or hangs.
#[test]
fn completely_full_state_disk_stops_the_run_without_loss() {
    let run = Run::new("small/state", "");
    let Some(disk) = SmallDisk::mount(&run.at("small"), "24m") else { return };
    let mut daemon = run.start(Some("applied=4*off->return"));
    daemon.crashes("applied");
    // The file leaves less space than a segment of the database.
    let free = throng::daemon::state::disk::free_bytes(&run.at("small")).expect("a size");
    fs::write(run.at("small/ballast"), vec![0; usize::try_from(free).expect("a small disk") - (900 << 10)])
        .expect("ballast");
    run.fails(None, &["small/state", "its disk is full"]);
    run.fails(Some("state-without-reserve=return"), &["small/state", "No space left on device"]);
    run.fails(Some("state-without-reserve=return"), &["small/state", "No space left on device"]);
    fs::remove_file(run.at("small/ballast")).expect("room");
    disk.remount("size=64m");
    assert_eq!(run.finish("small/state", ""), undisturbed());
}

#[test]
fn read_only_state_disk_stops_the_run_without_loss() {
    let run = Run::new("small/state", "");
    let Some(disk) = SmallDisk::mount(&run.at("small"), "64m") else { return };
    let mut daemon = run.start(Some("applied=4*off->return"));
    daemon.crashes("applied");
    disk.remount("ro");
    run.fails(None, &["small/state", "Read-only file system"]);
    disk.remount("rw");
    assert_eq!(run.finish("small/state", ""), undisturbed());
}

#[test]
fn full_output_disk_stops_the_run_without_loss() {
    let run = Run::new("only", "small/");
    let Some(disk) = SmallDisk::mount(&run.at("small"), "128k") else { return };
    run.fails(None, &["small/out.", "No space left on device"]);
    disk.remount("size=64m");
    assert_eq!(run.finish("only", "small"), undisturbed());
}

const SCHEMA: &str = schema!("visits"; person, text "city");

fn visits(lines: usize) -> String {
    (0..lines).map(|n| format!("{{\"person\":\"p{n}\",\"city\":\"c{}\"}}\n", n % 5)).collect()
}

/// `patience` is the timeout of a write in seconds.
fn hanging(tuning: Option<&str>, patience: u64) -> (Place, Process) {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", visits(50 * 40));
    if let Some(tuning) = tuning {
        place.write("throng.tuning", tuning);
    }
    let mut command = place.command(&[], &[]);
    command.env("FAILPOINTS", format!("state-hangs=40*off->return;state-patience=return({patience})"));
    let process = Process::spawn(command, place.port);
    (place, process)
}

fn answers(process: &Process, page: &str, wanted: u16) {
    let deadline = Instant::now() + SOON;
    loop {
        let found = process.get(page).map(|(status, _)| status);
        if found == Some(wanted) {
            return;
        }
        assert!(Instant::now() < deadline, "{page} answers {found:?}, not {wanted}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn hanging_state_disk_makes_the_daemon_unready() {
    let (_place, mut process) = hanging(None, 60);
    answers(&process, "/readyz", 200);
    answers(&process, "/readyz", 503);
    let (_, reasons) = process.get("/readyz").expect("a page");
    assert!(reasons.contains("the disk of the state directory does not answer"), "{reasons}");
    answers(&process, "/healthz", 200);
    process.terminate();
    assert!(process.ends_within(SOON), "a signal ends it");
    let outcome = process.wait().expect(1);
    assert!(outcome.stderr.contains("its disk has not answered for"), "{}", outcome.stderr);
}

#[test]
fn shutdown_with_a_hanging_disk_is_bounded_without_loss() {
    let (place, mut process) = hanging(Some("shutdown_time = \"1s\""), 60);
    answers(&process, "/readyz", 200);
    answers(&process, "/readyz", 503);
    process.terminate();
    assert!(process.ends_within(SOON), "it ends");
    let outcome = process.wait().expect(1);
    assert!(outcome.stderr.contains("longer than 1s"), "{}", outcome.stderr);
    let account = place.run(&[]).expect(0).account();
    assert_eq!(account.consumed, 50 * 40);
    assert_eq!(place.lines("out.ndjson").len() as u64, account.released);
    let undisturbed = Place::new(SCHEMA, "");
    undisturbed.write("in.ndjson", visits(50 * 40));
    undisturbed.write("secret", place.read("secret"));
    undisturbed.run(&[]).expect(0);
    assert_eq!(place.read("out.ndjson"), undisturbed.read("out.ndjson"));
}

#[test]
fn hanging_state_disk_ends_the_run_after_a_timeout() {
    let (place, mut process) = hanging(None, 8);
    assert!(process.ends_within(Duration::from_secs(120)), "it gives up");
    let outcome = process.wait().expect(1);
    assert!(outcome.stderr.contains("its disk has not answered for"), "{}", outcome.stderr);
    let account = place.run(&[]).expect(0).account();
    assert_eq!(account.consumed, 50 * 40, "nothing is lost");
}

#[test]
fn anonymize_on_a_full_disk_keeps_existing_files() {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", visits(20_000));
    let Some(disk) = SmallDisk::mount(&place.path("small"), "64k") else { return };
    place.write("small/out.csv", "what was there before\n");
    let run = |output: &str, report: &str| {
        let mut command = crate::support::binary::throng();
        command.args(["anonymize", "in.ndjson", "-c", "throng.toml", "-o", output, "--report", report]);
        place.surround(&mut command, &[]);
        command.env_remove("THRONG__SINK__DEAD_LETTER_PATH");
        command.output().expect("it starts")
    };
    let failed = run("small/out.csv", "report.json");
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(said.contains("small/out.csv") && said.contains("No space left on device"), "{said}");
    assert!(!said.contains("continues"), "it does not: {said}");
    assert_eq!(place.lines("small/out.csv"), ["what was there before"]);
    let left: Vec<_> = fs::read_dir(place.path("small")).expect("a directory").collect();
    assert_eq!(left.len(), 1, "nothing half-written is left: {left:?}");
    disk.remount("size=8m");
    let done = run("small/out.csv", "report.json");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(place.lines("small/out.csv").len(), 20_001);
}
