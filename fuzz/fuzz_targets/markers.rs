//! The marker of a batch in the topic of commits: what is read as one is written as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng::io::kafka::marker::Marker;

fuzz_target!(|data: &[u8]| {
    if let Ok(marker) = serde_json::from_slice::<Marker>(data) {
        assert_eq!(serde_json::from_str::<Marker>(&marker.body()).expect("what was written"), marker);
    }
});
