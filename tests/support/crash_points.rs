//! The crash points that every batch passes, in their order (`docs/internals/exactly-once.md`), and kills at them.

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

/// Of a job over files, with a state or without.
pub const FILE: [&str; 5] = ["file-appended", "delivered", "applied", "file-synced", "file-renamed"];

/// Of a job with a state: these too.
const OF_ITS_STATE: [&str; 5] = ["rows-laid", "state-unwritten", "state-unflushed", "intent-flushed", "job-unkept"];

/// At a first start.
const UNMARKED: &str = "state-unmarked";
/// Passed at once only where the crash before has left an effect to write, as "applied" does.
pub const SETTLED: &str = "settled";
/// On a thread of its own: where it falls in the next batch is not known.
pub const EPOCH_TAKEN: &str = "epoch-taken";

/// All from topic to topic.
pub fn all_of_topics() -> impl Iterator<Item = &'static str> {
    [UNMARKED].into_iter().chain(TOPIC).chain([SETTLED, EPOCH_TAKEN])
}

/// All of a job with a state, but the one at which everything is done.
pub fn all_of_files() -> impl Iterator<Item = &'static str> {
    [UNMARKED].into_iter().chain(FILE).chain(OF_ITS_STATE).chain([SETTLED])
}

/// A kill at `point`, after some passages; at the first one where a process passes it once, if at all.
pub fn kill_at(point: &str, dice: &mut Dice) -> String {
    let of_a_batch = matches!(point, "state-unwritten" | "state-unflushed");
    let at_the_end = point.starts_with("job-") || point == "file-synced";
    let once = at_the_end || point == SETTLED || point.starts_with("state-") && !of_a_batch;
    let passages = if once { 0 } else { dice.roll(3) };
    format!("{point}={passages}*off->return")
}
