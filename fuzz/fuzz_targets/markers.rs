//! The markers beside outputs: the file beside files, and the message in the topic of commits. Whatever a marker file
//! holds, the mark that is written next is the one that is found.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::LazyLock;
use throng::io::file::FileMarker;
use throng::io::kafka::marker::Marker;
use throng::release::sink::Mark;
use throng_fuzz::scratch;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| scratch("marker"));

fuzz_target!(|data: &[u8]| {
    if let Ok(marker) = serde_json::from_slice::<Marker>(data) {
        assert_eq!(serde_json::from_str::<Marker>(&marker.body()).expect("what was written"), marker);
    }
    std::fs::write(&*FILE, data).expect("a scratch file");
    let mut marker = FileMarker::open(&FILE, "state", &[], true).expect("accepted whatever it says");
    let mark = Mark { sequence: 7, attempt: 11 };
    marker.write(mark).expect("a scratch file");
    drop(marker);
    let marker = FileMarker::open(&FILE, "state", &[Some(mark)], false).expect("what was written last");
    assert_eq!(marker.found(), Some(mark));
});
