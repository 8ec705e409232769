//! Settings that are fixed in a release and can be overridden in test builds only.

use std::time::Duration;

use super::quantity;
use serde::Deserialize;

/// Environment variable with other values, as TOML. Read in test builds only.
#[cfg(feature = "failpoints")]
const TUNING_VARIABLE: &str = "THRONG_TUNING";

/// Fixed settings with their values in a release.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FixedSettings {
    /// Jensen–Shannon divergence in bits between an attribute's current values and the values of the active plan. At
    /// this divergence a new plan is searched. 1: never.
    pub drift: f64,
    /// Batches between the one that requests a plan and the one that activates it; 0: the release waits for the plan.
    pub handover_batches: u64,
    /// Time limit of a search that runs concurrently with the release. A plan that is not ready by then is discarded.
    #[serde(with = "quantity::duration")]
    pub search_budget: Duration,
    /// Distinct values as a share of the window's records at which an attribute counts as a standalone identifier and
    /// is removed.
    pub identifier_cardinality: f64,
    /// Upper limit of remembered distinct values per attribute, unless the window and the withheld records need more.
    /// At the limit a new value is treated as not covered.
    pub max_dictionary_values: usize,
    /// Upper limit of lines that wait for their delay (`privacy.max_delay`); at the limit a further line is thinned.
    pub max_waiting_lines: usize,
    /// Upper limit of remembered pairs of subject and group that have been released inside their window. At the limit
    /// a further line is thinned. About 48 bytes each.
    pub max_said_lines: usize,
    /// Time from the first key in the topic of erasures to the erasure of all subjects known by then.
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

    /// Returns the values of a release, with the overrides that a test gives in the environment.
    ///
    /// # Panics
    /// Panics if the overrides are not valid settings.
    #[cfg(feature = "failpoints")]
    pub(super) fn of(env: &std::collections::BTreeMap<String, String>) -> Self {
        env.get(TUNING_VARIABLE).map_or_else(Self::default, |text| toml::from_str(text).expect("values of settings"))
    }
}
