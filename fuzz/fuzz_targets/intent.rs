//! The intent of a batch, as the state holds it under its seal. What is read is written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng::daemon::state::records::Intent;
use throng_fuzz::survives;

fuzz_target!(|data: &[u8]| {
    survives::<Intent>(data);
});
