//! The crash points that every batch passes, in their order (`docs/exactly-once.md`), and kills at them.

use super::daemon::Dice;

/// From topic to topic.
pub const TOPIC: [&str; 11] = [
    "rows-laid",
    "state-unwritten",
    "state-unflushed",
    "intent-flushed",
    "begun",
    "produced",
    "offsets-sent",
    "acknowledged",
    "committed",
    "delivered",
    "applied",
];

/// From file to file.
pub const FILE: [&str; 10] = [
    "rows-laid",
    "state-unwritten",
    "state-unflushed",
    "intent-flushed",
    "file-unmarked",
    "file-marked",
    "file-appended",
    "file-synced",
    "delivered",
    "applied",
];

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

/// All from file to file.
pub fn all_of_files() -> impl Iterator<Item = &'static str> {
    [UNMARKED].into_iter().chain(FILE).chain([SETTLED])
}

/// A kill at `point`, after some passages; at the first one where a process passes it once, if at all.
pub fn kill_at(point: &str, dice: &mut Dice) -> String {
    let of_a_batch = matches!(point, "state-unwritten" | "state-unflushed");
    let once = point == SETTLED || point.starts_with("state-") && !of_a_batch;
    let passages = if once { 0 } else { dice.roll(3) };
    format!("{point}={passages}*off->return")
}
