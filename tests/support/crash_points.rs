//! Lists the crash points of every batch, in order (`docs/internals/exactly-once.md`).

use super::daemon::Dice;

/// From topic to topic.
pub const TOPIC: [&str; 11] = [
    "rows-laid",
    "state-unwritten",
    "state-unflushed",
    "intent-flushed",
    "begun",
    "produced",
    "acknowledged",
    "offsets-sent",
    "committed",
    "delivered",
    "applied",
];

/// Of a job over files.
pub const FILE: [&str; 5] = ["file-appended", "delivered", "applied", "file-synced", "file-renamed"];

const OF_ITS_STATE: [&str; 5] = ["rows-laid", "state-unwritten", "state-unflushed", "intent-flushed", "job-unkept"];

const UNMARKED: &str = "state-unmarked";
/// Passed early only if the previous crash left an unwritten effect.
pub const SETTLED: &str = "settled";
/// On a separate thread: its position in the next batch varies.
pub const EPOCH_TAKEN: &str = "epoch-taken";

pub fn all_of_topics() -> impl Iterator<Item = &'static str> {
    [UNMARKED].into_iter().chain(TOPIC).chain([SETTLED, EPOCH_TAKEN])
}

/// Except the one after its completion.
pub fn all_of_files() -> impl Iterator<Item = &'static str> {
    [UNMARKED].into_iter().chain(FILE).chain(OF_ITS_STATE).chain([SETTLED])
}

/// Kills after a random number of passages, or at the first if a process has at most one.
pub fn kill_at(point: &str, dice: &mut Dice) -> String {
    let of_a_batch = matches!(point, "state-unwritten" | "state-unflushed");
    let at_the_end = point.starts_with("job-") || point == "file-synced";
    let once = at_the_end || point == SETTLED || point.starts_with("state-") && !of_a_batch;
    let passages = if once { 0 } else { dice.roll(3) };
    format!("{point}={passages}*off->return")
}
