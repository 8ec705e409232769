//! Settings that no configuration has: fixed in a release; a test gives others.

use std::time::Duration;

use super::quantity;
use serde::Deserialize;

/// The variable with other values, as TOML. Read in test builds alone.
#[cfg(feature = "failpoints")]
const VARIABLE: &str = "THRONG_TUNING";

/// Fixed settings with their values in a release.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tuning {
    /// Jensen–Shannon divergence in bits of an attribute's values from those that the plan in force was made for at which a new
    /// plan is sought; 1: never.
    pub drift: f64,
    /// Batches from the one that asks for a plan to the one from which it is in force; 0: the release waits for the plan.
    pub handover_batches: u64,
    /// Longest search beside the release. A plan that is not there by then is given up.
    #[serde(with = "quantity::duration")]
    pub search_budget: Duration,
    /// Share of the window's records at which the distinct values of an attribute make it a standalone identifier, which is removed.
    pub identifier_cardinality: f64,
    /// Distinct values remembered at most, per attribute, where the window and what waits need no more; at the limit a new one is
    /// treated as not covered.
    pub max_dictionary_values: usize,
    /// Lines that wait for their delay at most (`privacy.max_delay`); at the limit a further one is thinned.
    pub max_waiting_lines: usize,
    /// Pairs of a subject and a group remembered at most that have been said inside their window; at the limit a further line
    /// is thinned. About 48 bytes each.
    pub max_said_lines: usize,
    /// Time from the first name in the topic of erasures to the erasure of all that are known by then.
    #[serde(with = "quantity::duration")]
    pub erasure_interval: Duration,
    /// Longest end after SIGTERM or SIGINT.
    #[serde(with = "quantity::duration")]
    pub shutdown_time: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            drift: 0.1,
            handover_batches: 4,
            search_budget: Duration::from_secs(10),
            identifier_cardinality: 0.8,
            max_dictionary_values: 1_000_000,
            max_waiting_lines: 500_000,
            max_said_lines: 2_000_000,
            erasure_interval: Duration::from_mins(5),
            shutdown_time: Duration::from_secs(45),
        }
    }
}

impl Tuning {
    /// The values of a release.
    #[cfg(not(feature = "failpoints"))]
    pub(super) fn of(_: &std::collections::BTreeMap<String, String>) -> Self {
        Self::default()
    }

    /// The values of a release, but for those that a test gives in the environment.
    ///
    /// # Panics
    /// When these are no such values.
    #[cfg(feature = "failpoints")]
    pub(super) fn of(env: &std::collections::BTreeMap<String, String>) -> Self {
        env.get(VARIABLE).map_or_else(Self::default, |text| toml::from_str(text).expect("values of settings"))
    }
}
