//! Settings that only test builds can override.

use std::time::Duration;

use super::quantity;
use serde::Deserialize;

/// Variable with overrides as TOML.
#[cfg(feature = "failpoints")]
const TUNING_VARIABLE: &str = "THRONG_TUNING";

/// Fixed settings with their values in a release.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FixedSettings {
    /// Jensen–Shannon divergence in bits, between an attribute's current values and those of the plan, that starts a
    /// search. 1: never.
    pub drift: f64,
    /// Batches from the request of a plan to its activation; 0: the release waits for the plan.
    pub handover_batches: u64,
    /// Time limit of a concurrent search; a later plan is discarded.
    #[serde(with = "quantity::duration")]
    pub search_budget: Duration,
    /// Share of distinct values at which an attribute is removed as a standalone identifier.
    pub identifier_cardinality: f64,
    /// Upper limit of remembered values per attribute, unless window and withheld records need more. Further values are
    /// not covered.
    pub max_dictionary_values: usize,
    /// Upper limit of lines that wait for their delay (`privacy.max_delay`); further lines are thinned.
    pub max_waiting_lines: usize,
    /// Upper limit of remembered pairs of subject and group inside their window, about 48 bytes each; further lines are
    /// thinned.
    pub max_said_lines: usize,
    /// Time from the first key in the topic of erasures to the erasure.
    #[serde(with = "quantity::duration")]
    pub erasure_interval: Duration,
    /// Time limit of a shutdown after SIGTERM or SIGINT.
    #[serde(with = "quantity::duration")]
    pub shutdown_time: Duration,
}

impl Default for FixedSettings {
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

impl FixedSettings {
    /// Returns the values of a release.
    #[cfg(not(feature = "failpoints"))]
    pub(super) fn of(_: &std::collections::BTreeMap<String, String>) -> Self {
        Self::default()
    }

    /// Returns the values of a release with the overrides of a test.
    ///
    /// # Panics
    /// Panics if the overrides are invalid.
    #[cfg(feature = "failpoints")]
    pub(super) fn of(env: &std::collections::BTreeMap<String, String>) -> Self {
        env.get(TUNING_VARIABLE).map_or_else(Self::default, |text| toml::from_str(text).expect("values of settings"))
    }
}
