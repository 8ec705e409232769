use super::super::case::Case;
use super::super::error::BenchError;
use super::super::run::measure;
use super::super::stand::{BenchQuestion, Measured};
use crate::counting::Device;
use crate::counting::cuda::emulator::Emulator;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Some cases on the emulated device, with a peer.
fn measured(cases: &[Case], peer: &str) -> Result<Vec<Measured>, BenchError> {
    let device: Arc<dyn Device> = Emulator::start(256 << 20, 3);
    let question = BenchQuestion {
        cases: cases.to_vec(),
        rows: 300,
        scale: 0.000_3,
        threads: vec![1],
        budget: Duration::from_secs(20),
        seed: 5,
        peer: Some(peer.to_owned()),
    };
    measure(&device, &question, &|_| {})
}

/// A peer of shell commands; its folder is their `$1`.
fn script(folder: &Path, answers: &str) -> String {
    let path = folder.join("peer");
    let text = format!("#!/bin/sh\n[ \"$1\" = --ready ] && exit 0\n{answers}\n");
    std::fs::write(&path, text).expect("a script");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("may run");
    path.to_string_lossy().into_owned()
}

/// `THRONG_PYTHON` names an interpreter that has NumPy; `./dev gpu check-peer` provides one.
#[test]
fn the_peer_gives_the_same_numbers_with_numpy() {
    let named = std::env::var("THRONG_PYTHON").ok();
    let python = named.clone().unwrap_or_else(|| "python3".to_owned());
    let there = Command::new(&python).args(["-c", "import numpy"]).output().is_ok_and(|output| output.status.success());
    if !there {
        assert!(named.is_none(), "{python} has no NumPy");
        eprintln!("skipped: python3 has no NumPy; `./dev gpu check-peer` fetches it and runs this test");
        return;
    }
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/gpu/peer.py");
    // Other arrays than NumPy's, where their library is there.
    let arrays = std::env::var("THRONG_PEER_ARRAYS").unwrap_or_else(|_| "numpy".to_owned());
    let cases = [Case::Counting, Case::FindQid12, Case::Adjacency, Case::Recheck];
    let measured = measured(&cases, &format!("{python} {program} --arrays {arrays} --device cpu --rounds 2"));
    let measured = measured.expect("the peer answers");
    let told: Vec<&Measured> = measured.iter().filter(|work| work.peer.is_some()).collect();
    // Eight ways of counting, four times pairs, three searches, one batch.
    assert_eq!(told.len(), 8 + 4 + 3 + 1);
    for work in told {
        let peer = work.peer.as_ref().expect("filtered");
        assert_eq!((peer.agrees, &peer.failure, peer.rounds.len()), (Some(true), &None, 2), "{work:?}");
        assert!(peer.seconds.is_some_and(|s| s > 0.0) && peer.seconds <= peer.median_seconds, "{work:?}");
        assert!(peer.library.starts_with(&arrays) && peer.device == "cpu" && peer.form.is_some(), "{work:?}");
    }
    report_of(&python, &measured);
}

/// The report of `./dev gpu evidence` has a line for every work.
fn report_of(python: &str, measured: &[Measured]) {
    let folder = tempfile::tempdir().expect("a folder");
    let bench =
        serde_json::json!({ "device": "emulation", "threads": [1], "scale": 1, "seed": 5, "measured": measured });
    std::fs::write(folder.path().join("bench.json"), bench.to_string()).expect("written");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/gpu/report.py");
    let output = Command::new(python).arg(program).arg(folder.path()).output().expect("it runs");
    let report = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for work in measured {
        let lines = report.lines().filter(|line| line.starts_with(&format!("| {} |", work.work)));
        let expected = 1 + usize::from(work.peer.is_some());
        assert_eq!(lines.filter(|line| line.ends_with("| yes |")).count(), expected, "{}:\n{report}", work.work);
    }
    assert!(report.contains("The self-test broke off") && report.contains("It did not run."), "{report}");
}

#[test]
fn no_time_is_told_of_a_peer_that_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    // The first answer is a file of zeros; of the other works it says nothing.
    let lie = "head -c 80000 /dev/zero > \"$1/zeros\"\n\
               cat > \"$1/answers.json\" <<'END'\n\
               {\"library\": \"liar 1\", \"device\": \"none\", \"answers\": [\n\
               {\"work\": \"find-qid, 12 columns, k = 2\", \"form\": \"guess\", \"seconds\": [0.5, 0.1], \"file\": \"zeros\"},\n\
               {\"work\": \"find-qid, 12 columns, k = 5\", \"failure\": \"no room\"}]}\n\
               END";
    let measured = measured(&[Case::FindQid12], &script(folder.path(), lie)).expect("measured all the same");
    let of = |work: &str| measured.iter().find(|m| m.work == work).and_then(|m| m.peer.clone()).expect("asked");
    let wrong = of("find-qid, 12 columns, k = 2");
    assert_eq!((wrong.agrees, wrong.seconds, wrong.median_seconds), (Some(false), None, None));
    assert_eq!(
        (of("find-qid, 12 columns, k = 5").agrees, of("find-qid, 12 columns, k = 5").failure.as_deref()),
        (None, Some("no room"))
    );
    assert_eq!(of("find-qid, 12 columns, k = 20").failure.as_deref(), Some("it gave no answer"));
}

#[test]
fn what_was_measured_is_told_where_the_peer_breaks_off() {
    let folder = tempfile::tempdir().expect("a folder");
    let measured = measured(&[Case::FindQid12], &script(folder.path(), "exit 7")).expect("measured all the same");
    let failures: Vec<String> = measured.iter().filter_map(|m| m.peer.as_ref()?.failure.clone()).collect();
    assert_eq!(failures.len(), 3);
    assert!(failures.iter().all(|failure| failure.contains("exit status: 7")), "{failures:?}");
    assert!(measured.iter().all(|m| m.agrees == Some(true)));
}

#[test]
fn a_peer_that_is_not_there_is_named_before_anything_is_measured() {
    let missing = measured(&Case::ALL, "./no-such-peer --fast").expect_err("nothing was measured").to_string();
    assert!(missing.contains("`./no-such-peer --fast` cannot be started"), "{missing}");
    let folder = tempfile::tempdir().expect("a folder");
    let unable = script(folder.path(), "");
    std::fs::write(folder.path().join("peer"), "#!/bin/sh\nexit 3\n").expect("a script");
    let refused = measured(&Case::ALL, &unable).expect_err("nothing was measured").to_string();
    assert!(refused.contains("exit status: 3"), "{refused}");
    assert!(measured(&Case::ALL, "  ").expect_err("nothing was measured").to_string().contains("no command"));
}
