//! What time it is for a batch: the stamp that leaves with it, and the age of the state by which support grows old.
//!
//! The wall clock may be set. Ages are therefore counted by the clock of the machine's run (`CLOCK_BOOTTIME`: it never goes
//! back, and goes on while the machine sleeps), from 0 when the state is made. Where that clock does not tell how much time
//! has passed, more is counted rather than less, so that tenure and budgets end early, but never more than one release window at
//! once: the windows of static groups are longer, and so end late rather than early.
//!
//! | what happens | what is counted |
//! |---|---|
//! | the wall clock is set back | the time that the machine ran |
//! | it is set ahead (or the machine stood still, as a virtual one may) | the time that it says, but one release window at most |
//! | a new process on the same start of the machine | as above: nothing is lost between two processes |
//! | the machine was started anew, or it is another one | the difference of the wall clocks, at most one release window |
//! | the same, and the wall clock lies before the last batch | one release window: all windows are over |
//!
//! Instances of one group compare ages, since windows move with partitions. Theirs begin at the wall clock, and run at half
//! speed while they are ahead of it, and at double speed while they are behind.

use crate::faults;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A shift between the two clocks that is not taken for a step of one of them.
const SLACK_MS: i64 = 100;

/// What the machine's clocks say at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Milliseconds since 1970; whoever runs the machine may set them.
    pub wall_ms: i64,
    /// Milliseconds that the machine has run, asleep or awake.
    pub running_ms: i64,
    /// Names the start of the machine that `running_ms` counts from; 0 where the system does not tell.
    pub boot: u128,
}

/// The clocks of a machine.
pub trait Clocks: Send + Sync {
    /// What both clocks say now.
    fn read(&self) -> Reading;
}

/// A moment by which the age of a state can be told later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Age of the state at `reading`, in milliseconds; 0 when the state is made.
    pub age_ms: i64,
    /// What the clocks said then; all 0 where the time was given by hand, as in tests.
    pub reading: Reading,
}

/// What time it is for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The stamp of what leaves: milliseconds since 1970.
    pub clock_ms: i64,
    /// Age of the state, by which support grows old.
    pub age_ms: i64,
    /// Kept in the state: the next process tells the age by it.
    pub anchor: Anchor,
}

/// A moment of which both clocks say the same.
impl From<i64> for Moment {
    fn from(ms: i64) -> Self {
        Self { clock_ms: ms, age_ms: ms, anchor: Anchor { age_ms: ms, reading: Reading::default() } }
    }
}

/// The clocks of this machine.
pub struct MachineClocks {
    boot: u128,
}

impl MachineClocks {
    /// Asks the system which start of the machine this is; where it does not tell, a restart goes by the wall clock.
    pub fn new() -> Self {
        // Not there but on Linux; a restart then goes by the wall clock.
        let named = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let boot = named.and_then(|name| uuid::Uuid::try_parse(name.trim()).ok()).map_or(0, |id| id.as_u128());
        Self { boot }
    }
}

impl Default for MachineClocks {
    fn default() -> Self {
        Self::new()
    }
}

impl Clocks for MachineClocks {
    fn read(&self) -> Reading {
        let running = rustix::time::clock_gettime(RUNNING);
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let wall = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Reading {
            wall_ms: wall.saturating_add(faults::number("wall-clock").unwrap_or(0)),
            running_ms: (running.tv_sec.saturating_mul(1000).saturating_add(running.tv_nsec / 1_000_000))
                .saturating_add(faults::number("running-clock").unwrap_or(0)),
            boot: self.boot ^ u128::from(faults::number("machine-started").unwrap_or(0).unsigned_abs()),
        }
    }
}

#[cfg(target_os = "linux")]
const RUNNING: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const RUNNING: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// Counts the age of a state.
pub struct StateClock {
    clocks: Arc<dyn Clocks>,
    /// More than this is never counted at once: nothing supports anything after it.
    most_ms: i64,
    age_ms: i64,
    last: Reading,
    /// The moment of a run for which no time passes.
    still: Option<Reading>,
    /// Ages are compared with those of other instances.
    is_shared: bool,
}

impl StateClock {
    /// Goes on where `anchors` end: with the oldest age that any of them tells.
    pub fn resume(clocks: Arc<dyn Clocks>, anchors: &[Anchor], window: std::time::Duration) -> Self {
        let most_ms = i64::try_from(window.as_millis()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4) + 1000;
        let now = clocks.read();
        match anchors.iter().max_by_key(|anchor| anchor.age_ms) {
            // A state without a batch, or one whose batches were given their time by hand.
            None => Self { clocks, most_ms, age_ms: 0, last: now, still: None, is_shared: false },
            Some(Anchor { age_ms, reading }) if *reading == Reading::default() => {
                Self { clocks, most_ms, age_ms: *age_ms, last: now, still: None, is_shared: false }
            }
            Some(Anchor { age_ms, reading }) => {
                let mut clock =
                    Self { clocks, most_ms, age_ms: *age_ms, last: *reading, still: None, is_shared: false };
                clock.pass(now);
                clock
            }
        }
    }

    /// The same for one of several instances, which compare ages: it begins at the wall clock or later, and is half as fast while it is
    /// ahead of it, twice as fast while it is behind, so that a clock that was wrong does not stay ahead.
    #[must_use]
    pub fn of_group(self) -> Self {
        Self { age_ms: self.age_ms.max(self.last.wall_ms), is_shared: true, ..self }
    }

    /// The same, standing still: what a job releases does not depend on how fast it is.
    #[must_use]
    pub fn at_rest(self) -> Self {
        Self { still: Some(self.clocks.read()), ..self }
    }

    /// The present moment.
    pub fn now(&mut self) -> Moment {
        let now = self.still.unwrap_or_else(|| self.clocks.read());
        if self.still.is_none() {
            self.pass(now);
        }
        // `last` keeps the shift between the clocks; an anchor is what they say.
        Moment { clock_ms: now.wall_ms, age_ms: self.age_ms, anchor: Anchor { age_ms: self.age_ms, reading: now } }
    }

    fn pass(&mut self, now: Reading) {
        let last = self.last;
        let wall = now.wall_ms.saturating_sub(last.wall_ms);
        let same = now.boot != 0 && now.boot == last.boot && now.running_ms >= last.running_ms;
        let (passed, shift) = if same {
            let ran = now.running_ms - last.running_ms;
            let ahead = wall.saturating_sub(ran);
            // Small shifts are not forgotten: they add up until they count.
            let shift = if ahead.abs() > SLACK_MS { 0 } else { ahead };
            (ran.saturating_add(if ahead > SLACK_MS { ahead.min(self.most_ms) } else { 0 }), shift)
        } else if wall >= 0 {
            (wall.min(self.most_ms), 0)
        } else {
            (self.most_ms, 0)
        };
        let before = self.age_ms;
        self.age_ms = before.saturating_add(passed);
        if self.is_shared && before > now.wall_ms.saturating_add(SLACK_MS) {
            self.age_ms = before.saturating_add(passed / 2);
        } else if self.is_shared && self.age_ms < now.wall_ms {
            self.age_ms = self.age_ms.saturating_add(passed).min(now.wall_ms);
        }
        self.last = Reading { wall_ms: now.wall_ms.saturating_sub(shift), ..now };
    }
}

/// Milliseconds since 1970 by the wall clock; 0 before. For lag and latency; ages go by [`StateClock`].
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
