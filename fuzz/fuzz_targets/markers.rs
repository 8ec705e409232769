//! Marker of a batch in the changelog topic: a marker that can be read is written back unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_kafka::marker::BatchMarker;

fuzz_target!(|data: &[u8]| {
    if let Ok(marker) = serde_json::from_slice::<BatchMarker>(data) {
        assert_eq!(serde_json::from_str::<BatchMarker>(&marker.body()).expect("what was written"), marker);
    }
});
