//! `[process]`: what the daemon may take of its machine.

use std::time::Duration;

use super::quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the daemon may take of its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Process {
    /// How long SIGTERM or SIGINT may take at most. The batch in flight is committed or aborted, what is held is settled, and what has
    /// left is written down; where a broker or a disk does not let that come to its end in time, the process ends with exit code 1 as
    /// if it had been killed: the next start finds out whether the last batch left, and loses and doubles nothing. Above 0, and
    /// less than whoever stops the daemon waits before it kills it.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"45s")]
    pub shutdown_time: Duration,
}

impl Default for Process {
    fn default() -> Self {
        Self { shutdown_time: Duration::from_secs(45) }
    }
}
