//! `[anonymize]`: anonymization of one complete data set.

use super::choice::choices;
use super::problem::ProblemCollector;
use super::{Config, DiversityKind, ModelKind, quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
pub use throng_core::lattice::search::LatticeStrategy;
pub use throng_core::quality::QualityMeasure;

choices! {
    /// Scope of a policy.
    #[derive(Default)]
    enum RecodingScope {
        /// One policy for all records.
        #[default]
        FullDomain = "full_domain",
        /// One policy for the records that it can release, another for the remaining ones, and so on. Better quality,
        /// but mixed levels. Refused together with `delta_presence`.
        Local = "local",
    }
}

/// Controls the policy search of `throng anonymize`; the daemon ignores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnonymizeConfig {
    /// Limits the share of records that may be suppressed, 0 to 1.
    #[schemars(example = 0.05, extend("minimum" = 0, "maximum" = 1))]
    pub suppression_limit: f64,
    /// Selects the quality measure to optimize.
    #[schemars(example = QualityMeasure::Loss)]
    pub measure: QualityMeasure,
    /// Selects the search strategy in the lattice.
    #[schemars(example = LatticeStrategy::Bfs)]
    pub strategy: LatticeStrategy,
    /// Limits the search time, over all passes of `local` and all repetitions. At the limit the best policy found is
    /// used. None: until the optimum is proved.
    #[serde(with = "quantity::optional_duration")]
    #[schemars(with = "Option<quantity::DurationText>", example = &"60s")]
    pub time_limit: Option<Duration>,
    /// Selects an attribute that marks the records to be released by `true`, `1` or `yes`. The others are the
    /// population that k-map and δ-presence count. It has the role insensitive and is not released. None: all records
    /// are released.
    #[schemars(example = &"in_study")]
    pub released: Option<String>,
    /// Selects one policy for all records, or several passes with different policies.
    #[schemars(example = RecodingScope::Local)]
    pub transformation: RecodingScope,
    /// Limits the share of records that the first pass of local recoding may pass on, 0 to 1. Later passes release as
    /// many as they can. The rest is suppressed and limited by `suppression_limit`.
    #[schemars(example = 1.0, extend("minimum" = 0, "maximum" = 1))]
    pub pass_limit: f64,
    /// Applies micro-aggregation to these quasi attributes of the type integer, or float with a rounding step. Members
    /// of a class show the mean of their numbers instead of the interval. **Untruthful**: possibly no member has the
    /// shown number, and an attacker that knows all but one of k numbers learns the last. Means of fewer than k
    /// subjects are `*`. Refused together with `delta_presence`.
    #[schemars(example = ["age"])]
    pub microaggregation: Vec<String>,
    /// Sets the h-ceiling with counterfeits.
    pub ceiling: CeilingConfig,
}

impl Default for AnonymizeConfig {
    fn default() -> Self {
        Self {
            suppression_limit: 0.05,
            measure: QualityMeasure::Loss,
            strategy: LatticeStrategy::Bfs,
            time_limit: None,
            released: None,
            transformation: RecodingScope::FullDomain,
            pass_limit: 1.0,
            microaggregation: Vec::new(),
            ceiling: CeilingConfig::default(),
        }
    }
}

/// Sets the h-ceiling with counterfeits, for `throng anonymize`. No record is generalized by more than `h`; classes
/// that are then too small get invented records, which a catalog counts without identifying them. **Untruthful**
/// without the catalog. Counterfeits never count toward `privacy.k`. Off unless `lines` is given. The schema needs
/// exactly one sensitive attribute and no released insensitive one. `throng run` refuses it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CeilingConfig {
    /// Sets the minimum lines in every class, true and invented ones together. More than `privacy.k` plus
    /// `privacy.colluders`, at most 1000. None: no ceiling, and no record is invented.
    #[schemars(example = 10, extend("minimum" = 2, "maximum" = 1000))]
    pub lines: Option<usize>,
    /// Limits the generalization of a record: the mean Loss of its quasi cells, 0 to 1. None: the value with the lowest
    /// reconstruction error.
    #[schemars(example = 0.3, extend("minimum" = 0, "maximum" = 1))]
    pub h: Option<f64>,
    /// Limits the counterfeits, as a share of the records to be released, 0 to 1. If too few, the smallest classes are
    /// suppressed as far as `suppression_limit` allows.
    #[schemars(example = 0.02, extend("minimum" = 0, "maximum" = 1))]
    pub share: f64,
    /// Sets the file of the catalog. Required, here or as `--catalog`.
    #[schemars(example = &"adult.catalog.ndjson")]
    pub catalog: Option<PathBuf>,
}

impl Default for CeilingConfig {
    fn default() -> Self {
        Self { lines: None, h: None, share: 0.02, catalog: None }
    }
}

impl CeilingConfig {
    /// Returns true if the ceiling is enabled.
    pub fn is_enabled(&self) -> bool {
        self.lines.is_some()
    }
}

pub(super) fn check_anonymize(config: &Config, found: &mut ProblemCollector) {
    let share = (0.0..=1.0).contains(&config.anonymize.suppression_limit);
    found.require(share, "anonymize.suppression_limit", "must be between 0 and 1", "give 0 to 1; 0.05 is usual");
    let time = config.anonymize.time_limit.is_none_or(|limit| limit > Duration::ZERO);
    found.require(time, "anonymize.time_limit", "the time limit is zero", "give at least 1ms, or remove the key");
    let share = (0.0..=1.0).contains(&config.anonymize.pass_limit);
    found.require(share, "anonymize.pass_limit", "must be between 0 and 1", "give 0 to 1");
    check_delta_presence(config, found);
    check_ceiling(config, found);
    for (index, model) in config.privacy.model.iter().enumerate() {
        for key in model.missing_keys() {
            let key = format!("privacy.model[{index}].{key}");
            found.require(false, &key, "the model requires this key", "set it; docs/configuration.md has an example");
        }
    }
}

/// δ-presence bounds every population member, present or not: a missing class would reveal information, and an
/// aggregate covers no member.
fn check_delta_presence(config: &Config, found: &mut ProblemCollector) {
    if !config.privacy.model.iter().any(|model| model.kind == ModelKind::DeltaPresence) {
        return;
    }
    found.require(
        config.anonymize.transformation == RecodingScope::FullDomain,
        "anonymize.transformation",
        "delta_presence does not hold for local recoding: a class left for a later pass reveals who is present",
        "set \"full_domain\", or remove the model",
    );
    found.require(
        config.anonymize.microaggregation.is_empty(),
        "anonymize.microaggregation",
        "delta_presence counts the subjects covered by the cells of a class, but an aggregate covers none",
        "remove it, or the model",
    );
}

/// A higher number is probably a mistake in the unit.
const MAX_CEILING_LINES: usize = 1000;

fn check_ceiling(config: &Config, found: &mut ProblemCollector) {
    let (settings, ceiling) = (&config.anonymize, &config.anonymize.ceiling);
    let h = ceiling.h.is_none_or(|h| (0.0..=1.0).contains(&h));
    found.require(h, "anonymize.ceiling.h", "must be between 0 and 1", "give 0 to 1, or remove the key");
    let share = (0.0..=1.0).contains(&ceiling.share);
    found.require(share, "anonymize.ceiling.share", "must be between 0 and 1", "give 0 to 1; 0.02 is usual");
    let Some(lines) = ceiling.lines else {
        let remedy = "set anonymize.ceiling.lines to enable the ceiling, or remove the key";
        found.require(ceiling.h.is_none(), "anonymize.ceiling.h", "the ceiling is not enabled", remedy);
        let none = ceiling.catalog.is_none();
        found.require(none, "anonymize.ceiling.catalog", "a catalog requires a ceiling", remedy);
        return;
    };
    found.require(
        (config.privacy.required_subjects() + 1..=MAX_CEILING_LINES).contains(&lines),
        "anonymize.ceiling.lines",
        "counterfeits do not count as people, so a class has more lines than required people",
        "give more than privacy.k + privacy.colluders, and at most 1000",
    );
    let full = settings.transformation == RecodingScope::FullDomain;
    let message = "a ceiling requires one policy for all records";
    found.require(full, "anonymize.transformation", message, "set \"full_domain\", or remove anonymize.ceiling.lines");
    let message = "an aggregate is computed from class members, but counterfeits have none";
    let remedy = "remove it, or anonymize.ceiling.lines";
    found.require(settings.microaggregation.is_empty(), "anonymize.microaggregation", message, remedy);
    for (index, model) in config.privacy.model.iter().enumerate() {
        let holds = match model.kind {
            ModelKind::KAnonymity | ModelKind::KMap => true,
            ModelKind::LDiversity => model.diversity == DiversityKind::Distinct,
            ModelKind::TCloseness | ModelKind::DeltaPresence => false,
        };
        let key = format!("privacy.model[{index}].kind");
        let message = "counterfeits would change the values that this model counts in a class";
        let remedy =
            "remove it or anonymize.ceiling.lines; k_anonymity, k_map and distinct l_diversity allow a ceiling";
        found.require(holds, &key, message, remedy);
    }
}
