//! A reader of standard output that goes away before all is said: `throng check | head`.

use crate::telemetry::says_nobody_reads;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::process::ExitCode;

/// Runs `command`, which ends quietly with code 1 where nobody reads what it prints. Temporary files go as at any other end.
pub fn heeding(command: impl FnOnce() -> ExitCode) -> ExitCode {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        if !says_nobody_reads(panic.payload()) {
            before(panic);
        }
    }));
    match catch_unwind(AssertUnwindSafe(command)) {
        Ok(code) => code,
        Err(payload) if says_nobody_reads(&*payload) => ExitCode::FAILURE,
        Err(payload) => resume_unwind(payload),
    }
}
