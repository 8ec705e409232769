use std::process::Command;

use proptest::prelude::*;

use super::*;

#[test]
fn a_file_that_does_not_hold_what_was_committed_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let open = |durable| AppendFile::open(&path, Access::Shared, Vec::new(), durable);
    assert!(matches!(open(5), Err(SinkError::Missing { durable: 5, .. })));
    assert!(!path.exists(), "a refusal must not create the file");
    std::fs::write(&path, b"abc").unwrap();
    assert!(matches!(open(5), Err(SinkError::Shorter { length: 3, durable: 5, .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"abc");
    assert!(matches!(
        AppendFile::open(Path::new("/dev/null"), Access::Shared, Vec::new(), 0),
        Err(SinkError::NotRegular { .. } | SinkError::Open { .. })
    ));
    assert!(matches!(
        AppendFile::open(&directory.path().join("none/out"), Access::Shared, Vec::new(), 0),
        Err(SinkError::Open { .. })
    ));
}

#[test]
fn bytes_reach_the_file_before_memory_fills() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let mut file = AppendFile::open(&path, Access::Shared, Vec::new(), 0).unwrap();
    for _ in 0..20 {
        file.append(&vec![b'x'; 300_000]).unwrap();
        assert!(file.pending.len() < PENDING_BYTES);
    }
    assert_eq!(file.sync().unwrap(), 6_000_000);
}

/// Set in the process that runs with a limit on the size of files, which fails as a full disk does.
const LIMITED: &str = "THRONG_TEST_LIMITED_FILES";

#[test]
fn a_full_disk_is_an_error_and_costs_nothing_committed() {
    let executable = std::env::current_exe().unwrap();
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" --exact \"$1\" --include-ignored";
    let name = "io::file::append::tests::limited_process";
    let output = Command::new("sh").args(["-c", script]).arg(executable).arg(name).env(LIMITED, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "runs inside a_full_disk_is_an_error_and_costs_nothing_committed"]
fn limited_process() {
    if std::env::var_os(LIMITED).is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let mut file = AppendFile::open(&path, Access::Shared, Vec::new(), 0).unwrap();
    file.append(b"committed\n").unwrap();
    let durable = file.sync().unwrap();
    file.append(&vec![b'x'; 500_000]).unwrap();
    let error = file.sync().unwrap_err();
    assert!(matches!(error, SinkError::Write { byte: 10, .. }), "{error}");
    assert!(matches!(file.append(b"y"), Err(SinkError::Broken { .. })));
    assert!(matches!(file.sync(), Err(SinkError::Broken { .. })));
    file.truncate_to(durable).unwrap();
    file.append(b"after\n").unwrap();
    file.sync().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"committed\nafter\n");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Batches, each committed, undone in place or lost in a crash and done again: the bytes are an undisturbed run's.
    #[test]
    fn truncate_and_continue_equals_undisturbed(
        batches in prop::collection::vec(("[a-z\n]{0,40}", 0..4_u8), 0..12),
        preamble in "[a-z]{0,5}",
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let open = |durable| AppendFile::open(&path, Access::Shared, preamble.clone().into_bytes(), durable).unwrap();
        let mut file = open(0);
        let mut durable = 0;
        let mut expected = preamble.clone().into_bytes();
        for (text, fate) in &batches {
            match fate {
                0 => {}
                1 => {
                    file.append(text.as_bytes()).unwrap();
                    file.truncate_to(durable).unwrap();
                }
                2 => {
                    file.append(text.as_bytes()).unwrap();
                    file.sync().unwrap();
                    drop(file);
                    file = open(durable);
                }
                _ => {
                    file.append(text.as_bytes()).unwrap();
                    file.sync().unwrap();
                    file.truncate_to(durable).unwrap();
                }
            }
            file.append(text.as_bytes()).unwrap();
            durable = file.sync().unwrap();
            expected.extend_from_slice(text.as_bytes());
            prop_assert_eq!(durable, expected.len() as u64);
        }
        file.sync().unwrap();
        prop_assert_eq!(std::fs::read(&path).unwrap(), expected);
    }
}
