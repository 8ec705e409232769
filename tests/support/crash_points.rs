//! Lists the crash points of every batch, in order (`docs/internals/exactly-once.md`), and creates kills at them.

use super::daemon::Dice;

/// Points from topic to topic.
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

/// Points of a job over files, with a state or without.
pub const FILE: [&str; 5] = ["file-appended", "delivered", "applied", "file-synced", "file-renamed"];

/// Further points of a job with a state.
const OF_ITS_STATE: [&str; 5] = ["rows-laid", "state-unwritten", "state-unflushed", "intent-flushed", "job-unkept"];

/// Point at the first start.
const UNMARKED: &str = "state-unmarked";
/// Passed early only if the previous crash left an unwritten effect, as "applied" does.
pub const SETTLED: &str = "settled";
/// On a separate thread: its position in the next batch varies.
pub const EPOCH_TAKEN: &str = "epoch-taken";

/// Returns all points from topic to topic.
pub fn all_of_topics() -> impl Iterator<Item = &'static str> {
    [UNMARKED].into_iter().chain(TOPIC).chain([SETTLED, EPOCH_TAKEN])
}

/// Returns all points of a job with a state, except the one after its completion.
pub fn all_of_files() -> impl Iterator<Item = &'static str> {
    [UNMARKED].into_iter().chain(FILE).chain(OF_ITS_STATE).chain([SETTLED])
}

/// Returns a kill at `point` after a random number of passages, or at the first passage if a process has at most one.
pub fn kill_at(point: &str, dice: &mut Dice) -> String {
    let of_a_batch = matches!(point, "state-unwritten" | "state-unflushed");
    let at_the_end = point.starts_with("job-") || point == "file-synced";
    let once = at_the_end || point == SETTLED || point.starts_with("state-") && !of_a_batch;
    let passages = if once { 0 } else { dice.roll(3) };
    format!("{point}={passages}*off->return")
}
