//! Tests the erasure of subjects from a state (docs/operation.md, threats 32, 33 and 37).
#![cfg(feature = "failpoints")]

mod at_rest;
mod kills;
mod moved;
mod named;
mod opened;
mod pages;
mod running;
mod topics;
mod whole;

use crate::support::binary::{Outcome, Place, Process};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

pub const TOKEN: &str = "a-token-of-the-tests-and-of-nobody-else";

pub fn forget(place: &Place, overrides: &[(&str, &str)], arguments: &[&str], input: &str) -> Outcome {
    let mut command = crate::support::binary::throng();
    command.args(["forget", "-c", "throng.toml"]).args(arguments);
    place.surround(&mut command, overrides);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // The program may close its input without reading it.
    let (Ok(()) | Err(_)) = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let out = child.wait_with_output().expect("it ends");
    Outcome { code: out.status.code(), stdout: out.stdout, stderr: String::from_utf8_lossy(&out.stderr).into_owned() }
}

#[track_caller]
pub fn receipt(outcome: &Outcome) -> serde_json::Value {
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    serde_json::from_slice(&outcome.stdout).expect("a receipt")
}

pub fn with_token(place: &Place) {
    place.write("token", TOKEN);
    std::fs::set_permissions(place.path("token"), std::fs::Permissions::from_mode(0o600)).expect("a file of ours");
}

pub fn start(place: &Place, overrides: &[(&str, &str)], faults: Option<&str>) -> Process {
    let mut command = place.command(overrides, &[]);
    command.env_remove("FAILPOINTS");
    if let Some(faults) = faults {
        command.env("FAILPOINTS", faults);
    }
    let mut process = Process::spawn(command, place.port);
    process.token = overrides.iter().any(|(key, _)| *key == "TELEMETRY__TOKEN_FILE").then(|| TOKEN.to_owned());
    process
}
