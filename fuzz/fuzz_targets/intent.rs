//! Reads the intent of a batch. It is unchanged after writing and reading.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng::daemon::state::records::BatchIntent;
use throng_fuzz::survives;

fuzz_target!(|data: &[u8]| {
    survives::<BatchIntent>(data);
});
