use super::*;

const STATE: &str = "0b0e7a52-5f0b-4a52-9d2c-6d3a6a3b1c11";
const OTHER: &str = "ffffffff-5f0b-4a52-9d2c-6d3a6a3b1c11";

fn mark(sequence: u64) -> Mark {
    Mark { sequence, attempt: u64::MAX - sequence }
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(".out.marker");
    (dir, path)
}

fn open(path: &Path, expected: &[Option<Mark>]) -> Result<FileMarker, SinkError> {
    FileMarker::open(path, STATE, expected, false)
}

#[test]
fn it_says_what_was_written_last() {
    let (_dir, path) = place();
    let mut marker = open(&path, &[None]).expect("a new one");
    assert_eq!(marker.found(), None);
    for sequence in 1..6 {
        marker.write(mark(sequence)).expect("written");
    }
    drop(marker);
    assert_eq!(std::fs::metadata(&path).expect("a file").len(), 2 * LINE as u64);
    assert_eq!(open(&path, &[Some(mark(4)), Some(mark(5))]).expect("known").found(), Some(mark(5)));
}

#[test]
fn an_older_state_and_a_missing_marker_are_refused_by_name_and_may_be_accepted() {
    let (_dir, path) = place();
    assert!(matches!(open(&path, &[Some(mark(1))]), Err(SinkError::NoMarker { .. })));
    assert!(!path.exists(), "a refusal makes no file");
    let mut marker = open(&path, &[None]).expect("a new one");
    marker.write(mark(7)).expect("written");
    assert!(matches!(open(&path, &[None]), Err(SinkError::Locked { .. })));
    drop(marker);
    assert!(matches!(open(&path, &[Some(mark(3)), None]), Err(SinkError::OlderState { found: 7, known: 3, .. })));
    // Another attempt at the same batch.
    assert!(open(&path, &[Some(Mark { sequence: 7, attempt: 1 })]).is_err());
    let mut marker = FileMarker::open(&path, STATE, &[Some(mark(3))], true).expect("accepted");
    marker.write(mark(4)).expect("written");
    drop(marker);
    assert_eq!(open(&path, &[Some(mark(4))]).expect("known").found(), Some(mark(4)));
}

#[test]
fn another_states_marker_says_nothing_of_this_one() {
    let (_dir, path) = place();
    let mut marker = FileMarker::open(&path, OTHER, &[None], false).expect("a new one");
    marker.write(mark(9)).expect("written");
    drop(marker);
    assert!(matches!(open(&path, &[Some(mark(9))]), Err(SinkError::NoMarker { .. })));
    let mut marker = open(&path, &[None]).expect("this state has written nothing yet");
    marker.write(mark(1)).expect("written");
    drop(marker);
    assert_eq!(open(&path, &[Some(mark(1))]).expect("known").found(), Some(mark(1)));
    assert!(FileMarker::open(&path, OTHER, &[Some(mark(8))], false).is_err());
}

/// A power cut tears the line that is being written: the one before it still stands, whatever is left of the torn one.
#[test]
fn a_torn_line_leaves_what_was_said_before() {
    for written in 1..4u64 {
        for torn in 0..LINE {
            let (_dir, path) = place();
            let mut marker = open(&path, &[None]).expect("a new one");
            (1..=written).for_each(|sequence| marker.write(mark(sequence)).expect("written"));
            let next = Said { state: STATE.to_owned(), mark: mark(written + 1), round: written + 1 };
            let at = (next.round % 2) * LINE as u64;
            marker.file.write_all_at(&line_of(&next)[..torn], at).expect("written");
            drop(marker);
            let found = open(&path, &[Some(mark(written)), Some(mark(written + 1))]).expect("known").found();
            // The last bytes of a line are padding.
            assert!(found == Some(mark(written)) || torn > 80 && found == Some(mark(written + 1)), "{torn}: {found:?}");
        }
    }
}
