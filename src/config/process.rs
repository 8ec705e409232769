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
    /// Memory that the daemon may take, as a size; without it there is no limit but those of each part. It is divided among the parts
    /// that grow, and `throng check` prints how: limits that are numbers of entries are lowered to what fits (never raised), batches are
    /// closed earlier, the clients of the brokers fetch and queue less, and the window forgets its oldest records and the dictionaries
    /// their unused values once they outgrow their parts. At a limit less is counted and more is suppressed; nothing is released for want of
    /// memory. Profiles of joins are limited by their number alone. Keep it a fifth below what the system would kill the daemon for. Part
    /// of the policy digest where it is set.
    #[serde(with = "quantity::optional_size")]
    #[schemars(with = "Option<quantity::Size>", example = &"2GiB")]
    pub memory_limit: Option<u64>,
}

impl Default for Process {
    fn default() -> Self {
        Self { shutdown_time: Duration::from_secs(45), memory_limit: None }
    }
}
