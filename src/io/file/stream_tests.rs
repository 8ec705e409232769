use std::fs;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use super::plain_length;
use crate::io::file::separator_of;

/// Who only looks at a pipe does not open it: that would wait for a writer, and break the pipe of one that is there.
#[test]
fn a_pipe_is_not_opened_to_look_at_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (said, heard) = mpsc::channel();
    let asked = path.clone();
    std::thread::spawn(move || said.send((plain_length(&asked), separator_of(&asked).unwrap())));
    assert_eq!(heard.recv_timeout(Duration::from_secs(20)), Ok((None, b',')), "nobody has opened the other end");
    fs::write(directory.path().join("text"), "a;b\n").unwrap();
    assert_eq!(plain_length(&directory.path().join("text")), Some(4));
    fs::write(directory.path().join("gz"), b"\x1f\x8b\x08\0").unwrap();
    assert_eq!(plain_length(&directory.path().join("gz")), None);
    assert_eq!(plain_length(&directory.path().join("none")), None);
}
