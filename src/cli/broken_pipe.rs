//! Closed standard output, as by `| head`.

use crate::telemetry::is_broken_pipe_panic;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::process::ExitCode;

/// Runs `command`; a broken pipe ends it quietly with exit code 1.
pub fn exit_quietly_on_broken_pipe(command: impl FnOnce() -> ExitCode) -> ExitCode {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        if !is_broken_pipe_panic(panic.payload()) {
            before(panic);
        }
    }));
    match catch_unwind(AssertUnwindSafe(command)) {
        Ok(code) => code,
        Err(payload) if is_broken_pipe_panic(&*payload) => ExitCode::FAILURE,
        Err(payload) => resume_unwind(payload),
    }
}
