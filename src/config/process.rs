//! `[process]`: what the daemon may take of its machine.

use super::quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the daemon may take of its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Process {
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
