//! Timestamp of a batch, and the age of the state, by which support expires.
//!
//! Ages follow `CLOCK_BOOTTIME`, which never goes back. Unknown time is overestimated, so that tenure and budgets end
//! early. One step is at most a release window.
//!
//! | event | counted time |
//! |---|---|
//! | wall clock set back | running time |
//! | wall clock set ahead, or virtual machine paused | wall time, at most one release window |
//! | new process, same boot | as above |
//! | reboot or other machine | wall time, at most one release window |
//! | reboot, wall clock before the last batch | one release window |

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use throng_core::faults;

const SLACK_MS: i64 = 100;

/// Clock values at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Milliseconds since 1970; can be set by the operator.
    pub wall_ms: i64,
    /// Milliseconds since boot, including sleep.
    pub running_ms: i64,
    /// Identifies the boot; 0 if unknown.
    pub boot: u128,
}

/// Wall clock and running clock.
pub trait ClockSource: Send + Sync {
    /// Reads both clocks.
    fn read(&self) -> ClockReading;
}

/// Reference point for later ages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAnchor {
    /// State age at `reading`, in milliseconds.
    pub age_ms: i64,
    /// Clock values; 0 if set explicitly.
    pub reading: ClockReading,
}

/// Timestamp and state age of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchTime {
    /// Timestamp of released lines: milliseconds since 1970.
    pub clock_ms: i64,
    /// State age in milliseconds.
    pub age_ms: i64,
    /// Reference point for the next process.
    pub anchor: ClockAnchor,
}

/// Same value for both clocks.
impl From<i64> for BatchTime {
    fn from(ms: i64) -> Self {
        Self { clock_ms: ms, age_ms: ms, anchor: ClockAnchor { age_ms: ms, reading: ClockReading::default() } }
    }
}

/// Clocks of this machine.
pub struct MachineClocks {
    boot: u128,
}

impl MachineClocks {
    /// Reads the boot identifier; without one, restarts use the wall clock.
    pub fn new() -> Self {
        // Linux only.
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

impl ClockSource for MachineClocks {
    fn read(&self) -> ClockReading {
        let running = rustix::time::clock_gettime(RUNNING);
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let wall = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        ClockReading {
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

/// Age counter of a state.
pub struct StateClock {
    clocks: Arc<dyn ClockSource>,
    /// Limit of one step: a release window plus one second.
    max_step_ms: i64,
    age_ms: i64,
    last: ClockReading,
    fixed_reading: Option<ClockReading>,
    /// Compared with other instances.
    is_shared: bool,
}

impl StateClock {
    /// Continues from the oldest anchor age.
    pub fn resume(clocks: Arc<dyn ClockSource>, anchors: &[ClockAnchor], window: std::time::Duration) -> Self {
        let most_ms = i64::try_from(window.as_millis()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4) + 1000;
        let now = clocks.read();
        match anchors.iter().max_by_key(|anchor| anchor.age_ms) {
            None => Self { clocks, max_step_ms: most_ms, age_ms: 0, last: now, fixed_reading: None, is_shared: false },
            Some(ClockAnchor { age_ms, reading }) if *reading == ClockReading::default() => {
                Self { clocks, max_step_ms: most_ms, age_ms: *age_ms, last: now, fixed_reading: None, is_shared: false }
            }
            Some(ClockAnchor { age_ms, reading }) => {
                let mut clock = Self {
                    clocks,
                    max_step_ms: most_ms,
                    age_ms: *age_ms,
                    last: *reading,
                    fixed_reading: None,
                    is_shared: false,
                };
                clock.advance_to(now);
                clock
            }
        }
    }

    /// Makes ages comparable between instances: half speed while ahead of the wall clock, double speed while behind.
    #[must_use]
    pub fn shared_by_group(self) -> Self {
        Self { age_ms: self.age_ms.max(self.last.wall_ms), is_shared: true, ..self }
    }

    /// Stops the clock, so that job output does not depend on speed.
    #[must_use]
    pub fn with_fixed_time(self) -> Self {
        Self { fixed_reading: Some(self.clocks.read()), ..self }
    }

    /// Returns the current moment.
    pub fn now(&mut self) -> BatchTime {
        let now = self.fixed_reading.unwrap_or_else(|| self.clocks.read());
        if self.fixed_reading.is_none() {
            self.advance_to(now);
        }
        // `last` keeps the clock difference; anchors need the actual values.
        BatchTime {
            clock_ms: now.wall_ms,
            age_ms: self.age_ms,
            anchor: ClockAnchor { age_ms: self.age_ms, reading: now },
        }
    }

    fn advance_to(&mut self, now: ClockReading) {
        let last = self.last;
        let wall = now.wall_ms.saturating_sub(last.wall_ms);
        let same = now.boot != 0 && now.boot == last.boot && now.running_ms >= last.running_ms;
        let (passed, shift) = if same {
            let ran = now.running_ms - last.running_ms;
            let ahead = wall.saturating_sub(ran);
            // Small differences add up until they count.
            let shift = if ahead.abs() > SLACK_MS { 0 } else { ahead };
            (ran.saturating_add(if ahead > SLACK_MS { ahead.min(self.max_step_ms) } else { 0 }), shift)
        } else if wall >= 0 {
            (wall.min(self.max_step_ms), 0)
        } else {
            (self.max_step_ms, 0)
        };
        let before = self.age_ms;
        self.age_ms = before.saturating_add(passed);
        if self.is_shared && before > now.wall_ms.saturating_add(SLACK_MS) {
            self.age_ms = before.saturating_add(passed / 2);
        } else if self.is_shared && self.age_ms < now.wall_ms {
            self.age_ms = self.age_ms.saturating_add(passed).min(now.wall_ms);
        }
        self.last = ClockReading { wall_ms: now.wall_ms.saturating_sub(shift), ..now };
    }
}

/// Returns wall-clock milliseconds since 1970; ages use [`StateClock`].
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
